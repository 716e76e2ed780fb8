"""Notices on several nodes: none is sent by two at a time, and a dead node is replaced."""

import collections
import threading
import time

import pytest

from client import eventually
from fleet import Fleet
from hooks import Owner, Receiver

pytestmark = pytest.mark.postgresql
BURST = 15


class Overlaps:
    """An answer that takes a while, and sees whether an id is under way twice."""

    def __init__(self, status=200, seconds=0.05):
        self.status, self.seconds = status, seconds
        self.lock = threading.Lock()
        self.under_way = collections.Counter()
        self.twice = []

    def __call__(self, delivery):
        with self.lock:
            self.under_way[delivery.id] += 1
            if self.under_way[delivery.id] > 1:
                self.twice.append(delivery.id)
        time.sleep(self.seconds)
        with self.lock:
            self.under_way[delivery.id] -= 1
        return self.status


@pytest.fixture
def fleet(tmp_path_factory):
    with Fleet(tmp_path_factory.mktemp("fleet"), webhook__allow_http="true",
               webhook__allow_networks="127.0.0.0/8",
               webhook__schedule=",".join(["300ms"] * 20)) as running:
        yield running


class Station:
    """The fleet as Owner wants a service: administered at one of its nodes."""

    def __init__(self, node):
        self.node, self.secrets = node, set()

    def admin(self, *arguments):
        return self.node.admin(*arguments)

    def new_account(self, credits):
        return self.admin("account", "create", "--name", "An account", "--credits",
                          credits)["account_id"]


def test_no_notice_is_sent_by_two_nodes_at_a_time(fleet):
    stations = [Station(node) for node in fleet.nodes]
    answer = Overlaps()
    with Receiver(answer=answer) as receiver:
        owner = Owner(stations[0], BURST)
        endpoint = owner.endpoint(receiver.url)
        receiver.secrets = [endpoint["secret"]]
        for number in range(4):
            owner.service = stations[number % 2]
            owner.cause()
        receiver.expect(4 * BURST)
        eventually(lambda: fleet.number("SELECT count(*) FROM webhook_deliveries"
                                        " WHERE status = 'waiting'") == 0, "all are over")
        # Whatever else one of them sends has come once it has ended.
        assert [node.stop() for node in fleet.nodes] == [0, 0]
        receiver.wait(lambda: receiver.under_way == 0, "all are answered")
        counts = collections.Counter(one.id for one in receiver.deliveries)
        assert len(counts) == 4 * BURST and set(counts.values()) == {1}
        assert answer.twice == []
        receiver.check()


def test_a_node_that_dies_is_replaced_within_its_lease(fleet):
    """The delivering node is killed while requests are under way."""
    survivor = Station(fleet.nodes[1])
    answer = Overlaps(status=500, seconds=0.2)
    with Receiver(answer=answer) as receiver:
        owner = Owner(survivor, BURST)
        endpoint = owner.endpoint(receiver.url)
        receiver.secrets = [endpoint["secret"]]
        owner.cause()
        receiver.expect(3)
        holders = fleet.rows("SELECT holder FROM leases WHERE name = 'deliverer'")
        holding = [node for node in fleet.nodes if node.data in holders[0][0]]
        assert len(holding) == 1, holders
        owner.service = Station(next(node for node in fleet.nodes if node is not holding[0]))
        holding[0].kill()
        answer.status = 200
        everything = {one["notice_id"] for one in
                      owner.service.admin("webhook", "deliveries",
                                          endpoint["endpoint_id"])["data"]}
        assert len(everything) == BURST
        receiver.wait(lambda: everything <= {one.id for one in receiver.deliveries
                                             if one.status == 200}, "the other node delivers")
        assert answer.twice == []
        receiver.check()
