"""Tests of campaigns: what is counted, resumed and ended, with work in place of runs of the service."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import campaign
import cases
import planted
import pytest
import workers


def result(violations=(), error=None):
    return {**workers.failed(error), "violations": list(violations), "operations": {"register": {"201": 2, "0": 1}},
            "faults": {"kill": 1}}


def work(script, directory, program, kept):
    """In place of a run: what it shows is in the script."""
    os.makedirs(directory)
    if script.get("raises"):
        raise OSError(script["raises"])
    time.sleep(script.get("seconds", 0))
    return result(script.get("violations", ()))


@pytest.fixture(name="campaign_of")
def make_campaign(monkeypatch, tmp_path):
    monkeypatch.setattr(workers.Workers.__init__, "__defaults__", (work,))
    (tmp_path / "kept").mkdir()

    def make(script_of, path=None, **more):
        state = campaign.State(path, "sqlite", 10)
        return campaign.Campaign(state, script_of, tmp_path / "kept", program="none", jobs=2,
                                 progress=campaign.Progress(io.StringIO()), **more)
    return make


def test_counts(campaign_of, tmp_path):
    path = tmp_path / "state.json"
    one = campaign_of(lambda seed: {}, path, runs=4)
    assert one.run() == 0
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["operations"] == {"register": {"201": 8, "0": 4}} and kept["faults"] == {"kill": 4}
    assert kept["histories"] == 4 and kept["next_seed"] == 14 and kept["ahead"] == []


def test_is_resumed(campaign_of, tmp_path):
    path = tmp_path / "state.json"
    campaign_of(lambda seed: {}, path, runs=3).run()
    seen = []
    second = campaign_of(lambda seed: seen.append(seed) or {}, path, runs=2)
    assert second.state.resumed
    second.run()
    assert seen == [13, 14] and second.state["histories"] == 5


def test_a_seed_that_was_skipped_by_a_stop_is_done_later():
    state = campaign.State(None, "sqlite", 10)
    state.add(11, result())
    assert state["next_seed"] == 10 and state["ahead"] == [11]
    seeds = state.seeds()
    assert [next(seeds), next(seeds)] == [10, 12]
    state.add(10, result())
    assert state["next_seed"] == 12 and state["ahead"] == []


def test_a_state_of_another_store_is_refused(tmp_path):
    campaign.State(tmp_path / "state", "sqlite", 1).write()
    with pytest.raises(ValueError):
        campaign.State(tmp_path / "state", "postgresql", 1)


def test_a_violation_is_kept(campaign_of, tmp_path):
    one = campaign_of(lambda seed: {"violations": ["gapless: 1, 3"] if seed == 11 else []}, runs=3)
    assert one.run() == 1
    assert [(had["seed"], had["rules"]) for had in one.state["violations"]] == [(11, ["gapless"])]
    assert json.loads((tmp_path / "kept/11.script.json").read_text()) == {"violations": ["gapless: 1, 3"]}


def test_a_run_that_cannot_be_done_is_a_failure(campaign_of):
    one = campaign_of(lambda seed: {"raises": "no room"} if seed == 10 else {}, runs=2)
    assert one.run() == 2
    (failure,) = one.state["failures"]
    assert failure["seed"] == 10 and "no room" in failure["error"] and one.state["histories"] == 2


def test_ends_at_the_first_violation(campaign_of):
    one = campaign_of(lambda seed: {"violations": ["gapless: x"], "seconds": 0 if seed == 10 else 60},
                      until_violation=True)
    begun = time.monotonic()
    assert one.run() == 1 and one.state["histories"] == 1
    assert time.monotonic() - begun < 30


def test_two_at_a_time():
    with workers.Workers(2, work) as crew:
        crew.start("a", {})
        assert crew.free
        crew.start("b", {})
        assert not crew.free
        done = []
        while crew.running:
            done += crew.wait(1)
    assert sorted(name for name, _ in done) == ["a", "b"]
    assert not crew.directory.exists()


def test_a_process_that_is_killed_is_a_failure():
    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)
    with workers.Workers(1, die) as crew:
        crew.start("a", {})
        ((_, told),) = crew.wait(60)
    assert workers.rules_of(told) == {workers.NOT_DONE}


def test_signals_end_it_in_order(tmp_path):
    program = f"""
import sys, time, pathlib, io
sys.path[:0] = {sys.path!r}
import campaign, workers
def work(script, directory, program, kept):
    pathlib.Path(directory).mkdir()
    pathlib.Path({str(tmp_path)!r}, "running").touch()
    time.sleep(600)
workers.Workers.__init__.__defaults__ = (work,)
campaign.stop_by_signals()
state = campaign.State(pathlib.Path({str(tmp_path)!r}, "state"), "sqlite", 1)
try:
    campaign.Campaign(state, lambda seed: {{}}, pathlib.Path({str(tmp_path)!r}), program="", jobs=2,
                      progress=campaign.Progress(io.StringIO())).run()
except campaign.Stopped:
    sys.exit(5)
"""
    (tmp_path / "files").mkdir()
    with subprocess.Popen([sys.executable, "-B", "-c", program],
                          env={**os.environ, "TMPDIR": str(tmp_path / "files")}) as process:
        end = time.monotonic() + 60
        while not (tmp_path / "running").exists() and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(60) == 5
        finally:
            process.kill()
    assert not list((tmp_path / "files").iterdir())


def test_progress_on_a_terminal_is_one_line():
    class Terminal(io.StringIO):
        def isatty(self):
            return True
    terminal = Terminal()
    progress = campaign.Progress(terminal)
    progress.line("1 history")
    progress.detail("seed 1")
    progress.line("2 histories")
    progress.say("VIOLATED")
    assert terminal.getvalue() == "\r1 history\x1b[K\r2 histories\x1b[K\r\x1b[KVIOLATED\n"
    plain = campaign.Progress(io.StringIO())
    plain.line("1 history")
    plain.detail("seed 1")
    assert plain.stream.getvalue() == "seed 1\n"


def test_cases_are_complete():
    for name, case in cases.load().items():
        assert case["finds"].endswith(".") and "…" not in case["finds"], f"{name} has no sentence"
        assert case["runs"] >= 1 and case["store"] in ("sqlite", "postgresql"), name


def test_cases_run_as_often_as_they_say(campaign_of, tmp_path):
    assert campaign_of
    progress = campaign.Progress(io.StringIO())
    case = {"store": "sqlite", "runs": 3, "finds": "gapless: nothing.", "violations": []}
    bad = {**case, "violations": ["gapless: 1, 3"]}
    more = {"program": "", "jobs": 2, "keep": tmp_path, "progress": progress}
    assert cases.run("sqlite", scripts={"one": case}, **more) == 0
    assert cases.run("sqlite", scripts={"one": case, "two": bad}, **more) == 1
    assert cases.run("postgresql", scripts={"two": bad}, **more) == 0
    assert "case one: 3 runs, 0 bad" in progress.stream.getvalue()


def test_table_of_planted_faults():
    rows = {"flush": {"found": True, "rules": ["one_event_for_a_ref"], "seed": 3, "histories": 2, "operations": 9,
                      "seconds": 61.4, "not_done": 0},
            "merge": {"found": False, "rules": [], "seed": None, "histories": 70, "operations": 9, "seconds": 1800.2,
                      "not_done": 1}}
    text = planted.table(rows)
    assert "| yes | 2 | 61 | `one_event_for_a_ref` |" in text
    assert "| no | 70 | 1800 | 1 could not be done |" in text
