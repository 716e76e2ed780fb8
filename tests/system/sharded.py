"""A node on a coordinator and two workers, each with a standby, and channels of both."""

import contextlib
import http.client
import json

import pytest

from client import eventually
from distributed import Distributed
from fleet import Fleet
from program import Refused

FEE = 5


@pytest.fixture(scope="module")
def replicated():
    with Distributed(standbys=1) as running:
        yield running


def new_fleet(replicated, directory, count=1, **settings):
    """Prepared, not started."""
    made = Fleet(directory, count=count, cluster=replicated, store__require_replicas=1,
                 store__sharded="true", store__commit_timeout="2s", certification__fee=FEE,
                 webhook__allow_http="true", webhook__allow_networks="127.0.0.0/8", **settings)
    prepared = made.nodes[0].run("store", "distribute")
    assert prepared.returncode == 0, prepared.stderr
    return made


@pytest.fixture
def fleet(replicated, tmp_path, request):
    """Of one node by default."""
    with new_fleet(replicated, tmp_path, getattr(request, "param", 1)) as made:
        yield made
        made.check()


def worker_of(replicated, fleet, account):
    port = replicated.primary.number(
        "SELECT nodeport FROM citus_shards WHERE table_name = 'accounts'::regclass AND shardid = "
        "get_shard_id_for_distribution_column('accounts', (SELECT account FROM accounts WHERE "
        f"account_id = '{account}'))", fleet.database)
    (found,) = [worker for worker in replicated.workers if worker.primary.port == port]
    return found


@pytest.fixture
def channels(replicated, fleet):
    return one_on_each(replicated, fleet)


def one_on_each(replicated, fleet):
    """A channel on each worker, and its worker."""
    found = {}

    def one_more():
        channel = fleet.new_channel()
        worker = worker_of(replicated, fleet, channel.account_id)
        found.setdefault(worker.primary.port, (channel, worker))
        return len(found) == len(replicated.workers)
    eventually(one_more, "each worker has an account", pause=0)
    return list(found.values())


def refused(channel, ref, payload=None):
    channel.live.register(payload or {}, ref).expect(503, "temporarily_unavailable")


def accepted(channel, ref, payload=None):
    def look():
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = channel.live.register(payload or {}, ref)
            return answer.json if answer.expect(answer.status).status in (200, 201) else None
    return eventually(look, "it is acknowledged")


def sealed(channel, event_id):
    """However long answers of the first moments are refused."""
    def look():
        answer = channel.live.get(f"/v1/events/{event_id}")
        return answer.status == 200 and answer.json["timestamp"]["type"] != "pending"
    eventually(look, f"{event_id} is sealed", patience=120)


def done(fleet, *words):
    """As for certifications."""
    def look():
        with contextlib.suppress(Refused):
            return fleet.admin(*words)
    return eventually(look, f"done: {words}")


def not_done(fleet, *words):
    with pytest.raises(Refused, match="temporarily_unavailable"):
        fleet.admin(*words)


def findings(fleet, ready=True):
    """What /readyz warns of in them; the node is ready all the while, for the others' accounts."""
    status, text = fleet.nodes[0].ask("/readyz")
    assert not ready or status == 200, text
    return [one for one in json.loads(text)["warnings"] if "the store's server " in one]


def named(worker):
    return f"127.0.0.1:{worker.primary.port}"


@contextlib.contextmanager
def away(worker, how):
    if how == "frozen":
        worker.primary.freeze()
    else:
        worker.primary.stop()
    try:
        yield
    finally:
        worker.primary.thaw() if how == "frozen" else worker.primary.start()
