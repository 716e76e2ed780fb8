"""A distributed store from nothing, as docs/operate/sharding.md has it, block by block."""

import contextlib
import os
import re
import subprocess
import textwrap

import pytest

from client import BINARY, ROOT, Administration, eventually
from distributed import MISSING, offered
from fleet import FleetNode
from ports import reserve_port
from postgres import ROLE, Cluster, Server
from program import Program, clean_environment

pytestmark = [pytest.mark.postgresql, pytest.mark.skipif(not offered(), reason=MISSING)]
PAGES = [ROOT / "docs/operate" / name for name in ("postgresql.md", "sharding.md")]
PASSWORD = "…"  # the placeholder of the page


def section(title):
    text = "\n## \n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return re.search(rf"^##+ {re.escape(title)}$\n(.*?)(?=^##)", text, re.DOTALL | re.MULTILINE)[1]


def blocks(text):
    found = re.findall(r"^( *)```\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in found]


def steps():
    """[the blocks of step 1, of step 2, …]"""
    numbered = re.split(r"^\d\. ", section("Setup"), flags=re.MULTILINE)[1:]
    found = [blocks(step.split("\n\n`store distribute`")[0]) for step in numbered]
    assert [len(one) for one in found] == [1, 1, 1, 1, 1, 2], "whatever is shown is done"
    return found


def settings_of(block):
    return dict(re.findall(r"^(\S+) = (.*)$", block, re.MULTILINE))


class WrittenServer(Server):
    """What the page says of its configuration is in its file alone."""

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
        """Each statement separately, as psql has them."""
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
    """The page's commands, in order, with those settings."""
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
    assert "32 shards on 2 workers" in said and "The settings are valid." in said, said
    node = OneNode(tmp_path, settings)
    try:
        node.start()
        node.describe_self()
        channel = node.new_channel()
        event = channel.live.register({"a": 1}, "first").expect(201).json
        eventually(lambda: channel.live.get(f"/v1/events/{event['event_id']}").json["timestamp"]["type"] !=
                   "pending", "it is sealed")
        made = channel.live.post("/v1/certifications", {"seq_from": 1, "seq_to": 1}, headers={
            "Idempotency-Key": "one"}).expect(202).json["certification_id"]
        eventually(lambda: channel.live.get(f"/v1/certifications/{made}").json["status"] == "completed",
                   "it is certified")
        assert node.admin("store", "check")["valid"]
        assert node.stop() == 0
    finally:
        node.kill()


def test_a_machine_that_reaches_no_worker_itself_is_told(written, tmp_path):
    """Its passwords are those of the coordinator alone."""
    for number in range(2, 6):
        written.step(number, "alone", tolerant=number == 2)  # the role is there already
    settings = written.settings("alone", tmp_path)
    shell(steps()[5][1], settings)
    passwords = tmp_path / "passwords"
    port = written.coordinator.primary.port
    passwords.write_text(f"127.0.0.1:{port}:*:{ROLE}:{PASSWORD}\n", encoding="utf-8")
    passwords.chmod(0o600)
    done = subprocess.run([BINARY, "config", "check", "--connect", f"--config={settings}"], text=True,
                          env=clean_environment({"PGPASSFILE": str(passwords)}), capture_output=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    for worker in written.workers:
        (line,) = [line for line in done.stdout.splitlines()
                   if "which must connect to it directly for registrations" in line
                   and str(worker.primary.port) in line]
        assert "password" in line


@pytest.mark.parametrize("left_out, said", [
    (2, ["database \"{name}\" does not exist"]),
    (3, ["sessions have lock_timeout = 0", "sessions have jit = on", "sessions have enable_seqscan = on"]),
    (4, ["citus.node_conninfo lacks connect_timeout, keepalives_idle, keepalives_interval, keepalives_count, "
         "tcp_user_timeout"]),
    (5, ["the coordinator has no entry for itself", "no workers are registered"]),
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
    ("CREATE EXTENSION", 1, "no workers are registered")])
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
