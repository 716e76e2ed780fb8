"""`constancia verify` and the independent verifier, written from docs/evidence-format.md alone, find the
same of the same evidence: good, and damaged in every way that these files have."""

import io
import pathlib
import random
import subprocess
import sys
import zipfile

import pytest

from client import run

SCRIPT = pathlib.Path(__file__).parent.parent / "support/check_archive.py"
FLIPS = 60


@pytest.fixture(scope="module")
def issued(service, tmp_path_factory):
    """Two archives of one channel, which hold different rounds, and one of another channel."""
    directory = tmp_path_factory.mktemp("issued")
    archives = []
    channels = [service.new_channel("hash_only") for _ in range(2)]
    for channel, first, last in ((channels[0], 1, 4), (channels[0], 5, 6), (channels[1], 1, 3)):
        for number in range(first, last + 1):
            channel.live.register_hash(f"{number:064x}").expect(201)
        record = channel.live.certified(seq_from=first, seq_to=last)
        path = directory / f"archive-{len(archives)}.zip"
        path.write_bytes(channel.live.download(record["evidence_url"]).expect(200).body)
        archives.append(path)
    for channel in channels:
        channel.close()
    return archives, service.data / "trust.pem"


def verdicts(path, trust):
    """Whether each finds it valid."""
    other = subprocess.run([sys.executable, "-B", str(SCRIPT), "--trust", str(trust), str(path)],
                           capture_output=True, text=True, check=False)
    assert other.returncode in (0, 1), other.stderr
    return run("verify", path, "--trust", trust).returncode == 0, other.returncode == 0


def both_refuse(content, trust, path, what):
    path.write_bytes(content)
    assert verdicts(path, trust) == (False, False), what


def test_both_find_good_archives_valid(issued):
    archives, trust = issued
    for archive in archives:
        assert verdicts(archive, trust) == (True, True)


def test_both_find_flipped_bytes(issued, tmp_path):
    """Sampled evenly, with a seed that changes nothing from one run to the next but the archive."""
    archives, trust = issued
    content = archives[1].read_bytes()
    chosen = random.Random(1)
    step = len(content) / FLIPS
    for number in range(FLIPS):
        at = min(int(step * (number + chosen.random())), len(content) - 1)
        damaged = bytearray(content)
        damaged[at] ^= 1 << chosen.randrange(8)
        both_refuse(bytes(damaged), trust, tmp_path / "flipped.zip", f"byte {at}")


def test_both_find_what_was_cut_off_or_added(issued, tmp_path):
    archives, trust = issued
    content = archives[1].read_bytes()
    sizes = [0, 1, 4, 30, len(content) // 3, len(content) // 2, len(content) - 22, len(content) - 1]
    for size in sizes:
        both_refuse(content[:size], trust, tmp_path / "cut.zip", f"{size} bytes")
    for more in (b"\0", b"PK\5\6" + bytes(18), content):
        both_refuse(content + more, trust, tmp_path / "longer.zip", f"{len(more)} bytes more")
        both_refuse(more + content, trust, tmp_path / "longer.zip", f"{len(more)} bytes before")


def entries(path):
    with zipfile.ZipFile(path) as archive:
        return [(each.filename, archive.read(each)) for each in archive.infolist()]


def packed(files):
    """As the format has it, so that only what was changed is wrong."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files:
            facts = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            facts.create_version, facts.extract_version, facts.create_system = 10, 10, 3
            facts.external_attr = 0x81A40000
            archive.writestr(facts, content)
    return out.getvalue()


def test_both_take_an_archive_apart_and_together_again(issued, tmp_path):
    """So the next test damages nothing by its packing."""
    archives, trust = issued
    path = tmp_path / "again.zip"
    path.write_bytes(packed(entries(archives[0])))
    assert path.read_bytes() == archives[0].read_bytes()
    assert verdicts(path, trust) == (True, True)


def test_both_find_files_that_were_exchanged_removed_doubled_and_moved(issued, tmp_path):
    archives, trust = issued
    own, others = entries(archives[0]), [entries(archive) for archive in archives[1:]]
    path = tmp_path / "changed.zip"
    for at, (name, content) in enumerate(own):
        both_refuse(packed(own[:at] + own[at + 1:]), trust, path, f"without {name}")
        both_refuse(packed([*own[:at], (name, b""), *own[at + 1:]]), trust, path, f"empty {name}")
        for other in others:  # of other rounds, and of another channel
            foreign = dict(other).get(name)
            if foreign is not None and foreign != content:
                both_refuse(packed([*own[:at], (name, foreign), *own[at + 1:]]), trust, path,
                            f"another {name}")
        if at + 1 < len(own):
            both_refuse(packed([*own[:at], own[at + 1], own[at], *own[at + 2:]]), trust, path,
                        f"{name} later")
    both_refuse(packed([*own, ("more", b"x")]), trust, path, "one more")


def test_both_find_archives_of_other_keys(issued):
    """The same roots do not vouch for another service's archive, whole as it is."""
    fixture = SCRIPT.parent / "fixtures/evidence-1/archive.zip"
    assert verdicts(fixture, issued[1]) == (False, False)
