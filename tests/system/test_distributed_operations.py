"""What operators of a distributed store are told, and what they do to it: set up, found out what is
missing, fail-over, another worker, backup."""

import collections
import contextlib
import http.client
import json
import os
import re
import subprocess
import textwrap
import threading
import time

import pytest

import stores  # finds tests/support
from client import BINARY, ROOT, Administration, Client, eventually
from distributed import MISSING, Distributed, offered
from fleet import Fleet, FleetNode, gapless
from ports import reserve_port
from postgres import ROLE, Cluster, Server
from program import Program, clean_environment, copy_keys

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
                        "max_connections (300): raise it, on its standbys too"}


def test_a_coordinator_that_would_wait_for_a_worker_is_told(store):
    short = "sslmode=disable connect_timeout=3 keepalives_idle=3"
    with configured(store.servers.coordinator, "citus.node_conninfo", short):
        problems, _ = found(store.settings)
        store.ask(f"REVOKE pg_read_all_settings FROM {ROLE}")
        hidden, _ = found(store.settings)
        store.ask(f"GRANT pg_read_all_settings TO {ROLE}")
    assert problems == {"coordinator: citus.node_conninfo lacks keepalives_interval, keepalives_count, "
                        "tcp_user_timeout: without them it does not find out in time that a worker was cut off"}
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
    assert told["standby"] == {f"coordinator: its own name, {standby}, is that of another server: {REMEDY}"}
    (problem,) = told["nowhere"]
    assert problem.startswith("coordinator: its own name, 127.0.0.1:1, does not answer (") and REMEDY in problem
    assert told["own"] == set()


def test_servers_that_are_not_known_are_told(store):
    name = store.servers.coordinator.create_database()
    settings = {**store.settings, "store.url": store.servers.url(name)}
    problems, _ = found(settings)
    assert problems == {"coordinator: the database distributes no tables: CREATE EXTENSION citus, or leave "
                        "store.sharded out"}
    assert found({**settings, "store.sharded": "false"}) == (set(), set())
    store.servers.primary.query("CREATE EXTENSION citus", name)
    problems, _ = found(settings)
    assert problems == {f"coordinator: it does not know its own name: {REMEDY}",
                        "coordinator: it knows no worker: call citus_add_node('HOST', PORT) for each"}


def test_a_distributed_store_without_the_setting_is_told(store):
    problems, _ = found({**store.settings, "store.sharded": "false"})
    assert problems == {"coordinator: its tables are distributed: store.sharded = true"}


def test_tables_that_are_not_distributed_are_told(store):
    store.ask(f"SET ROLE {ROLE}; SELECT undistribute_table('mails')")
    problems, _ = found(store.settings)
    assert problems == {"coordinator: tables that are not distributed as they are to be: 1, the first of them "
                        "mails: constancia store distribute"}
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
    few = ("coordinator: there are 1 shards for 2 workers, and none is ever divided: bring a backup into a "
           "database with more (citus.shard_count)")
    problems, _ = found(settings)
    (lone,) = problems - {few}
    assert few in problems and lone.endswith(": it has no shards: call citus_rebalance_start() on the coordinator")


def test_shards_of_the_coordinator_are_told(store, tmp_path):
    """As the extension makes them where it knows no worker yet."""
    servers = store.servers
    name = servers.coordinator.create_database()
    servers.primary.query("CREATE EXTENSION citus", name)
    settings = {**store.settings, "store.url": servers.url(name), "service.data_dir": tmp_path}
    run(settings, "init")
    run(settings, "store", "distribute")
    problems, _ = found(settings)
    assert any("it has 8 shards itself, which belong on workers" in problem for problem in problems), problems


# ---- from nothing, as it is written ----

PAGE = ROOT / "docs" / "operations.md"
PASSWORD = "…"  # as it stands there


def section(title):
    text = PAGE.read_text(encoding="utf-8")
    return re.search(rf"^### {re.escape(title)}$\n(.*?)(?=^##)", text, re.DOTALL | re.MULTILINE)[1]


def blocks(text):
    found = re.findall(r"^( *)```\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in found]


def steps():
    """[the blocks of step 1, of step 2, …]"""
    numbered = re.split(r"^\d\. ", section("From nothing"), flags=re.MULTILINE)[1:]
    found = [blocks(step.split("\n\n`store distribute`")[0]) for step in numbered]
    assert [len(one) for one in found] == [1, 1, 1, 1, 1, 2], "whatever is shown is done"
    return found


def settings_of(block):
    return dict(re.findall(r"^(\S+) = (.*)$", block, re.MULTILINE))


class WrittenServer(Server):
    """What the page says of its configuration stands in its file alone."""

    def settings(self):
        given = super().settings()
        return {name: given[name] for name in given if name not in self.cluster.written}


class WrittenCluster(Cluster):
    server_class = WrittenServer

    def __init__(self):
        (standbys,), (first,) = blocks(section("Standbys")), steps()[0]
        self.text = re.sub("^synchronous_standby_names.*$", "", standbys, flags=re.MULTILINE) + first
        self.written = settings_of(self.text)
        super().__init__(standbys=1, settings={"max_worker_processes": "32"})
        # The role enters by its password.
        with open(self.hba_file, "w", encoding="ascii") as file:
            file.write("local all all trust\nlocal replication all trust\n"
                       "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n")

    def configure(self):
        with open(os.path.join(self.primary.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.write(self.text)

    def make_role(self):
        pass

    def reconfigure(self, text):
        for server in self.servers:
            with open(os.path.join(server.data, "postgresql.conf"), "a", encoding="utf-8") as file:
                file.write(text)
            server.query("SELECT pg_reload_conf()")


class Written:
    """The servers of the page; its names stand for their addresses, and nothing is encrypted."""

    def __init__(self):
        self.coordinator, *self.workers = self.clusters = [WrittenCluster() for _ in range(3)]
        self.primary = self.coordinator.primary

    def __enter__(self):
        with contextlib.ExitStack() as ending:
            ending.callback(self.close)
            for cluster in self.clusters:
                cluster.start()
            ending.pop_all()
        return self

    def __exit__(self, *failure):
        self.close()

    def close(self):
        for cluster in self.clusters:
            cluster.close()

    def located(self, text, name):
        """The page's text for these servers, with another name for the database."""
        places = {"db1": self.coordinator.servers[0], "db2": self.coordinator.servers[1],
                  "worker1": self.workers[0].servers[0], "worker2": self.workers[1].servers[0]}
        for word, server in places.items():
            text = text.replace(f"'{word}', 5432", f"'127.0.0.1', {server.port}")
            text = re.sub(rf"(?<=[@,]){word}\b", f"127.0.0.1:{server.port}", text)
        text = text.replace("sslmode=verify-full", "sslmode=disable")
        return re.sub(r"(?<=DATABASE )constancia|(?<=/)constancia(?=\?)", name, text)

    def do(self, cluster, text, database, name, tolerant=False):
        """Statements each by itself, as psql has them."""
        ask = cluster.primary.attempt if tolerant else cluster.primary.query
        return ask(self.located(text, name), database)

    def step(self, number, name, tolerant=False, clusters=None):
        """All but the last one."""
        (text,) = steps()[number - 1]
        if number == 2:
            for cluster in clusters or self.clusters:
                self.do(cluster, blocks(section("Role and database"))[0], "postgres", name, tolerant)
                self.do(cluster, text, name, name, tolerant)
        elif number == 3:
            for worker in clusters or self.workers:
                self.do(worker, text, "postgres", name, tolerant)
        elif number == 4:
            self.coordinator.reconfigure(self.located(text, name))
        else:
            self.do(self.coordinator, text, name, name, tolerant)

    def settings(self, name, directory):
        """A file of settings with the page's, and what makes a service of one machine."""
        path = directory / "constancia.conf"
        path.write_text(self.located(steps()[5][0], name) + "[tsa]\nurl = embedded:\n[service]\n"
                        f"data_dir = {directory}/data\n[seal]\ninterval = 1s\n", encoding="utf-8")
        return path


@pytest.fixture(scope="module")
def written():
    with Written() as running:
        yield running


def shell(commands, settings, good=(0,)):
    """The page's commands, one behind the other, with those settings."""
    program = f"constancia() {{ {BINARY} \"$@\" --config={settings}; }}\n"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", program + commands], text=True,
                          env=clean_environment({"PGPASSWORD": PASSWORD}), capture_output=True, check=False)
    assert done.returncode in good, done.stdout + done.stderr
    return done.stdout + done.stderr


class OneNode(Administration, FleetNode):
    """By a file of settings."""

    def __init__(self, directory, settings):
        self.secrets = set()
        self.name, self.address, self.settings_file = "node", "127.0.0.1", settings
        self.port, self.admin_port = reserve_port(), reserve_port()
        Program.__init__(self, directory / "log", {"service.listen": f"127.0.0.1:{self.port}",
                                                   "service.admin_listen": f"127.0.0.1:{self.admin_port}"},
                         environment={"PGPASSWORD": PASSWORD})

    def chosen(self):
        return [f"--config={self.settings_file}", *super().chosen()]


def test_the_page_leads_from_nothing_to_a_certified_event(written, tmp_path):
    for number in range(2, 6):
        written.step(number, "constancia")
    settings = written.settings("constancia", tmp_path)
    said = shell(steps()[5][1], settings)
    assert "32 shards on 2 workers" in said and "The settings are good." in said, said
    node = OneNode(tmp_path, settings)
    try:
        node.start()
        node.describe_self()
        channel = node.new_channel()
        event = channel.live.register({"a": 1}, "first").expect(201).json
        eventually(lambda: is_sealed(channel, event), "it is sealed")
        made = channel.live.post("/v1/certifications", {"seq_from": 1, "seq_to": 1}, headers={
            "Idempotency-Key": "one"}).expect(202).json["certification_id"]
        eventually(lambda: channel.live.get(f"/v1/certifications/{made}").json["status"] == "completed",
                   "it is certified")
        assert node.admin("store", "check")["valid"]
        assert node.stop() == 0
    finally:
        node.kill()


@pytest.mark.parametrize("left_out, said", [
    (2, ["database \"{name}\" does not exist"]),
    (3, ["sessions have lock_timeout = 0", "sessions have jit = on", "sessions have enable_seqscan = on"]),
    (4, ["citus.node_conninfo lacks connect_timeout, keepalives_idle, keepalives_interval, keepalives_count, "
         "tcp_user_timeout"]),
    (5, ["does not know its own name", "knows no worker"]),
])
def test_a_step_that_is_left_out_is_told(written, tmp_path, left_out, said):
    """The others are done as far as they can be."""
    name = f"without{left_out}"
    for cluster in written.clusters:
        cluster.reconfigure("citus.node_conninfo = 'sslmode=disable'\n")
    for number in range(2, 6):
        if number != left_out:
            written.step(number, name, tolerant=True)
    told = shell("constancia config check --connect", written.settings(name, tmp_path), good=(1,))
    for words in said:
        assert words.format(name=name) in told, told


@pytest.mark.parametrize("part, first, said", [
    ("GRANT pg_read_all_stats", 0, "the role lacks pg_read_all_stats"),
    ("CREATE EXTENSION", 1, "knows no worker")])
def test_a_part_of_the_second_step_is_told(written, tmp_path, part, first, said):
    """Left out at all servers, or at the workers. Adding a worker gives the coordinator's grants to its role."""
    name = f"without{first}"
    before = re.sub(rf"^{part}.*$", "", blocks(section("Role and database"))[0], flags=re.MULTILINE)
    after = re.sub(rf"^{part}.*$", "", steps()[1][0], flags=re.MULTILINE)
    assert after != steps()[1][0]
    for cluster in written.clusters:
        cluster.primary.query(f"REVOKE pg_read_all_stats FROM {ROLE}")
    for cluster in written.clusters[:first]:
        written.step(2, name, tolerant=True, clusters=[cluster])
    for cluster in written.clusters[first:]:
        written.do(cluster, before, "postgres", name, tolerant=True)
        written.do(cluster, after, name, name, tolerant=True)
    for number in range(3, 6):
        written.step(number, name, tolerant=True)
    told = shell("constancia config check --connect", written.settings(name, tmp_path), good=(1,))
    assert said in told, told


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
    """At each node, for each channel. Behind it nothing that was acknowledged is missing, nor in doubt."""
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
               "registrations go on", patience=120)


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
        assert f"its own name, 127.0.0.1:{old.port}, is that of another server" in problem
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
    """One whose store is to come from a backup: nobody prepares it."""

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
