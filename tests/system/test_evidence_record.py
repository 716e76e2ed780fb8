"""The evidence record of an event (RFC 4998), from the interface and out of an archive, checked
without any of the service's code."""

import base64
import hashlib
import json
import re
import subprocess
import zipfile

import pytest

from client import BINARY, eventually, run  # finds tests/support, too
import check_record
import evidence


def path(event):
    return f"/v1/events/{event['event_id']}/evidence-record"


def record_bytes(client, event):
    """The data object: the event's record, from what the interface says of the event."""
    whole = client.event(event["event_id"])
    versions = client.get("/v1/channel").json["config_versions"]
    config = next(each for each in versions if each["version"] == event["config_version"])
    return evidence.event_record(whole, evidence.config_hash(event["channel_id"], config),
                                 whole["proof"]["previous_chain_hash"])


def signed_part(token, directory):
    """What the authority says in it, and its signature: without certificates and unsigned attributes."""
    path = directory / "token.der"
    path.write_bytes(token)
    said = subprocess.run(["openssl", "ts", "-reply", "-token_in", "-in", path, "-text"], capture_output=True,
                          check=True).stdout
    parsed = subprocess.run(["openssl", "asn1parse", "-inform", "DER", "-in", path], capture_output=True, text=True,
                            check=True).stdout
    *_, value = re.findall(r"^ *\d+:d=5 .*OCTET STRING +\[HEX DUMP\]:(\w+)$", parsed, re.M)
    return said, value  # the last one; what is signed precedes it


def holds_revocations(token, directory):
    path = directory / "token.der"
    path.write_bytes(token)
    parsed = subprocess.run(["openssl", "asn1parse", "-inform", "DER", "-in", path], capture_output=True, text=True,
                            check=True).stdout
    return len(re.findall(r"^ *\d+:d=7 .*:id-smime-aa-ets-revocationValues$", parsed, re.M))


@pytest.fixture(scope="module")
def sealed(service):
    """Eleven sealed events in segments of several sizes, one of them of a single event."""
    channel = service.new_channel()
    for count in (1, 3, 7):
        for n in range(count):
            last = channel.live.register({"n": n}).expect(201).json
        channel.live.sealed(last["event_id"])
    channel.events = [channel.live.event(event["event_id"])
                      for event in channel.live.walk("/v1/events", 100)]
    yield channel
    channel.close()


def test_each_event_is_covered_by_its_record(sealed, tmp_path):
    trust = sealed.service.data / "trust.pem"
    for event in sealed.events:
        answer = sealed.live.get(path(event)).expect(200)
        data = record_bytes(sealed.live, event)
        assert hashlib.sha256(data).hexdigest() == event["chain_hash"]
        record = check_record.Record(answer.body)
        times = record.verify(data, trust)
        assert record.algorithms == ["sha256"] and len(times) == 1
        token = base64.b64decode(event["proof"]["round"]["token"])
        inside = record.chains[0][0].token
        assert signed_part(inside, tmp_path) == signed_part(token, tmp_path), "what the authority signed"
        assert (holds_revocations(token, tmp_path), holds_revocations(inside, tmp_path)) == (0, 1), \
            "the round's stays as it was"
        with pytest.raises(check_record.Invalid, match="does not cover"):
            record.verify(data + b" ", trust)
        other = sealed.events[(event["sequence"] + 4) % 11]  # not the leaf next to it
        with pytest.raises(check_record.Invalid, match="does not cover"):
            record.verify(record_bytes(sealed.live, other), trust)


def test_how_it_is_handed_out(sealed):
    event = sealed.events[-1]
    answer = sealed.live.get(path(event)).expect(200)
    assert answer.headers.get_content_type() == "application/octet-stream"
    assert answer.headers["ETag"] == f'"{hashlib.sha256(answer.body).hexdigest()}"'
    assert answer.headers["Content-Disposition"] == \
        f'attachment; filename="{event["event_id"]}.ers"'
    head = sealed.live.call("HEAD", path(event)).expect(200)
    assert head.body == b"" and head.headers["ETag"] == answer.headers["ETag"]
    assert head.headers["Content-Length"] == str(len(answer.body))
    assert sealed.live.get(path(event)).body == answer.body, "the same each time"
    assert sealed.live.call("POST", path(event), {}).expect(405).code == "validation_error"


def test_only_the_keys_own_chain(sealed, channel):
    event = sealed.events[0]
    for client in (channel.live, sealed.test):
        assert client.get(path(event)).expect(404).code == "not_found"
    unknown = dict(event, event_id=event["event_id"] + "z")
    assert sealed.live.get(path(unknown)).expect(404).code == "not_found"


def test_a_test_event_has_none(channel):
    event = channel.test.register().expect(201).json
    answer = channel.test.get(path(event)).expect(404, "not_found")
    assert answer.message.startswith("A test event has no evidence record")
    answer = channel.test.get(path(event), language="es").expect(404, "not_found")
    assert answer.message.startswith("Un evento de prueba no tiene registro de evidencia")


def test_a_pending_event_has_none_yet(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    event = channel.live.register().expect(201).json
    answer = channel.live.get(path(event)).expect(404, "not_found")
    assert answer.message.startswith("This event has no evidence record yet")
    answer = channel.live.get(path(event), language="es").expect(404, "not_found")
    assert answer.message.startswith("Este evento aún no tiene registro de evidencia")
    channel.live.certified(seq_from=1, seq_to=1)  # which seals it
    answer = channel.live.get(path(event)).expect(200)
    check_record.Record(answer.body).verify(record_bytes(channel.live, event), service.data / "trust.pem")


# ---- constancia proof, constancia verify ----

@pytest.fixture(scope="module")
def archive(sealed, tmp_path_factory):
    """Of events 3 to 9, which begin and end within segments."""
    record = sealed.live.certified(seq_from=3, seq_to=9)
    path = tmp_path_factory.mktemp("archive") / "evidence.zip"
    path.write_bytes(sealed.live.download(record["evidence_url"]).expect(200).body)
    return path


def proof(*words, expected=0):
    done = run("proof", *words)
    assert done.returncode == expected, (done.returncode, done.stdout, done.stderr)
    return done


def test_the_archive_has_the_same_records(sealed, archive, tmp_path):
    """But for the revocation data, which each has of its own time."""
    output, data = tmp_path / "event.ers", tmp_path / "event.json"
    for event in sealed.events[2:9]:
        done = proof(event["event_id"], archive, "-o", output, "--record", data, "--json")
        ((taken,),) = check_record.Record(output.read_bytes()).chains
        ((served,),) = check_record.Record(sealed.live.get(path(event)).expect(200).body).chains
        assert taken.lists == served.lists
        assert signed_part(taken.token, tmp_path) == signed_part(served.token, tmp_path)
        assert holds_revocations(taken.token, tmp_path) == 1
        assert data.read_bytes() == record_bytes(sealed.live, event)
        assert json.loads(done.stdout) == {
            "authority": event["proof"]["round"]["authority"],
            "bytes": output.stat().st_size, "chain_hash": event["chain_hash"],
            "event_id": event["event_id"], "gen_time": event["timestamp"]["sealed_at"],
            "output": str(output), "received_at": event["received_at"], "record": str(data),
            "segment_id": event["timestamp"]["reference"], "sequence": event["sequence"],
            "sha256": hashlib.sha256(output.read_bytes()).hexdigest(), "tlog_proof": None}


def test_what_an_archive_does_not_hold(sealed, archive, channel, tmp_path):
    output = tmp_path / "event.ers"
    outside = sealed.events[0]["event_id"]
    assert "contains events 3 to 9" in proof(outside, archive, "-o", output, expected=2).stderr
    done = proof(outside, archive, "-o", output, "--json", expected=2)
    assert json.loads(done.stderr)["code"] == "not_found"
    assert "--output" in proof(outside, archive, expected=2).stderr
    held = sealed.events[3]["event_id"]
    for words in (["-o", archive], ["-o", output, "--record", output],
                  ["-o", output, "--record", archive]):
        assert "different files" in proof(held, archive, *words, expected=2).stderr
    proof(outside, tmp_path / "nothing.zip", "-o", output, expected=2)
    event = channel.test.register().expect(201).json
    record = channel.test.certified(seq_from=1, seq_to=1)
    test = tmp_path / "test.zip"
    test.write_bytes(channel.test.download(record["evidence_url"]).expect(200).body)
    done = proof(event["event_id"], test, "-o", output, expected=2)
    assert "a test archive" in done.stderr
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(archive.read_bytes()[:-1])
    proof(sealed.events[3]["event_id"], damaged, "-o", output, expected=1)
    assert not output.exists()


def verify(*paths, expected=0, trust=None):
    done = run("verify", *paths, "--json", *(["--trust", trust] if trust else []))
    assert done.returncode == expected, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def test_a_record_is_verified_with_what_it_covers(sealed, archive, tmp_path):
    event = sealed.events[4]
    output, data = tmp_path / "event.ers", tmp_path / "event.json"
    proof(event["event_id"], archive, "-o", output, "--record", data)
    trust = sealed.service.data / "trust.pem"
    result = verify(output, data, archive, trust=trust)
    assert result["trusted"] is True
    assert result["checked"]["evidence_records"] == 1
    (record,) = result["evidence_records"]
    assert record["path"] == str(output) and record["covers"] == [str(data)]
    assert record["exists_since"] == event["timestamp"]["sealed_at"]
    assert record["valid_until"] == max(each["not_after"] for each in result["authorities"])
    (stamp,) = record["timestamps"]
    assert (stamp["chain"], stamp["number"], stamp["algorithm"]) == (1, 1, "SHA-256")
    alone = verify(output, data, trust=trust, expected=2)
    assert alone["trusted"] is False and alone["verdict"]["code"] == "existence_only"
    (finding,) = alone["findings"]
    assert finding["path"] == str(data) and "nothing shows who recorded this event" in finding["what"]
    done = run("verify", output, data, "--trust", trust)
    assert done.stdout.startswith("EXISTENCE ONLY: nothing shows who recorded this event, ")
    assert verify(output, data, expected=2)["verdict"]["code"] == "existence_only"
    verify(output, expected=2)
    verify(data, expected=2)
    data.write_bytes(data.read_bytes().replace(b'"v":1', b'"v":2'))
    result = verify(output, data, expected=1)
    assert any("none of the given evidence records covers the file" in finding["what"]
               for finding in result["findings"])


def test_evidence_is_judged_as_of_a_time(sealed, archive, tmp_path):
    event = sealed.events[4]
    output, data = tmp_path / "event.ers", tmp_path / "event.json"
    proof(event["event_id"], archive, "-o", output, "--record", data)
    trust = ["--trust", sealed.service.data / "trust.pem"]

    def as_of(time, expected):
        done = run("verify", output, data, archive, *trust, "--json", "--at", time)
        assert done.returncode == expected, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    now = as_of(verify(output, data, expected=2)["as_of"], 0)
    end = now["evidence_records"][0]["valid_until"]
    year = int(end[:4])
    last = end.replace(f"{year}-", f"{year - 1}-", 1).replace("-02-29T", "-02-28T")
    assert as_of(last, 0)["as_of"] == last
    as_of(end, 1)
    ended = as_of("9998-01-01T00:00:00Z", 1)
    assert any("has expired" in finding["what"] for finding in ended["findings"])
    assert any("the certificate of the newest timestamp expired at 2" in finding["what"]
               for finding in ended["findings"])
    before = as_of("2020-01-01T00:00:00+01:00", 2)
    assert before["as_of"] == "2019-12-31T23:00:00.000000Z" and not before["evidence_records"]
    assert any("it was issued at" in finding["what"] for finding in before["findings"])
    done = run("verify", archive, "--at", "yesterday")
    assert done.returncode == 2 and "--at must be a time" in done.stderr


# ---- constancia bundle ----

@pytest.fixture(scope="module")
def certified(sealed, tmp_path_factory):
    """A directory with all that a certification hands over, and its evidence record."""
    directory = tmp_path_factory.mktemp("certified")
    issued = sealed.live.certified(seq_from=1, seq_to=11)
    links = [issued["evidence_url"], *(each["url"] for each in issued["reports"]),
             *(each["url"] for each in issued["content_parts"])]
    for link in links:
        answer = sealed.live.download(link).expect(200)
        name = answer.headers.get_filename()
        (directory / name).write_bytes(answer.body)
    url = f"/v1/certifications/{issued['certification_id']}/evidence-record"
    record = eventually(lambda: (answer := sealed.live.get(url)).status == 200 and answer.body,
                        "there is an evidence record", 300)
    (directory / "record.ers").write_bytes(record)
    return directory


def bundle(*words, expected=0):
    done = run("bundle", *words)
    assert done.returncode == expected, (done.returncode, done.stdout, done.stderr)
    return done


def test_all_of_a_certification_in_one_container(sealed, certified, tmp_path):
    record, output = certified / "record.ers", tmp_path / "all.asice"
    documents = sorted(each for each in certified.iterdir() if each != record)
    assert len(documents) == 4, "two reports, an archive, a part"
    told = json.loads(bundle(record, *documents, "-o", output, "--json").stdout)
    assert told["sha256"] == hashlib.sha256(output.read_bytes()).hexdigest()
    assert told["files"] == 4 and told["bytes"] == output.stat().st_size
    with zipfile.ZipFile(output) as whole:
        assert whole.namelist() == ["mimetype", *(each.name for each in documents),
                                    "META-INF/ASiCEvidenceRecordManifest001.xml",
                                    "META-INF/evidencerecord001.ers"]
        for each in documents:
            assert whole.read(each.name) == each.read_bytes()
        assert whole.read("META-INF/evidencerecord001.ers") == record.read_bytes()
    trust = sealed.service.data / "trust.pem"
    result = verify(output, trust=trust)
    apart = verify(record, *documents, trust=trust)
    assert result["trusted"] is True and result["checked"] == apart["checked"]
    (covering,) = result["evidence_records"]
    assert set(covering["covers"]) == {f"{output}/{each.name}" for each in documents}
    assert covering["exists_since"] == told["exists_since"]
    assert {each["path"] for each in result["signatures"]} == \
        {f"{output}/{each.name}" for each in documents if "part" not in each.name}
    again = tmp_path / "again.asice"
    bundle(record, *reversed(documents), "-o", again)
    assert again.read_bytes() == output.read_bytes(), "the same, in whatever order"


def test_a_container_holds_exactly_what_its_record_covers(certified, tmp_path):
    record, output = certified / "record.ers", tmp_path / "all.asice"
    documents = sorted(each for each in certified.iterdir() if each != record)
    assert "covers 4 files" in bundle(record, *documents[1:], "-o", output, expected=1).stderr
    foreign = tmp_path / "foreign.txt"
    foreign.write_text("foreign")
    done = bundle(record, *documents[1:], foreign, "-o", output, expected=1)
    assert "does not cover" in done.stderr
    foreign.write_bytes(documents[1].read_bytes())
    done = bundle(record, *documents[1:], foreign, "-o", output, expected=1)
    assert "2 of the files are identical" in done.stderr, "a copy stands for no other file"
    bundle(record, *documents, expected=2)
    bundle(record, *documents, "-o", documents[0], expected=2)
    bundle(record, *documents, "-o", tmp_path / "nowhere" / "x", expected=2)
    assert not output.exists() and list(tmp_path.iterdir()) == [foreign]


def test_a_container_needs_no_descriptors_and_no_room_for_its_files(sealed, certified, tmp_path):
    record, output = certified / "record.ers", tmp_path / "all.asice"
    bundle(record, *(each for each in certified.iterdir() if each != record), "-o", output)
    done = subprocess.run(["prlimit", "--nofile=7:7", "--fsize=0:0", BINARY, "verify", output, "--trust",
                           sealed.service.data / "trust.pem"],
                          capture_output=True, text=True, check=False, env={"TMPDIR": "/nowhere"})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_damaged_container_is_not_valid(certified, tmp_path):
    record, output = certified / "record.ers", tmp_path / "all.asice"
    documents = sorted(each for each in certified.iterdir() if each != record)
    bundle(record, *documents, "-o", output)
    whole = output.read_bytes()
    for at in range(0, len(whole), len(whole) // 40):
        output.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        verify(output, expected=1)
    output.write_bytes(whole[:-1])
    verify(output, expected=1)
