"""One range that is certified again and again: each certification has its own document, and
what they have in common is stored once."""

import glob
import hashlib
import io
import json
import os
import re
import secrets
import time
import zipfile

import pytest

from client import eventually
from program import Refused
from test_sweep import become_old, claim_long_ago, fresh_name, place

pytestmark = pytest.mark.both_stores

FILES, FILE_BYTES, REPETITIONS = 4, 1_500_000, 20


def stored(service):
    """The bytes of all documents in the content store."""
    found = glob.glob(os.path.join(service.data, "content", "issued", "**"), recursive=True)
    return sum(os.stat(path).st_size for path in found if os.path.isfile(path))


def documents(record):
    reports = [(report["url"], report["sha256"]) for report in record["reports"]]
    parts = [(part["url"], part["sha256"]) for part in record["content_parts"]]
    return reports + parts


def check_documents(channel, record):
    """What is downloaded is what was certified, as a whole and in ranges."""
    assert record["status"] == "completed"
    assert len(record["reports"]) == 2 and len(record["content_parts"]) == 1
    archive = channel.live.download(record["evidence_url"]).expect(200).body
    with zipfile.ZipFile(io.BytesIO(archive)) as entries:
        assert entries.testzip() is None
        assert json.loads(entries.read("manifest.json"))["certification_id"] == record["certification_id"]
    for url, sha256 in documents(record):
        body = channel.live.download(url).expect(200).body
        assert hashlib.sha256(body).hexdigest() == sha256
        middle = len(body) // 2
        for first, last in ((0, 99), (3, middle), (middle, len(body) - 1), (len(body) - 7, len(body) - 1)):
            part = channel.live.download(url, headers={"Range": f"bytes={first}-{last}"}).expect(206)
            assert part.body == body[first:last + 1]
            assert part.headers["content-range"] == f"bytes {first}-{last}/{len(body)}"


def test_a_range_certified_again_is_stored_once(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    contents = [secrets.token_bytes(FILE_BYTES) for _ in range(FILES)]
    for i, content in enumerate(contents):
        channel.live.register_file(content, f"file-{i}").expect(201)
    chosen = {"seq_from": 1, "seq_to": FILES}
    records = [channel.live.certified(**chosen)]
    first = stored(service)
    assert first > FILES * FILE_BYTES
    for _ in range(REPETITIONS):
        before = stored(service)
        records.append(channel.live.certified(**chosen))
        assert (stored(service) - before) * 20 < first
    for record in records[0], records[1], records[-1]:
        check_documents(channel, record)
    assert len({record["certification_id"] for record in records}) == len(records)
    assert len({record["verification_code"] for record in records}) == len(records)
    for sums in zip(*(documents(record) for record in records)):
        assert len({sha256 for _, sha256 in sums}) == len(records)
    assert service.admin("store", "check")["valid"]


def restart_and_sweep(service, orphan):
    """Twice: what one run marks the next one deletes."""
    root = os.path.join(service.data, "content")
    for _ in range(2):
        assert service.stop() == 0
        service.start()
        eventually(lambda: not os.path.exists(orphan)
                   or os.path.exists(os.path.join(root, "swept", os.path.relpath(orphan, root))),
                   "the sweep has come by")
    eventually(lambda: not os.path.exists(orphan), "what nothing names is gone")


def test_the_sweep_keeps_what_is_shared(start):
    service = start(seal__interval="1h", content__keep_swept="0s")
    channel = service.new_channel()
    channel.live.register_file(secrets.token_bytes(FILE_BYTES), "file").expect(201)
    records = [channel.live.certified(seq_from=1, seq_to=1) for _ in range(3)]
    root = os.path.join(service.data, "content")
    claim_long_ago(root)
    orphan = place(root, fresh_name("issued"))
    for path in glob.glob(os.path.join(root, "issued", "**"), recursive=True):
        if os.path.isfile(path):
            become_old(path)
    size = stored(service)
    restart_and_sweep(service, orphan)
    assert stored(service) == size - 1
    for record in records:
        check_documents(channel, channel.live.certification(record["certification_id"]))
    # Whatever else is lost: what a document shares is named by that alone, too.
    first = records[0]["certification_id"]
    service.stop()
    service.store.change("UPDATE issued_files SET object = 'issued/aa/none' WHERE shared_object IS NULL"
                         " AND certification = (SELECT min(certification) FROM certifications)")
    orphan = place(root, fresh_name("issued"))
    become_old(orphan)
    service.start()
    restart_and_sweep(service, orphan)
    assert os.path.isdir(os.path.join(root, "issued", first))
    for record in records[1:]:
        check_documents(channel, channel.live.certification(record["certification_id"]))
    with pytest.raises(Refused) as refused:
        service.admin("store", "check")
    report = json.loads(refused.value.done.stdout)
    assert len(report["problems"]) == 4
    assert all(problem.startswith(f"certification {first}: ") for problem in report["problems"])
    # Nothing new refers to what no document has for its own.
    size = stored(service)
    check_documents(channel, channel.live.certified(seq_from=1, seq_to=1))
    assert stored(service) - size > FILE_BYTES


def test_what_is_not_the_same_is_not_shared(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    content = secrets.token_bytes(FILE_BYTES)
    for i in range(2):
        channel.live.register_file(content, f"file-{i}").expect(201)
        channel.test.register_file(content, f"file-{i}").expect(201)
    channel.live.certified(seq_from=1, seq_to=1)
    for client, chosen in ((channel.live, {"seq_from": 2, "seq_to": 2}), (channel.test, {"seq_from": 1, "seq_to": 1}),
                           (channel.live, {"seq_from": 1, "seq_to": 2})):
        before = stored(service)
        client.certified(**chosen)
        assert stored(service) - before > FILE_BYTES
    # An object that was changed, or is gone, is compared and not shared.
    parts = sorted(glob.glob(os.path.join(service.data, "content", "issued", "*", "*", "*")),
                   key=os.path.getsize)
    with open(parts[-1], "r+b") as file:
        file.write(b"\0" * os.path.getsize(parts[-1]))
    before = stored(service)
    record = channel.live.certified(seq_from=1, seq_to=2)
    assert stored(service) - before > FILE_BYTES
    check_documents(channel, record)


def test_what_will_share_shares_however_long_it_waits(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    channel.test.register_file(secrets.token_bytes(FILE_BYTES), "file").expect(201)
    records = [channel.test.certified(seq_from=1, seq_to=1) for _ in range(2)]
    size = stored(service)
    assert service.stop() == 0
    # As if the second had been asked for 23 hours after the first was there, and waited for two.
    first, second = (int(row[0]) for row in service.store.rows("SELECT certification FROM certifications"
                                                               " ORDER BY certification"))
    hour, now = 3600 * 10**6, int(time.time() * 10**6)
    service.store.change(f"DELETE FROM issued_files WHERE certification = {second}")
    service.store.change(f"UPDATE certifications SET completed_at = {now - 25 * hour} WHERE certification = {first}")
    service.store.change("UPDATE certifications SET status = 'processing', completed_at = NULL, next_attempt_at = 0,"
                         f" requested_at = {now - 2 * hour} WHERE certification = {second}")
    service.start()
    check_documents(channel, channel.test.settled(records[1]["certification_id"]))
    assert stored(service) - size < FILE_BYTES


def test_sharing_can_be_switched_off(start):
    service = start(seal__interval="1h", certification__share_within="0s")
    channel = service.new_channel()
    channel.live.register_file(secrets.token_bytes(FILE_BYTES), "file").expect(201)
    channel.live.certified(seq_from=1, seq_to=1)
    before = stored(service)
    check_documents(channel, channel.live.certified(seq_from=1, seq_to=1))
    assert stored(service) - before > FILE_BYTES


# ---- what an account may have stored ----

def bound(service, account):
    return service.admin("account", "show", account)["bounds"]["stored_bytes"]


def test_stored_bytes_are_counted_and_bounded(start):
    service = start(seal__interval="1h", certification__fee=3)
    channel = service.new_channel(**{"stored-bytes": 3_000_000})
    other = service.new_channel()
    assert bound(service, channel.account_id) == {"most": 3_000_000, "own": 3_000_000, "used": 0}
    assert bound(service, other.account_id)["most"] == 2**40
    for size in (900_000, 500_000):
        channel.live.register_file(secrets.token_bytes(size), f"file-{size}").expect(201)
    inline = channel.live.register({"n": 1}, "inline").expect(201)
    assert bound(service, channel.account_id)["used"] == 1_400_000 + len('{"n":1}')
    # A repetition adds nothing, and what does not fit leaves nothing.
    channel.live.register({"n": 1}, "inline").expect(200)
    balance = channel.live.balance()["balance"]
    for client, language in ((channel.live, "en"), (channel.test, "es")):
        refused = client.register_file(secrets.token_bytes(1_700_000), "large", language=language)
        refused.expect(400, "validation_error")
        assert "3000000" in refused.message and "1400007" in refused.message
        assert ("only a digest" if language == "en" else "solo un resumen") in refused.message
    eventually(lambda: len(glob.glob(os.path.join(service.data, "content", "event", "*", "*"))) == 2,
               "what was refused is deleted")
    assert channel.live.balance()["balance"] == balance
    # What has no content continues, and so does what fits, and all other clients.
    other.live.register_file(secrets.token_bytes(1_700_000), "large").expect(201)
    size = stored(service)
    channel.live.certified(seq_from=3, seq_to=3)
    used = bound(service, channel.account_id)["used"]
    assert used == 1_400_007 + stored(service) - size
    assert channel.live.balance()["balance"] == balance - 3
    refused = channel.live.certify(seq_from=1, seq_to=2).expect(400, "validation_error")
    assert "Nothing was accepted or charged" in refused.message
    assert channel.live.balance()["balance"] == balance - 3
    assert channel.live.get("/v1/certifications").json["data"][0]["event_count"] == 1
    service.admin("account", "set", channel.account_id, "--stored-bytes", 10_000_000)
    first = channel.live.certified(seq_from=1, seq_to=2)
    grown = bound(service, channel.account_id)["used"]
    assert grown > used + 1_400_000
    # It shares, so that there is room for more than it seems.
    service.admin("account", "set", channel.account_id, "--stored-bytes", grown + 1_300_000)
    check_documents(channel, channel.live.certified(seq_from=1, seq_to=2))
    assert bound(service, channel.account_id)["used"] == 1_400_007 + stored(service) - size
    check_documents(channel, first)
    service.admin("account", "set", channel.account_id, "--stored-bytes", 1)
    channel.live.register_file(b"x", "one byte").expect(400, "validation_error")
    channel.live.certify(seq_from=1, seq_to=1).expect(400, "validation_error")
    channel.live.content(inline.json["event_id"]).expect(200)
    hashes = service.new_channel("hash_only", account_id=channel.account_id)
    hashes.live.register_hash(secrets.token_hex(32), "digest").expect(201)
    service.admin("account", "set", channel.account_id, "--stored-bytes", 0)
    channel.live.register_file(b"x", "one byte").expect(201)
    assert bound(service, channel.account_id)["own"] is None
    assert service.admin("store", "check")["valid"]
    assert service.stop() == 0
    service.store.change("UPDATE accounts SET stored_bytes = stored_bytes + 1")
    service.start()
    with pytest.raises(Refused) as refused:
        service.admin("store", "check")
    problems = json.loads(refused.value.done.stdout)["problems"]
    assert any(f"account {channel.account_id}: " in problem and "stored_bytes is" in problem for problem in problems)


def test_few_large_events_among_many_small_ones(start):
    """Of a day's events those that are certified may have most of its content."""
    service = start(seal__interval="1h")
    channel = service.new_channel()
    for i in range(40):
        channel.test.register({"n": i}).expect(201)
    for i in range(2):
        channel.test.register_file(secrets.token_bytes(FILE_BYTES), f"file-{i}").expect(201)
    used = bound(service, channel.account_id)["used"]
    service.admin("account", "set", channel.account_id, "--stored-bytes", used + 2 * FILE_BYTES)
    channel.test.certify(seq_from=41, seq_to=42).expect(400, "validation_error")
    channel.test.certified(seq_from=1, seq_to=40)
    channel.test.certify(seq_from=2, seq_to=42).expect(400, "validation_error")
    assert bound(service, channel.account_id)["used"] < used + 2 * FILE_BYTES


def test_a_list_of_pieces_that_is_none_is_told(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    channel.test.register_file(secrets.token_bytes(FILE_BYTES), "file").expect(201)
    records = [channel.test.certified(seq_from=1, seq_to=1) for _ in range(2)]
    assert service.stop() == 0
    service.store.change("UPDATE issued_files SET pieces = '+1@' WHERE kind = 'part' AND shared_object IS NOT NULL")
    service.start()
    with pytest.raises(Refused) as refused:
        service.admin("store", "check")
    (problem,) = json.loads(refused.value.done.stdout)["problems"]
    assert problem.startswith(f"certification {records[1]['certification_id']}: ")
    assert "is not a valid list of pieces" in problem


def test_a_shared_object_that_is_missing_is_told_before_the_head(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    channel.test.register_file(secrets.token_bytes(FILE_BYTES), "file").expect(201)
    records = [channel.test.certified(seq_from=1, seq_to=1) for _ in range(2)]
    ((name,),) = service.store.rows("SELECT shared_object FROM issued_files"
                                    " WHERE kind = 'part' AND shared_object IS NOT NULL")
    os.unlink(os.path.join(service.data, "content", name))
    refused = 0
    # The first one's part is the object itself.
    for record in records:
        (part,) = record["content_parts"]
        for headers in ({}, {"Range": f"bytes={part['bytes'] // 2}-"}):
            answer = channel.test.download(part["url"], headers=headers).expect(500, "internal")
            (line,) = service.logged(lambda line, answer=answer: line["event"] == "request_failed"
                                     and line["incident_id"] == answer.json["incident_id"])
            assert f"object {name} is missing" in line["cause"]
            refused += 1
        channel.test.download(part["url"], method="HEAD").expect(500)
        for report in record["reports"]:
            channel.test.download(report["url"]).expect(200)
    counted = re.compile(r'constancia_http_requests_total\{route="/v1/downloads/[^"]*",method="GET",status="500"\} (\d+)')
    eventually(lambda: counted.findall(service.monitor("/metrics")[1]) == [str(refused)], "each is counted")
    with pytest.raises(Refused) as check:
        service.admin("store", "check")
    problems = json.loads(check.value.done.stdout)["problems"]
    assert {problem.partition(": ")[0] for problem in problems} == {
        f"certification {record['certification_id']}" for record in records}
    assert len(problems) == 2 and all(problem.endswith(f"object {name} is missing") for problem in problems)


def test_the_setting_bounds_and_warns(start):
    service = start(seal__interval="1h", account__stored_bytes=100_000)
    account = service.new_account()
    channel = service.new_channel(account_id=account)
    channel.live.register_file(secrets.token_bytes(90_000), "file").expect(201)
    channel.live.register_file(secrets.token_bytes(20_000), "more").expect(400, "validation_error")
    assert service.stop() == 0
    service.start()
    near = 'constancia_limit_used_ratio{limit="stored_bytes"} 0.9'
    eventually(lambda: any(line.startswith(near) for line in service.monitor("/metrics")[1].splitlines()), "it is near")
    _, text = service.monitor("/readyz")
    assert f"an account uses 90 % of the bytes that it may store: {account}" in text
