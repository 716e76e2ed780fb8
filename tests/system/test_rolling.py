"""Upgrades of nodes that serve: programs with one more step of the schema (tests/support/schema), a `rolling` one and
a `stop` one, take over from this one on PostgreSQL with a standby."""

import http.client
import json
import pathlib
import shutil
import socket
import threading

import pytest

from client import BINARY, Description, eventually
from fleet import Fleet, gapless
from postgres import Cluster
from program import NotStarted, flags, run
from test_proxy import Proxy, answers

pytestmark = pytest.mark.postgresql
ROLLING, STOP = (pathlib.Path(BINARY).with_name(f"constancia-{kind}") for kind in ("rolling", "stop"))
COMMIT_TIMEOUT = 15  # seconds; a busy machine is no reason to refuse


@pytest.fixture(scope="module")
def cluster():
    with Cluster(standbys=1) as running:
        yield running


@pytest.fixture
def fleet(tmp_path, cluster):
    with Fleet(tmp_path / "fleet", cluster=cluster, service__trusted_proxies="127.0.0.0/8",
               store__commit_timeout=f"{COMMIT_TIMEOUT}s", http__deadline="60s",
               http__drain_delay="8s") as running:
        yield running


@pytest.fixture
def proxy(fleet, tmp_path):
    assert shutil.which("haproxy"), "haproxy is not installed"
    running = Proxy(tmp_path, fleet.nodes)
    try:
        running.start()
        eventually(lambda: answers(running), "the proxy passes requests on")
        running.description = Description(running.client().get("/v1/openapi.yaml").body)
        yield running
    finally:
        running.stop()


class Load:
    """Registrations through the proxy all the time, one after the other in each of some channels. A request is sent
    once; its answer counts, whichever it is."""

    def __init__(self, fleet, proxy, count=6):
        self.fleet, self.proxy = fleet, proxy
        self.channels = [fleet.new_channel(credits=1000000) for _ in range(count)]
        self.receipts = [[] for _ in self.channels]
        self.refused = []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.register, args=(number,)) for number in range(count)]

    def register(self, number):
        client = self.proxy.client(self.channels[number].live_key["key"])
        while not self.over.is_set():
            try:
                answer = client.register({"n": len(self.receipts[number])})
            except (OSError, http.client.HTTPException, AssertionError) as failure:
                self.refused.append((number, repr(failure)))
                continue
            if answer.status == 201:
                self.receipts[number].append(answer.json)
            else:
                self.refused.append((number, repr(answer)))
            self.over.wait(0.02)
        client.close()

    def registered(self):
        return sum(map(len, self.receipts))

    def goes_on(self, what):
        """Each channel registers more events, from now on."""
        before = [len(some) for some in self.receipts]
        eventually(lambda: all(len(some) > count + 2 for some, count in zip(self.receipts, before)), what)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.goes_on("events are registered")
        return self

    def __exit__(self, *failure):
        self.over.set()
        for thread in self.threads:
            thread.join()


def migrate(fleet, binary, *words):
    """As an operator on any machine, with the new program."""
    return run([binary, "store", "migrate", "--json", *words, *flags(
        {**fleet.nodes[0].settings, "service.data_dir": fleet.directory})])


def migrated(fleet, binary, *words):
    done = migrate(fleet, binary, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def schema(fleet):
    return dict(fleet.rows("SELECT name, value FROM settings WHERE name LIKE 'schema%'"))


def upgraded(node, proxy, number, binary):
    """Restarts a node with another program, and blocks until the proxy uses it."""
    assert node.stop() == 0
    node.binary = str(binary)
    node.start()
    node.wait("/readyz")
    eventually(lambda: state(proxy)[number] == "UP", "the proxy has the node")


def state(proxy):
    """What the proxy holds of each node."""
    with socket.create_connection(("127.0.0.1", proxy.stats_port)) as stats:
        stats.sendall(b"show stat\n")
        text = b"".join(iter(lambda: stats.recv(65536), b"")).decode()
    lines = [line.split(",") for line in text.splitlines()]
    column = lines[0].index("status")
    return [line[column].split()[0] for line in lines if line[0] == "ready" and line[1].startswith("node")]


def has_schema(node, name):
    _, text = node.ask("/metrics")
    return f'schema="{name}"' in text


# ---- a step that older nodes can live with ----

def test_two_nodes_are_upgraded_one_after_the_other_and_no_registration_is_refused(fleet, proxy):
    before = schema(fleet)
    eventually(lambda: state(proxy) == ["UP", "UP"], "the proxy has both nodes")
    with Load(fleet, proxy) as load:
        planned = migrated(fleet, ROLLING, "--dry-run")
        assert planned == {"applied": False, "steps": ["900-rolling"], "kinds": ["rolling"]}
        assert schema(fleet) == before
        assert migrated(fleet, ROLLING) == {**planned, "applied": True}
        load.goes_on("nodes of the former version register in the new schema")
        (_, named) = sorted(schema(fleet).items())[1]
        last_stop = before["schema_programs"].split()[0]
        assert named == f"{last_stop} 900-rolling"
        certified = load.channels[0].live.certify(seq_from=1, seq_to=2).expect(202).json["certification_id"]
        upgraded(fleet.nodes[0], proxy, 0, BINARY)
        load.goes_on("one of them was started again, as after a crash")
        for number, node in enumerate(fleet.nodes):
            upgraded(node, proxy, number, ROLLING)
            assert has_schema(node, "900-rolling")
            load.goes_on("both versions register, or the new one alone")
        assert load.channels[0].live.settled(certified)["status"] == "completed"
    assert not load.refused, load.refused
    for channel, receipts in zip(load.channels, load.receipts):
        gapless(receipts)
        channel.live.sealed(receipts[-1]["event_id"])
    assert fleet.number("SELECT count(*) FROM events") == load.registered()
    fleet.check()
    channel = load.channels[0]
    assert channel.live.certified(seq_from=1, seq_to=len(load.receipts[0]))["status"] == "completed"


def test_a_step_waits_for_locks_in_short_attempts_and_registration_does_not_wait_for_it(fleet, proxy):
    """A session reads one of its tables for longer than a commit may take, as a backup does."""
    with Load(fleet, proxy, count=3) as load:
        holder = threading.Thread(target=fleet.query, args=(
            f"BEGIN; LOCK TABLE accounts IN ACCESS SHARE MODE; SELECT pg_sleep({COMMIT_TIMEOUT + 4}); COMMIT",))
        holder.start()
        eventually(lambda: fleet.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"),
                   "it is held")
        taken = migrated(fleet, ROLLING)
        assert not fleet.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        holder.join()
        assert taken["applied"]
        load.goes_on("events are registered in the new schema")
    assert not load.refused, load.refused
    fleet.check()


@pytest.mark.thorough
def test_a_step_that_never_gets_its_locks_changes_nothing(fleet):
    before = schema(fleet)
    holder = fleet.cluster.primary.session("BEGIN; LOCK TABLE chains IN ACCESS SHARE MODE;\n", fleet.database)
    eventually(lambda: fleet.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                    " AND state = 'idle in transaction' AND application_name = 'psql'"), "it is held")
    try:
        done = migrate(fleet, ROLLING)
    finally:
        holder.kill()
        holder.wait()
    assert done.returncode == 1 and "900-rolling" in done.stderr and "backup" in done.stderr, done.stderr
    assert "lock timeout" in done.stderr
    assert schema(fleet) == before
    assert fleet.rows("SELECT 1 FROM pg_tables WHERE tablename = 'later_facts'") == []


# ---- a step for which all nodes stop ----

def test_a_step_for_which_nodes_stop_is_refused_while_one_runs(fleet):
    before, (first, second) = schema(fleet), fleet.nodes
    planned = migrated(fleet, STOP, "--dry-run")
    assert planned == {"applied": False, "steps": ["900-stop"], "kinds": ["stop"]}
    sharded = migrated(fleet, ROLLING, "--dry-run", "--set=store.sharded=true")
    assert sharded == {"applied": False, "steps": ["900-rolling"], "kinds": ["stop"]}, "of distributed tables"
    channel = fleet.new_channel()
    for running in (fleet.nodes, [second]):
        for node in running:
            node.client(channel.live_key["key"]).register().expect(201)
        done = migrate(fleet, STOP)
        assert done.returncode == 1 and "127.0.0.1" in done.stderr, done.stderr
        assert "all nodes are stopped" in done.stderr and schema(fleet) == before
        for node in running:
            node.client(channel.live_key["key"]).register().expect(201)
        assert running[0].stop() == 0
    assert migrated(fleet, STOP) == {**planned, "applied": True}
    assert schema(fleet) == {"schema": "900-stop", "schema_programs": "900-stop 900-stop"}
    with pytest.raises(NotStarted, match="newer version"):
        first.start()
    done = first.run("store", "check")
    assert done.returncode == 1 and "900-stop" in done.stderr and "Install the newer version" in done.stderr
    for node in fleet.nodes:
        node.binary = str(STOP)
        node.start()
        node.client(channel.live_key["key"]).register().expect(201)
    fleet.check()


def test_a_node_that_missed_such_a_step_writes_nothing_more_and_says_why(fleet):
    """Its connections were cut meanwhile, so nothing showed that it ran."""
    before, node = schema(fleet), fleet.nodes[0]
    channel = fleet.new_channel()
    client = node.client(channel.live_key["key"])
    client.register().expect(201)

    def change(name, programs):
        fleet.query(f"UPDATE settings SET value = '{name}' WHERE name = 'schema';"
                    f"UPDATE settings SET value = '{programs}' WHERE name = 'schema_programs'")
    change("900-stop", "900-stop 900-stop")
    fleet.cluster.primary.terminate_backends(fleet.database)
    eventually(lambda: "Install the newer version" in (node.ask("/readyz") or (0, ""))[1], "it says what to do")
    status, text = node.ask("/readyz")
    assert status == 503 and "900-stop" in text
    count = fleet.number("SELECT count(*) FROM events")
    client.register().expect(503, "temporarily_unavailable")
    assert fleet.number("SELECT count(*) FROM events") == count
    change("900-rolling", before["schema_programs"])  # which is about another step
    client.register().expect(503, "temporarily_unavailable")
    change(before["schema"], before["schema_programs"])
    eventually(lambda: client.register().status == 201, "it continues")
    fleet.check()


def test_a_node_that_connects_during_such_a_step_waits_for_it(fleet):
    """The lock that the step holds until its end."""
    node = fleet.nodes[0]
    client = node.client(fleet.new_channel().live_key["key"])
    client.register().expect(201)
    holder = fleet.cluster.primary.session("SELECT pg_advisory_lock(4841921623073);\n", fleet.database)
    try:
        eventually(lambda: fleet.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
                   "it waits for those that are connected")
        fleet.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name = 'constancia'")
        eventually(lambda: "is being migrated" in (node.ask("/readyz") or (0, ""))[1], "it waits")
        client.register().expect(503, "temporarily_unavailable")
    finally:
        holder.kill()
        holder.wait()
    eventually(lambda: client.register().status == 201, "it continues")
