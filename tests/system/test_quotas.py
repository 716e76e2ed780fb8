"""Daily limits of test keys. The day ends by moving what was used to an earlier one."""

import datetime
import hashlib
import socket
import threading

import pytest

from client import eventually, read_answer

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("one_day")]
PER_DAY = 10000


def seconds_to_midnight():
    now = datetime.datetime.now(datetime.timezone.utc)
    midnight = (now + datetime.timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight - now).total_seconds()


def check_quota_refusal(answer):
    answer.expect(429, "test_quota_exceeded")
    retry_after = int(answer.headers["Retry-After"])
    assert abs(retry_after - seconds_to_midnight()) < 30 or retry_after > 86370


def new_day(service):
    """Stops, moves all use of test quotas to an earlier day, and starts."""
    assert service.stop() == 0
    service.store.change("UPDATE test_usage SET day = '2001-01-01'")
    service.start()


def register_many(channel, count, workers=16):
    """Registers on pipelined connections, so that 10,000 take seconds."""
    def send(worker):
        mine = range(worker, count, workers)
        head = (f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                f"{channel.test.key}\r\nContent-Type: application/json\r\n")
        with socket.create_connection(("127.0.0.1", channel.service.port), timeout=60) as link:
            answers = link.makefile("rb")
            for start in range(0, len(mine), 50):
                some = mine[start:start + 50]
                text = ""
                for n in some:
                    body = f'{{"client_ref":"many-{n}","payload":{{}}}}'
                    text += f"{head}Content-Length: {len(body)}\r\n\r\n{body}"
                link.sendall(text.encode())
                statuses.extend([read_answer(answers, "POST", "/v1/events").status for _ in some])
    statuses = []
    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def test_10000_test_events_a_day_and_10000_in_a_test_certification(start):
    service = start()
    channel = service.new_channel()
    statuses = register_many(channel, PER_DAY - 1)
    assert statuses == [201] * (PER_DAY - 1)
    last = channel.test.register({}, "last").expect(201).json
    assert last["sequence"] == PER_DAY
    check_quota_refusal(channel.test.register({}, "too many"))

    # Others of the account are refused too, other accounts and the live chain are not.
    sister = service.new_channel("hash_only", account_id=channel.account_id)
    check_quota_refusal(sister.test.register_hash("0" * 64))
    channel.live.register().expect(201)
    service.new_channel().test.register().expect(201)
    # A replay and a conflict are answered as ever, a refusal kept no sequence number.
    again = channel.test.register({}, "last").expect(200)
    assert again.headers["Idempotent-Replayed"] == "true"
    channel.test.register({"other": 1}, "last").expect(409, "client_ref_conflict")
    spanish = channel.test.register({}, "too many", language="es")
    assert spanish.message != channel.test.register({}, "too many").message

    new_day(service)
    event = channel.test.register({}, "too many").expect(201).json
    assert event["sequence"] == PER_DAY + 1
    channel.test.certify(seq_from=1, seq_to=PER_DAY + 1).expect(400, "validation_error")
    channel.test.certify(start="2001-01-01T00:00:00Z", to="2999-01-01T00:00:00Z") \
        .expect(400, "validation_error")
    issued = channel.test.certified(seq_from=2, seq_to=PER_DAY + 1)
    assert (issued["status"], issued["event_count"]) == ("completed", PER_DAY)


def test_100_mb_of_declared_test_content_a_day(start):
    service = start()
    channel = service.new_channel()
    whole = 10 ** 8
    for n in range(9):
        content = bytes([n]) * 10485760
        assert channel.test.register_file(content).expect(201).json["status"] == "test"
        whole -= len(content)
    rest = b"r" * whole
    check_quota_refusal(channel.test.register_file(rest + b"x", "over"))
    used = service.admin("account", "show", channel.account_id)["test_bytes_today"]
    assert used == 10 ** 8 - whole, "what was refused does not count"
    channel.test.register_file(rest, "exactly").expect(201)
    check_quota_refusal(channel.test.register({}, "two bytes more"))
    channel.test.register_file(rest, "exactly").expect(200)
    # A digest declares no content.
    sister = service.new_channel("hash_only", account_id=channel.account_id)
    sister.test.register_hash(hashlib.sha256(rest).hexdigest()).expect(201)
    channel.live.register().expect(201)
    new_day(service)
    channel.test.register({}, "two bytes more").expect(201)


def test_20_test_certifications_a_day(start):
    service = start()
    channel = service.new_channel("hash_only")
    channel.test.register_hash("0" * 64).expect(201)
    for _ in range(20):
        channel.test.certify(seq_from=1, seq_to=1).expect(202)
    check_quota_refusal(channel.test.certify(seq_from=1, seq_to=1))
    sister = service.new_channel("hash_only", account_id=channel.account_id)
    sister.test.register_hash("0" * 64).expect(201)
    check_quota_refusal(sister.test.certify(seq_from=1, seq_to=1))
    channel.test.certify(seq_from=1, seq_to=2).expect(400, "validation_error")
    channel.live.register_hash("0" * 64).expect(201)
    channel.live.certify(seq_from=1, seq_to=1).expect(202)
    assert len(channel.test.walk("/v1/certifications", 500)) == 20
    new_day(service)
    channel.test.certify(seq_from=1, seq_to=1).expect(202)

    def over():
        items = channel.test.walk("/v1/certifications", 500)
        return items if all(item["status"] != "processing" for item in items) else None
    items = eventually(over, "all 21 are issued, those before the restart too", patience=600)
    assert {item["status"] for item in items} == {"completed"} and len(items) == 21
    assert len({item["verification_code"] for item in items}) == 21


def test_live_keys_have_no_such_quotas(start):
    service = start()
    channel = service.new_channel(credits=PER_DAY * 2)
    channel.test.register().expect(201)
    assert service.stop() == 0
    service.store.change(f"UPDATE test_usage SET events = {PER_DAY}, content_bytes = {10 ** 8}, "
                         "certifications = 20")
    service.start()
    check_quota_refusal(channel.test.register())
    check_quota_refusal(channel.test.certify(seq_from=1, seq_to=1))
    channel.live.register({"a": 1}).expect(201)
    channel.live.certify(seq_from=1, seq_to=1).expect(202)
    channel.live.register_file(b"x" * 100000).expect(201)
