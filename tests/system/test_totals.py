"""The history of credits by day, and the overview of an account."""

import csv
import datetime
import io
import json
import subprocess

import pytest

from client import BINARY, Refused, eventually, run
from hooks import BadReceiver, ended
import timestamp_authority
from money import new_pack, new_purchase, purchase
from program import clean_environment

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("one_day")]


def today():
    return f"{datetime.datetime.now(datetime.timezone.utc).date()}"


def total(rows, what):
    return sum(row[what] for row in rows)


def written(service, *words):
    done = subprocess.run(list(map(str, [BINARY, *words, "--csv", *service.chosen()])),
                          env=clean_environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout.decode(), newline="")))


def history(service, account, *words):
    return service.admin("credits", "history", "--account", account, *words)["data"]


def test_what_moved_the_balance_is_told_by_day(start):
    service = start(certification__fee=3, seal__interval="200ms")
    channel = service.new_channel(credits=4, unpaid_limit=10)
    account = channel.account_id
    for n in range(6):
        channel.live.register({"n": n}).expect(201)
    assert (history(service, account)[-1]["balance"], history(service, account)[-1]["unpaid_events"]) \
        == (0, 2)
    bought = new_purchase(service, account, new_pack(service, credits=20))
    purchase(service, "pay", bought)
    channel.live.certified(seq_from=1, seq_to=3)
    refunded = new_purchase(service, account, new_pack(service, credits=5))
    purchase(service, "pay", refunded)
    purchase(service, "refund", refunded)
    days = history(service, account)
    for what, expected in (("events", -4), ("settlements", -2), ("purchases", 25), ("returns", -5),
                           ("fees", -3), ("fee_refunds", 0), ("adjustments", 4)):
        assert total(days, what) == expected, what
    assert (days[-1]["balance"], days[-1]["unpaid_events"]) == (15, 0)
    assert channel.live.balance()["balance"] == 15
    assert service.stop() == 0
    # Ten earlier days, on one of which five events were registered.
    service.store.change("UPDATE accounts SET created_at = created_at - 864000000000; "
                         "INSERT INTO daily_usage SELECT account, day - 7, chain, key, 5, 0, 0 "
                         "FROM daily_usage")
    service.start()
    days = history(service, account)
    assert len(days) in (11, 12) and days[-1]["day"] == today()
    assert [day["events"] for day in days if day["events"]] == [-5, -4]
    assert [day["balance"] for day in days] == [5] * (len(days) - 8) + [0] * 7 + [15]
    first = history(service, account, "--limit", 4)
    assert first == days[:4]
    assert history(service, account, "--after", first[-1]["day"]) == days[4:]
    assert history(service, account, "--from", days[3]["day"], "--to", days[5]["day"]) == days[3:6]
    assert [row["balance"] for row in written(service, "credits", "history", "--account", account)] \
        == [str(day["balance"]) for day in days]


def test_an_overview_agrees_with_what_it_sums_up(start):
    service = start(seal__interval="200ms", webhook__schedule="100ms")
    channel = service.new_channel(credits=3, unpaid_limit=4)
    account = channel.account_id
    channels = [service.new_channel("hash_only", account_id=account) for _ in range(9)]
    overview = service.admin("account", "overview", account)
    assert overview["operational"] is True and overview["registers"] is True
    assert overview["events"]["channels"] == [] and overview["oldest_pending_at"] is None
    assert overview["topup"] is None and overview["reasons"] == []
    service.admin("credits", "add", account, 100)
    for n, one in enumerate(channels):
        for _ in range(n + 1):
            event = one.live.register_hash("0" * 64).expect(201).json
    channels[0].test.register_hash("0" * 64).expect(201)
    one.live.sealed(event["event_id"])
    for maximum in (100, 20):
        service.admin("limit", "create", "--channel", channels[8].id, "--period", "day", "--max",
                      maximum, "--action", "warn")
    with BadReceiver(lambda connection: None) as bad:
        endpoint = service.admin("webhook", "create", "--account", account, "--url", bad.url)
        service.secrets.add(endpoint["secret"])
        service.admin("threshold", "create", "--account", account, "--credits", 50)
        service.admin("credits", "add", account, -20)
        ended(service, endpoint)
    pack = new_pack(service)
    service.admin("account", "billing", account, "--country", "ES")
    service.admin("topup", "set", "--account", account, "--threshold", 2, "--pack", pack["pack_id"])
    service.admin("topup", "off", account)
    overview = eventually(lambda: (told := service.admin("account", "overview", account))
                          ["pending_events"] == 0 and told, "all is sealed")
    events = overview["events"]
    assert (events["total"], events["today"], events["test_today"]) == (45, 45, 1)
    assert [one["total"] for one in events["channels"]] == [9, 8, 7, 6, 5, 4, 3, 3]
    assert [one["channel_id"] for one in events["channels"]] == \
        [one.id for one in reversed(channels[2:])] + [None]
    assert all(len(one["counts"]) == 90 and sum(one["counts"]) == one["total"]
               for one in events["channels"])
    assert overview["balance"] == overview["credits"]["balances"][-1] == 38
    assert overview["credits"]["forecast"]["runs_out_on"] is None
    (trouble,) = overview["endpoints_in_trouble"]
    assert (trouble["endpoint_id"], trouble["failures"]) == (endpoint["endpoint_id"], 1)
    assert overview["topup"]["enabled"] is False
    assert [limit["max_events"] for limit in overview["limits"]] == [20, 100]
    assert [limit["used"] for limit in overview["limits"]] == [9, 9]
    service.admin("account", "suspend", account)
    overview = service.admin("account", "overview", account)
    assert overview["registers"] is False and overview["reasons"] == ["suspended"]


def test_what_waits_and_when_credits_run_out(start, tmp_path):
    roots = timestamp_authority.Certificates(str(tmp_path)).path("root.pem")
    service = start(tsa__url="http://127.0.0.1:1/", tsa__roots=roots, tsa__kind="non_qualified",
                    tsa__allow_networks="127.0.0.0/8")  # where no authority answers
    channel = service.new_channel(credits=1000)
    for n in range(4):
        channel.live.register({"n": n}).expect(201)
    asked = channel.live.certify(seq_from=1, seq_to=2).expect(202).json
    waiting = service.admin("account", "overview", channel.account_id)
    assert waiting["pending_events"] == 4 and waiting["oldest_pending_seconds"] >= 0
    assert waiting["certifications_processing"] == 1
    assert waiting["certifications"][0]["certification_id"] == asked["certification_id"]
    assert service.stop() == 0
    service.store.change("UPDATE accounts SET created_at = created_at - 8640000000000; "
                         "INSERT INTO daily_usage SELECT account, day - 3, chain, key, 140, 0, 0 "
                         "FROM daily_usage")
    service.start()
    forecast = service.admin("account", "overview", channel.account_id)["credits"]["forecast"]
    assert (forecast["days"], forecast["used"], forecast["days_left"]) == (14, 140, 99)
    at = datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=99)
    assert forecast["runs_out_on"] == f"{at}"


@pytest.mark.parametrize("words, told", [
    (("credits", "history", "--after", "yesterday"), "--after must be a day such as 2026-01-31"),
    (("credits", "history", "--after", "2026-02-30"), "--after must be a day such as 2026-01-31"),
    (("credits", "history", "--from", "2026-02-02", "--to", "2026-02-01"),
     "--from must not be later"),
])
def test_what_is_wrong_is_told(service, words, told):
    account = service.new_account()
    done = run(*words, "--account", account, "--json", *service.chosen())
    assert done.returncode == 2 and told in json.loads(done.stderr)["message"], done.stderr


def test_another_accounts_things_are_not_there(service):
    for words in (("account", "overview", "acc_none"), ("credits", "history", "--account", "acc_none")):
        with pytest.raises(Refused):
            service.admin(*words)
