"""The console's pages on money, usage and certifications: what they show, what their forms do, and for whom."""

import csv
import io
import json
import re
import urllib.request

import pytest

from client import PATIENCE, eventually
from console import Visitor, new_visitor, shown
from money import bill, new_pack, new_purchase, purchase, purchases
from payment_provider import PaymentProvider

HOSTILE = "<script>alert(1)</script>\"'&"
# Text that only operators may see.
INTERNALS = "-26 temporarily_unavailable: tsa.internal:3161 answered /var/lib/constancia <b>SELECT 1</b>"
SAFE = "&lt;script&gt;alert(1)&lt;/script&gt;"


@pytest.fixture(scope="module")
def account(service):
    account = service.new_account(credits=10)
    bill(service, account, tax_rate="21")
    return account


@pytest.fixture(scope="module")
def pack(service):
    return service.admin("pack", "create", "--name", f"Pack {HOSTILE}", "--credits", 50, "--price", "40.00",
                         "--currency", "EUR")


@pytest.fixture
def accountant(service, account):
    return new_visitor(service, account, "accountant")


def named(service, account, name):
    channel = service.new_channel(account_id=account)
    service.admin("channel", "configure", channel.id, "--name", name)
    return channel


def rows(visitor, path):
    return list(csv.DictReader(io.StringIO(visitor.get(path).body)))


def test_a_purchase_by_hand_from_the_page_to_its_credits(service, account, pack, accountant):
    accountant.get("/console/money")
    assert SAFE in accountant.body and "<script>alert" not in accountant.body
    assert "40.00 EUR" in shown(accountant) and "tax rate of this account is 21.00 %" in shown(accountant)
    assert "10 credits" in shown(accountant) and "figcaption" in accountant.body
    accountant.send("/console/money/buy", pack=pack["pack_id"])
    made = purchases(service, account)[0]
    assert accountant.location == f"/console/money/purchases/{made['sale_id']}?done=purchase_create"
    accountant.follow()
    text = shown(accountant)
    assert "quote the reference" in text and f"Purchase {made['sale_id']}" in text
    assert "48.40 EUR" in text and "8.40 EUR" in text and "awaiting payment" in text and "not paid yet" in text
    assert "/pay" not in accountant.body
    # There is no payment page.
    assert accountant.get(f"/console/money/purchases/{made['sale_id']}/pay").location == \
        f"/console/money/purchases/{made['sale_id']}"
    purchase(service, "pay", made)
    text = shown(accountant.get(f"/console/money/purchases/{made['sale_id']}"))
    assert "quote the reference" not in text and "Paid" in text and "cancel" not in text
    accountant.get("/console/money/movements?kind=purchase")
    assert f'href="/console/money/purchases/{made["sale_id"]}"' in accountant.body
    listed = rows(accountant, "/console/money/purchases.csv?state=paid")
    assert [row["sale_id"] for row in listed] == [made["sale_id"]] and listed[0]["tax"] == "8.40"


def test_a_purchase_is_canceled_once(service, account, pack, accountant):
    made = new_purchase(service, account, pack)
    path = f"/console/money/purchases/{made['sale_id']}"
    assert "cannot be reopened" in shown(accountant.get(path))
    accountant.send(f"{path}/cancel")
    assert accountant.location == f"{path}?done=purchase_cancel"
    assert "canceled" in shown(accountant.follow()) and f"{path}/cancel" not in accountant.body
    accountant.post(f"{path}/cancel", accountant.own_fields(), **{"Sec-Fetch-Site": "same-origin"})
    assert accountant.status in (303, 400, 409)
    assert purchases(service, account, "--state", "canceled")[0]["sale_id"] == made["sale_id"]
    assert made["sale_id"] in accountant.get("/console/money/purchases?state=canceled").body
    assert made["sale_id"] not in accountant.get("/console/money/purchases?state=reverted").body


def test_a_purchase_is_paid_on_the_page_of_a_provider(start):
    provider = PaymentProvider()
    service = start(**provider.settings(), payment__return_url="https://example.org/paid")
    service.secrets |= {provider.key, provider.secret}
    account = service.new_account(credits=1)
    bill(service, account)
    pack = new_pack(service)
    visitor = new_visitor(service, account)
    assert "page of the payment provider" in shown(visitor.get("/console/money"))
    visitor.send("/console/money/buy", pack=pack["pack_id"])
    # A form may only lead to this site, so the way to the provider is a link.
    assert visitor.location.startswith("/console/money/purchases/sal_")
    visitor.follow()
    assert "form-action 'self';" in visitor.headers["content-security-policy"]
    made = purchases(service, account)[0]
    assert made["payment_url"]
    link = f"/console/money/purchases/{made['sale_id']}/pay"
    assert link in visitor.body and made["payment_url"] not in visitor.body
    assert visitor.get(link).status == 303 and visitor.location == made["payment_url"]
    stranger = new_visitor(service, service.new_account(credits=1))
    assert stranger.get(link).status == 404
    reader = new_visitor(service, account, "reader")
    assert link not in reader.get(f"/console/money/purchases/{made['sale_id']}").body
    provider.close()


def test_a_payment_page_that_was_not_made_is_asked_for_again(start):
    provider = PaymentProvider()
    service = start(**provider.settings(), payment__return_url="https://example.org/paid")
    service.secrets |= {provider.key, provider.secret}
    account = service.new_account(credits=1)
    bill(service, account)
    pack = new_pack(service)
    visitor = new_visitor(service, account)
    provider.page_behaviours += ["unavailable", "cut"]
    visitor.get("/console/money").send("/console/money/buy", pack=pack["pack_id"])
    visitor.follow()
    (made,) = purchases(service, account)
    assert made["payment_url"] is None and made["state"] == "pending"
    page = f"/console/money/purchases/{made['sale_id']}"
    assert "the page could not be created" in shown(visitor) and "quote the reference" not in shown(visitor)
    reader = new_visitor(service, account, "reader")
    assert "the page could not be created" in shown(reader.get(page)) and f"{page}/page" not in reader.body
    loaded = visitor.body
    with pytest.raises(AssertionError):  # as for any 503
        visitor.send(f"{page}/page")
    assert visitor.status == 503 and "did not create the payment page" in shown(visitor)
    assert "the page could not be created" in shown(visitor)
    visitor.send(f"{page}/page")
    assert visitor.location == f"{page}?done=purchase_page"
    (made,) = purchases(service, account)
    assert made["payment_url"] and f"{page}/pay" in visitor.follow().body
    assert f'action="{page}/page"' not in visitor.body
    assert len(provider.sessions) == 1
    # A user who still has that page is led to the existing purchase.
    visitor.body = loaded
    visitor.send(f"{page}/page")
    assert visitor.status == 303 and purchases(service, account)[0]["payment_url"] == made["payment_url"]
    provider.close()


def test_without_payment_pages_none_is_asked_for(service, account, pack):
    made = service.admin("purchase", "create", "--account", account, "--pack", pack["pack_id"])
    visitor = new_visitor(service, account)
    page = f"/console/money/purchases/{made['sale_id']}"
    assert "quote the reference" in shown(visitor.get(page)) and f"{page}/page" not in visitor.body
    visitor.post(f"{page}/page", visitor.own_fields(), **{"Sec-Fetch-Site": "same-origin"})
    assert visitor.status in (400, 409) and "cannot be paid on a page" in shown(visitor)


def test_top_up_is_set_stopped_and_turned_on(service, pack):
    account = service.new_account(credits=100)
    bill(service, account)
    visitor = new_visitor(service, account, "accountant")
    assert "Not configured." in shown(visitor.get("/console/money"))
    visitor.send("/console/money/topup/set", threshold="many", pack=pack["pack_id"])
    assert visitor.status == 400 and 'value="many"' in visitor.body and 'role="alert"' in visitor.body
    visitor.get("/console/money")
    visitor.send("/console/money/topup/set", threshold="20", pack=pack["pack_id"], daily_max="2")
    assert visitor.location == "/console/money?done=topup_set"
    state = service.admin("topup", "show", account)
    assert (state["enabled"], state["threshold"], state["daily_max"]) == (True, 20, 2)
    assert "0 of at most 2 purchases" in shown(visitor.follow()) and "20 credits" in shown(visitor)
    visitor.send("/console/money/topup/off")
    assert visitor.location == "/console/money?done=topup_off"
    assert not service.admin("topup", "show", account)["enabled"]
    visitor.follow()
    visitor.send("/console/money/topup/on")
    assert visitor.location == "/console/money?done=topup_on"
    # Without a payment method it stops automatically, and the page states why.
    service.admin("account", "billing", account, "--payment-method", "")
    service.admin("credits", "add", account, "-95")
    eventually(lambda: service.admin("topup", "show", account)["reason"], "it has stopped")
    text = shown(visitor.get("/console/money"))
    assert "Automatic top-up has stopped." in text and "No payment method is stored." in text
    assert "Turn on again" in text


def test_alerts_and_billing(service):
    account = service.new_account(credits=5)
    visitor = new_visitor(service, account, "accountant")
    assert "First enter the billing country below" in shown(visitor.get("/console/money")) or \
        "No packs are on sale" in shown(visitor)
    visitor.send("/console/money/thresholds/create", credits="3")
    assert visitor.location == "/console/money?done=threshold_create"
    made = service.admin("threshold", "list", "--account", account)["data"][0]
    assert made["credits"] == 3 and made["threshold_id"] in visitor.follow().body
    visitor.send("/console/money/thresholds/create", credits="-1")
    assert visitor.status == 400 and 'value="-1"' in visitor.body
    visitor.get("/console/money")
    visitor.send("/console/money/thresholds/delete")
    assert visitor.location == "/console/money?done=threshold_delete"
    assert not service.admin("threshold", "list", "--account", account)["data"]
    visitor.follow()
    visitor.send("/console/money/billing", country="<>")
    assert visitor.status == 400 and 'value="&lt;&gt;"' in visitor.body
    visitor.get("/console/money")
    visitor.send("/console/money/billing", country="GB")
    assert visitor.location == "/console/money?done=account_billing"
    text = shown(visitor.follow())
    assert "GBP" in text and "United Kingdom" in text
    # Viewing it creates no audit record.
    operations = [act["operation"] for act in service.admin("audit", "list", "--account", account)["data"]]
    assert operations.count("account billing") == 1 and "billing show" not in operations
    for name, value in (("tax_rate", "0"), ("customer", "cus_x"), ("payment_method", "pm_x"), ("region", "world")):
        visitor.get("/console/money")
        visitor.send("/console/money/billing", country="ES", **{name: value})
        assert visitor.status == 403, name
    assert service.admin("billing", "show", account)["country"] == "GB"


def test_movements_are_filtered_paged_and_exported(service):
    account = service.new_account(credits=100)
    channel = service.new_channel(account_id=account)
    for number in range(52):  # one after the other: an entry for each
        channel.live.register({"number": number}).expect(201)
    channel.close()
    service.admin("credits", "add", account, "1", "--reason", HOSTILE)
    service.admin("credits", "add", account, "-3", "--reason", "=1+1")
    visitor = new_visitor(service, account, "reader")
    visitor.get("/console/money/movements")
    assert SAFE in visitor.body and "<script>alert" not in visitor.body
    older = re.search(r'href="(/console/money/movements\?before=[^"]+)"', visitor.body)[1].replace("&amp;", "&")
    assert "Older entries" not in visitor.get(older).text() and "100" in visitor.text()
    assert "No matching movements." in visitor.get("/console/money/movements?kind=fee").text()
    assert "No matching movements." in visitor.get("/console/money/movements?until=2020-01-01T00:00:00Z").text()
    assert "No matching movements." not in visitor.get("/console/money/movements?since=1h").text()
    assert visitor.get("/console/money/movements?kind=nonsense").status == 400
    assert visitor.get("/console/money/movements?since=yesterday").status == 400
    listed = rows(visitor, "/console/money/movements.csv?kind=adjustment")
    assert [int(row["number"]) for row in listed] == sorted((int(row["number"]) for row in listed), reverse=True)
    assert [row["kind"] for row in listed[:2]] == ["adjustment"] * 2 and not listed[0]["reference"].startswith("=")
    whole = json.loads(visitor.get("/console/money/movements.json").body)
    assert whole == service.admin("credits", "list", account, "--limit", "1000")["data"]


@pytest.mark.usefixtures("one_day")
def test_the_balance_by_day(service):
    account = service.new_account(credits=40)
    service.admin("credits", "add", account, "-15")
    visitor = new_visitor(service, account, "reader")
    visitor.get("/console/money/history")
    assert "figcaption" in visitor.body and " 25 " in shown(visitor)
    listed = rows(visitor, "/console/money/history.csv")
    assert int(listed[-1]["balance"]) == 25
    assert "No matching days." in visitor.get("/console/money/history?from=2020-01-01&to=2020-01-02").text()
    assert visitor.get("/console/money/history?from=x").status == 400


@pytest.mark.usefixtures("one_day")
def test_usage_by_day_channel_and_key(service):
    account = service.new_account(credits=40)
    channel, other = (named(service, account, name) for name in (f"One {HOSTILE}", "Two"))
    for number in range(3):
        channel.live.register({"number": number}).expect(201)
    channel.test.register({"number": 1}).expect(201)
    other.live.register({"number": 1}).expect(201)
    visitor = new_visitor(service, account, "accountant")
    visitor.get("/console/usage")
    assert "figcaption" in visitor.body and "<script>alert" not in visitor.body
    assert [int(row["events"]) for row in rows(visitor, "/console/usage.csv?by=day&mode=live")] == [4]
    visitor.get("/console/usage?by=channel&mode=live")
    assert SAFE in visitor.body and "Two" in shown(visitor)
    by_channel = {row["channel_id"]: int(row["events"])
                  for row in rows(visitor, "/console/usage.csv?by=channel&mode=live")}
    assert by_channel == {channel.id: 3, other.id: 1}
    visitor.get(f"/console/usage?by=channel,key&channel={other.id}")
    assert f'value="{other.id}" selected' in visitor.body and "key_" in visitor.body
    assert "No usage." in visitor.get("/console/usage?to=2020-01-01").text()
    for query in ("by=nonsense", "from=x", "channel=cha_none", "mode=x"):
        assert visitor.get(f"/console/usage?{query}").status in (400, 404), query
    foreign = service.new_channel(account_id=service.new_account(credits=5))
    assert visitor.get(f"/console/usage?channel={foreign.id}").status == 404
    for one in (channel, other, foreign):
        one.close()


def fetched(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read()


def test_a_certification_with_its_files_and_its_verification(service):
    account = service.new_account(credits=40)
    channel = named(service, account, f"One {HOSTILE}")
    for number in range(3):
        channel.test.register({"number": number}).expect(201)
    identifier = channel.test.certify(seq_from=1, seq_to=3).expect(202).json["certification_id"]
    developer = new_visitor(service, account, "developer")
    path = f"/console/certifications/{identifier}"
    eventually(lambda: service.admin("certification", "show", identifier)["status"] == "completed", "it is made")
    developer.get("/console/certifications?mode=test")
    assert f'href="{path}"' in developer.body and "<script>alert" not in developer.body and SAFE in developer.body
    assert identifier not in developer.get("/console/certifications?mode=test&status=failed").body
    assert identifier not in developer.get("/console/certifications?mode=live").body
    told = service.admin("certification", "show", identifier)
    developer.get(path)
    assert f"{service.public_url}/verify/{told['verification_code']}" in developer.text()
    assert developer.get(f"/verify/{told['verification_code']}").status == 200
    developer.get(path)
    assert len(told["files"]) >= 3
    for one in told["files"]:
        assert developer.get(f"{path}/files/{one['name']}").status == 303
        assert len(fetched(developer.location)) == one["bytes"]
    assert developer.get(f"{path}/files/nothing.pdf").status == 404
    assert developer.get("/console/certifications/CERT-2026-9999999").status == 404
    # It is not found by another account, or by roles without access to it.
    stranger = new_visitor(service, service.new_account(credits=5), "owner")
    assert stranger.get(path).status == 404
    assert stranger.get(f"{path}/files/{told['files'][0]['name']}").status == 404
    stranger.get("/console/sessions")
    stranger.post(f"{path}/retry", stranger.own_fields(), **{"Sec-Fetch-Site": "same-origin"})
    assert stranger.status == 404
    accountant = new_visitor(service, account, "accountant")
    assert accountant.get(path).status == 403 and accountant.get("/console/certifications").status == 403
    channel.close()


def test_why_a_certification_waits_or_failed(start):
    service = start(seal__interval="1s")
    account = service.new_account(credits=40)
    channel = service.new_channel(account_id=account)
    channel.test.register({"number": 1}).expect(201)
    identifiers = []
    for _ in range(2):
        identifiers.append(channel.test.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"])
    for one in identifiers:
        eventually(lambda: service.admin("certification", "show", one)["status"] == "completed", "it is made")
    assert service.stop() == 0
    service.store.change("UPDATE certifications SET status = 'failed', incident_id = 'inc_x', last_error = "
                         f"'{SAFE.replace('&lt;', '<').replace('&gt;', '>')}' WHERE certification_id = "
                         f"'{identifiers[0]}'")
    service.store.change("UPDATE certifications SET status = 'processing', progress_permille = 250, next_attempt_at "
                         f"= next_attempt_at + 86400000000 * 365, last_error = '{INTERNALS}', lease = NULL WHERE certification_id = "
                         f"'{identifiers[1]}'")
    service.start()
    developer = new_visitor(service, account, "developer")
    text = shown(developer.get(f"/console/certifications/{identifiers[0]}"))
    assert "failed permanently" in text and "inc_x" in text and "alert(1)" not in developer.body
    assert "An internal error occurred" in text
    assert f"/console/certifications/{identifiers[0]}/retry" not in developer.body
    text = shown(developer.get(f"/console/certifications/{identifiers[1]}"))
    assert "Waiting in the queue." in text and "return a usable response" in text and 'value="0.25"' in developer.body
    for visitor in (developer, new_visitor(service, account, "owner")):
        for path in (f"certifications/{identifiers[1]}", f"certifications?channel={channel.id}&mode=test"):
            assert not set(("/var/lib", "tsa.internal", "SELECT")) & set(re.findall(
                "/var/lib|tsa.internal|SELECT", visitor.get(f"/console/{path}").body))
    developer.send("/console/language", language="es")
    text = shown(developer.get(f"/console/certifications/{identifiers[1]}"))
    assert "En cola." in text and "no devolvió una respuesta utilizable" in text
    told = service.admin("certification", "show", identifiers[1])
    assert (told["last_error"], told["failure"], told["waiting_for"]) == (INTERNALS, "authority", "attempt")
    reader = new_visitor(service, account, "reader")
    assert "/retry" not in reader.get(f"/console/certifications/{identifiers[1]}").body
    developer.send(f"/console/certifications/{identifiers[1]}/retry")
    assert developer.location == f"/console/certifications/{identifiers[1]}?done=certification_retry"
    channel.close()


def test_the_pack_of_the_top_up_is_named_wherever_the_packs_are_read(service, pack):
    """On another page of the packs, and when it is no longer on sale, it remains the selected one."""
    account = service.new_account(credits=100)
    bill(service, account)
    own = service.admin("pack", "create", "--name", "Of the top-up", "--credits", 77, "--price", "7.70", "--currency",
                        "EUR")
    service.admin("topup", "set", "--account", account, "--pack", own["pack_id"], "--threshold", 5)
    visitor = new_visitor(service, account)
    for path in (f"/console/money?packs={own['pack_id']}", "/console/money"):
        text = shown(visitor.get(path))
        assert f"Of the top-up · 77 credits · 7.70 EUR {own['pack_id']}" in text.replace("\xa0", " ").replace("\u202f", " ")
        if 'id="topup_pack"' in visitor.body:
            chosen = re.search(r'<select id="topup_pack".*?</select>', visitor.body, re.S)[0]
            assert chosen.count(own["pack_id"]) == 1 and f'value="{own["pack_id"]}" selected' in chosen
    service.admin("pack", "withdraw", own["pack_id"])
    assert "Of the top-up" in shown(visitor.get("/console/money"))


def test_who_buys_says_first_where_he_is(service, pack):
    """A pricing region that the operator defined is not a country: the tax depends on the country, and the receipt
    states it."""
    account = service.new_account(credits=1)
    service.admin("account", "billing", account, "--region", "europe")
    visitor = new_visitor(service, account)
    visitor.get("/console/money")
    assert 'action="/console/money/buy"' not in visitor.body and 'action="/console/money/billing"' in visitor.body
    visitor.post("/console/money/buy", {**visitor.own_fields(), "pack": pack["pack_id"]}, **{"Sec-Fetch-Site": "same-origin"})
    assert visitor.status == 400 and "billing country first" in visitor.text() and not purchases(service, account)
    visitor.send("/console/money/billing", country="ES")
    assert 'action="/console/money/buy"' in visitor.follow().body


@pytest.mark.parametrize("role", ["developer", "reader"])
def test_who_may_not_change_money(service, account, pack, role):
    visitor = new_visitor(service, account, role)
    made = new_purchase(service, account, pack)
    assert visitor.get("/console/money").status == (200 if role == "reader" else 403)
    if role == "reader":
        assert 'action="/console/money' not in visitor.body
    visitor.get("/console/sessions")
    carried = visitor.own_fields()
    for path, fields in (("buy", {"pack": pack["pack_id"]}), (f"purchases/{made['sale_id']}/cancel", {}),
                         ("topup/set", {"threshold": "5", "pack": pack["pack_id"]}), ("topup/off", {}),
                         ("topup/on", {}), ("thresholds/create", {"credits": "5"}), ("billing", {"country": "ES"})):
        visitor.post(f"/console/money/{path}", {**carried, **fields}, **{"Sec-Fetch-Site": "same-origin"})
        assert visitor.status == 403, path
    purchase(service, "cancel", made)


def test_things_of_another_account_are_not_there(service, account, pack):
    other = service.new_account(credits=10)
    bill(service, other)
    theirs = new_purchase(service, other, pack)
    threshold = service.admin("threshold", "create", "--account", other, "--credits", "3")["threshold_id"]
    own = service.admin("pack", "create", "--name", "Theirs", "--credits", 5, "--price", "1.00", "--currency", "EUR",
                        "--account", other)["pack_id"]
    visitor = new_visitor(service, account)
    path = f"/console/money/purchases/{theirs['sale_id']}"
    assert visitor.get(path).status == 404 and visitor.get(f"{path}/pay").status == 404
    visitor.get("/console/money")
    assert own not in visitor.body and threshold not in visitor.body
    carried = visitor.own_fields()
    for where, fields in ((f"{path}/cancel", {}), ("/console/money/thresholds/delete", {"threshold": threshold}),
                          ("/console/money/buy", {"pack": own}),
                          ("/console/money/topup/set", {"threshold": "5", "pack": own})):
        visitor.post(where, {**carried, **fields}, **{"Sec-Fetch-Site": "same-origin"})
        assert visitor.status == 404, where
    assert theirs["sale_id"] not in visitor.get("/console/money/purchases.csv").body
    assert Visitor(service).get("/console/money/movements.csv").location == "/console/sign-in"


def test_a_user_says_where_he_is_before_he_buys(service):
    """Without a country, packs of every currency are shown; the operator may sell any of them."""
    account = service.new_account(credits=1)
    accountant = new_visitor(service, account, "accountant")
    packs = {currency: new_pack(service, currency=currency, account=account)["pack_id"]
             for currency in ("EUR", "USD")}
    accountant.get("/console/money")
    assert "First enter the billing country below" in shown(accountant)
    assert 'action="/console/money/buy"' not in accountant.body and packs["USD"] in accountant.body
    accountant.post("/console/money/buy", {"pack": packs["USD"], **accountant.own_fields()},
                    **{"Sec-Fetch-Site": "same-origin"})
    assert accountant.status == 400 and "billing country first" in shown(accountant)
    assert purchases(service, account) == []
    assert new_purchase(service, account, {"pack_id": packs["USD"]})["currency"] == "USD"
    accountant.get("/console/money")
    accountant.send("/console/money/billing", country="ES")
    accountant.get("/console/money")
    assert packs["USD"] not in accountant.body
    accountant.send("/console/money/buy", pack=packs["EUR"])
    assert accountant.status == 303 and len(purchases(service, account)) == 2


def test_packs_go_on_behind_one_page(start):
    """Packs beyond one page are on the next one."""
    service = start()
    account = service.new_account(credits=1)
    bill(service, account)
    number = service.store.rows(f"SELECT account FROM accounts WHERE account_id = '{account}'")[0][0]
    service.stop()
    service.store.change("".join(
        "INSERT INTO packs (account, number, pack_id, name, credits, amount, currency, created_at) VALUES"
        f" ({number}, {n}, 'pck_{n:016}', 'Pack {n}', 1, 100, 'EUR', {n});" for n in range(1, 1003)))
    service.start()
    accountant = new_visitor(service, account, "accountant")
    accountant.get("/console/money")
    seen = set(re.findall(r'name="pack" value="(pck_\d+)"', accountant.body))
    assert len(seen) == 1000
    following = [link for link in accountant.links() if link.startswith("/console/money?packs=")]
    accountant.get(following[0])
    rest = set(re.findall(r'name="pack" value="(pck_\d+)"', accountant.body))
    assert len(rest) == 2 and len(seen | rest) == 1002
    assert "More packs" not in shown(accountant)
    accountant.send("/console/money/buy", pack=rest.pop())
    assert accountant.status == 303
