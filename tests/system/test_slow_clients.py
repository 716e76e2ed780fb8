"""The connections and memory that one client can use, with slow or with many connections."""

import contextlib
import email.parser
import json
import os
import re
import resource
import signal
import socket
import threading
import time

import pytest

from client import Answer, Client, eventually, fresh

TRANSFER = 1  # seconds, of http.transfer_timeout
PATIENCE = 60  # until what must end counts as endless


def connect(service, source=None):
    return socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE,
                                    source_address=(source, 0) if source else None)


def request(key, length, content_type="application/json"):
    return (f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: {content_type}\r\n{length}\r\n\r\n").encode()


def get(path="/docs/errors"):
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def to_the_end(link):
    """All that comes until the service ends the connection."""
    received = b""
    try:
        while data := link.recv(65536):
            received += data
    except ConnectionError:
        pass
    return received


def statuses(received):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", received)]


def judge_bare(service, received, status):
    """An answer to a connection, before any request of it was parsed: its status alone."""
    head, _, body = received.partition(b"\r\n\r\n")
    line, _, fields = head.partition(b"\r\n")
    headers = email.parser.BytesParser().parsebytes(fields)
    assert line.startswith(b"HTTP/1.1 %d " % status), received
    assert body == b"" and headers["Content-Length"] == "0" and headers["Connection"] == "close"
    for operation in (("POST", "/v1/events"), ("GET", "/v1/channel"), ("GET", "/verify")):
        service.description.check(Answer(*operation, status, headers, body))
        response = service.description.operation(*operation)["responses"][str(status)]
        described = service.description.resolve(response).get("headers", {})
        assert set(headers) - set(described) == {"Content-Length", "Connection"}
    assert (headers.get("Retry-After") is None) == (status == 408)


def trickle(link, data=b"x", pause=0.3):
    """Sends it again and again until it is not accepted any more; seconds."""
    started = time.monotonic()
    while time.monotonic() - started < PATIENCE:
        try:
            link.sendall(data)
        except ConnectionError:
            return
        time.sleep(pause)
    raise AssertionError("it could have gone on for ever")


@pytest.fixture(scope="module")
def impatient(start):
    return start(http__transfer_timeout=f"{TRANSFER}s", http__idle_timeout="3s")


@pytest.fixture(scope="module")
def key(impatient):
    return impatient.new_channel(credits=100000).live.key


# ---- slow ----

@pytest.mark.parametrize("start_with", [b"", b"G", b"GET /docs/errors HTTP/1.1\r\n",
                                        b"GET /docs/errors HTTP/1.1\r\nHost: x\r\nX-Long: "],
                         ids=["nothing", "a letter", "a line", "a header"])
@pytest.mark.parametrize("operator", [False, True], ids=["public", "operator's"])
def test_a_head_that_comes_byte_by_byte_does_not_come_for_ever(impatient, start_with, operator):
    port = impatient.admin_port if operator else impatient.port
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
        link.sendall(start_with)
        trickle(link)


def test_nor_do_headers_without_an_end(impatient):
    with connect(impatient) as link:
        link.sendall(b"GET /docs/errors HTTP/1.1\r\nHost: x\r\n")
        trickle(link, b"X-More: more\r\n")


@pytest.mark.parametrize("kind", ["length", "chunks", "chunk line", "long chunk line", "extensions",
                                  "trailers", "form"])
def test_nor_does_a_body(impatient, key, kind):
    """Whatever it is that does not end, it is answered, and the connection ends."""
    chunked = request(key, "Transfer-Encoding: chunked")
    form = "multipart/form-data; boundary=B"
    part = b'--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    begin, more = {
        "length": (request(key, "Content-Length: 200000"), b" "),
        "chunks": (chunked, b"1\r\n \r\n"),
        "chunk line": (chunked, b"0"),
        "long chunk line": (chunked + b"0" * 65536, b""),
        "extensions": (chunked + b"1;", b"x"),
        "trailers": (chunked + b"2\r\n{}\r\n0\r\n", b"X-More: more\r\n"),
        "form": (request(key, "Content-Length: 9000000", form) + part, b"x"),
    }[kind]
    with connect(impatient) as link:
        try:
            link.sendall(begin)
        except ConnectionError:
            pass
        reader = []
        reading = threading.Thread(target=lambda: reader.append(to_the_end(link)))
        reading.start()
        if more:
            trickle(link, more)
        reading.join()
    assert statuses(reader[0])[:1] in ([408], [400], [413], [431]), reader


def test_a_body_that_comes_slowly_but_fast_enough_is_taken(start):
    service = start(http__transfer_timeout="3s")  # longer than a machine under load is held up
    key = service.new_channel().live.key
    ref = fresh()
    body = json.dumps({"client_ref": ref, "payload": {"a": "x" * 200000}}).encode()
    with connect(service) as link:
        link.sendall(request(key, f"Content-Length: {len(body)}"))
        for at in range(0, len(body), 20000):
            link.sendall(body[at:at + 20000])
            time.sleep(3 / 5)  # twice as long as a head may take, in all
        assert link.recv(12) == b"HTTP/1.1 201"


@pytest.mark.parametrize("reads", [False, True], ids=["nothing", "a little"])
def test_answers_that_are_not_read_are_not_kept_for_ever(start, reads):
    service = start(http__transfer_timeout=f"{TRANSFER}s", http__idle_timeout="600s")
    open_before = service.metric("http_connections")
    over = threading.Event()

    def send(link):
        try:
            link.sendall(get("/v1/openapi.yaml") * 20000)
        except OSError:
            pass

    def read(link):
        while reads and not over.wait(0.2):
            try:
                link.recv(1500)
            except OSError:
                return
    with connect(service) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        threads = [threading.Thread(target=work, args=(link,)) for work in (send, read)]
        for thread in threads:
            thread.start()
        eventually(lambda: service.metric("http_connections") > open_before, "it is open")
        eventually(lambda: service.metric("http_connections") <= open_before, "it is cut",
                   PATIENCE)
        over.set()
        for thread in threads:
            thread.join()


# ---- many ----

def test_idle_connections_give_way_when_there_are_too_many(start):
    service = start(http__connections=40, http__connections_per_address=1000)
    crowd = [connect(service) for _ in range(200)]
    halves = [connect(service) for _ in range(40)]
    for link in halves:
        link.sendall(b"GET /docs")
    client = Client(service)
    client.get("/docs/errors").expect(200)
    # What was cut is counted until the loop has looked at it, which another thread does not wait for.
    eventually(lambda: service.metric("http_connections") <= 41, "what was cut is gone")
    client.get("/docs/errors").expect(200)
    client.close()
    for link in crowd + halves:
        link.close()


def test_one_address_cannot_take_all_connections(start):
    service = start(http__connections=200, http__connections_per_address=20)
    crowd = [connect(service, "127.0.0.2") for _ in range(60)]
    turned_away = crowd[20:]
    for link in turned_away:
        assert statuses(to_the_end(link)) == [429]
    crowd[0].sendall(get())
    assert crowd[0].recv(12) == b"HTTP/1.1 200"
    with connect(service, "127.0.0.3") as other:
        other.sendall(get())
        assert other.recv(12) == b"HTTP/1.1 200"
    for link in crowd[:20]:
        link.close()

    def again():
        with connect(service, "127.0.0.2") as link:
            link.sendall(get())
            return link.recv(12) == b"HTTP/1.1 200"
    eventually(again, "an address that let go is served again")
    for link in turned_away:
        link.close()


def test_behind_a_trusted_proxy_its_clients_are_counted(start):
    service = start(http__connections_per_address=3, service__trusted_proxies="127.0.0.1",
                    http__transfer_timeout="60s")
    key = service.new_channel().live.key
    begin = request(key, "Content-Length: 100\r\nExpect: 100-continue\r\n"
                         "X-Forwarded-For: 192.0.2.1")
    links = [connect(service) for _ in range(4)]
    for link in links[:3]:
        link.sendall(begin)
        assert statuses(link.recv(4096)) == [100]
    links[3].sendall(begin)
    assert links[3].recv(12) == b"HTTP/1.1 429"
    with Client(service, key) as client:
        client.get("/v1/channel", headers={"X-Forwarded-For": "192.0.2.2"}).expect(200)
        client.get("/v1/channel", headers={"X-Forwarded-For": "192.0.2.1"}).expect(429)
        links[0].close()
        eventually(lambda: client.get("/v1/channel", headers={"X-Forwarded-For": "192.0.2.1"})
                   .status == 200, "one of its requests is over")
    for link in links:
        link.close()


def test_a_proxy_that_does_not_tell_its_clients_has_no_limit_for_all_of_them(start):
    service = start(http__connections_per_address=3, service__trusted_proxies="127.0.0.1",
                    http__transfer_timeout="60s")
    key = service.new_channel().live.key
    links = [connect(service) for _ in range(8)]
    for number, link in enumerate(links):
        says = ("unknown", "_hidden", "", ",")[number % 4]
        link.sendall(request(key, "Content-Length: 100\r\nExpect: 100-continue\r\n"
                                  f"X-Forwarded-For: {says}"))
        assert statuses(link.recv(4096)) == [100]
    for link in links:
        link.close()


# ---- many, of several addresses ----

CROWD = [f"127.0.0.{number}" for number in range(2, 10)]
PAGE = "/v1/openapi.yaml"

CROWDS = {  # what each connection says, and how much of it is answered at once
    "nothing": (b"", 0),
    "a letter": (b"G", 0),
    "no line": (b"\x00\x01\x02", 0),
    "a line": (b"GET /docs/errors HTTP/1.1\r\n", 0),
    "a header": (b"GET /docs/errors HTTP/1.1\r\nHost: x\r\n", 0),
    "a request": (get("/nothing"), 1),
    "a request and a letter": (get("/nothing") + b"G", 1),
    "a request and a line": (get("/nothing") + b"GET / HTTP/1.1\r\n", 1),
    "no body": (request("svc_live_x", "Content-Length: 1000"), 0),
    "unread": (get(PAGE) * 400, 0),
}


def crowd(service, each, says, answers):
    """Connections of the crowd, as many as it gets."""
    links = []
    for _ in range(each):
        for source in CROWD:
            link = connect(service, source)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            links.append(link)
            try:
                if answers:
                    link.sendall(says)
                    link.recv(1)
                link.setblocking(False)
                if not answers:
                    link.send(says)
            except OSError:
                pass
    return links


def ask(service, source, link=None):
    """The status of an answer; None: the connection ended before."""
    try:
        with link or connect(service, source) as used:
            used.sendall(get("/nothing"))
            found = statuses(used.recv(12) + b" ")
            return found[0] if found else None
    except ConnectionError:
        return None


@pytest.mark.parametrize("loops", [1, 4])
@pytest.mark.parametrize("says", CROWDS)
def test_a_crowd_stops_nobody_but_itself(start, says, loops):
    """Of eight addresses as many connections as there may be in all: those of others are served meanwhile, and
    an idle one that was there before stays open, unless the crowd keeps the service at work."""
    service = start(http__connections=160, http__connections_per_address=40, http__idle_timeout="600s",
                    http__transfer_timeout="600s", http__loops=loops)
    with connect(service, "127.0.0.30") as before:
        before.sendall(get("/nothing"))
        assert statuses(before.recv(65536)) == [404]
        links = crowd(service, 30, *CROWDS[says])
        others = [f"127.0.0.{number}" for number in range(40, 80)] * 2
        # A slow reader is recognized after a second, a request without its body when its key has been looked up; until
        # then the service works on them, and idle ones give way. Those of the crowd that still wait to be accepted
        # come later: only a whole round without a refusal shows that all are recognized.
        if says in ("unread", "no body"):
            eventually(lambda: {ask(service, source) for source in others} == {404}, "others are served", PATIENCE)
        else:
            for source in others:
                assert ask(service, source) == 404
            before.sendall(get("/nothing"))
            assert statuses(before.recv(65536)) == [404]
        for link in links:
            link.close()


def test_who_holds_most_makes_room_for_himself(start):
    service = start(http__connections=20, http__connections_per_address=100, http__idle_timeout="600s",
                    http__transfer_timeout="600s")
    few = [connect(service, f"127.0.0.{number}") for number in range(40, 50)]
    for link in few:
        link.sendall(b"GET /nothing HTTP/1.1\r\n")
    time.sleep(1.5)  # they are heads that are late, and would give way first
    many = crowd(service, 10, get("/nothing")[:-2], 0)
    own = [connect(service, "127.0.0.2") for _ in range(60)]
    for link in few:
        link.sendall(b"Host: x\r\n\r\n")
        assert statuses(link.recv(12) + b" ") == [404]
    for link in few + many + own:
        link.close()


@pytest.mark.parametrize("loops", [1, 4])
def test_without_descriptors_it_goes_on(start, loops):
    """Idle connections give way to new ones."""
    service = start(http__loops=loops, http__connections_per_address=1000, http__idle_timeout="600s")
    assert ask(service, "127.0.0.2") == 404
    opened = len(os.listdir(f"/proc/{service.process.pid}/fd"))
    _, hard = resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (opened + 30, hard))
    links = [connect(service, "127.0.0.2") for _ in range(100)]
    eventually(lambda: service.metric("http_connections_cut_total") > 50, "room is made", PATIENCE)
    for number in range(40, 60):
        assert ask(service, f"127.0.0.{number}") == 404
    assert any(line.get("event") == "accept_failed" for line in service.log_lines())
    for link in links:
        link.close()


@pytest.mark.parametrize("rest", [b"\x00\x01\x02\r\n\r\n", b"GET / HT", b"\r\n\r\n\r\n"])
@pytest.mark.parametrize("after_request", [False, True], ids=["first", "second"])
def test_a_head_has_no_longer_than_the_transfer_timeout(start, rest, after_request):
    """Though the connection could be idle for ten minutes: it is not."""
    service = start(http__transfer_timeout=f"{TRANSFER}s", http__idle_timeout="600s")
    with connect(service) as link:
        if after_request:
            link.sendall(get("/nothing"))
            link.recv(65536)
            time.sleep(1)
        # Byte by byte, then another one as long as it goes.
        with contextlib.suppress(ConnectionError):  # libmicrohttpd from 1.0 on ends what is no head at once
            for byte in rest[:-1]:
                link.sendall(bytes([byte]))
                time.sleep(0.05)
            trickle(link, rest[-1:])


# ---- what the answers say ----

def test_too_slow_is_described(impatient, key):
    with connect(impatient) as link:
        link.sendall(request(key, "Content-Length: 100"))
        judge_bare(impatient, to_the_end(link), 408)


def test_too_many_are_described(start):
    service = start(http__connections=2, http__connections_per_address=2,
                    http__transfer_timeout="60s")
    key = service.new_channel().live.key
    busy = [connect(service, "127.0.0.2") for _ in range(2)]
    for link in busy:
        link.sendall(request(key, "Content-Length: 100\r\nExpect: 100-continue"))
        assert statuses(link.recv(4096)) == [100]
    # Both are found at once: the one that is turned away makes no room for the other.
    service.process.send_signal(signal.SIGSTOP)
    with connect(service, "127.0.0.2") as link, connect(service, "127.0.0.3") as other:
        service.process.send_signal(signal.SIGCONT)
        judge_bare(service, to_the_end(link), 429)
        judge_bare(service, to_the_end(other), 503)
    for link in busy:
        link.close()


# ---- large ----

def test_bodies_that_come_hold_no_more_memory_than_they_may(start):
    service = start(http__body_memory=4, http__transfer_timeout="60s")
    key = service.new_channel(credits=100000).live.key
    small = service.new_channel("hash_only")
    other = service.new_channel(credits=100000)
    links = [connect(service) for _ in range(60)]
    for link in links:
        link.sendall(request(key, "Content-Length: 270000") + b" " * 200000)
    eventually(lambda: service.metric("http_body_memory_refused_total") > 0, "some are refused")
    assert service.metric("http_body_bytes") <= 2 ** 20, "the share of one account"
    other.live.register({"a": "x" * 200000}).expect(201)

    def refused():  # once those that are refused have let go, and others have taken their place
        with connect(service) as link:
            link.sendall(request(key, "Content-Length: 270000\r\nExpect: 100-continue"))
            answer = link.recv(4096)
            return statuses(answer) == [503] and b"\r\nRetry-After: " in answer
    eventually(refused, "it is refused before it is sent")
    small.live.register_hash("0" * 64).expect(201)
    for link in links:
        link.close()
    eventually(lambda: service.metric("http_body_bytes") == 0, "nothing is held any more")
    with Client(service, key) as client:
        client.register({"a": "x" * 200000}).expect(201)
    eventually(lambda: service.metric("http_body_bytes") == 0, "nor by what was answered")
