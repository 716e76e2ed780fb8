"""PostgreSQL servers for the tests: a primary and its synchronous standbys, each with a data
directory, a Unix socket and a port of its own, and what can happen to them.

    with Cluster(standbys=1) as cluster:
        url = cluster.url(cluster.create_database())
        cluster.standbys[0].freeze()

Every server has the same settings, so that a promoted standby asks for a synchronous standby too.
Control (`query`) goes through the Unix socket, whatever happens to the network. The service's role
is no superuser. Servers run as an unprivileged user when the tests run as root, and end with the
process that started them.
"""

import atexit
import contextlib
import glob
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.parse

from ports import reserve_port

SUPERUSER = "postgres"
ROLE = "constancia"  # of the service
PATIENCE = 60  # seconds until what must come in the end counts as not coming
SETTINGS = {
    "max_connections": "300",
    "max_wal_senders": "10",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "wal_keep_size": "512MB",
    "hot_standby": "on",
    "synchronous_commit": "on",
    "log_line_prefix": "%m [%p] %q%d ",
    "dynamic_shared_memory_type": "mmap",  # goes with the data directory
    "wal_receiver_status_interval": "1s",
    "wal_sender_timeout": "5min",  # a busy machine is no lost standby
    "wal_receiver_timeout": "5min",
    "wal_retrieve_retry_interval": "100ms",
}


class Failed(Exception):
    """A server or a program of PostgreSQL did not do what was asked."""


def programs():
    """The directory of the newest server that is installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"),
                   key=lambda path: int(path.split("/")[4]))
    if not found:
        raise Failed("no PostgreSQL server below /usr/lib/postgresql")
    return os.path.dirname(found[-1])


def unprivileged():
    """The user that servers run as, None for this one: they refuse to be root."""
    if os.geteuid() != 0:
        return None
    for name in (SUPERUSER, "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Failed("no user to run a server as")


def as_server(command):
    """The command as that user; a server ends when its parent does."""
    user = unprivileged()
    who = ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--init-groups"] if user else []
    return ["setpriv", *who, "--pdeathsig", "QUIT", *command]


def program(name, *arguments):
    done = subprocess.run(as_server([os.path.join(programs(), name), *arguments]),
                          capture_output=True, text=True, cwd="/", timeout=300, check=False)
    if done.returncode:
        raise Failed(f"{name}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def eventually(question, what, patience=PATIENCE, pause=0.05):
    """The first true answer; the last time it is asked is after the patience, however long the answer takes."""
    end = time.monotonic() + patience
    while True:
        asked = time.monotonic()
        if answer := question():
            return answer
        if asked > end:
            raise Failed(f"waited {patience} s in vain until {what}")
        time.sleep(pause)


def children_of(process):
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


def literal(value):
    return "'" + value.replace("'", "''") + "'"


class Server:
    """One server; primary or standby by what its data directory says."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.directory = os.path.join(cluster.directory, name)
        self.data = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "log")
        self.port = reserve_port()
        self.process = None
        self.follows = None  # a standby's primary
        cluster.make_directory(self.directory)

    def __repr__(self):
        return f"<{self.name} on port {self.port}>"

    # ---- running ----

    def settings(self):
        own = {
            "listen_addresses": ",".join(self.cluster.addresses),
            "port": str(self.port),
            "unix_socket_directories": self.directory,
            "cluster_name": self.name,
            "hba_file": self.cluster.hba_file,
            "synchronous_standby_names": self.cluster.standby_names(),
        }
        if self.follows:
            own["primary_conninfo"] = (f"host={self.follows.directory} port={self.follows.port} "
                                       f"user={SUPERUSER} application_name={self.name}")
        return {**SETTINGS, **self.cluster.settings, **own}

    def spawn(self):
        command = [os.path.join(programs(), "postgres"), "-D", self.data]
        for name, value in self.settings().items():
            command += ["-c", f"{name}={value}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(as_server(command), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, cwd="/")

    def start(self):
        self.spawn()
        eventually(self.answers, f"{self.name} answers:\n{self.log_tail()}")
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.log_tail()}")
        try:
            return self.query("SELECT 1") == "1"
        except Failed:
            return False

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, mode="fast"):
        """smart, fast or immediate, as pg_ctl names them."""
        if self.alive():
            self.process.send_signal({"smart": signal.SIGTERM, "fast": signal.SIGINT,
                                      "immediate": signal.SIGQUIT}[mode])
            self.process.wait(PATIENCE)
        self.process = None

    def _signal_all(self, number):
        """To the server and its children. It is stopped first, so that no child escapes."""
        self.process.send_signal(signal.SIGSTOP)
        signalled = set()
        while new := set(children_of(self.process.pid)) - signalled:
            for child in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, number)
            signalled |= new
        self.process.send_signal(number)
        return signalled

    def kill(self):
        """kill -9 of all its processes at once, as when the machine goes away."""
        if self.alive():
            self._signal_all(signal.SIGKILL)
            self.process.wait(PATIENCE)
        self.process = None

    def discard(self):
        """Ends it and removes its data, with the shared memory that a killed server leaves."""
        if self.alive():
            self.thaw()
            self.stop("immediate")
        with contextlib.suppress(FileNotFoundError, IndexError):
            with open(os.path.join(self.data, "postmaster.pid"), encoding="ascii") as file:
                segment = file.read().split("\n")[6].split()[1]
            subprocess.run(["ipcrm", "-m", segment], capture_output=True, check=False)
        shutil.rmtree(self.data, ignore_errors=True)

    def freeze(self):
        """SIGSTOP: it holds its connections and says nothing."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self):
        self._signal_all(signal.SIGCONT)

    def log_tail(self, size=3000):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return file.read()[-size:]
        except FileNotFoundError:
            return ""

    # ---- asking ----

    def query(self, sql, database="postgres", timeout=PATIENCE):
        """What psql prints: a line for each row, columns separated by a bar."""
        done = subprocess.run(
            [os.path.join(programs(), "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-h",
             self.directory, "-p", str(self.port), "-U", SUPERUSER, "-d", database, "-f", "-"],
            input=sql, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode:
            raise Failed(f"{self.name}: {sql[:300]}: {done.stderr.strip()}")
        return done.stdout.strip("\n")

    def attempt(self, sql, database="postgres"):
        """All that psql says, errors and their states included, of statements each by itself."""
        return subprocess.run(
            [os.path.join(programs(), "psql"), "-XAtq", "-v", "VERBOSITY=verbose", "-h",
             self.directory, "-p", str(self.port), "-U", SUPERUSER, "-d", database, "-f", "-"],
            input=sql, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=5 * PATIENCE, check=False).stdout

    def session(self, sql, database="postgres"):
        """That goes on: what it is told next is written to its standard input."""
        psql = subprocess.Popen(
            [os.path.join(programs(), "psql"), "-XAtq", "-h", self.directory, "-p", str(self.port),
             "-U", SUPERUSER, "-d", database, "-f", "-"], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        psql.stdin.write(sql)
        psql.stdin.flush()
        return psql

    def rows(self, sql, database="postgres", timeout=PATIENCE):
        text = self.query(sql, database, timeout)
        return [line.split("|") for line in text.split("\n")] if text else []

    def number(self, sql, database="postgres"):
        return int(self.query(sql, database))

    # ---- what may happen to it ----

    def promote(self):
        self.query(f"SELECT pg_promote(true, {PATIENCE})", timeout=PATIENCE + 10)
        eventually(lambda: self.query("SELECT pg_is_in_recovery()") == "f",
                   f"{self.name} is promoted")
        self.follows = None

    def terminate_backends(self, database):
        """Ends every connection to the database; how many there were."""
        return self.number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                           f"WHERE datname = {literal(database)}")

    def commits_waiting(self):
        """Back ends whose commit waits for a standby."""
        return self.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    def cancel_commits(self):
        """Cancels waits for a standby: what they wait for becomes visible without it."""
        return self.number("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity "
                           "WHERE wait_event = 'SyncRep'")

    def synchronous_standbys(self):
        return self.number("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' "
                           "AND sync_state IN ('sync', 'quorum')")

    def wait_for_standbys(self, count=1):
        """Until so many synchronous standbys hold all that is written."""
        eventually(lambda: self.number(
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN "
            "('sync', 'quorum') AND replay_lsn >= pg_current_wal_lsn()") >= count,
            f"{self.name} has {count} synchronous standbys")


class Cluster:
    """A primary and so many standbys, of which any one makes a commit synchronous. Without
    standbys, commits wait for none. `parent` is the directory to be in, which must let the servers'
    user through."""

    server_class = Server
    template = None  # of a data directory, made once for the process

    def __init__(self, standbys=1, addresses=("127.0.0.1",), settings=None,
                 parent=None):
        self.directory = tempfile.mkdtemp(prefix="constancia-pg-", dir=parent)
        atexit.register(self.close)
        os.chmod(self.directory, 0o755)
        self.addresses = list(addresses)
        self.settings = settings or {}
        self.hba_file = os.path.join(self.directory, "hba")
        with open(self.hba_file, "w", encoding="ascii") as file:
            file.write("local all all trust\nlocal replication all trust\n"
                       "host all all 0.0.0.0/0 trust\n")
        self.replicated = standbys > 0
        self.servers = [self.server_class(self, f"server{i}") for i in range(standbys + 1)]
        self.primary = self.servers[0]

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        self.close()

    def make_directory(self, path):
        os.makedirs(path, mode=0o755, exist_ok=True)
        user = unprivileged()
        if user:
            os.chown(path, user.pw_uid, user.pw_gid)

    def standby_names(self):
        return f"ANY 1 ({', '.join(s.name for s in self.servers)})" if self.replicated else ""

    @property
    def standbys(self):
        return [server for server in self.servers if server is not self.primary]

    @property
    def standby(self):
        (one,) = self.standbys
        return one

    # ---- its life ----

    @classmethod
    def make_template(cls):
        if cls.template:
            return
        cls.template = tempfile.mkdtemp(prefix="constancia-pg-template-")
        atexit.register(shutil.rmtree, cls.template, ignore_errors=True)
        user = unprivileged()
        if user:
            os.chown(cls.template, user.pw_uid, user.pw_gid)
        program("initdb", "-D", os.path.join(cls.template, "data"), "-U", SUPERUSER, "-A", "trust",
                "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")

    def start(self):
        try:
            self.make_template()
            subprocess.run(["cp", "-a", os.path.join(self.template, "data"), self.primary.data],
                           check=True)
            self.configure()
            self.primary.start()
            self.make_role()
            for standby in self.standbys:
                self.rebuild(standby)
            if self.replicated:
                self.primary.wait_for_standbys(len(self.standbys))
        except BaseException:
            self.close()
            raise
        return self

    def configure(self):
        """Before the primary is started for the first time."""

    def make_role(self):
        """Before there are standbys."""
        self.primary.query("SET synchronous_commit TO local; "
                           f"CREATE ROLE {ROLE} LOGIN; GRANT pg_read_all_stats TO {ROLE};")

    def close(self):
        atexit.unregister(self.close)
        for server in self.servers:
            server.discard()
        shutil.rmtree(self.directory, ignore_errors=True)

    def rebuild(self, server):
        """A standby, from nothing, of the present primary."""
        server.discard()
        server.follows = self.primary
        program("pg_basebackup", "-D", server.data, "-h", self.primary.directory, "-p",
                str(self.primary.port), "-U", SUPERUSER, "-X", "stream", "-c", "fast", "--no-sync")
        with open(os.path.join(server.data, "standby.signal"), "wb"):
            pass
        server.start()

    def fail_over(self, to=None):
        """Promotes a standby; what the old primary was stays as it is. The other standbys follow
        nobody until they are rebuilt. The old primary."""
        old = self.primary
        chosen = to or self.standbys[0]
        chosen.promote()
        self.primary = chosen
        return old

    # ---- databases ----

    def create_database(self, name=None, like="template1"):
        """A database of the service's role, on all servers: empty, or a copy of one that nobody
        is connected to."""
        name = name or "t" + secrets.token_hex(6)
        self.primary.query(f"CREATE DATABASE {name} OWNER {ROLE} TEMPLATE {like}")
        if self.replicated:  # a client that finds a server without it does not go on to the next
            self.primary.wait_for_standbys(len(self.standbys))
        return name

    def drop_database(self, name):
        self.primary.query(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def url(self, database, address="127.0.0.1", **parameters):
        """store.url: all servers, whichever takes writes."""
        hosts = ",".join(f"{address}:{server.port}" for server in self.servers)
        parameters.setdefault("target_session_attrs", "read-write")
        return f"postgresql://{ROLE}@{hosts}/{database}?{urllib.parse.urlencode(parameters)}"
