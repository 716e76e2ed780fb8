"""Tests of the generator: a seed is a script, and a script is consistent in itself."""

import json

import faults
import faults_postgresql  # noqa: F401 - registers its faults
import pytest
import script as scripts
from fault import KINDS
from operations import Interface

SEEDS = range(6)


@pytest.mark.parametrize("store, nodes", [("sqlite", 1), ("postgresql", 2)])
def test_same_seed_same_script(store, nodes):
    for seed in SEEDS:
        assert scripts.draw(seed, store, nodes) == scripts.draw(seed, store, nodes)


def test_other_seed_other_script():
    assert len({json.dumps(scripts.draw(seed)) for seed in SEEDS}) == len(SEEDS)


def test_a_script_is_json():
    for seed in SEEDS:
        script = scripts.draw(seed)
        assert json.loads(json.dumps(script)) == script


def test_steps_are_numbered_once_and_refer_to_earlier_ones():
    for seed in SEEDS:
        steps = {step["id"]: step for steps in scripts.draw(seed)["clients"] for step in steps}
        assert sorted(steps) == list(range(len(steps)))
        for number, step in steps.items():
            assert step.get("of", -1) < number


def test_everything_drawn_can_be_run():
    for seed in SEEDS:
        script = scripts.draw(seed)
        for step in [*script["setup"], *(step for steps in script["clients"] for step in steps)]:
            assert callable(getattr(Interface, step["op"], None)), step
        assert {fault["fault"] for fault in script["faults"]} <= set(KINDS)


def test_setup_binds_what_it_refers_to():
    for seed in SEEDS:
        script = scripts.draw(seed)
        bound = {f"receiver {number}" for number in range(len(script["receivers"]))}
        for step in script["setup"]:
            for value in step.get("arguments", {}).values():
                assert not isinstance(value, dict) or value["$"] in bound, step
            bound.add(step.get("binds"))


def test_pairs_are_of_known_faults():
    assert {name for pair in faults.PAIRS for name in pair} <= KINDS.keys()
