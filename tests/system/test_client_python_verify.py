"""The Python client's own check of evidence archives: against the corpus of damaged and forged evidence, random
damage, and archives of any size. It is never better than what `constancia verify` says."""

import hashlib
import json
import os
import random
import subprocess
import sys
import zlib

import pytest

from client import fresh
from program import BINARY, ROOT
from scripted import CLIENT

import constancia
import tlog
from constancia import verification, verify_archive
from constancia._evidence import cms, log
from constancia.verification import CODES

sys.path.insert(0, str(ROOT / "tests/corpus/evidence"))
import forge  # noqa: E402

CASES = [case for case in forge.load_cases() if case["kind"] == "archive"]
BATCHES = 8
BASE = ROOT / "tests/corpus/evidence/base"
AT, TRUST = "2029-11-27T18:25:46Z", BASE / "roots.pem"
# What the program alone judges: whose signatures these are, and the rules of signatures and of revocation data.
BY_THE_PROGRAM = ("genuine", "same-authority", "stolen", "chain/other-intermediate", "chain/superfluous", "signer",
                  "authority", "token/another-name", "signature", "document/rounds-12", "document/validation-02")
NOT_GIVEN = {verification.RECEIPTS_NOT_GIVEN, verification.CONTENT_NOT_GIVEN, verification.REPORTS_NOT_GIVEN}

pytestmark = pytest.mark.sqlite


def rank(code):
    return CODES.index(code)


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


# ---- the corpus ----

def compare(case, directory):
    paths, trust, receipts = forge.write(case, directory)
    given = {"parts": paths[1:], "receipts": receipts, "at": case["at"], "trust": trust,
             "signer": [hashlib.sha256(forge.der_of(forge.certificate(case["signer"]))).hexdigest()]
             if "signer" in case else []}
    alone, both = verify_archive(paths[0], program=False, **given), verify_archive(paths[0], program=BINARY, **given)
    stated = case["code"]
    if both.code != stated or bool(both) != (stated == "valid"):
        yield f"with the program it is {both.code}, not {stated}: {both.findings[:2]}"
    if alone or alone.code == "not_valid" != stated:
        yield f"alone it is {alone.code}, not {stated}: {alone.findings[:2]}"
    if rank(alone.code) < rank(stated) and not case["name"].startswith(BY_THE_PROGRAM):
        yield f"alone it is {alone.code}, and {stated} is stated: {case.get('finding')}"
    if verification.ORIGIN not in alone.not_checked or alone.signatures_by == "program":
        yield "it does not say what was not checked"
    if both.verdict == "valid" and (verification.LOG_SIGNATURES in both.not_checked) != case["name"].startswith("log/"):
        yield f"it has a log or not: {both.not_checked}"
    if both.verdict == "valid" and not set(both.not_checked) <= NOT_GIVEN | {verification.LOG_SIGNATURES}:
        yield f"it is valid, and not all was checked: {both.not_checked}"
    if (verification.RECEIPTS_NOT_GIVEN in both.not_checked) != (receipts is None):
        yield f"receipts were given or not: {both.not_checked}"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_corpus(batch, tmp_path):
    wrong = []
    for number, case in enumerate(CASES[batch::BATCHES]):
        directory = tmp_path / str(number)
        directory.mkdir()
        wrong += [f"{case['name']}: {what}" for what in compare(case, directory)]
        for path in directory.iterdir():
            path.unlink()
    assert not wrong, "\n".join(wrong)


# ---- what is said ----

def test_it_says_what_was_checked_and_by_whom(tmp_path, monkeypatch):
    check = verify_archive(BASE / "live.zip", trust=TRUST, at=AT, parts=[BASE / "part.zip"], program=BINARY)
    assert check and check.valid and check.findings == []
    assert check.not_checked == ["receipts: not given", "reports: not given"]
    assert check.signatures_by == "program" and check.program["verdict"]["code"] == "valid"
    assert check.manifest["frozen_range"]["first_sequence"] == 1 and check.stamped_at.year == 2026
    assert check.signer_sha256 == check.program["signers"][0]["sha256"]
    alone = verify_archive(BASE / "live.zip", trust=TRUST, at=AT, program=False)
    assert not alone and alone.verdict == "origin_not_established" and alone.findings == []
    assert alone.signatures_by == "cryptography"
    none = ["receipts: not given", "content parts: not all given", "reports: not given"]
    assert alone.not_checked == [verification.ORIGIN, *none]
    kept = verify_archive(BASE / "live.zip", receipts=BASE / "receipts.json", program=False)
    assert kept.not_checked == [verification.ORIGIN, *none[1:]]
    monkeypatch.setattr(cms, "HAS_CRYPTOGRAPHY", False)
    bare = verify_archive(BASE / "live.zip", trust=TRUST, program=False)
    assert not bare and bare.verdict == "origin_not_established" and bare.signatures_by is None
    assert bare.not_checked == [verification.SIGNATURES, verification.ORIGIN, *none]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert verify_archive(BASE / "live.zip", trust=TRUST).program is None
    with pytest.raises(FileNotFoundError):
        verify_archive(BASE / "live.zip", program=True)
    (tmp_path / "constancia").symlink_to(BINARY)
    assert verify_archive(BASE / "live.zip", trust=TRUST, at=AT)
    test = verify_archive(BASE / "test.zip", trust=TRUST, at=AT, program=False)
    assert test.verdict == "origin_not_established" and "no probative value" in test.warnings[0].what


@pytest.mark.parametrize("script, code", [
    ("exit 0", "client.program_failed"), ("echo '{}'", "client.program_failed"),
    ("echo '{\"verdict\":{\"code\":\"splendid\"},\"findings\":[],\"warnings\":[]}'", "client.program_failed"),
    ("echo '{\"verdict\":{\"code\":\"valid\"},\"findings\":[],\"warnings\":[]}'", "client.program_failed"),
    ("echo '{\"verdict\":{\"code\":\"valid\"},\"findings\":[],\"warnings\":[],\"files\":[{\"sha256\":\"0\"}]}'; exit 1",
     "client.program_failed"), ("kill -9 $$", "client.program_failed")])
def test_a_program_that_fails_makes_nothing_valid(tmp_path, script, code):
    program = tmp_path / "constancia"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    check = verify_archive(BASE / "live.zip", program=program)
    assert check.code == "could_not_check" and check.findings[0].code == code
    assert verification.ORIGIN in check.not_checked


def test_what_is_not_valid_here_stays_so_whatever_the_program_says(tmp_path, file_of, genuine):
    archive = file_of(genuine[:5000] + bytes([genuine[5000] ^ 1]) + genuine[5001:])
    program = tmp_path / "constancia"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    program.write_text("#!/bin/sh\necho '" + json.dumps({"verdict": {"code": "valid"}, "findings": [], "warnings": [],
                                                         "files": [{"sha256": digest}]}) + "'\n")
    program.chmod(0o755)
    assert verify_archive(archive, program=program).verdict == "invalid"
    assert verify_archive(archive, program=False).verdict == "invalid"


def test_a_signer_that_was_not_asked_for_is_not_valid():
    own = verify_archive(BASE / "live.zip", program=False).signer_sha256
    assert verify_archive(BASE / "live.zip", signer=[own.upper()], trust=TRUST, at=AT, program=BINARY)
    for program in (False, BINARY):
        assert verify_archive(BASE / "live.zip", signer=["0" * 64], program=program).verdict == "invalid"


# ---- damage ----

@pytest.mark.parametrize("name", ["live.zip", "middle.zip", "last.zip", "renewed.zip", "test.zip"])
def test_a_flipped_bit_is_never_taken(name, file_of):
    data, chance = (BASE / name).read_bytes(), random.Random(name)
    begin = data.index(b"META-INF/signature001.p7s")
    end = data.index(b"PK\1\2")
    for _ in range(120):
        at = chance.randrange(len(data))
        path = file_of(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:])
        check = verify_archive(path, program=False)
        assert not check
        assert check.verdict == "invalid" or begin < at < end, at


def test_random_damage_with_all_digests_and_the_signature_made_right_is_found(file_of, genuine):
    """As the service itself could forge: what it says is signed and consistent but for one byte of a stream."""
    chance = random.Random(7)
    streams = ["events", "seals", "rounds", "validation"]
    agreed = 0
    for number in range(60):
        name = streams[number % len(streams)] + "/" + streams[number % len(streams)] + "-000001.ndjson.gz"
        files = dict(forge.unpack(genuine))
        line = bytearray(zlib.decompress(files[name], 31))
        at = chance.randrange(len(line))
        line[at] ^= 1 << chance.randrange(8)
        compressor = zlib.compressobj(wbits=31)
        forged = resigned(forge.replaced(genuine, name, compressor.compress(bytes(line)) + compressor.flush()))
        path = file_of(forged)
        alone, both = verify_archive(path, program=False), verify_archive(path, program=BINARY, trust=TRUST, at=AT)
        told = both.program["verdict"]["code"]
        assert not alone and rank(both.code) >= rank(told), (number, name, at)
        assert alone.code != "not_valid" or told == "not_valid", (number, name, at, alone.findings)
        agreed += alone.code == told
    assert agreed >= 50


def bomb(size):
    compressor = zlib.compressobj(9, wbits=31)
    return b"".join([*(compressor.compress(b"[" * (1 << 20)) for _ in range(size)), compressor.flush()])


@pytest.mark.parametrize("content", [
    bomb(512), b"", b"\x1f\x8b",
    *map(forge.zipped, (b"[" * 200_000 + b"\n", b'{"a":1e999}\n', b'{"a":' + b"9" * 9999 + b"}\n", b'"\\ud800"\n', b"\xff\n",
                        b"null\n", b"\n" * 200_000))])
def test_hostile_streams_are_refused(file_of, genuine, content):
    path = file_of(resigned(forge.replaced(genuine, "events/events-000001.ndjson.gz", content)))
    assert verify_archive(path, program=False).verdict == "invalid"


@pytest.mark.parametrize("edit", [
    lambda data: forge.rename(data, "README.txt", "../README.txt"),
    lambda data: forge.rename(data, "README.txt", "/etc/passwd"),
    lambda data: forge.double(data, "README.txt"), lambda data: data + b"\0", lambda data: b"\0" + data,
    lambda data: data[:-1], lambda data: b"PK\5\6" + bytes(18), lambda data: b"PK\3\4", forge.reverse,
    lambda data: data[:-14] + b"\xff\xff\xff\xff" + data[-10:]])
def test_other_shapes_of_zip_are_refused(file_of, genuine, edit):
    check = verify_archive(file_of(edit(genuine)), program=False)
    assert check.verdict == "invalid" and verification.STRUCTURE in check.not_checked and check.manifest is None


def test_what_is_no_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        verify_archive(tmp_path / "missing.zip", program=False)
    (tmp_path / "empty").touch()
    for path, code in ((tmp_path / "empty", "file.kind_unknown"), (BASE / "report-en.pdf", "file.kind_unknown"),
                       (BASE / "part.zip", "client.part_alone"), (BASE / "event.ers", "file.kind_unknown")):
        check = verify_archive(path, program=False)
        assert check.code == "could_not_check" and [one.code for one in check.findings] == [code]
        assert not verify_archive(path, program=BINARY, trust=TRUST, at=AT), "the program judges reports, this does not"


def test_archives_of_earlier_versions():
    earlier = ROOT / "tests/support/fixtures/evidence-1"
    given = {"receipts": earlier / "receipts.ndjson", "parts": [earlier / "content-part-001.zip"],
             "trust": earlier / "trust.pem"}
    check = verify_archive(earlier / "archive.zip", program=False, **given)
    assert check.code == "signer_not_established" and check.findings == [] and check.receipts.differing == 0
    assert verify_archive(earlier / "archive.zip", program=BINARY, **given)


# ---- receipts ----

RECEIPTS = BASE / "receipts.json"


def test_receipts_agree_or_nothing_is_valid(tmp_path):
    own = json.loads(RECEIPTS.read_text())
    inside = {one["sequence"]: one for one in own if one["mode"] == "live"}

    def check(receipts, **more):
        return verify_archive(BASE / "live.zip", receipts=receipts, trust=TRUST, at=AT, program=BINARY, **more)
    told = check(RECEIPTS)
    assert told and told.receipts.compared == 3 and told.receipts.differing == 0
    assert verification.RECEIPTS in told.checked
    lines = tmp_path / "receipts.ndjson"
    lines.write_text("".join(json.dumps(one) + "\n" for one in own))
    older = tmp_path / "receipts.ndjson.1"
    older.write_text(json.dumps(inside[1]) + "\n")
    for given in (lines, str(lines), constancia.ReceiptFile(lines), [lines], own, inside[1],
                  constancia.models.decode(constancia.Event, inside[1])):
        assert check(given), given
    assert check(lines).receipts.compared == 4, "the file it was rotated to counts"
    for name in ("event_id", "client_ref", "received_at", "hash", "modality", "config_version", "chain_hash"):
        other = {"received_at": "2026-01-01T00:00:00.000000Z", "config_version": 9, "modality": "hash_only",
                 "event_id": "evt_x", "client_ref": "x"}.get(name, "0" * 64)
        spoilt = check([{**inside[1], name: other}, *own])
        assert spoilt.code == "could_not_check" and spoilt.receipts.differing == 1
        assert [(one.code, name in one.what) for one in spoilt.findings] == [("receipt.event_differs", True)]
    older.write_text(json.dumps({**inside[1], "chain_hash": "0" * 64}) + "\n")
    assert check(lines).code == "could_not_check", "nor is one passed over that was rotated away"


def test_receipts_of_other_events_are_counted_and_none_at_all_is_said(tmp_path):
    own = json.loads(RECEIPTS.read_text())
    live = next(one for one in own if one["mode"] == "live")

    def check(receipts):
        return verify_archive(BASE / "live.zip", receipts=receipts, trust=TRUST, at=AT, program=BINARY)
    more = [{**live, "sequence": 99}, {**live, "channel_id": "chn_other"}, {**live, "mode": "test"}]
    told = check([live, *more])
    assert told and (told.receipts.compared, told.receipts.outside) == (1, 3)
    for alone in (more, []):
        nothing = check(alone)
        assert nothing.code == "could_not_check" and nothing.findings[0].code == "receipt.event_not_given"
    spoilt = tmp_path / "one-spoilt"
    spoilt.write_text(f"x\n{json.dumps(live)}\n{{\n")
    for one_bad, count in (([7, live], 1), ([live, {}], 1), (spoilt, 2)):
        told = check(one_bad)
        assert told.code == "could_not_check" and told.receipts.compared == 1, "the other one counts"
        assert [one.code for one in told.findings] == ["receipt.malformed"] * count
    for bad in ([{}], [7], [None], [{**live, "sequence": "1"}], [{**live, "chain_hash": None}]):
        unusable = check(bad)
        assert unusable.code == "could_not_check" and unusable.findings[0].code == "receipt.not_usable"
        assert verification.RECEIPTS in unusable.not_checked
    for text in ("{", "[1", '{"a":1}\nx\n', "[" * 100_000):
        path = tmp_path / "spoilt"
        path.write_text(text)
        assert check(path).findings[0].code == "receipt.not_usable"
    with pytest.raises(FileNotFoundError):
        check(tmp_path / "missing")


def test_an_event_that_was_acknowledged_and_left_out_at_the_start_is_found(file_of):
    """An archive of a range by time has to begin with the first event of that time."""
    data = (BASE / "middle.zip").read_bytes()
    manifest = json.loads(dict(forge.unpack(data))["manifest.json"])
    first = manifest["frozen_range"]["first_sequence"]
    asked = {"from": "2026-01-01T00:00:00.000000Z", "to": "2030-01-01T00:00:00.000000Z", "seq_from": None,
             "seq_to": None}
    path = file_of(resigned(forge.change(data, "manifest.json", ["requested_range"], asked)))
    own = [one for one in json.loads(RECEIPTS.read_text()) if one["mode"] == "live"]
    assert first > 1
    for receipts, codes in (([one for one in own if one["sequence"] >= first], []), (own, ["client.left_out"])):
        check = verify_archive(path, receipts=receipts, program=False)
        assert [one.code for one in check.findings] == codes, check.findings


def test_what_is_printed_has_no_control_characters(tmp_path):
    receipt = json.loads(RECEIPTS.read_text())[0]
    path = tmp_path / "evil\x1b]0;\n.ndjson"
    path.write_text(json.dumps({**receipt, "sequence": 0}))
    (finding,) = verify_archive(BASE / "live.zip", receipts=path, program=False).findings
    assert finding.what.isprintable() and "\\x1b" in finding.what


# ---- size ----

SCRIPT = r"""
import re, sys
from constancia import verify_archive
check = verify_archive(sys.argv[1], receipts=sys.argv[2], program=False)
print(check.verdict, check.receipts.compared, re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""

SEGMENT_SCRIPT = r"""
import re, sys
from constancia import verify_archive
check = verify_archive(sys.argv[1], receipts=sys.argv[2], program=False)
print(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1], check.code, *(one.code for one in check.findings))
"""


def test_memory_does_not_grow_with_the_archive(tmp_path):
    """Two streams of events, and a receipt of each."""
    files = dict(forge.unpack((BASE / "test.zip").read_bytes()))
    name = "events/events-000001.ndjson.gz"
    first = json.loads(zlib.decompress(files[name], 31).split(b"\n")[0])
    found = {}
    for count in (10, 150_000):
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
        done = subprocess.run([sys.executable, "-c", SCRIPT, path, kept], capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(CLIENT), "PYTHONDONTWRITEBYTECODE": "1"})
        assert done.returncode == 0, done.stderr
        verdict, compared, memory = done.stdout.split()
        assert (verdict, int(compared)) == ("origin_not_established", count)
        found[count] = int(memory)
    assert found[150_000] - found[10] < 32 * 1024, found  # KiB; the events have 80 MB, the receipts 90


def test_memory_does_not_grow_with_a_segment(tmp_path):
    """Its events are not held until its root is compared, whatever the comparison leads to."""
    data = forge.large_segment(3000, 32768)
    event = forge.first_event(data)
    archive, kept = tmp_path / "large.zip", tmp_path / "receipt.json"

    def check(content, client_ref):
        archive.write_bytes(content)
        kept.write_text(json.dumps({**event, "client_ref": client_ref}))
        done = subprocess.run([sys.executable, "-c", SEGMENT_SCRIPT, archive, kept], capture_output=True, text=True,
                              check=False, env={**os.environ, "PYTHONPATH": str(CLIENT), "PYTHONDONTWRITEBYTECODE": "1"})
        assert done.returncode == 0, done.stderr
        memory, *codes = done.stdout.split()
        assert int(memory) < 80 * 1024  # KiB; the events have 96 MiB, the interpreter and its libraries 40
        return codes
    forged = resigned(forge.change(data, forge.stream("seals"), [0, "path"], ["0" * 64]))
    assert check(data, event["client_ref"]) == ["signer_not_established"]
    assert check(data, "other") == ["could_not_check", "receipt.event_differs"]
    assert check(forged, "other") == ["not_valid", "client.not_valid"], "nothing is said of events before that"


def test_memory_does_not_grow_with_a_log(tmp_path):
    """Its checkpoints are read as they are needed."""
    archive, kept = tmp_path / "large.zip", tmp_path / "receipt.json"
    data = forge.large_log(1200, 60_000)
    archive.write_bytes(data)
    kept.write_text(json.dumps(forge.first_event(data)))
    done = subprocess.run([sys.executable, "-c", SEGMENT_SCRIPT, archive, kept], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(CLIENT), "PYTHONDONTWRITEBYTECODE": "1"})
    memory, *codes = done.stdout.split()
    assert codes == ["signer_not_established"], done.stderr
    assert int(memory) < 80 * 1024  # KiB; the checkpoints have 72 MB, the interpreter and its libraries 40


# ---- the log ----

def test_proofs_of_an_implementation_of_its_own():
    """tests/support/tlog.py makes them; each one is refused for another leaf, another tree, and with a hash more or less."""
    leaves = [tlog.leaf_hash(b"%d" % number) for number in range(20)]
    roots = [tlog.root(leaves[:size]) for size in range(len(leaves) + 1)]
    for size in range(1, len(roots)):
        for index in range(size):
            path = tlog.inclusion(leaves[:size], index)
            assert log.is_included(leaves[index], index, size, path, roots[size])
            for other in ((leaves[index], (index + 1) % size, size, path), (leaves[index - 1], index, size, path),
                          (leaves[index], index, size, path[:-1]), (leaves[index], index, size, [*path, leaves[0]])):
                assert size == 1 and other[3] == path or not log.is_included(*other, roots[size]), other
        for old in range(size):
            path = tlog.consistency(leaves[:size], old)
            assert log.is_consistent(old, roots[old], size, roots[size], path)
            assert not log.is_consistent(old, roots[size], size, roots[size], path)
            assert not log.is_consistent(old, roots[old], size, roots[size], [*path, leaves[0]])
            assert old == 0 or not log.is_consistent(old, roots[old], size, roots[old], path)
            assert old == 0 or not log.is_consistent(old, roots[old], size, roots[size], path[:-1])


# ---- of the service ----

def test_what_the_service_issues_is_valid(service, channel, tmp_path):
    receipts, source = tmp_path / "receipts.ndjson", tmp_path / "source"
    source.write_bytes(b"I declare.")
    with constancia.Client(f"{service.public_url}/v1", channel.live_key["key"], receipts=receipts) as client:
        for n in range(5):
            client.register(fresh(), {"n": n})
        client.register_file(fresh(), source)
        done = client.wait(client.certify(seq_from=2, seq_to=6), timeout=300)
        files = client.save(done, tmp_path / "files")
        parts = [one for one in files if "content-part" in one.name]
        (archive,) = [one for one in files if one.suffix == ".zip" and one not in parts]
        trust = service.data / "trust.pem"
        check = client.verify_archive(archive, receipts=receipts, parts=parts, trust=trust, program=BINARY)
        assert check.valid, check.findings
        assert check.receipts.compared == 5 and check.receipts.outside == 1
        assert client.verify(archive, trust=trust, program=BINARY) and client.verify(str(archive), trust=trust,
                                                                                     program=BINARY)
        alone = client.verify_archive(archive, receipts=receipts, parts=parts, program=False)
        assert alone.verdict == "origin_not_established"
        assert [one for one in alone.not_checked if one not in NOT_GIVEN] == [verification.ORIGIN,
                                                                              verification.LOG_SIGNATURES]
        assert verification.LOG in alone.checked
        spoilt = parts[0].read_bytes().replace(b"I declare.", b"I disclaim")
        parts[0].write_bytes(spoilt)
        assert not client.verify_archive(archive, parts=parts, program=False)
