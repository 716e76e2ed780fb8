"""Tests of the shrinker, with a runner that violates when certain parts are present."""

import functools
import io
import json
import random

import campaign
import pytest
import script as scripts
import shrink
from builders import Building, operation

RULE = "gapless"
STEPS = 100


class FakeRunner:
    """Violates the rule where `needs` says so, in this share of the runs."""

    def __init__(self, needs, rate=1.0, runs_max=100_000):
        self.needs, self.rate, self.runs_max = needs, rate, runs_max
        self.runs, self.chosen = 0, random.Random(1)

    def over(self):
        return self.runs >= self.runs_max

    def shows(self, script):
        self.runs += 1
        return self.needs(script) and self.chosen.random() < self.rate

    def rates(self, script, runs):
        share = sum(self.shows(script) for _ in range(runs)) / runs
        return ({RULE: share} if share else {}), {}

    def first(self, scripts_, attempts, rule):
        assert rule == RULE
        for place, script in enumerate(scripts_):
            if any(self.shows(script) for _ in range(attempts)):
                return place
        return None


def search(script, runner, order=(), saved=None):
    state = {"original": shrink.digest_of(script), "rule": RULE, "rate": runner.rate, "order": list(order),
             "best": script, "failed": []}
    progress = campaign.Progress(io.StringIO())
    save = (lambda: saved.append(json.loads(json.dumps(state)))) if saved is not None else (lambda: None)
    return shrink.Shrinker(runner, state, save, progress), state


def ids(script):
    return {step["id"] for steps in script["clients"] for step in steps}


@functools.cache
def drawn():
    for seed in range(100):
        script = scripts.draw(seed)
        if len(script["clients"]) >= 4 and len(script["faults"]) >= 3 and script["sizes"] and script["receivers"]:
            return json.dumps({**script, "clients": [steps[:STEPS // 4] for steps in script["clients"][:4]]})
    raise AssertionError("no seed draws one")


def large():
    """Returns a script with several clients, faults, constants and pauses."""
    return json.loads(drawn())


def test_keeps_what_is_needed_and_nothing_else():
    script = large()
    wanted = set(random.Random(3).sample(sorted(ids(script)), 3))
    fault = script["faults"][1]
    runner = FakeRunner(lambda one: wanted <= ids(one) and any(
        (had["fault"], had.get("node")) == (fault["fault"], fault.get("node")) for had in one["faults"]))
    shrinker, state = search(script, runner)
    assert shrinker.run()
    best = state["best"]
    assert ids(best) == wanted and len(best["faults"]) == 1
    assert not best["sizes"] and not best["settings"] and not best["setup"] and not best["receivers"]
    assert len(best["clients"]) == 1
    assert not any("pause" in step for step in best["clients"][0])


def test_keeps_a_constant_a_setting_and_a_pause():
    script = large()
    number = next(step["id"] for step in shrink.steps_of(script) if "pause" in step)

    def needs(one):
        return ("batch" in one["sizes"] and "seal.interval" in one["settings"]
                and any(step["id"] == number and "pause" in step for step in shrink.steps_of(one)))
    shrinker, state = search(script, FakeRunner(needs))
    assert shrinker.run()
    assert list(state["best"]["sizes"]) == ["batch"] and list(state["best"]["settings"]) == ["seal.interval"]
    assert ids(state["best"]) == {number}


def crowd(*refs):
    return {"op": "at_once", "steps": [{"op": "register", "key": "a0/0/live/0", "client_ref": ref,
                                        "content": {"form": "json", "seed": 7, "size": 300}} for ref in refs]}


@pytest.mark.parametrize("wanted", [{"r1", "r3"}, {"r2"}])
def test_a_crowd_loses_what_is_not_needed(wanted):
    script = {**large(), "clients": [[{**crowd("r0", "r1", "r2", "r3"), "id": 5}]]}

    def refs(one):
        return {step["client_ref"] for whole in shrink.steps_of(one) for step in shrink.declaring(whole)}
    shrinker, state = search(script, FakeRunner(lambda one: wanted <= refs(one)))
    assert shrinker.run()
    ((step,),) = state["best"]["clients"]
    assert step["id"] == 5 and step["op"] == ("at_once" if len(wanted) > 1 else "register")
    assert refs(state["best"]) == wanted
    assert all(one["content"] == {"form": "json", "seed": 7, "size": 1} for one in shrink.declaring(step))


def test_set_up_is_kept_with_what_it_refers_to():
    script = large()
    key = [step["binds"] for step in script["setup"] if step["words"] == "key create"][-1]
    shrinker, state = search(script, FakeRunner(lambda one: any(step.get("binds") == key for step in one["setup"])))
    assert shrinker.run()
    assert [step["words"] for step in state["best"]["setup"]] == ["account create", "channel create", "key create"]


@pytest.mark.parametrize("needed", [False, True])
def test_a_series_of_backups_goes_with_the_steps_on_it(needed):
    script = {**large(), "backups": True}
    script["clients"][0] += [{"op": "backup_list", "id": 900}, {"op": "admin", "words": "store backup", "arguments": {},
                                                                "id": 901}]
    first = min(ids(script))
    shrinker, state = search(script, FakeRunner(lambda one: first in ids(one) and (one["backups"] or not needed)))
    assert shrinker.run()
    assert ids(state["best"]) == {first} and state["best"]["backups"] == needed


def test_a_violation_that_shows_seldom_is_reduced_too():
    script = large()
    wanted = set(random.Random(4).sample(sorted(ids(script)), 2))
    shrinker, state = search(script, FakeRunner(lambda one: wanted <= ids(one), rate=0.5))
    shrinker.run()
    assert wanted <= ids(state["best"]) and len(ids(state["best"])) < 10


def test_a_search_that_was_stopped_continues():
    script = large()
    wanted = set(random.Random(5).sample(sorted(ids(script)), 2))

    def needs(one):
        return wanted <= ids(one)
    whole = FakeRunner(needs)
    search(script, whole)[0].run()
    saved = []
    shrinker, _ = search(script, FakeRunner(needs, runs_max=whole.runs // 2), saved=saved)
    assert not shrinker.run()
    assert saved and needs(saved[-1]["best"]) and len(ids(saved[-1]["best"])) < len(ids(script))
    second = FakeRunner(needs)
    continued = shrink.Shrinker(second, saved[-1], lambda: None, campaign.Progress(io.StringIO()))
    assert continued.run() and ids(saved[-1]["best"]) == wanted
    assert second.runs < whole.runs


def test_nothing_is_tried_twice():
    script, tried = large(), []

    def needs(one):
        tried.append(shrink.digest_of(one))
        return ids(one) >= {0}
    runner = FakeRunner(needs)
    shrinker, state = search(script, runner)
    shrinker.measure = lambda: None
    shrinker.run()
    failed = [one for one in tried if one in state["failed"]]
    assert len(failed) == len(set(failed))


def test_original_is_not_changed():
    script = large()
    before = json.dumps(script)
    search(script, FakeRunner(lambda one: True))[0].run()
    assert json.dumps(script) == before


@pytest.mark.parametrize("rate, attempts", [(1.0, 1), (0.5, 5), (0.25, 11), (0.01, 20), (0.0, 20)])
def test_attempts_follow_from_the_rate(rate, attempts):
    assert shrink.attempts_for(rate) == attempts


def test_rules_are_measured_and_the_most_frequent_one_is_kept():
    class Runner(FakeRunner):
        def rates(self, script, runs):
            return {"gapless": 0.2, "receipts_hold": 0.9, "not_done": 1.0}, {
                name: None for name in ("gapless", "receipts_hold")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shrink.History, "read", staticmethod(lambda _: Building(script={"clients": [[]]}).history()))
        runner = Runner(lambda one: True)
        runner.first = lambda *_: 0
        assert shrink.begin({"faults": []}, runner, None)["rule"] == "receipts_hold"
        assert shrink.begin({"faults": []}, runner, "gapless")["rule"] == "gapless"
        with pytest.raises(shrink.NotShown):
            shrink.begin({"faults": []}, runner, "real_time_order")


def steps(*numbers):
    return [{"op": "balance", "key": "a0/0/live/0", "id": number} for number in numbers]


def test_faults_are_tied_to_steps():
    fault = {"fault": "kill", "at": 0.6, "for": 1.0, "node": 0}
    building = Building(script={"clients": [steps(0, 2), steps(1)], "faults": [fault]})
    building.operations = [operation("balance", invoked=at, step=step) for at, step in ((0.1, 0), (0.5, 1), (0.9, 2))]
    building.fault("kill", 0.62, 0.9, **fault)
    script, order = shrink.tied(building.history())
    assert script["faults"] == [{"fault": "kill", "at": 0.12, "for": 1.0, "node": 0, "after": 1}]
    assert order == [0, 1, 2]
    shorter = shrink.consistent(shrink.without_steps(script, {1}), order)
    assert shorter["faults"][0]["after"] == 0
    assert "after" not in shrink.consistent(shrink.without_steps(script, {0, 1}), order)["faults"][0]


def test_a_script_can_be_read():
    script = large()
    text = shrink.listed(script)
    for word in ("set-up:", "client 0:", "account create as a0", "fault: ", "settings: ", "constants: "):
        assert word in text, word
    assert all(f"#{number} " in text for number in ids(script))
