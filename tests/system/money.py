"""Money in the tests: packs, purchases, billing, and the notices of an account."""

import json

from client import eventually


def new_pack(service, credits=10, price="10.00", currency="EUR", **flags):
    return service.admin("pack", "create", "--name", "A pack", "--credits", credits, "--price",
                         price, "--currency", currency,
                         *(text for name, value in flags.items()
                           for text in (f"--{name}", value)))


def new_purchase(service, account_id, pack):
    return service.admin("purchase", "create", "--account", account_id, "--pack", pack["pack_id"])


def purchase(service, verb, record):
    return service.admin("purchase", verb, record["sale_id"])


def purchases(service, account_id, *flags):
    return service.admin("purchase", "list", "--account", account_id, *flags)["data"]


def bill(service, account_id, **flags):
    """By default, a country and a payment method."""
    flags = {"country": "ES", "payment_method": "pm_card", "customer": "cus_one", **flags}
    return service.admin("account", "billing", account_id,
                         *(text for name, value in flags.items()
                           for text in (f"--{name.replace('_', '-')}", value)))


def movements(service, account_id):
    """(kind, credits, balance, reference), oldest first."""
    listed, more, before = [], True, ()
    while more:
        page = service.admin("credits", "list", account_id, "--limit", "1000", *before)
        listed += page["data"]
        more = page["has_more"]
        before = ("--before", str(listed[-1]["number"])) if listed else ()
    return [(one["kind"], one["credits"], one["balance"], one["reference"])
            for one in reversed(listed)]


def notices(service, account_id, prefix=""):
    """(type, data) in the order of their making."""
    found = service.store.rows(
        "SELECT n.type, n.data FROM notices n JOIN accounts a ON a.account = n.account"
        f" WHERE a.account_id = '{account_id}' ORDER BY n.notice")
    return [(kind, json.loads(data)) for kind, data in found if kind.startswith(prefix)]


def recharged(service, account_id, count=1):
    """The last notice of the top-up, once there are that many."""
    def look():
        found = notices(service, account_id, "recharge.")
        assert len(found) <= count, found
        return found if len(found) == count else None
    return eventually(look, f"{count} notices of the top-up")[-1]
