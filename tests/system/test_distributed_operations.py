"""What is reported to operators of a distributed store, and what they do to it: fail-over, another
worker, backup."""

import collections
import contextlib
import http.client
import json
import subprocess
import threading
import time

import pytest

from client import BINARY, Client, eventually
from distributed import MISSING, Distributed, offered
from fleet import Fleet, FleetNode, gapless
from postgres import ROLE, Cluster
from program import clean_environment, copy_keys

pytestmark = [pytest.mark.postgresql, pytest.mark.skipif(not offered(), reason=MISSING)]


def run(settings, *words, good=(0,)):
    done = subprocess.run([BINARY, *words, *(f"--set={name}={value}" for name, value in settings.items())],
                          env=clean_environment(), capture_output=True, text=True, check=False)
    assert done.returncode in good, done.stdout + done.stderr
    return done


def found(settings):
    """{(what, the problem)} of the store's servers, and the lines of those that are good."""
    done = run(settings, "config", "check", "--connect", "--json", good=(0, 1))
    told = json.loads(done.stdout)
    servers = [one for one in told["connections"] if one["what"] in ("coordinator", "shards")]
    problems = {one["text"] for one in servers if not one["ok"]}
    assert problems <= {one["problem"] for one in told["findings"] if "problem" in one}
    assert (done.returncode == 1) == (not told["valid"])
    return problems, {one["text"] for one in servers if one["ok"]}


def is_sealed(channel, event):
    return channel.live.get(f"/v1/events/{event['event_id']}").json["timestamp"]["type"] != "pending"


# ---- what config check tells ----

@pytest.fixture(scope="module")
def servers():
    with Distributed(standbys=1) as running:
        yield running


class Store:
    """A database on them with all that the documentation asks for, and its settings."""

    def __init__(self, servers, directory):
        self.servers = servers
        self.name = servers.create_database()
        self.settings = {"store.url": servers.url(self.name), "store.sharded": "true",
                         "store.require_replicas": 1, "service.data_dir": directory / "data",
                         "tsa.url": "embedded:"}
        run(self.settings, "init")
        run(self.settings, "store", "distribute")

    def ask(self, sql):
        return self.servers.primary.query(sql, self.name)


@pytest.fixture(scope="module")
def store(servers, tmp_path_factory):
    return Store(servers, tmp_path_factory.mktemp("store"))


def named(cluster):
    return f"127.0.0.1:{cluster.primary.port}"


def all_is_well(store):
    problems, good = found(store.settings)
    assert problems == set()
    assert good == {f"{named(store.servers.coordinator)}: 8 shards on 2 workers",
                    *(named(worker) for worker in store.servers.workers)}


def test_a_deployment_without_faults_has_none(store):
    all_is_well(store)


@pytest.mark.parametrize("setting, value, remedy", [
    ("lock_timeout", "0", "'5s'"), ("jit", "on", "off"), ("enable_seqscan", "on", "off")])
def test_what_sessions_of_a_worker_lack_is_told(store, setting, value, remedy):
    """As it reaches them, whatever its configuration says."""
    one, _ = store.servers.workers
    role = f"ALTER ROLE {ROLE} IN DATABASE {store.name}"
    one.primary.query(f"{role} RESET {setting}")
    try:
        problems, _ = found(store.settings)
    finally:
        one.primary.query(f"{role} SET {setting} = {remedy}")
    assert problems == {f"{named(one)}: sessions have {setting} = {value}: {role} SET {setting} = {remedy}"}
    all_is_well(store)


def test_a_worker_whose_sessions_do_not_wait_is_told(store):
    one, _ = store.servers.workers
    role = f"ALTER ROLE {ROLE} IN DATABASE {store.name}"
    one.primary.query(f"{role} SET synchronous_commit = 'local'")
    try:
        (problem,), _ = found(store.settings)
    finally:
        one.primary.query(f"{role} RESET synchronous_commit")
    assert problem == f"{named(one)}: postgresql: the server's synchronous_commit is local, not on"


def test_a_worker_without_its_standby_and_more_is_told_of_both(store):
    one, _ = store.servers.workers
    role = f"ALTER ROLE {ROLE} IN DATABASE {store.name}"
    one.primary.query(f"{role} RESET jit")
    one.standby.stop()
    try:
        problems, _ = found(store.settings)
    finally:
        one.standby.start()
        one.primary.wait_for_standbys()
        one.primary.query(f"{role} SET jit = off")
    assert len(problems) == 2 and all(problem.startswith(named(one)) for problem in problems)
    for words in ("0 synchronous standbys are connected", f"sessions have jit = on: {role} SET jit = off"):
        assert any(words in problem for problem in problems)


@pytest.mark.parametrize("at", ["coordinator", "worker"])
def test_rights_that_are_missing_are_told(store, at):
    cluster = store.servers.coordinator if at == "coordinator" else store.servers.workers[0]
    who = "coordinator" if at == "coordinator" else named(cluster)
    cluster.primary.query(f"REVOKE pg_read_all_stats FROM {ROLE}")
    try:
        problems, _ = found(store.settings)
    finally:
        cluster.primary.query(f"GRANT pg_read_all_stats TO {ROLE}")
    assert f"{who}: the role lacks pg_read_all_stats: GRANT pg_read_all_stats TO {ROLE}" in problems


@contextlib.contextmanager
def configured(cluster, setting, value):
    """Its primary runs with another value."""
    before = cluster.settings[setting]
    for given in (value, before):
        cluster.settings[setting] = given
        cluster.primary.stop()
        cluster.primary.start()
        cluster.primary.wait_for_standbys()
        if given == value:
            try:
                yield
            except BaseException:
                cluster.settings[setting] = before
                raise


def test_a_worker_with_room_for_few_prepared_transactions_is_told(store):
    one, _ = store.servers.workers
    with configured(one, "max_prepared_transactions", "299"):
        problems, _ = found(store.settings)
    assert problems == {f"{named(one)}: max_prepared_transactions is 299, less than the coordinator's "
                        "max_connections (300): increase it, also on the standbys"}


def test_a_coordinator_that_would_wait_for_a_worker_is_told(store):
    short = "sslmode=disable connect_timeout=3 keepalives_idle=3"
    with configured(store.servers.coordinator, "citus.node_conninfo", short):
        problems, _ = found(store.settings)
        store.ask(f"REVOKE pg_read_all_settings FROM {ROLE}")
        hidden, _ = found(store.settings)
        store.ask(f"GRANT pg_read_all_settings TO {ROLE}")
    assert problems == {"coordinator: citus.node_conninfo lacks keepalives_interval, keepalives_count, "
                        "tcp_user_timeout: without these the coordinator detects an unreachable worker too late"}
    assert hidden == {"coordinator: citus.node_conninfo is hidden from this role: "
                      f"GRANT pg_read_all_settings TO {ROLE}"}
    all_is_well(store)


def test_another_version_of_the_extension_is_told(store):
    one, _ = store.servers.workers
    version = one.primary.query("SELECT extversion FROM pg_extension WHERE extname = 'citus'", store.name)
    change = "SET allow_system_table_mods = on; UPDATE pg_extension SET extversion = '{}' WHERE extname = 'citus'"
    one.primary.query(change.format("13.2-0"), store.name)
    try:
        problems, _ = found(store.settings)
    finally:
        one.primary.query(change.format(version), store.name)
    assert problems == {f"{named(one)}: the extension is '13.2-0', the coordinator's is '{version}': "
                        "ALTER EXTENSION citus UPDATE"}


REMEDY = "call citus_set_coordinator_host('HOST', PORT)"


def test_a_coordinator_under_a_name_that_is_not_its_own_is_told(store):
    """As one is that was promoted."""
    coordinator = store.servers.coordinator
    standby = f"127.0.0.1:{coordinator.standby.port}"
    told = {}
    for port, where in ((coordinator.standby.port, "standby"), (1, "nowhere"), (coordinator.primary.port, "own")):
        store.ask(f"SELECT citus_set_coordinator_host('127.0.0.1', {port})")
        told[where], _ = found(store.settings)
    assert told["standby"] == {f"coordinator: its own address, {standby}, leads to another server: {REMEDY}"}
    (problem,) = told["nowhere"]
    assert problem.startswith("coordinator: its own address, 127.0.0.1:1, does not answer (") and REMEDY in problem
    assert told["own"] == set()


def test_servers_that_are_not_known_are_told(store):
    name = store.servers.coordinator.create_database()
    settings = {**store.settings, "store.url": store.servers.url(name)}
    problems, _ = found(settings)
    assert problems == {"coordinator: the database distributes no tables: CREATE EXTENSION citus, or remove "
                        "store.sharded"}
    assert found({**settings, "store.sharded": "false"}) == (set(), set())
    store.servers.primary.query("CREATE EXTENSION citus", name)
    problems, _ = found(settings)
    assert problems == {f"coordinator: the coordinator has no entry for itself: {REMEDY}",
                        "coordinator: no workers are registered: call citus_add_node('HOST', PORT) for each"}


def test_a_distributed_store_without_the_setting_is_told(store):
    problems, _ = found({**store.settings, "store.sharded": "false"})
    assert problems == {"coordinator: its tables are distributed: set store.sharded = true"}


def test_tables_that_are_not_distributed_are_told(store):
    store.ask(f"SET ROLE {ROLE}; SELECT undistribute_table('mails')")
    problems, _ = found(store.settings)
    assert problems == {"coordinator: 1 tables are not distributed as required, the first is "
                        "mails: run constancia store distribute"}
    run(store.settings, "store", "distribute")
    all_is_well(store)


def test_fewer_shards_than_workers_are_told(store, tmp_path):
    servers = store.servers
    name = servers.create_database()
    servers.primary.query(f"ALTER DATABASE {name} SET citus.shard_count = 1")
    settings = {**store.settings, "store.url": servers.url(name), "service.data_dir": tmp_path}
    problems, _ = found(settings)
    assert problems == {f"coordinator: citus.shard_count is 1 for 2 workers: ALTER DATABASE {name} SET "
                        "citus.shard_count = 32"}
    run(settings, "init")
    run(settings, "store", "distribute")
    few = ("coordinator: there are 1 shards for 2 workers, and shards are never split: restore a "
           "backup into a database with a higher citus.shard_count")
    problems, _ = found(settings)
    (lone,) = problems - {few}
    assert few in problems and lone.endswith(": the worker has no shards: call citus_rebalance_start() on the coordinator")


def test_shards_of_the_coordinator_are_told(store, tmp_path):
    """As the extension makes them where it knows no worker yet."""
    servers = store.servers
    name = servers.coordinator.create_database()
    servers.primary.query("CREATE EXTENSION citus", name)
    settings = {**store.settings, "store.url": servers.url(name), "service.data_dir": tmp_path}
    run(settings, "init")
    run(settings, "store", "distribute")
    problems, _ = found(settings)
    assert any("the coordinator holds 8 shards, which belong on workers" in problem for problem in problems), problems


# ---- what is done while clients register ----

class Load(threading.Thread):
    """One client of a channel at a node: each declaration is repeated until it is acknowledged."""

    def __init__(self, node, channel, name):
        super().__init__(daemon=True)
        self.client, self.name = Client(node, channel.live_key["key"]), name
        self.channel = channel
        self.receipts, self.refused = {}, collections.Counter()
        self.failure, self.stopping = None, False

    def ask(self, ref):
        try:
            answer = self.client.register({"ref": ref}, ref)
        except (OSError, http.client.HTTPException):
            return False
        if answer.status in (200, 201):
            self.receipts[ref] = answer.json
            return True
        assert answer.status == 503 and answer.headers["Retry-After"], (answer.status, answer.body)
        self.refused[answer.json["code"]] += 1
        time.sleep(0.05)
        return False

    def run(self):
        try:
            while not self.stopping:
                ref = f"{self.name}-{len(self.receipts)}"
                eventually(lambda: self.ask(ref), f"{ref} is acknowledged", patience=120, pause=0)
                time.sleep(0.05)
        except BaseException as error:
            self.failure = error


@contextlib.contextmanager
def loaded(fleet, channels):
    """At each node, for each channel. Afterwards nothing that was acknowledged is missing, nor in doubt."""
    load = [Load(node, channel, f"{node.name}-{number}")
            for node in fleet.nodes for number, channel in enumerate(channels)]
    for one in load:
        one.start()
    try:
        yield load
        goes_on(load)
    finally:
        for one in load:
            one.stopping = True
        for one in load:
            one.join()
    assert [one.failure for one in load if one.failure] == []
    held = dict(fleet.rows("SELECT client_ref, encode(chain_hash, 'hex') FROM events"))
    for channel in channels:
        receipts = {ref: receipt for one in load if one.channel is channel for ref, receipt in one.receipts.items()}
        gapless(sorted(receipts.values(), key=lambda receipt: receipt["sequence"]))
        assert all(held[ref] == receipt["chain_hash"] for ref, receipt in receipts.items())
    fleet.check()


def goes_on(load, by=5):
    """Each client is acknowledged some more."""
    before = [len(one.receipts) for one in load]
    eventually(lambda: all(one.failure or len(one.receipts) >= count + by for one, count in zip(load, before)),
               "registrations continue", patience=120)


@pytest.fixture
def own_servers():
    """For what changes them for good."""
    with Distributed(standbys=1, settings={"wal_level": "logical"}) as running:
        yield running


@pytest.fixture
def fleet(own_servers, tmp_path):
    made = Fleet(tmp_path, count=2, cluster=own_servers, store__require_replicas=1, store__sharded="true",
                 store__commit_timeout="2s")
    prepared = made.nodes[0].run("store", "distribute")
    assert prepared.returncode == 0, prepared.stderr
    with made:
        yield made


def one_on_each(servers, fleet):
    """A channel on each worker."""
    found = {}

    def one_more():
        channel = fleet.new_channel(credits=1000000)
        found.setdefault(port_of(servers, fleet, channel), channel)
        return len(found) == len(servers.workers)
    eventually(one_more, "each worker has an account", pause=0)
    return list(found.values())


def port_of(servers, fleet, channel):
    """Of the worker that has its account."""
    return servers.primary.number(
        "SELECT nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE shardid = "
        "get_shard_id_for_distribution_column('accounts', (SELECT account FROM accounts WHERE "
        f"account_id = '{channel.account_id}'))", fleet.database)


def test_the_coordinator_and_a_worker_fail_over_under_load(own_servers, fleet):
    servers = own_servers
    with loaded(fleet, one_on_each(servers, fleet)) as load:
        goes_on(load)
        coordinator = servers.coordinator
        coordinator.primary.kill()
        old = coordinator.fail_over()
        coordinator.rebuild(old)
        goes_on(load)
        # Not before: its commit waits for a standby, too.
        (problem,) = found(fleet.nodes[0].settings)[0]
        assert f"its own address, 127.0.0.1:{old.port}, leads to another server" in problem
        servers.primary.query(f"SELECT citus_set_coordinator_host('127.0.0.1', {servers.primary.port})",
                              fleet.database)
        worker = servers.workers[0]
        worker.primary.kill()
        old = worker.fail_over()
        servers.primary.query(
            f"SELECT citus_update_node(nodeid, '127.0.0.1', {worker.primary.port}) FROM pg_dist_node "
            f"WHERE nodeport = {old.port}", fleet.database)
        worker.rebuild(old)
    for cluster in servers.clusters:
        cluster.primary.wait_for_standbys()
    assert found(fleet.nodes[0].settings)[0] == set()


def test_a_worker_more_takes_shards_under_load(own_servers, fleet):
    servers = own_servers
    channels = [channel for _ in range(4) for channel in one_on_each(servers, fleet)]
    with loaded(fleet, channels) as load:
        goes_on(load)
        servers.add_worker(fleet.database)
        before = {channel: port_of(servers, fleet, channel) for channel in channels}
        assert any("has no shards" in problem for problem in found(fleet.nodes[0].settings)[0])
        servers.primary.query("SELECT citus_rebalance_start()", fleet.database)
        eventually(lambda: servers.primary.query(
            "SELECT count(*) FROM pg_dist_background_job WHERE state NOT IN ('finished', 'failed')",
            fleet.database) == "0", "shards are moved", patience=300, pause=1)
        states = servers.primary.rows("SELECT DISTINCT status FROM pg_dist_background_task", fleet.database)
        assert states == [["done"]], servers.primary.rows("SELECT * FROM pg_dist_background_task", fleet.database)
        moved = [channel for channel in channels if port_of(servers, fleet, channel) != before[channel]]
        assert moved, "some were moved"
        goes_on(load)
    for channel in moved:
        event = channel.live.register({}, "behind it").expect(201).json
        eventually(lambda: is_sealed(channel, event), "nodes find where it is, and seal it", patience=120)
    assert found(fleet.nodes[0].settings)[0] == set()


# ---- backup ----

class Restored(Fleet):
    """A deployment whose store is to come from a backup: it is not initialized."""

    def __init__(self, directory, cluster):
        super().__init__(directory, count=0, cluster=cluster, store__require_replicas=1, store__sharded="true")
        self.nodes.append(FleetNode(self, "node1"))


def test_a_backup_comes_back_to_other_servers(own_servers, fleet, tmp_path):
    """Taken while no service runs, as the page says."""
    channels = one_on_each(own_servers, fleet)
    receipts = {channel: [channel.live.register({"n": n}, f"{n}").expect(201).json for n in range(20)]
                for channel in channels}
    for node in fleet.nodes:
        assert node.stop() == 0
    backup = tmp_path / "backup"
    fleet.nodes[0].admin("store", "backup", backup)
    with Distributed(standbys=1) as others:
        restored = Restored(tmp_path / "restored", others)
        node = restored.nodes[0]
        copy_keys(fleet.nodes[0].data, node.data)
        for words in (("restore", "--live", backup), ("distribute",)):
            done = node.run("store", *words)
            assert done.returncode == 0, done.stderr
        assert node.admin("store", "check")["valid"]
        assert found(node.settings)[0] == set()
        with restored:
            for channel, before in receipts.items():
                client = node.client(channel.live_key["key"])
                for receipt in before:
                    held = client.get(f"/v1/events/{receipt['event_id']}").expect(200).json
                    assert (held["chain_hash"], held["sequence"]) == (receipt["chain_hash"], receipt["sequence"])
                assert client.register({"n": 0}, "0").expect(200).json["event_id"] == before[0]["event_id"]
                assert client.register({}, "behind it").expect(201).json["sequence"] == len(before) + 1
            restored.check()


# ---- a server that does not know that it was replaced ----

@pytest.fixture
def with_two_standbys():
    """One worker, so that a standby is left to the old primary and one can be promoted."""
    servers = Distributed(standbys=1, workers=0)
    servers.workers = [Cluster(2, settings=dict(servers.coordinator.settings))]
    with servers:
        yield servers


def test_a_primary_that_was_replaced_and_lives_on_acknowledges_nothing(with_two_standbys, tmp_path):
    """It still has a standby of its own, and the node its connection. What was acknowledged is at
    the new one, which alone continues."""
    servers = with_two_standbys
    (worker,) = servers.workers
    made = Fleet(tmp_path, count=1, cluster=servers, store__require_replicas=1, store__sharded="true",
                 store__commit_timeout="2s")
    made.nodes[0].run("store", "distribute")
    with made as fleet:
        channel = fleet.new_channel()
        for ref in ("a", "b"):
            channel.live.register({}, ref).expect(201)
        old = worker.fail_over()
        servers.primary.query(
            f"SELECT citus_update_node(nodeid, '127.0.0.1', {worker.primary.port}) FROM pg_dist_node "
            f"WHERE nodeport = {old.port}", fleet.database)
        assert old.synchronous_standbys() == 1
        for ref in ("c", "d", "c"):
            channel.live.register({}, ref).expect(503)
        for standby in worker.standbys:
            if standby is not old:
                worker.rebuild(standby)
        worker.primary.wait_for_standbys(1)

        def registered():
            answer = channel.live.register({}, "e")
            return answer.status in (200, 201) and answer.json
        event = eventually(registered, "the new one registers, while the old one lives")
        assert event["sequence"] in (3, 4)
        assert channel.live.get(f"/v1/events/{event['event_id']}").expect(200).json["chain_hash"] == \
            event["chain_hash"]
        old.stop()
        fleet.check()
