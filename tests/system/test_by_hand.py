"""The commands in an archive's README.txt, word for word: on evidence with revocation data, at any time after it
was made, and on evidence that was damaged in each way that a step detects."""

import base64
import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import time
import zipfile

import pytest

import moved_clock
import timestamp_authority
from program import ROOT
from test_operator import Deployed, World, certify

HOUR = 3600
ROOTS = ("trust-signer.pem", "trust-timestamps.pem")


class Hand:
    """Someone with an archive, roots, and a shell."""

    def __init__(self, archive, directory, signer=None, timestamps=None):
        self.place = directory
        self.inside = directory / "archive"
        self.inside.mkdir(parents=True)
        with zipfile.ZipFile(archive) as file:
            file.extractall(self.inside)
        for name, roots in zip(ROOTS, (signer, timestamps)):
            if roots:
                shutil.copy(roots, directory / name)

    def another(self, directory):
        shutil.copytree(self.place, directory)
        copy = object.__new__(Hand)
        copy.place, copy.inside = directory, directory / "archive"
        return copy

    def follow(self, readme="README.txt", environment=None):
        """What LEEME.txt and README.txt say, verbatim: exit status and lines."""
        text = (self.inside / readme).read_text(encoding="utf-8")
        commands = re.search(r"^  3\. (sed .*)\n     (bash .*)\n", text, re.M)
        done = subprocess.run(["bash", "-c", f"{commands[1]}\n{commands[2]}"], cwd=self.inside,
                              capture_output=True, text=True, check=False, env=environment)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def judged(self, status, verdict, **more):
        code, lines, complaints = self.follow(**more)
        assert code == status and lines[-1].startswith(f"{verdict} - "), "\n".join([*lines, complaints])
        said = re.search(r": (\d+) OK, (\d+) OPEN, (\d+) NOTE, (\d+) WRONG$", lines[-1])
        for word, count in zip(("OK", "OPEN", "NOTE", "WRONG"), said.groups()):
            assert len([line for line in lines if line.startswith(word + " ")]) == int(count)
        return lines

    def lines(self, stream):
        (path,) = (self.inside / stream).iterdir()
        return gzip.decompress(path.read_bytes()).decode().splitlines()

    def write(self, stream, lines):
        (path,) = (self.inside / stream).iterdir()
        path.write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))


class Mortal(World):
    """All but the root ends within hours: the signer first, then the authorities."""

    def __init__(self, directory):
        super().__init__(directory)
        for server in self.authorities:
            server.shutdown()
            server.server_close()
        self.authorities = []
        for name in ("brief-1", "brief-2"):
            self.add_authority(name, ends=3 * HOUR)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = Mortal(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def archives(world, tmp_path_factory):
    """Of two ranges, the second one with neighbours, and one of the test chain."""
    directory = tmp_path_factory.mktemp("by-hand")
    with contextlib.ExitStack() as ending:
        service = Deployed(directory, world, world.pki.signer("brief", ends=2 * HOUR))
        ending.callback(service.store.discard)
        ending.callback(service.close)
        channel = service.start().new_channel()
        for n in range(3):
            channel.live.register({"n": n}).expect(201)
        certify(channel, 1, 3, directory / "first")
        for n in range(5):
            event = channel.live.register({"n": n}).expect(201).json
        channel.live.sealed(event["event_id"])
        second = certify(channel, 4, 7, directory / "second")
        for n in range(3):
            channel.test.register({"n": n}).expect(201)
        tested = channel.test.certified(seq_from=1, seq_to=3)
        (directory / "test.zip").write_bytes(
            channel.test.download(tested["evidence_url"]).expect(200).body)
        assert service.node.stop() == 0
    return {"first": directory / "first/evidence.zip", "second": second[0], "test": directory / "test.zip"}


@pytest.fixture(scope="module")
def whole(archives, world, tmp_path_factory):
    return Hand(archives["second"], tmp_path_factory.mktemp("whole") / "it", world.pki.root, world.pki.root)


@pytest.mark.parametrize("name, readme", [("first", "LEEME.txt"), ("second", "README.txt")])
def test_what_is_genuine_is_valid_and_everything_is_shown(archives, world, tmp_path, name, readme):
    hand = Hand(archives[name], tmp_path / "it", world.pki.root, world.pki.root)
    before = sorted(path for path in hand.inside.rglob("*"))
    lines = hand.judged(0, "VALID", readme=readme)
    assert not [line for line in lines if line.startswith(("NOTE", "OPEN", "WRONG"))], lines
    assert "OK     signature: its certificate: not revoked" in lines
    assert "OK     signature: the certificate of its timestamp: not revoked" in lines
    assert lines[lines.index("OK     signature: it is valid, by:") + 1] == \
        "       subject=O = Constancia tests, CN = brief"
    rounds = [json.loads(line) for line in hand.lines("rounds")]
    given = [line for line in lines if re.match(r"OK     round \S+, \S+ timestamp: given on ", line)]
    assert len(given) == sum(len(each["tokens"]) for each in rounds) >= 2
    assert sorted(path for path in hand.inside.rglob("*")) == before, "it writes nothing there"


@pytest.mark.parametrize("when, notes", [
    (2.5 * HOUR, []), (24 * HOUR, ["signature: the certificate of its timestamp expired on "]),
    ("2037", ["signature: the certificate of its timestamp expired on "])],
    ids=["the signer ended", "the authorities ended", "the root ended"])
def test_it_stays_valid_when_certificates_have_ended(whole, when, notes):
    moment = 2129200000 if when == "2037" else time.time() + when
    with moved_clock.MovedClock() as clock:
        clock.set(moment)
        environment = {**os.environ, **clock.environment}
        now = subprocess.run(["date", "+%s"], env=environment, capture_output=True, text=True, check=True)
        assert abs(int(now.stdout) - moment) < HOUR, "the clock is moved"
        lines = whole.judged(0, "VALID", environment=environment)
    assert [line[7:7 + len(note)] for line, note in
            zip([line for line in lines if line.startswith("NOTE")], notes)] == notes
    assert len([line for line in lines if line.startswith("NOTE")]) == len(notes)


@pytest.mark.thorough
def test_without_roots_that_fit_it_is_open_by_whom(archives, world, tmp_path):
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", tmp_path / "key", "-out", other, "-subj", "/CN=Another"],
                   check=True, capture_output=True)
    for n, roots in enumerate([(None, None), (other, other), (world.pki.root, None), (None, world.pki.root)]):
        lines = Hand(archives["first"], tmp_path / str(n), *roots).judged(2, "INTACT, BY WHOM IS NOT ESTABLISHED")
        opened = [line for line in lines if line.startswith("OPEN")]
        assert any("signature: it is valid" in line for line in opened) == (roots[0] != world.pki.root)
        assert any(", qualified timestamp: " in line or "timestamp: given on" in line
                   for line in opened) == (roots[1] != world.pki.root)
        assert all(line.endswith("; but it does not chain to one of your roots") for line in opened)


def test_roots_that_an_archive_brings_along_are_not_taken(archives, tmp_path, world):
    hand = Hand(archives["first"], tmp_path / "it")
    for name in ROOTS:
        shutil.copy(world.pki.root, hand.inside / name)
    lines = hand.judged(1, "NOT VALID")
    assert "WRONG  files: there are no others" in lines
    assert any(line.startswith("OPEN   signature: it is valid") for line in lines)


def test_of_a_test_archive_it_says_so(archives, world, tmp_path):
    hand = Hand(archives["test"], tmp_path / "it", world.pki.root, world.pki.root)
    hand.judged(0, "TEST, WITHOUT PROBATIVE VALUE")
    hand.write("events", [line.replace('"sequence":2', '"sequence":3') for line in hand.lines("events")])
    lines = hand.judged(1, "NOT VALID")
    assert "WRONG  events: each contains the hash of the previous one" in lines


# ---- damages ----

def swap(text, old, new):
    assert old in text, old
    return text.replace(old, new, 1)


def of_file(name, change):
    def damage(hand):
        path = hand.inside / name
        path.write_bytes(change(path.read_bytes()))
    return damage


def of_text(name, old, new):
    return of_file(name, lambda data: swap(data.decode(), old, new).encode())


def of_stream(name, change):
    """All its lines, or each of them."""
    def damage(hand):
        lines = hand.lines(name)
        changed = change(lines)
        assert changed != lines
        hand.write(name, changed)
    return damage


def of_document(name, change, at=0):
    """One line's document, written as it was but for the change."""
    def of(lines):
        document = json.loads(lines[at])
        change(document)
        changed = list(lines)
        changed[at] = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return changed
    return of_stream(name, of)


def other_hash(text):
    return ("0" if text[0] != "0" else "1") + text[1:]


def flip(data, at):
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def in_token(change):
    def of(document):
        token = document["tokens"][0]
        token["token"] = base64.b64encode(change(base64.b64decode(token["token"]))).decode()
    return of_document("rounds", of, -1)


def in_each_token(member, value):
    def of(document):
        for token in document["tokens"]:
            token[member] = value
    return of_document("rounds", of, -1)


def of_seal(change, at=0):
    return of_document("seals", lambda document: change(document["seal"]), at)


def set_to(name, value):
    def change(document):
        document[name] = value(document[name]) if callable(value) else value
    return change


def signed_part(hand, kind):
    """Where in the signature file that part is: the signature's value, or its timestamp."""
    path = hand.inside / "META-INF/signature001.p7s"
    parsed = subprocess.run(["openssl", "asn1parse", "-inform", "DER", "-in", path], capture_output=True, text=True,
                            check=True).stdout.splitlines()
    if kind == "value":
        (line,) = [line for line in parsed if re.match(r" *\d+:d=5 .*OCTET STRING", line)]
    else:
        (at,) = [n for n, line in enumerate(parsed) if re.match(r" *\d+:d=7 .*:id-smime-aa-timeStampToken$", line)]
        line = parsed[at + 2]
    start, head, length = map(int, re.match(r" *(\d+):d=\d+ +hl=(\d+) l= *(\d+)", line).groups())
    return path, start, head, length


def of_signature_value(hand):
    path, start, head, length = signed_part(hand, "value")
    path.write_bytes(flip(path.read_bytes(), start + head + length - 1))


def of_signature_stamp(hand):
    path, start, head, length = signed_part(hand, "stamp")
    path.write_bytes(flip(path.read_bytes(), start + head + length - 1))


def without_stamp(hand):
    """As openssl writes a signature whose unsigned attribute has another name."""
    path = hand.inside / "META-INF/signature001.p7s"
    oid = bytes.fromhex("060b2a864886f70d010910020e")  # id-aa-timeStampToken
    data = path.read_bytes()
    assert data.count(oid) == 1
    path.write_bytes(data.replace(oid, oid[:-1] + b"\x7f"))


def put_in(der, at, size, other, start=0):
    """DER in which the element at `at`, of that size with its head, is another one."""
    if start == at:
        return other
    out, place = b"", start
    tag, length, head = der[place], der[place + 1], 2
    if length & 0x80:
        head += length & 0x7f
        length = int.from_bytes(der[place + 2:place + head], "big")
    end = place = start + head
    end += length
    while place < end:
        inner = der[place + 1]
        inner_head = 2 + (inner & 0x7f if inner & 0x80 else 0)
        inner_size = inner_head + (int.from_bytes(der[place + 2:place + inner_head], "big") if inner & 0x80 else inner)
        holds = place <= at < place + inner_size
        out += put_in(der, at, size, other, place) if holds else der[place:place + inner_size]
        place += inner_size
    return bytes([tag]) + length_of(len(out)) + out


def length_of(size):
    if size < 0x80:
        return bytes([size])
    text = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([0x80 | len(text)]) + text


def stamp_of_another(archives):
    """The token of the other certification's signature, which is as good, over another value."""
    def damage(hand):
        other = hand.another(hand.place.parent / "other")
        with zipfile.ZipFile(archives["first"]) as file:
            (other.inside / "META-INF/signature001.p7s").write_bytes(file.read("META-INF/signature001.p7s"))
        path, start, head, length = signed_part(other, "stamp")
        token = path.read_bytes()[start:start + head + length]
        path, start, head, length = signed_part(hand, "stamp")
        path.write_bytes(put_in(path.read_bytes(), start, head + length, token))
    return damage


def rename(name, to):
    return lambda hand: (hand.inside / name).rename(hand.inside / to)


RANGE = '"frozen_range":{"first_sequence":4,"last_sequence":7}'
DAMAGES = {
    "2 the list that is signed": (of_text("META-INF/ASiCManifest001.xml", "genesis.json", "genesis.jsom"),
                                  "signature: it is valid, by:"),
    "2 the signature's value": (of_signature_value, "signature: it is valid, by:"),
    "2 the value under the timestamp": (of_signature_value, "signature: its timestamp is "),
    "2 the timestamp": (of_signature_stamp, "signature: its timestamp is "),
    "2 no timestamp": (without_stamp, "signature: it has one timestamp"),
    "2 no signature": (of_file("META-INF/signature001.p7s", lambda data: data[:40]), "signature: there is one"),
    "3 a document": (of_file("genesis.json", lambda data: data + b" "), "file genesis.json"),
    "3 a stream": (of_file("events/events-000001.ndjson.gz", lambda data: flip(data, 30)),
                   "file events/events-000001.ndjson.gz"),
    "3 one file less": (lambda hand: (hand.inside / "LEEME.txt").unlink(), "file LEEME.txt"),
    "3 one file more": (of_file("mimetype", lambda data: data), None),
    "3 a file that the manifest does not have": (
        of_text("manifest.json", '"path":"LEEME.txt"', '"path":"LEEME.tx"'), "files: manifest.json lists the same"),
    "3 a renamed file": (rename("config/config-000001.json", "config/config-000002.json"),
                         "files: there are no others"),
    "4 what an event says": (of_document("events", set_to("client_ref", "another"), 1),
                             "events: each contains the hash of the previous one"),
    "4 the last event": (of_document("events", set_to("client_ref", "another"), -1),
                         "events: they begin and end as certified"),
    "4 an event is missing": (of_stream("events", lambda lines: lines[:1] + lines[2:]), "events: all from 4 to 7"),
    "4 the last one is missing": (of_stream("events", lambda lines: lines[:-1]), "events: all from 4 to 7"),
    "4 a number": (of_document("events", set_to("sequence", 6), 1), "events: all from 4 to 7"),
    "4 another channel's": (of_document("events", set_to("channel_id", "chn_another"), 2), "events: all from 4 to 7"),
    "4 another chain's": (of_document("events", set_to("chain", "test"), 2), "events: all from 4 to 7"),
    "4 the certified range": (of_text("manifest.json", RANGE, RANGE.replace("7", "8")),
                              "events: all from 4 to 8"),
    "4 the number of events": (of_text("manifest.json", '"event_count":4', '"event_count":5'),
                               "events: all from 4 to 7"),
    "4 a range that would run": (of_text("manifest.json", RANGE, RANGE.replace("4", '"a[$(date)]"')),
                                 "events: all from 0 to 7"),
    "4 a configuration": (of_text("config/config-000001.json", '"version":1', '"version":1 '),
                          "events: their configurations are those in config/"),
    "4 an event's configuration": (of_document("events", set_to("config_hash", other_hash), 1),
                                   "events: their configurations are those in config/"),
    "4 a time": (of_document("events", set_to("received_at", "2020-01-01T00:00:00.000000Z"), 2),
                 "events: their times ascend"),
    "5 a leaf": (of_document("leaves", set_to("chain_hash", other_hash)), "segment of 4 to 8: it is in round "),
    "5 a path": (of_document("seals", lambda document: document["path"].append("0" * 64)),
                 "segment of 4 to 8: it is in round "),
    "5 a seal's clock": (of_seal(lambda seal: seal["clock"].update(max_error_us=1234567)),
                         "segment of 4 to 8: it is in round "),
    "5 a seal's count": (of_seal(set_to("count", 1)), "segment of 4 to 8: it follows the previous segment"),
    "5 a seal's chain": (of_seal(set_to("chain", "test")), "segment of 4 to 8: it follows the previous segment"),
    "5 a seal's last hash": (of_seal(set_to("chain_hash_last", other_hash)),
                             "segment of 4 to 8: it follows the previous segment"),
    "5 the token before": (of_seal(set_to("previous_token_hash", other_hash)),
                           "segment of 4 to 8: it follows the previous segment"),
    "5 no segment": (of_stream("seals", lambda lines: []), "segments: they cover all events"),
    "5 a segment that would run": (of_seal(set_to("first_sequence", "a[$(date)]")),
                                   "segments: they cover all events"),
    "5 a round's root": (of_document("rounds", set_to("root", other_hash), -1), "segment of 4 to 8: it is in round "),
    "5 a round's place": (of_stream("rounds", lambda lines: lines[::-1]), "rounds: their times ascend"),
    "5 received later": (of_document("events", set_to("received_at", "2036-01-01T00:00:00.000000Z"), -1),
                         "segment of 4 to 8: no event was received after that round"),
    "6 a token's root": (of_document("rounds", set_to("root", other_hash), -1), r"round \S+ timestamp: given on "),
    "6 a token's signature": (in_token(lambda token: flip(token, len(token) - 1)), r"round \S+ timestamp: given on "),
    "6 a token's time": (in_each_token("gen_time", "2026-01-01T00:00:00.000000Z"),
                         r"round \S+ timestamp: the time in the archive is the same"),
    "6 no token": (in_token(lambda token: b""), r"round \S+ timestamp: given on "),
    "6 an object of validation": (of_document("validation", set_to("sha256", other_hash)),
                                  "validation: an object's hash"),
    "6 an object less": (of_stream("validation", lambda lines: lines[1:]),
                         r"round \S+ timestamp: an object to which it refers is missing"),
    "6 a renewal that is not there": (in_each_token("renewal", {"path": [], "stamp": 7}),
                                      r"round \S+ timestamp: renewed on "),
}


# Of each step one; `make test-all` runs the others, too.
OFTEN = {"2 no timestamp", "3 one file more", "4 what an event says", "5 a path", "6 a token's signature"}
assert OFTEN <= set(DAMAGES)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.thorough)
                                  for name in DAMAGES])
def test_each_step_finds_what_it_is_there_for(whole, tmp_path, name):
    damage, found = DAMAGES[name]
    hand = whole.another(tmp_path / "it")
    damage(hand)
    if found is None:
        (hand.inside / "config/config-000009.json").write_text("{}")
        found = "files: there are no others"
    lines = hand.judged(1, "NOT VALID")
    pattern = found.replace("round \\S+", "round \\S+ \\S+") if "\\S" in found else re.escape(found)
    assert any(re.match("WRONG  " + pattern, line) for line in lines), "\n".join(lines)


def test_a_timestamp_of_another_signature_is_found(whole, archives, tmp_path):
    hand = whole.another(tmp_path / "it")
    stamp_of_another(archives)(hand)
    lines = hand.judged(1, "NOT VALID")
    assert [line for line in lines if line.startswith("WRONG") and "signature: its timestamp is " not in line] == []
    assert len([line for line in lines if line.startswith("WRONG")]) == 1


def test_what_stops_on_the_way_has_no_verdict_of_valid(whole, tmp_path):
    """Without one of its tools."""
    hand = whole.another(tmp_path / "it")
    tools = tmp_path / "tools"
    tools.mkdir()
    for directory in ("/usr/bin", "/bin"):
        for name in ("bash", "sed", "awk", "sort", "cat", "date", "mktemp", "tee", "tr", "cut", "rm", "mkdir", "head",
                     "tail", "grep", "uniq", "wc", "find", "od", "sha256sum", "base64", "zcat", "gzip", "openssl", "cp",
                     "mv", "touch", "cmp"):
            if (found := shutil.which(name, path=directory)) and not (tools / name).exists():
                (tools / name).symlink_to(found)
    lines = hand.judged(1, "NOT VALID", environment={"PATH": str(tools)})
    assert "WRONG  jq is missing" in lines


# ---- revocations ----

def test_a_revocation_that_the_archive_shows_is_found(world, archives, tmp_path):
    """The objects that the signature holds are taken for it, and judged as of the timestamp's time: here by the
    method's own function, with lists that say otherwise."""
    hand = Hand(archives["first"], tmp_path / "it", world.pki.root, world.pki.root)
    text = (hand.inside / "README.txt").read_text(encoding="utf-8")
    tools = re.search(r"^# 1\. .*?(?=^for tool)", text, re.M | re.S)[0]
    pki = world.pki
    pki.issue("gone", "leaf", "issuer", "gone")
    pki.issue("older", "leaf", "issuer", "older")
    pki.revoke("gone")
    pki.revoke("older", reason="superseded")
    pool = tmp_path / "pool.pem"
    pool.write_bytes(b"".join(pki.path(f"{name}.pem").read_bytes() for name in ("issuer", "root")))
    lists = tmp_path / "lists"
    lists.mkdir()

    def told(name, as_of, until):
        script = f'{tools}\nstanding {pki.path(name + ".pem")} {pool} {int(as_of * 1e6)} {int(until * 1e6)} {lists}'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=hand.inside)
        return done.stdout.strip()
    now = time.time()
    assert told("gone", now, now) == "open", "nothing says so"
    for issuer in ("issuer", "root"):
        shutil.copy(pki.write_list(issuer), lists)
    assert told("brief", now, now) == "good"
    assert told("gone", now + 60, now + 60) == "revoked"
    assert told("gone", now - HOUR, now + HOUR) == "revoked", "the holder of the key wrote the time"
    assert told("gone", now - HOUR, now - HOUR) == "good", "what was before is proven by something else"
    assert told("older", now - HOUR, now + HOUR) == "good", "for a reason that leaves the past"
    assert told("older", now + 60, now + HOUR) == "revoked"
    assert told("brief", now + 30 * 24 * HOUR, now) == "open", "the list is too old"


# ---- the documentation ----

def test_the_commands_are_those_of_the_source(whole):
    commands = (ROOT / "src/archive/by_hand/check.sh").read_text(encoding="utf-8")
    assert commands in (whole.inside / "README.txt").read_text(encoding="utf-8")
    assert max(len(line) for name in ("README.txt", "LEEME.txt")
               for line in (whole.inside / name).read_text(encoding="utf-8").splitlines()) <= 82
    archive_digest = hashlib.sha256((whole.inside / "README.txt").read_bytes()).hexdigest()
    listed = json.loads((whole.inside / "manifest.json").read_text())["files"]
    assert {"path": "README.txt", "sha256": archive_digest,
            "size": (whole.inside / "README.txt").stat().st_size} in listed
