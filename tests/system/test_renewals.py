"""Evidence records of certifications and their renewals: stored with the issued documents, over one token where
possible, and valid for longer than the certificates of the authorities."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from client import eventually, run
import check_record
import evidence
import pki
import timestamp_authority
from program import ROOT

PATIENCE = 300

RECORD = ("evidence_record_url", "evidence_record_sha256", "evidence_record_since",
          "evidence_record_renew_at")


def record_path(certification):
    return f"/v1/certifications/{certification['certification_id']}/evidence-record"


def offered(client, certification, wanted=lambda record: record["evidence_record_sha256"]):
    """Returns the certification once its evidence record is as wanted."""
    def look():
        record = client.certification(certification["certification_id"])
        return record if wanted(record) else None
    return eventually(look, "an evidence record", PATIENCE)


def fetch(client, certification):
    """Returns the record's bytes and its certification at one moment."""
    def look():
        record = client.certification(certification["certification_id"])
        answer = client.get(record_path(record)).expect(200)
        found = hashlib.sha256(answer.body).hexdigest()
        return (record, answer) if found == record["evidence_record_sha256"] else None
    return eventually(look, "the record that is offered", PATIENCE)


def save(client, certification, directory):
    """Saves all its documents as files."""
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


def looked(service):
    """Waits until the renewer has had its first pass, which the seals show. With an interval of an hour, documents that
    are issued later wait for the next start."""
    service.acts_sealed()
    assert service.stop() == 0
    service.start()
    eventually(lambda: service.metric("evidence_first_end_timestamp_seconds"), "the renewer has looked")


def count_stamps(service):
    ((count,),) = service.store.rows("SELECT COUNT(*) FROM archive_timestamps")
    return int(count)


# ---- the first record ----

@pytest.fixture(scope="module")
def serving(start):
    return start(seal__interval="1s", evidence__interval="1s")


@pytest.mark.both_stores
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


@pytest.mark.both_stores
def test_many_share_a_token(start):
    """Documents that are issued while no pass is due share a token."""
    service = start(seal__interval="1s", evidence__interval="1h")
    looked(service)
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
    service.start()  # runs a pass at once
    tokens = set()
    for client, certification in issued:
        client.close()
        offered(client, certification)
        record = check_record.Record(client.get(record_path(certification)).expect(200).body)
        tokens.add(record.chains[0][0].token)
    assert len(tokens) == 1 and count_stamps(service) == 1
    for client, _ in issued:
        client.close()


def test_those_of_a_program_of_before(start):
    """An older node completes certifications during an upgrade and queues nothing."""
    service = start(seal__interval="1s", evidence__interval="1h")
    channel = service.new_channel()
    channel.live.register().expect(201)
    channel.test.register().expect(201)
    issued = channel.live.certified(seq_from=1, seq_to=1)
    tried = channel.test.certified(seq_from=1, seq_to=1)
    service.stop()
    service.store.change("DELETE FROM evidence_queue")
    service.start()
    channel.live.close()
    offered(channel.live, issued)
    channel.test.close()
    assert channel.test.certification(tried["certification_id"])["evidence_record_url"] is None


@pytest.mark.both_stores
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
    assert listed["evidence_record_sha256"] is None, "no record is put together for a list"
    assert [listed[name] for name in RECORD if listed[name]] == \
        [issued[name] for name in RECORD if name != "evidence_record_sha256"]


# ---- renewals, by authorities whose certificates expire in minutes ----

class Mortal:
    """An authority in this process; take() gives it another certificate, which expires after that number of seconds."""

    def __init__(self, directory, ends):
        self.pki = pki.Pki(directory)
        self.before_reply = self.behind_reply = lambda: None
        outer = self

        class Handler(timestamp_authority.Handler):
            def do_POST(self):
                outer.before_reply()
                super().do_POST()
                outer.behind_reply()

        self.server = timestamp_authority.Server(timestamp_authority.Certificates(
            str(self.pki.timestamps("mortal", ends=ends))))
        self.ends = [time.monotonic() + ends]  # at the latest
        self.server.RequestHandlerClass = Handler
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, ends):
        self.pki.go_on("mortal", ends)
        self.ends.append(time.monotonic() + ends)

    def outlive(self, generation):
        """Waits until that certificate has expired."""
        time.sleep(max(0, self.ends[generation - 1] - time.monotonic()) + 1.5)

    def settings(self, **more):
        return {"tsa__url": self.server.url,
                "tsa__roots": str(self.pki.root), "tsa__kind": "non_qualified",
                "tsa__allow_networks": "127.0.0.0/8", "seal__interval": "500ms",
                "evidence__interval": "500ms", **more}

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def mortal(tmp_path_factory):
    """Makes one whose first certificate expires after that number of seconds."""
    running = []

    def make(ends):
        running.append(Mortal(tmp_path_factory.mktemp("mortal"), ends))
        return running[-1]
    yield make
    for made in running:
        made.close()


def event_files(client, event_id, directory):
    """Returns its present evidence record, and the event record that it covers."""
    event = client.event(event_id)
    versions = client.get("/v1/channel").json["config_versions"]
    config = next(each for each in versions if each["version"] == event["config_version"])
    data, record = directory / "event.json", directory / "event.ers"
    data.write_bytes(evidence.event_record(event, evidence.config_hash(event["channel_id"], config),
                                           event["proof"]["previous_chain_hash"]))
    record.write_bytes(client.get(f"/v1/events/{event_id}/evidence-record").expect(200).body)
    return record, data


def judged_whole(archive, trust):
    """Returns the result of `constancia verify` on an archive, which the second verifier must find valid, too."""
    second = subprocess.run([sys.executable, "-B", str(ROOT / "tests/support/check_archive.py"),
                             "--trust", str(trust), str(archive)], capture_output=True, text=True,
                            check=False)
    assert second.returncode == 0, second.stderr
    return verify(archive, trust=trust)


def ended(result):
    return [each["what"] for each in result["warnings"] if "had expired before the archive was signed"
            in each["what"]]


def chains_of(record):
    return [len(chain) for chain in check_record.Record(record).chains]


def await_chains(client, certification, wanted):
    def look():
        body = client.get(record_path(certification)).expect(200).body
        return body if chains_of(body) == wanted else None
    return eventually(look, f"a record with chains of {wanted}", patience=PATIENCE)


def test_over_three_generations(mortal, start, tmp_path):
    """Two certificates have expired, and what they vouched for is valid without the service."""
    mortal = mortal(70)
    service = start(**mortal.settings())
    channel = service.new_channel()
    event = channel.live.register({"kept": "for long"}).expect(201).json
    issued = offered(channel.live, channel.live.certified(seq_from=1, seq_to=1))
    paths = save(channel.live, issued, tmp_path / "issued")
    first = await_chains(channel.live, issued, [1])
    mortal.take(100)
    await_chains(channel.live, issued, [2])
    mortal.take(3600)
    body = await_chains(channel.live, issued, [3])
    channel.live.sealed(event["event_id"])
    trust = tmp_path / "trust.pem"
    trust.write_bytes((service.data / "trust.pem").read_bytes() + mortal.pki.root.read_bytes())
    found = check_record.Record(body)
    assert found.chains[0][0].token == check_record.Record(first).chains[0][0].token, \
        "what was there stays as it was"
    record = tmp_path / "record.ers"
    record.write_bytes(body)
    mortal.outlive(2)
    result = verify(record, *paths, trust=trust)
    assert len(result["evidence_records"][0]["timestamps"]) == 3
    for path in paths:
        found.verify(path.read_bytes(), trust)
    (tmp_path / "first.ers").write_bytes(first)
    verify(tmp_path / "first.ers", *paths, trust=trust, expected=1)
    ers, data = event_files(channel.live, event["event_id"], tmp_path)
    assert chains_of(ers.read_bytes()) == [3]
    # Nothing in it is signed: it proves existence, and only with the archive of its event.
    assert verify(ers, data, trust=trust, expected=2)["verdict"]["code"] == "existence_only"
    check_record.Record(ers.read_bytes()).verify(data.read_bytes(), trust)
    assert service.metric("evidence_lost") == 0
    # An archive that is issued now proves events that are older than both certificates.
    late, *_ = save(channel.live, channel.live.certified(seq_from=1, seq_to=1), tmp_path / "late")
    result = judged_whole(late, trust)
    # Earlier rounds, of the audit records of the channel's creation, may have had their own renewals.
    assert result["checked"]["renewals"] >= 2 and not ended(result), result
    taken, taken_data = tmp_path / "taken.ers", tmp_path / "taken.json"
    done = run("proof", event["event_id"], late, "-o", taken, "--record", taken_data)
    assert done.returncode == 0, done.stderr
    assert taken.read_bytes() == ers.read_bytes() and taken_data.read_bytes() == data.read_bytes()
    (first_stamp, *_) = verify(taken, taken_data, late, trust=trust)["evidence_records"][0]["timestamps"]
    assert first_stamp["gen_time"] == verify(ers, data, late, trust=trust)["evidence_records"][0][
        "exists_since"]
    # The first archive was signed when all certificates were valid, and needs no renewal inside.
    assert verify(paths[0], trust=trust)["checked"]["renewals"] == 0
    # The digest is retired.
    service.stop()
    service.settings["evidence.digest"] = "sha-512"
    service.start()
    channel.live.close()
    body = await_chains(channel.live, issued, [3, 1])
    found = check_record.Record(body)
    assert found.chains[1][0].algorithm == "sha512"
    for path in paths:
        found.verify(path.read_bytes(), trust)
    record.write_bytes(body)
    verify(record, *paths, trust=trust)
    channel.close()


def test_a_lost_generation(mortal, start, tmp_path):
    """No node ran when the renewal was due: this is reported, documents have a new record, and that of an event is
    unchanged."""
    mortal = mortal(60)
    service = start(**mortal.settings())
    channel = service.new_channel()
    event = channel.live.register().expect(201).json
    issued = offered(channel.live, channel.live.certified(seq_from=1, seq_to=1))
    while_it_was_good = time.time()
    paths = save(channel.live, issued, tmp_path / "issued")
    trust = tmp_path / "trust.pem"
    trust.write_bytes((service.data / "trust.pem").read_bytes() + mortal.pki.root.read_bytes())
    service.stop()
    mortal.outlive(1)
    mortal.take(3600)
    service.start()
    channel.live.close()
    (line, *_) = service.logged(lambda line: line.get("event") == "evidence_lost")
    assert line["level"] == "error" and line["certifications"] == "1"
    renewed = offered(channel.live, issued, lambda record: record["evidence_record_since"] !=
                      issued["evidence_record_since"] and record["evidence_record_sha256"])
    assert renewed["evidence_record_since"] > issued["evidence_record_since"]
    _, answer = fetch(channel.live, issued)
    record = tmp_path / "record.ers"
    record.write_bytes(answer.body)
    result = verify(record, *paths, trust=trust)
    assert result["evidence_records"][0]["exists_since"] == renewed["evidence_record_since"]
    verify(*paths, trust=trust)  # by its content, as of its own times
    late, *_ = save(channel.live, channel.live.certified(seq_from=1, seq_to=1), tmp_path / "late")
    result = judged_whole(late, trust)
    assert result["checked"]["renewals"] == 0
    (what,) = ended(result)
    assert what.startswith("the certificates of the timestamps of 1 of 1 segments had expired"), what
    ers, data = event_files(channel.live, event["event_id"], tmp_path)
    result = verify(ers, data, trust=trust, expected=1)
    assert "expired" in json.dumps(result["findings"]), result["findings"]
    check_record.Record(ers.read_bytes()).verify(data.read_bytes(), trust, at=while_it_was_good)
    assert eventually(lambda: service.metric("evidence_lost"), "the metric tells") >= 2
    channel.close()


def evidence_is_staged(service):
    """A start also takes a token to compare its clock, which covers nothing that is staged."""
    return service.store.rows("SELECT COUNT(*) FROM archive_timestamp_blocks") != [["0"]]


def asked_for(server, token):
    """Returns the number of requests for the imprint of that token."""
    return sum(query[query.index(b"\x04\x20") + 2:][:32] in token for query in server.queries if b"\x04\x20" in query)


def issued_and_stopped(mortal, start):
    """Returns an authority, a stopped service with it, its channel and a certification without evidence."""
    mortal = mortal(3600)
    service = start(**mortal.settings(evidence__interval="1h"))
    looked(service)
    channel = service.new_channel()
    channel.live.register().expect(201)
    issued = channel.live.certified(seq_from=1, seq_to=1)
    service.acts_sealed()  # so that only evidence needs a token
    service.stop()
    return mortal, service, channel, issued


@pytest.mark.parametrize("moment", ["before", 0, 0.01, 0.05])
def test_killed_around_a_token(mortal, start, tmp_path, moment):
    """Before the answer, or that many seconds after it: at most one more token is taken than the one of the killed
    process, and none if the commit was done."""
    mortal, service, channel, issued = issued_and_stopped(mortal, start)

    def kill():
        if not evidence_is_staged(service):
            return
        mortal.before_reply = mortal.behind_reply = lambda: None
        if moment != "before":
            time.sleep(moment)
        os.kill(service.process.pid, signal.SIGKILL)
    if moment == "before":
        mortal.before_reply = kill
    else:
        mortal.behind_reply = kill
    service.spawn()  # killed before it is ready, or after that
    assert service.process.wait(PATIENCE) == -signal.SIGKILL
    ((written,),) = service.store.rows("SELECT COUNT(*) FROM archive_timestamps")
    service.start()
    channel.live.close()
    issued = offered(channel.live, issued)
    ((token,),) = service.store.rows("SELECT hex(token) FROM archive_timestamps")
    assert 1 <= asked_for(mortal.server, bytes.fromhex(token)) <= 2 - int(written), "no token is bought again"
    assert service.store.rows("SELECT COUNT(*) FROM archive_timestamp_blocks") == [["1"]]
    paths = save(channel.live, issued, tmp_path)
    record, answer = fetch(channel.live, issued)
    for path in paths:
        check_record.Record(answer.body).verify(path.read_bytes(), mortal.pki.root)
    channel.close()


@pytest.mark.both_stores
def test_staged_and_damaged(mortal, start):
    """Staged by a node that died, and lost since: it is staged again without delay."""
    mortal, service, channel, issued = issued_and_stopped(mortal, start)

    def kill():
        if not evidence_is_staged(service):
            return
        mortal.before_reply = lambda: None
        os.kill(service.process.pid, signal.SIGKILL)
    mortal.before_reply = kill
    service.spawn()
    assert service.process.wait(PATIENCE) == -signal.SIGKILL
    assert service.store.rows("SELECT COUNT(*) FROM archive_timestamp_blocks") == [["1"]]
    service.store.change("DELETE FROM archive_timestamp_blocks")
    service.start()
    channel.live.close()
    offered(channel.live, issued)
    (line, *_) = service.logged(lambda line: line.get("event") == "evidence_block_unstaged")
    assert line["level"] == "warning" and line["block"] == "0"
    assert count_stamps(service) == 1
    channel.close()
