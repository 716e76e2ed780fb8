"""When witnesses cosigned what an archive has, and what `constancia verify` says of it: archives with a log as an
operator could forge it who wants to hide that segments were witnessed late."""

import json
import sys

import pytest

import tlog
from client import run
from program import ROOT

sys.path.insert(0, str(ROOT / "tests/corpus/evidence"))
import forge  # noqa: E402

pytestmark = pytest.mark.sqlite

LATE = 7200
NAMES = ("one", "two", "three")
WITNESSES = {name: forge.log_key(f"{name}.example", tlog.COSIGNATURE) for name in NAMES}
LOG = forge.log_key(forge.ORIGIN)
# Three segments; the tree has 4, 8, 12 and at the end 15 entries.
EVENTS = {"events": [[60 * number, f"event {number}"] for number in range(3)],
          "rounds": [{"at": 60 * number + 10, "by": ["one"], "covers": [number + 1] * 2} for number in range(3)]}


def seconds(after):
    return int(forge.moment(after).replace(tzinfo=forge.datetime.timezone.utc).timestamp())


@pytest.fixture
def verified(tmp_path, monkeypatch):
    def verify(cosigned, *options, witnesses=NAMES, code=0, issued=LATE + 60, false=(), **log):
        """Findings by code; `cosigned` are by size of the tree the times of each witness: seconds after the base files
        were made, or as a text after 1970."""
        def note_of(_given, size, root, _number=0):
            text = tlog.checkpoint_text(forge.ORIGIN, size, root)
            times = {name: int(time) if isinstance(time, str) else seconds(time)
                     for name, time in cosigned.get(size, {}).items()}
            lines = [LOG.sign(text), *(WITNESSES[name].cosign(text, time) for name, time in times.items())]
            return f"{text}\n{''.join(lines)}" + (WITNESSES["one"].line(b"\0" * 72) if size in false else "")

        monkeypatch.setattr(forge, "note_of", note_of)
        path = tmp_path / "evidence.zip"
        path.write_bytes(forge.history(None, {**EVENTS, "issued": issued, "log": log}))
        keys = [f"--witness={WITNESSES[name].vkey}" for name in witnesses]
        done = run("verify", path, "--trust", ROOT / "tests/corpus/evidence/base/roots.pem", "--json",
                   f"--at={forge.moment(issued + 86400):%Y-%m-%dT%H:%M:%SZ}", f"--log-key={LOG.vkey}", *keys, *options)
        assert done.returncode == code, done.stdout + done.stderr
        result = json.loads(done.stdout)
        verify.cosigned_by = [each["name"] for each in result["logs"][0]["cosigned_by"]]
        return {each["code"]: each["what"] for each in (*result["findings"], *result["warnings"])
                if each["code"].startswith("log.")}
    return verify


def all_of(time, *names):
    return {name: time for name in names or NAMES}


def test_segments_that_witnesses_saw_in_time(verified):
    at_once = {size: all_of(200) for size in (4, 8, 12, 15)}
    assert not verified(at_once)
    assert not verified({**at_once, 15: all_of(LATE)}), "the newest checkpoint alone is late"
    assert verified.cosigned_by == [WITNESSES[name].name for name in NAMES]


def test_segments_that_witnesses_saw_late(verified):
    assert verified({size: all_of(LATE) for size in (4, 8, 12, 15)})["log.witnessed_late"].startswith("3 ")


@pytest.mark.parametrize("at_once, late", (((), 3), ((4,), 2), ((8,), 1), ((12,), 0)))
def test_cosignatures_that_are_left_out_hide_no_delay(verified, at_once, late):
    """The first checkpoint that witnesses cosigned says when they saw the segments of those before it."""
    found = verified({**{size: all_of(200) for size in at_once}, 15: all_of(LATE)})
    assert set(found) == ({"log.witnessed_late"} if late else set())
    assert not late or found["log.witnessed_late"].startswith(f"{late} ")


@pytest.mark.parametrize("quorum, late", ((1, False), (2, True), (3, True)))
def test_one_witness_hides_no_delay_from_a_quorum(verified, quorum, late):
    cosigned = {size: {"one": 200, "two": LATE, "three": LATE + 1} for size in (4, 8, 12, 15)}
    assert ("log.witnessed_late" in verified(cosigned, f"--quorum={quorum}")) == late


@pytest.mark.parametrize("quorum, late", ((1, False), (2, False), (3, True)))
def test_one_witness_that_is_late_proves_no_delay(verified, quorum, late):
    cosigned = {size: {"one": LATE, "two": 200, "three": 201} for size in (4, 8, 12, 15)}
    assert ("log.witnessed_late" in verified(cosigned, f"--quorum={quorum}")) == late


def test_a_log_that_nobody_cosigned(verified):
    assert set(verified({}, "--quorum=2", code=2)) == {"log.no_quorum", "log.not_witnessed"}
    found = verified({4: all_of(200)}, "--quorum=0")
    assert set(found) == {"log.not_witnessed"} and found["log.not_witnessed"].startswith("2 ")
    assert not verified({}, witnesses=()), "without witnesses nothing was asked about them"


@pytest.mark.parametrize("time", ("0", "1000000000", "253402300799"))
def test_times_that_cannot_be_right_do_not_count(verified, time):
    true = {size: all_of(200, "two", "three") for size in (4, 8, 12, 15)}
    stated = {size: {**all_of(200), "one": time} for size in (4, 8, 12, 15)}
    found = verified(stated, code=2)
    assert set(found) == {"log.no_quorum", "log.cosignature_time", "log.not_witnessed"}
    assert "one.example" in found["log.no_quorum"] and "one.example" in found["log.cosignature_time"]
    assert verified.cosigned_by == [WITNESSES[name].name for name in NAMES[1:]]
    assert set(verified(stated, "--quorum=2")) == {"log.cosignature_time"}
    assert not verified(true, "--quorum=2")


@pytest.mark.parametrize("time, possible", (
    (-299, True), (-301, False), (LATE + 61 + 300, True), (LATE + 61 + 301, False)))
def test_clocks_of_witnesses_may_differ(verified, time, possible):
    """By five minutes: from the reception of the last event, and from the signature of the archive."""
    at = 120 + time if time < 0 else time
    found = verified({4: all_of(100), 8: all_of(100), 12: all_of(200), 15: all_of(at)}, code=0 if possible else 2)
    assert ("log.cosignature_time" not in found) == possible


def test_signatures_that_decide_nothing_are_not_verified(verified):
    """So that the number of checkpoints in an archive, which no segment needs, costs nothing."""
    cosigned = {size: all_of(200, "two", "three") for size in (4, 8, 12, 15)}
    assert not verified(cosigned, "--quorum=2", more_sizes=[2, 6], false=(2, 6))
    for size in (4, 15):
        assert "log.signature_false" in verified(cosigned, "--quorum=2", code=1, false=(size,))


@pytest.mark.parametrize("name", ("report-en.pdf", "test.zip", "live.zip"))
def test_a_policy_that_nothing_can_satisfy_is_not_passed_over(tmp_path, name):
    base = ROOT / "tests/corpus/evidence/base"
    words = ["verify", base / name, "--trust", base / "roots.pem", "--json",
             f"--at={forge.moment(86400):%Y-%m-%dT%H:%M:%SZ}"]
    before = run(*words)
    done = run(*words, f"--log-key={LOG.vkey}")
    assert before.returncode == 0 and done.returncode == 2, before.stdout + done.stdout
    expected = "log.no_archive" if name.endswith(".pdf") else "log.absent"
    assert expected in {each["code"] for each in json.loads(done.stdout)["findings"]}
    assert expected not in before.stdout


def test_the_name_of_an_unknown_log_is_a_quotation(tmp_path):
    path = tmp_path / "evidence.zip"
    path.write_bytes(forge.history(None, {**EVENTS, "log": {}}))
    words = ["verify", path, "--trust", ROOT / "tests/corpus/evidence/base/roots.pem",
             f"--at={forge.moment(86400):%Y-%m-%dT%H:%M:%SZ}"]
    assert f'the log "{forge.ORIGIN}"' in run(*words).stdout
    assert f"the log {forge.ORIGIN}" in run(*words, f"--log-key={LOG.vkey}").stdout
