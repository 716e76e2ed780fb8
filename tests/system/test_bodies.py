"""The contents of bodies do not block the polling threads: measured in their processor time, which no
other load on the machine adds to, and in memory."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import threading

import pytest

from client import Client, eventually, form, fresh

PATIENCE = 120
MIB = 1024 * 1024
RETURNS = b"\r" * (8 * MIB)
SIGNS = "zyxwvutsrqponmlkjihgfedcba9876543210"
MEMBERS = {a + b + c: 1 for a in SIGNS for b in SIGNS for c in SIGNS[:25]}  # none where it is to be
JSON = {"Content-Type": "application/json"}


def many_members(ref):
    return json.dumps({"client_ref": ref, "payload": MEMBERS}, separators=(",", ":")).encode()


@pytest.fixture(scope="module")
def service(start):
    return start(rate__live=100000)


def polling_seconds(service):
    """Processor time that the threads that poll have used."""
    ticks = 0
    for thread in pathlib.Path(f"/proc/{service.process.pid}/task").iterdir():
        with contextlib.suppress(OSError):  # one that has ended meanwhile
            if (thread / "comm").read_text() == "http-loop\n":
                fields = (thread / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident(service):
    status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def head(path, lines):
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\n" + "".join(f"{line}\r\n" for line in lines)
            + "\r\n").encode()


def connect(service):
    return socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)


def record(link):
    """An answer up to the end of its record."""
    answer = b""
    while b"}" not in answer:
        piece = link.recv(65536)
        assert piece, answer
        answer += piece
    return answer


# ---- what polling threads do ----

def test_a_file_of_line_ends_to_be_checked_keeps_nobody(service):
    before = polling_seconds(service)
    content_type, body = form(("file", RETURNS, "a.zip"))
    answer = Client(service).post("/verify", body, headers={"Content-Type": content_type,
                                                            "Accept": "application/json"})
    assert answer.expect(200).json["verification"]["valid"] is False
    assert polling_seconds(service) - before < 2


def test_a_file_of_line_ends_to_be_registered_keeps_nobody(service):
    channel = service.new_channel()
    before = polling_seconds(service)
    for _ in range(5):
        event = channel.live.register_file(RETURNS).expect(201).json
    assert polling_seconds(service) - before < 1
    assert channel.live.content(event["event_id"]).expect(200).body == RETURNS


def test_payloads_of_many_members_keep_nobody(service):
    channel = service.new_channel()
    body = many_members("many")
    assert 32000 < len(MEMBERS) and len(body) < 262144
    channel.live.post("/v1/events", body, headers=JSON).expect(201)
    before = polling_seconds(service)
    for _ in range(60):
        answer = channel.live.post("/v1/events", body, headers=JSON)
        assert answer.expect(200).headers["Idempotent-Replayed"] == "true"
    assert polling_seconds(service) - before < 0.5


def test_headers_of_many_parameters_take_no_memory(service):
    key = service.new_channel().test.key
    few = 'multipart/form-data; boundary=B' + ';a=""' * 31
    many = "multipart/form-data" + ';a=""' * 2400 + "; boundary=B"
    lines = [f"Authorization: Bearer {key}", "Content-Length: 1000", "Expect: 100-continue"]
    with connect(service) as link:
        link.sendall(head("/v1/events", [*lines, f"Content-Type: {few}"]))
        assert link.recv(4096).startswith(b"HTTP/1.1 100 ")
    before = resident(service)
    links = [connect(service) for _ in range(50)]
    for link in links:
        link.sendall(head("/v1/events", [*lines, f"Content-Type: {many}"]))
    answers = [link.recv(4096) for link in links]  # all have been checked
    assert resident(service) - before < 100 * MIB
    assert all(answer.startswith(b"HTTP/1.1 400 ") for answer in answers)
    assert b"more than 32 parameters" in answers[0]
    for link in links:
        link.close()


# ---- what comes in parts ----

def test_a_form_that_is_broken_from_the_beginning_need_not_come_in_full(service):
    key = service.new_channel().live.key
    wrong = b'--B\r\nContent-Disposition: form-data; name="wrong"\r\n\r\n' + b"x" * 40000
    for path, length in (("/v1/events", 9000000), ("/verify", 9000000)):
        with connect(service) as link:
            link.sendall(head(path, [f"Authorization: Bearer {key}", f"Content-Length: {length}",
                                     "Content-Type: multipart/form-data; boundary=B",
                                     "Accept: application/json"]) + wrong * 3)
            answer = record(link)
            assert answer.startswith(b"HTTP/1.1 400 ") and b"'wrong'" in answer


@pytest.mark.parametrize("size", [16000, 16384, 17000, 262144, 300000, 1000000])
def test_where_a_form_is_cut_does_not_matter(service, size):
    """Sent whole, with its length, and in chunks: the same file."""
    channel = service.new_channel()
    content = (b"\r\n--boundary-of-the-test\r\r\n-" * (size // 28 + 1))[:size]
    ref = fresh()
    content_type, body = form(("client_ref", ref), ("file", content, "a"))
    headers = {"Content-Type": content_type}
    event = channel.live.post("/v1/events", body, headers=headers).expect(201).json

    with connect(service) as link:
        link.sendall(head("/v1/events", [f"Authorization: Bearer {channel.live.key}",
                                         f"Content-Type: {content_type}",
                                         "Transfer-Encoding: chunked", "Connection: close"]))
        for at in range(0, len(body), 7001):
            chunk = body[at:at + 7001]
            link.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        link.sendall(b"0\r\n\r\n")
        answer = b"".join(iter(lambda: link.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    again = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert again["event_id"] == event["event_id"]
    assert channel.live.content(event["event_id"]).expect(200).body == content


# ---- clients that go ----

def test_bodies_that_break_off_leave_nothing(start):
    service = start(http__transfer_timeout="3s", http__idle_timeout="3s")
    channel = service.new_channel()
    kinds = [("application/json", many_members("gone"))]
    kinds.append(form(("client_ref", "gone"), ("file", b"x" * 700000, "a")))
    content_type, body = form(("file", b"y" * 700000, "a"))
    kinds.append((content_type, body))
    for number, (content_type, body) in enumerate(kinds):
        path = "/verify" if number == 2 else "/v1/events"
        for part in range(1, 16):
            with connect(service) as link:
                link.sendall(head(path, [f"Authorization: Bearer {channel.live.key}",
                                         f"Content-Type: {content_type}",
                                         f"Content-Length: {len(body)}"])
                             + body[:len(body) * part // 16])
    eventually(lambda: service.metric("http_body_bytes") == 0, "nothing is held any more")
    assert channel.live.get("/v1/events").expect(200).json["data"] == []
    channel.live.post("/v1/events", many_members("gone"), headers=JSON).expect(201)
    content_type, body = form(("file", b"y" * 700000, "a"))
    eventually(lambda: Client(service).post("/verify", body, headers={
        "Content-Type": content_type, "Accept": "application/json"}).status == 200, "its turn is given back")


def incoming(service):
    """Bytes of content that is not finished."""
    total = 0
    for path in (service.data / "content" / ".incoming").iterdir():
        with contextlib.suppress(OSError):  # one that is finished meanwhile
            total += path.stat().st_size
    return total


def status_of(link):
    """Of an answer that has come; 0: none has."""
    link.settimeout(0.05)
    try:
        return int(link.recv(4096)[9:12] or 0)
    except TimeoutError:
        return 0


def test_uploads_that_do_not_end_hold_no_more_than_their_share(start):
    service = start(http__upload_space=20)  # one account: room for one file
    channel, other = service.new_channel(), service.new_channel()
    content_type, body = form(("client_ref", "held"), ("file", b"x" * (9 * MIB), "a"))
    lines = [f"Authorization: Bearer {channel.live.key}", f"Content-Type: {content_type}",
             f"Content-Length: {len(body)}"]
    most, open_links, statuses = 0, [], []
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            link = stack.enter_context(connect(service))
            with contextlib.suppress(OSError):  # it is refused before all is sent
                link.sendall(head("/v1/events", lines) + body[:4 * MIB])
            most = max(most, incoming(service))
            open_links.append(link)
        eventually(lambda: service.metric("http_upload_space_refused_total") > 0, "some are refused")
        eventually(lambda: service.metric("http_upload_bytes") > 6 * MIB, "others are not")
        most = max(most, incoming(service), service.metric("http_upload_bytes"))
        assert most <= 10 * MIB
        for link in open_links:
            with contextlib.suppress(ConnectionError):
                statuses.append(status_of(link))
        assert 503 in statuses and set(statuses) <= {0, 503}
        other.live.register_file(b"y" * (9 * MIB)).expect(201)
        channel.live.register({"small": 1}).expect(201)
        answer = channel.live.register_file(b"z" * (9 * MIB)).expect(503)
        assert answer.headers["Retry-After"]
    eventually(lambda: service.metric("http_upload_bytes") == 0, "all is given back")
    assert incoming(service) == 0
    channel.live.register_file(b"z" * (9 * MIB)).expect(201)


def test_content_that_is_refused_at_the_end_gives_its_space_back(start):
    service = start(http__upload_space=20)
    channel = service.new_channel()
    channel.live.register_file(b"x" * (5 * MIB), "one").expect(201)
    channel.live.register({"text": "x" * 100000}, "two").expect(201)
    for _ in range(4):
        channel.live.register_file(b"y" * (5 * MIB), "one").expect(409)
        channel.live.register_file(b"x" * (5 * MIB), "one").expect(200)
        channel.live.register({"text": "y" * 100000}, "two").expect(409)
        channel.live.register({"text": "x" * 100000}, "two").expect(200)
        eventually(lambda: service.metric("http_upload_bytes") == 0, "all is given back")
    assert service.metric("http_upload_space_refused_total") == 0
    objects = (service.data / "content" / "event").rglob("*")
    assert len([path for path in objects if path.is_file()]) == 2


def test_files_that_give_way_while_they_are_read_are_answered(start):
    """Requests at the same time need three times the capacity: each is checked, or asked to be sent
    again, and what it held is given back."""
    service = start(service__trusted_proxies="127.0.0.1/32", http__body_memory=16)
    content_type, body = form(("file", bytes(2 * MIB), "a"))
    statuses = []

    def hand_in(number):
        for _ in range(4):
            answer = Client(service).post("/verify", body, headers={
                "Content-Type": content_type, "Accept": "application/json",
                "X-Forwarded-For": f"192.0.2.{number}"})
            statuses.append(answer.status)
    threads = [threading.Thread(target=hand_in, args=(number,)) for number in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 48 and set(statuses) <= {200, 429, 503} and 200 in statuses, statuses
    eventually(lambda: service.metric("http_body_bytes") == 0, "nothing is held any more")
    answer = Client(service).post("/verify", body, headers={
        "Content-Type": content_type, "Accept": "application/json", "X-Forwarded-For": "192.0.2.99"})
    assert answer.status == 200


def test_a_stop_among_long_bodies_loses_none_that_was_acknowledged(start):
    service = start(rate__live=100000)
    channel = service.new_channel(credits=100000)
    acknowledged, over = [], threading.Event()

    def register(number):
        with Client(service, channel.live.key) as client:
            while not over.is_set():
                ref = fresh()
                try:
                    answer = client.register_file(RETURNS[:400000], ref) if number % 2 \
                        else client.post("/v1/events", many_members(ref), headers=JSON)
                except (OSError, http.client.HTTPException):
                    return
                if answer.status == 201:
                    acknowledged.append(ref)
                else:
                    assert answer.status == 503, answer
                    return
    threads = [threading.Thread(target=register, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(acknowledged) > 20, "they are taken")
    service.stop()
    over.set()
    for thread in threads:
        thread.join()
    service.start()
    for ref in acknowledged:
        found = channel.live.get(f"/v1/events?client_ref={ref}").expect(200).json["data"]
        assert len(found) == 1
