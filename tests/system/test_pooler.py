"""A transaction carries all that it depends on, and the session nothing: through a pooler a session is not
the node's own. And what a server does with what it has written is checked, whatever is promised."""

import json

import pytest

from client import eventually
from fleet import Fleet
from pooler import Pooler
from postgres import ROLE, Cluster

pytestmark = pytest.mark.postgresql


@pytest.fixture
def cluster():
    with Cluster(standbys=1) as running:
        yield running


def test_settings_of_the_session_may_go_between_transactions(cluster, tmp_path):
    """The database's own synchronous_commit is off, and each session falls back to it."""
    with Pooler(cluster.primary.port) as pooler:
        fleet = Fleet(tmp_path, count=1, cluster=cluster, store__commit_timeout="2s")
        cluster.primary.query(f"ALTER DATABASE {fleet.database} SET synchronous_commit = off")
        fleet.nodes[0].settings["store.url"] = (
            f"postgresql://{ROLE}@127.0.0.1:{pooler.port}/{fleet.database}?sslmode=disable"
            "&gssencmode=disable")
        with fleet:
            channel = fleet.new_channel()
            for n in range(3):
                channel.live.register({"n": n}, f"ref-{n}").expect(201)
            assert pooler.resets > 3
            cluster.standby.freeze()
            try:
                channel.live.register({}, "frozen").expect(503)
            finally:
                cluster.standby.thaw()
            eventually(lambda: channel.live.register({}, "frozen").status in (200, 201),
                       "the standby is back")


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_wrote_is_not_written_to(tmp_path, setting):
    """Without any replica asked for, too."""
    with Cluster(standbys=0) as alone, \
            Fleet(tmp_path, count=1, cluster=alone, store__require_replicas=0) as fleet:
        (node,) = fleet.nodes
        channel = fleet.new_channel()
        channel.live.register({}, "before").expect(201)

        def set_to(value):
            alone.primary.query(f"ALTER SYSTEM SET {setting} = {value}")
            alone.primary.query("SELECT pg_reload_conf()")
            eventually(lambda: alone.primary.query(f"SHOW {setting}") == value, "it is set")
        set_to("off")
        eventually(lambda: channel.live.register({}, "while").status == 503, "it is refused")
        status, text = node.ask("/readyz")
        assert status == 503 and any(setting in reason for reason in json.loads(text)["reasons"])
        set_to("on")
        eventually(lambda: channel.live.register({}, "while").status in (200, 201), "it continues")
