"""Payments through a provider that answers late, wrongly, twice or not at all, and its notices.

What is asserted in the end is always the same: how often the customer was charged, and what became
of the credits.
"""

import json
import time

import pytest

from client import Client, Refused, eventually, run
from payment_provider import PaymentProvider

pytestmark = pytest.mark.both_stores

NOTICES = "/payments/stripe/notices"


@pytest.fixture
def provider():
    one = PaymentProvider()
    yield one
    one.close()


@pytest.fixture(scope="module")
def shared_provider():
    one = PaymentProvider()
    yield one
    one.close()


@pytest.fixture(scope="module")
def paying(start, shared_provider):
    """A service with a provider, and the provider's notices sent to it."""
    service = start(**shared_provider.settings(), payment__return_url="https://example.org/paid")
    service.secrets |= {shared_provider.key, shared_provider.secret}
    shared_provider.webhook_url = service.public_url + NOTICES
    service.provider = shared_provider
    return service


@pytest.fixture(autouse=True)
def at_rest(shared_provider):
    """Nothing of one test is left for the next one."""
    shared_provider.notices, shared_provider.behaviour = "send", "pay"
    shared_provider.held.clear()
    yield
    assert shared_provider.versions <= {"2024-06-20"}


def new_buyer(service, **credits):
    account_id = service.new_account(**credits)
    service.admin("account", "billing", account_id, "--country", "ES", "--tax-rate", "21",
                  "--customer", "cus_" + account_id[4:], "--payment-method", "pm_card")
    return account_id


def new_pack(service, credits=1000, price="10.00"):
    return service.admin("pack", "create", "--name", "A pack", "--credits", credits, "--price",
                         price, "--currency", "EUR")["pack_id"]


def new_purchase(service, account_id):
    sale = service.admin("purchase", "create", "--account", account_id, "--pack", new_pack(service))
    return sale["sale_id"]


def purchase(service, sale_id):
    return service.admin("purchase", "show", sale_id)


def in_state(service, sale_id, state):
    def look():
        record = purchase(service, sale_id)
        return record if record["state"] == state else None
    return eventually(look, f"{sale_id} is {state}")


def balance(service, account_id):
    return service.admin("account", "show", account_id)["balance"]


def page_of(service, sale_id):
    """The provider's session behind a purchase's payment page."""
    url = eventually(lambda: purchase(service, sale_id)["payment_url"], "there is a payment page")
    assert url.startswith(service.provider.url)
    return url.rpartition("/")[2]


# ---- pages and notices ----

def test_a_page_that_is_paid_brings_the_credits(paying):
    account_id = new_buyer(paying, credits=0)
    sale_id = new_purchase(paying, account_id)
    intent = paying.provider.pay_page(page_of(paying, sale_id))
    record = in_state(paying, sale_id, "paid")
    assert record["reference"] == intent["id"]
    assert intent["amount"] == 1210  # with taxes
    assert balance(paying, account_id) == 1000
    assert len(paying.provider.charges_for(sale_id)) == 1


def test_a_notice_that_comes_twice_counts_once(paying):
    paying.provider.notices = "twice"
    account_id = new_buyer(paying, credits=0)
    sale_id = new_purchase(paying, account_id)
    intent = paying.provider.pay_page(page_of(paying, sale_id))
    in_state(paying, sale_id, "paid")
    event = eventually(lambda: [event for event, status in paying.provider.sent
                                if event["data"]["object"]["id"] == intent["id"] and status == 200],
                       "a notice was taken")[0]
    for _ in range(3):
        assert paying.provider.deliver(event) == 200
    assert balance(paying, account_id) == 1000


def test_failures_told_after_the_payment_change_nothing(paying):
    paying.provider.notices = "hold"
    account_id = new_buyer(paying, credits=0)
    sale_id = new_purchase(paying, account_id)
    intent = paying.provider.pay_page(page_of(paying, sale_id))
    paid = paying.provider.held.pop()
    failed = json.loads(json.dumps(paid))
    failed.update(id="evt_failed", type="payment_intent.payment_failed", created=paid["created"] - 9)
    failed["data"]["object"].update(
        status="requires_payment_method", amount_received=0,
        last_payment_error={"type": "card_error", "code": "card_declined"})
    canceled = json.loads(json.dumps(failed))
    canceled.update(id="evt_canceled", type="payment_intent.canceled")
    for event in (failed, canceled, paid, failed, canceled, paid):
        assert paying.provider.deliver(event) == 200
    record = in_state(paying, sale_id, "paid")
    assert record["reference"] == intent["id"]
    assert balance(paying, account_id) == 1000


@pytest.mark.parametrize("how, state", [("give_back", "refunded"), ("lose_dispute", "reverted")])
def test_money_that_went_back_takes_the_credits_along(paying, how, state):
    account_id = new_buyer(paying, credits=0)
    sale_id = new_purchase(paying, account_id)
    intent = paying.provider.pay_page(page_of(paying, sale_id))
    in_state(paying, sale_id, "paid")
    paying.admin("credits", "add", account_id, -400)
    getattr(paying.provider, how)(intent["id"])
    eventually(lambda: balance(paying, account_id) == -400, "the credits are taken back")
    assert purchase(paying, sale_id)["state"] == state


def test_a_part_lost_in_a_dispute_takes_nothing_and_is_told(paying):
    account_id = new_buyer(paying, credits=0)
    sale_id = new_purchase(paying, account_id)
    intent = paying.provider.pay_page(page_of(paying, sale_id))
    in_state(paying, sale_id, "paid")
    paying.provider.lose_dispute(intent["id"], intent["amount"] // 2)

    def told():
        return [line for line in paying.log_lines() if line["event"] == "payment_not_applied"
                and line.get("reference") == intent["id"]]
    (line, *_) = eventually(told, "an operator is reported")
    assert line["level"] == "error" and sale_id in line["cause"] and "(500," in line["cause"]
    assert balance(paying, account_id) == 1000
    assert purchase(paying, sale_id)["state"] == "paid"


def test_too_little_is_no_payment(paying):
    paying.provider.notices = "hold"
    account_id = new_buyer(paying, credits=0)
    sale_id = new_purchase(paying, account_id)
    paying.provider.pay_page(page_of(paying, sale_id))
    event = paying.provider.held.pop()
    event["data"]["object"]["amount_received"] -= 1
    assert paying.provider.deliver(event) == 200
    event["data"]["object"]["amount_received"] += 1
    event["data"]["object"]["currency"] = "usd"
    assert paying.provider.deliver(event) == 200
    assert purchase(paying, sale_id)["state"] == "pending"
    assert balance(paying, account_id) == 0
    paying.logged(lambda line: line["event"] == "payment_not_applied")


def test_what_is_not_ours_is_taken_and_left_alone(paying):
    other = {"id": "evt_other", "object": "event", "created": 1, "type": "payment_intent.succeeded",
             "data": {"object": {"id": "pi_other", "amount_received": 5, "currency": "eur",
                                 "metadata": {"sale_code": "sal_of_somebody_else"}}}}
    assert paying.provider.deliver(other) == 200
    del other["data"]["object"]["metadata"]["sale_code"]
    assert paying.provider.deliver(other) == 200
    other["type"] = "customer.created"
    assert paying.provider.deliver(other) == 200


def test_false_notices_do_nothing(paying):
    provider = paying.provider
    provider.notices = "hold"
    account_id = new_buyer(paying, credits=0)
    sale_id = new_purchase(paying, account_id)
    provider.pay_page(page_of(paying, sale_id))
    event = provider.held.pop()
    body = json.dumps(event).encode()
    now = int(time.time())
    right = provider.sign(body)
    for false in (dict(secret="whsec_of_somebody_else"), dict(signed_at=now - 400),
                  dict(signed_at=now + 400), dict(signature=""), dict(signature="t=1,v1=00"),
                  dict(signature=right.replace("v1=", "v0=")),
                  dict(signature=right, body=body.replace(b"1210", b"9210"))):
        assert provider.deliver(event, **false) == 400, false
    assert provider.deliver(event, body=b"not JSON") == 400
    assert provider.deliver(event, body=b"{}") == 400
    assert provider.deliver(event, body=b" " * (256 * 1024 + 1)) == 413
    assert purchase(paying, sale_id)["state"] == "pending"
    assert balance(paying, account_id) == 0
    assert provider.deliver(event) == 200
    in_state(paying, sale_id, "paid")


def test_the_path_of_notices(paying, service):
    with_provider, without = Client(paying), Client(service)
    with_provider.call("POST", NOTICES, b"{}").expect(400, "validation_error")
    with_provider.get(NOTICES).expect(405)
    with_provider.call("POST", "/payments/manual/notices", b"{}").expect(404, "not_found")
    without.call("POST", NOTICES, b"{}").expect(404, "not_found")
    with_provider.close()
    without.close()


def test_false_notices_do_not_fill_the_log(start, provider):
    service = start(**provider.settings())
    stranger = Client(service)
    for _ in range(40):
        stranger.call("POST", NOTICES, b"{}", headers={"Stripe-Signature": "t=1,v1=00"}).expect(400)
    stranger.close()
    told = service.logged(lambda line: line["event"] == "payment_notice_refused")
    assert 1 <= len(told) < 10 and told[0]["omitted"] == "0", "one in a minute"


def test_notices_do_not_eat_the_rate_of_clients(start, provider):
    service = start(**provider.settings(), rate__live=1)
    anyone, channel = Client(service), service.new_channel()
    statuses = {anyone.call("POST", NOTICES, b"{}").status for _ in range(20)}
    assert statuses == {400, 429}
    anyone.get("/verify").expect(200)
    anyone.get("/v1/channel").expect(401)
    channel.live.register().expect(201)
    anyone.close()
    channel.close()


# ---- charges ----

def top_up(service, account_id):
    """A pack is bought as soon as the balance is below 10."""
    service.admin("topup", "set", "--account", account_id, "--threshold", 10, "--pack",
                  new_pack(service))


def topup_of(service, account_id):
    return service.admin("topup", "show", account_id)


def purchases_of(service, account_id):
    return service.admin("purchase", "list", "--account", account_id)["data"]


@pytest.mark.parametrize("first", [
    ("pay",), ("lose",), ("cut",), ("cut", "cut", "lose"), ("error_after",), ("unavailable",),
    ("rate",), ("conflict",), ("garbage",), ("process",), ("stall",)], ids="-".join)
def test_charged_exactly_once(start, provider, first):
    service = start(**provider.settings())
    provider.webhook_url = service.public_url + NOTICES
    if first != ("process",):
        provider.notices = "hold"  # the answers alone have to do
    provider.script(*first)
    account_id = new_buyer(service, credits=5)
    top_up(service, account_id)
    if first == ("process",):
        intent = eventually(lambda: next(iter(provider.intents), None), "the charge is taken on")
        assert balance(service, account_id) == 5
        provider.finish_processing(intent)
    eventually(lambda: balance(service, account_id) == 1005, "the credits have come")
    sales = purchases_of(service, account_id)
    assert [sale["state"] for sale in sales] == ["paid"]
    assert len(provider.charges) == 1
    assert provider.charges[0].amount == 1210
    keys = {key for _, path, key in provider.requests if key and path == "/v1/payment_intents"}
    assert len(keys) == 1, "one idempotency key through every unknown outcome"
    assert provider.webhook_url
    provider.deliver_held()
    assert balance(service, account_id) == 1005
    assert topup_of(service, account_id)["enabled"]
    service.admin("store", "check")


@pytest.mark.parametrize("behaviour, outcome, reason", [
    ("decline", "declined", "payment_failed"), ("lose_decline", "declined", "payment_failed"),
    ("authenticate", "action_required", "payment_failed"),
    ("expired", "refused", "sale_creation_failed"),
    ("no_method", "method_missing", "payment_method_missing")])
def test_not_charged_and_turned_off(start, provider, behaviour, outcome, reason):
    service = start(**provider.settings(), payment__return_url="https://example.org/paid")
    provider.webhook_url = service.public_url + NOTICES
    provider.script(behaviour)
    account_id = new_buyer(service, credits=5)
    top_up(service, account_id)
    eventually(lambda: not topup_of(service, account_id)["enabled"], "the top-up is off")
    sale = purchases_of(service, account_id)[0]
    assert sale["payment"]["outcome"] == outcome
    assert topup_of(service, account_id)["reason"] == reason
    assert provider.charges == []
    assert balance(service, account_id) == 5
    # The same purchase can be paid by hand.
    service.provider = provider
    if sale["state"] == "pending":
        provider.pay_page(page_of(service, sale["sale_id"]))
        eventually(lambda: balance(service, account_id) == 1005, "the credits have come")
        assert len(provider.charges) == 1


def test_a_refund_is_made_once(start, provider):
    service = start(**provider.settings())
    provider.webhook_url = service.public_url + NOTICES
    provider.notices = "twice"
    account_id = new_buyer(service, credits=5)
    top_up(service, account_id)
    eventually(lambda: balance(service, account_id) == 1005, "the credits have come")
    sale = purchases_of(service, account_id)[0]
    service.admin("topup", "off", account_id)
    service.admin("purchase", "refund", sale["sale_id"])
    eventually(lambda: balance(service, account_id) == 5, "the credits are gone")
    assert provider.refunds == [provider.charges[0].intent]
    assert purchase(service, sale["sale_id"])["state"] == "refunded"


# ---- settings ----

def test_secrets_stay_secret(paying, tmp_path):
    printed = run("config", "print", *paying.chosen())
    assert paying.provider.key not in printed.stdout
    assert paying.provider.secret not in printed.stdout
    as_json = run("config", "print", "--json", *paying.chosen())
    assert json.loads(as_json.stdout)["payment"]["stripe_key"] == "********"
    log = paying.log.read_text()
    assert paying.provider.key not in log and paying.provider.secret not in log


def test_a_provider_without_its_settings_is_refused(tmp_path):
    checked = run("config", "check", "--set", "tsa.url=embedded:", "--set", "payment.provider=stripe")
    assert checked.returncode == 1
    assert "payment.stripe_key" in checked.stderr


def test_manual_purchases_need_an_operator(service):
    account_id = new_buyer(service, credits=0)
    sale_id = new_purchase(service, account_id)
    assert purchase(service, sale_id)["state"] == "pending"
    service.admin("purchase", "pay", sale_id)
    assert balance(service, account_id) == 1000
    with pytest.raises(Refused):
        service.admin("purchase", "cancel", sale_id)
