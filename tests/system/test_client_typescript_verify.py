"""Verification of archives by the TypeScript client: it never finds valid what `constancia verify` does not, whatever
was done to an archive, and finds damage by itself wherever no certificate has to be judged."""

import gzip
import hashlib
import json
import random
import subprocess
import sys

import pytest

from program import BINARY, ROOT
from test_client_typescript import CLIENT, program, run  # noqa: F401 (program is a fixture)

CORPUS = ROOT / "tests" / "corpus" / "evidence"
sys.path.insert(0, str(CORPUS))
import forge  # noqa: E402

CASES = [case for case in forge.load_cases() if case["kind"] == "archive"]
CASES_MIN = 500
# Refusals that need what the client leaves to the program, by their finding: certificates, revocation data, CMS.
BY_PROGRAM = ("certificate", "signing-certificate", "revocation", "validation data", "required signers",
              "version of the SignedData", "TSTInfo", "digest algorithm", "signing-time", "'revocations'",
              "list of signers")
NOT_GIVEN = {"receipts: not given", "content parts: not all given", "reports: not given"}
LOG_SIGNATURES = "log: the signatures of the log and of its witnesses, which constancia verify --log-key checks"
MUTATIONS = 150
# Of a document whose every byte the client judges; of the others some is left to the program.
ALL_HERE = ("genesis.json", "config/", "events/", "leaves/", "seals/")
HEAP_MB = 40
PEAK_KB = 220 * 1024
EVENTS = 110_000
LINES_MAX = 100_000

pytestmark = pytest.mark.sqlite


class Client:
    """A process of Node that verifies what it is asked about."""

    def __init__(self, folder, *options):
        self.process = subprocess.Popen(["node", *options, "verdicts.mjs"], cwd=folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)

    def ask(self, archive, verifier, **options):
        """What the client says, with the program `verifier` or without (False)."""
        question = {"archive": str(archive), "program": verifier, **options}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        assert "error" not in said, said["error"]
        return said


@pytest.fixture(scope="module")
def client(program):  # noqa: F811
    with Client(program) as asked:
        yield asked


def of_case(case, directory):
    """The archive of a case, and the client's options for it."""
    paths, trust, receipts = forge.write(case, directory)
    options = {"at": case["at"], "parts": [str(path) for path in paths[1:]]}
    if trust:
        options["trust"] = str(trust)
    if receipts:
        options["receipts"] = str(receipts)
    return paths[0], options


def faults_of(case, client, directory):  # pylint: disable=redefined-outer-name
    archive, options = of_case(case, directory)
    alone = client.ask(archive, False, **options)
    if alone["verdict"] == "valid":
        yield "valid without the program"
    if alone["code"] == "not_valid" and case["code"] != "not_valid":
        yield f"refused: {alone['findings'][0]}"
    left = any(word in case.get("finding", "") for word in BY_PROGRAM)
    if case["code"] == "not_valid" and alone["code"] != "not_valid" and not left:
        yield f"not seen: {case.get('finding')}"
    if "signer" not in case:  # the client does not ask for single certificates
        both = client.ask(archive, str(BINARY), **options)
        if both["code"] != case["code"]:
            yield f"{both['code']}, not {case['code']}: {both['findings'][:1]}"
        if both["verdict"] == "valid" and (LOG_SIGNATURES in both["notChecked"]) != case["name"].startswith("log/"):
            yield f"it has a log or not: {both['notChecked']}"
        if both["verdict"] == "valid" and not set(both["notChecked"]) <= NOT_GIVEN | {LOG_SIGNATURES}:
            yield f"it is valid, and not all was checked: {both['notChecked']}"


def test_the_corpus(client, tmp_path):  # pylint: disable=redefined-outer-name
    assert len(CASES) >= CASES_MIN
    wrong = []
    for number, case in enumerate(CASES):
        directory = tmp_path / str(number)
        directory.mkdir()
        wrong += [f"{case['name']}: {fault}" for fault in faults_of(case, client, directory)]
        for path in directory.iterdir():
            path.unlink()
    assert not wrong, "\n".join(wrong)


# ---- random changes, signed again by the service's key ----

def places_of(value, path=()):
    """Paths to all that can be changed in a document."""
    yield path
    if isinstance(value, (dict, list)):
        for step, inside in (value.items() if isinstance(value, dict) else enumerate(value)):
            yield from places_of(inside, (*path, step))


def other_value(value, chosen):
    if isinstance(value, str) and value:
        at = chosen.randrange(len(value))
        changed = value[:at] + chosen.choice("0123456789abcdefZ") + value[at + 1:]
        return chosen.choice([changed, value[:at], None, value.upper()])
    if isinstance(value, bool) or value is None:
        return chosen.choice([True, False, None, "", "0"])
    if isinstance(value, int):
        return chosen.choice([value + 1, value - 1, -value, value * 10, str(value), 2**53, None])
    if isinstance(value, list):
        return chosen.choice([value[:-1], [*value, *value[:1]], value[::-1], [], None])
    return chosen.choice([{}, None, "", {**(value or {}), "later": 1}])


def mutated_document(value, chosen):
    path = chosen.choice([place for place in places_of(value) if place])
    inside = value
    for step in path[:-1]:
        inside = inside[step]
    if isinstance(inside, dict) and chosen.random() < 0.1:
        del inside[path[-1]]
    else:
        inside[path[-1]] = other_value(inside[path[-1]], chosen)


def mutated(data, chosen):
    """The archive with a random change, with all digests and the signature as the service makes them; its place."""
    files = forge.unpack(data)
    name = chosen.choice([name for name, _ in files if name.endswith((".gz", ".json"))])
    content = dict(files)[name]
    if name.endswith(".json"):
        value = json.loads(content)
        mutated_document(value, chosen)
        changed = forge.canonical(value)
    else:
        lines = [json.loads(line) for line in gzip.decompress(content).splitlines()]
        at = chosen.randrange(len(lines))
        what = chosen.choice(["change"] * 6 + ["drop", "double", "order"])
        if what == "change":
            mutated_document(lines[at], chosen)
        elif what == "order":
            lines.reverse()
        else:
            lines[at:at + 1] = [] if what == "drop" else [lines[at]] * 2
        changed = forge.write_lines(lines)
    if changed == content or (name.endswith(".gz") and gzip.decompress(changed) == gzip.decompress(content)):
        return None, name
    data = forge.replaced(data, name, changed)
    if name != forge.MANIFEST:
        return forge.EDITS["sign"](forge.EDITS["resum"](data)), name
    return forge.EDITS["sign"](forge.EDITS["reasic"](data)), name


def test_random_changes_under_the_services_key(client, tmp_path):  # pylint: disable=redefined-outer-name
    chosen = random.Random(33)
    trust, archive = CORPUS / "base" / "roots.pem", tmp_path / "changed.zip"
    refused = 0
    for number in range(MUTATIONS):
        try:
            data, name = mutated(forge.base(chosen.choice(["live.zip", "middle.zip", "renewed.zip"])), chosen)
        except (ValueError, TypeError):  # a time of the manifest that nothing can be signed at
            continue
        if data is None:
            continue
        archive.write_bytes(data)
        done = subprocess.run([BINARY, "verify", archive, "--json", "--config", "", "--trust", trust],
                              capture_output=True, check=False)
        alone = client.ask(archive, False)
        both = client.ask(archive, str(BINARY), trust=str(trust))
        what = (number, name, done.returncode, alone, json.loads(done.stdout)["findings"][:1])
        assert alone["verdict"] != "valid", what
        assert (both["verdict"] == "valid") == (done.returncode == 0), what
        assert alone["verdict"] != "invalid" or done.returncode == 1, what
        if name.startswith(ALL_HERE):
            assert (alone["verdict"] == "invalid") == (done.returncode == 1), what
        refused += alone["verdict"] == "invalid"
    assert refused > MUTATIONS / 2


def altered_part(data, chosen):
    """A content part with a random change in its shape, signed by the service's key."""
    files = forge.unpack(data)
    lines = [json.loads(line) for line in files[-1][1].splitlines()]
    what = chosen.choice(["index", "content", "name", "drop", "double", "swap", "head", "line", "end", "order", "crc"])
    if what == "index":
        mutated_document(lines[chosen.randrange(len(lines))], chosen)
    elif what == "line":
        lines.pop(chosen.randrange(len(lines)))
    elif what == "order":
        lines.reverse()
    elif what == "swap":
        files[1], files[2] = (files[1][0], files[2][1]), (files[2][0], files[1][1])
    elif what == "drop":
        files.pop(chosen.randrange(len(files)))
    elif what == "double":
        at = chosen.randrange(1, len(files) - 1)
        files.insert(at, (f"content/{chosen.randrange(10**6):012}.bin", files[at][1]))
    elif what == "name":
        files[1] = (chosen.choice(["content/1.json", "content/000000000001.txt", "../000000000001.json"]), files[1][1])
    elif what == "content":
        files[1] = (files[1][0], files[1][1] + b" ")
    elif what == "head":
        head = json.loads(files[0][1])
        mutated_document(head, chosen)
        files[0] = ("part.json", forge.canonical(head))
    if files[-1][0] == "index.ndjson":
        index = b"".join(forge.canonical(line) + b"\n" for line in lines)
        files[-1] = ("index.ndjson", index[:-1] if what == "end" else index)
    return what, forge.pack(files, crc=1) if what == "crc" else forge.pack(files)


def test_altered_parts_under_the_services_key(client, tmp_path):  # pylint: disable=redefined-outer-name
    chosen = random.Random(9)
    trust, archive, part = CORPUS / "base" / "roots.pem", tmp_path / "evidence.zip", tmp_path / "part.zip"
    data, genuine = forge.base("live.zip"), forge.base("part.zip")
    part.write_bytes(genuine)
    archive.write_bytes(data)
    assert client.ask(archive, False, parts=[str(part)])["verdict"] == "origin_not_established"
    refused = 0
    for number in range(60):
        what, changed = altered_part(genuine, chosen)
        part.write_bytes(changed)
        manifest = json.loads(dict(forge.unpack(data))[forge.MANIFEST])
        manifest["content_parts"][0].update(sha256=hashlib.sha256(changed).hexdigest(), bytes=len(changed))
        signed = forge.replaced(data, forge.MANIFEST, forge.canonical(manifest))
        archive.write_bytes(forge.EDITS["sign"](forge.EDITS["reasic"](signed)))
        done = subprocess.run([BINARY, "verify", archive, part, "--json", "--config", "", "--trust", trust],
                              capture_output=True, check=False)
        said = client.ask(archive, False, parts=[str(part)])
        assert (said["verdict"] == "invalid") == (done.returncode == 1), (number, what, said, done.stdout[:900])
        refused += done.returncode == 1
    assert refused > 50


def test_flipped_and_missing_bytes(client, tmp_path):  # pylint: disable=redefined-outer-name
    chosen, archive = random.Random(7), tmp_path / "flipped.zip"
    data = forge.base("live.zip")
    for _ in range(150):
        at = chosen.randrange(len(data))
        bit = 1 << chosen.randrange(8)
        flipped = data[:at] + bytes([data[at] ^ bit]) + data[at + 1:]
        for changed in (flipped, data[:at], data[:at] + data[at + 1:]):
            archive.write_bytes(changed)
            said = client.ask(archive, False)
            assert said["code"] == "not_valid" or at < 5, (at, bit, said)
            assert said["verdict"] != "valid"


# ---- sizes ----

def signed_test_archive(streams):
    """The archive of a test chain whose stream of events is this one, signed again."""
    data = forge.base("test.zip")
    files = [each for each in forge.unpack(data) if not each[0].startswith("events/")]
    at = next(at for at, each in enumerate(files) if each[0] == forge.MANIFEST)
    files[at:at] = [(f"events/events-{number:06}.ndjson.gz", content) for number, content in enumerate(streams, 1)]
    return files


def finished(files, changes):
    data = forge.pack(files)
    manifest = json.loads(dict(files)[forge.MANIFEST])
    manifest.update(changes(manifest))
    data = forge.replaced(data, forge.MANIFEST, forge.canonical(manifest))
    return forge.EDITS["sign"](forge.EDITS["resum"](data), "signer", {"stamp": False})


def chain_of(count):
    """Lines of events of the test chain, and the first and last chain hash."""
    files = dict(forge.unpack(forge.base("test.zip")))
    event = json.loads(gzip.decompress(files["events/events-000001.ndjson.gz"]).splitlines()[0])
    before, hashes, lines = event["previous_chain_hash"], [], []
    for sequence in range(event["sequence"], event["sequence"] + count):
        event.update(sequence=sequence, previous_chain_hash=before, client_ref=f"reference-{sequence}")
        lines.append(forge.canonical(event) + b"\n")
        before = hashlib.sha256(lines[-1][:-1]).hexdigest()
        hashes.append(before)
    return lines, hashes


def test_memory_does_not_grow_with_the_archive(program, tmp_path):  # noqa: F811
    lines, hashes = chain_of(EVENTS)
    streams = [gzip.compress(b"".join(lines[at:at + LINES_MAX]), 1) for at in range(0, EVENTS, LINES_MAX)]
    files = signed_test_archive(streams)
    first = json.loads(lines[0])["sequence"]
    last = first + EVENTS - 1
    asked = {"from": None, "to": None, "seq_from": first, "seq_to": last}
    archive = tmp_path / "large.zip"
    archive.write_bytes(finished(files, lambda _: {
        "event_count": EVENTS, "frozen_range": {"first_sequence": first, "last_sequence": last},
        "requested_range": asked, "first_chain_hash": hashes[0], "last_chain_hash": hashes[-1]}))
    assert sum(map(len, lines)) > HEAP_MB << 20
    with Client(program, f"--max-old-space-size={HEAP_MB}") as small:
        said = small.ask(archive, False)
        assert said["verdict"] == "origin_not_established", said
        assert [each["code"] for each in said["findings"]] == ["client.signatures_not_checked"]
        assert said["peak_kb"] < PEAK_KB
        done = subprocess.run([BINARY, "verify", archive, "--json", "--config", ""], capture_output=True, check=False)
        assert json.loads(done.stdout)["verdict"]["code"] == "signer_not_established"
        # The first file lacks its last line: reordered lines, lines that are missing and too many lines are refused.
        for spoilt in ([b"".join(lines[:LINES_MAX - 1]), b"".join(lines[LINES_MAX - 1:])], [b"".join(lines)],
                       [b"".join(lines[:5] + lines[6:])], [b"".join(lines[:5] + [lines[6], lines[5]] + lines[7:])]):
            archive.write_bytes(finished(signed_test_archive([gzip.compress(each, 1) for each in spoilt]), lambda _: {
                "event_count": EVENTS, "frozen_range": {"first_sequence": first, "last_sequence": last},
                "requested_range": asked, "first_chain_hash": hashes[0], "last_chain_hash": hashes[-1]}))
            assert small.ask(archive, False)["verdict"] == "invalid"


def test_memory_does_not_grow_with_a_segment(program, tmp_path):  # noqa: F811
    """Its events are not held until its root is compared."""
    data = forge.large_segment(3000, 32768)
    forged = forge.change(data, forge.stream("seals"), [0, "path"], ["0" * 64])
    archive = tmp_path / "large.zip"
    with Client(program, f"--max-old-space-size={HEAP_MB}") as small:
        for content, code in ((data, "client.signatures_not_checked"),
                              (forge.sign(forge.reasic(forge.resum(forged))), "segment.root")):
            archive.write_bytes(content)
            said = small.ask(archive, False)
            assert [each["code"] for each in said["findings"]] == [code]
            assert said["peak_kb"] < PEAK_KB  # the events have 96 MiB


def test_memory_does_not_grow_with_a_log(program, tmp_path):  # noqa: F811
    """Its checkpoints, which have 72 MB, are read as they are needed."""
    archive = tmp_path / "large.zip"
    archive.write_bytes(forge.large_log(1200, 60_000))
    with Client(program, f"--max-old-space-size={HEAP_MB}") as small:
        said = small.ask(archive, False)
        assert [each["code"] for each in said["findings"]] == ["client.signatures_not_checked"]
        assert said["peak_kb"] < PEAK_KB


@pytest.mark.parametrize("line", ["zeros", "blanks", "empty", "nested", "members"])
def test_what_unpacks_to_much_is_refused(line, program, tmp_path):  # noqa: F811
    size = 256 << 20
    if line in ("zeros", "blanks"):
        content = (b"\0" if line == "zeros" else b" ") * size
    else:
        content = {"empty": b"\n" * size, "nested": b"[" * 200_000 + b"\n",
                   "members": b"{" + b",".join(b'"%d":0' % number for number in range(20_000)) + b"}\n"}[line]
    archive = tmp_path / "bomb.zip"
    archive.write_bytes(finished(signed_test_archive([gzip.compress(content, 9)]), lambda _: {}))
    with Client(program, f"--max-old-space-size={HEAP_MB}") as small:
        said = small.ask(archive, False)
        assert said["verdict"] == "invalid", said
        assert said["peak_kb"] < PEAK_KB


def test_the_client_s_own_tests_of_verification(program):  # noqa: F811
    assert (CLIENT / "test" / "verify.test.mjs").exists()
    run(["node", "--test", "verify.test.mjs"], program, CONSTANCIA_CORPUS=str(CORPUS / "base"))
