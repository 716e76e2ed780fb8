"""What is broken fails alone: registrations and seals of one chain, while all others continue. What a
clock that was ahead recorded waits until the clock has reached it."""

import json
import re
import threading

import pytest

import stores
from client import Client, Service, eventually, fresh
from nodes import SetClock, clock_behind

pytestmark = pytest.mark.both_stores

AHEAD_SECONDS = 3600


def warnings(service):
    return json.loads(service.monitor("/readyz")[1])["warnings"]


def live_chain(channel):
    return ("(SELECT channel * 2 FROM channels WHERE channel_id = "
            f"{stores.text(channel.id)})")


def move_head(service, channel, by):
    """Of its live chain. Set back, what is registered next would be written over another event."""
    service.stop()
    service.store.change(f"UPDATE chains SET last_sequence = last_sequence + {by} "
                         f"WHERE chain = {live_chain(channel)}")
    service.start()


def at_once(count, work):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_broken_chain_fails_no_registration_but_its_own(tmp_path):
    service = Service(tmp_path, rate__live=100000, seal__interval="1s").start()
    try:
        account = service.new_account(credits=100000)
        broken = service.new_channel(account_id=account)
        beside = service.new_channel(account_id=account)
        others = [service.new_channel(credits=100000) for _ in range(4)]
        broken.live.register().expect(201)
        move_head(service, broken, -1)
        channels = [broken, beside, *others] * 2
        seen = {}

        def work(n):
            client = Client(service, channels[n].live_key["key"])
            for _ in range(20):
                status = client.register().status
                seen.setdefault(channels[n].id, set()).add(status)
            client.close()

        at_once(len(channels), work)
        assert seen.pop(broken.id) == {503}
        assert set(map(frozenset, seen.values())) == {frozenset({201})}
        assert any("registrations of some chains fail" in each for each in warnings(service))
        assert service.metric("registration_chains_quarantined") == 1
        told = service.logged(lambda line: line["event"] == "registration_quarantined")
        assert re.fullmatch(r"event run \d+ is not the last run of its chain"
                            r"|postgresql: duplicate key .* unique constraint \"events_pkey\" .*", told[0]["cause"])

        move_head(service, broken, 1)
        broken.live.register().expect(201)
        assert service.metric("registration_chains_quarantined") == 0
        assert not any("registrations" in each for each in warnings(service))
        assert service.stop() == 0
    finally:
        service.discard()


def test_a_broken_chain_is_left_out_of_the_rounds(tmp_path):
    service = Service(tmp_path, rate__live=100000, seal__interval="1h").start()
    try:
        service.acts_sealed()  # what is registered now is sealed by the next start at the earliest
        broken, other = service.new_channel(), service.new_channel()
        for channel in (broken, other):
            for _ in range(3):
                channel.last = channel.live.register().expect(201).json
        service.stop()
        service.store.change(
            f"UPDATE {stores.EVENTS} SET chain_hash = {stores.blob(b'short')} "
            f"WHERE event = {live_chain(broken)} * 1099511627776 + 2")
        service.settings["seal.interval"] = "1s"
        service.start()
        other.live.sealed(other.last["event_id"])
        other.live.sealed(other.live.register().expect(201).json["event_id"])
        assert broken.live.event(broken.last["event_id"])["timestamp"]["type"] == "pending"
        assert any("cannot be sealed" in each for each in warnings(service))
        assert service.metric("seal_chains_quarantined") == 1
        assert service.metric("seal_failures_total") == 0
        told = service.logged(lambda line: line["event"] == "chain_not_sealed")
        assert told[0]["chain"] == broken.id
        assert other.live.certified(seq_from=1, seq_to=4)["status"] == "completed"
        assert service.stop() == 0
    finally:
        service.discard()


def errors(service):
    return [line for line in service.log_lines() if line["level"] == "error"]


def refused(client):
    return client.register().expect(503, "temporarily_unavailable")


def test_a_clock_that_runs_ahead_refuses_at_once(tmp_path):
    """Before the first timestamp and after it, where the store is its own; else by the store's."""
    clock = SetClock(tmp_path)
    service = Service(tmp_path, environment=clock.environment, rate__live=100000,
                      seal__interval="1s")
    service.start()
    try:
        channel = service.new_channel()
        clock.set(-AHEAD_SECONDS)
        refused(channel.live)
        clock.set(0)
        event = channel.live.register({"n": 1}, client_ref="a").expect(201).json
        channel.live.sealed(event["event_id"])

        clock.set(-AHEAD_SECONDS)
        for _ in range(20):
            answer = refused(channel.live)
            assert "clock" in answer.message and 1 <= int(answer.headers["Retry-After"]) <= 60
        again = channel.live.register({"n": 1}, client_ref="a").expect(200)
        assert again.headers["Idempotent-Replayed"] == "true"
        channel.test.register().expect(201)
        channel.live.event(event["event_id"])
        status, text = service.monitor("/readyz")
        (reason,) = json.loads(text)["reasons"]
        assert status == 503 and "clock is 3" in reason and " s ahead of the " in reason
        assert 3000 < service.metric("clock_ahead_seconds") <= AHEAD_SECONDS
        assert service.metric("registrations_clock_refused_total") == 21
        service.logged(lambda line: line["event"] == "clock_rejected", 2)
        told = [line["event"] for line in errors(service)]
        assert told.count("clock_rejected") == 2
        assert "request_failed" not in told and "clock_behind_chain" not in told

        clock.set(0)
        after = channel.live.register({"n": 2}).expect(201).json
        assert after["sequence"] == 2
        channel.live.sealed(after["event_id"])
        assert service.monitor("/readyz")[0] == 200
        assert service.stop() == 0
    finally:
        service.discard()


def test_after_a_clock_that_ran_ahead_its_chains_wait(tmp_path):
    """The embedded authority keeps the true time."""
    service = Service(tmp_path, rate__live=100000, seal__interval="1s", tsa__time_bound="2h",
                      seal__clock_bound="2h")
    service.start()
    try:
        ahead = service.new_channel()
        service.stop()
        service.environment = clock_behind(tmp_path, -AHEAD_SECONDS)
        service.start()
        reference = fresh()
        event = ahead.live.register({"a": 1}, client_ref=reference).expect(201).json
        told = eventually(lambda: errors(service), "no timestamp is taken that is too early")
        assert (told[0]["event"], told[0]["error"]) == ("seal_failed", "temporarily_unavailable")
        assert re.search(r"the time is \d+ ms earlier than permitted", told[0]["cause"])
        service.stop()
        service.environment = {}
        service.settings["seal.clock_bound"] = "5s"
        service.start()

        refused = ahead.live.register().expect(503, "temporarily_unavailable")
        assert int(refused.headers["Retry-After"]) == 60
        assert "clock" in refused.message
        again = ahead.live.register({"a": 1}, client_ref=reference).expect(200)
        assert again.headers["Idempotent-Replayed"] == "true"
        ahead.test.register().expect(201)
        now = service.new_channel()
        now.live.sealed(now.live.register().expect(201).json["event_id"])
        assert ahead.live.event(event["event_id"])["timestamp"]["type"] == "pending"
        assert any("clock is behind" in each for each in warnings(service))
        assert service.metric("registrations_clock_refused_total") == 1
        eventually(lambda: service.metric("seal_chains_ahead") == 1, "a pass counted it")
        for event in ("clock_behind_chain", "chain_ahead_of_clock"):
            (told, *_) = service.logged(lambda line, event=event: line["event"] == event)
            assert told["level"] == "error"
        assert service.stop() == 0
    finally:
        service.discard()
