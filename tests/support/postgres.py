"""PostgreSQL servers for the tests: a primary and its synchronous standbys, each with a data directory, a Unix
socket and a port of its own, and the failures that they can have.

    with Cluster(standbys=1) as cluster:
        url = cluster.url(cluster.create_database())
        cluster.standbys[0].freeze()

Every server has the same settings, so that a promoted standby requires a synchronous standby too. Control
(`query`) uses the Unix socket, independent of the network. The service's role is not a superuser. Servers run
as an unprivileged user when the tests run as root, and exit with the process that started them.
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
ROLE = "constancia"  # role of the service
PATIENCE = 60  # seconds until a condition that must become true counts as failed
SETTINGS = {
    "max_connections": "300",
    "max_wal_senders": "10",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "wal_keep_size": "512MB",
    "hot_standby": "on",
    "synchronous_commit": "on",
    "log_line_prefix": "%m [%p] %q%d ",
    "dynamic_shared_memory_type": "mmap",  # removed with the data directory
    "wal_receiver_status_interval": "1s",
    "wal_sender_timeout": "5min",  # a busy machine is not a lost standby
    "wal_receiver_timeout": "5min",
    "wal_retrieve_retry_interval": "100ms",
}


class Failed(Exception):
    """A server or a program of PostgreSQL failed."""


def programs():
    """Returns the directory of the newest installed server."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"),
                   key=lambda path: int(path.split("/")[4]))
    if not found:
        raise Failed("no PostgreSQL server below /usr/lib/postgresql")
    return os.path.dirname(found[-1])


def unprivileged():
    """Returns the user that servers run as, since they refuse to run as root; None: the current user."""
    if os.geteuid() != 0:
        return None
    for name in (SUPERUSER, "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Failed("no user to run a server as")


def as_server(command):
    """Returns the command as that user; a server exits with its parent."""
    user = unprivileged()
    who = ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--init-groups"] if user else []
    return ["setpriv", *who, "--pdeathsig", "QUIT", *command]


def program(name, *arguments):
    with subprocess.Popen(as_server([os.path.join(programs(), name), *arguments]), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd="/") as process:
        try:
            output, errors = process.communicate(timeout=300)
        except BaseException:
            process.terminate()  # not killed: it ends the server that it runs, which removes its shared memory
            raise
    if process.returncode:
        raise Failed(f"{name}: exit {process.returncode}: {errors}")
    return output


def eventually(question, what, patience=PATIENCE, pause=0.05):
    """Returns the first true answer. The question is asked a last time after the patience, however long the
    answer takes."""
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
    """A server; its data directory determines whether it is a primary or a standby."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.directory = os.path.join(cluster.directory, name)
        self.data = os.path.join(self.directory, "data")
        self.log = os.path.join(self.directory, "log")
        self.port = reserve_port()
        self.process = None
        self.follows = None  # the primary of a standby
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
        """Stops it; `mode` is smart, fast or immediate, as for pg_ctl."""
        if self.alive():
            self.process.send_signal({"smart": signal.SIGTERM, "fast": signal.SIGINT,
                                      "immediate": signal.SIGQUIT}[mode])
            self.process.wait(PATIENCE)
        self.process = None

    def _signal_all(self, number):
        """Signals the server and its children. Stops the server first, so that no child escapes."""
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
        """Kills all its processes at once, as when the machine fails."""
        if self.alive():
            self._signal_all(signal.SIGKILL)
            self.process.wait(PATIENCE)
        self.process = None

    def discard(self):
        """Stops it and removes its data, with the shared memory that a killed server leaves."""
        if self.alive():
            self.thaw()
            self.stop("immediate")
        with contextlib.suppress(FileNotFoundError, IndexError):
            with open(os.path.join(self.data, "postmaster.pid"), encoding="ascii") as file:
                segment = file.read().split("\n")[6].split()[1]
            subprocess.run(["ipcrm", "-m", segment], capture_output=True, check=False)
        shutil.rmtree(self.data, ignore_errors=True)

    def freeze(self):
        """Stops it with SIGSTOP: its connections stay open without a response."""
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
        """Returns the output of psql: a line per row, columns separated by a bar."""
        done = subprocess.run(
            [os.path.join(programs(), "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-h",
             self.directory, "-p", str(self.port), "-U", SUPERUSER, "-d", database, "-f", "-"],
            input=sql, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode:
            raise Failed(f"{self.name}: {sql[:300]}: {done.stderr.strip()}")
        return done.stdout.strip("\n")

    def attempt(self, sql, database="postgres"):
        """Returns all output of psql for statements run individually, including errors and their states."""
        return subprocess.run(
            [os.path.join(programs(), "psql"), "-XAtq", "-v", "VERBOSITY=verbose", "-h",
             self.directory, "-p", str(self.port), "-U", SUPERUSER, "-d", database, "-f", "-"],
            input=sql, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=5 * PATIENCE, check=False).stdout

    def session(self, sql, database="postgres"):
        """Starts a session that stays open; further statements are written to its standard input."""
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

    # ---- failures ----

    def promote(self):
        self.query(f"SELECT pg_promote(true, {PATIENCE})", timeout=PATIENCE + 10)
        eventually(lambda: self.query("SELECT pg_is_in_recovery()") == "f",
                   f"{self.name} is promoted")
        self.follows = None

    def terminate_backends(self, database):
        """Ends every connection to the database; returns their number."""
        return self.number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                           f"WHERE datname = {literal(database)}")

    def commits_waiting(self):
        """Returns the number of back ends whose commit waits for a standby."""
        return self.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    def cancel_commits(self):
        """Cancels waits for a standby: the commits become visible without it."""
        return self.number("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity "
                           "WHERE wait_event = 'SyncRep'")

    def synchronous_standbys(self):
        return self.number("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' "
                           "AND sync_state IN ('sync', 'quorum')")

    def wait_for_standbys(self, count=1):
        """Blocks until that many synchronous standbys have everything that is written."""
        eventually(lambda: self.number(
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN "
            "('sync', 'quorum') AND replay_lsn >= pg_current_wal_lsn()") >= count,
            f"{self.name} has {count} synchronous standbys")


class Cluster:
    """A primary and `standbys` standbys, any one of which makes a commit synchronous. Without standbys,
    commits wait for none. `parent` is the parent directory, which the servers' user must be able to enter."""

    server_class = Server
    template = None  # data directory template, created once per process

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

    # ---- life cycle ----

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
        """Called before the first start of the primary."""

    def make_role(self):
        """Called before the standbys exist."""
        self.primary.query("SET synchronous_commit TO local; "
                           f"CREATE ROLE {ROLE} LOGIN; GRANT pg_read_all_stats TO {ROLE};")

    def close(self):
        atexit.unregister(self.close)
        for server in self.servers:
            server.discard()
        shutil.rmtree(self.directory, ignore_errors=True)

    def rebuild(self, server):
        """Rebuilds a standby of the present primary from scratch."""
        server.discard()
        server.follows = self.primary
        program("pg_basebackup", "-D", server.data, "-h", self.primary.directory, "-p",
                str(self.primary.port), "-U", SUPERUSER, "-X", "stream", "-c", "fast", "--no-sync")
        with open(os.path.join(server.data, "standby.signal"), "wb"):
            pass
        server.start()

    def fail_over(self, to=None):
        """Promotes a standby; the old primary is unchanged. The other standbys follow no primary until they
        are rebuilt. Returns the old primary."""
        old = self.primary
        chosen = to or self.standbys[0]
        chosen.promote()
        self.primary = chosen
        return old

    # ---- databases ----

    def create_database(self, name=None, like="template1"):
        """Creates a database of the service's role on all servers: empty, or a copy of one without
        connections."""
        name = name or "t" + secrets.token_hex(6)
        self.primary.query(f"CREATE DATABASE {name} OWNER {ROLE} TEMPLATE {like}")
        if self.replicated:  # a client does not try the next server if the first lacks the database
            self.primary.wait_for_standbys(len(self.standbys))
        return name

    def drop_database(self, name):
        self.primary.query(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def url(self, database, address="127.0.0.1", **parameters):
        """Returns store.url with all servers; the one that accepts writes is used."""
        hosts = ",".join(f"{address}:{server.port}" for server in self.servers)
        parameters.setdefault("target_session_attrs", "read-write")
        return f"postgresql://{ROLE}@{hosts}/{database}?{urllib.parse.urlencode(parameters)}"
