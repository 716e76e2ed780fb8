"""A real HAProxy with dist/haproxy.cfg in front of two nodes: it keeps a key on a node, so that the
key's rate limit is as exact as with one node, and moves it when the node goes away."""

import base64
import collections
import http.client
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from client import Client, Description, basic, eventually, free_port
from fleet import Fleet, at_once
from program import NotStarted
from postgres import Cluster

pytestmark = pytest.mark.postgresql
CONFIGURATION = pathlib.Path(__file__).resolve().parents[2] / "dist" / "haproxy.cfg"
RATE = 5
CAPACITY = 4 * RATE


class Proxy:
    """HAProxy with the configuration that is shipped; only addresses are other ones."""

    address = "127.0.0.1"

    def __init__(self, directory, nodes):
        self.port, self.plain_port, self.stats_port = free_port(), free_port(), free_port()
        self.public_url = f"http://127.0.0.1:{self.port}"
        self.description = None
        text = CONFIGURATION.read_text()
        text, binds = re.subn(r"bind :443 .*", f"bind 127.0.0.1:{self.port}", text)
        text, plain = re.subn(r"bind :80\b", f"bind 127.0.0.1:{self.plain_port}", text)
        if os.geteuid() != 0:
            text = re.sub(r"\t(user|group|chroot) .*\n", "", text)
        text, logs = re.subn(r"log /dev/log local0", f"stats socket ipv4@127.0.0.1:{self.stats_port}", text)
        # On a slow machine a node answers late; one that is gone takes no connection.
        text, timeouts = re.subn(r"\ttimeout connect 3s\n", r"\g<0>\ttimeout check 30s\n", text)
        assert (binds, plain, logs, timeouts) == (1, 1, 1, 1)
        for number, node in enumerate(nodes, 1):
            text, servers = re.subn(rf"(?m)(server node{number}) .*$",
                                    rf"\1 127.0.0.1:{node.port} port {node.admin_port}", text)
            assert servers == 2, "each back end names each node once"
        self.file = directory / "haproxy.cfg"
        self.file.write_text(text)
        self.log = open(directory / "haproxy.log", "w+", encoding="utf-8")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "haproxy", "-db", "-f", self.file],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        return self

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def client(self, key=None):
        return Client(self, key)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    with Cluster(standbys=1) as cluster, \
            Fleet(tmp_path_factory.mktemp("fleet"), cluster=cluster, rate__live=RATE,
                  service__trusted_proxies="127.0.0.0/8") as running:
        yield running


@pytest.fixture(scope="module")
def proxy(fleet, tmp_path_factory):
    assert shutil.which("haproxy"), "haproxy is not installed"
    running = Proxy(tmp_path_factory.mktemp("proxy"), fleet.nodes)
    try:
        running.start()
        eventually(lambda: answers(running), "the proxy passes requests on")
        running.description = Description(running.client().get("/v1/openapi.yaml").body)
        yield running
    finally:
        running.stop()


def answers(proxy):
    try:
        return proxy.client().exchange("GET", "/v1/openapi.yaml", None, {}).status == 200
    except (OSError, http.client.HTTPException):
        return False


def everyone_up(fleet, proxy):
    """All nodes serve, and the proxy knows: keys are spread over all again."""
    for node in fleet.nodes:
        node.wait("/readyz")
    channels = [fleet.new_channel() for _ in range(12)]
    for channel in channels:
        eventually(lambda channel=channel: proxy.client(channel.test_key["key"]).register().status
                   == 201, "registrations are answered")
    eventually(lambda: len({home(fleet, proxy, channel) for channel in channels}) == 2,
               "keys lead to both nodes")


def home(fleet, proxy, channel):
    """The number of the node to which the proxy leads the channel's test key."""
    before = [node.metric("events_registered_total") for node in fleet.nodes]
    proxy.client(channel.test_key["key"]).register().expect(201)
    after = [node.metric("events_registered_total") for node in fleet.nodes]
    (number,) = [n for n, (a, b) in enumerate(zip(before, after)) if a != b]
    return number


def take_all(send, threads=8):
    """As many requests as it takes to empty every bucket; the answers and how long it took."""
    start = time.monotonic()
    lists = at_once([lambda: [send() for _ in range(12)] for _ in range(threads)])
    seconds = time.monotonic() - start
    return [answer for some in lists for answer in some], seconds


# ---- one node for a key ----

def test_the_rate_limit_of_a_key_is_exact_through_the_proxy(fleet, proxy):
    for _ in range(3):
        channel = fleet.new_channel()

        def send(key=channel.live_key["key"]):
            client = proxy.client(key)
            answer = client.register()
            client.close()
            return answer
        sent, seconds = take_all(send)
        passed = sum(answer.status == 201 for answer in sent)
        assert {answer.status for answer in sent} <= {201, 429}
        assert CAPACITY <= passed <= CAPACITY + RATE * seconds + 1, "one bucket, not two"
        assert {answer.headers["RateLimit-Limit"] for answer in sent} == {str(CAPACITY)}


def test_without_the_proxy_each_node_has_a_bucket_of_its_own(fleet):
    """What the proxy is for."""
    channel = fleet.new_channel()
    passed = 0
    for node in fleet.nodes:
        client = node.client(channel.live_key["key"])
        passed += sum(client.register().status == 201 for _ in range(CAPACITY))
    assert passed == 2 * CAPACITY


def test_every_way_to_give_a_key_leads_to_the_same_bucket(fleet, proxy):
    ways = [lambda key: {"Authorization": f"Bearer {key}"},
            lambda key: {"authorization": f"bearer   {key}"},
            lambda key: {"Authorization": f"Bearer \t{key}"},
            lambda key: {"Authorization": basic(key)},
            lambda key: {"Authorization": "Basic " + base64.b64encode(
                f"{key}:password".encode()).decode()},
            lambda key: {"Authorization": "basic  " + base64.b64encode(key.encode()).decode()},
            lambda key: {"X-SVC-Api-Key": key}]
    for _ in range(4):
        key = fleet.new_channel().live_key["key"]
        start = time.monotonic()
        left = []
        for way in ways:
            answer = proxy.client().post("/v1/events", {"client_ref": str(len(left)),
                                                        "payload": {}}, headers=way(key))
            left.append(int(answer.expect(201).headers["RateLimit-Remaining"]))
        refilled = RATE * (time.monotonic() - start)
        assert left[0] == CAPACITY - 1
        assert left[-1] <= CAPACITY - len(ways) + refilled + 1, left


def test_keys_are_spread_over_the_nodes(fleet, proxy):
    channels = [fleet.new_channel() for _ in range(16)]
    homes = [home(fleet, proxy, channel) for channel in channels]
    assert set(homes) == {0, 1}
    assert [home(fleet, proxy, channel) for channel in channels] == homes, "each stays where it is"


def test_what_is_no_key_is_refused_as_without_a_proxy(fleet, proxy):
    key = fleet.new_channel().live_key["key"]
    for headers in ({}, {"Authorization": f"Digest {key}"}, {"Authorization": key},
                    {"Authorization": "Basic !!!!"}, {"Authorization": f"Bearer {key}x"}):
        proxy.client().get("/v1/channel", headers=headers).expect(401, "invalid_key")
    # Authorization goes before the service's own header, twice it is none.
    proxy.client().get("/v1/channel", headers={"Authorization": "Bearer x", "X-SVC-Api-Key": key}) \
        .expect(401)


def test_callers_without_a_key_are_told_apart_by_their_own_address(proxy):
    """The proxy says who called; what a caller says about that is not believed."""
    def left(number):
        answer = proxy.client().get("/v1/channel", headers={"X-Forwarded-For": f"203.0.113.{number}"}).expect(401)
        return int(answer.headers["RateLimit-Remaining"])

    def count_down():  # more quickly than tokens come
        first, second, third = (left(number) for number in range(3))
        return first > second > third
    eventually(count_down, "all of them are of one bucket")


def test_files_and_certifications_pass_through(fleet, proxy):
    channel = fleet.new_channel()
    client = proxy.client(channel.live_key["key"])
    content = b"f" * 10_000_000
    event = client.register_file(content).expect(201).json
    assert client.content(event["event_id"]).expect(200).body == content
    accepted = client.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]

    def issued():
        answer = client.get(f"/v1/certifications/{accepted}")
        return answer.status == 200 and answer.json["status"] == "completed"
    eventually(issued, "it is issued", pause=0.5)


# ---- a node goes away ----

def test_the_keys_of_a_node_that_dies_move_and_the_others_stay(fleet, proxy):
    everyone_up(fleet, proxy)
    channels = [fleet.new_channel() for _ in range(12)]
    homes = [home(fleet, proxy, channel) for channel in channels]
    assert set(homes) == {0, 1}
    fleet.nodes[1].kill()
    survivor = fleet.nodes[0]
    before = survivor.metric("events_registered_total")
    for number, channel in enumerate(channels):
        def registered(channel=channel, ref=f"moved-{number}"):
            try:
                return proxy.client(channel.test_key["key"]).exchange(
                    "POST", "/v1/events", b'{"client_ref":"%s","payload":{}}' % ref.encode(),
                    {"Authorization": f"Bearer {channel.test_key['key']}",
                     "Content-Type": "application/json"}).status in (200, 201)
            except (OSError, http.client.HTTPException):
                return False
        eventually(registered, "the key is served by the other node")
    assert survivor.metric("events_registered_total") - before == len(channels)
    fleet.nodes[1].start()
    eventually(lambda: [home(fleet, proxy, channel) for channel in channels] == homes,
               "the keys are back where they were", pause=0.5)


def test_a_node_that_stops_is_left_before_it_is_gone(fleet, proxy):
    """SIGTERM drains while the proxy runs: no request is lost, each gets an answer at once or
    at the next attempt."""
    everyone_up(fleet, proxy)
    channels = [fleet.new_channel() for _ in range(8)]
    homes = collections.Counter(home(fleet, proxy, channel) for channel in channels)
    assert set(homes) == {0, 1}
    assert fleet.nodes[0].stop() == 0
    for channel in channels:
        eventually(lambda channel=channel: proxy.client(channel.test_key["key"]).exchange(
            "GET", "/v1/channel", None, {"Authorization": f"Bearer {channel.test_key['key']}"}
        ).status == 200, "the other node serves it")
    fleet.nodes[0].start()


def test_when_nobody_answers_the_proxy_says_so_in_the_words_of_the_interface(fleet, proxy):
    everyone_up(fleet, proxy)
    for node in fleet.nodes:
        node.kill()
    try:
        answer = proxy.client().exchange("GET", "/v1/channel", None, {})
        assert answer.status in (502, 503)
        assert set(answer.json) == {"code", "message", "doc_url", "incident_id"}
        assert answer.code == "temporarily_unavailable"
        assert answer.headers["Retry-After"] == "1"
        assert re.fullmatch(r"inc_\w+", answer.json["incident_id"])
    finally:
        for node in fleet.nodes:
            node.spawn()
    for node in fleet.nodes:
        try:
            node.wait("/readyz")
        except NotStarted:
            node.start()
    eventually(lambda: answers(proxy), "the proxy passes requests on again")


def test_nodes_that_cannot_acknowledge_still_read(fleet, proxy):
    """Without a standby no node is ready: reads continue, and 503 is the service's own."""
    everyone_up(fleet, proxy)
    channel = fleet.new_channel()
    event = channel.live.register({"n": 1}).expect(201).json
    standby = fleet.cluster.standby
    standby.stop("immediate")
    try:
        for node in fleet.nodes:
            eventually(lambda node=node: node.ask("/readyz")[0] == 503, "it is not ready")
        client = proxy.client(channel.live_key["key"])

        def read():
            answer = client.exchange("GET", f"/v1/events/{event['event_id']}", None,
                                     {"Authorization": f"Bearer {channel.live_key['key']}"})
            return answer.status == 200
        eventually(read, "the event is read")
        eventually(lambda: client.register({}, "held back").status == 503, "it is refused")
        client.register({}, "held back").expect(503, "temporarily_unavailable")
    finally:
        standby.start()
    fleet.cluster.primary.wait_for_standbys()
    everyone_up(fleet, proxy)
