"""Two sites as docs/operate/second-site.md has them, of processes of this machine: PostgreSQL servers a1, a2, b1
and b2, a node and an S3 service at each site. The commands of the page run as they are written. Small programs stand
in for sudo, systemctl, rsync and rclone, and the names of hosts and paths are replaced by those of this machine."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socketserver
import stat
import subprocess
import textwrap
import threading
import time
import types

import s3_server
from client import BINARY, ROOT, Administration, Client, eventually
from fleet import FleetNode
from link import Link
from postgres import ROLE, Cluster, Failed, Server, as_server, programs, unprivileged
from program import NotStarted, clean_environment, copy_keys, flags

PAGE = ROOT / "docs/operate/second-site.md"
UNIT = "postgresql@15-main"
STAND_IN = """#!/bin/sh
exec python3 -S -c '
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as harness:
    harness.connect(os.environ["SITES_HARNESS"])
    harness.sendall(json.dumps([os.environ["SITES_HOST"], *sys.argv[1:]]).encode() + b"\\n")
    status, text = json.loads(harness.makefile().read())
(sys.stderr if status else sys.stdout).write(text)
sys.exit(status)' {name} "$@"
"""


# ---- the page ----

def section(title):
    text = PAGE.read_text(encoding="utf-8")
    return re.search(rf"^## {re.escape(title)}$\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)[1]


def blocks(title, language="sh"):
    """The code blocks of a section in that language."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", section(title), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, given, block in found if given == language]


def by_host(block):
    """[(host, commands), …], by the comments that name the host."""
    parts = re.split(r"^# on (\S+)$\n", block, flags=re.MULTILINE)
    assert parts[0] == "", parts[0]
    return list(zip(parts[1::2], parts[2::2]))


def server_settings(mode):
    """The settings of each server: the block that all have, and the table."""
    common = "".join(block for block in blocks("Setup", "") if "wal_log_hints" in block)
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")]
            for line in section("Setup").splitlines() if line.startswith("|")]
    head, _, *rest = rows
    given = {}
    for number, name in enumerate(head[1:], 1):
        chosen = {row[0].split("`")[0]: row[number] for row in rest if "mode" not in row[0] or f", {mode}" in row[0]}
        given[name] = common + "".join(f"{key} = {value}\n" for key, value in chosen.items())
    return given


# ---- the machines ----

class SiteServer(Server):
    """A server whose configuration is outside its data directory, as Debian has it."""

    masked = False

    def __init__(self, cluster, name):
        super().__init__(cluster, name)
        self.etc = os.path.join(self.directory, "etc")
        self.own = os.path.join(self.etc, "conf.d", "site.conf")
        os.makedirs(os.path.dirname(self.own))

    def settings(self):
        return {name: value for name, value in super().settings().items()
                if name not in ("cluster_name", "primary_conninfo", "synchronous_standby_names")}

    def configure(self, text):
        with open(os.path.join(self.etc, "postgresql.conf"), "w", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self.settings().items())
            file.write("include_dir = 'conf.d'\n")
        with open(self.own, "w", encoding="utf-8") as file:
            file.write(text)

    def spawn(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                as_server([os.path.join(programs(), "postgres"), "-D", self.data,
                           "-c", f"config_file={self.etc}/postgresql.conf"]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")

    def systemctl(self, verb, now):
        if verb in ("mask", "unmask"):
            self.masked = verb == "mask"
        if verb == "start":
            assert not self.masked, f"{self} is masked"
            self.start()
        elif verb == "reload":
            self.query("SELECT pg_reload_conf()")
        elif verb == "stop" or now:
            self.stop()


class SiteNode(Administration, FleetNode):
    """A node by a file of settings, which clients reach by the common name."""

    masked = False

    def __init__(self, sites, name, server, address):
        self.secrets = {server.secret_key}
        self.sites, self.public = sites, address
        self.settings_file = sites.scratch / f"{name}.conf"
        deployment = types.SimpleNamespace(directory=str(sites.scratch), binary=BINARY, settings={
            "tsa.url": "embedded:", "seal.interval": "1s", "rate.live": "1000000", "service.public_url": address,
            "http.connections_per_address": "1000", "content.access_key": server.access_key,
            "content.secret_key": server.secret_key, "content.allow_networks": "127.0.0.0/8",
            "content.timeout": "3s"})
        FleetNode.__init__(self, deployment, name)

    @property
    def public_url(self):
        return self.public

    def chosen(self):
        return [f"--config={self.settings_file}", *super().chosen()]

    def systemctl(self, verb, now):
        if verb in ("mask", "unmask"):
            self.masked = verb == "mask"
        if verb in ("stop", "restart", "mask", "disable") and (now or verb in ("stop", "restart")):
            self.stop()
        if verb in ("start", "restart") or (verb == "enable" and now):
            assert not self.masked, f"{self} is masked"
            if not self.alive():
                self.start()


class Replication(threading.Thread):
    """Copies what appears in one bucket to another one, after a delay. Deletions are not copied."""

    def __init__(self, source, target, delay=0.3):
        super().__init__(daemon=True)
        self.source, self.target, self.delay = source, target, delay
        self.ended = threading.Event()
        self.start()

    def run(self):
        seen = {}
        while not self.ended.wait(0.05):
            with self.source.lock:
                found = {key: entry["path"] for key, entry in self.source.objects.items()}
            now = time.monotonic()
            for key, path in found.items():
                since, copied = seen.setdefault((key, path), (now, False))
                if not copied and now - since >= self.delay:
                    seen[key, path] = since, True
                    copy_object(self.source, self.target, key)

    def stop(self):
        self.ended.set()
        self.join()


def copy_object(source, target, key):
    with source.lock:
        entry = source.objects.get(key)
        if entry is None:
            return
        path = pathlib.Path(target.directory) / f"copy-{os.urandom(8).hex()}"
        shutil.copy(entry["path"], path)
    with target.lock:
        target.objects[key] = {**entry, "path": str(path), "changed": int(time.time())}


# ---- both sites ----

class Sites(Cluster):
    """`name` is what clients connect to: it leads to a node at first, and `point_at` changes that."""

    server_class = SiteServer
    page = PAGE

    def __init__(self, directory, mode="synchronous"):
        super().__init__(standbys=3, settings={"wal_keep_size": "0"})
        self.scratch = pathlib.Path(directory)
        for server, name in zip(self.servers, ("a1", "a2", "b1", "b2")):
            server.name = name
        self.a1, self.a2, self.b1, self.b2 = self.servers
        self.hosts = {server.name: server for server in self.servers}
        with open(self.hba_file, "a", encoding="ascii") as file:
            file.write("host replication all 127.0.0.1/32 trust\n")
        # What one site reaches of the other passes here.
        self.between = {name: Link(("127.0.0.1", self.hosts[name].port)) for name in ("a1", "b1")}
        self.buckets = {}
        for site in "ab":
            os.makedirs(self.scratch / f"s3-{site}")
            self.buckets[site] = s3_server.Server(self.scratch / f"s3-{site}", region="us-east-1")
        self.name = Link(("127.0.0.1", 1))
        self.port, self.description = self.name.port, None  # for a Client
        self.public_url = address = f"http://127.0.0.1:{self.name.port}"
        self.node_a, self.node_b = (SiteNode(self, f"node-{site}", self.buckets[site], address) for site in "ab")
        self.hosts.update({"node-a": self.node_a, "node-b": self.node_b})
        self.configure_servers(mode)
        self.configure_nodes(mode)
        self.replication = None
        self.make_programs()

    def standby_names(self):
        return ""

    def configure_servers(self, mode):
        given = server_settings(mode)
        for server in self.servers:
            server.configure(self.located(given[server.name], server.name))

    def configure_nodes(self, mode):
        for node, text in zip((self.node_a, self.node_b),
                              [block for block in blocks("Setup", "") if block.startswith("# node-")]):
            assert text.startswith(f"# {node.name}\n")
            if mode == "asynchronous":
                text = text.replace("require_replicas = 2", "require_replicas = 1")
            node.settings_file.write_text(self.located(text, node.name), encoding="utf-8")

    # ---- the page's commands ----

    def located(self, text, host):
        """The page's text on that host, with the places of this machine."""
        for name in ("a1", "b1"):
            server = self.hosts[name]
            direct = f"host={server.directory} port={server.port}"
            far = f"host=127.0.0.1 port={self.between[name].port}"
            text = text.replace(f"host={name} ", f"{direct if host[0] == name[0] else far} ")
        for site in "ab":
            first, second = (self.hosts[f"{site}{number}"].port for number in (1, 2))
            text = text.replace(f"@{site}1,{site}2/", f"@127.0.0.1:{first},127.0.0.1:{second}/")
            text = text.replace(f"https://s3.{site}.example.net", self.buckets[site].endpoint)
            text = text.replace(f"node-{site}:/var/lib/constancia", str(self.hosts[f"node-{site}"].data))
        here = self.hosts[host]
        if isinstance(here, Server):
            text = text.replace("/var/lib/postgresql/15/main", here.data)
            text = text.replace("/etc/postgresql/15/main", here.etc)
            text = text.replace("/usr/lib/postgresql/15/bin", programs())
        else:
            text = text.replace("/var/lib/constancia", here.data)
            text = text.replace("/etc/constancia/constancia.conf", str(here.settings_file))
        return text.replace("/tmp/events-of", f"{self.scratch}/events-of")

    def make_programs(self):
        self.programs = self.scratch / "bin"
        self.programs.mkdir()
        user = unprivileged()
        drop = f"setpriv --reuid {user.pw_uid} --regid {user.pw_gid} --init-groups" if user else ""
        texts = {name: STAND_IN.replace("{name}", name) for name in ("systemctl", "rclone", "rsync")}
        texts["sudo"] = textwrap.dedent(f"""\
            #!/bin/sh
            drop=
            if [ "$1" = -u ]; then [ "$2" = postgres ] && drop="{drop}"; shift 2; fi
            exec $drop "$@"
            """)
        texts["constancia"] = f'#!/bin/sh\neval "exec \'{os.path.abspath(BINARY)}\' \\"\\$@\\" $SITES_FLAGS"\n'
        for name, text in texts.items():
            path = self.programs / name
            path.write_text(text, encoding="utf-8")
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        harness = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                host, program, *words = json.loads(self.rfile.readline())
                try:
                    answer = getattr(harness, f"do_{program}")(host, words)
                except (AssertionError, Failed, NotStarted) as error:
                    answer = 1, f"{error}\n"
                self.wfile.write(json.dumps(answer).encode())
        self.socket = str(self.scratch / "harness")
        # One thread that lasts: what it starts ends with it.
        self.server = socketserver.UnixStreamServer(self.socket, Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def run(self, host, commands, good=(0,)):
        """Runs commands of the page on a host and returns what they print."""
        here = self.hosts[host]
        environment = clean_environment({"PATH": f"{self.programs}:{programs()}:{os.environ['PATH']}",
                                         "SITES_HOST": host, "SITES_HARNESS": self.socket})
        if isinstance(here, Server):
            environment.update(PGHOST=here.directory, PGPORT=str(here.port), PGUSER="postgres")
        else:
            environment["SITES_FLAGS"] = " ".join(f"'{word}'" for word in here.chosen())
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.located(commands, host)], cwd="/",
                              env=environment, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode in good, f"{host}: {commands}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def run_block(self, block):
        """Runs a block of the page on its hosts; returns what each of them prints."""
        return [self.run(host, commands) for host, commands in by_host(block)]

    def do_systemctl(self, host, words):
        now = "--now" in words
        verb, *units = [word for word in words if word != "--now"]
        here = self.hosts[host]
        wanted = ({UNIT},) if isinstance(here, Server) else ({"constancia.socket", "constancia.service"},
                                                              {"constancia"})
        assert set(units) in wanted, words
        here.systemctl(verb, now)
        return 0, ""

    def do_rsync(self, _, words):
        option, source, target = words
        assert option == "-a"
        shutil.copy2(source, target + ".copy")
        os.replace(target + ".copy", target)
        return 0, ""

    def do_rclone(self, _, words):
        verb, *options, source, target = words
        given, wanted = (self.buckets[re.fullmatch(r"site-([ab]):evidence/constancia", word)[1]]
                         for word in (source, target))
        keys = {key for key in given.objects if key.startswith("constancia/")}
        if verb == "check":
            assert options == ["--one-way", "--size-only"]
            differing = [key for key in keys if key not in wanted.objects
                         or given.objects[key]["size"] != wanted.objects[key]["size"]]
            return int(bool(differing)), f"{len(differing)} differences found {differing}\n"
        assert verb == "copy"
        if options == ["--ignore-existing", "--exclude", "/installation"]:
            keys -= {"constancia/installation", *wanted.objects}
        else:
            assert options == ["--checksum"]
        for key in keys:
            if key not in wanted.objects or given.objects[key]["etag"] != wanted.objects[key]["etag"]:
                copy_object(given, wanted, key)
        return 0, ""

    # ---- their life ----

    def start(self):
        try:
            return self.set_up()
        except BaseException:
            self.close()
            raise

    def set_up(self):
        """Does the section Setup of the page. The first server exists, as Debian's package leaves it."""
        self.make_template()
        subprocess.run(["cp", "-a", os.path.join(self.template, "data"), self.a1.data], check=True)
        # No commit can wait for standbys that do not exist yet.
        self.a1.start()
        self.a1.query(f"SET synchronous_commit TO local; CREATE ROLE {ROLE} LOGIN;"
                      f"GRANT pg_read_all_stats TO {ROLE};")
        self.a1.query(f"SET synchronous_commit TO local; CREATE DATABASE constancia OWNER {ROLE}")
        (command, *_) = [block for block in blocks("Setup") if "CREATE ROLE replicator" in block]
        self.run_block(command)
        copied = dict(by_host(command))["b2"]
        self.run("a2", copied.replace("host=b1", "host=a1").replace("-S b2", "-S a2"))
        eventually(lambda: self.streaming(self.a1) == {"a2", "b1"} and self.streaming(self.b1) == {"b2"},
                   "all standbys follow")
        done = self.node_a.run("init")
        assert done.returncode == 0, done.stderr
        os.makedirs(self.node_b.data, mode=0o700)
        copy_keys(self.node_a.data, self.node_b.data)
        self.node_a.start()
        self.point_at(self.node_a)
        self.replicate("a", "b")
        return self

    def streaming(self, server):
        return {name for (name,) in server.rows("SELECT application_name FROM pg_stat_replication "
                                                "WHERE state = 'streaming'")}

    def point_at(self, node):
        """Makes the clients' name lead to that node."""
        self.name.server = ("127.0.0.1", node.port)
        self.name.reset()

    def replicate(self, source, target):
        self.stop_replication()
        self.replication = Replication(self.buckets[source], self.buckets[target])

    def stop_replication(self):
        if self.replication:
            self.replication.stop()
        self.replication = None

    def destroy_site_a(self):
        """Kills everything at A at once, as a failure of its power does."""
        for link in self.between.values():
            link.cut()
        self.node_a.kill()
        self.a1.kill()
        self.a2.kill()
        self.name.cut()
        for link in (*self.between.values(), self.name):
            link.join()

    def client(self, key):
        return Client(self, key)

    def close(self):
        with contextlib.suppress(AttributeError):
            self.stop_replication()
            for node in (self.node_a, self.node_b):
                node.kill()
            for link in (self.name, *self.between.values()):
                link.close()
            self.server.shutdown()
            self.server.server_close()
            for bucket in self.buckets.values():
                bucket.stop()
        super().close()


class Registering:
    """Clients that register all the time by the common name, files among them, and repeat what was not acknowledged.
    `receipts` has each acknowledged answer."""

    def __init__(self, sites, channel, name, threads=2):
        self.sites, self.key, self.name = sites, channel.live_key["key"], name
        self.receipts, self.failures, self.ending = [], [], threading.Event()
        self.refused, self.last_refusal = [0] * threads, None
        self.threads = [threading.Thread(target=self.work, args=(number,), daemon=True) for number in range(threads)]
        for thread in self.threads:
            thread.start()

    def work(self, number):
        try:
            count = 0
            while not self.ending.is_set():
                self.register(number, count)
                count += 1
        except BaseException as error:
            self.failures.append(error)

    def register(self, number, count):
        ref = f"{self.name}-{number}-{count}"
        while True:
            client = self.sites.client(self.key)
            try:
                answer = register(client, ref, count % 4 == 0)
                if answer.status in (200, 201):
                    self.receipts.append(answer.json)
                    return
                assert answer.status == 503, answer
                refusal = answer
            except (OSError, http.client.HTTPException) as error:
                refusal = error
            finally:
                client.close()
            self.refused[number] += 1
            self.last_refusal = refusal
            if self.ending.is_set():
                return
            time.sleep(0.1)

    def all_refused(self):
        """Blocks until each client was refused a request that it has sent from now on."""
        before = list(self.refused)
        eventually(lambda: all(now > then + 1 for now, then in zip(self.refused, before)), "registrations are refused")

    def more(self, count=20):
        """Blocks until that many more were acknowledged."""
        wanted = len(self.receipts) + count
        try:
            eventually(lambda: self.failures or len(self.receipts) >= wanted, "registrations are acknowledged")
        except AssertionError as error:
            raise AssertionError(f"{error}: {sum(self.refused)} refused, the last one: {self.last_refusal}") from error
        assert not self.failures, self.failures
        return list(self.receipts)

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures
        return list(self.receipts)


def register(client, ref, is_file):
    """The same declaration at each repetition."""
    return client.register_file(ref.encode() * 100, ref) if is_file else client.register({"ref": ref}, ref)
