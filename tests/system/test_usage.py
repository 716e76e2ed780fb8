"""`constancia usage`: totals by account, channel, key, day and month."""

import csv
import datetime
import io
import json
import subprocess

import pytest

import stores
from client import BINARY, Client, Refused, run
from program import clean_environment

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("one_day")]
COUNTS = ("events", "unpaid_events", "content_bytes", "certifications_requested",
          "certifications_completed", "certifications_failed", "events_certified", "fees",
          "refunds", "credits")
COLUMNS = ("period", "account_id", "account_name", "channel_id", "channel_name", "key_id",
           "key_name", "mode", *COUNTS)


def usage(service, *words):
    return service.admin("usage", *words)["data"]


def written(service, *words):
    """As CSV, without the header."""
    done = subprocess.run(list(map(str, [BINARY, "usage", "--csv", *words, *service.chosen()])),
                          env=clean_environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert text.count("\r\n") == text.count("\n"), "lines end as RFC 4180 says"
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert tuple(header) == COLUMNS
    return [dict(zip(header, row)) for row in rows]


def total(rows, what):
    return sum(row[what] for row in rows)


def test_what_was_used_is_told_by_channel_and_key(service):
    channel = service.new_channel(credits=5, unpaid_limit=10)
    other = service.new_channel("hash_only", account_id=channel.account_id)
    sizes = []
    for n in range(4):
        event = channel.live.register({"n": n}, f"e{n}").expect(201).json
        sizes.append(len(channel.live.content(event["event_id"]).body))
    channel.live.register({"n": 0}, "e0").expect(200)
    channel.live.register({"n": 7}, "e0").expect(409)
    channel.test.register({"n": 1}).expect(201)
    for n in range(3):
        other.live.register_hash(f"{n:064x}").expect(201)
    rows = {row["key_id"]: row for row in usage(service, "--account", channel.account_id)}
    assert set(rows) == {channel.live_key["key_id"], channel.test_key["key_id"],
                         other.live_key["key_id"]}
    live = rows[channel.live_key["key_id"]]
    assert (live["events"], live["unpaid_events"], live["credits"]) == (4, 0, 4)
    assert live["content_bytes"] == sum(sizes)
    assert (live["account_id"], live["channel_id"], live["mode"]) == \
        (channel.account_id, channel.id, "live")
    test = rows[channel.test_key["key_id"]]
    assert (test["events"], test["credits"], test["mode"]) == (1, 0, "test")
    hashes = rows[other.live_key["key_id"]]
    assert (hashes["events"], hashes["unpaid_events"], hashes["credits"]) == (3, 2, 1)
    assert hashes["content_bytes"] == 0
    balance = channel.live.balance()
    assert balance["balance"] == 5 - total(rows.values(), "credits")
    assert balance["unpaid_events"] == total(rows.values(), "unpaid_events")
    service.admin("credits", "add", channel.account_id, 50)
    assert usage(service, "--account", channel.account_id) == list(rows.values()), \
        "what was unpaid when it was received stays so"
    (of_other,) = usage(service, "--channel", other.id)
    assert of_other == hashes
    assert usage(service, "--key", channel.live_key["key_id"]) == [live]
    assert usage(service, "--account", channel.account_id, "--mode", "test") == [test]


def test_certifications_and_their_fees_are_counted(start):
    service = start(certification__fee=3, seal__interval="200ms")
    channel = service.new_channel(credits=20)
    for n in range(5):
        channel.live.register({"n": n}).expect(201)
    channel.live.certified(seq_from=2, seq_to=4)
    channel.test.register({"n": 1}).expect(201)
    channel.test.certified(seq_from=1, seq_to=1)
    live, test = usage(service, "--account", channel.account_id)
    assert {name: live[name] for name in COUNTS if name.startswith("cert")} == {
        "certifications_requested": 1, "certifications_completed": 1, "certifications_failed": 0}
    assert (live["events_certified"], live["fees"], live["refunds"], live["credits"]) == \
        (3, 3, 0, 8)
    assert (test["certifications_completed"], test["events_certified"], test["fees"]) == (1, 1, 0)
    assert channel.live.balance()["balance"] == 20 - live["credits"]
    assert service.stop() == 0
    checked = run("store", "check", *service.chosen())
    assert checked.returncode == 0, checked.stdout


def test_periods_and_what_rows_are_told_apart_by(start):
    service = start()
    channel = service.new_channel()
    for n in range(3):
        channel.live.register({"n": n}).expect(201)
    assert service.stop() == 0
    # A day of another month; the events themselves stay, which store check would find.
    today = datetime.datetime.now(datetime.timezone.utc).date()
    before = today - datetime.timedelta(days=40)
    service.store.change(
        "INSERT INTO daily_usage SELECT account, day - 40, chain, key, 7, 2, 70 FROM daily_usage")
    service.start()
    account = ("--account", channel.account_id)

    def told(*words):
        return [(row["period"], row["events"]) for row in usage(service, *account, *words)]

    assert told() == [(None, 10)]
    assert told("--by", "day") == [(f"{before}", 7), (f"{today}", 3)]
    assert told("--by", "month,key") == [(f"{before:%Y-%m}", 7), (f"{today:%Y-%m}", 3)]
    assert told("--month", f"{before:%Y-%m}") == [(None, 7)]
    assert told("--month", "2001-02") == []
    assert told("--from", f"{before}", "--to", f"{before}") == [(None, 7)]
    assert told("--from", f"{today}") == [(None, 3)]
    assert told("--to", f"{before - datetime.timedelta(days=1)}") == []
    (row,) = usage(service, *account, "--by", "account")
    assert row["channel_id"] is None and row["key_id"] is None
    assert row["account_name"] == "An account"
    first = service.admin("usage", *account, "--by", "day", "--limit", 1)
    assert first["has_more"] is True
    rest = service.admin("usage", *account, "--by", "day", "--after", first["data"][0]["row"])
    assert rest["has_more"] is False and rest["data"][0]["period"] == f"{today}"
    assert [row["events"] for row in written(service, *account, "--by", "day")] == ["7", "3"]
    assert [row["events"] for row in written(service, *account, "--by", "day", "--limit", "1")] == \
        ["7"]


@pytest.mark.parametrize("words, told", [
    (("--month", "2026-13"), "--month must be a month such as 2026-01"),
    (("--month", "2026-01", "--from", "2026-01-02"), "either --month or --from"),
    (("--from", "2026-02-30"), "--from must be a day such as 2026-01-31"),
    (("--from", "2026-02-02", "--to", "2026-02-01"), "--from must not be later"),
    (("--by", "chanel"), "--by must be one or more of"),
    (("--by", "day,month"), "either day or month"),
    (("--by", "key,"), "--by must be one or more of"),
    (("--after", "x"), "--after must be the 'row'"),
    (("--csv",), "either --csv or --json"),
])
def test_what_is_wrong_is_told(service, words, told):
    done = run("usage", *words, "--json", *service.chosen())
    assert done.returncode == 2 and told in json.loads(done.stderr)["message"], done.stderr


def test_what_is_not_there_is_refused(service):
    channel = service.new_channel()
    other = service.new_channel()
    for words in (("--account", "acc_none"), ("--channel", "chn_none"), ("--key", "key_none"),
                  ("--account", other.account_id, "--channel", channel.id),
                  ("--account", other.account_id, "--key", channel.live_key["key_id"])):
        with pytest.raises(Refused):
            service.admin("usage", *words)


HOSTILE = ["=1+1", '+cmd|"/c calc"!A1', "-2", "@SUM(A1)", '=HYPERLINK("http://x","y")', " =1",
           "a,b;c", 'say "it"', "ñ €"]


def test_names_do_no_harm_in_a_spreadsheet(service):
    account = service.new_account()
    names = {}
    for name in HOSTILE:
        channel = service.admin("channel", "create", "--account", account, "--name", name,
                                "--declarant", "Someone", "--modality", "hash_only")["channel_id"]
        key = service.admin("key", "create", "--channel", channel, "--mode", "test", f"--name={name}")
        with Client(service, key["key"]) as client:
            client.register_hash("0" * 64).expect(201)
        names[channel] = name
    rows = written(service, "--account", account)
    assert len(rows) == len(HOSTILE)
    for row in rows:
        name = names[row["channel_id"]]
        safe = "'" + name if name.lstrip(" ")[0] in "=+-@" else name
        assert row["channel_name"] == row["key_name"] == safe
        assert row["events"] == "1" and row["period"] == ""


def test_all_pages_come_as_csv_and_sums_agree(start):
    service = start()
    channel = service.new_channel()
    channel.live.register({"n": 1}).expect(201)
    assert service.stop() == 0
    service.store.change(
        "INSERT INTO daily_usage SELECT account, day - n, chain, key, n, 0, 0 "
        f"FROM daily_usage CROSS JOIN {stores.numbers(2345)}")
    rows = written(service, "--account", channel.account_id, "--by", "day")
    assert [int(row["events"]) for row in rows] == [*range(2345, 0, -1), 1]
    assert len({row["period"] for row in rows}) == 2346
    months = written(service, "--account", channel.account_id, "--by", "month")
    assert sum(int(row["events"]) for row in months) == 2345 * 2346 // 2 + 1
    assert all(len(row["period"]) == 7 for row in months)



def last_used(service, channel):
    return {key["key_id"]: key["last_used_at"]
            for key in service.admin("key", "list", "--channel", channel.id)["data"]}


def test_keys_show_when_they_were_last_used(start):
    service = start()
    channel = service.new_channel()
    live, test = channel.live_key["key_id"], channel.test_key["key_id"]
    assert last_used(service, channel) == {live: None, test: None}
    before = datetime.datetime.now(datetime.timezone.utc)
    channel.live.get("/v1/account/balance").expect(200)  # reading alone counts
    assert service.stop() == 0
    used = last_used(service, channel)
    assert used[test] is None and used[live].endswith("Z")
    at = datetime.datetime.fromisoformat(used[live].replace("Z", "+00:00"))
    assert before <= at <= datetime.datetime.now(datetime.timezone.utc)
    service.start()
    service.admin("key", "revoke", live)
    channel.live.get("/v1/account/balance").expect(401)
    channel.test.register().expect(201)
    assert service.stop() == 0
    later = last_used(service, channel)
    assert later[live] == used[live], "a refusal is no use"
    assert later[test] > used[live]
