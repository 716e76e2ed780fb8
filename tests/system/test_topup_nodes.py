"""Automatic top-up on two nodes of one store: whichever node decides, charges or dies, each
purchase is charged once."""

import random
import sys
import types

import pytest

from client import Client, eventually
from fleet import Fleet, at_once
from money import movements, notices, recharged
from nodes import clock_behind
from payment_provider import PaymentProvider
from test_topup import THRESHOLD, Buyer, bought

pytestmark = pytest.mark.postgresql
LEASE_SECONDS = 75
LONGEST_PAUSE = 256  # seconds between two attempts, after as many failures as fit in the test's rounds


@pytest.fixture
def provider():
    running = PaymentProvider()
    yield running
    running.close()


@pytest.fixture
def fleet(tmp_path, provider):
    with Fleet(tmp_path, **provider.settings()) as running:
        yield running


def as_service(fleet):
    """What the helpers of money ask of a service."""
    return types.SimpleNamespace(admin=fleet.admin, new_channel=fleet.new_channel,
                                 store=types.SimpleNamespace(rows=fleet.rows))


def spend(node, buyer, count):
    client = Client(node, buyer.channel.live_key["key"])
    for _ in range(count):
        client.register().expect(201)
    client.close()


def check(service, buyer, provider):
    sales = bought(buyer, provider, len(buyer.sales()))
    told = notices(service, buyer.account_id, "recharge.")
    assert sorted(data["recharge_id"] for _, data in told) \
        == sorted(sale["sale_id"] for sale in sales)
    assert {kind for kind, _ in told} <= {"recharge.auto_completed"}
    balance = service.admin("account", "show", buyer.account_id)["balance"]
    assert sum(one[1] for one in movements(service, buyer.account_id)) == balance


def settled(service, buyers):
    def look():
        for buyer in buyers:
            shown = buyer.topup()
            balance = service.admin("account", "show", buyer.account_id)["balance"]
            if shown["sale_id"] or (shown["enabled"] and balance < THRESHOLD):
                return False
        return True
    eventually(look, "all top-ups are settled", patience=LEASE_SECONDS + LONGEST_PAUSE, pause=0.5)


def test_two_nodes_charge_each_purchase_once(fleet, provider):
    seed = random.randrange(2 ** 32)
    print(f"seed {seed}", file=sys.stderr)
    choose = random.Random(seed)
    service = as_service(fleet)
    buyers = [Buyer(service, daily_max=1000) for _ in range(5)]
    for _ in range(5):
        provider.script(*(choose.choice(["pay", "pay", "lose", "cut", "unavailable"])
                          for _ in range(6)))
        at_once([lambda node=node, buyer=buyer, count=choose.randrange(1, 6):
                 spend(node, buyer, count) for node in fleet.nodes for buyer in buyers])
        victim = choose.choice(fleet.nodes)
        victim.kill()
        victim.start()
    provider.recover()  # what is left of the scripts could be the results of one payment, whose pauses double
    settled(service, buyers)
    for buyer in buyers:
        check(service, buyer, provider)
    fleet.check()


def test_what_a_dead_node_held_is_taken_over_when_its_lease_ends(fleet, provider):
    service = as_service(fleet)
    provider.script("stall")
    first, second = fleet.nodes
    first.stop()
    buyer = Buyer(service, armed=False)
    second.stop()
    first.start()
    buyer.set()
    spend(first, buyer, 1)
    eventually(lambda: provider.charges, "the first node charges")
    second.start()
    first.kill()
    kind, data = eventually(lambda: notices(service, buyer.account_id, "recharge."),
                            "the second node takes over", patience=2 * LEASE_SECONDS)[0]
    sale, = bought(buyer, provider)
    assert (kind, data) == buyer.completed(sale["sale_id"], 14)
    assert recharged(service, buyer.account_id)[0] == kind
    assert len({key for _, path, key in provider.requests
                if path == "/v1/payment_intents" and key}) == 1


def test_a_clock_behind_never_charges_under_a_key_that_is_forgotten(tmp_path, provider):
    """21 hours after the first attempt, on a node whose clock is five hours slow."""
    fleet = Fleet(tmp_path, count=1, **provider.settings())
    with fleet:
        provider.script(*["unavailable"] * 1000)
        buyer = Buyer(as_service(fleet))
        (node,) = fleet.nodes
        spend(node, buyer, 1)
        eventually(lambda: [1 for method, path, _ in provider.requests
                            if (method, path) == ("POST", "/v1/payment_intents")], "it is tried")
        assert node.stop() == 0
        fleet.query(f"UPDATE payments SET first_try_at = first_try_at - {21 * 3600 * 10**6}, "
                    "next_try_at = 0, lease = NULL WHERE state <> 'over'")
        mark = len(provider.requests)
        # It takes part in everything but live registrations, so it is not ready.
        fleet.add(environment=clock_behind(tmp_path, 5 * 3600)).spawn()
        eventually(lambda: fleet.rows("SELECT 1 FROM payments WHERE state = 'over'"),
                   "the attempt is given up on", patience=2 * LEASE_SECONDS)
        later = provider.requests[mark:]
        assert [method for method, path, _ in later if path.startswith("/v1/payment_intents")]
        assert not [one for one in later if one[:2] == ("POST", "/v1/payment_intents")]
