"""The log of segments of several nodes, which have one key of it and a signing process each."""

import contextlib
import json

import pytest
from cryptography.hazmat.primitives import serialization

import tlog
from client import eventually
from fleet import Fleet

pytestmark = pytest.mark.postgresql

ORIGIN = "log.example/segments"
REASON = "the copy of Monday was restored"


@pytest.fixture
def key(tmp_path):
    made = tlog.Key(ORIGIN, tlog.ED25519)
    path = tmp_path / "log.pem"
    path.write_bytes(made.private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                                serialization.NoEncryption()))
    path.chmod(0o600)
    return path


class Logged:
    """Two nodes with one log, of whose store copies are restored."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.channel = fleet.new_channel()

    def trees(self):
        return {int(size): root for size, root in
                self.fleet.rows("SELECT size, encode(root, 'hex') FROM log_checkpoints ORDER BY size")}

    def grow(self, node, trees):
        """Registers at a node until there are that many more trees."""
        goal = len(self.trees()) + trees
        client = node.client(self.channel.live_key["key"])

        def is_there():
            client.register({"of": node.name, "trees": len(self.trees())})
            return len(self.trees()) >= goal
        eventually(is_there, "the log grows")
        client.close()

    def known_sizes(self, node):
        """Of the trees that the signing process of a node knows."""
        with open(f"{node.data}/signer/signer.log", encoding="utf-8") as lines:
            return [line["round"] for line in map(json.loads, lines) if line["purpose"] == "checkpoint"]

    def stop(self):
        for node in self.fleet.nodes:
            assert node.stop() == 0

    def sql(self, text):
        """Runs a statement that nobody else may be connected for."""
        def runs():
            with contextlib.suppress(Exception):
                self.fleet.cluster.primary.query(text, "postgres")
                return True
        eventually(runs, "the database is not in use")

    def copy(self):
        self.sql(f"CREATE DATABASE {self.fleet.database}_copy TEMPLATE {self.fleet.database}")

    def restore(self):
        self.sql(f"DROP DATABASE {self.fleet.database}")
        self.sql(f"ALTER DATABASE {self.fleet.database}_copy RENAME TO {self.fleet.database}")


@pytest.fixture
def logged(tmp_path, key):
    with Fleet(tmp_path / "fleet", log__origin=ORIGIN, log__key=key) as fleet:
        yield Logged(fleet)


def test_signing_processes_know_what_the_other_node_signed(logged):
    logged.grow(logged.fleet.nodes[0], 2)
    newest = max(logged.trees())
    for node in logged.fleet.nodes:
        eventually(lambda node=node: newest in logged.known_sizes(node), "both know the tree")


def test_no_node_signs_other_trees_after_a_restore(logged):
    first, second = logged.fleet.nodes
    logged.grow(first, 1)
    logged.stop()
    logged.copy()
    first.start()
    second.start()
    logged.grow(first, 3)
    lost = logged.trees()
    for node in logged.fleet.nodes:
        eventually(lambda node=node: max(lost) in logged.known_sizes(node), "both know the tree")
    logged.stop()
    logged.restore()
    for node in logged.fleet.nodes:
        said = node.run("store", "accept-rollback", "--reason", REASON)
        assert said.returncode == 0 and "set log.origin to a new name" in said.stdout, said
    assert logged.fleet.rows("SELECT DISTINCT ended_log FROM rollbacks") == [[ORIGIN]]
    said = second.run("config", "check", "--connect")
    assert "ended when the store was set back" in said.stdout + said.stderr, said
    kept = logged.trees()
    assert len(kept) < len(lost)
    for node in logged.fleet.nodes:
        node.start()
    client = first.client(logged.channel.live_key["key"])
    for n in range(4):
        client.sealed(client.register({"another": n}).expect(201).json["event_id"])
    client.close()
    eventually(lambda: max(node.metric("log_set_back") for node in logged.fleet.nodes) == 1, "it is reported")
    logged.stop()
    assert logged.trees() == kept
    # A new name is all that is needed.
    for node in logged.fleet.nodes:
        node.settings["log.origin"] = "log.example/segments-2"
        node.start()
    logged.grow(second, 1)
    rows = logged.fleet.rows("SELECT DISTINCT origin FROM log_checkpoints ORDER BY origin")
    assert rows == [[ORIGIN], ["log.example/segments-2"]]
    for node in logged.fleet.nodes:
        eventually(lambda node=node: node.metric("log_set_back") == 0, "nothing is reported any more")


def test_a_signing_process_alone_refuses_trees_of_a_restored_store(logged):
    """Without the record of the rollback: the second node has signed nothing, and knows what was signed."""
    first, second = logged.fleet.nodes
    logged.grow(first, 1)
    logged.stop()
    logged.copy()
    first.start()
    second.start()
    logged.grow(first, 3)
    newest = max(logged.trees())
    eventually(lambda: newest in logged.known_sizes(second), "the second node knows the tree")
    logged.stop()
    logged.restore()
    assert second.run("store", "accept-rollback", "--reason", REASON).returncode == 0
    logged.fleet.query("UPDATE rollbacks SET ended_log = NULL")
    kept = logged.trees()
    second.start()
    client = second.client(logged.channel.live_key["key"])
    for n in range(12):
        client.sealed(client.register({"another": n}).expect(201).json["event_id"])
    client.close()
    eventually(lambda: second.metric("log_set_back") == 1, "it is reported")
    assert logged.trees() == kept
