"""Tests of recorded histories: what is written is what is read."""

import pytest
from builders import KEY_OF_OTHERS, Building, event, operation, violated
from history import FOREVER, RULES, History, lasting


@pytest.fixture(name="building")
def make_building():
    building = Building(facts={"names": {"a0": "acc_1"}})
    first, second = event("r0", 1), event("r1", 2, at=2.0)
    building.register(first)
    building.register("r1", status=0)
    building.register(second, client="client 1", step=7, node=1)
    building.fault("kill", 0.3, 0.5, fault="kill", at=0.3, node=0)
    building.deliveries.append({"receiver": 0, "status": 200, "record": {"type": "credits_low"}})
    building.ends.append({"process": "<node1>", "status": -6, "log": ""})
    building.close(first, second)
    return building


def test_write_and_read(building, tmp_path):
    written = building.history()
    written.write(tmp_path / "history")
    read = History.read(tmp_path / "history")
    for member in ("script", "facts", "operations", "faults", "deliveries", "ends"):
        assert getattr(read, member) == getattr(written, member), member
    assert read.operations[1].completed == FOREVER


def test_operations_are_in_the_order_of_their_invocation():
    late, early = operation("balance", invoked=2.0), operation("balance", invoked=1.0)
    assert History({}, [late, early]).operations == [early, late]


def test_good_and_refused():
    expected = {0: (False, False), 200: (True, False), 201: (True, False), 404: (False, True), 503: (False, False)}
    for status, (good, refused) in expected.items():
        one = operation("register", status=status)
        assert (one.good, one.refused) == (good, refused), status


def test_views(building):
    history = building.history()
    assert [one.status for one in history.registrations["a0/0/live"]["r1"]] == [0, 201]
    assert [one["sequence"] for one in history.final["a0/0/live"]] == [1, 2]
    assert set(history.acknowledged["a0/0/live"]) == {event("r0", 1)["event_id"], event("r1", 2)["event_id"]}
    assert len(history.sightings) == 2 + 2 * 2
    assert history.faulty(0.4, 0.4, "kill") and not history.faulty(0.6, 0.9) and not history.faulty(0.4, 0.4, "freeze")


def test_chains_are_kept_apart():
    building = Building()
    building.register(event("r0"))
    building.register(event("r0", chain="a1/0/live"), key=KEY_OF_OTHERS)
    assert set(building.history().registrations) == {"a0/0/live", "a1/0/live"}


def test_lasting_is_what_may_not_change():
    first = event("r0")
    assert lasting(first) == lasting({**first, "status": "unpaid", "timestamp": {"status": "batch"}, "proof": {}})
    assert lasting(first) != lasting({**first, "sequence": 9})


def test_every_rule_has_a_sentence():
    for one in RULES:
        assert one.sentence[0].isupper() or "." in one.sentence.split()[0] or "_" in one.sentence.split()[0], one.name
        assert one.sentence.endswith("."), one.name
    assert len({one.name for one in RULES}) == len(RULES)


def test_an_empty_history_violates_nothing():
    assert violated(Building()) == []
