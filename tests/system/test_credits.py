"""The balance, unpaid events and their settlement, and consumption limits."""

import datetime
import time

import pytest

from client import BALANCE, Client, Refused

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("one_day")]


def check_balance(client, balance, unpaid):
    record = client.balance()
    assert set(record) == BALANCE
    assert record == {"balance": balance, "unpaid_events": unpaid,
                      "operational": unpaid == 0 and balance >= 0}
    assert type(record["balance"]) is int and type(record["unpaid_events"]) is int


def statuses(channel):
    return [event["status"] for event in channel.live.walk("/v1/events", 100)]


def test_one_live_event_consumes_one_credit_and_a_test_event_none(service):
    channel = service.new_channel(credits=5)
    check_balance(channel.live, 5, 0)
    for left in (4, 3):
        channel.live.register().expect(201)
        check_balance(channel.live, left, 0)
    channel.test.register().expect(201)
    check_balance(channel.test, 3, 0)
    channel.live.register(client_ref="").expect(400)
    check_balance(channel.live, 3, 0)


def test_without_credits_events_are_unpaid_up_to_the_limit_and_then_refused(service):
    channel = service.new_channel(credits=1, unpaid_limit=2)
    events = [channel.live.register({"n": n}, f"e{n}").expect(201).json for n in range(3)]
    assert [event["status"] for event in events] == ["registered", "unpaid", "unpaid"]
    assert [event["sequence"] for event in events] == [1, 2, 3]
    check_balance(channel.live, 0, 2)
    answer = channel.live.register({"n": 3}, "e3").expect(402, "unpaid_limit_exceeded")
    assert "incident_id" in answer.json
    assert statuses(channel) == ["registered", "unpaid", "unpaid"]
    channel.test.register().expect(201)


def test_an_unpaid_limit_of_none_refuses_at_once(service):
    channel = service.new_channel(credits=1, unpaid_limit=0)
    channel.live.register().expect(201)
    channel.live.register().expect(402, "unpaid_limit_exceeded")
    check_balance(channel.live, 0, 0)


def test_the_unpaid_limit_is_100_unless_told_otherwise_and_of_the_whole_account(service):
    first = service.new_channel(credits=0)
    second = service.new_channel("hash_only", account_id=first.account_id)
    for n in range(50):
        assert first.live.register({"n": n}).expect(201).json["status"] == "unpaid"
        assert second.live.register_hash(f"{n:064x}").expect(201).json["status"] == "unpaid"
    check_balance(first.live, 0, 100)
    first.live.register().expect(402, "unpaid_limit_exceeded")
    second.live.register_hash("f" * 64).expect(402, "unpaid_limit_exceeded")


def test_credits_settle_the_oldest_unpaid_events_first_and_no_chain_is_touched(service):
    channel = service.new_channel(credits=0)
    before = [channel.live.register({"n": n}).expect(201).json for n in range(5)]
    moved = service.admin("credits", "add", channel.account_id, 2)
    assert (moved["balance"], moved["unpaid_events"], moved["settled_events"]) == (0, 3, 2)
    assert statuses(channel) == ["registered"] * 2 + ["unpaid"] * 3
    check_balance(channel.live, 0, 3)
    service.admin("credits", "add", channel.account_id, 10)
    assert statuses(channel) == ["registered"] * 5
    check_balance(channel.live, 7, 0)
    after = [channel.live.event(event["event_id"]) for event in before]
    for old, new in zip(before, after):
        for name in set(old) - {"status", "timestamp", "receipt"}:
            assert old[name] == new[name]
    channel.live.register().expect(201)
    check_balance(channel.live, 6, 0)


def test_settling_goes_by_age_across_the_channels_of_an_account(service):
    first = service.new_channel(credits=0)
    second = service.new_channel(account_id=first.account_id)
    for n in range(3):
        first.live.register({"n": n}).expect(201)
        second.live.register({"n": n}).expect(201)
    service.admin("credits", "add", first.account_id, 3)
    assert statuses(first) == ["registered", "registered", "unpaid"]
    assert statuses(second) == ["registered", "unpaid", "unpaid"]


def test_any_unpaid_event_of_the_account_refuses_its_certifications(service):
    first = service.new_channel(credits=1)
    first.live.register().expect(201)
    second = service.new_channel(account_id=first.account_id)
    unpaid = second.live.register().expect(201).json
    assert unpaid["status"] == "unpaid"
    for channel in (first, second):
        answer = channel.live.certify(seq_from=1, seq_to=1)
        answer.expect(402, "account_not_operational")
    first.test.register().expect(201)
    first.test.certify(seq_from=1, seq_to=1).expect(202)
    service.admin("credits", "add", first.account_id, 1)
    first.live.certify(seq_from=1, seq_to=1).expect(202)


def test_a_reverted_purchase_makes_the_balance_negative_and_the_account_not_operational(service):
    channel = service.new_channel(credits=3)
    channel.live.register().expect(201)
    with pytest.raises(Refused) as refused:
        service.admin("credits", "add", channel.account_id, -3)
    assert refused.value.exit == 1
    service.admin("credits", "add", channel.account_id, -3, "--revert")
    check_balance(channel.live, -1, 0)
    channel.live.certify(seq_from=1, seq_to=1).expect(402, "account_not_operational")
    assert channel.live.register().expect(201).json["status"] == "unpaid"
    # First the negative balance, then the debt, then the balance.
    service.admin("credits", "add", channel.account_id, 1)
    check_balance(channel.live, 0, 1)
    service.admin("credits", "add", channel.account_id, 1)
    check_balance(channel.live, 0, 0)
    assert statuses(channel) == ["registered", "registered"]
    channel.live.certify(seq_from=1, seq_to=2).expect(202)


def test_every_movement_of_credits_is_an_entry_and_their_sum_is_the_balance(service):
    channel = service.new_channel(credits=3)
    for n in range(5):
        channel.live.register({"n": n}).expect(201)
    service.admin("credits", "add", channel.account_id, 4, "--reason", "a gift")
    entries = service.admin("credits", "list", channel.account_id)["data"]
    assert sum(entry["credits"] for entry in entries) == channel.live.balance()["balance"] == 2
    assert entries[0]["balance"] == 2
    assert entries == sorted(entries, key=lambda entry: -entry["number"])
    kinds = {entry["kind"] for entry in entries}
    assert {"events", "settlement", "adjustment"} <= kinds


# ---- consumption limits ----

def limit(service, *where, most, action, period="day"):
    return service.admin("limit", "create", *where, "--period", period, "--max", most,
                         "--action", action)


@pytest.mark.parametrize("period", ["day", "month"])
def test_a_blocking_limit_of_a_channel_refuses_what_comes_after(channel, period):
    service = channel.service
    made = limit(service, "--channel", channel.id, most=2, action="block", period=period)
    assert made["limit_id"].startswith("lim_")
    channel.live.register({"n": 1}, "a").expect(201)
    channel.live.register({"n": 2}, "b").expect(201)
    channel.live.register({"n": 3}, "c").expect(422, "limit_blocked")
    second = Client(service, service.new_key(channel.id, "live")["key"])
    second.register().expect(422, "limit_blocked")
    check_balance(channel.live, 998, 0)
    assert len(channel.live.get("/v1/events").json["data"]) == 2
    other = service.new_channel(account_id=channel.account_id)
    other.live.register().expect(201)
    service.admin("limit", "delete", made["limit_id"])
    channel.live.register({"n": 3}, "c").expect(201)


def next_period(period, at):
    day = datetime.datetime.fromtimestamp(at, datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    return ((day.replace(day=1) + datetime.timedelta(days=32)).replace(day=1) if period == "month" else
            day + datetime.timedelta(days=1)).timestamp()


@pytest.mark.parametrize("periods", [["day"], ["month"], ["day", "month"]])
def test_a_blocked_event_is_told_when_the_next_period_begins(channel, periods):
    """Of several limits, the last one that blocks."""
    for period in periods:
        limit(channel.service, "--channel", channel.id, most=1, action="block", period=period)
    limit(channel.service, "--channel", channel.id, most=1000, action="block", period="month")
    limit(channel.service, "--channel", channel.id, most=1, action="warn", period="month")
    channel.live.register().expect(201)
    before = time.time()
    answer = channel.live.register().expect(422, "limit_blocked")
    until = next_period(periods[-1], before)
    assert until - time.time() - 1 <= int(answer.headers["Retry-After"]) <= until - before + 1


def test_test_events_do_not_count_and_are_not_blocked(channel):
    limit(channel.service, "--channel", channel.id, most=1, action="block")
    for _ in range(3):
        channel.test.register().expect(201)
    channel.live.register().expect(201)
    channel.live.register().expect(422, "limit_blocked")
    channel.test.register().expect(201)


def test_a_limit_of_a_key_counts_that_key_alone(channel):
    service = channel.service
    key = service.new_key(channel.id, "live")
    second = Client(service, key["key"])
    limit(service, "--key", key["key_id"], most=1, action="block", period="month")
    channel.live.register().expect(201)
    channel.live.register().expect(201)
    second.register().expect(201)
    second.register().expect(422, "limit_blocked")
    channel.live.register().expect(201)


@pytest.mark.parametrize("period", ["day", "month"])
def test_a_warning_limit_lets_events_through(channel, period):
    limit(channel.service, "--channel", channel.id, most=1, action="warn", period=period)
    for _ in range(3):
        channel.live.register().expect(201)
    check_balance(channel.live, 997, 0)


def test_what_was_registered_before_a_limit_counts_in_its_period(channel):
    for _ in range(2):
        channel.live.register().expect(201)
    limit(channel.service, "--channel", channel.id, most=2, action="block")
    channel.live.register().expect(422, "limit_blocked")
    listed = channel.service.admin("limit", "list", "--channel", channel.id)["data"]
    assert [(each["used"], each["max_events"], each["action"]) for each in listed] == \
        [(2, 2, "block")]


def test_the_strictest_of_several_limits_rules(channel):
    service = channel.service
    limit(service, "--channel", channel.id, most=5, action="block", period="month")
    limit(service, "--key", channel.live_key["key_id"], most=2, action="block")
    limit(service, "--channel", channel.id, most=1, action="warn")
    channel.live.register().expect(201)
    channel.live.register().expect(201)
    channel.live.register().expect(422, "limit_blocked")


def test_a_conflict_and_a_replay_use_nothing_of_a_limit(channel):
    limit(channel.service, "--channel", channel.id, most=2, action="block")
    channel.live.register({"n": 1}, "a").expect(201)
    channel.live.register({"n": 1}, "a").expect(200)
    channel.live.register({"n": 2}, "a").expect(409)
    channel.live.register({"n": 2}, "b").expect(201)
    channel.live.register({"n": 3}, "c").expect(422)


def test_a_test_key_cannot_have_a_limit(channel):
    with pytest.raises(Refused) as refused:
        limit(channel.service, "--key", channel.test_key["key_id"], most=1, action="block")
    assert refused.value.exit == 1


def test_a_limit_of_yesterday_or_last_month_does_not_hold_today(start):
    """The period ends while the service is down: what was used lies on an earlier day."""

    service = start()
    channel = service.new_channel()
    by_day = service.new_channel(account_id=channel.account_id)
    limit(service, "--channel", channel.id, most=1, action="block", period="month")
    limit(service, "--channel", by_day.id, most=1, action="block", period="day")
    for each in (channel, by_day):
        each.live.register().expect(201)
        each.live.register().expect(422, "limit_blocked")
    assert service.stop() == 0
    today = datetime.datetime.now(datetime.timezone.utc).date()
    yesterday = today - datetime.timedelta(days=1)
    assert service.store.rows("SELECT count(*) FROM daily_usage") == [["2"]]
    service.store.change(f"UPDATE daily_usage SET day = day - 1")
    service.start()
    by_day.live.register().expect(201)
    if yesterday.month == today.month:
        channel.live.register().expect(422, "limit_blocked")
    else:
        channel.live.register().expect(201)


def test_a_threshold_is_made_listed_and_deleted(channel):
    service = channel.service
    made = service.admin("threshold", "create", "--account", channel.account_id, "--credits", 10)
    assert made["threshold_id"].startswith("thr_")
    listed = service.admin("threshold", "list", "--account", channel.account_id)["data"]
    assert [(each["threshold_id"], each["credits"], each["armed"]) for each in listed] == \
        [(made["threshold_id"], 10, True)]
    service.admin("threshold", "delete", made["threshold_id"])
    assert service.admin("threshold", "list", "--account", channel.account_id)["data"] == []


def test_a_balance_of_many_credits_stays_exact(service):
    channel = service.new_channel(credits=10 ** 12)
    channel.live.register().expect(201)
    check_balance(channel.live, 10 ** 12 - 1, 0)
