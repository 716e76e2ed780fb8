"""Notices in the tests: endpoints, and what causes notices."""

from client import eventually
from webhook_receiver import BadReceiver, Receiver  # noqa: F401


def new_endpoint(service, account_id, url, *flags):
    """The endpoint as created, with its secret."""
    endpoint = service.admin("webhook", "create", "--account", account_id, "--url", url, *flags)
    service.secrets.add(endpoint["secret"])
    return endpoint


def add_thresholds(service, account_id, *credits):
    return [service.admin("threshold", "create", "--account", account_id, "--credits", number)
            for number in credits]


def deliveries(service, endpoint, *flags):
    return service.admin("webhook", "deliveries", endpoint["endpoint_id"], *flags)["data"]


def ended(service, endpoint, count=1):
    """Deliveries to an endpoint, newest first, once that number has ended."""
    def look():
        found = deliveries(service, endpoint)
        return found if sum(one["status"] != "waiting" for one in found) >= count else None
    return eventually(look, f"{count} deliveries are over")


def attempts(service, endpoint, notice_id, count=1):
    """All attempts at a delivery, once there are that many."""
    def look():
        found = service.admin("webhook", "attempts", endpoint["endpoint_id"], notice_id)["data"]
        return found if len(found) >= count else None
    return eventually(look, f"{count} attempts were made")


class Owner:
    """An account that can cause notices at will: `burst` of them each time credits are taken."""

    def __init__(self, service, burst=1):
        self.service = service
        self.account_id = service.new_account(credits=100)
        self.thresholds = add_thresholds(service, self.account_id, *range(10, 10 + burst))

    def endpoint(self, url, *flags):
        return new_endpoint(self.service, self.account_id, url, *flags)

    def cause(self):
        """Crosses all thresholds downwards."""
        self.service.admin("credits", "add", self.account_id, -95)
        self.service.admin("credits", "add", self.account_id, 95)
