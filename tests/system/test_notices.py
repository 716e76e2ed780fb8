"""Notices as operators see them, and the replay of all that failed or were missed."""

import json
import re
import threading

import pytest

import stores
from client import Refused, eventually
from hooks import Owner, Receiver, deliveries, ended

pytestmark = pytest.mark.both_stores

GONE = "http://127.0.0.1:9/"  # no server listens


@pytest.fixture(scope="module")
def hooked(start):
    return start(webhook__schedule="1ms", seal__interval="1s")


@pytest.fixture
def receiver():
    with Receiver() as running:
        yield running
        running.check()


def notices(service, account_id, *flags):
    return service.admin("notice", "list", "--account", account_id, *flags)["data"]


def states(notice):
    return {one["endpoint_id"]: one["status"] for one in notice["deliveries"]}


def replay(service, endpoint, *flags):
    return service.admin("webhook", "replay", "--endpoint", endpoint["endpoint_id"], *flags)


def refused(service, *words):
    with pytest.raises(Refused) as caught:
        service.admin(*words)
    return caught.value


def test_notices_are_listed_with_how_they_stand_at_each_endpoint(hooked, receiver):
    owner = Owner(hooked)
    got = owner.endpoint(receiver.url)
    away = owner.endpoint(GONE, "--types", "balance.low,certification.failed")
    other = owner.endpoint(receiver.url, "--types", "certification.failed")
    owner.cause()
    ended(hooked, got)
    ended(hooked, away)
    late = owner.endpoint(receiver.url)
    hooked.admin("webhook", "disable", away["endpoint_id"])
    owner.cause()
    ended(hooked, got, 2)
    ended(hooked, late)
    newest, oldest = notices(hooked, owner.account_id)
    names = [one["endpoint_id"] for one in (got, away, late)]
    assert states(oldest) == dict(zip(names, ("delivered", "failed", "missed")))
    assert states(newest) == dict(zip(names, ("delivered", "missed", "delivered")))
    assert other["endpoint_id"] not in states(oldest), "it does not want this type"
    assert [oldest[state] for state in ("delivered", "waiting", "failed", "missed")] == [1, 0, 1, 1]
    assert (oldest["type"], oldest["mode"], oldest["account_id"]) == (
        "balance.low", "live", owner.account_id)
    failed, = (one for one in oldest["deliveries"] if one["endpoint_id"] == names[1])
    assert failed["attempts"] == 2 and failed["ended_at"] and failed["replayed_at"] is None
    # Only some of them.
    for flags, expected in (
            (("--status", "failed"), [oldest]), (("--status", "missed"), [newest, oldest]),
            (("--status", "missed", "--endpoint", names[2]), [oldest]),
            (("--status", "waiting"), []), (("--endpoint", other["endpoint_id"]), []),
            (("--endpoint", names[0]), [newest, oldest]), (("--type", "balance.low"), [newest, oldest]),
            (("--type", "certification.failed, balance.low"), [newest, oldest]),
            (("--type", "certification.failed"), []), (("--since", newest["created_at"]), [newest]),
            (("--until", newest["created_at"]), [oldest]), (("--limit", 1), [newest]),
            (("--before", newest["number"]), [oldest])):
        assert notices(hooked, owner.account_id, *flags) == expected, flags
    assert hooked.admin("notice", "list", "--account", owner.account_id, "--limit", 1)["has_more"]
    # What may be asked.
    stranger = Owner(hooked).endpoint(GONE)
    for words in (("--account", "acc_none"),
                  ("--account", owner.account_id, "--endpoint", stranger["endpoint_id"])):
        assert refused(hooked, "notice", "list", *words).exit == 1
    for flags in (("--since", "yesterday"), ("--type", "nothing"), ("--status", "lost")):
        assert refused(hooked, "notice", "list", "--account", owner.account_id, *flags).exit == 2


def test_a_notice_is_shown_as_it_is_sent(hooked, receiver):
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    owner.cause()
    sent = receiver.next()
    ended(hooked, endpoint)
    shown = hooked.admin("notice", "show", sent.id)
    assert shown.pop("body").encode() == sent.body
    assert [shown] == notices(hooked, owner.account_id)
    assert "webhook.keep" in str(refused(hooked, "notice", "show", "ntc_none"))


def test_all_that_was_missed_is_replayed_once(hooked, receiver):
    owner = Owner(hooked, 3)
    away = owner.endpoint(GONE)
    owner.cause()
    ended(hooked, away, 3)  # failed
    hooked.admin("webhook", "disable", away["endpoint_id"])
    owner.cause()           # no notice was sent
    late = owner.endpoint(receiver.url, "--types", "balance.low")
    everything = [one["notice_id"] for one in reversed(notices(hooked, owner.account_id))]
    assert len(everything) == 6
    assert refused(hooked, "webhook", "replay", "--endpoint", away["endpoint_id"],
                   "--missed").exit == 1, "it is disabled"
    told = replay(hooked, late, "--missed")
    assert told["queued"] == 6 and told["kept_since"] < told["until"]
    assert sorted(one.id for one in receiver.expect(6)) == sorted(everything)
    eventually(lambda: hooked.admin("webhook", "show", late["endpoint_id"])["waiting"] == 0,
               "all is recorded")
    assert replay(hooked, late, "--missed")["queued"] == 0, "what was acknowledged stays"
    assert all(one["replayed_at"] and one["status"] == "delivered"
               for one in deliveries(hooked, late))
    # The other one got half of them and failed: first only that, then the rest, since a time.
    hooked.admin("webhook", "enable", away["endpoint_id"])
    hooked.admin("webhook", "update", away["endpoint_id"], "--url", receiver.url + "/back")
    assert replay(hooked, away, "--failed")["queued"] == 3
    assert {one.id for one in receiver.expect(9)[6:]} == set(everything[:3])
    ended(hooked, away, 3)
    assert replay(hooked, away, "--failed")["queued"] == 0
    listed = notices(hooked, owner.account_id)
    since = listed[0]["created_at"]
    late_ones = sum(one["created_at"] >= since for one in listed)
    assert replay(hooked, away, "--missed", "--since", since)["queued"] == late_ones <= 3
    assert replay(hooked, away, "--missed")["queued"] == 3 - late_ones
    assert {one.id for one in receiver.expect(12)[9:]} == set(everything[3:])
    eventually(lambda: hooked.admin("webhook", "show", away["endpoint_id"])["waiting"] == 0,
               "all is recorded")
    assert len(receiver.deliveries) == 12


def test_what_waits_or_is_not_wanted_is_not_queued_by_a_replay(hooked, receiver):
    owner = Owner(hooked, 2)
    picky = owner.endpoint(receiver.url, "--types", "certification.failed")
    owner.cause()
    assert replay(hooked, picky, "--missed")["queued"] == 0
    hooked.admin("webhook", "update", picky["endpoint_id"], "--types", "all", "--url", GONE)
    assert replay(hooked, picky, "--missed")["queued"] == 2, "now it wants them"
    ended(hooked, picky, 2)
    hooked.admin("webhook", "update", picky["endpoint_id"], "--types", "certification.failed")
    assert replay(hooked, picky, "--failed")["queued"] == 0
    assert len(receiver.deliveries) == 0


@pytest.mark.skipif(stores.KIND != "postgresql", reason="a server's statistics")
def test_a_replay_reads_each_notice_a_few_times_however_many_there_are(start):
    """Though the server has no statistics of the tables: it would sort all that are left for each batch."""
    service = start(webhook__schedule="1ms", describe=False)
    owner = Owner(service)
    late = owner.endpoint(GONE)
    service.admin("store", "quiet", "--reason", "nothing is to be sent")
    count = 10000
    service.store.change(
        "ALTER TABLE notices SET (autovacuum_enabled = off);"
        "INSERT INTO notices (account, notice_id, type, mode, created_at, data)"
        " SELECT account, 'ntc_made' || n, 'balance.low', 'live', created_at + n, '{}'"
        f" FROM accounts, {stores.numbers(count)}"
        f" WHERE account_id = {stores.text(owner.account_id)}")
    assert replay(service, late, "--missed", "--since", "2020-01-01T00:00:00Z")["queued"] >= count

    assert service.stop() == 0  # then the server counts what its connections did

    def fetched():
        rows = service.store.rows_read("notices")
        return rows if rows >= count else None
    assert eventually(fetched, "it has counted") < 5 * count


def test_a_replay_says_what_it_lacks(hooked):
    endpoint = Owner(hooked).endpoint(GONE)
    of = ("--endpoint", endpoint["endpoint_id"])
    for words in ((), ("--missed", "--failed"), ("ntc_1", "--missed"),
                  ("ntc_1", "--since", "2026-01-01T00:00:00Z"), ("--missed", "--since", "noon")):
        assert refused(hooked, "webhook", "replay", *words, *of).exit == 2, words
    assert refused(hooked, "webhook", "replay", "--missed", "--endpoint", "whk_none").exit == 1


def fill(service, account_id, count):
    """That number of notices that were not sent."""
    number, = service.store.rows("SELECT account FROM accounts WHERE account_id = "
                                 + stores.text(account_id))[0]
    start, = service.store.rows("SELECT COALESCE(MAX(created_at), 0) FROM notices")[0]
    data = json.dumps({"threshold_id": "thr_0123456789abcdef", "threshold": 1, "balance": 1})
    row = (f"SELECT {number}, 'ntc_many' || n, 'balance.low', 'live', {start} + n, '{data}' FROM ")
    service.store.change("INSERT INTO notices (account, notice_id, type, mode, created_at, data) "
                         + row + stores.numbers(count))


def test_a_long_replay_goes_in_turns_with_what_is_new(start):
    """And in the order of the notices: up to four are under way at a time."""
    service, count = start(webhook__timeout="60s"), 1300
    owner = Owner(service)
    with Receiver() as receiver:
        endpoint = owner.endpoint(receiver.url)
        owner.cause()
        receiver.next()
        assert service.stop() == 0
        fill(service, owner.account_id, count)
        service.start()
        caused = threading.Event()
        receiver.answer = lambda _: 200 if caused.wait(60) else 503
        assert replay(service, endpoint, "--missed")["queued"] == count
        owner.cause()
        caused.set()
        arrived = [one.id for one in receiver.expect(count + 2, 300)]
        _, fresh = (place for place, name in enumerate(arrived) if not name.startswith("ntc_many"))
        assert fresh < count / 2, "it did not wait for all of them"
        order = [int(re.sub(r"\D", "", name)) for name in arrived if name.startswith("ntc_many")]
        assert sorted(order) == list(range(1, count + 1))
        assert all(abs(place + 1 - number) < 400 for place, number in enumerate(order))
