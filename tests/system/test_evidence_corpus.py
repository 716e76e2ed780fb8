"""The corpus of damaged and forged evidence (tests/corpus/evidence): `constancia verify` says of each case what is stated, and
the second verifier, written from docs/verify/evidence-format.md alone, agrees on every kind that it knows."""

import hashlib
import sys

import pytest

from program import BINARY, ROOT

sys.path.insert(0, str(ROOT / "tests/corpus/evidence"))
import check_archive  # noqa: E402
import check_cms  # noqa: E402
import check_report  # noqa: E402
import forge  # noqa: E402

CASES = forge.load_cases()
CASES_MIN = 300
# Kinds that no second verifier judges, and why. Cases of other kinds have their own reason in `second`.
UNKNOWN = {
    "record": "check_record.py knows the RFC's rules alone: neither roots of certificates nor whose an event is",
    "container": "no second verifier reads containers: what is inside is of the other kinds",
    "documents": "several kinds at once: each is judged separately",
}
BATCHES = 16  # tests of about as many cases each

pytestmark = pytest.mark.sqlite


def second_verdict(case, paths, trust):
    """Its status as check_archive.py or check_report.py would have it, and its reason."""
    try:
        if case["kind"] == "report":
            return 0, check_report.check(paths[0].read_bytes(), check_cms.Trust(trust, check_cms.moment(case["at"])))
        beside = [("--beside", each) for each in paths[1:]] if case["kind"] == "histories" else [paths[1:]]
        return 0, check_archive.check(list(map(str, ["--at", case["at"], *(["--trust", trust] if trust else []), paths[0],
                                                     *(word for words in beside for word in words)])))
    except check_cms.NotEstablished as reason:
        return 2, reason
    except check_archive.REFUSALS as reason:
        return 1, reason


def faults_of(case, directory):
    exit_, told, (paths, trust, _) = forge.verify(BINARY, case, directory)
    faults = []
    for name, digest in case.get("sha256", {}).items():
        if hashlib.sha256((directory / name).read_bytes()).hexdigest() != digest:
            faults.append(f"{name} is another file than it was")
    findings = [each["what"] for each in told["findings"]]
    if (exit_, told["verdict"]["code"]) != (case["exit"], case["code"]):
        faults.append(f"verify says {told['verdict']['code']} ({exit_}): {findings[:2]}")
    for member, said in (("finding", findings), ("warning", [each["what"] for each in told["warnings"]])):
        if member in case and not any(case[member] in each for each in said):
            faults.append(f"no {member} '{case[member]}': {said[:3]}")
    if case["kind"] not in UNKNOWN and "second" not in case:
        status, reason = second_verdict(case, paths, trust)
        if status != case["exit"]:
            faults.append(f"the second verifier says {status}: {reason}")
    return faults


@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_corpus(batch, tmp_path):
    wrong = []
    for number, case in enumerate(CASES[batch::BATCHES]):
        directory = tmp_path / str(number)
        directory.mkdir()
        wrong += [f"{case['name']}: {case['what']}: stated is {case['code']} ({case['exit']}): {fault}"
                  for fault in faults_of(case, directory)]
        for path in directory.iterdir():
            path.unlink()
    assert not wrong, "\n".join(wrong)


def test_what_the_corpus_holds():
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names)
    assert sum(case["code"] != "valid" for case in CASES) >= CASES_MIN
    for family in ("same-authority", "stolen", "invented", "chain", "token", "receipt", "history", "signer", "authority",
                   "log"):
        assert any(name.startswith(family + "/") for name in names), family
    assert {case["kind"] for case in CASES} == {"archive", "histories", "report", *UNKNOWN}
