"""A form of the console takes effect once, however often it is sent: by a button pressed twice, a reloaded page, or a
repetition after an unknown outcome; concurrently, and on two nodes."""

import re
import secrets
import threading

import pytest

from client import eventually
from console import Visitor, invited, new_visitor, shown, signed_in
from fleet import Fleet
from hooks import Receiver
from money import bill, new_pack, purchases
from postgres import Cluster

AGAIN = "Nothing was done a second time."


def twice(visitor, page, action, /, **fields):
    """Sends the form of one page twice; returns the first redirect and the pages."""
    visitor.get(page)
    loaded = visitor.body
    visitor.send(action, **fields)
    first = visitor.location, visitor.body
    visitor.body = loaded
    visitor.send(action, **fields)
    return first


@pytest.fixture(scope="module")
def account(service):
    account = service.new_account(credits=10)
    bill(service, account)
    return account


@pytest.fixture(scope="module")
def pack(service):
    return new_pack(service)


@pytest.fixture
def owner(service, account):
    return new_visitor(service, account)


def secret_of(visitor):
    """Returns the secret that the page shows only once."""
    found = re.search(r'<p class="secret"><code class="hash">([^<]+)</code>', visitor.body)
    if found:
        visitor.service.secrets.add(found[1])
    return found and found[1]


# ---- one after the other ----

def test_a_purchase_is_made_once_for_a_page(service, account, pack, owner):
    first, _ = twice(owner, "/console/money", "/console/money/buy", pack=pack["pack_id"])
    (made,) = purchases(service, account)
    assert first == f"/console/money/purchases/{made['sale_id']}?done=purchase_create"
    assert owner.location == f"/console/money/purchases/{made['sale_id']}?done=repeated"
    assert AGAIN in shown(owner.follow()) and made["sale_id"] in owner.body
    acts = service.admin("audit", "list", "--account", account, "--operation", "purchase create")["data"]
    assert len(acts) == 1
    other = new_pack(service)
    twice(owner, "/console/money", "/console/money/buy", pack=pack["pack_id"])
    assert len(purchases(service, account)) == 2, "another page buys another one"
    owner.get("/console/money")
    page = owner.body
    for wanted in (pack, other):  # one page has a form for each
        owner.body = page
        owner.send("/console/money/buy", pack=wanted["pack_id"])
    assert len(purchases(service, account)) == 4


def test_channels_limits_and_alerts_are_made_once_for_a_page(service, account, owner):
    def counts():
        return [len(service.admin(thing, "list", "--account", account)["data"])
                for thing in ("channel", "limit", "threshold")]
    channel = service.new_channel(account_id=account)
    forms = [("/console/channels", "/console/channels/open",
              {"name": "Deliveries", "declarant": "Anna", "modality": "content"}),
             ("/console/limits", "/console/limits/set",
              {"channel": channel.id, "period": "day", "max": "7", "action": "block"}),
             ("/console/money", "/console/money/thresholds/create", {"credits": "33"})]
    channel.close()
    for at, (page, action, fields) in enumerate(forms):
        before = counts()
        first, _ = twice(owner, page, action, **fields)
        before[at] += 1
        assert counts() == before
        assert owner.location == f"{page}?done=repeated" != first
        assert AGAIN in shown(owner.follow())


@pytest.mark.parametrize("language, said", [("en", "is not shown again"), ("es", "no vuelve a mostrarse")])
def test_a_secret_is_shown_once_and_its_repetition_says_so(service, account, language, said):
    channel = service.new_channel(account_id=account)
    visitor = new_visitor(service, account)
    visitor.send("/console/language", language=language)

    def again(page, action, said_of, /, **fields):
        _, body = twice(visitor, page, action, **fields)
        repeated = visitor.body
        visitor.body = body
        secret = secret_of(visitor)
        visitor.body = repeated
        assert secret and secret not in repeated and secret_of(visitor) is None
        assert visitor.status == 200 and said in shown(visitor) and said_of in shown(visitor)
        return secret
    again("/console/keys", "/console/keys/make", "Till 4", channel=channel.id, mode="live", name="Till 4")
    keys = [key for key in service.admin("key", "list", "--channel", channel.id)["data"] if key["name"] == "Till 4"]
    assert [key["key_id"] for key in keys] == re.findall(r"key_[a-z0-9]{8,}", visitor.body)[:1]
    assert 'href="/console/keys"' in visitor.body
    url = f"https://example.org/{secrets.token_hex(4)}"
    first = again("/console/webhooks", "/console/webhooks/make", url, url=url)
    (endpoint,) = [one for one in service.admin("webhook", "list", "--account", account)["data"] if one["url"] == url]
    page = f"/console/webhooks/{endpoint['endpoint_id']}"
    assert f'href="{page}"' in visitor.body
    # Like a reload of the page with the new secret: the receiver's secret still signs.
    second = again(page, f"{page}/rotate", endpoint["endpoint_id"])
    stands = service.admin("webhook", "show", endpoint["endpoint_id"])
    assert stands["secret_version"] == 2 and stands["previous_secret_until"] and first != second
    channel.close()


def test_a_test_notice_goes_out_once_for_a_page(service, account, owner):
    with Receiver() as receiver:
        made = service.admin("webhook", "create", "--account", account, "--url", receiver.url)
        service.secrets.add(made["secret"])
        receiver.secrets = [made["secret"]]
        page = f"/console/webhooks/{made['endpoint_id']}"
        twice(owner, page, f"{page}/test")
        assert owner.location == f"{page}?done=repeated"
        receiver.expect(1)
        receiver.check()
        service.admin("webhook", "delete", made["endpoint_id"])


def test_a_try_that_is_sent_again_leads_to_its_event(service, account, owner):
    channel = service.new_channel(account_id=account)
    for count in (1, 2):
        twice(owner, "/console/try", "/console/try/send", channel=channel.id, content='{"tried": 1}',
              client_ref=f"ref {count}")
        events = channel.test.get("/v1/events").expect(200).json["data"]
        assert len(events) == count
        newest = next(event for event in events if event["client_ref"] == f"ref {count}")
        assert owner.location == f"/console/events/{newest['event_id']}?done=repeated"
        assert AGAIN in shown(owner.follow())
    acts = service.admin("audit", "list", "--account", account, "--operation", "event try")["data"]
    assert len(acts) == 2
    # From the answer page it is sent again as a program would send it.
    owner.get("/console/try")
    for _ in range(2):
        owner.send("/console/try/send", channel=channel.id, content='{"tried": 1}', client_ref="ref 2")
        assert owner.status == 200
    channel.close()


def test_what_failed_is_sent_again_from_the_page_that_says_so(service, account, owner):
    owner.get("/console/limits").send("/console/limits/set", period="day", max="9", action="block")
    assert owner.status == 400
    channel = service.new_channel(account_id=account)
    owner.send("/console/limits/set", channel=channel.id, period="day", max="9", action="block")
    assert owner.location == "/console/limits?done=limit_create"
    channel.close()


def test_another_user_has_forms_of_his_own(service, account, pack):
    count = len(purchases(service, account))
    one, other = new_visitor(service, account), new_visitor(service, account)
    one.get("/console/money")
    number = re.search(r'name="form_number" value="([0-9a-f]{32})"', one.body)[1]
    one.send("/console/money/buy", pack=pack["pack_id"])
    other.get("/console/money").send("/console/money/buy", pack=pack["pack_id"], form_number=number)
    assert other.location.endswith("?done=purchase_create")
    assert len(purchases(service, account)) == count + 2


def test_who_signs_in_again_has_the_same_form(start):
    service = start()
    account = service.new_account(credits=10)
    email = invited(service, account, f"{secrets.token_hex(6)}@example.org")
    visitor = signed_in(service, email)
    channel = service.new_channel(account_id=account)
    visitor.get("/console/keys")
    loaded = visitor.body
    visitor.send("/console/keys/make", channel=channel.id, mode="live", name="Till 5")
    assert secret_of(visitor)
    channel.close()
    service.stop()
    service.store.change("UPDATE sessions SET signed_in_at = signed_in_at - 660000000 WHERE user_id = "
                         f"(SELECT user_id FROM users WHERE email = '{email}')")
    service.start()
    visitor.body = loaded
    visitor.send("/console/keys/make", channel=channel.id, mode="live", name="Till 5")
    assert visitor.location == "/console/again"
    visitor.enter(service.admin("user", "link", email)["url"])
    assert 'value="Till 5"' in visitor.body
    visitor.send("/console/keys/make", channel=channel.id, mode="live", name="Till 5")
    assert visitor.status == 200 and "is not shown again" in shown(visitor)
    keys = service.admin("key", "list", "--channel", channel.id)["data"]
    assert len([key for key in keys if key["name"] == "Till 5"]) == 1


# ---- concurrently ----

def copies(visitor, services):
    """Returns copies of the browser with the same page, one for each node."""
    for service in services:
        one = Visitor(service)
        one.cookies, one.body = dict(visitor.cookies), visitor.body
        yield one


def send_at_once(visitors, action, /, **fields):
    start = threading.Barrier(len(visitors))

    def send(visitor):
        start.wait()
        visitor.send(action, **fields)
    threads = [threading.Thread(target=send, args=(visitor,)) for visitor in visitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [visitor.location for visitor in visitors]


def test_of_posts_at_once_one_makes_something(service, account, pack, owner):
    count = len(purchases(service, account))
    owner.get("/console/money")
    led = send_at_once(list(copies(owner, [service] * 6)), "/console/money/buy", pack=pack["pack_id"])
    made = purchases(service, account)
    assert len(made) == count + 1
    sale = f"/console/money/purchases/{made[0]['sale_id']}"
    assert sorted(led) == sorted([f"{sale}?done=purchase_create"] + 5 * [f"{sale}?done=repeated"])


@pytest.mark.postgresql
def test_of_posts_at_once_on_two_nodes_one_makes_something(tmp_path):
    with Fleet(tmp_path, count=2) as fleet:
        first = fleet.nodes[0]
        account = fleet.new_account(credits=10)
        bill(fleet, account)
        pack = new_pack(fleet)
        email = invited(fleet, account, "anna@example.org")
        url = fleet.admin("user", "link", email)["url"]
        owner = Visitor(first).enter(url)
        channel = fleet.new_channel(account_id=account)
        for count in range(1, 6):
            owner.get("/console/money")
            led = send_at_once(list(copies(owner, fleet.nodes * 2)), "/console/money/buy", pack=pack["pack_id"])
            made = purchases(fleet, account)
            assert len(made) == count and len({place.partition("?")[0] for place in led}) == 1
            owner.get("/console/try")
            send_at_once(list(copies(owner, fleet.nodes * 2)), "/console/try/send", channel=channel.id,
                         content="{}", client_ref=f"ref {count}")
            assert len(channel.test.get("/v1/events").expect(200).json["data"]) == count
        channel.close()


# ---- unknown outcomes ----

class Patient(Visitor):
    """Accepts 503 as an answer."""

    def ask(self, method, path, body=None, **headers):
        try:
            return super().ask(method, path, body, **headers)
        except AssertionError:
            assert self.status == 503, self.body
            return self


@pytest.mark.postgresql
def test_what_no_standby_confirmed_is_sent_again_and_made_once(tmp_path):
    with Cluster(standbys=1) as cluster, Fleet(tmp_path, count=1, cluster=cluster,
                                               store__commit_timeout="2s") as fleet:
        account = fleet.new_account(credits=10)
        bill(fleet, account)
        pack = new_pack(fleet)
        email = invited(fleet, account, "anna@example.org")
        owner = Patient(fleet.nodes[0]).enter(fleet.admin("user", "link", email)["url"])
        owner.get("/console/money")
        cluster.standby.freeze()
        try:
            def sent():
                owner.send("/console/money/buy", pack=pack["pack_id"])
                assert owner.status == 503 and "form_number" in owner.body
                if "Submit the form below again" in shown(owner):
                    return True
                cluster.standby.thaw()  # a standby that is frozen for long is disconnected, and no commit begins
                cluster.primary.wait_for_standbys()
                cluster.standby.freeze()
                return False
            # On a busy machine the steps before the commit may use up all the time.
            eventually(sent, "it is reported that no one knows")
            sent()
        finally:
            cluster.standby.thaw()
        cluster.primary.wait_for_standbys()

        def told():
            page = owner.body
            owner.send("/console/money/buy", pack=pack["pack_id"])
            if owner.status == 303:
                return True
            owner.body = owner.body if "form_number" in owner.body else page
            return False
        eventually(told, "it is answered")
        (made,) = purchases(fleet, account)
        assert owner.location == f"/console/money/purchases/{made['sale_id']}?done=repeated"
