"""Packs, pricing regions, and purchases and their outcomes, with payments confirmed by an
operator."""

import threading

import pytest

from client import Client, Refused, eventually
from money import bill, movements, new_pack, new_purchase, notices, purchase, purchases
from test_credits import check_balance, statuses

pytestmark = pytest.mark.both_stores


def refused(service, *arguments, exit_code=1):
    with pytest.raises(Refused) as caught:
        service.admin(*arguments)
    assert caught.value.exit == exit_code, caught.value
    return str(caught.value)


# ---- packs ----


def test_a_pack_is_shown_as_it_was_created(service):
    pack = new_pack(service, credits=500, price="49.9", currency="GBP")
    assert pack["pack_id"].startswith("pck_")
    assert (pack["credits"], pack["price"], pack["currency"]) == (500, "49.90", "GBP")
    assert pack["on_sale"] is True and pack["withdrawn_at"] is None
    assert service.admin("pack", "show", pack["pack_id"]) == pack
    assert pack in service.admin("pack", "list", "--limit", 1000)["data"]


@pytest.mark.parametrize("price", ["0", "0.00", "-1", "1,00", "1.001", ".5", "ten", "500000.00"])
def test_a_price_is_an_amount_above_zero(service, price):
    said = refused(service, "pack", "create", "--name", "P", "--credits", 1, f"--price={price}",
                   "--currency", "EUR", exit_code=2)
    assert "--price" in said


def test_an_account_is_offered_packs_in_its_currency_and_its_own(service):
    account, other = service.new_account(), service.new_account()
    packs = {currency: new_pack(service, currency=currency) for currency in ("EUR", "GBP", "USD")}
    own = new_pack(service, account=account)

    def offered():
        listed = service.admin("pack", "list", "--account", account, "--limit", 1000)["data"]
        wanted = {pack["pack_id"] for pack in [*packs.values(), own]}
        return [pack["pack_id"] for pack in listed if pack["pack_id"] in wanted]
    assert offered() == [packs[one]["pack_id"] for one in ("EUR", "GBP", "USD")] + [own["pack_id"]]
    for country, region, currency in (("ES", "europe", "EUR"), ("GB", "united-kingdom", "GBP"),
                                      ("US", "world", "USD")):
        shown = bill(service, account, country=country)
        assert (shown["pricing_region"], shown["currency"]) == (region, currency)
        mine = [own["pack_id"]] if currency == "EUR" else []
        assert offered() == [packs[currency]["pack_id"]] + mine
    shown = bill(service, account, country="US", region="united-kingdom")
    assert (shown["country"], shown["pricing_region"], shown["currency"]) \
        == ("US", "united-kingdom", "GBP")
    assert service.admin("account", "billing", account) == shown
    bill(service, account, region="")
    said = refused(service, "purchase", "create", "--account", account, "--pack",
                   packs["USD"]["pack_id"])
    assert "USD" in said and "EUR" in said
    said = refused(service, "purchase", "create", "--account", other, "--pack", own["pack_id"])
    assert "another account" in said
    refused(service, "pack", "create", "--name", "P", "--credits", 1, "--price", "1", "--currency",
            "GBP", "--account", account)


def test_billing_is_checked(service):
    account = service.new_account()
    assert "--country" in refused(service, "account", "billing", account, "--country", "UK",
                                  exit_code=2)
    assert "--region" in refused(service, "account", "billing", account, "--region", "mars",
                                 exit_code=2)
    assert "--tax-rate" in refused(service, "account", "billing", account, "--tax-rate", "101",
                                   exit_code=2)
    refused(service, "account", "billing", "acc_nobody", "--country", "ES")
    empty = service.admin("account", "billing", account)
    assert empty == {"account_id": account, "country": None, "pricing_region": None,
                     "currency": None, "tax_rate": "0.00", "customer": None,
                     "payment_method": None}


def test_a_withdrawn_pack_is_not_sold_until_it_is_offered_again(service):
    account = service.new_account(credits=0)
    pack = new_pack(service)
    bought = new_purchase(service, account, pack)
    withdrawn = service.admin("pack", "withdraw", pack["pack_id"])
    assert withdrawn["on_sale"] is False and withdrawn["withdrawn_at"]
    refused(service, "purchase", "create", "--account", account, "--pack", pack["pack_id"])
    assert purchase(service, "pay", bought)["balance"] == 10  # what was begun continues
    assert service.admin("pack", "offer", pack["pack_id"])["on_sale"] is True
    assert new_purchase(service, account, pack)["state"] == "pending"


# ---- purchases ----


def test_a_purchase_is_paid_once(service):
    account = service.new_account(credits=3)
    bill(service, account, tax_rate="21")
    made = new_purchase(service, account, new_pack(service))
    assert made["sale_id"].startswith("sal_") and made["state"] == "pending"
    assert (made["amount"], made["tax"], made["total"], made["currency"]) \
        == ("10.00", "2.10", "12.10", "EUR")
    assert (made["tax_rate"], made["account_name"], made["country"]) == ("21.00", "An account", "ES")
    assert service.admin("account", "show", account)["balance"] == 3
    for _ in range(2):
        paid = purchase(service, "pay", made)
        assert (paid["state"], paid["balance"], paid["operational"]) == ("paid", 13, True)
    assert movements(service, account)[1:] == [("purchase", 10, 13, made["sale_id"])]
    refused(service, "purchase", "cancel", made["sale_id"])
    assert purchases(service, account) == [purchase(service, "show", made)]


def test_a_canceled_purchase_brings_nothing(service):
    account = service.new_account(credits=1)
    made = new_purchase(service, account, new_pack(service))
    assert purchase(service, "cancel", made)["state"] == "canceled"
    assert purchase(service, "cancel", made)["state"] == "canceled"
    said = refused(service, "purchase", "pay", made["sale_id"])
    assert "canceled" in said
    refused(service, "purchase", "refund", made["sale_id"])
    refused(service, "purchase", "revert", made["sale_id"])
    assert len(movements(service, account)) == 1
    refused(service, "purchase", "show", "sal_nobody")


def test_a_purchase_settles_the_oldest_unpaid_events_and_makes_operational_at_once(service):
    channel = service.new_channel(credits=0)
    for n in range(5):
        channel.live.register({"n": n}).expect(201)
    channel.live.certify(seq_from=1, seq_to=2).expect(402, "account_not_operational")
    first = new_purchase(service, channel.account_id, new_pack(service, credits=2))
    paid = purchase(service, "pay", first)
    assert (paid["balance"], paid["unpaid_events"], paid["settled_events"]) == (0, 3, 2)
    assert statuses(channel) == ["registered"] * 2 + ["unpaid"] * 3
    check_balance(channel.live, 0, 3)
    second = new_purchase(service, channel.account_id, new_pack(service, credits=10))
    paid = purchase(service, "pay", second)
    assert (paid["balance"], paid["operational"], paid["settled_events"]) == (7, True, 3)
    check_balance(channel.live, 7, 0)
    channel.live.certify(seq_from=1, seq_to=5).expect(202)
    assert movements(service, channel.account_id) == [
        ("purchase", 2, 2, first["sale_id"]), ("settlement", -2, 0, first["sale_id"]),
        ("purchase", 10, 10, second["sale_id"]), ("settlement", -3, 7, second["sale_id"])]


@pytest.mark.parametrize("verb, state, kind", [("refund", "refunded", "refund"),
                                               ("revert", "reverted", "revert")])
def test_credits_taken_back_after_they_were_spent_make_the_balance_negative(service, verb, state,
                                                                           kind):
    channel = service.new_channel(credits=0)
    bought = new_purchase(service, channel.account_id, new_pack(service, credits=5))
    purchase(service, "pay", bought)
    for n in range(3):
        channel.live.register({"n": n}).expect(201)
    for _ in range(2):
        back = purchase(service, verb, bought)
        assert (back["state"], back["balance"], back["operational"]) == (state, -3, False)
    check_balance(channel.live, -3, 0)
    channel.live.certify(seq_from=1, seq_to=3).expect(402, "account_not_operational")
    assert channel.live.register().expect(201).json["status"] == "unpaid"
    assert movements(service, channel.account_id)[-1] == (kind, -5, -3, bought["sale_id"])
    refused(service, "purchase", "pay", bought["sale_id"])
    # First to zero, then the unpaid event, then the balance.
    again = purchase(service, "pay", new_purchase(service, channel.account_id,
                                                  new_pack(service, credits=5)))
    assert (again["balance"], again["settled_events"], again["operational"]) == (1, 1, True)


def test_taking_back_crosses_thresholds_and_paying_arms_them(service):
    account = service.new_account(credits=4)
    threshold = service.admin("threshold", "create", "--account", account, "--credits", 5)
    for _ in range(2):
        bought = new_purchase(service, account, new_pack(service, credits=6))
        purchase(service, "pay", bought)
        purchase(service, "revert", bought)
    low = ("balance.low", {"threshold_id": threshold["threshold_id"], "threshold": 5,
                           "balance": 4})
    assert notices(service, account) == [low, low]


def test_lists_of_purchases_have_pages_and_states(service):
    account = service.new_account()
    pack = new_pack(service)
    made = [new_purchase(service, account, pack) for _ in range(5)]
    purchase(service, "pay", made[1])
    newest_first = [one["sale_id"] for one in reversed(made)]
    listed = [one["sale_id"] for one in purchases(service, account)]
    assert listed == newest_first
    page = service.admin("purchase", "list", "--account", account, "--limit", 2, "--after",
                         newest_first[1])
    assert [one["sale_id"] for one in page["data"]] == newest_first[2:4] and page["has_more"]
    paid = purchases(service, account, "--state", "paid")
    assert [one["sale_id"] for one in paid] == [made[1]["sale_id"]]


def test_a_disabled_account_buys_nothing_new(service):
    account = service.new_account(credits=0)
    pack = new_pack(service)
    made = new_purchase(service, account, pack)
    service.admin("account", "disable", account)
    refused(service, "purchase", "create", "--account", account, "--pack", pack["pack_id"])
    assert purchase(service, "pay", made)["balance"] == 10  # the money has come


def test_purchases_and_events_at_once_lose_no_credit(service):
    channel = service.new_channel(credits=0, unpaid_limit=100000)
    pack = new_pack(service, credits=7)
    made = [new_purchase(service, channel.account_id, pack) for _ in range(12)]
    events = []

    def register():
        client = Client(service, channel.live_key["key"])
        for n in range(40):
            events.append(client.register({"n": n}).expect(201).json["event_id"])
        client.close()

    def pay():
        for one in made:
            purchase(service, "pay", one)
        for one in made[:3]:
            purchase(service, "revert", one)
    threads = [threading.Thread(target=work) for work in (register, register, register, pay, pay)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(events)) == 120
    record = service.admin("account", "show", channel.account_id)
    assert record["balance"] - record["unpaid_events"] == 9 * 7 - 120
    report = service.admin("store", "check")
    assert report["valid"] is True, report


# ---- who uses the account ----


def age(service, *accounts, days):
    """As if their owners had not been seen for that time."""
    service.stop()
    names = ", ".join(f"'{account}'" for account in accounts)
    service.store.change(f"UPDATE accounts SET active_at = active_at - {days} * 86400000000"
                         f" WHERE account_id IN ({names})")
    service.start()


def test_an_account_is_dormant_after_a_year_and_enabling_starts_another(start):
    service = start(describe=False, seal__interval="300ms")
    sealing = service.new_channel().live
    sealing.sealed(sealing.register().expect(201).json["event_id"])
    old, recent, last = (service.new_account() for _ in range(3))
    age(service, old, last, days=2)
    age(service, old, recent, days=364)

    def disabled(account):
        return service.admin("account", "show", account)["disabled"]
    eventually(lambda: disabled(old), "the idle account is disabled")
    assert not disabled(recent)
    assert service.admin("account", "enable", old)["disabled"] is False
    age(service, last, days=364)  # housekeeping goes through the accounts in order
    eventually(lambda: disabled(last), "the other idle account is disabled")
    assert not disabled(old)


def test_a_clock_that_jumps_ahead_disables_nobody(start):
    """By the clock of the store, all of it is 400 days old; no authority has seen them pass."""
    service = start(describe=False, seal__interval="300ms", webhook__keep="1s")
    channel = service.new_channel(credits=2)
    service.admin("threshold", "create", "--account", channel.account_id, "--credits", 1)
    channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    count = "SELECT count(*) FROM notices"
    assert service.store.rows(count) == [["1"]]
    service.stop()
    jump = 400 * 86400 * 1000000
    for column in ("accounts.active_at", "chains.last_received_at", "seal_rounds.sealed_at",
                   "notices.created_at"):
        table, _, name = column.partition(".")
        service.store.change(f"UPDATE {table} SET {name} = {name} - {jump}")
    service.start()
    # Notices are forgotten after accounts were checked.
    eventually(lambda: service.store.rows(count) == [["0"]], "housekeeping has come so far")
    assert service.admin("account", "show", channel.account_id)["disabled"] is False


def test_only_its_owners_doings_count_as_activity(start):
    service = start(describe=False)
    accounts = {name: service.new_account(credits=1) for name in ("adjusted", "reverted", "buyer")}
    pack = new_pack(service)
    taken_back = new_purchase(service, accounts["reverted"], pack)
    purchase(service, "pay", taken_back)
    made = new_purchase(service, accounts["buyer"], pack)
    age(service, *accounts.values(), days=200)

    def seen(name):
        return service.admin("account", "show", accounts[name])["active_at"]
    before = {name: seen(name) for name in accounts}
    service.admin("credits", "add", accounts["adjusted"], 5, "--reason", "a gift")
    purchase(service, "revert", taken_back)
    purchase(service, "pay", made)
    assert seen("adjusted") == before["adjusted"]
    assert seen("reverted") == before["reverted"]
    assert seen("buyer") > before["buyer"]


def test_requesting_a_certification_counts_as_activity(start):
    service = start(describe=False)
    channel = service.new_channel()
    channel.live.register().expect(201)
    channel.close()
    age(service, channel.account_id, days=200)
    before = service.admin("account", "show", channel.account_id)["active_at"]
    channel.live.certify(seq_from=1, seq_to=1).expect(202)
    assert service.admin("account", "show", channel.account_id)["active_at"] > before
    channel.close()
