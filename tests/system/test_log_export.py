"""`constancia log export`: copies of logs in a directory and in an S3 service, which anybody can serve."""

import json
import shutil
import struct

import pytest

import s3_server
import tlog
from client import run
from static_log import StaticLog, digest, entry_text
from test_segment_log import Log, grow, started

pytestmark = pytest.mark.sqlite


@pytest.fixture
def log(tmp_path):
    made = StaticLog(tmp_path / "log")
    yield made
    made.close()


@pytest.fixture
def copy(tmp_path):
    made = tmp_path / "copy"
    made.mkdir()
    return made


def export(log, to, *words, code=0, **more):
    done = run("log", "export", "--json", f"--url={log.url}", f"--to={to}", *words, **more)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if code == 0 else json.loads(done.stderr)["cause"]


def audited(log, copy):
    done = run("log", "audit", "--json", f"--dir={copy}", f"--key={log.vkey}")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["checkpoint"]["size"]


def files(copy):
    return {str(path.relative_to(copy)): path for path in copy.rglob("*") if path.is_file()}


def add_later(log, count):
    """Entries of further channels."""
    for number in range(count):
        log.add(digest(f"later {len(log.entries)} {number}"), 1, 1)
    log.write()


@pytest.mark.parametrize("size", (0, 1, 255, 256, 257, 700))
def test_a_copy_is_the_log(log, copy, size):
    log.fill(size)
    log.write()
    done = export(log, copy, f"--key={log.vkey}")
    assert (done["size"], done["size_before"]) == (size, 0) and audited(log, copy) == size
    mine, theirs = files(copy), files(log.directory)
    assert mine.keys() <= theirs.keys() and done["files_written"] == len(mine)
    assert all(path.read_bytes() == theirs[name].read_bytes() for name, path in mine.items())
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in mine.values())
    assert all(path.stat().st_mode & 0o777 == 0o755 for path in copy.rglob("*") if path.is_dir())
    assert export(log, copy)["files_written"] == 1, "the checkpoint, which may have new cosignatures"


def test_a_copy_is_continued(log, copy):
    """Three levels; only what is new is read and written."""
    log.fill(65_530)
    log.write()
    export(log, copy)
    before = {name: path.stat().st_mtime_ns for name, path in files(copy).items()}
    add_later(log, 300)
    log.requests.clear()
    done = export(log, copy)
    assert (done["size_before"], done["size"]) == (65_530, 65_830) and audited(log, copy) == 65_830
    changed = [name for name, path in files(copy).items() if before.get(name) != path.stat().st_mtime_ns]
    assert len(changed) == done["files_written"] == 2 * 3 + 2 + 1 + 1 and len(log.requests) < 40
    assert "tile/2/000.p/1" in changed


@pytest.mark.parametrize("missing", ("tile/entries/000.p/9", "tile/0/000.p/9"))
def test_the_checkpoint_comes_last(log, copy, missing):
    log.fill(5)
    log.write()
    export(log, copy)
    kept = (copy / "checkpoint").read_bytes()
    add_later(log, 4)
    (log.directory / missing).unlink()
    assert missing in export(log, copy, code=2)
    assert (copy / "checkpoint").read_bytes() == kept and audited(log, copy) == 5


def test_a_log_that_was_rewritten_is_not_copied(log, copy):
    log.fill(300)
    log.write()
    export(log, copy)
    before = {name: path.read_bytes() for name, path in files(copy).items()}
    log.entries[7] = log.entries[8]
    add_later(log, 20)
    assert "was rewritten" in export(log, copy, code=1)
    log.write(size=200)
    assert "more than the log's 200" in export(log, copy, code=1)
    assert before == {name: path.read_bytes() for name, path in files(copy).items()}


def test_files_that_contradict_each_other_are_not_copied(log, copy):
    log.fill(300)
    log.write()
    right = (log.directory / "tile" / "entries" / "000").read_bytes()
    (log.directory / "tile" / "entries" / "000").write_bytes(right.replace(digest("seal").encode()[:4], b"ffff", 1)
                                                             if digest("seal").encode()[:4] in right else
                                                             right[:-9] + bytes([right[-9] ^ 1]) + right[-8:])
    assert "is not the leaf" in export(log, copy, code=1)
    shutil.rmtree(log.directory / "tile" / "0")
    log.write()
    (log.directory / "tile" / "0" / "001.p" / "44").write_bytes(b"x" * 32 * 44)
    assert "do not lead to the root" in export(log, copy, code=1)
    assert not files(copy)


@pytest.mark.parametrize("height", (1, 2))
def test_a_full_tile_leads_to_the_root(log, copy, height):
    """Entries that match their tile are not enough, nor tiles that match each other below the root."""
    log.fill(65_830)
    log.write()
    places = [log.directory / "tile" / name for name in ("entries/003", "0/003", "1/000")][:height + 1]
    right = [place.read_bytes() for place in places]
    entries = log.entries[768:1024]
    entries[5] = entry_text(digest("other"), 1, 9)
    leaves = [tlog.leaf_hash(entry) for entry in entries]
    places[0].write_bytes(b"".join(struct.pack(">H", len(entry)) + entry for entry in entries))
    places[1].write_bytes(b"".join(leaves))
    if height == 2:
        places[2].write_bytes(right[2][:96] + tlog.root(leaves) + right[2][128:])
    assert f"tile/{height - 1}/00{3 if height == 1 else 0} does not lead to the root" in export(log, copy, code=1)
    assert not (copy / "checkpoint").exists()
    for place, data in zip(places, right):
        place.write_bytes(data)
    export(log, copy)
    assert audited(log, copy) == 65_830


def test_another_log_has_a_place_of_its_own(log, copy, tmp_path):
    log.fill(3)
    log.write()
    export(log, copy)
    other = StaticLog(tmp_path / "other", origin="log.example/other")
    other.fill(9)
    other.write()
    assert "a place of its own" in export(other, copy, code=2)
    turned = StaticLog(tmp_path / "turned", origin="log.example/\u202eother")
    turned.write()
    cause = export(turned, tmp_path, f"--key={log.vkey}", code=2)
    assert 'of "log.example/???other"' in cause, "text that nobody vouches for is a quotation"
    turned.close()
    assert "not signed by the given key" in export(other, tmp_path, f"--key={log.vkey}", code=2)
    other.close()
    assert "not a directory" in export(log, tmp_path / "nowhere", code=2)
    done = run("log", "export", f"--url={log.url}")
    assert done.returncode == 2 and "--to PLACE is missing" in done.stderr


def test_the_log_of_a_service_in_an_s3_service(tmp_path):
    server = s3_server.Server(tmp_path)
    service = started(tmp_path / "a")
    service.start()
    try:
        log = Log(service)
        channel = service.new_channel(credits=100)
        for rounds in (2, 1):
            grow(log, channel, rounds)
            done = run("log", "export", "--json", "--to", server.url("log"), *service.chosen(),
                       "--url", f"http://127.0.0.1:{service.port}/log", environment=server.environment())
            assert done.returncode == 0, done.stdout + done.stderr
            assert json.loads(done.stdout)["size"] == log.size()
            copy = tmp_path / f"copy-{rounds}"
            for name, stored in server.objects.items():
                path = copy / name.removeprefix("log/")
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(stored["path"], path)
            done = run("log", "audit", "--json", "--dir", copy, "--key", log.key.vkey)
            assert done.returncode == 0, done.stdout + done.stderr
    finally:
        service.discard()
        server.stop()
