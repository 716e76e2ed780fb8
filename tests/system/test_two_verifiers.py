"""`constancia verify` and the independent verifier, written from docs/verify/evidence-format.md alone, find the
same result for the same evidence: valid, and damaged in every way that these files allow."""

import io
import json
import pathlib
import random
import re
import subprocess
import zipfile

import pytest

import check_archive as second_verifier
import check_cms
from check_report import check as check_report_file
from client import run

SUPPORT = pathlib.Path(second_verifier.__file__).parent
FLIPS = 60
SIGNATURE = "META-INF/signature001.p7s"


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
    report = directory / "report.pdf"
    report.write_bytes(channel.live.download(record["report_url"]).expect(200).body)
    test = channels[0].test
    test.register_hash("0" * 64).expect(201)
    record = test.certified(seq_from=1, seq_to=1)
    (directory / "test.pdf").write_bytes(test.download(record["report_url"]).expect(200).body)
    for channel in channels:
        channel.close()
    return archives, service.data / "trust.pem"


def check_archive(path, trust):
    second_verifier.check(["--trust", str(trust), str(path)])


def check_report(path, trust):
    check_report_file(path.read_bytes(), str(trust))


def verdicts(path, trust, check=check_archive):
    """Whether each finds it valid."""
    try:
        check(path, trust)
        second = True
    except second_verifier.REFUSALS:
        second = False
    return run("verify", path, "--trust", trust).returncode == 0, second


def both_refuse(content, trust, path, what, check=check_archive):
    path.write_bytes(content)
    assert verdicts(path, trust, check) == (False, False), what


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


def der(tag, *contents):
    inside = b"".join(contents)
    size = len(inside)
    length = bytes([size]) if size < 128 else \
        bytes([128 | (size.bit_length() + 7) // 8]) + size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag]) + length + inside


def with_revocations(p7s, change):
    """The signature with what `change` makes of its list of revocation data; None: without a place."""
    oid, data = check_cms.elements(check_cms.content(p7s, 0x30, "CMS"))
    parts = [whole for _, _, whole in check_cms.elements(check_cms.content(data[1], 0x30, "data"))]
    at = next(at for at, part in enumerate(parts) if part[0] == 0xa1)
    changed = change([whole for _, _, whole in check_cms.elements(check_cms.content(parts[at], 0xa1, "crls"))])
    parts[at] = b"" if changed is None else der(0xa1, *sorted(changed))
    version = 5 if any(each[0] == 0xa1 for each in changed or []) else 1
    return der(0x30, oid[2], der(0xa0, der(0x30, der(2, bytes([version])), *parts[1:])))


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
    """The same roots do not vouch for another service's archive, although it is complete."""
    fixture = SUPPORT / "fixtures/evidence-1/archive.zip"
    assert verdicts(fixture, issued[1]) == (False, False)


# ---- what validates an archive's signature is inside it, and nothing is over it ----

def test_both_refuse_what_the_signature_does_not_need(issued, tmp_path):
    archives, trust = issued
    own, other = (dict(entries(archive)) for archive in (archives[0], archives[2]))
    path = tmp_path / "changed.zip"

    def packed_with(change):
        p7s = with_revocations(own[SIGNATURE], change)
        return packed([*list(own.items())[:-1], (SIGNATURE, p7s)])
    foreign = []
    with_revocations(other[SIGNATURE], lambda found: foreign.extend(found) or found)
    inside = []
    assert packed_with(lambda found: inside.extend(found) or found) == archives[0].read_bytes()
    assert len(inside) >= 2
    junk = der(0x30, *[der(2, b"\1")] * 1000)
    for what, change in {
        "junk": lambda found: [*found, junk],
        "junk as an answer": lambda found: [*found, der(0xa1, der(6, check_cms.OCSP_FORMAT), junk)],
        "of another form": lambda found: [*found, der(0xa1, der(6, b"\x2a\3"), der(0x30))],
        "others'": lambda found: [*found, *(set(foreign) - set(found))],
        "twice": lambda found: [*found, found[0]],
        "none, though there is a place": lambda found: [],
        "one more, and much": lambda found: [*found, der(0x30, bytes(200000))],
    }.items():
        if what != "others'" or set(foreign) - set(inside):
            both_refuse(packed_with(change), trust, path, what)
    for at in range(len(inside)):
        both_refuse(packed_with(lambda found: found[:at] + found[at + 1:]), trust, path, f"without {at}")
    # All of it taken out: nothing shows whether it ever was there, but that is reported.
    path.write_bytes(packed_with(lambda found: None))
    assert verdicts(path, trust) == (True, True)
    told = json.loads(run("verify", path, "--trust", trust, "--json").stdout)
    assert [each["level"] for each in told["signatures"]] == ["B-T"]
    assert any("contains no revocation data" in each["what"] for each in told["warnings"])


# ---- reports ----

def test_both_find_good_reports_valid(issued):
    archives, trust = issued
    for report, level in (("report.pdf", "B-LTA"), ("test.pdf", "B-B")):
        path = archives[0].parent / report
        assert verdicts(path, trust, check_report) == (True, True)
        told = json.loads(run("verify", path, "--trust", trust, "--json").stdout)
        assert [each["level"] for each in told["signatures"]] == [level]


def test_both_find_changed_reports(issued, tmp_path):
    archives, trust = issued
    content = (archives[0].parent / "report.pdf").read_bytes()
    path, chosen = tmp_path / "changed.pdf", random.Random(2)
    update = content.index(b"/Type /DSS")
    places = [begin + int((len(content) - begin) * (number + chosen.random()) / (FLIPS // 2))
              for begin in (0, update) for number in range(FLIPS // 2)]
    for at in places:
        damaged = bytearray(content)
        damaged[at] ^= 1 << chosen.randrange(8)
        both_refuse(bytes(damaged), trust, path, f"byte {at}", check_report)
    ends = [match.end() for match in re.finditer(rb"%%EOF\n", content)]
    for size in (0, 100, len(content) // 2, ends[-2], len(content) - 1):
        both_refuse(content[:size], trust, path, f"{size} bytes", check_report)
    for more in (b"\n", content[ends[-2]:], b"%%EOF\n"):
        both_refuse(content + more, trust, path, f"{len(more)} bytes more", check_report)


def test_both_take_a_report_as_it_was_signed(issued, tmp_path):
    """Without what was added for its validation it is one of level B-T."""
    archives, trust = issued
    content = (archives[0].parent / "report.pdf").read_bytes()
    ends = [match.end() for match in re.finditer(rb"%%EOF\n", content)]
    path = tmp_path / "cut.pdf"
    path.write_bytes(content[:ends[-3]])
    assert verdicts(path, trust, check_report) == (True, True)
    told = json.loads(run("verify", path, "--trust", trust, "--json").stdout)
    assert [each["level"] for each in told["signatures"]] == ["B-T"]
    assert any("contains no revocation data" in each["what"] for each in told["warnings"])


def test_both_ask_for_a_report_of_the_roots(issued, tmp_path):
    archives, trust = issued
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=Other",
                    "-keyout", tmp_path / "key", "-out", other], check=True, capture_output=True)
    path = archives[0].parent / "report.pdf"
    assert verdicts(path, other, check_report) == (False, False)
