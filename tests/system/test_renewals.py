"""Evidence records of certifications and their renewals: beside what was issued, over one token where
that can be, and good for longer than the certificates of the authorities."""

import hashlib
import json
import pathlib

import pytest

from client import eventually, run
import check_record

RECORD = ("evidence_record_url", "evidence_record_sha256", "evidence_record_since",
          "evidence_record_renew_at")


def record_path(certification):
    return f"/v1/certifications/{certification['certification_id']}/evidence-record"


def offered(client, certification, wanted=lambda record: record["evidence_record_sha256"]):
    """The certification, once its evidence record is as wanted."""
    def look():
        record = client.certification(certification["certification_id"])
        return record if wanted(record) else None
    return eventually(look, "an evidence record")


def fetch(client, certification):
    """The record's bytes and its certification, of one moment."""
    def look():
        record = client.certification(certification["certification_id"])
        answer = client.get(record_path(record)).expect(200)
        found = hashlib.sha256(answer.body).hexdigest()
        return (record, answer) if found == record["evidence_record_sha256"] else None
    return eventually(look, "the record that is offered")


def save(client, certification, directory):
    """All its documents, as files."""
    directory.mkdir(parents=True, exist_ok=True)
    urls = [certification["evidence_url"]] + \
        [each["url"] for each in certification["reports"] + certification["content_parts"]]
    paths = []
    for url in urls:
        path = directory / url.split("?")[0].rsplit("/", 1)[1]
        path.write_bytes(client.download(url).expect(200).body)
        paths.append(path)
    return paths


def verify(*paths, expected=0, trust):
    done = run("verify", *paths, "--json", "--trust", trust)
    assert done.returncode == expected, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def count_stamps(service):
    ((count,),) = service.store.rows("SELECT COUNT(*) FROM archive_timestamps")
    return int(count)


# ---- the first one ----

@pytest.fixture(scope="module")
def serving(start):
    return start(seal__interval="1s", evidence__interval="1s")


def test_it_covers_every_document(serving, tmp_path):
    channel = serving.new_channel()
    for n in range(5):
        channel.live.register({"n": n}).expect(201)
    issued = channel.live.certified(seq_from=2, seq_to=4)
    offered(channel.live, issued)
    record, answer = fetch(channel.live, issued)
    assert record["evidence_record_url"] == serving.public_url + record_path(record)
    assert answer.headers.get_content_type() == "application/octet-stream"
    assert answer.headers["ETag"] == f'"{record["evidence_record_sha256"]}"'
    assert answer.headers["Content-Disposition"] == \
        f'attachment; filename="{record["certification_id"]}.ers"'
    assert record["evidence_record_since"] >= record["completed_at"]
    assert record["evidence_record_renew_at"] > record["evidence_record_since"]
    paths = save(channel.live, record, tmp_path)
    assert len(paths) == 4, "archive, two reports, one part"
    trust = serving.data / "trust.pem"
    found = check_record.Record(answer.body)
    assert [len(chain) for chain in found.chains] == [1]
    digests = sorted(hashlib.sha256(path.read_bytes()).digest() for path in paths)
    assert found.chains[0][0].lists[0] == digests, "the documents and nothing else, as one group"
    for path in paths:
        found.verify(path.read_bytes(), trust)
        with pytest.raises(check_record.Invalid, match="does not cover"):
            found.verify(path.read_bytes() + b"\0", trust)
    file = tmp_path / "record.ers"
    file.write_bytes(answer.body)
    result = verify(file, *paths, trust=trust)
    assert sorted(result["evidence_records"][0]["covers"]) == sorted(map(str, paths))
    assert result["trusted"] is True
    assert channel.live.certification(record["certification_id"])["reports"][0]["sha256"] == \
        issued["reports"][0]["sha256"], "what was issued never changes"


def test_many_share_a_token(start):
    """What is issued while no look is due gets one token."""
    service = start(seal__interval="1s", evidence__interval="1h")
    channels = [service.new_channel() for _ in range(2)]
    issued = []
    for channel in channels:
        for n in range(3):
            channel.live.register({"n": n}).expect(201)
            issued.append((channel.live, channel.live.certified(seq_from=1, seq_to=n + 1)))
    for client, certification in issued:
        assert [certification[member] for member in RECORD] == [None] * 4
        answer = client.get(record_path(certification)).expect(404, "not_found")
        assert answer.message.startswith("This certification has no evidence record yet")
    assert count_stamps(service) == 0
    service.stop()
    service.start()  # looks at once
    tokens = set()
    for client, certification in issued:
        client.close()
        offered(client, certification)
        record = check_record.Record(client.get(record_path(certification)).expect(200).body)
        tokens.add(record.chains[0][0].token)
    assert len(tokens) == 1 and count_stamps(service) == 1
    for client, _ in issued:
        client.close()


def test_whose_it_is(serving):
    channel, other = serving.new_channel(), serving.new_channel()
    channel.live.register().expect(201)
    channel.test.register().expect(201)
    issued = offered(channel.live, channel.live.certified(seq_from=1, seq_to=1))
    for client in (other.live, channel.test):
        client.get(record_path(issued)).expect(404, "not_found")
    tried = channel.test.certified(seq_from=1, seq_to=1)
    assert [tried[member] for member in RECORD] == [None] * 4
    answer = channel.test.get(record_path(tried), language="es").expect(404, "not_found")
    assert answer.message.startswith("Una certificación de prueba no tiene registro de evidencia")
    (listed,) = channel.live.get("/v1/certifications").expect(200).json["data"]
    assert {name: listed[name] for name in RECORD} == {name: issued[name] for name in RECORD}
