"""A store that hangs: requests that do not need it are answered at once, and all others by their
deadline."""

import contextlib
import json
import re
import secrets
import threading

import pytest

from client import Client, eventually
from console import invited, signed_in
from postgres import Cluster, Failed

pytestmark = pytest.mark.postgresql

# What has nothing to ask of the store.
OPEN = ["/docs/errors", "/verify", "/assets/verify.css", "/assets/verify.js", "/v1/openapi.yaml",
        "/v1/webhooks.yaml"]
DIGEST = "0" * 64


@pytest.fixture(scope="module")
def cluster():
    with Cluster(standbys=0) as running:
        yield running


@pytest.fixture
def frozen(cluster):
    """Freezes the store's server, and thaws it at the end at the latest."""
    yield cluster.primary.freeze
    cluster.primary.thaw()


def served(start, cluster, **settings):
    service = start(store__url=cluster.url(cluster.create_database()), store__require_replicas=0,
                    **settings)
    return service, service.new_channel("hash_only")


class Asking(threading.Thread):
    """One request, on a connection of its own."""

    def __init__(self, service, key, ask):
        super().__init__(daemon=True)
        self.client, self.ask, self.answer, self.failure = Client(service, key), ask, None, None
        self.start()

    def run(self):
        try:
            self.answer = self.ask(self.client)
        except BaseException as failure:
            self.failure = failure
        finally:
            self.client.close()

    def result(self):
        self.join()
        if self.failure:
            raise self.failure
        return self.answer


def test_a_look_up_of_a_key_that_hangs_delays_nobody_else(start, cluster, frozen, anyone_of):
    service, channel = served(start, cluster, http__deadline="60s")
    fresh = service.new_key(channel.id, "live")["key"]  # not in the cache
    anyone = anyone_of(service)
    frozen()
    asking = [Asking(service, fresh, lambda client: client.get("/v1/channel")) for _ in range(40)]
    eventually(lambda: service.metric("http_connections") >= len(asking), "they have come")
    for path in OPEN:
        anyone.get(path).expect(200)
    anyone.get("/v1/channel").expect(401, "invalid_key")
    assert service.monitor("/livez") == (200, '{"live":true}')

    def told():
        status, text = service.monitor("/readyz")
        return status == 503 and "store" in json.loads(text)["reasons"][0]
    eventually(told, "readiness says so")
    status, text = service.monitor("/metrics")
    assert status == 200 and "\nconstancia_store_ready 0\n" in text
    assert all(one.is_alive() for one in asking), "the store hangs, and so do they"
    cluster.primary.thaw()
    for one in asking:
        one.result().expect(200)
    eventually(lambda: service.monitor("/readyz")[0] == 200, "it is ready again")


def test_what_needs_the_store_is_refused_at_its_deadline(start, cluster, frozen, anyone_of):
    service, channel = served(start, cluster, http__deadline="3s")
    fresh = service.new_key(channel.id, "live")["key"]
    anyone = anyone_of(service)
    eventually(lambda: channel.live.register_hash(DIGEST, "before").status in (200, 201),
               "what came before is registered")  # within its deadline, too
    frozen()
    asking = [Asking(service, key, lambda client: client.register_hash(DIGEST, "held up"))
              for key in (channel.live_key["key"], fresh)]
    asking.append(Asking(service, None, lambda client: client.get("/verify/SVC-2026-7K3M-Q9XD")))
    for one in asking:
        one.result().expect(503)
    for path in OPEN:
        anyone.get(path).expect(200)
    # What has failed is not requested again and again, and no request queues for it for longer.
    Asking(service, fresh, lambda client: client.get("/v1/channel")).result().expect(503)
    cluster.primary.thaw()

    def registered():
        return channel.live.register_hash(DIGEST, "held up").status in (200, 201)
    eventually(registered, "a retry is acknowledged")
    with Client(service, fresh) as client:
        eventually(lambda: client.get("/v1/channel").status == 200, "the key is known")


def resident_bytes(service):
    """Of the service's own process."""
    status = open(f"/proc/{service.process.pid}/status", encoding="ascii").read()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


@contextlib.contextmanager
def locked(cluster, database, tables):
    """Nothing is written to these tables meanwhile."""
    def hold():
        with contextlib.suppress(Failed):  # it is cancelled
            cluster.primary.query(f"BEGIN; LOCK TABLE {tables} IN EXCLUSIVE MODE; SELECT pg_sleep(300)",
                                  database, 400)
    lock = threading.Thread(target=hold)
    lock.start()
    try:
        eventually(lambda: cluster.primary.number(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"), "it is locked")
        yield
    finally:
        cluster.primary.query(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        lock.join()


def somebody(service, channel, role="developer"):
    """A user of the channel's account, signed in to the console."""
    email = invited(service, channel.account_id, f"{secrets.token_hex(6)}@example.org", role)
    return signed_in(service, email)


def test_registrations_that_wait_hold_little_of_their_bodies(start, cluster):
    database = cluster.create_database()
    service = start(store__url=cluster.url(database), store__require_replicas=0,
                    http__deadline="120s", store__commit_timeout="60s")
    channel = service.new_channel(credits=1000)
    body = b'{"client_ref":"%d","payload":{"a":[' + b"0," * 131000 + b"0]}}"
    headers = {"Content-Type": "application/json"}
    channel.live.post("/v1/events", body.replace(b"%d", b"first"), headers=headers).expect(201)
    before = resident_bytes(service)

    with locked(cluster, database, "events"):
        asking = [Asking(service, channel.live.key, lambda client: client.register({}, "of the batch before"))]
        eventually(lambda: cluster.primary.number("SELECT count(*) FROM pg_locks WHERE NOT granted"), "one waits")
        asking += [Asking(service, channel.live.key, lambda client, n=n: client.post(
            "/v1/events", body.replace(b"%d", b"%d" % n), headers=headers)) for n in range(60)]
        eventually(lambda: service.metric("registration_queue_length") == 60, "the others wait")
        eventually(lambda: service.metric("http_body_bytes") < 1000, "their content is stored")
        grown = resident_bytes(service) - before
        assert grown < 150 * 2 ** 20, f"{grown / 2 ** 20:.0f} MiB for bodies of 15 MiB"
    for one in asking:
        one.result().expect(201)


def test_whoever_waits_for_a_try_keeps_nobody_waiting(start, cluster):
    """While nothing can be written, the attempts of two accounts wait separately, and all reads are answered."""
    database = cluster.create_database()
    service = start(store__url=cluster.url(database), store__require_replicas=0,
                    http__deadline="60s", store__commit_timeout="60s")
    channels = [service.new_channel(), service.new_channel()]
    event = channels[1].live.register({}, "before").expect(201).json["event_id"]
    people = [somebody(service, channel) for channel in channels * 2]
    reader = somebody(service, channels[1])
    threads = [threading.Thread(target=one.get("/console/try").send, args=("/console/try/send",), kwargs={
        "channel": channels[n % 2].id, "client_ref": f"try-{n}", "content": "{}"}) for n, one in enumerate(people)]
    with locked(cluster, database, "events, acts"):
        eventually(lambda: service.metric("http_connections") == 1, "only the channel's is left")
        for thread in threads:
            thread.start()
        eventually(lambda: service.metric("http_connections") == 1 + len(threads), "they have come")
        eventually(lambda: cluster.primary.number("SELECT count(*) FROM pg_locks WHERE NOT granted"), "one waits")
        assert reader.get(f"/console/events?channel={channels[1].id}").status == 200
        channels[1].live.get(f"/v1/events/{event}").expect(200)
        assert all(thread.is_alive() for thread in threads), "they wait still"
    for thread in threads:
        thread.join()
    registered = sum("HTTP 201" in one.body for one in people)
    assert registered >= len(people) - 1, "one after the other; the first may have waited too long"
    for channel in channels:
        channel.close()


def trying(visitor, channel, client_ref):
    """An attempt that waits."""
    thread = threading.Thread(target=visitor.get("/console/try").send, args=("/console/try/send",), kwargs={
        "channel": channel.id, "client_ref": client_ref, "content": "{}"})
    thread.start()
    return thread


def test_a_try_whose_outcome_nobody_knows_is_on_record(start, cluster):
    database = cluster.create_database()
    service = start(store__url=cluster.url(database), store__require_replicas=0,
                    http__deadline="60s", store__commit_timeout="60s")
    channel = service.new_channel()
    owner, developer = somebody(service, channel, "owner"), somebody(service, channel)
    audit = ("audit", "list", "--account", channel.account_id, "--operation", "event try")
    with locked(cluster, database, "events"):
        trying(developer, channel, "late").join()
        assert "HTTP 503" in developer.body
    act, = service.admin(*audit)["data"]
    assert (act["outcome"], act["made"], act["arguments"]["client_ref"]) == ("unknown", {}, "late")
    assert "It is not known whether the action was carried out." in owner.get(f"/console/acts/{act['act_id']}").text()
    eventually(lambda: cluster.primary.number("SELECT count(*) FROM events WHERE client_ref = 'late'",
                                              database), "it was done after all")
    developer.get("/console/try").send("/console/try/send", channel=channel.id, client_ref="late", content="{}")
    assert "HTTP 200" in developer.body
    assert service.admin(*audit)["data"][0]["found"]["event_id"] in developer.body
    channel.close()


def test_a_try_is_on_record_when_its_session_ends_meanwhile(start, cluster):
    database = cluster.create_database()
    service = start(store__url=cluster.url(database), store__require_replicas=0,
                    http__deadline="60s", store__commit_timeout="60s")
    channel = service.new_channel()
    developer = somebody(service, channel)
    session, = service.admin("session", "list", "--account", channel.account_id)["data"]
    with locked(cluster, database, "events"):
        thread = trying(developer, channel, "meanwhile")
        eventually(lambda: cluster.primary.number("SELECT count(*) FROM pg_locks WHERE NOT granted"), "it waits")
        service.admin("session", "end", session["session_id"])
    thread.join()
    assert "HTTP 201" in developer.body
    act, = service.admin("audit", "list", "--account", channel.account_id, "--operation", "event try")["data"]
    assert act["made"]["event_id"] in developer.body
    assert developer.get("/console/try").location == "/console/sign-in"
    channel.close()


def test_the_service_stops_while_tries_wait(start, cluster):
    """Those that wait in the lane are answered, and hold up nothing for longer than the one under way does."""
    database = cluster.create_database()
    service = start(store__url=cluster.url(database), store__require_replicas=0,
                    http__deadline="5s", store__commit_timeout="6s")
    channel = service.new_channel()
    people = [somebody(service, channel) for _ in range(4)]
    for one in people:
        one.get("/console/try")
    refused = []

    def send(one, number):
        try:
            one.send("/console/try/send", channel=channel.id, client_ref=f"try-{number}", content="{}")
        except AssertionError:  # of 503
            refused.append(one.headers["retry-after"])
    threads = [threading.Thread(target=send, args=(one, number)) for number, one in enumerate(people)]
    eventually(lambda: service.metric("http_connections") == 0, "what came before is over")
    with locked(cluster, database, "events, acts"):
        for thread in threads:
            thread.start()
        eventually(lambda: cluster.primary.number("SELECT count(*) FROM pg_locks WHERE NOT granted"), "one waits")
        eventually(lambda: service.metric("http_connections") == len(threads), "the others have come")
        assert service.stop() == 0
        for thread in threads:
            thread.join()
    assert len(refused) == len(people) and all(int(seconds) > 0 for seconds in refused)
    assert not any(line["event"] == "drain_interrupted" for line in service.log_lines())
    service.start()
    channel.close()


@pytest.fixture
def anyone_of():
    made = []

    def make(service):
        made.append(Client(service))
        return made[-1]
    yield make
    for client in made:
        client.close()
