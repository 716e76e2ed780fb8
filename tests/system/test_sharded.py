"""With store.sharded each transaction of a registration is of one account, on a real server."""

import itertools

import pytest

from client import eventually
from fleet import Fleet, at_once
from postgres import Cluster

pytestmark = pytest.mark.postgresql
ACCOUNTS = 9  # more than a node has sequencers


@pytest.fixture(scope="module")
def cluster():
    with Cluster(standbys=0) as running:
        yield running


def register(fleet, channels, turn):
    """All accounts at once, several clients each."""
    def work(channel, number):
        client = fleet.nodes[0].client(channel.test_key["key"])
        try:
            for n in range(15):
                client.register({}, f"{number}-{n}").expect(201)
        finally:
            client.close()
    at_once([lambda channel=channel, number=number: work(channel, f"{turn}-{number}")
             for channel in channels for number in range(3)])


def mixed(fleet):
    return fleet.number("SELECT count(*) FROM (SELECT xmin::text FROM events GROUP BY xmin::text "
                        "HAVING count(DISTINCT account) > 1) AS transactions")


@pytest.mark.parametrize("sharded", ["false", "true"])
def test_a_transaction_is_of_one_account_when_it_has_to_be(cluster, tmp_path, sharded):
    with Fleet(tmp_path, count=1, cluster=cluster, store__require_replicas=0,
               store__sharded=sharded) as fleet:
        channels = [fleet.new_channel() for _ in range(ACCOUNTS)]
        if sharded == "false":  # the measure itself: otherwise they do mix
            turns = itertools.count()

            def mix():
                register(fleet, channels, next(turns))
                return mixed(fleet)
            eventually(mix, "some batch holds two accounts")
        else:
            for turn in range(3):
                register(fleet, channels, turn)
            assert mixed(fleet) == 0
            shared = fleet.number("SELECT count(*) FROM (SELECT xmin::text FROM events "
                                  "GROUP BY xmin::text HAVING count(*) > 1) AS transactions")
            assert shared > 0, "there are batches, still"
        fleet.check()
