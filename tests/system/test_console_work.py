"""The console's pages of channels, keys, limits and webhooks: what they show and what their forms do."""

import json
import re
import threading

import pytest

from client import Client, eventually
from console import invited, new_address, signed_in
from hooks import BadReceiver, Owner, Receiver, attempts, ended
from postgres import Cluster

HOSTILE = "<script>alert(1)</script> \"'&amp; ‮drow"


def user_of(service, account, role="developer"):
    return signed_in(service, invited(service, account, new_address(), role))


@pytest.fixture
def account(service):
    return service.new_account(credits=50)


@pytest.fixture
def developer(service, account):
    return user_of(service, account)


def open_channel(developer, **fields):
    there = developer.get("/console/channels").links()
    developer.send("/console/channels/open", **{"name": "Deliveries", "declarant": "Anna", "modality": "content",
                                                **fields})
    assert developer.location == "/console/channels?done=channel_create", developer.text()
    developer.follow()
    return next(link for link in developer.links() - there if "/channels/" in link).rpartition("/")[2]


def harmless(visitor):
    assert "<script>alert" not in visitor.body and "‮" not in re.sub(r'value="[^"]*"|<textarea.*?</textarea>', "",
                                                                     visitor.body, flags=re.S)


# ---- channels ----

def test_a_channel_is_opened_and_its_versions_show_what_they_changed(service, developer):
    channel = open_channel(developer, name="First name", description="One\r\ntwo", supplementary_info="Units")
    page = f"/console/channels/{channel}"
    text = developer.get(page).text()
    assert "First name" in text and "Version 1" in text and "cannot be undone" in text
    developer.send(f"{page}/seal", name="Second name", declarant="Anna", description="", supplementary_info="Units")
    assert developer.location == f"{page}?done=channel_configure"
    developer.follow()
    versions = service.admin("channel", "show", channel)["config_versions"]
    assert [one["description"] for one in versions] == ["One\ntwo", None], "an emptied text is taken away"
    second, first = [part.split("</article>")[0] for part in developer.body.split('<article class="version">')[1:]]
    assert "Version 2" in second and "Version 1" in first
    assert "<del>First name</del>" in second and "<ins>Second name</ins>" in second
    assert re.search(r"Description</th>\s*<td[^>]*><del>One\ntwo</del></td>\s*<td[^>]*>none", second)
    assert "Units" not in second and "Anna" not in second, "only what differs"
    assert "<del>" not in first and all(word in first for word in ("First name", "Units", "Anna"))
    for version, part in zip(versions, (first, second)):
        assert version["config_hash"] in part
    assert developer.body.split('id="seal_name"')[1].startswith(' name="name" required maxlength="200" '
                                                                 'value="Second name"')


def test_what_does_not_differ_is_not_sealed_and_the_page_says_so(service, developer):
    channel = open_channel(developer)
    page = f"/console/channels/{channel}"
    developer.get(page)
    developer.send(f"{page}/seal", name="Deliveries", declarant="Anna")
    assert developer.location == f"{page}?done=channel_same"
    assert "No new version was sealed" in developer.follow().text()
    assert service.admin("channel", "show", channel)["config_version"] == 1
    developer.send(f"{page}/seal", name="x" * 201, declarant="Anna", description="kept <b>")
    assert developer.status == 400 and 'role="alert"' in developer.body and "kept &lt;b&gt;</textarea>" in developer.body
    assert service.admin("channel", "show", channel)["config_version"] == 1


def test_many_versions_are_shown_page_by_page(service, developer):
    channel = open_channel(developer)
    for number in range(2, 53):
        service.admin("channel", "configure", channel, "--name", f"Name {number}")
    page = f"/console/channels/{channel}"
    seen = re.findall(r"<h3>Version (\d+)</h3>", developer.get(page).body)
    oldest = developer.body.split('<article class="version">')[-1]
    assert "<del>Name 2</del>" in oldest and "<ins>Name 3</ins>" in oldest, "what it changed is of the page behind"
    older = re.search(rf'href="{page}\?before=(\d+)"', developer.body)[1]
    rest = re.findall(r"<h3>Version (\d+)</h3>", developer.get(f"{page}?before={older}").body)
    assert [int(number) for number in seen + rest] == list(range(52, 0, -1)) and len(seen) == 50
    assert not [link for link in developer.links() if "before" in link]
    assert 'value="Name 52"' in developer.body, "the version in force is what a new one begins from"
    for strange in ("0", "1", "-1", "x", "9" * 40):
        assert developer.get(f"{page}?before={strange}").status == 200


def test_versions_of_a_channel_are_shown_in_parts_by_the_command_line(service, developer):
    channel = open_channel(developer)
    for number in range(2, 5):
        service.admin("channel", "configure", channel, "--name", f"Name {number}")
    for flags, versions, more in (((), [1, 2, 3, 4], False), (("--limit", "2"), [3, 4], True),
                                  (("--limit", "2", "--before", "3"), [1, 2], False), (("--before", "2"), [1], False),
                                  (("--before", "1"), [], False), (("--before", "99", "--limit", "1"), [4], True)):
        shown = service.admin("channel", "show", channel, *flags)
        assert [version["version"] for version in shown["config_versions"]] == versions, flags
        assert shown["has_more"] is more and shown["config_version"] == 4, flags
    assert service.run("channel", "show", channel, "--limit", "0").returncode != 0


def test_a_channel_is_suspended_and_resumed(service, developer):
    channel = open_channel(developer)
    page = f"/console/channels/{channel}"
    for act, word in (("suspend", True), ("resume", False)):
        developer.get(page)
        developer.send(f"{page}/{act}")
        assert developer.location == f"{page}?done=channel_{act}"
        assert ("Registrations and certifications are refused; read access" in developer.follow().text()) is word
        assert service.admin("channel", "show", channel)["suspended"] is word


def test_hostile_texts_of_a_channel_are_shown_harmlessly(developer):
    channel = open_channel(developer, name=HOSTILE, description=HOSTILE, supplementary_info=f"</textarea>{HOSTILE}")
    for path in ("/console/channels", f"/console/channels/{channel}", "/console/keys", "/console/limits"):
        developer.get(path)
        assert "&lt;script&gt;" in developer.body, path
        harmless(developer)


# ---- keys ----

def test_a_key_is_made_and_shown_once(service, account, developer):
    channel = open_channel(developer)
    developer.get(f"/console/keys?channel={channel}")
    developer.send("/console/keys/make", channel=channel, mode="live", name=f"Till {HOSTILE}", expires="30d")
    assert developer.status == 200 and "shown only once" in developer.text()
    key = re.search(r'<p class="secret"><code class="hash">([^<]+)</code>', developer.body)[1]
    service.secrets.add(key)
    harmless(developer)
    client = Client(service, key)
    client.register({"number": 1}).expect(201)
    client.close()
    developer.get("/console/keys")
    assert key not in developer.body and key[-4:] in developer.body and "valid" in developer.text()
    harmless(developer)
    assert key not in developer.get("/console/").body
    made = service.admin("key", "list", "--channel", channel)["data"][0]
    assert made["expires_at"] and made["state"] == "valid" and made["channel_name"] == "Deliveries"


def test_a_keys_end_is_set_and_it_is_revoked_with_a_reason(service, developer):
    channel = open_channel(developer)
    made = service.new_key(channel, "test")
    key = made["key_id"]
    developer.get("/console/keys")
    developer.send("/console/keys/expire", key=key, at="1h")
    assert developer.location == "/console/keys?done=key_expire"
    assert service.admin("key", "list", "--channel", channel)["data"][0]["expires_at"]
    developer.follow().send("/console/keys/expire", key=key, at="never")
    assert service.admin("key", "list", "--channel", channel)["data"][0]["expires_at"] is None
    developer.get("/console/keys").send("/console/keys/expire", key=key, at="<soon>")
    assert developer.status == 400 and 'value="&lt;soon&gt;"' in developer.body
    assert re.search(r'<details class="change" open>', developer.body), "open where it was typed"
    developer.get("/console/keys").send("/console/keys/revoke", key=key, reason=f"lost {HOSTILE}")
    assert developer.location == "/console/keys?done=key_revoke"
    revoked = service.admin("key", "list", "--channel", channel)["data"][0]
    assert revoked["state"] == "revoked" and revoked["reason"] == f"lost {HOSTILE}"
    assert "lost" in developer.follow().text()
    harmless(developer)
    assert "/console/keys/revoke" not in developer.body, "a revoked one cannot be changed"
    client = Client(service, made["key"])
    eventually(lambda: client.register().status == 401, "the key is refused")
    client.close()


@pytest.mark.both_stores
def test_an_account_takes_so_many_acts_on_a_day(start):
    service = start(account__acts_per_day=15)
    account, other = service.new_account(), service.new_account()
    developer, neighbour = user_of(service, account), user_of(service, other)
    channel = open_channel(developer)

    def make(visitor, of):
        visitor.get(f"/console/keys?channel={of}").send("/console/keys/make", channel=of, mode="test")
        found = re.search(r'<p class="secret"><code class="hash">([^<]+)</code>', visitor.body)
        if found:
            service.secrets.add(found[1])
        return visitor.status

    def keys():
        return service.admin("key", "list", "--channel", channel)["data"]

    made = 0
    for _ in range(40):  # midnight may come meanwhile
        if make(developer, channel) == 400:
            break
        made += 1
        service.admin("key", "revoke", keys()[-1]["key_id"])
    assert developer.status == 400 and "15 changes were made in the account today" in developer.text()
    assert len(keys()) == made, "what was refused left nothing"
    developer.get("/console/webhooks").send("/console/webhooks/make", url="https://example.org/hook")
    assert developer.status == 400 and "15 changes" in developer.text()
    assert service.admin("webhook", "list", "--account", account)["data"] == []
    # Revoking still works, and so do the operator and all other users.
    key = service.new_key(channel, "test")["key_id"]
    developer.get(f"/console/keys?channel={channel}").send("/console/keys/revoke", key=key)
    assert developer.location and keys()[-1]["state"] == "revoked"
    assert make(neighbour, open_channel(neighbour)) == 200
    assert service.admin("store", "check")["valid"]


def test_keys_are_those_of_one_channel(service, developer):
    first, second = open_channel(developer), open_channel(developer, name="Another")
    marks = [service.new_key(channel, "test")["last_four"] for channel in (first, second)]
    for channel, own, other in ((first, *marks), (second, *reversed(marks))):
        developer.get(f"/console/keys?channel={channel}")
        assert f"…{own}</code>" in developer.body and f"…{other}</code>" not in developer.body


# ---- limits ----

@pytest.mark.usefixtures("one_day")
def test_limits_are_set_shown_with_their_use_and_deleted(service, account, developer):
    channel = service.new_channel(account_id=account)
    channel.live.register({"number": 1}).expect(201)
    made = service.admin("key", "create", "--channel", channel.id, "--mode", "live", "--name", "Till")
    service.secrets.add(made["key"])
    key = made["key_id"]
    developer.get("/console/limits")
    developer.send("/console/limits/set", channel=channel.id, period="day", max="1000", action="warn")
    assert developer.location == "/console/limits?done=limit_create"
    developer.follow().send("/console/limits/set", key=key, period="month", max="7", action="block")
    text = " ".join(developer.follow().text().split())
    assert "1 of 1,000" in text and "0 of 7" in text and "Till" in text and "<svg" in developer.body
    assert f"A channel · …{made['last_four']}, by month" in text and "A channel, by day" in text, "in the plot"
    listed = service.admin("limit", "list", "--account", account)["data"]
    assert sorted(one["max_events"] for one in listed) == [7, 1000]
    assert [one["key_name"] for one in listed if one["key_id"]] == ["Till"]
    developer.send("/console/limits/set", key=key, period="month", max="none", action="block")
    assert developer.status == 400 and developer.body.count('value="none"') == 1
    for one in listed:
        developer.get("/console/limits").send("/console/limits/delete", limit=one["limit_id"])
        assert developer.location == "/console/limits?done=limit_delete"
    assert service.admin("limit", "list", "--account", account)["data"] == []
    channel.close()


# ---- webhooks ----

def kept_secret(developer):
    assert developer.status == 200, developer.text()
    secret = re.search(r'<p class="secret"><code class="hash">(whsec_[0-9a-f]{64})</code>', developer.body)[1]
    developer.service.secrets.add(secret)
    return secret


def make_endpoint(developer, url, **fields):
    developer.get("/console/webhooks")
    developer.send("/console/webhooks/make", url=url, **fields)
    secret = kept_secret(developer)
    return re.search(r"/console/webhooks/(whk_[a-z0-9]+)", developer.body)[1], secret


def test_an_endpoint_is_made_tested_and_its_secret_rotated(service, developer):
    with Receiver() as receiver:
        endpoint, secret = make_endpoint(developer, receiver.url, types="balance.low")
        assert service.admin("webhook", "show", endpoint)["types"] == ["balance.low"]
        page = f"/console/webhooks/{endpoint}"
        developer.get(page)
        assert secret not in developer.body and 'value="balance.low" checked' in developer.body
        assert 'value="all" checked' not in developer.body
        receiver.secrets = [secret]
        developer.send(f"{page}/test")
        assert developer.status == 200 and "acknowledged the test notice" in developer.text()
        assert "HTTP 200" in developer.text()
        receiver.expect(1)
        receiver.check()
        developer.get(page).send(f"{page}/rotate")
        new = re.search(r"whsec_[0-9a-f]{64}", developer.body)[0]
        service.secrets.add(new)
        assert new != secret and "also signed with the previous secret until" in developer.text()
        receiver.answer = lambda delivery: (500, {}, b"<script>alert(1)</script>\xff")
        developer.get(page).send(f"{page}/test")
        assert "did not acknowledge" in developer.text() and "HTTP 500" in developer.text()
        harmless(developer)
    developer.get(page).send(f"{page}/test")
    assert "no complete response" in developer.text() and "Delivery error" in developer.text()


def test_a_former_secret_that_signs_is_ended_by_who_says_so(service, account, developer):
    endpoint = service.admin("webhook", "create", "--account", account, "--url", "https://example.org/rotated")
    service.secrets.add(endpoint["secret"])
    page = f"/console/webhooks/{endpoint['endpoint_id']}"
    assert "end_previous" not in developer.get(page).body
    developer.send(f"{page}/rotate")
    assert kept_secret(developer)
    developer.get(page)
    assert 'name="end_previous"' in developer.body and "some receivers may know only that one" in developer.text()
    developer.send(f"{page}/rotate")
    assert developer.status == 409 and "“End the previous secret immediately”" in developer.text()
    assert service.admin("webhook", "show", endpoint["endpoint_id"])["secret_version"] == 2
    developer.send("/console/language", language="es")
    developer.get(page).send(f"{page}/rotate")
    assert developer.status == 409 and "«Anular el secreto anterior de inmediato»" in developer.text()
    developer.send(f"{page}/rotate", end_previous="true")
    assert developer.status == 200 and kept_secret(developer)
    assert service.admin("webhook", "show", endpoint["endpoint_id"])["secret_version"] == 3


def test_an_endpoint_is_changed_disabled_enabled_and_deleted(service, developer):
    endpoint, _ = make_endpoint(developer, "http://127.0.0.1:9/a")
    page = f"/console/webhooks/{endpoint}"
    assert 'value="all" checked' in developer.get(page).body
    developer.send(f"{page}/change", url="http://127.0.0.1:9/b", types="balance.low,balance.exhausted")
    assert developer.location == f"{page}?done=webhook_update"
    shown = service.admin("webhook", "show", endpoint)
    assert (shown["url"], shown["types"]) == ("http://127.0.0.1:9/b", ["balance.low", "balance.exhausted"])
    developer.follow().send(f"{page}/change", url="http://127.0.0.1:9/b", types="all")
    assert service.admin("webhook", "show", endpoint)["types"] is None
    developer.get(page).send(f"{page}/change", url="javascript:alert(1)\"<b>", types="balance.low")
    assert developer.status == 400 and 'value="javascript:alert(1)&quot;&lt;b&gt;"' in developer.body
    assert 'value="balance.low" checked' in developer.body and 'value="all" checked' not in developer.body
    assert 'href="javascript' not in developer.body
    developer.get(page).send(f"{page}/disable")
    assert developer.location == f"{page}?done=webhook_disable" \
        and "by a user of this account" in developer.follow().text()
    told = service.admin("webhook", "show", endpoint)
    assert not told["enabled"] and told["disabled_by"] == "user"
    developer.send(f"{page}/enable")
    assert developer.location == f"{page}?done=webhook_enable"
    told = service.admin("webhook", "show", endpoint)
    assert told["enabled"] and told["disabled_by"] is None
    service.admin("webhook", "disable", endpoint)
    assert "by the operator of the service" in developer.get(page).text()
    developer.send(f"{page}/delete")
    assert developer.location == "/console/webhooks?done=webhook_delete"
    assert endpoint not in developer.follow().body
    assert developer.get(page).status == 404


def test_deliveries_are_filtered_looked_at_and_replayed(service):
    owner = Owner(service)
    developer = user_of(service, owner.account_id)
    with Receiver() as receiver:
        endpoint = owner.endpoint(receiver.url, "--types", "balance.low")
        identifier = endpoint["endpoint_id"]
        page = f"/console/webhooks/{identifier}"
        owner.cause()
        notice = ended(service, endpoint)[0]["notice_id"]
        delivery = f"{page}/notices/{notice}"
        assert delivery in developer.get(page).links()
        for query, there in (("status=delivered", True), ("status=failed", False), ("status=missed", False),
                             ("type=balance.low", True), ("type=balance.exhausted", False),
                             ("since=2020-01-01T00:00:00Z", True), ("until=2020-01-01T00:00:00Z", False)):
            assert (delivery in developer.get(f"{page}?{query}").links()) is there, query
            assert developer.status == 200
        assert developer.get(f"{page}?since=yesterday").status == 400
        assert developer.get(f"{page}?status=odd").status == 400
        developer.get(delivery)
        body = service.admin("notice", "show", notice)["body"]
        assert json.loads(body)["id"] == notice and body in developer.text()
        assert "X-SVC-Signature" in developer.text() and "Attempt 1" in developer.text()
        assert "HTTP 200" in developer.text()
        developer.send(f"{delivery}/replay")
        assert developer.location == f"{delivery}?done=webhook_replay"
        receiver.expect(2)
        attempts(service, endpoint, notice, 2)
        assert "Attempt 2" in developer.get(delivery).text() and "replayed" in developer.text()
        developer.get(page).send(f"{page}/replay", failed="true")
        assert developer.status == 200 and "No notice to deliver again" in developer.text()
        developer.get(page).send(f"{page}/disable")
        owner.cause()
        missed = next(one for one in service.admin("notice", "list", "--account", owner.account_id,
                                                   "--endpoint", identifier, "--status", "missed")["data"])
        developer.get(f"{page}?status=missed")
        assert f"{page}/notices/{missed['notice_id']}" in developer.links()
        assert "No attempt yet" in developer.get(f"{page}/notices/{missed['notice_id']}").text()
        assert f"{page}/replay" not in developer.get(page).body and "Enable it first" in developer.text()
        developer.send(f"{page}/enable")
        developer.get(page).send(f"{page}/replay", missed="true")
        assert "1 notice is queued for delivery again" in developer.text()
        receiver.expect(3)
        developer.get(page).send(f"{page}/replay")
        assert developer.status == 400 and 'role="alert"' in developer.body


def test_what_failed_is_delivered_again(start):
    service = start(webhook__allow_http="true", webhook__allow_networks="127.0.0.0/8", webhook__schedule="100ms")
    owner = Owner(service)
    developer = user_of(service, owner.account_id)
    with Receiver(answer=500) as receiver:
        endpoint = owner.endpoint(receiver.url, "--types", "balance.low")
        page = f"/console/webhooks/{endpoint['endpoint_id']}"
        owner.cause()
        (failed,) = ended(service, endpoint)
        assert failed["status"] == "failed"
        first, *others = receiver.expect(1)
        tried = 1 + len(others)
        delivery = f"{page}/notices/{failed['notice_id']}"
        assert delivery in developer.get(f"{page}?status=failed").links()
        receiver.answer = 200
        developer.get(page).send(f"{page}/replay", failed="true")
        assert "1 notice is queued for delivery again" in developer.text()
        again = receiver.expect(tried + 1)[-1]
        assert (again.id, again.body, again.status) == (failed["notice_id"], first.body, 200)
        eventually(lambda: delivery in developer.get(f"{page}?status=delivered").links(), "it is reported as delivered")
        assert delivery not in developer.get(f"{page}?status=failed").links()


def test_many_deliveries_are_shown_page_by_page(service):
    owner = Owner(service, 30)
    developer = user_of(service, owner.account_id)
    endpoint = owner.endpoint("http://127.0.0.1:9/many", "--types", "balance.low")["endpoint_id"]
    owner.cause()
    page = f"/console/webhooks/{endpoint}"
    wanted = [one["notice_id"] for one in service.admin("notice", "list", "--account", owner.account_id)["data"]]
    seen = []
    link = page
    while link and len(seen) < len(wanted):
        seen += re.findall(r"/notices/(ntc_[a-z0-9]+)\"", developer.get(link).body)
        link = next((one for one in developer.links() if "before=" in one), None)
    assert seen == wanted and len(seen) == 30


def test_whoever_tests_an_endpoint_keeps_nobody_waiting(start):
    """Its receiver responds slowly, and its owner tests it repeatedly."""
    service = start(webhook__timeout="60s", http__deadline="120s")
    channel, other = service.new_channel(), service.new_channel()
    event = other.live.register({}).expect(201).json["event_id"]
    reader = user_of(service, other.account_id)
    over = threading.Event()
    with BadReceiver(lambda connection: over.wait(60)) as receiver:
        endpoint = service.admin("webhook", "create", "--account", channel.account_id, "--url", receiver.url)
        service.secrets.add(endpoint["secret"])
        page = f"/console/webhooks/{endpoint['endpoint_id']}"
        people = [user_of(service, channel.account_id) for _ in range(3)]
        threads = [threading.Thread(target=one.get(page).send, args=(f"{page}/test",)) for one in people]
        eventually(lambda: service.metric("http_connections") == 1, "only the channel's is left")
        for thread in threads:
            thread.start()
        try:
            eventually(lambda: service.metric("http_connections") == 1 + len(threads) and
                       len(receiver.requests) >= 2, "they wait")
            assert reader.get("/console/").status == 200
            other.live.get(f"/v1/events/{event}").expect(200)
            assert all(thread.is_alive() for thread in threads), "they wait still"
        finally:
            over.set()
            for thread in threads:
                thread.join()
    assert len(receiver.requests) == len(people)
    assert all(one.status in (200, 303) for one in people), [one.text() for one in people]
    channel.close()
    other.close()


@pytest.mark.postgresql
def test_whoever_waits_for_a_commit_keeps_nobody_waiting_who_reads(start):
    """Forms wait for the standby as long as they may; pages that only read do not wait."""
    with Cluster(standbys=1) as cluster:
        service = start(store__url=cluster.url(cluster.create_database()), store__commit_timeout="60s",
                        http__deadline="120s")
        channel = service.new_channel()
        event = channel.test.register({}).expect(201).json["event_id"]
        people = [user_of(service, channel.account_id) for _ in range(2)]
        reader = user_of(service, channel.account_id, "reader")
        threads = [threading.Thread(target=one.get("/console/channels").send, args=("/console/channels/open",), kwargs={
            "name": f"Waits {number}", "declarant": "Anna", "modality": "content"})
            for number, one in enumerate(people)]
        eventually(lambda: service.metric("http_connections") == 1, "only the channel's is left")
        cluster.standby.freeze()
        try:
            for thread in threads:
                thread.start()
            eventually(lambda: service.metric("http_connections") == 1 + len(threads), "they have come")
            eventually(lambda: cluster.primary.number(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'"),
                       "the commit of one waits for the standby")
            assert reader.get("/console/channels").status == 200
            channel.test.get(f"/v1/events/{event}").expect(200)
            assert all(thread.is_alive() for thread in threads), "they wait still"
        finally:
            cluster.standby.thaw()
            for thread in threads:
                thread.join()
        assert [one.status for one in people] == [303, 303], [one.text() for one in people]
        channel.close()


# ---- roles ----

def everything(service, account):
    """Makes an object of each kind; returns the page or form of each operation."""
    channel = service.admin("channel", "create", "--account", account, "--name", "Ours", "--declarant", "Anna",
                            "--modality", "content")["channel_id"]
    key = service.new_key(channel, "live")["key_id"]
    limit = service.admin("limit", "create", "--channel", channel, "--period", "day", "--max", 5,
                          "--action", "warn")["limit_id"]
    endpoint = service.admin("webhook", "create", "--account", account, "--url", "http://127.0.0.1:9/x")
    service.secrets.add(endpoint["secret"])
    hook = f"/console/webhooks/{endpoint['endpoint_id']}"
    pages = [f"/console/channels/{channel}", f"/console/keys?channel={channel}", f"/console/limits?channel={channel}",
             hook, f"{hook}/notices/ntc_none"]
    forms = [(f"/console/channels/{channel}/seal", {"name": "Theirs"}), (f"/console/channels/{channel}/suspend", {}),
             (f"/console/channels/{channel}/resume", {}),
             ("/console/keys/make", {"channel": channel, "mode": "live"}),
             ("/console/keys/expire", {"key": key, "at": "1h"}), ("/console/keys/revoke", {"key": key}),
             ("/console/limits/set", {"channel": channel, "period": "day", "max": "1", "action": "block"}),
             ("/console/limits/set", {"key": key, "period": "day", "max": "1", "action": "block"}),
             ("/console/limits/delete", {"limit": limit})]
    forms += [(f"{hook}/{act}", fields) for act, fields in (
        ("change", {"url": "http://127.0.0.1:9/y"}), ("rotate", {}), ("test", {}), ("disable", {}), ("enable", {}),
        ("replay", {"missed": "true"}), ("delete", {}), ("notices/ntc_none/replay", {}))]

    def state():
        return [service.admin("channel", "show", channel), service.admin("key", "list", "--channel", channel),
                service.admin("limit", "list", "--account", account),
                service.admin("webhook", "list", "--account", account)]
    return pages, forms, state


def test_things_of_another_account_are_not_there(service, developer):
    pages, forms, state = everything(service, service.new_account(credits=5))
    before = state()
    for page in pages:
        assert developer.get(page).status == 404, page
        assert "Ours" not in developer.body
    for action, fields in forms:
        own = developer.get("/console/").own_fields()
        developer.post(action, {**own, **fields}, **{"Sec-Fetch-Site": "same-origin"})
        assert developer.status == 404 and "Ours" not in developer.body, action
    assert state() == before


@pytest.mark.parametrize("role", ["reader", "accountant"])
def test_who_may_not_change_things_does_not(service, account, role):
    pages, forms, state = everything(service, account)
    visitor = user_of(service, account, role)
    before = state()
    allowed = {"/console/limits/set", "/console/limits/delete"} if role == "accountant" else set()
    for page in pages[:4]:
        visitor.get(page)
        shown = {action for method, action, _ in visitor.forms() if method == "post"}
        assert visitor.status == (200 if role == "reader" or "limits" in page else 403), page
        assert shown & {action for action, _ in forms} <= allowed, page
    for action, fields in forms:
        if action in allowed:
            continue
        own = visitor.get("/console/").own_fields()
        visitor.post(action, {**own, **fields}, **{"Sec-Fetch-Site": "same-origin"})
        assert visitor.status == 403, action
    assert state() == before
