"""The Go client's own check of evidence archives: against the corpus of damaged and forged evidence, random damage, and
archives of any size. It is never better than what `constancia verify` says."""

import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import zlib

import pytest

from golang import run_go
from program import BINARY, ROOT

sys.path.insert(0, str(ROOT / "tests/corpus/evidence"))
import forge  # noqa: E402

CASES = [case for case in forge.load_cases() if case["kind"] == "archive"]
CASES_MIN = 500
BATCHES = 4
BASE = ROOT / "tests/corpus/evidence/base"
AT, TRUST = "2029-11-27T18:25:46Z", [str(BASE / "roots.pem")]
CODES = ("valid", "existence_only", "authority_not_established", "signer_not_established", "could_not_check",
         "not_valid")
# What the program alone judges: whose signatures these are, and the rules of signatures and of revocation data.
BY_THE_PROGRAM = ("genuine", "same-authority", "stolen", "chain/other-intermediate", "chain/superfluous", "signer",
                  "authority", "token/another-name", "signature", "document/rounds-12", "document/validation-02")
ORIGIN = "origin: certificate paths"
NOT_GIVEN = {"receipts: not given", "content parts: not all given", "reports: not given"}
LOG_SIGNATURES = "log: the signatures of the log and of its witnesses, which constancia verify --log-key checks"

pytestmark = pytest.mark.sqlite


class Client:
    """A process that verifies what it is asked about."""

    def __init__(self, program, **environment):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)

    def ask(self, archive, program="-", **options):
        """What the client says, with the program or without ("-")."""
        said = self.say(archive, program, **options)
        assert "error" not in said, said["error"]
        return said

    def say(self, archive, program="-", **options):
        self.process.stdin.write(json.dumps({"archive": str(archive), "program": str(program), **options}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def peak_kb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0])


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("go")
    run_go(folder, "build", "-o", folder / "verdicts", "./testdata/verdicts")
    return folder / "verdicts"


@pytest.fixture(scope="module")
def client(verdicts):
    with Client(verdicts) as asked:
        yield asked


@pytest.fixture
def genuine():
    return (BASE / "live.zip").read_bytes()


@pytest.fixture
def file_of(tmp_path):
    def write(data, name="evidence.zip"):
        path = tmp_path / name
        path.write_bytes(data)
        return path
    return write


def resigned(data):
    return forge.sign(forge.reasic(forge.resum(data)))


def codes_of(said):
    return [one["Code"] for one in said["Findings"] or []]


# ---- the corpus ----

def compare(client, case, directory):
    paths, trust, receipts = forge.write(case, directory)
    given = {"parts": [str(path) for path in paths[1:]], "at": case["at"]}
    if trust:
        given["trust"] = [str(trust)]
    if receipts:
        given["receipts"] = [str(receipts)]
    if "signer" in case:
        given["signer"] = [hashlib.sha256(forge.der_of(forge.certificate(case["signer"]))).hexdigest()]
    alone, both = client.ask(paths[0], **given), client.ask(paths[0], BINARY, **given)
    stated = case["code"]
    if both["Code"] != stated or (both["Verdict"] == "valid") != (stated == "valid"):
        yield f"with the program it is {both['Code']}, not {stated}: {both['Findings']}"
    if alone["Verdict"] == "valid" or alone["Code"] == "not_valid" != stated:
        yield f"alone it is {alone['Code']}, not {stated}: {alone['Findings']}"
    if CODES.index(alone["Code"]) < CODES.index(stated) and not case["name"].startswith(BY_THE_PROGRAM):
        yield f"alone it is {alone['Code']}, and {stated} is stated: {case.get('finding')}"
    if not any(one.startswith(ORIGIN) for one in alone["NotChecked"]) or alone["SignaturesBy"] == "program":
        yield "it does not say what was not checked"
    if both["Verdict"] == "valid" and (LOG_SIGNATURES in both["NotChecked"]) != case["name"].startswith("log/"):
        yield f"it has a log or not: {both['NotChecked']}"
    if both["Verdict"] == "valid" and not set(both["NotChecked"]) <= NOT_GIVEN | {LOG_SIGNATURES}:
        yield f"it is valid, and not all was checked: {both['NotChecked']}"
    if ("receipts: not given" in both["NotChecked"]) != (not receipts):
        yield f"receipts were given or not: {both['NotChecked']}"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_corpus(batch, client, tmp_path):
    assert len(CASES) >= CASES_MIN
    wrong = []
    for number, case in enumerate(CASES[batch::BATCHES]):
        directory = tmp_path / str(number)
        directory.mkdir()
        wrong += [f"{case['name']}: {what}" for what in compare(client, case, directory)]
        for path in directory.iterdir():
            path.unlink()
    assert not wrong, "\n".join(wrong)


# ---- what is said ----

def test_it_says_what_was_checked_and_by_whom(client, verdicts, tmp_path):
    check = client.ask(BASE / "live.zip", BINARY, trust=TRUST, at=AT, parts=[str(BASE / "part.zip")])
    assert check["Verdict"] == check["Code"] == "valid" and not check["Findings"]
    assert check["NotChecked"] == ["receipts: not given", "reports: not given"]
    assert check["SignaturesBy"] == "program" and check["Program"]["verdict"]["code"] == "valid"
    assert check["Manifest"]["frozen_range"]["first_sequence"] == 1 and check["StampedAt"].startswith("2026-")
    assert check["SignerSHA256"] == check["Program"]["signers"][0]["sha256"]
    alone = client.ask(BASE / "live.zip", trust=TRUST, at=AT)
    assert alone["Verdict"] == "origin_not_established" and not alone["Findings"]
    none = ["receipts: not given", "content parts: not all given", "reports: not given"]
    assert alone["SignaturesBy"] == "client"
    assert alone["NotChecked"][0].startswith(ORIGIN) and alone["NotChecked"][1:] == none
    kept = client.ask(BASE / "live.zip", receipts=[str(BASE / "receipts.json")])
    assert kept["NotChecked"][1:] == none[1:]
    with Client(verdicts, PATH=str(tmp_path)) as bare:
        assert bare.ask(BASE / "live.zip", "")["Program"] is None
        assert "not found" in bare.say(BASE / "live.zip", "other")["error"]
        (tmp_path / "constancia").symlink_to(BINARY)
        assert bare.ask(BASE / "live.zip", "", trust=TRUST, at=AT)["Verdict"] == "valid"
    test = client.ask(BASE / "test.zip", trust=TRUST, at=AT)
    assert test["Verdict"] == "origin_not_established" and "no probative value" in test["Warnings"][0]["What"]
    twice = client.ask(BASE / "live.zip", BINARY, trust=TRUST * 2, at=AT)
    assert twice["Verdict"] == "valid", "roots may be in several files"


@pytest.mark.parametrize("script", [
    "exit 0", "echo '{}'", "kill -9 $$", "echo '{\"verdict\":{\"code\":\"splendid\"},\"findings\":[],\"warnings\":[]}'",
    "echo '{\"verdict\":{\"code\":\"valid\"},\"findings\":[],\"warnings\":[]}'",
    "echo '{\"verdict\":{\"code\":\"valid\"},\"findings\":[],\"warnings\":[],\"files\":[{\"sha256\":\"0\"}]}'; exit 1"])
def test_a_program_that_fails_makes_nothing_valid(client, tmp_path, script):
    program = tmp_path / "constancia"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    check = client.ask(BASE / "live.zip", program)
    assert check["Code"] == "could_not_check" and codes_of(check) == ["client.program_failed"]
    assert any(one.startswith(ORIGIN) for one in check["NotChecked"])


def test_what_is_not_valid_here_stays_so_whatever_the_program_says(client, tmp_path, file_of, genuine):
    archive = file_of(genuine[:5000] + bytes([genuine[5000] ^ 1]) + genuine[5001:])
    program = tmp_path / "constancia"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    program.write_text("#!/bin/sh\necho '" + json.dumps({"verdict": {"code": "valid"}, "findings": [], "warnings": [],
                                                         "files": [{"sha256": digest}]}) + "'\n")
    program.chmod(0o755)
    assert client.ask(archive, program)["Verdict"] == client.ask(archive)["Verdict"] == "invalid"


def test_a_signer_that_was_not_asked_for_is_not_valid(client):
    own = client.ask(BASE / "live.zip")["SignerSHA256"]
    assert client.ask(BASE / "live.zip", BINARY, signer=[own.upper()], trust=TRUST, at=AT)["Verdict"] == "valid"
    for program in ("-", BINARY):
        assert client.ask(BASE / "live.zip", program, signer=["0" * 64])["Verdict"] == "invalid"


# ---- damage ----

@pytest.mark.parametrize("name", ["live.zip", "middle.zip", "last.zip", "renewed.zip", "test.zip"])
def test_a_flipped_bit_is_never_taken(client, name, file_of):
    data, chance = (BASE / name).read_bytes(), random.Random(name)
    begin, end = data.index(b"META-INF/signature001.p7s"), data.index(b"PK\1\2")
    for _ in range(200):
        at = chance.randrange(len(data))
        path = file_of(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:])
        verdict = client.ask(path)["Verdict"]
        assert verdict == "invalid" or verdict == "origin_not_established" and begin < at < end, at


def test_random_damage_with_all_digests_and_the_signature_made_right_is_found(client, file_of, genuine):
    """As the service itself could forge: what it says is signed and consistent but for one byte of a stream."""
    chance = random.Random(7)
    streams = ["events", "seals", "rounds", "validation"]
    agreed = 0
    for number in range(80):
        name = streams[number % len(streams)] + "/" + streams[number % len(streams)] + "-000001.ndjson.gz"
        line = bytearray(zlib.decompress(dict(forge.unpack(genuine))[name], 31))
        at = chance.randrange(len(line))
        line[at] ^= 1 << chance.randrange(8)
        compressor = zlib.compressobj(wbits=31)
        path = file_of(resigned(forge.replaced(genuine, name, compressor.compress(bytes(line)) + compressor.flush())))
        alone, both = client.ask(path), client.ask(path, BINARY, trust=TRUST, at=AT)
        told = both["Program"]["verdict"]["code"]
        assert alone["Verdict"] != "valid" and CODES.index(both["Code"]) >= CODES.index(told), (number, name, at)
        assert alone["Code"] != "not_valid" or told == "not_valid", (number, name, at, alone["Findings"])
        agreed += alone["Code"] == told
    assert agreed >= 68


def bomb(size):
    compressor = zlib.compressobj(9, wbits=31)
    return b"".join([*(compressor.compress(b"[" * (1 << 20)) for _ in range(size)), compressor.flush()])


@pytest.mark.parametrize("content", [
    bomb(512), b"", b"\x1f\x8b",
    *map(forge.zipped, (b"[" * 200_000 + b"\n", b'{"a":1e999}\n', b'{"a":' + b"9" * 9999 + b"}\n",
                        b'"\\ud800"\n', b"\xff\n",
                        b"null\n", b"\n" * 200_000))])
def test_hostile_streams_are_refused(client, file_of, genuine, content):
    path = file_of(resigned(forge.replaced(genuine, "events/events-000001.ndjson.gz", content)))
    assert client.ask(path)["Verdict"] == "invalid"


@pytest.mark.parametrize("edit", [
    lambda data: forge.rename(data, "README.txt", "../README.txt"),
    lambda data: forge.rename(data, "README.txt", "/etc/passwd"),
    lambda data: forge.double(data, "README.txt"), lambda data: data + b"\0", lambda data: b"\0" + data,
    lambda data: data[:-1], lambda data: b"PK\5\6" + bytes(18), lambda data: b"PK\3\4", forge.reverse,
    lambda data: data[:-14] + b"\xff\xff\xff\xff" + data[-10:]])
def test_other_shapes_of_zip_are_refused(client, file_of, genuine, edit):
    check = client.ask(file_of(edit(genuine)))
    assert check["Verdict"] == "invalid" and not check["Checked"] and check["Manifest"] is None


def test_what_is_no_archive_is_said(client, tmp_path):
    assert "no such file" in client.say(tmp_path / "missing.zip")["error"]
    assert "regular" in client.say(tmp_path)["error"]
    (tmp_path / "empty").touch()
    for path, code in ((tmp_path / "empty", "file.kind_unknown"), (BASE / "report-en.pdf", "file.kind_unknown"),
                       (BASE / "part.zip", "client.part_alone"), (BASE / "event.ers", "file.kind_unknown")):
        check = client.ask(path)
        assert check["Code"] == "could_not_check" and codes_of(check) == [code]
        assert client.ask(path, BINARY, trust=TRUST, at=AT)["Verdict"] != "valid", "the program judges reports"


def test_archives_of_earlier_versions(client):
    earlier = ROOT / "tests/support/fixtures/evidence-1"
    given = {"receipts": [str(earlier / "receipts.ndjson")], "parts": [str(earlier / "content-part-001.zip")],
             "trust": [str(earlier / "trust.pem")]}
    check = client.ask(earlier / "archive.zip", **given)
    assert check["Code"] == "signer_not_established" and not check["Findings"] and check["Receipts"]["Differing"] == 0
    assert client.ask(earlier / "archive.zip", BINARY, **given)["Verdict"] == "valid"


# ---- receipts ----

RECEIPTS = BASE / "receipts.json"


def test_receipts_agree_or_nothing_is_valid(client, tmp_path):
    own = json.loads(RECEIPTS.read_text())
    inside = {one["sequence"]: one for one in own if one["mode"] == "live"}
    spoilt = tmp_path / "spoilt.json"

    def check(path):
        return client.ask(BASE / "live.zip", BINARY, receipts=[str(path)], trust=TRUST, at=AT)
    told = check(RECEIPTS)
    assert told["Verdict"] == "valid" and told["Receipts"] == {"Compared": 3, "Differing": 0, "Outside": len(own) - 3}
    assert "receipts" in told["Checked"]
    lines = tmp_path / "receipts.ndjson"
    lines.write_text("".join(json.dumps(one) + "\n" for one in own))
    older = tmp_path / "receipts.ndjson.1"
    older.write_text(json.dumps(inside[1]) + "\n")
    assert check(lines)["Verdict"] == "valid" and check(lines)["Receipts"]["Compared"] == 4, "it was rotated"
    for name in ("event_id", "client_ref", "received_at", "hash", "modality", "config_version", "chain_hash"):
        other = {"received_at": "2026-01-01T00:00:00.000000Z", "config_version": 9, "modality": "hash_only",
                 "event_id": "evt_x", "client_ref": "x"}.get(name, "0" * 64)
        spoilt.write_text(json.dumps([{**inside[1], name: other}, *own]))
        said = check(spoilt)
        assert said["Code"] == "could_not_check" and said["Receipts"]["Differing"] == 1
        assert codes_of(said) == ["receipt.event_differs"] and name in said["Findings"][0]["What"]
    older.write_text(json.dumps({**inside[1], "chain_hash": "0" * 64}) + "\n")
    assert check(lines)["Code"] == "could_not_check", "nor is one passed over that was rotated away"


def test_receipts_of_other_events_are_counted_and_none_at_all_is_said(client, tmp_path):
    own = json.loads(RECEIPTS.read_text())
    live = next(one for one in own if one["mode"] == "live")
    path = tmp_path / "receipts.json"

    def check(content):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return client.ask(BASE / "live.zip", BINARY, receipts=[str(path)], trust=TRUST, at=AT)
    more = [{**live, "sequence": 99}, {**live, "channel_id": "chn_other"}, {**live, "mode": "test"}]
    told = check([live, *more])
    assert told["Verdict"] == "valid" and told["Receipts"] == {"Compared": 1, "Outside": 3, "Differing": 0}
    for alone in (more, [], ""):
        assert codes_of(check(alone)) == ["receipt.event_not_given"]
    for one_bad in ([7, live], [live, {}], f"{json.dumps(live)}\nx\n"):
        said = check(one_bad)
        assert said["Code"] == "could_not_check" and said["Receipts"]["Compared"] == 1, "the other one counts"
        assert codes_of(said) == ["receipt.malformed"]
    for bad in ([{}], [7], [None], [{**live, "sequence": "1"}], [{**live, "chain_hash": None}], "{", "[1",
                '{"a":1}\nx\n', "[" * 100_000):
        said = check(bad)
        assert said["Code"] == "could_not_check" and codes_of(said) == ["receipt.not_usable"]
        assert "receipts" in said["NotChecked"]
    missing = client.say(BASE / "live.zip", receipts=[str(tmp_path / "missing")])
    assert "there are no receipts" in missing["error"]


def test_an_event_that_was_acknowledged_and_left_out_at_the_start_is_found(client, file_of, tmp_path):
    """An archive of a range by time has to begin with the first event of that time."""
    data = (BASE / "middle.zip").read_bytes()
    first = json.loads(dict(forge.unpack(data))["manifest.json"])["frozen_range"]["first_sequence"]
    asked = {"from": "2026-01-01T00:00:00.000000Z", "to": "2030-01-01T00:00:00.000000Z", "seq_from": None,
             "seq_to": None}
    path = file_of(resigned(forge.change(data, "manifest.json", ["requested_range"], asked)))
    own = [one for one in json.loads(RECEIPTS.read_text()) if one["mode"] == "live"]
    assert first > 1
    kept = tmp_path / "receipts.json"
    for receipts, codes in (([one for one in own if one["sequence"] >= first], []), (own, ["client.left_out"])):
        kept.write_text(json.dumps(receipts))
        assert codes_of(client.ask(path, receipts=[str(kept)])) == codes


def test_an_archive_that_is_not_valid_is_so_whatever_number_of_receipts_differs(client, file_of, tmp_path):
    data = forge.make_file({"edits": [next(case for case in CASES if case["name"] == "genuine/history")["files"][0][
        "edits"][0]]})
    kept = tmp_path / "receipts.ndjson"
    kept.write_text((json.dumps({**forge.first_event(data), "client_ref": "other"}) + "\n") * 200)
    check = client.ask(file_of(data), receipts=[str(kept)])
    assert check["Code"] == "could_not_check" and check["Receipts"]["Differing"] == 200 and len(check["Findings"]) == 100
    forged = resigned(forge.change(data, forge.stream("seals"), [2, "path"], ["0" * 64]))
    check = client.ask(file_of(forged), receipts=[str(kept)])
    assert check["Code"] == "not_valid" and check["Receipts"]["Differing"] == 200 and len(check["Findings"]) == 100


def test_what_is_printed_has_no_control_characters(client, tmp_path):
    path = tmp_path / "evil\x1b]0;\n.ndjson"
    path.write_text(json.dumps({**json.loads(RECEIPTS.read_text())[0], "sequence": 0}))
    (finding,) = client.ask(BASE / "live.zip", receipts=[str(path)])["Findings"]
    assert finding["What"].isprintable() and "\\u{1b}" in finding["What"]


# ---- size ----

def test_memory_does_not_grow_with_the_archive(verdicts, tmp_path):
    """Two streams of events, and a receipt of each, of which a digest is kept."""
    files = dict(forge.unpack((BASE / "test.zip").read_bytes()))
    name = "events/events-000001.ndjson.gz"
    first = json.loads(zlib.decompress(files[name], 31).split(b"\n")[0])
    found = {}
    for count in (10, 110_000):
        lines, receipts, previous = [], [], first["previous_chain_hash"]
        for sequence in range(1, count + 1):
            event = {**first, "sequence": sequence, "event_id": f"evt_{sequence}", "client_ref": f"order-{sequence}",
                     "previous_chain_hash": previous}
            line = forge.canonical(event)
            previous = hashlib.sha256(line).hexdigest()
            lines.append(line + b"\n")
            receipts.append(json.dumps({**event, "mode": "test", "chain_hash": previous}) + "\n")
            if sequence == 1:
                first_hash = previous
        manifest = json.loads(files["manifest.json"])
        manifest.update(event_count=count, first_chain_hash=first_hash, last_chain_hash=previous,
                        frozen_range={"first_sequence": 1, "last_sequence": count},
                        requested_range={"from": None, "seq_from": 1, "seq_to": count, "to": None})
        made = {}
        for entry, content in files.items():
            if entry == name:
                for number in range(0, count, 100_000):
                    made[f"events/events-{number // 100_000 + 1:06}.ndjson.gz"] = forge.zipped(
                        b"".join(lines[number:number + 100_000]))
            else:
                made[entry] = forge.canonical(manifest) if entry == "manifest.json" else content
        path, kept = tmp_path / f"{count}.zip", tmp_path / f"{count}.ndjson"
        path.write_bytes(resigned(forge.pack(made.items())))
        kept.write_text("".join(receipts))
        with Client(verdicts) as small:
            said = small.ask(path, receipts=[str(kept)])
            assert said["Verdict"] == "origin_not_established" and said["Receipts"]["Compared"] == count
            found[count] = small.peak_kb()
    assert found[110_000] - found[10] < 96 * 1024, found  # KiB; the events have 60 MB, the receipts 66


SEGMENT = 3000, 32768  # events, and the bytes of each


def test_memory_does_not_grow_with_a_segment(verdicts, tmp_path):
    """Its events are not held until its root is compared, whatever the comparison leads to."""
    data = forge.large_segment(*SEGMENT)
    event = forge.first_event(data)
    archive, kept = tmp_path / "large.zip", tmp_path / "receipt.json"

    def check(content, client_ref):
        archive.write_bytes(content)
        kept.write_text(json.dumps({**event, "client_ref": client_ref}))
        with Client(verdicts) as small:
            said = small.ask(archive, receipts=[str(kept)])
            assert small.peak_kb() < 64 * 1024  # the events have 96 MiB
        return said["Code"], codes_of(said)
    forged = resigned(forge.change(data, forge.stream("seals"), [0, "path"], ["0" * 64]))
    assert check(data, event["client_ref"]) == ("signer_not_established", [])
    assert check(data, "other") == ("could_not_check", ["receipt.event_differs"])
    assert check(forged, "other") == ("not_valid", ["client.not_valid"]), "nothing is said of events before that"


def test_memory_does_not_grow_with_a_log(verdicts, tmp_path):
    """Its checkpoints are read as they are needed."""
    archive = tmp_path / "large.zip"
    archive.write_bytes(forge.large_log(1200, 60_000))
    with Client(verdicts) as small:
        said = small.ask(archive)
        assert (said["Code"], codes_of(said)) == ("signer_not_established", [])
        assert small.peak_kb() < 64 * 1024  # the checkpoints have 72 MB
