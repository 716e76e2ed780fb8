"""Memory that clients make the service use is counted and bounded, also for answers that they do not read."""

import contextlib
import re
import socket

import pytest

from client import eventually
from test_limits import change, longest, number_of, with_configurations

pytestmark = pytest.mark.both_stores

PATIENCE = 60
MIB = 2 ** 20
KINDS = ("body", "arena", "answer", "check")


def held(service):
    return sum(service.metric(f"http_{kind}_bytes") for kind in KINDS)


def resident_bytes(service):
    status = open(f"/proc/{service.process.pid}/status", encoding="ascii").read()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def ask(service, key, path):
    """A connection of which nothing is read but the beginning of the answer's head."""
    link = socket.socket()
    link.settimeout(PATIENCE)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(("127.0.0.1", service.port))
    link.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    return link


def status(link):
    head = b""
    while len(head) < 12:
        head += link.recv(12 - len(head))
    return int(head[9:])


def rest(link):
    """The answer's body, once it is read after all."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += link.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)\r\ncontent-length: (\d+)", head)[1])
    while len(body) < length:
        more = link.recv(65536)
        assert more, "the answer is cut"
        body += more
    return body


@contextlib.contextmanager
def unread(service, key, path, count):
    links = [ask(service, key, path) for _ in range(count)]
    try:
        yield links
    finally:
        for link in links:
            link.close()


@pytest.fixture(name="channel_of_many")
def many_versions(start):
    service = start(http__transfer_timeout="120s", http__deadline="60s")
    channel = service.new_channel()
    change(service, with_configurations(number_of(service, channel), 2, 850, longest(), days_ago=-1))
    return service, channel


def test_long_channels_that_are_not_read_hold_a_piece_each(channel_of_many):
    """Each of them is 7 MB."""
    service, channel = channel_of_many
    whole = channel.live.get("/v1/channel").expect(200).body
    assert len(whole) > 6 * MIB
    before = resident_bytes(service)
    with unread(service, channel.live_key["key"], "/v1/channel", 20) as links:
        assert {status(link) for link in links} == {200}
        assert resident_bytes(service) - before < 40 * MIB
        assert 20 * MIB / 8 < held(service) < 20 * MIB / 2
        channel.test.get("/v1/account/balance").expect(200)
        assert rest(links[-1]) == whole
    eventually(lambda: held(service) == 0, "nothing is held any more")


def test_answers_that_one_account_does_not_read_leave_room_to_others(start):
    """Of files that are longer than what the system takes off our hands. A quarter of 16 MiB is for one account."""
    service = start(http__body_memory=16, http__transfer_timeout="120s")
    mine, other = (service.new_channel(credits=10000) for _ in range(2))
    content = bytes(range(256)) * (10 * MIB // 256)
    paths = [f"/v1/events/{channel.live.register_file(content).expect(201).json['event_id']}/content"
             for channel in (mine, other)]
    with unread(service, mine.live_key["key"], paths[0], 60) as links:
        statuses = [status(link) for link in links]
        assert set(statuses) == {200, 503}
        assert MIB < held(service) <= 4 * MIB
        assert service.metric("http_body_memory_refused_total") > 0
        assert b'"temporarily_unavailable"' in rest(links[statuses.index(503)])
        for _ in range(3):
            assert other.live.get(paths[1]).expect(200).body == content
        # What is small is not refused, its own neither.
        mine.live.register({"n": 1}).expect(201)
        mine.live.balance()
        assert rest(links[statuses.index(200)]) == content
    eventually(lambda: held(service) == 0, "nothing is held any more")
    assert mine.live.get(paths[0]).expect(200).body == content
    eventually(lambda: held(service) == 0, "nor by what was read")


def test_what_breaks_off_leaves_nothing_behind(start):
    """At any moment of a body, of a file, and of an answer."""
    service = start(http__body_memory=16)
    channel = service.new_channel(credits=10000)
    key = channel.live_key["key"]
    event = channel.live.register_file(bytes(MIB)).expect(201).json["event_id"]
    post = (f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            "Content-Length: 250000\r\n\r\n").encode()
    form = post.replace(b"application/json", b"multipart/form-data; boundary=b")
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    get = f"GET /v1/events/{event}/content HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    for sent in [post + b" " * size for size in (0, 1, 50_000, 249_999, 250_000)] + [
            form + part + b"x" * size for size in (0, 1, 100_000, 240_000)] + [get, get * 3, get[:-1]]:
        with socket.create_connection(("127.0.0.1", service.port)) as link:
            link.sendall(sent)
    eventually(lambda: held(service) == 0, "nothing is held any more")
    channel.live.register({"n": 1}).expect(201)
