"""A store that hangs: what does not need it is answered at once, and everything else by its
deadline."""

import contextlib
import json
import re
import threading

import pytest

from client import Client, eventually
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
    status, text = service.monitor("/readyz")
    assert status == 503 and "store" in json.loads(text)["reasons"][0]
    status, text = service.monitor("/metrics")
    assert status == 200 and "\nconstancia_store_ready 0\n" in text
    assert all(one.is_alive() for one in asking), "the store hangs, and so do they"
    cluster.primary.thaw()
    for one in asking:
        one.result().expect(200)
    eventually(lambda: service.monitor("/readyz")[0] == 200, "it is ready again")


def test_what_needs_the_store_is_refused_at_its_deadline(start, cluster, frozen, anyone_of):
    service, channel = served(start, cluster, http__deadline="1s")
    fresh = service.new_key(channel.id, "live")["key"]
    anyone = anyone_of(service)
    channel.live.register_hash(DIGEST, "before").expect(201)
    frozen()
    asking = [Asking(service, key, lambda client: client.register_hash(DIGEST, "held up"))
              for key in (channel.live_key["key"], fresh)]
    asking.append(Asking(service, None, lambda client: client.get("/verify/ABCD-EFGH")))
    for one in asking:
        one.result().expect(503)
    for path in OPEN:
        anyone.get(path).expect(200)
    # Nobody asks again and again for what has failed, and nobody queues behind it for longer.
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


def test_registrations_that_wait_hold_little_of_their_bodies(start, cluster):
    database = cluster.create_database()
    service = start(store__url=cluster.url(database), store__require_replicas=0,
                    http__deadline="120s", store__commit_timeout="60s")
    channel = service.new_channel(credits=1000)
    body = b'{"client_ref":"%d","payload":{"a":[' + b"0," * 131000 + b"0]}}"
    headers = {"Content-Type": "application/json"}
    channel.live.post("/v1/events", body.replace(b"%d", b"first"), headers=headers).expect(201)
    before = resident_bytes(service)

    def hold():
        with contextlib.suppress(Failed):  # it is cancelled
            cluster.primary.query("BEGIN; LOCK TABLE events IN EXCLUSIVE MODE; SELECT pg_sleep(50)",
                                  database, 120)
    lock = threading.Thread(target=hold)
    lock.start()
    eventually(lambda: cluster.primary.number(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"), "it is locked")
    asking = [Asking(service, channel.live.key, lambda client, n=n: client.post(
        "/v1/events", body.replace(b"%d", b"%d" % n), headers=headers)) for n in range(60)]
    eventually(lambda: service.metric("registration_queue_length") > 50, "they wait")
    eventually(lambda: service.metric("http_body_bytes") == 0, "their content is stored")
    grown = resident_bytes(service) - before
    assert grown < 150 * 2 ** 20, f"{grown / 2 ** 20:.0f} MiB for bodies of 15 MiB"
    cluster.primary.query(
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    for one in asking:
        one.result().expect(201)
    lock.join()


@pytest.fixture
def anyone_of():
    made = []

    def make(service):
        made.append(Client(service))
        return made[-1]
    yield make
    for client in made:
        client.close()
