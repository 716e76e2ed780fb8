"""API keys: their format, how they are sent, and when they stop working."""

import base64
import re
import string
import zlib

import pytest

from client import Client, basic, eventually

pytestmark = pytest.mark.both_stores

DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
LOOK = "/v1/account/balance"


def checksum(text):
    value, digits = zlib.crc32(text.encode()), ""
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits = DIGITS[digit] + digits
    return digits


def test_a_key_has_a_prefix_30_random_characters_and_a_checksum(service, shared):
    for key in (shared.live_key, shared.test_key):
        text, mode = key["key"], key["mode"]
        assert re.fullmatch(rf"svc_{mode}_[0-9A-Za-z]{{36}}", text)
        assert checksum(text[:-6]) == text[-6:]
        assert key["key_id"].startswith("key_")
        assert key["last_four"] == text[-4:]
    listed = service.admin("key", "list", "--channel", shared.id)
    assert shared.live_key["key"] not in str(listed) and shared.test_key["key"] not in str(listed)


def test_a_key_is_accepted_as_bearer_basic_user_and_in_its_own_header(shared, anyone):
    key = shared.live.key
    for headers in ({"Authorization": f"Bearer {key}"}, {"Authorization": f"bearer {key}"},
                    {"Authorization": basic(key)}, {"Authorization": basic(key).rstrip("=")},
                    {"Authorization":
                     "Basic " + base64.b64encode(f"{key}:ignored".encode()).decode()},
                    {"X-SVC-Api-Key": key}, {"x-svc-api-key": key}):
        anyone.get(LOOK, headers=headers).expect(200)


@pytest.mark.parametrize("headers", [
    {}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": "Bearer "},
    {"Authorization": "Basic"}, {"Authorization": "Basic !!!"}, {"Authorization": "Basic Og=="},
    {"Authorization": "Digest username=x"}, {"X-SVC-Api-Key": ""}, {"X-SVC-Api-Key": "x" * 4000},
    {"Authorization": "Bearer " + "x" * 4000}, {"Authorization": "Bearer svc_live_"},
    {"Authorization": "Bearer svc_live_a"}, {"Authorization": basic("svc_live_a")},
    {"Authorization": "Basic ="}, {"Authorization": "Basic " + "QUFB" * 24},
])
def test_no_key_or_nothing_like_one_is_an_invalid_key(anyone, headers):
    answer = anyone.get(LOOK, headers=headers).expect(401, "invalid_key")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_key_is_never_taken_from_the_query(shared, anyone):
    for name in ("key", "api_key", "access_token"):
        anyone.get(LOOK, query={name: shared.live.key}).expect(401, "invalid_key")


def test_a_typo_anywhere_in_a_key_is_found(shared, anyone):
    key = shared.live.key
    for place in (0, 4, 9, 20, 38, 39, 44):
        other = "x" if key[place] != "x" else "y"
        typo = key[:place] + other + key[place + 1:]
        anyone.get(LOOK, headers={"Authorization": f"Bearer {typo}"}).expect(401, "invalid_key")
    swapped = key.replace("svc_live_", "svc_test_")
    anyone.get(LOOK, headers={"Authorization": f"Bearer {swapped}"}).expect(401, "invalid_key")


@pytest.mark.parametrize("change", [str.upper, str.swapcase, lambda key: key + "x",
                                    lambda key: key[:-1], lambda key: key + " x"])
def test_a_key_is_compared_exactly(shared, anyone, change):
    headers = {"Authorization": f"Bearer {change(shared.live.key)}"}
    anyone.get(LOOK, headers=headers).expect(401, "invalid_key")


def test_a_well_formed_key_that_was_never_made_is_invalid(anyone):
    text = "svc_live_" + "0" * 30
    for key in (text + checksum(text), "abc_live_" + "0" * 30 + checksum("abc_live_" + "0" * 30)):
        answer = anyone.get(LOOK, headers={"Authorization": f"Bearer {key}"})
        answer.expect(401, "invalid_key")


def test_a_revoked_key_stops_within_2_seconds_and_its_sisters_do_not(service, shared):
    key = service.new_key(shared.id, "live")
    client = Client(service, key["key"])
    client.get(LOOK).expect(200)
    revoked = service.admin("key", "revoke", key["key_id"])
    assert revoked["revoked_at"]
    answer = eventually(lambda: after(client, 401), "the revocation is known", patience=2.5)
    assert answer.code == "revoked_key"
    client.register().expect(401, "revoked_key")
    assert client.get(LOOK).headers["WWW-Authenticate"] == "Bearer"
    shared.live.get(LOOK).expect(200)
    again = service.admin("key", "revoke", key["key_id"])
    assert again["revoked_at"] == revoked["revoked_at"], "for good, and from the first time on"


def after(client, status, target=LOOK):
    """The answer once its status is the one waited for."""
    answer = client.get(target)
    return answer if answer.status == status else None


@pytest.mark.parametrize("what", ["channel", "account"])
def test_while_suspended_reading_goes_on_and_nothing_else(service, what):
    channel = service.new_channel()
    event = channel.live.register({"a": 1}, "a").expect(201).json
    test_event = channel.test.register({"a": 1}, "a").expect(201).json
    issued = channel.test.certified(seq_from=1, seq_to=1)
    identifier = channel.id if what == "channel" else channel.account_id
    service.admin(what, "suspend", identifier)
    eventually(lambda: channel.live.register({"a": 1}, "a").status == 403, "it is suspended",
               patience=2.5)
    for client in (channel.live, channel.test):
        client.register().expect(403, "suspended")
        client.register({"a": 1}, "a").expect(403, "suspended")
        client.certify(seq_from=1, seq_to=1).expect(403, "suspended")
        client.post("/v1/events", b"{", headers={"Content-Type": "x"}).expect(403, "suspended")
        for target in ("/v1/events", "/v1/channel", LOOK, "/v1/certifications"):
            client.get(target).expect(200)
    channel.live.get(f"/v1/events/{event['event_id']}").expect(200)
    channel.live.content(event["event_id"]).expect(200)
    channel.test.get(f"/v1/events/{test_event['event_id']}").expect(200)
    channel.test.certification(issued["certification_id"])
    channel.live.download(issued["evidence_url"]).expect(200)
    service.admin(what, "resume", identifier)
    eventually(lambda: channel.live.register({"a": 1}, "a").status == 200, "it is resumed",
               patience=2.5)
    assert channel.live.register().expect(201).json["sequence"] == 2


def test_a_suspended_channel_leaves_the_accounts_others_alone(service):
    first = service.new_channel()
    second = service.new_channel(account_id=first.account_id)
    service.admin("channel", "suspend", first.id)
    eventually(lambda: first.live.register().status == 403, "it is suspended", patience=2.5)
    second.live.register().expect(201)


def test_a_disabled_account_is_refused_every_call_and_comes_back_whole(service):
    channel = service.new_channel()
    event = channel.live.register({"a": 1}, "a").expect(201).json
    service.admin("account", "disable", channel.account_id)
    eventually(lambda: after(channel.live, 403), "it is disabled", patience=2.5)
    for client in (channel.live, channel.test):
        client.register({"a": 1}, "a").expect(403, "account_disabled")
        client.certify(seq_from=1, seq_to=1).expect(403, "account_disabled")
        for target in ("/v1/events", f"/v1/events/{event['event_id']}",
                       f"/v1/events/{event['event_id']}/content", "/v1/channel", LOOK,
                       "/v1/certifications", "/v1/certifications/CERT-2026-0000001"):
            client.get(target).expect(403, "account_disabled")
    service.admin("account", "enable", channel.account_id)
    eventually(lambda: after(channel.live, 200), "it is enabled", patience=2.5)
    read = channel.live.event(event["event_id"])
    assert read["chain_hash"] == event["chain_hash"]
    channel.live.register({"a": 1}, "a").expect(200)


def test_a_revoked_key_of_a_disabled_account_is_revoked_first(service):
    channel = service.new_channel()
    service.admin("key", "revoke", channel.live_key["key_id"])
    service.admin("account", "disable", channel.account_id)
    answer = eventually(lambda: after(channel.live, 401), "the revocation is known", patience=2.5)
    assert answer.code == "revoked_key"


def test_live_and_test_keys_see_their_own_chain_alone(channel):
    live = channel.live.register({"a": 1}, "a").expect(201).json
    test = channel.test.register({"b": 1}, "b").expect(201).json
    channel.live.get(f"/v1/events/{test['event_id']}").expect(404, "not_found")
    channel.test.get(f"/v1/events/{live['event_id']}").expect(404, "not_found")
    for client, event in ((channel.live, live), (channel.test, test)):
        listed = client.get("/v1/events").json["data"]
        assert [each["event_id"] for each in listed] == [event["event_id"]]
    issued = channel.test.certified(seq_from=1, seq_to=1)
    target = f"/v1/certifications/{issued['certification_id']}"
    channel.live.get(target).expect(404, "not_found")
    assert channel.live.get("/v1/certifications").json["data"] == []


def test_the_prefix_of_keys_and_headers_is_the_services_own(start):
    service = start(service__prefix="acme")
    channel = service.ready["channels"]["content"]
    live, test = channel["live_key"], channel["test_key"]
    assert re.fullmatch(r"acme_live_[0-9A-Za-z]{36}", live)
    assert checksum(live[:-6]) == live[-6:]
    client = Client(service)
    client.get(LOOK, headers={"X-ACME-Api-Key": test}).expect(200)
    client.get(LOOK, headers={"X-SVC-Api-Key": test}).expect(401)
    headers = {"Authorization": f"Bearer {test}", "X-ACME-Test-Scenario": "rate_limited"}
    client.get(LOOK, headers=headers).expect(429, "rate_limited")
    headers = {"Authorization": f"Bearer {test}", "X-SVC-Test-Scenario": "rate_limited"}
    client.get(LOOK, headers=headers).expect(200)
    client.key = test
    client.register().expect(201)
    issued = client.certified(seq_from=1, seq_to=1)
    assert re.fullmatch(r"ACME-TEST-\d{4}-[0-9A-Z]{4}-[0-9A-Z]{4}", issued["verification_code"])


# ---- until when ----

def expired(client):
    answer = client.get(LOOK)
    return answer.status == 401 and answer


def test_a_key_ends_at_its_time_and_says_so(service, shared, anyone):
    made = service.admin("key", "create", "--channel", shared.id, "--mode", "live", "--expires", "1h")
    with Client(service, made["key"]) as client:
        client.get(LOOK).expect(200)  # and is cached
        made |= service.admin("key", "expire", made["key_id"], "--at", "2s")
        answer = eventually(lambda: expired(client), "the key has ended")
        assert answer.expect(401, "invalid_key").message.startswith("This API key expired")
        assert made["expires_at"] in answer.message
        spanish = client.get(LOOK, language="es").expect(401, "invalid_key").message
        assert "caducó el" in spanish and made["expires_at"] in spanish
        service.admin("key", "expire", made["key_id"], "--at", "90d")
        client.get(LOOK).expect(200)
        service.admin("key", "expire", made["key_id"], "--at", "2020-01-01T00:00:00Z")
        client.get(LOOK).expect(401, "invalid_key")
        service.admin("key", "expire", made["key_id"], "--at", "never", "--reason", "asked for")
        client.get(LOOK).expect(200)
    act = service.admin("audit", "list", "--operation", "key expire")["data"][0]
    assert act["before"] == {"key": {"expires_at": "2020-01-01T00:00:00.000000Z"}}
    assert act["after"] == {"key": {"expires_at": None}} and act["reason"] == "asked for"


def test_a_time_that_is_past_or_none_is_refused(service, shared):
    for when in ("2020-01-01T00:00:00Z", "tomorrow", "-1d", "1e99d", "0s", "0"):
        done = service.run("key", "create", "--channel", shared.id, "--mode", "test", f"--expires={when}")
        assert done.returncode == 2, when
    assert service.run("key", "expire", shared.test_key["key_id"], "--at", "soon").returncode == 2


def test_why_a_key_was_revoked_is_kept(service, shared):
    made = service.admin("key", "create", "--channel", shared.id, "--mode", "live")
    service.admin("key", "revoke", made["key_id"], "--reason", "a laptop was stolen")
    service.admin("key", "revoke", made["key_id"], "--reason", "again")
    (listed,) = [key for key in service.admin("key", "list", "--channel", shared.id)["data"]
                 if key["key_id"] == made["key_id"]]
    assert listed["reason"] == "a laptop was stolen" and listed["revoked_at"]
    assert service.run("key", "expire", made["key_id"], "--at", "90d").returncode == 1, "for good"
    with Client(service, made["key"]) as client:
        client.get(LOOK).expect(401, "revoked_key")
