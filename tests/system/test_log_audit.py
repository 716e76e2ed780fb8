"""`constancia log audit` on logs that a test writes: right ones, and each way in which one can be wrong."""

import json

import pytest

import tlog
from client import run
from static_log import StaticLog, digest, entry_text

pytestmark = pytest.mark.sqlite

OWN = digest("own")


@pytest.fixture
def log(tmp_path):
    made = StaticLog(tmp_path / "log")
    yield made
    made.close()


def audit(log, *words, key=True, place="--dir"):
    where = log.directory if place == "--dir" else log.url
    return run("log", "audit", "--json", f"{place}={where}", *([f"--key={log.vkey}"] if key else ()), *words)


def report(log, *words, code=0, **more):
    done = audit(log, *words, **more)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def refusal(log, code, *words, **more):
    done = audit(log, *words, **more)
    assert done.returncode == code and not done.stdout, done.stdout
    return json.loads(done.stderr)["cause"]


@pytest.mark.parametrize("size", (0, 1, 2, 255, 256, 257, 700))
def test_a_log_that_is_right(log, size):
    log.fill(size)
    log.write()
    found = report(log)
    assert found["checkpoint"]["size"] == size and found["checkpoint"]["signed"] and found["checkpoint"]["quorum"]
    assert (found["chains"], found["finding_count"], found["begun_later"]) == (min(size, 7), 0, 0)
    assert found["tiles"] == len([1 for file in log.directory.glob("tile/[0-9]/**/*") if file.is_file()])
    if size:
        assert report(log, place="--url") == found


def test_a_tree_of_three_levels(log):
    """65,536 entries and more: a tile of level 2."""
    log.fill(65_800)
    log.write()
    found = report(log, place="--url")
    assert found["checkpoint"]["size"] == 65_800 and found["tiles"] == 258 + 2 + 1


def test_partial_tiles_may_be_gone(log):
    log.fill(300)
    log.write(size=200)
    note = (log.directory / "checkpoint").read_text()
    log.write()
    (log.directory / "checkpoint").write_text(note)
    assert not log.path(0, 0, 200).exists()
    assert report(log)["checkpoint"]["size"] == 200


def test_without_a_key_the_signature_is_not_established(log):
    log.fill(3)
    log.write()
    assert not report(log, key=False, code=2)["checkpoint"]["signed"]
    done = run("log", "audit", f"--dir={log.directory}")
    assert done.returncode == 2 and "no key is given" in done.stdout
    other = tlog.Key(log.key.name, tlog.ED25519)
    assert not report(log, f"--key={other.vkey}", key=False, code=2)["checkpoint"]["signed"]


def test_witnesses(log):
    log.fill(5)
    pair = [tlog.Key(f"witness.example/{name}", tlog.COSIGNATURE) for name in ("one", "two")]
    log.write(cosigners=pair[:1], time=1_700_000_000)
    words = [f"--witness={one.vkey}" for one in pair]
    found = report(log, *words, "--quorum=1")["checkpoint"]
    assert found["missing_witnesses"] == "witness.example/two"
    assert found["witnessed_at"].startswith("2023-11-14T22:13:20")
    assert not report(log, *words, code=2)["checkpoint"]["quorum"]
    policy = log.directory / "policy"
    policy.write_text(f"log {log.vkey}\nwitness a {pair[0].vkey}\nwitness b {pair[1].vkey}\ngroup g 1 a b\nquorum g\n")
    assert report(log, f"--policy={policy}", key=False)["checkpoint"]["quorum"]


# ---- what must not be ----

def test_a_false_signature(log):
    log.fill(3)
    log.write()
    note = (log.directory / "checkpoint").read_text()
    (log.directory / "checkpoint").write_text(note.replace("\n3\n", "\n4\n"))
    assert "signature" in refusal(log, 1) and "false" in refusal(log, 1)


def test_an_entry_that_the_tile_does_not_have(log):
    log.fill(300)
    log.write()
    bundle = log.path("entries", 0, 256)
    data = bundle.read_bytes()
    bundle.write_bytes(data.replace(b'"last_sequence":1,', b'"last_sequence":2,', 1))
    assert "hash 0 of tile/0/000 " in refusal(log, 1)


def test_entries_and_tiles_that_do_not_lead_to_the_root(log):
    log.fill(300)
    note = log.checkpoint()
    log.entries[290] = entry_text(OWN, 1, 1)
    log.write()
    (log.directory / "checkpoint").write_text(note)
    assert "do not lead to the root" in refusal(log, 1)


@pytest.mark.parametrize("level, index, width", ((0, 1, 256), (0, 2, 88), (1, 0, 2)))
def test_a_tile_that_is_rewritten(log, level, index, width):
    log.fill(600)
    log.write()
    tile = log.path(level, index, width)
    data = bytearray(tile.read_bytes())
    data[33] ^= 1
    tile.write_bytes(data)
    assert "hash 1 of " + tlog.tile_path(level, index, width) in refusal(log, 1)


@pytest.mark.parametrize("size", (0, 31, 33, 8191))
def test_a_tile_of_another_size(log, size):
    log.fill(256)
    log.write()
    tile = log.path(0, 0, 256)
    tile.write_bytes(tile.read_bytes()[:size])
    assert "must have 8192" in refusal(log, 1)


@pytest.mark.parametrize("kind, place", [(kind, place) for kind in ("checkpoint", "tile", "entries")
                                         for place in ("--dir", "--url")])
def test_files_that_are_missing(log, kind, place):
    log.fill(5)
    log.write()
    file = log.file(kind, 0, 5)
    file.unlink()
    assert refusal(log, 2, place=place) == f"{file.relative_to(log.directory)} is missing"


@pytest.mark.parametrize("kind, place", [(kind, place) for kind in ("checkpoint", "tile", "entries")
                                         for place in ("--dir", "--url")])
def test_answers_without_end_are_not_read(log, kind, place):
    log.fill(5)
    log.write()
    file = log.file(kind, 0, 5)
    with file.open("ab") as out:
        out.truncate(1 << 32)
    assert "bytes" in refusal(log, 2, place=place)


@pytest.mark.parametrize("change, what", (
    (lambda data: data[:-1], "fewer than 5 entries"), (lambda data: data + b"\0", "more than 5 entries"),
    (lambda data: b"\xff\xff" + data[2:], "fewer than 5 entries")))
def test_bundles_that_are_cut(log, change, what):
    log.fill(5)
    log.write()
    bundle = log.path("entries", 0, 5)
    bundle.write_bytes(change(bundle.read_bytes()))
    assert what in refusal(log, 1)


@pytest.mark.parametrize("text", (
    b"", b"{}", b"[]", entry_text(OWN, 2, 1), entry_text(OWN, 0, 1), entry_text(OWN, 1, 1) + b" ",
    entry_text(OWN, 1, 1).replace(b'"v":1', b'"v":2'), entry_text(OWN, 1, 1).replace(b'"v":1', b'"v":1,"w":1'),
    entry_text(OWN.upper(), 1, 1)))
def test_entries_of_another_form(log, text):
    log.fill(3)
    log.entries.append(text)
    log.write()
    assert refusal(log, 1).startswith("entry 3 is not valid: ")


@pytest.mark.parametrize("first, last, kind", (
    (4, 6, "overlap"), (5, 5, "overlap"), (1, 9, "overlap"), (7, 9, "gap"), (1, 1, "overlap")))
def test_entries_of_a_chain_that_do_not_follow(log, first, last, kind):
    log.fill(3)
    log.add(OWN, 1, 3)
    log.add(OWN, 4, 5)
    log.add(OWN, first, last)
    log.write()
    found = report(log, code=1)
    assert found["findings"] == [{"covered_from": 1, "covered_to": 5, "first_sequence": first, "index": 5, "kind": kind,
                                  "last_sequence": last, "tag": OWN}]
    done = run("log", "audit", f"--dir={log.directory}", f"--key={log.vkey}")
    assert done.returncode == 1 and "wrong: entry 5 " in done.stdout


def test_a_chain_that_is_older_than_the_log(log):
    log.add(OWN, 500, 600)
    log.add(OWN, 601, 601)
    log.write()
    assert report(log)["begun_later"] == 1


def test_many_findings_are_counted(log):
    for _ in range(300):
        log.add(OWN, 1, 1)
    log.write()
    found = report(log, code=1)
    assert found["finding_count"] == 299 and len(found["findings"]) == 100


@pytest.mark.parametrize("words", (
    (), ("--dir=x", "--url=http://127.0.0.1:1"), ("--url=ftp://x",), ("--dir=x", "--key=y"), ("--dir=x", "--quorum=1"),
    ("--dir=/nonexistent",)))
def test_wrong_usage(words):
    done = run("log", "audit", *words)
    assert done.returncode == 2 and done.stderr and not done.stdout


def test_a_server_that_is_not_there(log):
    log.fill(1)
    log.write()
    url = log.url
    log.close()
    done = run("log", "audit", f"--url={url}", f"--key={log.vkey}")
    assert done.returncode == 2 and "checkpoint" in done.stderr
