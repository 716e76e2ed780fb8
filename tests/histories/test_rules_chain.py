"""Rules of rules_chain.py, rules_certifications.py and rules_answers.py on small histories made by hand."""

import pytest
from builders import CHAIN, KEY, Building, event, time_of, violated
from rules_chain import digest_of, record_of

CONFIG = "c" * 64
NAME = "CERT-2026-0000001"


def chained(*refs, **members):
    """Returns the events of a chain, each with the digest of its record."""
    events, previous = [], "0" * 64
    for sequence, ref in enumerate(refs, 1):
        one = event(ref, sequence, at=0.05 + 0.2 * (sequence - 1), modality="content", config_version=1, **members)
        one |= {"timestamp": {"type": "pending", "reference": None, "sealed_at": None},
                "proof": {"previous_chain_hash": previous, "config_hash": CONFIG}}
        one["chain_hash"] = previous = digest_of(record_of(one, previous, CONFIG))
        events.append(one)
    return events


def listed(one):
    return {name: value for name, value in one.items() if name != "proof"}


def history_of(events, change=None):
    """Returns a history in which the events were registered, read and listed. `change` is made to the last one."""
    building = Building()
    for one in events:
        building.register(listed(one))
        building.add("get_event", {"key": KEY, "chain": CHAIN, "of_chain": CHAIN, "event_id": one["event_id"]},
                     answer=dict(one))
    for one in building.operations if change else ():
        if one.answer["event_id"] == events[-1]["event_id"]:
            one.answer |= change
    building.close(*(listed(one) | (change if change and one is events[-1] else {}) for one in events))
    return building


@pytest.mark.parametrize("change", [None, {"received_at": time_of(0.26)}, {"hash": "1" * 64}, {"client_ref": "x"},
                                    {"occurred_at": time_of(0)}, {"chain_hash": "2" * 64}])
def test_chain_hashes_are_of_the_records(change):
    found = violated(history_of(chained("r0", "ñ"), change), "chain_hashes_are_of_the_records")
    assert bool(found) == bool(change), found


@pytest.mark.parametrize("member", ["previous_chain_hash", "config_hash"])
def test_a_proof_names_what_is_before(member):
    events = chained("r0", "r1")
    building = history_of(events)
    building.add("get_event", {"key": KEY, "chain": CHAIN, "of_chain": CHAIN, "event_id": events[1]["event_id"]},
                 answer=events[1] | {"proof": events[1]["proof"] | {member: "3" * 64}})
    assert violated(building, "chain_hashes_are_of_the_records")


def sealed(reference="seg_1", at=5.0):
    """Returns a sealed event with its proof."""
    one = chained("r0")[0]
    one["timestamp"] = {"type": "batch", "reference": reference, "sealed_at": time_of(at)}
    one["proof"] |= {"segment": {"segment_id": "seg_1", "first_sequence": 1, "last_sequence": 3},
                     "round": {"sealed_at": time_of(5.0)}}
    return one


@pytest.mark.parametrize("one, right", [(sealed(), True), (sealed("seg_2"), False), (sealed(at=6.0), False),
                                        (sealed() | {"sequence": 4}, False)])
def test_proofs_are_of_their_segment(one, right):
    assert bool(violated(history_of([one]), "proofs_are_of_their_segment")) != right


@pytest.mark.parametrize("interval, moved, right", [("1s", False, False), ("60s", False, True), ("1s", True, True)])
def test_live_events_are_sealed(interval, moved, right):
    building = Building(script={"settings": {"seal.interval": interval}}, facts={"clock_moved": moved})
    pending = event("r1", 2, timestamp={"type": "pending", "reference": None, "sealed_at": None})
    building.close(sealed(), pending)
    assert bool(violated(building, "live_events_are_sealed")) != right
    building = Building(script={"settings": {"seal.interval": interval}})
    building.close(sealed())
    assert not violated(building, "live_events_are_sealed")


def test_answers_are_about_what_was_asked():
    events = chained("r0", "r1")
    building = history_of(events)
    assert not violated(building, "answers_are_about_what_was_asked")
    building.add("get_event", {"key": KEY, "chain": CHAIN, "of_chain": CHAIN, "event_id": events[0]["event_id"]},
                 answer=events[1])
    assert violated(building, "answers_are_about_what_was_asked")


@pytest.mark.parametrize("at, right", [(0.05, True), (0.12, True), (2.0, False), (-0.5, False)])
def test_received_within_the_request(at, right):
    one = event("r0") | {"received_at": time_of(at)}
    building = Building()
    building.register(one)  # from 0.0 to 0.1
    building.close(one)
    assert bool(violated(building, "received_within_the_request")) != right
    building.facts["clock_moved"] = True
    assert not violated(building, "received_within_the_request")


# ---- certifications ----


def certification(**members):
    return {"certification_id": NAME, "channel_id": "a0/0", "mode": "live", "status": "completed", "event_count": 1,
            "range": {"from": None, "to": None, "seq_from": 1, "seq_to": 1}, "requested_at": time_of(1),
            "verification_code": "SVC-1", "reports": [{"sha256": "a" * 64}], "content_parts": [], **members}


def request(building, key="o1", name=NAME, **more):
    return building.add("certification request", {"channel": "a0/0", "mode": "live", "seq_from": 1, "seq_to": 1,
                                                  "idempotency_key": key}, answer=certification(certification_id=name),
                        **more)


def read(building, record, **more):
    return building.add("certification", {"key": KEY, "chain": CHAIN, "of_chain": CHAIN, "certification_id": NAME},
                        answer=record, **more)


def listing(building, *items):
    return building.add("certifications", {"key": KEY, "chain": CHAIN, "filters": {}, "limit": 50, "page": 0,
                                           "walk": 1}, answer={"data": list(items), "has_more": False}, closing=True)


def test_operators_requests_are_listed():
    building = Building()
    request(building)
    request(building)  # the same certification again
    listing(building, certification())
    assert not violated(building, "accepted_certifications_are_listed", "idempotency_keys_hold")
    building = Building()
    request(building)
    listing(building)
    assert violated(building, "accepted_certifications_are_listed")


@pytest.mark.parametrize("key, name", [("o1", "CERT-2026-0000002"), ("o2", NAME), (None, NAME)])
def test_operators_keys_stand_for_one_certification(key, name):
    building = Building()
    request(building)
    request(building, key, name)
    assert violated(building, "idempotency_keys_hold")


def test_an_idempotency_key_is_free_after_a_day():
    for hours, right in ((23, False), (25, True)):
        building = Building()
        request(building)
        later = certification(certification_id="CERT-2026-0000002", requested_at=time_of(1 + hours * 3600))
        building.add("certification request", {"channel": "a0/0", "mode": "live", "seq_from": 1, "seq_to": 1,
                                               "idempotency_key": "o1"}, answer=later)
        assert bool(violated(building, "idempotency_keys_hold")) != right, hours


@pytest.mark.parametrize("settings, seconds, right", [
    ({}, 3600, False), ({}, 86_401, True), ({"certification.give_up_after": "1s"}, 0.9, False),
    ({"certification.give_up_after": "1s"}, 1.5, True)])
def test_a_certification_fails_late(settings, seconds, right):
    building = Building(script={"settings": settings})
    read(building, certification(status="failed", completed_at=time_of(1 + seconds)), closing=True)
    assert bool(violated(building, "certifications_complete")) != right


@pytest.mark.parametrize("count, moved, right", [(2, False, True), (1, False, False), (2, True, True),
                                                 (1, True, False)])
def test_earlier_events_are_certified(count, moved, right):
    """The clock says that the events are later than the request."""
    building = Building(facts={"clock_moved": moved})
    events = [event(f"r{number}", number + 1, at=10 + number) for number in range(3)]
    for one in events[:2]:
        building.register(one)
    asked = {"from": time_of(9), "to": time_of(60), "seq_from": None, "seq_to": None}
    record = certification(event_count=count, range=asked, requested_at=time_of(1 if moved else 11.5))
    building.add("certify", {"key": KEY, "chain": CHAIN, "range": asked, "idempotency_key": None}, answer=record)
    building.register(events[2])
    read(building, record, closing=True)
    building.close(*events)
    assert bool(violated(building, "earlier_events_are_certified")) != right
    assert bool(violated(building, "ranges_are_closed")) != (right or moved)


def test_counts_never_change():
    building = Building()
    read(building, certification(status="processing"))
    read(building, certification())
    assert not violated(building, "counts_never_change")
    listing(building, certification(event_count=2))
    assert violated(building, "counts_never_change")


@pytest.mark.parametrize("stamp, right", [({"type": "batch", "reference": "s", "sealed_at": time_of(2)}, True),
                                          ({"type": "pending", "reference": None, "sealed_at": None}, False),
                                          ({"type": "batch", "reference": "s", "sealed_at": time_of(-60)}, False)])
def test_certified_events_are_sealed(stamp, right):
    building = Building()
    one = event("r0", timestamp=stamp)
    building.register(one)
    read(building, certification(), closing=True)
    building.close(one)
    assert bool(violated(building, "certified_events_are_sealed")) != right


def test_codes_are_found():
    def looked_up(**more):
        building = Building(facts={"lost": [[90.0, 95.0]]})
        read(building, certification(), invoked=10.0)
        answer = certification() | {"documents": [{"sha256": "a" * 64}]}
        building.add("verify", {"certification_id": NAME, "by": "code", "value": "SVC-1"},
                     **{"answer": answer | more.pop("answer", {}), **more})
        return violated(building, "codes_are_found")
    assert not looked_up() and not looked_up(status=429) and not looked_up(status=0)
    assert looked_up(status=404)
    assert not looked_up(status=404, invoked=9.0)  # before anybody knew that it was completed
    assert not looked_up(status=404, invoked=92.0)  # a promotion lost what this read may have shown
    assert looked_up(answer={"event_count": 2}) and looked_up(answer={"documents": []})


# ---- answers ----


@pytest.mark.parametrize("kind, status, own, right", [
    ("register", 400, True, False), ("register", 402, True, True), ("register", 409, True, True),
    ("register", 404, True, False), ("register", 429, True, True), ("register", 408, True, True),
    ("list", 400, True, False), ("list", 400, False, True), ("list", 401, True, True), ("get_event", 404, True, True),
    ("get_event", 400, True, False), ("certify", 400, True, True), ("balance", 402, True, False)])
def test_right_requests_are_not_refused(kind, status, own, right):
    building = Building()
    building.add(kind, {"key": KEY, "chain": CHAIN, "of_chain": CHAIN if own else "a1/0/live"}, status=status,
                 answer={"code": "x"})
    assert bool(violated(building, "right_requests_are_not_refused")) != right


@pytest.mark.parametrize("kind, arguments, right", [
    ("credits add", {"account": "a0", "credits": 5}, False), ("credits add", {"account": "a0", "credits": -5}, True),
    ("account suspend", {"account": "a0"}, False), ("threshold create", {"account": "a0"}, True)])
def test_right_commands_are_not_refused(kind, arguments, right):
    building = Building()
    building.add(kind, arguments, status=400, answer={"code": "validation_error"})
    assert bool(violated(building, "right_commands_are_not_refused")) != right


@pytest.mark.parametrize("events, certifications, right", [(1, 1, True), (2, 1, False), (1, 0, False)])
def test_store_check_counts(events, certifications, right):
    building = Building()
    one = event("r0")
    building.register(one)
    building.close(one)
    listing(building, certification())
    building.add("store check", {}, answer={"problems": [], "events": events, "certifications": certifications},
                 closing=True)
    assert bool(violated(building, "store_check_counts")) != right


# ---- a demoted primary that lives on ----


def answered(kind, status, answer=None, facts=None, **arguments):
    building = Building(facts=facts)
    one = event("r0")
    building.register(one)
    building.add(kind, {"key": KEY, "chain": CHAIN, "of_chain": CHAIN, "event_id": one["event_id"], **arguments},
                 status=status, answer=answer or {"code": "not_found"}, invoked=12.0)
    building.close(one)
    return building


@pytest.mark.parametrize("rule, kind, status, more", [
    ("acknowledged_is_found", "get_event", 404, {}),
    ("contents_equal_their_digests", "get_content", 404, {"form": "json", "digest": "0"}),
    ("refs_are_linearizable", "register", 422, {"client_ref": "r0", "identity": ["0", "sha-256", None]}),
    ("existing_events_can_be_certified", "certify", 400, {"range": {"seq_from": 1, "seq_to": 1}}),
    ("keys_are_refused_rightly", "balance", 401, {}),
    ("suspensions_refuse_rightly", "register", 403, {"client_ref": "r1", "answer": {"code": "suspended"}})])
def test_a_demoted_primary_may_not_know(rule, kind, status, more):
    assert violated(answered(kind, status, **more), rule)
    assert not violated(answered(kind, status, facts={"split": [[11.0, 13.0]]}, **more), rule)
    assert violated(answered(kind, status, facts={"split": [[13.0, 14.0]]}, **more), rule)


def test_a_request_that_was_too_slow_says_nothing():
    assert not violated(answered("register", 408, client_ref="r0", identity=["0", "sha-256", None]),
                        "refs_are_linearizable")


def test_certifications_were_requested():
    building = Building()
    request(building, "o1")
    building.add("certify", {"key": KEY, "chain": CHAIN, "range": {}, "idempotency_key": None}, status=0)
    listing(building, certification(), certification(certification_id="CERT-2026-0000002"))
    assert not violated(building, "certifications_were_requested")
    building.operations[1].status, building.operations[1].completed = 409, 0.5
    assert violated(building, "certifications_were_requested")


@pytest.mark.parametrize("shown, at, right", [((1, 2), 1.0, True), ((1,), 1.0, False), ((1,), 0.0, True),
                                              ((), 1.0, False)])
def test_walks_by_status_show_everything(shown, at, right):
    events = [event(f"r{number}", number, at=0.1 * number) for number in (1, 2)]
    building = Building()
    for one in events:
        building.register(one)
    building.list(*(one for one in events if one["sequence"] in shown), filters={"status": "registered"}, invoked=at)
    building.close(*events)
    assert bool(violated(building, "walks_by_status_show_everything")) != right


def test_a_balance_that_a_promotion_lost_says_nothing():
    def read(facts):
        building = Building(facts={"names": {"a0": "acc_0"}, **facts})
        building.add("account create", {"name": "a0", "credits": 20}, answer={"account_id": "acc_0"})
        building.add("balance", {"account": "a0", "key": KEY, "chain": CHAIN}, invoked=50.0,
                     answer={"balance": 15, "operational": True, "unpaid_events": 0})
        first = {"number": 1, "kind": "adjustment", "credits": 20, "balance": 20, "reference": "initial credits"}
        building.add("credits list", {"account": "a0"}, closing=True, answer={"data": [first], "has_more": False})
        return violated(building, "balances_are_of_their_time", "balances_do_not_go_back")
    assert len(read({})) == 2
    assert not read({"lost": [[49.0, 60.0]]})


@pytest.mark.parametrize("levels, least, verified, right", [
    (["B-LTA"], "LT", 0, True), (["B-LT"], "LT", 0, True), (["B-T"], "LT", 0, False), (["B-T"], "LTA", 0, False),
    (["B-LTA", "B-B"], "T", 0, False), ([], "T", 0, False), (["B-T"], "T", 0, True), (["B-LT"], "LTA", 0, True),
    (["B-B"], "B", 0, True), ([], "T", 1, True), (None, "LTA", 0, True)])
def test_archives_have_their_level(levels, least, verified, right):
    building = Building(script={"settings": {"certification.level": least}})
    read(building, certification(), closing=True)
    building.add("download", {"certification_id": NAME, "file": "evidence"}, closing=True, answer={
        "events": [], "levels": levels, "verified": verified, "verdict": "{}"})
    assert bool(violated(building, "archives_have_their_level")) != right


@pytest.mark.parametrize("shown, right", [((0, 2), True), ((2,), False), ((0, 1, 2), True)])
def test_registered_events_are_listed(shown, right):
    building, events = Building(), chained("r0", "r1", "r2")
    events[1]["status"] = "unpaid"
    building.close(*events)
    building.list(*[events[place] for place in reversed(shown)], order="desc", filters={"status": "registered"},
                  closing=True)
    assert bool(violated(building, "registered_events_are_listed")) != right
