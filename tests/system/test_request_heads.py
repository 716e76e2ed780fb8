"""The heads of requests: how large they may be, which forms are refused, and that no request has an effect that is not
answered. Byte for byte, on the wire."""

import contextlib
import os
import pathlib
import re
import socket
import struct
import time

import pytest

from client import PATIENCE, eventually, fresh

pytestmark = pytest.mark.sqlite  # heads know no store
SIZE_MAX = 16384
LINES_MAX = 100
STEP = 1 if os.environ.get("CONSTANCIA_TEST_STRIDE") == "1" else 7
MARK = "X-Behind: 1"  # a request that is smuggled in asks for what nothing else asks for


# ---- the wire ----

class Talk:
    """What was returned for some bytes: the statuses of the answers, and whether the connection ended."""

    def __init__(self, service, sent, patience=PATIENCE, pieces=1):
        self.answers, self.closed, self.left, self.continued = [], False, b"", 0
        with socket.create_connection(("127.0.0.1", service.port), timeout=patience) as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                size = -(-len(sent) // pieces)
                for at in range(0, len(sent), size):
                    link.sendall(sent[at:at + size])
            self.listen(link)

    def listen(self, link):
        received = b""
        try:
            while data := link.recv(65536):
                received += data
            self.closed = True
        except ConnectionResetError:
            self.closed = True
        except TimeoutError:
            pass
        while b"\r\n\r\n" in received:
            head, _, received = received.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
            size = int(length[1]) if length else 0
            status = int(head.split()[1])
            self.continued += status == 100
            if status != 100:
                self.answers.append((status, head.decode("latin-1"), received[:size]))
            received = received[size:]
        self.left = received

    @property
    def statuses(self):
        return [status for status, _, _ in self.answers]

    def __repr__(self):
        return f"<{self.statuses} closed={self.closed} left={self.left[:80]!r}>"


def wire(text):
    return text.replace("\n", "\r\n").encode("latin-1")


def registration(key, lines="", target="/v1/events", ref=None):
    body = '{"client_ref":"%s","payload":{}}' % (ref or fresh())
    return wire(f"POST {target} HTTP/1.1\nHost: x\nConnection: close\nAuthorization: Bearer {key}\n"
                f"Content-Type: application/json\nContent-Length: {len(body)}\n{lines}\n") + body.encode()


def head_size(request):
    return request.index(b"\r\n\r\n") + 4


def padded(key, line, size, **more):
    """A request whose head has exactly `size` bytes; `line` takes what pads it."""
    short = head_size(registration(key, line("") + "\n", **more))
    return registration(key, line("y" * (size - short)) + "\n", **more)


# ---- sizes ----

def one_header(key, size):
    return padded(key, lambda pad: f"X-Long: {pad}", size)


def one_cookie(key, size):
    return padded(key, lambda pad: f"Cookie: a={pad}", size)


def many_cookies(key, size):
    many = "; ".join(f"c{number}=1" for number in range(size // 16))
    return padded(key, lambda pad: f"Cookie: {many}; a={pad}", size)


def cookies_of_a_browser(key, size):
    many = "; ".join(f"cookie{number:03}=" + "v" * 89 for number in range((size - 400) // 101))
    return padded(key, lambda pad: f"Cookie: {many}; a={pad}", size)


def many_headers(key, size):
    lines = [f"X-{number}: " + "z" * ((size - 400) // 90 - 10) for number in range(90)]
    return padded(key, lambda pad: "\n".join([*lines, f"X-Last: {pad}"]), size)


def a_query(key, size):
    text = registration(key)
    return text.replace(b"/v1/events ", b"/v1/events?a=" + b"y" * (size - head_size(text) - 3) + b" ", 1)


def many_parameters(key, size):
    text = registration(key)
    room = size - head_size(text) - 1
    return text.replace(b"/v1/events ", b"/v1/events?" + (b"a&" * room)[:room] + b" ", 1)


def a_path(key, size):
    text = registration(key)
    return text.replace(b"/v1/events ", b"/v1/events" + b"y" * (size - head_size(text)) + b" ", 1)


SHAPES = {shape: refused for shape, refused in (
    (one_header, 201), (one_cookie, 201), (many_cookies, 201), (cookies_of_a_browser, 201), (many_headers, 201),
    (a_query, 400), (many_parameters, 400), (a_path, 404))}
EDGES = [1024, 4096, 7800, 8192, 15800, SIZE_MAX, 20480, 32768]


def around(edges, reach):
    return sorted({size for edge in edges for size in range(edge - reach, edge + reach + 1)})


def sampled(sizes, keep):
    return [size for number, size in enumerate(sizes) if number % STEP == 0 or size in keep]


class Tally:
    """What was answered 201, against what the service has."""

    def __init__(self, channel):
        self.channel, self.registered = channel, 0
        self.before = self.balance()

    def balance(self):
        return self.channel.live.get("/v1/account/balance").expect(200).json["balance"]

    def count(self, talk):
        assert len(talk.answers) == 1 and not talk.left, talk
        self.registered += talk.statuses == [201]
        return talk.statuses[0]

    def judge(self):
        assert self.before - self.balance() == self.registered
        assert self.channel.live.register().expect(201).json["sequence"] == self.registered + 1


@pytest.fixture
def tally(service):
    channel = service.new_channel(credits=100000)
    made = Tally(channel)
    yield made
    made.judge()
    channel.close()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_head_is_served_or_refused_before_anything_is_done(tally, shape):
    key = tally.channel.live.key
    sizes = sampled(around(EDGES, 40) + list(range(600, 40000, 997)), {SIZE_MAX, SIZE_MAX + 1})
    for size in sizes:
        request = shape(key, size)
        assert head_size(request) == size
        status = tally.count(Talk(tally.channel.service, request))
        if size <= SIZE_MAX:
            assert status == SHAPES[shape], (shape, size, status)
        else:
            assert status in (414, 431), (shape, size, status)


@pytest.mark.parametrize("count", [1, 80, 93, 94, 95, 96, 150, 400])
@pytest.mark.parametrize("pieces", [1, 7])
def test_the_lines_of_a_head_are_bounded(tally, count, pieces):
    lines = "".join(f"X-{number}: 1\n" for number in range(count))
    talk = Talk(tally.channel.service, registration(tally.channel.live.key, lines), pieces=pieces)
    assert tally.count(talk) == (201 if count + 5 <= LINES_MAX else 431)
    if count + 5 > LINES_MAX:
        assert b"validation_error" in talk.answers[0][2] or count > 150, talk


def test_the_largest_head_of_most_lines_is_served_whatever_comes_behind_it(tally):
    """Also on a connection that has answered before, and when what follows fills the connection's memory."""
    lines = [f"X-{number}: 1" for number in range(93)]
    body = padded(tally.channel.live.key, lambda pad: "\n".join([*lines, f"X-Last: {pad}"]), SIZE_MAX)
    for behind in (0, 1, 1000, 20000, 60000):
        talk = Talk(tally.channel.service, body.replace(b"Connection: close", b"Connection: Close") + b"x" * behind)
        assert talk.statuses[:1] == [201], (behind, talk)
        tally.registered += 1
        body = body.replace(b'"client_ref":"', b'"client_ref":"n', 1)
        body = re.sub(rb"Content-Length: (\d+)", lambda found: b"Content-Length: %d" % (int(found[1]) + 1), body)
        # One digit fewer or more changes the size of the head.
        assert head_size(body) == SIZE_MAX


@pytest.mark.parametrize("known", [True, False], ids=["known key", "unknown key"])
def test_what_comes_behind_a_request_does_not_take_the_answers_room(tally, known):
    """Such a client says what it has next before it has read; a service that waits for the key keeps it."""
    key = tally.channel.live.key if known else "svc_live_" + "0" * 40
    for behind in sampled(range(1, 50000, 131), set()):
        many = "".join(f"a{number}:\n" for number in range(90))
        request = registration(key, many).replace(b"Connection: close\r\n", b"", 1)
        talk = Talk(tally.channel.service, request + b"G" * behind + b"\r\n\r\n")
        assert talk.statuses[:1] == [201 if known else 401], (behind, talk)
        tally.registered += known


def test_empty_lines_before_a_request_do_not_take_the_answers_room(tally):
    for count in sampled(around([4096, 8192, 12288, 16384], 300), set()):
        talk = Talk(tally.channel.service, b"\r\n" * count + registration(tally.channel.live.key))
        assert len(talk.answers) <= 1, (count, talk)
        tally.registered += talk.statuses == [201]
        if talk.statuses != [201]:
            assert not talk.statuses or talk.statuses[0] >= 400, (count, talk)


def test_a_browser_with_many_cookies_opens_the_console(service):
    cookies = "; ".join(f"name{number:02}=" + "v" * 93 for number in range(60))
    talk = Talk(service, wire(f"GET /console HTTP/1.1\nHost: x\nConnection: close\nAccept: text/html\n"
                              f"Cookie: {cookies}\n\n"))
    assert talk.statuses in ([200], [303]), talk


# ---- shapes that others could read in another way ----

def smuggler(key, lines, body=""):
    return wire(f"POST /verify HTTP/1.1\nHost: x\nAccept: application/json\n{lines}\n{body}"
                f"GET /v1/channel HTTP/1.1\nHost: x\n{MARK}\nAuthorization: Bearer {key}\n\n")


BROKEN = {
    "a folded coding": "Transfer-Encoding:\n chunked\n",
    "a coding folded behind its name": "Transfer-Encoding: \n\tchunked\nContent-Length: 3\n",
    "a folded length": "Content-Length:\n 3\n",
    "a length folded in the middle": "Content-Length: 3\n 0\n",
    "an empty fold": "Content-Length: 3\n \n",
    "a fold of something else": "X-Any: a\n b\nContent-Length: 0\n",
    "a folded idempotency key": "Content-Length: 0\nIdempotency-Key:\n abc\n",
    "a NUL in a length": "Content-Length: 3\x00x\n",
    "a NUL in a coding": "Transfer-Encoding: chunked\x00\nContent-Length: 3\n",
    "a NUL at the beginning of a line": "X-Any: 1\n\x00Content-Length: 3\n",
    "a NUL in a name": "Content-\x00Length: 3\n",
    "a line that begins with a colon": "X-Any: 1\n: x\nContent-Length: 3\n",
    "a first line that begins with a colon": ":\nContent-Length: 3\n",
    "a colon and nothing else": "X-Any: 1\n:\nContent-Length: 3\n",
    "white space before the colon of a length": "Content-Length : 3\n",
    "white space before the colon of a coding": "Transfer-Encoding\t: chunked\n",
    "a longer name": "Content-Length-X: 3\n",
    "another longer name": "Transfer-Encodingx: chunked\nContent-Length: 0\n",
    "a name with a control character": "Content-Length\x0b: 3\n",
    "a control character in a value": "X-Any: a\x01b\nContent-Length: 0\n",
    "a carriage return in a value": "X-Any: a\rContent-Length: 3\nContent-Length: 0\n",
    "a coding with a control character": "Transfer-Encoding: \x0bchunked\n",
    "two lengths": "Content-Length: 0\nContent-Length: 3\n",
    "two codings": "Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n",
    "a length and a coding": "Content-Length: 3\nTransfer-Encoding: chunked\n",
    "a list of lengths": "Content-Length: 3, 3\n",
    "neither": "",
    "two hosts": "Host: y\nContent-Length: 0\n",
}


@pytest.mark.parametrize("lines", BROKEN.values(), ids=BROKEN)
def test_what_is_no_sound_head_is_refused_once_and_ends_the_connection(shared, lines):
    for body in ("0\n\n", ""):  # of who sees chunks, and of who sees no body: the other request is the next one
        talk = Talk(shared.service, smuggler(shared.live.key, lines, body))
        assert talk.closed and len(talk.answers) >= 1, (body, talk)
        assert talk.statuses[0] in (400, 413, 501), (body, talk)
        assert not [head for _, head, _ in talk.answers if "HTTP/1.1 2" in head], (body, talk)


@pytest.mark.parametrize("line", [":", ": x", "\x00", "\x00: x"], ids=["colon", "colon first", "NUL", "NUL first"])
def test_no_line_but_an_empty_one_ends_a_head(shared, line):
    talk = Talk(shared.service, wire(f"GET /v1/openapi.yaml HTTP/1.1\nHost: x\nX-Any: 1\n{line}\nGET /v1/channel HTTP/1.1\n"
                                     f"Host: x\nAuthorization: Bearer {shared.live.key}\n\n"))
    assert talk.closed and set(talk.statuses) == {400}, talk


@pytest.mark.parametrize("lines", ["X-Any: 1\\\n", "Content-Length: 0\\\n", "\\\n"])
def test_lines_end_with_both_characters(shared, lines):
    text = smuggler(shared.live.key, lines + "Content-Length: 0\n").replace(b"\\\r\n", b"\n")
    talk = Talk(shared.service, text)
    assert talk.closed and all(status >= 400 for status in talk.statuses), talk


@pytest.mark.parametrize("text", [
    "GET /v1/openapi.yaml HTTP/1.1\nConnection: close\n\n",
    "GET /v1/openapi.yaml HTTP/1.1\nHost: x\nHost: x\n\n",
    "GET /v1/open\x00api.yaml HTTP/1.1\nHost: x\n\n",
    "GET /v1/openapi.yaml\x00 HTTP/1.1\nHost: x\n\n",
    "GET /v1/openapi.yaml x HTTP/1.1\nHost: x\n\n",
    "GET /v1/open\x7fapi.yaml HTTP/1.1\nHost: x\n\n",
    "POST /v1/events HTTP/1.1\nHost: x\n\n", "PUT /v1/events HTTP/1.1\nHost: x\n\n",
    "PATCH /nowhere HTTP/1.1\nHost: x\n\n", "POST /v1/events HTTP/1.0\n\n",
    "POST /verify HTTP/1.0\nTransfer-Encoding: chunked\n\n0\n\n",
], ids=range(11))
def test_a_request_that_does_not_say_what_it_must_is_refused_once(shared, text):
    talk = Talk(shared.service, wire(text))
    # A later library ends what has a NUL in its first line without a word.
    assert talk.closed and not talk.left and talk.statuses in ([400], [] if "\x00" in text else [400]), talk


def test_a_refusal_names_the_fault(shared):
    def told(lines, language="en"):
        text = f"GET /v1/channel HTTP/1.1\nHost: x\nAccept-Language: {language}\n{lines}\n"
        return Talk(shared.service, wire(text), patience=PATIENCE).answers[0][2].decode()
    assert "one Host header" in told("Host: y\n") and "una cabecera Host" in told("Host: y\n", "es")
    assert "RFC 9112" in told("X-A: a\x01\n")
    many = "".join(f"X-{number}: 1\n" for number in range(120)) + "Connection: close\n"
    assert "100 header lines" in told(many) and "100 líneas" in told(many, "es")


@pytest.mark.parametrize("value", ["{}", " {}", "\t {}", "   {}"])
def test_white_space_before_framing_values_is_legal(tally, value):
    request = registration(tally.channel.live.key)
    length = re.search(rb"Content-Length: (\d+)", request)
    text = request.replace(length[0], b"Content-Length:" + value.format(length[1].decode()).encode(), 1)
    assert tally.count(Talk(tally.channel.service, text)) == 201
    body = request[head_size(request):]
    chunked = request[:head_size(request)].replace(
        length[0], b"Transfer-Encoding:" + value.format("chunked").encode(), 1)
    text = chunked + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body.replace(b'"client_ref":"', b'"client_ref":"c')[:-1])
    text = chunked + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body[:15] + b"Z" + body[16:])
    assert tally.count(Talk(tally.channel.service, text)) == 201


@pytest.mark.parametrize("line", ["Content-Length: {} ", "Content-Length: {}\t", "Transfer-Encoding: chunked ",
                                  "Transfer-Encoding: chunked \t"])
def test_white_space_behind_framing_values_never_hangs(shared, line):
    """Served with libmicrohttpd 1.0; the one before does not know it, and what it would misread is refused."""
    request = registration(shared.live.key)
    size, body = head_size(request), request[head_size(request):]
    head = re.sub(rb"Content-Length: \d+", line.format(len(body)).encode(), request[:size])
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if "chunked" in line else body
    talk = Talk(shared.service, head + sent)
    assert talk.closed and talk.statuses[:1] in ([201], [400]), talk


@pytest.mark.parametrize("lines", ["Expect: 100-continue\n", "Expect: 100-continue\nContent-Length: 0\n",
                                   "Expect: 100-Continue\nExpect: x\n", "Expect: x\nExpect: 100-continue\n"])
@pytest.mark.parametrize("method, path, status", [
    ("GET", "/docs/reference", 200), ("GET", "/nothing", 404), ("GET", "/v1/channel", 200),
    ("POST", "/v1/events", 400), ("POST", "/verify", 400)])
def test_who_has_no_body_need_not_be_told_to_continue(shared, service, method, path, status, lines):
    """And the library, not the service itself, answers the request that follows."""
    if method == "POST" and "Length" not in lines:
        lines += "Content-Length: 0\n"
    rescued = service.metric("http_answers_rescued_total")
    one = (f"{method} {path} HTTP/1.1\nHost: x\nAccept: application/json\nContent-Type: application/json\n"
           f"Authorization: Bearer {shared.live.key}\n{lines}")
    talk = Talk(service, wire(f"{one}\n" * 3 + f"{one}Connection: close\n\n"))
    assert talk.statuses == [status] * 4 and talk.closed and not talk.left
    assert not talk.continued
    assert service.metric("http_answers_rescued_total") == rescued


# ---- targets ----

@pytest.mark.parametrize("target,status", [
    ("http://register.example.org/v1/openapi.yaml", 200), ("HTTPS://x:8080/v1/channel", 200),
    ("http://x/v1/events?limit=1", 200), ("http://x/v1/events?surprise=1", 400), ("http://x/nowhere", 404),
    ("http://x", 200), ("http://", 404), ("ftp://x/v1/channel", 404), ("*", 404),
])
def test_a_target_may_name_the_server(shared, target, status):
    talk = Talk(shared.service, wire(f"GET {target} HTTP/1.1\nHost: x\nConnection: close\n"
                                     f"Authorization: Bearer {shared.live.key}\n\n"))
    assert talk.statuses == [status], talk


def test_the_server_tells_its_methods(shared):
    talk = Talk(shared.service, wire("OPTIONS * HTTP/1.1\nHost: x\nConnection: close\n\n"))
    assert talk.statuses == [204], talk
    assert "\r\nAllow: GET, HEAD, POST, OPTIONS" in talk.answers[0][1]
    assert "content-length" not in talk.answers[0][1].lower()


# ---- ids ----

MASK = 2 ** 64 - 1


def without_shift(value, shift):
    result = value
    for _ in range(64 // shift):
        result = value ^ result >> shift
    return result


def unmixed(value):
    """The state of SplitMix64 that gave it, which is a counter."""
    value = without_shift(value, 31)
    value = without_shift(value * pow(0x94d049bb133111eb, -1, 2 ** 64) & MASK, 27)
    return without_shift(value * pow(0xbf58476d1ce4e5b9, -1, 2 ** 64) & MASK, 30)


def test_request_ids_do_not_tell_how_many_requests_there_were(shared):
    ids = [shared.live.get("/v1/channel").headers["X-Request-Id"] for _ in range(200)]
    assert len(set(ids)) == len(ids)
    numbers = [struct.unpack("<Q", bytes.fromhex(id[4:]))[0] for id in ids]
    for undo in (unmixed, lambda number: number):
        states = [undo(number) for number in numbers]
        steps = {(later - earlier) & MASK for earlier, later in zip(states, states[1:])}
        assert len(steps) == len(ids) - 1, "as far from each other each time"


# ---- what does not end ----

@pytest.fixture(scope="module")
def impatient(start):
    return start(http__transfer_timeout="2s", http__idle_timeout="2s")


@pytest.mark.parametrize("line", [b"0" * 65536, b"5;" + b"x" * 65536, b"f" * 65536, b"5" + b" " * 65536],
                         ids=["zeros", "an extension", "digits", "spaces"])
def test_an_endless_chunk_line_is_answered_and_the_connection_ends(impatient, line):
    key = impatient.ready["channels"]["content"]["live_key"]
    text = wire(f"POST /v1/events HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\n"
                "Content-Type: application/json\nTransfer-Encoding: chunked\n\n")
    talk = Talk(impatient, text + line)
    assert talk.closed and talk.statuses and talk.statuses[0] in (400, 413, 431), talk


def seconds_of_loops(process):
    tasks = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks
               if (task / "comm").read_text().startswith("http-"))


def test_a_chunk_line_that_fills_the_memory_exactly_keeps_no_loop_busy(start):
    """One of these sizes does, whatever else the library keeps in that memory."""
    service = start(http__transfer_timeout="1h", http__connections_per_address=2000)
    key = service.ready["channels"]["content"]["live_key"]
    text = wire(f"POST /v1/events HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\n"
                "Content-Type: application/json\nTransfer-Encoding: chunked\n\n")

    def rests():
        used, began = seconds_of_loops(service.process), time.monotonic()
        time.sleep(2)
        return seconds_of_loops(service.process) - used < 0.4 * (time.monotonic() - began)

    with contextlib.ExitStack() as ending:
        for size in range(27900, 28400):
            link = ending.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                link.sendall(text + b"5;" + b"x" * size)
        eventually(rests, "the longer ones are answered, and the loops rest")
