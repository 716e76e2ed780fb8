"""One range that is certified again and again: every certification is a document of its own, and
what they have in common is stored once."""

import glob
import hashlib
import io
import json
import os
import secrets
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


def test_sharing_can_be_switched_off(start):
    service = start(seal__interval="1h", certification__share_within="0s")
    channel = service.new_channel()
    channel.live.register_file(secrets.token_bytes(FILE_BYTES), "file").expect(201)
    channel.live.certified(seq_from=1, seq_to=1)
    before = stored(service)
    check_documents(channel, channel.live.certified(seq_from=1, seq_to=1))
    assert stored(service) - before > FILE_BYTES
