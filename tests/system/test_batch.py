"""POST /v1/events/batch: each declaration has the outcome that it would have had alone, whatever the
others are and whatever breaks."""

import concurrent.futures
import hashlib
import json
import os
import random
import signal
import socket
import subprocess

import pytest

from client import BINARY, PATIENCE, Client, eventually, fresh, read_answer

pytestmark = pytest.mark.both_stores

BATCH = "/v1/events/batch"
NDJSON = "application/x-ndjson"
ITEMS_MAX = 1000
MIB = 1024 * 1024
BYTES_MAX = 8 * MIB
INLINE_MAX = 16384
REGISTERED = {"registered", "unpaid", "test"}


def declared(ref, **payload):
    return {"client_ref": ref, "payload": payload}


def digest_of(text, algorithm="sha256"):
    return hashlib.new(algorithm, text.encode()).hexdigest()


def statuses(lines):
    return [line["http_status"] for line in lines]


def sequences(client):
    return [event["sequence"] for event in client.walk("/v1/events", 500)]


def event_of(line):
    return {name: value for name, value in line.items() if name not in ("http_status", "receipt")}


# ---- both forms ----

@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("mode", ["live", "test"])
def test_each_line_is_the_receipt_of_its_declaration(service, array, mode):
    client = getattr(service.new_channel(), mode)
    items = [declared(f"r{n}", n=n) | ({"occurred_at": "2026-01-31T09:30:00+01:00"} if n % 2 else {}) for n in range(7)]
    lines = client.register_batch(items, array)
    assert statuses(lines) == [201] * 7
    assert [line["client_ref"] for line in lines] == [item["client_ref"] for item in items]
    assert [line["sequence"] for line in lines] == list(range(1, 8))
    for item, line in zip(items, lines):
        event = client.event(line["event_id"])
        del event["proof"]
        assert {**event_of(line), "timestamp": 0} == {**event, "timestamp": 0}
        content = client.content(line["event_id"]).expect(200).body
        assert json.loads(content) == item["payload"]
        assert hashlib.sha256(content).hexdigest() == line["hash"]
        assert line["occurred_at"] == ("2026-01-31T08:30:00.000000Z" if "occurred_at" in item else None)


def test_digests_of_both_algorithms_and_cases(service):
    client = service.new_channel("hash_only").live
    items = [{"client_ref": "a", "hash": digest_of("a"), "hash_alg": "sha-256"},
             {"client_ref": "b", "hash": digest_of("b", "sha512").upper(), "hash_alg": "sha-512"},
             declared("c"), {"client_ref": "d", "hash": digest_of("a"), "hash_alg": "sha-512"}]
    lines = client.register_batch(items)
    assert statuses(lines) == [201, 201, 400, 400]
    assert [line["hash"] for line in lines[:2]] == [digest_of("a"), digest_of("b", "sha512")]
    assert "hash_only" in lines[2]["message"] and "'hash'" in lines[3]["message"]


def test_empty_lines_line_ends_and_a_last_line_without_an_end(service):
    client = service.new_channel().live
    body = (b'\r\n\n{"client_ref": "a", "payload": {}}\r\n   \n\t{"client_ref": "b", "payload": {}}  \n\n'
            b'{"client_ref": "c", "payload": {}}')
    answer = client.post(BATCH, body, headers={"Content-Type": NDJSON + "; charset=utf-8"}).expect(200)
    assert [json.loads(line)["client_ref"] for line in answer.body.splitlines()] == ["a", "b", "c"]
    assert answer.body.endswith(b"}\n")


@pytest.mark.parametrize("array", [False, True])
def test_an_invalid_item_concerns_itself_alone(service, array):
    client = service.new_channel().live
    items = [declared("a"), b'{"client_ref": "b", "payload": {"x": 1, "x": 2}}', declared("c"), b"3",
             b'{"client_ref": "d"}', declared("", x=1), b'{"client_ref": "e", "payload": {}, "more": 1}', declared("f"),
             declared("g", x="y" * 262144), b'{"client_ref": "h", "payload": {"x": "' + b"z" * 300000 + b'"}}',
             declared("i"),
             {"client_ref": "j", "hash": digest_of("j"), "hash_alg": "sha-256"}, b"\xff", declared("k")]
    lines = client.register_batch(items, array)
    assert statuses(lines) == [201, 400, 201, 400, 400, 400, 400, 201, 413, 413, 201, 400, 400, 201]
    assert [line["sequence"] for line in lines if line["http_status"] == 201] == [1, 2, 3, 4, 5]
    assert "'payload'" in lines[4]["message"] and "'more'" in lines[6]["message"] and "262144" in lines[8]["message"]


def test_messages_are_in_the_language_of_the_request(service):
    client = service.new_channel().live
    (line,) = client.register_batch([declared("")], language="es")
    assert "entre 1 y 255" in line["message"] or "1 a 255" in line["message"], line


# ---- refused as a whole ----

def refused(client, body, content_type=NDJSON, status=400, code="validation_error", **headers):
    answer = client.post(BATCH, body, headers={"Content-Type": content_type, **headers}).expect(status, code)
    assert sequences(client) == []
    return answer.message


def test_what_is_malformed_as_a_whole_registers_nothing(service):
    client = service.new_channel().live
    one = json.dumps(declared("a")).encode()
    for text in (b"[" + one, b"[" + one + b",]", b"[," + one + b"]", b"[" + one + b"] 1", one, b"[" + one + b"}", b"{}",
                 b"null"):
        assert "JSON array" in refused(client, text, "application/json"), text
    for text, content_type in ((b"", NDJSON), (b" \n\r\n", NDJSON), (b"[]", "application/json"),
                               (b"[ ]", "application/json")):
        assert "no declaration" in refused(client, text, content_type)
    assert "JSON array" in refused(client, b"", "application/json")
    assert "application/x-ndjson, application/json" in refused(client, one, "text/plain")
    assert "Content-Encoding" in refused(client, one, NDJSON, **{"Content-Encoding": "gzip"})
    answer = client.get(BATCH).expect(405)
    assert answer.headers["Allow"] == "POST"
    client.post(BATCH + "?x=1", one, headers={"Content-Type": NDJSON}).expect(400, "validation_error")


@pytest.mark.parametrize("array", [False, True])
def test_a_batch_has_at_most_1000_declarations(service, array):
    client = service.new_channel(credits=2000).live
    items = [declared(f"r{n}") for n in range(ITEMS_MAX + 1)]
    answer = client.send_batch(items, array).expect(400, "validation_error")
    assert "1000" in answer.message and sequences(client) == []
    lines = client.register_batch(items[:ITEMS_MAX], array)
    assert set(statuses(lines)) == {201} and sequences(client) == list(range(1, ITEMS_MAX + 1))


def large_items(total):
    """Declarations as lines that have the given number of bytes in total."""
    text = b"\n".join(json.dumps(declared(f"r{n}", x="y" * 200000)).encode() for n in range(total // 200100)) + b"\n"
    last = b'{"client_ref": "last", "payload": {"x": "'
    return text + last + b"y" * (total - len(text) - len(last) - 3) + b'"}}'


def test_a_batch_has_at_most_8_mib(service):
    client = service.new_channel().live
    body = large_items(BYTES_MAX)
    assert len(body) == BYTES_MAX
    answer = client.post(BATCH, body, headers={"Content-Type": NDJSON}).expect(200)
    assert {json.loads(line)["http_status"] for line in answer.body.splitlines()} == {201}
    other = service.new_channel().live
    refused(other, body + b"\n", NDJSON, 413, "payload_too_large")
    pieces = [body[at:at + 100000] for at in range(0, len(body), 100000)] + [b"\n"]
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as link:
        link.sendall(f"POST {BATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {other.key}\r\n"
                     f"Content-Type: {NDJSON}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        try:
            for piece in pieces:
                link.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            link.sendall(b"0\r\n\r\n")
        except ConnectionError:
            pass  # it was refused before all had been sent
        assert read_answer(link.makefile("rb"), "POST", BATCH).status == 413
    assert sequences(other) == []


def test_keys_and_states(service):
    channel = service.new_channel()
    one = json.dumps(declared("a")).encode()
    Client(service).post(BATCH, one, headers={"Content-Type": NDJSON}).expect(401, "invalid_key")
    service.admin("channel", "suspend", channel.id)
    eventually(lambda: channel.live.send_batch([declared("a")]).status == 403, "the channel is suspended")
    service.admin("channel", "resume", channel.id)
    eventually(lambda: channel.live.send_batch([declared("a")]).status == 200, "the channel is resumed")


# ---- as if each had been sent ----

def same(service, prepare, items, mode="live"):
    """Sends the items in one batch and, in another account, one by one; returns the outcomes, which are the same."""
    outcomes = []
    for together in (True, False):
        channel = prepare(service)
        client = getattr(channel, mode)
        if together:
            outcomes.append(client.register_batch(items))
            continue
        alone = []
        for item in items:
            body = item if isinstance(item, bytes) else json.dumps(item).encode()
            answer = client.post("/v1/events", body, headers={"Content-Type": "application/json"})
            alone.append(answer.json | {"http_status": answer.status})
        outcomes.append(alone)
    for batch, alone in zip(*outcomes):
        for name in ("http_status", "sequence", "client_ref", "status", "code", "hash", "occurred_at",
                     "config_version"):
            if name != "client_ref" or alone["http_status"] < 300:
                assert batch.get(name) == alone.get(name), (name, batch, alone)
    return outcomes[0]


def random_items(generator, count):
    """Declarations of which many repeat or contradict earlier ones, or are invalid."""
    for _ in range(count):
        ref, n = f"r{generator.randrange(count)}", generator.randrange(3)
        item = declared(ref, n=n)
        kind = generator.randrange(12)
        if kind == 0:
            item["occurred_at"] = generator.choice(["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "yesterday"])
        elif kind == 1:
            item = b'{"client_ref": "' + ref.encode() + b'", "payload": {"n": 1, "n": 1}}'
        elif kind == 2:
            del item["payload"]
        elif kind == 3:
            item["payload"]["text"] = "x" * generator.choice([10, INLINE_MAX - 20, INLINE_MAX + 20, 70000])
        yield item


@pytest.mark.parametrize("seed", range(6))
def test_outcomes_are_those_of_single_requests(service, seed):
    generator = random.Random(seed)
    credits, unpaid = generator.randrange(10, 60), generator.randrange(0, 20)
    limit = generator.choice([None, generator.randrange(1, 60)])

    def prepare(service):
        channel = service.new_channel(credits=credits, unpaid_limit=unpaid)
        if limit:
            service.admin("limit", "create", "--channel", channel.id, "--period", "month", "--max", str(limit),
                          "--action", "block")
        return channel

    same(service, prepare, list(random_items(generator, 120)))


def test_credits_end_within_a_batch(service):
    channel = service.new_channel(credits=2, unpaid_limit=3)
    items = [declared(f"r{n}") for n in range(8)]
    lines = channel.live.register_batch(items)
    assert [line.get("status") or line["code"] for line in lines] == \
        ["registered"] * 2 + ["unpaid"] * 3 + ["unpaid_limit_exceeded"] * 3
    assert statuses(lines)[5:] == [402] * 3 and lines[5]["client_ref"] == "r5"
    balance = channel.live.balance()
    assert (balance["balance"], balance["unpaid_events"]) == (0, 3)
    again = channel.live.register_batch(items)
    assert statuses(again) == [200] * 5 + [402] * 3
    assert [line["sequence"] for line in again[:5]] == [1, 2, 3, 4, 5]
    types = [notice["type"] for notice in service.admin("notice", "list", "--account", channel.account_id)["data"]]
    assert sorted(types) == ["balance.exhausted", "events.unpaid_limit_reached"]


def test_forced_scenarios(service):
    client = service.new_channel().test
    items = [declared("a"), b"{", declared("b")]
    lines = client.register_batch(items, scenario="unpaid_limit")
    assert statuses(lines) == [402, 400, 402] and lines[0]["client_ref"] == "a"
    assert sequences(client) == []
    lines = client.register_batch(items, scenario="client_ref_conflict")
    assert statuses(lines) == [409, 400, 409] and sequences(client) == []
    assert statuses(client.register_batch(items, scenario="limit_blocked")) == [422, 400, 422]
    client.send_batch(items, scenario="rate_limited").expect(429, "rate_limited")
    client.send_batch(items, scenario="temporarily_unavailable").expect(503, "temporarily_unavailable")
    client.send_batch(items, scenario="suspended").expect(403, "suspended")
    client.send_batch(items, scenario="account_disabled").expect(403, "account_disabled")
    client.send_batch(items, scenario="other").expect(400, "validation_error")
    assert statuses(client.register_batch(items, scenario="unpaid")) == [201, 400, 201]


def test_the_test_quota_ends_within_a_batch(start):
    service = start()
    client = service.new_channel().test
    sent = [client.register_batch([declared(f"r{n}") for n in range(at, at + ITEMS_MAX)])
            for at in range(0, 11000, ITEMS_MAX)]
    lines = [line for batch in sent for line in batch]
    assert statuses(lines) == [201] * 10000 + [429] * 1000
    assert {line["code"] for line in lines[10000:]} == {"test_quota_exceeded"}
    assert 1 <= lines[-1]["retry_after"] <= 86401


# ---- rate ----

def numbers(answer):
    return tuple(int(answer.headers[f"RateLimit-{name}"]) for name in ("Limit", "Remaining"))


def test_twenty_declarations_count_as_one_request(start):
    service = start(rate__live=1, rate__test=1)
    client = service.new_channel(credits=10000).live
    capacity = 4
    limit, remaining = numbers(client.send_batch([declared(f"a{n}") for n in range(20)]).expect(200))
    assert limit == capacity and remaining >= capacity - 1
    assert numbers(client.send_batch([declared(f"b{n}") for n in range(21)]).expect(200))[1] <= capacity - 1
    answer = client.send_batch([declared(f"c{n}") for n in range(ITEMS_MAX)]).expect(200)
    assert numbers(answer) == (capacity, 0)
    # 53 tokens of 4 were taken: the debt takes most of a minute at one a second, however fast this test is.
    answer = client.send_batch([declared("d")]).expect(429, "rate_limited")
    assert 20 < int(answer.headers["Retry-After"]) <= 61
    client.get("/v1/channel").expect(429, "rate_limited")
    test = service.new_channel().test  # the smallest bucket takes a whole batch, too
    assert set(statuses(test.register_batch([declared(f"r{n}") for n in range(ITEMS_MAX)]))) == {201}


@pytest.mark.parametrize("last", [b"]", b""])
def test_large_declarations_and_refused_batches_count_too(start, last):
    service = start(rate__live=1)
    client = service.new_channel().live
    items = [json.dumps(declared(f"r{n}", text="x" * 17000)).encode() for n in range(30)]
    answer = client.post(BATCH, b"[" + b",".join(items) + last, headers={"Content-Type": "application/json"})
    assert answer.status == (200 if last else 400)
    answer = client.send_batch([declared("d")]).expect(429, "rate_limited")
    assert int(answer.headers["Retry-After"]) > 10  # 26 tokens of 30 are owed, at one a second


def test_declarations_that_are_large_in_canonical_form_count_as_such(start):
    service = start(rate__live=1)
    client = service.new_channel().live
    numbers = b",".join([b"1e20"] * 3000)  # each has 21 digits in canonical form
    items = [b'{"client_ref": "r%d", "payload": {"n": [%s]}}' % (n, numbers) for n in range(30)]
    assert len(items[0]) < INLINE_MAX
    assert set(statuses(client.register_batch(items))) == {201}
    answer = client.send_batch([declared("d")]).expect(429, "rate_limited")
    assert int(answer.headers["Retry-After"]) > 10


def test_an_abandoned_body_counts_too(start):
    service = start(rate__live=1)
    client = service.new_channel().live
    line = json.dumps(declared("r", text="x" * 17000)).encode() + b"\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as link:
        link.sendall(f"POST {BATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.key}\r\n"
                     f"Content-Type: {NDJSON}\r\nContent-Length: {BYTES_MAX}\r\n\r\n".encode() + line * 60)
        eventually(lambda: int(client.get("/v1/channel").headers.get("Retry-After", 0)) > 10, "what was read is charged")


def test_the_operator_may_count_each_declaration(start):
    service = start(rate__live=10, rate__batch=1)
    client = service.new_channel().live
    assert numbers(client.send_batch([declared(f"r{n}") for n in range(15)]).expect(200))[1] <= 26


# ---- what breaks ----

def request_of(client, items):
    body = b"\n".join(json.dumps(item).encode() for item in items)
    return (f"POST {BATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.key}\r\nContent-Type: {NDJSON}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def test_a_batch_whose_answer_was_lost_is_sent_again(service):
    channel = service.new_channel()
    items = [declared(f"r{n}", text="x" * (20000 if n % 50 == 0 else 10)) for n in range(300)]
    request = request_of(channel.live, items)
    for sent in (100, len(request) // 2, len(request) - 1, len(request)):
        with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as link:
            link.sendall(request[:sent])
    lines = channel.live.register_batch(items)
    assert set(statuses(lines)) <= {200, 201}
    assert [line["sequence"] for line in lines] == list(range(1, 301))
    assert sequences(channel.live) == list(range(1, 301))
    assert channel.live.balance()["balance"] == 1000 - 300


@pytest.mark.parametrize("seed", range(3))
def test_batches_of_a_service_that_is_killed(start, seed):
    service = start()
    generator = random.Random(seed)
    channel = service.new_channel(credits=100000)
    batches = [[declared(f"r{at}-{n}", n=n) for n in range(generator.choice([3, 100, 1000]))] for at in range(12)]

    def send(items):
        answered = []
        try:
            with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as link:
                link.sendall(request_of(channel.live, items))
                answer = read_answer(link.makefile("rb"), "POST", BATCH)
                answered = [json.loads(line) for line in answer.body.splitlines()] if answer.status == 200 else []
        except (OSError, IndexError, ValueError, KeyError, TypeError):
            pass
        return answered

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(send, items) for items in batches]
        eventually(lambda: any(one.done() for one in running), "the first batch was answered")
        service.process.send_signal(signal.SIGKILL)
        first = [one.result() for one in running]
    service.process.wait()
    service.start()
    for items, before in zip(batches, first):
        again = channel.live.register_batch(items)
        for line in before:
            found = next(other for other in again if other["client_ref"] == line["client_ref"])
            assert line["http_status"] == 201 and found["http_status"] == 200
            assert {**event_of(found), "timestamp": 0} == {**event_of(line), "timestamp": 0}
    count = sum(map(len, batches))
    assert sequences(channel.live) == list(range(1, count + 1))
    assert channel.live.balance()["balance"] == 100000 - count
    assert service.admin("store", "check")["valid"]


def test_large_declarations_leave_no_content_without_an_event(start):
    service = start()
    channel = service.new_channel(credits=3, unpaid_limit=0)
    directory = service.data / "content"

    def kept():
        return sum(len(files) for _, _, files in os.walk(directory))

    before = kept()
    items = [declared(f"r{n}", text="x" * 30000) for n in range(5)]
    assert statuses(channel.live.register_batch(items)) == [201, 201, 201, 402, 402]
    eventually(lambda: kept() == before + 3, "content without an event is deleted")
    assert statuses(channel.live.register_batch(items)) == [200, 200, 200, 402, 402]
    other = [declared(item["client_ref"], text="y" * 30000) for item in items[:2]]
    assert statuses(channel.live.register_batch(other)) == [409, 409]
    eventually(lambda: kept() == before + 3, "content without an event is deleted")
    for item, line in zip(items, channel.live.register_batch(items[:3])):
        assert json.loads(channel.live.content(line["event_id"]).expect(200).body) == item["payload"]


# ---- one commit, many batches ----

def test_a_batch_is_one_commit(start):
    service = start(seal__interval="1h")
    client = service.new_channel(credits=5000).live
    client.register().expect(201)
    before = service.metric("batches_total")
    assert set(statuses(client.register_batch([declared(f"r{n}") for n in range(ITEMS_MAX)]))) == {201}
    assert service.metric("batches_total") == before + 1


def test_many_batches_at_once_of_several_channels(service):
    channels = [service.new_channel(credits=10000, unpaid_limit=0) for _ in range(3)]
    work = [(channel, at) for at in range(6) for channel in channels]

    def send(one):
        channel, at = one
        with Client(service, channel.live.key) as client:
            return [client.register_batch([declared(f"r{at}-{n}") for n in range(400)]) for _ in range(2)]

    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        answers = list(pool.map(send, work))
    for first, again in answers:
        assert set(statuses(first)) == {201} and set(statuses(again)) == {200}
        assert [line["sequence"] for line in first] == [line["sequence"] for line in again]
        assert sorted(line["sequence"] for line in first) == [line["sequence"] for line in first]
    for channel in channels:
        assert sequences(channel.live) == list(range(1, 2401))


def held(service):
    return sum(service.metric(f"http_{kind}_bytes") for kind in ("body", "arena", "answer", "check"))


def test_unread_answers_are_bounded(start):
    service = start(http__body_memory=64)
    channel = service.new_channel(credits=10000000)
    other = service.new_channel()
    links = []
    try:
        for at in range(24):
            link = socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.sendall(request_of(channel.live, [declared(f"r{at}-{n}") for n in range(ITEMS_MAX)]))
            links.append(link)
            other.live.register().expect(201)
        assert held(service) <= 64 * MIB
        found = {link.makefile("rb").readline().split()[1] for link in links}
        assert found <= {b"200", b"503"} and b"200" in found
    finally:
        for link in links:
            link.close()
    eventually(lambda: held(service) == 0, "all memory was given back")


def test_a_full_queue_takes_the_first_ones_and_refuses_the_rest(start):
    """Again and again, until all are registered; what the service took meanwhile is what it answers."""
    service = start(environment={"TORTURE_SIZES": "queue=64"})
    client = service.new_channel(credits=5000).live
    items, registered = [declared(f"r{n}", n=n) for n in range(ITEMS_MAX)], {}
    left = items
    for _ in range(200):
        answer = client.send_batch(left)
        lines = [json.loads(line) for line in answer.body.splitlines()] if answer.status == 200 else []
        assert {line["http_status"] for line in lines} <= {200, 201, 503}
        for item, line in zip(left, lines):
            if line["http_status"] < 300:
                assert line["client_ref"] == item["client_ref"] and line["hash"] == digest_of(
                    json.dumps(item["payload"], separators=(",", ":")))
                registered[item["client_ref"]] = line
        left = [item for item in left if item["client_ref"] not in registered]
        if not left:
            break
    assert not left
    for event in client.walk("/v1/events", 500):
        line = event_of(registered[event["client_ref"]])
        assert {**event, "timestamp": 0} == {**line, "timestamp": 0}
    assert sequences(client) == list(range(1, ITEMS_MAX + 1))


# ---- evidence ----

def test_the_answer_is_a_file_of_receipts(start, tmp_path):
    service = start(seal__interval="1s")
    client = service.new_channel().live
    lines = client.send_batch([declared(f"r{n}", n=n) for n in range(20)]).expect(200).body
    receipts = tmp_path / "receipts.ndjson"
    receipts.write_bytes(lines)
    done = client.certified(seq_from=1, seq_to=20)
    archive = tmp_path / "evidence.zip"
    archive.write_bytes(client.get(done["evidence_url"].split(str(service.port), 1)[1]).expect(200).body)
    done = subprocess.run([BINARY, "verify", archive, "--trust", service.data / "trust.pem", "--receipt", receipts,
                           "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["checked"]["receipts"] == 20


def test_a_refused_batch_costs_no_time_of_others(service):
    """The first lines of a long body are read before the rest arrives."""
    client = service.new_channel().live
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as link:
        link.sendall(f"POST {BATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.key}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {4 * 1024 * 1024}\r\n\r\n".encode() + b"nothing " * 4000)
        assert read_answer(link.makefile("rb"), "POST", BATCH).status == 400
    assert sequences(client) == [] and client.register_batch([declared(fresh())])[0]["status"] in REGISTERED
