"""Proofs that single events are in the log of segments: constancia proof --tlog-proof, and log check-proof. They are checked
with an implementation of its own, too (tests/support/tlog.py)."""

import base64
import gzip
import json
import pathlib
import zipfile

import pytest

import tlog
from client import Service, run
from scripted_witness import ScriptedWitness

SUPPORT = pathlib.Path(__file__).parents[1] / "support"
ORIGIN = "log.example/segments"
EVENTS, FIRST, LAST = 9, 2, 8  # of the chain, and those of the archive


class World:
    """A service with one witness, and an archive of several segments."""

    def __init__(self, folder):
        self.folder = folder
        self.service = Service(folder, seal__interval="500ms", log__origin=ORIGIN, log__allow_networks="127.0.0.0/8",
                               rate__live=100000)
        self.service.start()
        assert self.service.stop() == 0
        pem = (self.service.data / "signer" / "log.key").read_bytes()
        self.key = tlog.Key.load(ORIGIN, tlog.ED25519, pem)
        self.witness = ScriptedWitness("witness.example/one", [self.key.vkey])
        self.service.settings.update({"log.witnesses": f"{self.witness.vkey} {self.witness.url}", "log.quorum": "1"})
        self.service.start()
        self.channel = self.service.new_channel(credits=1000)
        # Three segments of three events each, but for the time that the machine takes.
        for number in range(EVENTS // 3):
            made = [self.channel.live.register({"n": number, "of": n}).expect(201).json for n in range(3)]
            self.channel.live.sealed(made[-1]["event_id"])
        self.events = self.channel.live.walk("/v1/events", 500)
        self.events.sort(key=lambda event: event["sequence"])
        self.archive = self.certified("evidence.zip", FIRST, LAST)

    def certified(self, name, first, last):
        made = self.channel.live.certified(seq_from=first, seq_to=last)
        path = self.folder / name
        path.write_bytes(self.channel.live.download(made["evidence_url"]).expect(200).body)
        return path

    def close(self):
        self.service.discard()
        self.witness.close()

    def segment_of(self, event):
        """(first, last) of its segment."""
        document = self.channel.live.event(event["event_id"])["proof"]["segment"]["seal_document"]
        return document["first_sequence"], document["last_sequence"]

    def keys(self):
        return "--key", self.key.vkey, "--witness", self.witness.vkey


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


def extract(world, event, folder, archive=None, expected=0):
    proof = folder / f"{event['sequence']}.tlog-proof"
    done = run("proof", event["event_id"], archive or world.archive, "-o", folder / "event.ers", "--record",
               folder / "event.json", "--tlog-proof", proof)
    assert done.returncode == expected, done.stdout + done.stderr
    return (proof, done.stdout) if expected == 0 else done.stderr


def check(path, *options, expected=0):
    done = run("log", "check-proof", path, *options)
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_events_are_proved_to_be_in_the_log(world, tmp_path):
    proved = 0
    for event in world.events[FIRST - 1:LAST]:
        first, last = world.segment_of(event)
        if last > LAST:
            said = extract(world, event, tmp_path, expected=2)
            assert f"segment with {last}" in said
            continue
        path, said = extract(world, event, tmp_path)
        assert f"{path}: proof that the event is in the log" in said
        record, entry, note = tlog.logged_event(path.read_text(encoding="utf-8"))
        entry = json.loads(entry)
        assert record == (tmp_path / "event.json").read_bytes()
        assert tlog.sha256(record).hex() == event["chain_hash"]
        assert (entry["first_sequence"], entry["last_sequence"]) == (first, last)
        assert tlog.verify_note(note, world.key.vkey) == [None] and tlog.verify_note(note, world.witness.vkey)
        _, entries = tlog.RemoteLog(f"http://127.0.0.1:{world.service.port}/log").check()
        assert entries[tlog.parse_proof(path.read_text(encoding="utf-8"))[1]] == entry
        said = check(path, *world.keys())
        assert event["event_id"] in said and event["chain_hash"] in said and f"{first} to {last}" in said
        assert event["hash"] in said and "witnessed" in said and "not established" not in said
        found = json.loads(check(path, *world.keys(), "--json"))
        assert (found["event_id"], found["sequence"], found["shown"]) == (event["event_id"], event["sequence"], True)
        assert found["record"] == json.loads(record) and found["checkpoint"]["origin"] == ORIGIN
        proved += 1
    assert proved >= 2, "segments end in the archive"


@pytest.fixture
def proof(world, tmp_path):
    """Of the first event of a segment that the archive has whole, and has more events, if there is one."""
    whole = [event for event in world.events[FIRST - 1:LAST] if world.segment_of(event)[1] <= LAST]
    event = max(whole, key=lambda one: world.segment_of(one)[1] - one["sequence"])
    return extract(world, event, tmp_path)[0]


def test_without_the_keys_nothing_is_established(world, proof):
    assert "--key" in check(proof, expected=2)
    stranger = tlog.Key(ORIGIN, tlog.ED25519)
    assert "not signed by the given key" in check(proof, "--key", stranger.vkey, expected=2)
    witness = tlog.Key("witness.example/stranger", tlog.COSIGNATURE)
    said = check(proof, *world.keys(), "--witness", witness.vkey, expected=2)
    assert "missing: witness.example/stranger" in said
    check(proof, *world.keys(), "--witness", witness.vkey, "--quorum", "1")
    assert "not checked, because no witness is given" in check(proof, "--key", world.key.vkey)


def altered(proof, change):
    """The proof with other extra data."""
    text = proof.read_text(encoding="utf-8")
    head, line, rest = text.split("\n", 2)
    lines = base64.b64decode(line.removeprefix("extra ")).decode().split("\n")
    changed = "\n".join(change(lines))
    path = proof.with_suffix(".altered")
    path.write_text("\n".join((head, "extra " + base64.b64encode(changed.encode()).decode(), rest)), encoding="utf-8")
    return path


def another_event(lines):
    """The first record is of another content."""
    record = json.loads(lines[1])
    record["hash"] = "0" * len(record["hash"])
    return [lines[0], json.dumps(record, separators=(",", ":"), sort_keys=True, ensure_ascii=False), *lines[2:]]


def another_segment(lines):
    return [lines[0].replace('"max_error_us":', '"max_error_us":1'), *lines[1:]]


@pytest.mark.parametrize("change", (
    another_event, another_segment, lambda lines: [*lines[:-2], ""], lambda lines: lines[1:],
    lambda lines: [lines[0], lines[1], *lines[1:]]), ids=("content", "seal", "no record", "no seal", "twice"))
def test_an_altered_proof_is_false(world, proof, change):
    path = altered(proof, change)
    check(path, *world.keys(), expected=1)
    with pytest.raises((ValueError, KeyError)):
        tlog.logged_event(path.read_text(encoding="utf-8"))


def test_a_false_checkpoint_is_no_proof(world, proof):
    text = proof.read_text(encoding="utf-8")
    head, note = text.split("\n\n", 1)
    another = tlog.Key(ORIGIN, tlog.ED25519)
    path = proof.with_suffix(".false")
    signed, lines = note.split("\n\n", 1)
    path.write_text(f"{head}\n\n{signed}\n\n{another.sign(signed + chr(10))}", encoding="utf-8")
    assert "not signed" in check(path, *world.keys(), expected=2)
    path.write_text(text.replace(f"— {ORIGIN} ", "— other.example "), encoding="utf-8")
    check(path, *world.keys(), expected=2)
    path.write_text(text.replace("\nindex ", "\nindex 1"), encoding="utf-8")
    check(path, *world.keys(), expected=1)


def test_an_archive_without_a_log_has_no_such_proof(tmp_path):
    """It was issued by an earlier version."""
    archive = SUPPORT / "fixtures/evidence-1/archive.zip"
    with zipfile.ZipFile(archive) as opened:
        event = json.loads(gzip.decompress(opened.read("events/events-000001.ndjson.gz")).splitlines()[-1])
    output = tmp_path / "event.ers"
    done = run("proof", event["event_id"], archive, "-o", output, "--tlog-proof", tmp_path / "event.tlog-proof")
    assert done.returncode == 2 and "has no log/" in done.stderr, done.stderr
    assert not output.exists()
    assert run("proof", event["event_id"], archive, "-o", output).returncode == 0


def test_the_files_must_be_different(world, tmp_path):
    event = world.events[FIRST - 1]["event_id"]
    for words in (["-o", tmp_path / "a", "--tlog-proof", tmp_path / "a"], ["-o", tmp_path / "a", "--tlog-proof", world.archive],
                  ["-o", tmp_path / "a", "--record", tmp_path / "b", "--tlog-proof", tmp_path / "b"]):
        done = run("proof", event, world.archive, *words)
        assert done.returncode == 2 and "different files" in done.stderr
