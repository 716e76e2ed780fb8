"""Notices: every type end to end, endpoints, retries, isolation, and persistence."""

import datetime
import json
import threading
import time

import jsonschema
import pytest

import stores
from client import Client, Description, Refused, eventually, free_port
from hooks import (Owner, Receiver, add_thresholds, attempts, deliveries, ended, new_endpoint)
from webhook_receiver import DATA, signature

pytestmark = pytest.mark.both_stores

TODAY = "%Y-%m-%d"


@pytest.fixture(scope="module")
def hooked(start):
    """A service that retries soon, and gives up no attempt because this machine is slow."""
    return start(webhook__schedule="300ms,600ms", webhook__timeout="60s", seal__interval="1s")


@pytest.fixture
def receiver(hooked):
    with Receiver() as running:
        yield running
        running.check()
        description = described(hooked)
        for delivery in running.deliveries:
            judge(description, delivery)


def described(service):
    return Description(Client(service).get("/v1/webhooks.yaml").expect(200).body)


def judge(description, delivery):
    """What comes is as /v1/webhooks.yaml describes it, and as no other type is described."""
    for name, item in description.document["webhooks"].items():
        media = item["post"]["requestBody"]["content"]["application/json"]
        good = description.validator(media["schema"]).is_valid(json.loads(delivery.body))
        assert good == (name == delivery.type), (name, delivery.body)
    headers = {header["name"]: header["schema"] for header in map(
        description.resolve, description.document["webhooks"][delivery.type]["post"]["parameters"])}
    assert len(headers) == 3
    for name, schema in headers.items():
        jsonschema.validate(delivery.headers[name], schema)


def utc_key(pattern):
    return datetime.datetime.now(datetime.timezone.utc).strftime(pattern)


def subscribe(service, receiver, account_id, *flags):
    endpoint = new_endpoint(service, account_id, receiver.url, *flags)
    receiver.secrets = [endpoint["secret"]]
    return endpoint


def check(delivery, notice_type, data, mode="live"):
    assert (delivery.type, delivery.record["mode"]) == (notice_type, mode)
    assert delivery.data == data


# ---- a test for every row of the interface's tables ----


def test_balance_low_comes_once_for_each_crossing_of_each_threshold(hooked, receiver):
    channel = hooked.new_channel(credits=4)
    subscribe(hooked, receiver, channel.account_id)
    high, low = add_thresholds(hooked, channel.account_id, 3, 1)
    for _ in range(4):
        channel.live.register().expect(201)
    first, second = sorted(receiver.expect(2), key=lambda one: -one.data["threshold"])
    check(first, "balance.low", {"threshold_id": high["threshold_id"], "threshold": 3,
                                 "balance": 3})
    check(second, "balance.low", {"threshold_id": low["threshold_id"], "threshold": 1,
                                  "balance": 1})
    # Credits that lift the balance above one threshold arm that one again.
    hooked.admin("credits", "add", channel.account_id, 3)
    for _ in range(2):
        channel.live.register().expect(201)
    third = receiver.expect(3)[2]
    check(third, "balance.low", {"threshold_id": low["threshold_id"], "threshold": 1,
                                 "balance": 1})


def test_balance_exhausted_comes_once_for_each_exhaustion(hooked, receiver):
    channel = hooked.new_channel(credits=0)
    other = hooked.new_channel(account_id=channel.account_id)
    subscribe(hooked, receiver, channel.account_id)
    for one in (channel, other, channel):
        assert one.live.register().expect(201).json["status"] == "unpaid"
    check(receiver.next(), "balance.exhausted", {"channel_id": channel.id})
    hooked.admin("credits", "add", channel.account_id, 3)
    other.live.register().expect(201)
    check(receiver.next(), "balance.exhausted", {"channel_id": other.id})
    assert len(receiver.deliveries) == 2


def test_unpaid_limit_reached_comes_with_the_event_that_reaches_it(hooked, receiver):
    channel = hooked.new_channel(credits=0, unpaid_limit=2)
    subscribe(hooked, receiver, channel.account_id, "--types", "events.unpaid_limit_reached")
    channel.live.register().expect(201)
    channel.live.register().expect(201)
    check(receiver.next(), "events.unpaid_limit_reached",
          {"unpaid_limit": 2, "unpaid_events": 2, "unpaid_credits": 2})
    channel.live.register().expect(402, "unpaid_limit_exceeded")
    hooked.admin("credits", "add", channel.account_id, 1)
    channel.live.register().expect(201)
    receiver.expect(2)
    channel.live.register().expect(402, "unpaid_limit_exceeded")
    assert len(receiver.deliveries) == 2


@pytest.mark.usefixtures("one_day")
@pytest.mark.parametrize("scope, period, action", [
    ("channel", "day", "warn"), ("channel", "month", "block"), ("key", "day", "block"),
    ("key", "month", "warn")])
def test_consumption_limit_reached(hooked, receiver, scope, period, action):
    channel = hooked.new_channel()
    subscribe(hooked, receiver, channel.account_id)
    key_id = channel.live_key["key_id"]
    of = ("--channel", channel.id) if scope == "channel" else ("--key", key_id)
    limit = hooked.admin("limit", "create", *of, "--period", period, "--max", 2, "--action", action)
    channel.test.register().expect(201)  # test events do not count
    for _ in range(2):
        channel.live.register().expect(201)
    delivery = receiver.next()
    assert delivery.data.pop("period_key") == utc_key(TODAY if period == "day" else "%Y-%m")
    check(delivery, "consumption.limit_reached",
          {"limit_id": limit["limit_id"], "scope": scope, "channel_id": channel.id,
           "key_id": key_id if scope == "key" else None, "period": period, "max_events": 2,
           "action": action})
    channel.live.register().expect(422 if action == "block" else 201)
    assert len(receiver.deliveries) == 1


@pytest.mark.parametrize("mode", ["live", "test"])
def test_certification_completed(hooked, receiver, mode):
    channel = hooked.new_channel()
    subscribe(hooked, receiver, channel.account_id)
    for _ in range(3):
        channel.client(mode).register().expect(201)
    record = channel.client(mode).certified(seq_from=2, seq_to=3)
    delivery = receiver.next()
    assert delivery.record["created_at"] > record["completed_at"]  # the date of the reports is earlier
    check(delivery, "certification.completed",
          {"certification_id": record["certification_id"], "channel_id": channel.id,
           "status": "completed", "event_count": 2,
           "verification_code": record["verification_code"]}, mode)


@pytest.mark.parametrize("mode", ["live", "test"])
def test_certification_failed(hooked, receiver, mode):
    channel = hooked.new_channel(credits=20)
    subscribe(hooked, receiver, channel.account_id)
    content = f"declared {channel.id}".encode() * 1000
    channel.client(mode).register_file(content).expect(201)
    stored = [path for path in (hooked.data / "content").rglob("*")
              if path.is_file() and path.read_bytes() == content]
    stored[0].chmod(0o600)
    stored[0].write_bytes(content.upper())
    record = channel.client(mode).certified(seq_from=1, seq_to=1)
    assert record["status"] == "failed"
    shown = hooked.admin("certification", "show", record["certification_id"])
    check(receiver.next(), "certification.failed",
          {"certification_id": record["certification_id"], "channel_id": channel.id,
           "status": "failed", "event_count": 1, "incident_id": shown["incident_id"]}, mode)
    stored[0].write_bytes(content)


def test_webhook_test_makes_one_attempt_that_never_counts(hooked, receiver):
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    receiver.secrets = [endpoint["secret"]]
    shown = hooked.admin("webhook", "test", endpoint["endpoint_id"])
    delivery = receiver.next()
    message = delivery.data.pop("message")
    check(delivery, "webhook.test", {"endpoint_id": endpoint["endpoint_id"]})
    assert message and delivery.id == shown["notice_id"] and delivery.id.startswith("tst_")
    assert (shown["delivered"], shown["http_status"], shown["error"]) == (True, 200, None)
    receiver.answer = (503, {}, "no \x1b[31m room".encode())
    for _ in range(6):  # more than what disables an endpoint
        shown = hooked.admin("webhook", "test", endpoint["endpoint_id"])
        assert (shown["delivered"], shown["http_status"]) == (False, 503)
        assert shown["answer"] == "no ?[31m room"
    shown = hooked.admin("webhook", "show", endpoint["endpoint_id"])
    assert shown["enabled"] and shown["failures"] == 0
    assert deliveries(hooked, endpoint) == []
    assert len(receiver.deliveries) == 7, "a test delivery is not retried"


def test_a_test_delivery_speaks_the_language_of_the_account(hooked, receiver):
    messages = set()
    for language in ("en", "es"):
        account_id = hooked.new_account(language=language)
        endpoint = new_endpoint(hooked, account_id, receiver.url)
        hooked.admin("webhook", "test", endpoint["endpoint_id"])
        messages.add(receiver.next().data["message"])
    assert len(messages) == 2


def test_a_test_delivery_to_nobody_was_made_all_the_same(hooked):
    endpoint = Owner(hooked).endpoint("http://127.0.0.1:1/")
    shown = hooked.admin("webhook", "test", endpoint["endpoint_id"])
    assert shown["delivered"] is False and shown["http_status"] is None and shown["error"]


# ---- endpoints ----


def test_endpoints_are_listed_shown_changed_and_deleted(hooked, receiver):
    owner = Owner(hooked)
    made = owner.endpoint("http://127.0.0.1:9/a", "--types", "balance.low, certification.failed")
    assert made["types"] == ["balance.low", "certification.failed"] and made["enabled"]
    assert made["secret"].startswith("whsec_") and len(made["secret"]) == 70
    endpoint_id = made["endpoint_id"]
    shown = hooked.admin("webhook", "show", endpoint_id)
    assert shown == {name: value for name, value in made.items() if name != "secret"}
    assert hooked.admin("webhook", "list", "--account", owner.account_id)["data"] == [shown]
    changed = hooked.admin("webhook", "update", endpoint_id, "--url", receiver.url)
    assert changed == {**shown, "url": receiver.url}
    changed = hooked.admin("webhook", "update", endpoint_id, "--types", "all")
    assert changed["types"] is None and changed["url"] == receiver.url
    owner.cause()
    receiver.next()
    assert hooked.admin("webhook", "delete", endpoint_id)["deleted"]
    owner.cause()
    for verb in ("show", "delete", "test", "rotate", "enable", "disable", "deliveries"):
        with pytest.raises(Refused) as refused:
            hooked.admin("webhook", verb, endpoint_id)
        assert refused.value.exit == 1 and endpoint_id in refused.value.done.stderr
    assert hooked.admin("webhook", "list", "--account", owner.account_id)["data"] == []
    assert len(receiver.deliveries) == 1


@pytest.mark.parametrize("url", [
    "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1/", "example.com",
    "http://user:password@127.0.0.1/", "http://user@127.0.0.1/", "http:///", "javascript:alert(1)",
    "http://127.0.0.1/#part", "http://exa mple.com/", "http://127.0.0.1:99999/",
    "http://" + "a" * 3000])
def test_addresses_that_cannot_be_receivers(hooked, url):
    with pytest.raises(Refused):
        Owner(hooked, 0).endpoint(url)


def test_only_types_that_exist_and_at_most_twenty_endpoints(hooked):
    owner = Owner(hooked, 0)
    for types in ("balance.lowest", "", "balance.low,", "webhook.test"):
        with pytest.raises(Refused) as refused:
            owner.endpoint("http://127.0.0.1:9/", "--types", types)
        assert refused.value.exit == 2
    for _ in range(20):
        last = owner.endpoint("http://127.0.0.1:9/")
    with pytest.raises(Refused) as refused:
        owner.endpoint("http://127.0.0.1:9/")
    assert refused.value.exit == 1
    hooked.admin("webhook", "delete", last["endpoint_id"])
    owner.endpoint("http://127.0.0.1:9/")


def test_plain_http_is_refused_unless_the_operator_allows_it(start):
    strict = start(webhook__allow_http="false", webhook__allow_networks="")
    with pytest.raises(Refused):
        Owner(strict, 0).endpoint("http://127.0.0.1/")
    Owner(strict, 0).endpoint("https://example.org/hook")


def test_an_endpoint_gets_the_types_it_chose_and_nothing_from_before_it(hooked):
    channel = hooked.new_channel(credits=1)
    add_thresholds(hooked, channel.account_id, 0)
    channel.live.register().expect(201)  # balance.low, before there was any endpoint
    with Receiver() as everything, Receiver() as chosen, Receiver() as late:
        subscribe(hooked, everything, channel.account_id)
        subscribe(hooked, chosen, channel.account_id, "--types", "events.unpaid_limit_reached,"
                                                                 "balance.low")
        channel.live.register().expect(201)
        assert everything.next().type == "balance.exhausted"
        subscribe(hooked, late, channel.account_id)
        hooked.admin("credits", "add", channel.account_id, 2)
        channel.live.register().expect(201)
        for one in (everything, chosen, late):
            assert one.next().type == "balance.low"
            one.check()
        assert [len(one.deliveries) for one in (everything, chosen, late)] == [2, 1, 1]
        ids = {one.deliveries[-1].id for one in (everything, chosen, late)}
        assert len(ids) == 1, "one notice, three endpoints"


def test_after_a_rotation_both_secrets_sign(hooked, receiver):
    owner = Owner(hooked)
    first = owner.endpoint(receiver.url)
    receiver.secrets = [first["secret"]]
    owner.cause()
    receiver.next()
    second = hooked.admin("webhook", "rotate", first["endpoint_id"])
    hooked.secrets.add(second["secret"])
    assert second["secret"] != first["secret"] and second["previous_secret_until"]
    receiver.secrets = [second["secret"], first["secret"]]
    owner.cause()
    receiver.next()
    hooked.admin("webhook", "test", first["endpoint_id"])
    receiver.next()
    # A third one would silence the first, which may be all that the receiver has.
    with pytest.raises(Refused) as refused:
        hooked.admin("webhook", "rotate", first["endpoint_id"])
    assert refused.value.exit == 1 and "--end-previous" in refused.value.done.stderr
    assert hooked.admin("webhook", "show", first["endpoint_id"])["secret_version"] == 2
    third = hooked.admin("webhook", "rotate", first["endpoint_id"], "--end-previous")
    receiver.secrets = [third["secret"], second["secret"]]
    owner.cause()
    delivery = receiver.next()
    assert signature(first["secret"], delivery.headers["X-SVC-Timestamp"], delivery.body) not in \
        delivery.headers["X-SVC-Signature"]


# ---- retries ----


def test_retries_follow_the_schedule_with_the_same_id_and_body(hooked, receiver):
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    receiver.secrets = [endpoint["secret"]]
    receiver.answer = lambda delivery: 500 if len(receiver.deliveries) < 2 else 204
    owner.cause()
    first, second, third = receiver.expect(3)
    assert first.id == second.id == third.id and first.body == second.body == third.body
    assert second.arrived - first.arrived >= 0.3 and third.arrived - second.arrived >= 0.6
    done = ended(hooked, endpoint)[0]
    assert (done["status"], done["attempts"]) == ("delivered", 3)
    log = attempts(hooked, endpoint, first.id, 3)
    assert [one["http_status"] for one in log] == [500, 500, 204]
    assert [one["attempt"] for one in log] == [1, 2, 3]
    assert done["last_attempt"] == {name: value for name, value in log[2].items()
                                    if name != "attempt"}


@pytest.mark.parametrize("status", [200, 201, 202, 204, 226, 299])
def test_any_2xx_acknowledges(hooked, receiver, status):
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    receiver.answer = (status, {}, b"")
    owner.cause()
    assert ended(hooked, endpoint)[0]["status"] == "delivered"
    assert len(receiver.deliveries) == 1


@pytest.mark.parametrize("status", [300, 301, 302, 304, 307, 400, 401, 404, 429, 500, 503])
def test_nothing_else_does(hooked, receiver, status):
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    receiver.answer = (status, {"Location": receiver.url}, b"")
    owner.cause()
    done = ended(hooked, endpoint)[0]
    assert (done["status"], done["attempts"]) == ("failed", 3)
    assert done["last_attempt"]["http_status"] == status
    assert len(receiver.deliveries) == 3


def mails(service, account_id):
    return service.store.rows(
        "SELECT m.template, m.details FROM mails m JOIN accounts a ON a.account = m.account "
        f"WHERE a.account_id = '{account_id}'")


def moment():
    """Now, as answers tell times."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def another_is_told(service):
    """By then the deliverer has sent all that it had taken up before."""
    with Receiver() as later:
        another = Owner(service)
        another.endpoint(later.url)
        another.cause()
        later.expect(1)


def test_five_notices_in_a_row_that_used_up_their_schedule_disable_an_endpoint(hooked, receiver):
    owner = Owner(hooked, 4)
    hooked.admin("account", "set", owner.account_id, "--email", "owner@example.org")
    endpoint = owner.endpoint(receiver.url)
    endpoint_id = endpoint["endpoint_id"]
    receiver.answer = 500
    owner.cause()
    ended(hooked, endpoint, 4)
    assert hooked.admin("webhook", "show", endpoint_id)["failures"] == 4
    receiver.answer = 200
    owner.cause()  # any 2xx between them, and the count starts again
    ended(hooked, endpoint, 8)
    assert hooked.admin("webhook", "show", endpoint_id)["failures"] == 0
    receiver.answer = 500
    owner.cause()
    ended(hooked, endpoint, 12)
    assert hooked.admin("webhook", "show", endpoint_id)["enabled"]
    owner.cause()
    shown = eventually(lambda: [one for one in [hooked.admin("webhook", "show", endpoint_id)]
                                if not one["enabled"]], "the endpoint is disabled")[0]
    assert shown["disabled_by"] == "failures" and shown["disabled_at"]
    written = mails(hooked, owner.account_id)
    assert len(written) == 1 and written[0][0] == "endpoint_disabled"
    assert endpoint_id in written[0][1] and receiver.url in written[0][1]
    assert len(hooked.logged(lambda line: line["event"] == "webhook_disabled"
                             and line["endpoint_id"] == endpoint_id)) == 1
    # While it is disabled nothing is sent or queued; what waited is taken up afterwards. One request
    # may have been under way when it was disabled.
    another_is_told(hooked)
    receiver.wait(lambda: receiver.under_way == 0, "what was under way has ended")
    eventually(lambda: sum(one["attempts"] for one in deliveries(hooked, endpoint))
               == len(receiver.deliveries), "its end is recorded")
    count = len(receiver.deliveries)
    eventually(lambda: all(one["next_attempt_at"] < moment()
                           for one in deliveries(hooked, endpoint, "--status", "waiting")),
               "what waits is due")
    another_is_told(hooked)
    assert len(receiver.deliveries) == count
    waiting = hooked.admin("webhook", "show", endpoint_id)["waiting"]
    owner.cause()
    assert hooked.admin("webhook", "show", endpoint_id)["waiting"] == waiting
    failed = deliveries(hooked, endpoint, "--status", "failed")
    with pytest.raises(Refused) as refused:
        hooked.admin("webhook", "replay", failed[0]["notice_id"], "--endpoint", endpoint_id)
    assert refused.value.exit == 1
    receiver.answer = 200
    assert hooked.admin("webhook", "enable", endpoint_id)["failures"] == 0
    eventually(lambda: hooked.admin("webhook", "show", endpoint_id)["waiting"] == 0,
               "what waited is delivered")
    assert len(receiver.deliveries) == count + waiting


def disable_with_one_under_way(service):
    """Nothing else is sent. False when none was under way, which a busy machine can bring about."""
    owner = Owner(service, 4)
    gate = threading.Event()

    def refuse(_):
        if len(receiver.deliveries) == 8 + 5 + 2:
            gate.wait()
        return 500

    with Receiver(answer=refuse) as receiver:
        endpoint = owner.endpoint(receiver.url)
        endpoint_id = endpoint["endpoint_id"]
        owner.cause()
        ended(service, endpoint, 4)
        eventually(lambda: service.store.rows("SELECT 1 FROM leases WHERE name = 'deliverer'") == [],
                   "the deliverer rests, and forgets that the endpoint is in doubt")
        add_thresholds(service, owner.account_id, 20)
        owner.cause()  # five at once, two again, then one that is under way when it is disabled
        eventually(lambda: not service.admin("webhook", "show", endpoint_id)["enabled"],
                   "the endpoint is disabled")
        with receiver.changed:
            held = receiver.under_way == 1
        gate.set()
        if not held:
            return False
        eventually(lambda: service.admin("webhook", "show", endpoint_id)["waiting"] == 2,
                   "its end is recorded")
        another_is_told(service)
        assert len(receiver.deliveries) == 8 + 5 + 3
        return True


def test_nothing_held_ready_goes_to_an_endpoint_that_was_disabled(start):
    service = start(webhook__schedule="1ms")
    if not any(disable_with_one_under_way(service) for _ in range(5)):
        pytest.skip("the machine is too busy to have one under way at the moment")


def refuse_attempts(service, endpoint):
    """Rows of an endpoint that cannot be written."""
    number, = service.store.rows("SELECT endpoint FROM webhook_endpoints WHERE endpoint_id = "
                                 + stores.text(endpoint["endpoint_id"]))[0]
    if stores.KIND == "sqlite":
        service.store.change(
            "CREATE TRIGGER broken BEFORE INSERT ON webhook_attempts "
            f"WHEN new.endpoint = {number} BEGIN SELECT RAISE(ABORT, 'broken'); END")
    else:
        service.store.change(
            f"ALTER TABLE webhook_attempts ADD CONSTRAINT broken CHECK (endpoint <> {number})")


def test_an_endpoint_that_cannot_be_recorded_holds_up_no_other(start):
    service = start()
    owner = Owner(service, 3)
    with Receiver() as receiver:
        before, broken, after = [owner.endpoint(receiver.url) for _ in range(3)]
        assert service.stop() == 0
        refuse_attempts(service, broken)
        service.start()
        for round in (3, 6):
            owner.cause()
            for endpoint in (before, after):
                assert {one["status"] for one in ended(service, endpoint, round)} == {"delivered"}
        assert {one["status"] for one in deliveries(service, broken)} == {"waiting"}
        assert len(receiver.deliveries) <= 18, "what could not be recorded is not sent again"


def test_an_operator_disables_and_enables(hooked, receiver):
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    shown = hooked.admin("webhook", "disable", endpoint["endpoint_id"])
    assert shown["disabled_by"] == "operator"
    owner.cause()
    hooked.admin("webhook", "enable", endpoint["endpoint_id"])
    assert deliveries(hooked, endpoint) == [], "a notice from meanwhile is not queued"
    owner.cause()
    receiver.next()


def test_a_notice_is_replayed_by_hand_with_its_id(hooked, receiver):
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    receiver.answer = 500
    owner.cause()
    failed = ended(hooked, endpoint)[0]
    receiver.answer = 200
    later = owner.endpoint(receiver.url.replace("/hook", "/later"), "--types",
                           "certification.failed")
    for one, path in ((endpoint, "/hook"), (later, "/later")):
        count = len(receiver.deliveries)
        hooked.admin("webhook", "replay", failed["notice_id"], "--endpoint", one["endpoint_id"])
        last = receiver.expect(count + 1)[-1]
        assert (last.id, last.path) == (failed["notice_id"], path)
    done = ended(hooked, endpoint)[0]
    assert (done["status"], done["attempts"]) == ("delivered", 4)
    stranger = Owner(hooked).endpoint(receiver.url)
    for notice, one in ((failed["notice_id"], stranger), ("ntc_none", endpoint)):
        with pytest.raises(Refused) as refused:
            hooked.admin("webhook", "replay", notice, "--endpoint", one["endpoint_id"])
        assert refused.value.exit == 1


def test_the_delivery_log_goes_page_by_page_and_by_status(hooked, receiver):
    owner = Owner(hooked, 3)
    endpoint = owner.endpoint(receiver.url)
    for _ in range(2):
        owner.cause()
    everything = ended(hooked, endpoint, 6)
    assert [one["number"] for one in everything] == sorted((one["number"] for one in everything),
                                                           reverse=True)
    pages, before = [], ()
    while True:
        page = hooked.admin("webhook", "deliveries", endpoint["endpoint_id"], "--limit", 4, *before)
        pages += page["data"]
        if not page["has_more"]:
            break
        before = ("--before", page["data"][-1]["number"])
    assert pages == everything
    assert deliveries(hooked, endpoint, "--status", "delivered") == everything
    assert deliveries(hooked, endpoint, "--status", "failed") == []


# ---- isolation, restarts ----


def test_a_receiver_that_hangs_delays_nobody_and_gets_few_requests_at_a_time(hooked):
    quick_owner, slow_owner = Owner(hooked, 20), Owner(hooked, 20)
    gate = [True]

    def hang(_):
        while gate[0]:
            time.sleep(0.01)
        return 200

    with Receiver(answer=hang) as slow, Receiver() as quick:
        slow_owner.endpoint(slow.url)
        endpoint = quick_owner.endpoint(quick.url)
        slow_owner.cause()
        slow.wait(lambda: slow.under_way >= 1, "a request to the slow receiver")
        quick_owner.cause()
        quick.expect(20)
        assert len(slow.deliveries) == 0, "the slow one still hangs"
        assert 1 <= slow.most_under_way <= 4 and quick.most_under_way <= 4
        ended(hooked, endpoint, 20)
        gate[0] = False
        slow.wait(lambda: len({one.id for one in slow.deliveries}) == 20, "all to the slow one")
        assert slow.most_under_way <= 4


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_waits_survives_a_restart(start, end):
    service = start(webhook__schedule="2s,2s,2s,2s,2s,2s")
    owner = Owner(service, 5)
    with Receiver(port=free_port(), answer=500) as receiver:
        endpoint = owner.endpoint(receiver.url)
        receiver.secrets = [endpoint["secret"]]
        owner.cause()
        receiver.wait(lambda: len({one.id for one in receiver.deliveries}) == 5, "five notices")
        ids = {one.id for one in receiver.deliveries}
        if end == "stop":
            assert service.stop() == 0
        else:
            service.kill()
        receiver.check()
    # What the ended service had under way may still reach the old receiver.
    with Receiver(port=receiver.port, secrets=receiver.secrets) as again:
        service.start()
        assert {one["status"] for one in ended(service, endpoint, 5)} == {"delivered"}
        assert sorted(one.id for one in again.deliveries) == sorted(ids), "each again"
        again.check()


def test_notices_are_counted(hooked, receiver):
    def metrics():
        text = hooked.monitor("/metrics")[1]
        return {line.split()[0].removeprefix("constancia_"): float(line.split()[1])
                for line in text.splitlines() if line.startswith(("constancia_notice",
                                                                  "constancia_webhook"))}
    before = metrics()
    owner = Owner(hooked, 2)
    endpoint = owner.endpoint(receiver.url)
    owner.cause()
    ended(hooked, endpoint, 2)
    # They are counted behind what is recorded.
    eventually(lambda: metrics()["notices_delivered_total"] >= before["notices_delivered_total"] + 2,
               "they are counted")
    after = metrics()
    assert after["notices_delivered_total"] == before["notices_delivered_total"] + 2
    assert set(after) == {"notices_delivered_total", "notice_attempts_failed_total",
                          "notices_failed_total", "webhooks_disabled_total", "notices_waiting",
                          "notices_held", "webhooks_disabled"}


def test_old_notices_and_deleted_endpoints_are_forgotten(start):
    service = start(webhook__keep="1s")
    owner = Owner(service, 3)
    with Receiver() as receiver:
        kept = owner.endpoint(receiver.url)
        gone = owner.endpoint(receiver.url)
        owner.cause()
        for one in (kept, gone):
            ended(service, one, 3)
        service.admin("webhook", "delete", gone["endpoint_id"])
        time.sleep(1.1)
        assert service.stop() == 0
        service.start()  # which begins with housekeeping
        eventually(lambda: deliveries(service, kept) == [], "the log is empty")
        for table, rows in (("notices", 0), ("webhook_deliveries", 0), ("webhook_attempts", 0),
                            ("webhook_endpoints", 1)):
            eventually(lambda t=table, r=rows:
                       service.store.rows(f"SELECT count(*) FROM {t}") == [[str(r)]],
                       f"{table} has {rows} rows")


def test_every_type_of_the_interface_is_described(hooked):
    description = described(hooked)
    assert set(description.document["webhooks"]) == set(DATA)
    for name, item in description.document["webhooks"].items():
        schema = item["post"]["requestBody"]["content"]["application/json"]["schema"]
        data = description.resolve(schema["allOf"][1]["properties"]["data"])
        assert set(DATA[name]) <= set(data["properties"]), name
