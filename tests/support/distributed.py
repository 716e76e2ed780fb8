"""A PostgreSQL that distributes tables: a coordinator and workers, each a cluster of its own with the same
number of synchronous standbys. If the installed server lacks the extension, `offered()` is false and MISSING
is the reason.

    with Distributed(standbys=1) as servers:
        url = servers.url(servers.create_database())
        servers.workers[0].standby.freeze()

It has the interface of a Cluster, applied to its coordinator.
"""

import concurrent.futures
import contextlib
import functools
import os
import pathlib
import secrets
import subprocess

from postgres import ROLE, Cluster, Failed, program
from program import clean_environment

EXTENSION = "citus"
MISSING = f"the PostgreSQL here does not offer the extension {EXTENSION}"
SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src" / "store" / "schema" / "postgres"
SHARDS = 8
SETTINGS = {
    "shared_preload_libraries": EXTENSION,
    "citus.shard_count": str(SHARDS),
    "citus.node_conninfo": "sslmode=disable connect_timeout=3 keepalives_idle=3 keepalives_interval=1 "
                           "keepalives_count=3 tcp_user_timeout=6000",
    "max_worker_processes": "64",  # one daemon per database
    "max_prepared_transactions": "300",
}
# Settings of a transaction do not reach the workers. Synchronous commits there are a setting of their servers,
# which tests change.
SESSIONS = {"lock_timeout": "5s", "jit": "off", "enable_seqscan": "off"}


@functools.lru_cache
def offered():
    directory = program("pg_config", "--sharedir").strip()
    return os.path.exists(os.path.join(directory, "extension", f"{EXTENSION}.control"))


class Distributed:
    def __init__(self, standbys=1, workers=2, settings=None):
        self.coordinator = Cluster(standbys, settings={**SETTINGS, **(settings or {})})
        self.workers = [Cluster(standbys, settings={**SETTINGS, **(settings or {})})
                        for _ in range(workers)]
        self.prepared = None  # template of other databases

    @property
    def clusters(self):
        return [self.coordinator, *self.workers]

    def __getattr__(self, name):
        return getattr(self.coordinator, name)

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        self.close()

    def start(self):
        try:
            for cluster in self.clusters:
                cluster.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        for cluster in self.clusters:
            cluster.close()

    def on_each(self, do):
        """Runs on all servers in parallel, since most of the time is waiting."""
        with concurrent.futures.ThreadPoolExecutor(len(self.clusters)) as threads:
            list(threads.map(do, self.clusters))

    def create_database(self, name=None, like=None):
        """Creates a database of the service's role on all servers and registers the workers there: empty, or a
        copy of a database that no client uses."""
        name = name or "t" + secrets.token_hex(6)

        def create(cluster):
            if like:
                cluster.primary.query(f"ALTER DATABASE {like} ALLOW_CONNECTIONS false")
                cluster.primary.terminate_backends(like)  # the extension holds a connection to each database
                cluster.create_database(name, like)
                cluster.primary.query(f"ALTER DATABASE {like} ALLOW_CONNECTIONS true")
            else:
                cluster.create_database(name)
                cluster.primary.query(f"CREATE EXTENSION {EXTENSION}", name)
            if cluster is not self.coordinator:
                self.set_sessions(cluster, name)
        self.on_each(create)
        ask = self.coordinator.primary.query
        ask(f"GRANT pg_read_all_settings TO {ROLE}")
        if not like:
            ask(f"SELECT citus_set_coordinator_host('127.0.0.1', {self.coordinator.primary.port})",
                name)
            for worker in self.workers:
                self.register_worker(worker, name)
        return name

    def set_sessions(self, worker, name):
        worker.primary.query("".join(f"ALTER ROLE {ROLE} IN DATABASE {name} SET {setting} = '{value}';"
                                     for setting, value in SESSIONS.items()))

    def register_worker(self, worker, name):
        self.coordinator.primary.query(f"SELECT citus_add_node('127.0.0.1', {worker.primary.port})", name)

    def add_worker(self, name):
        """Adds a worker without shards for that database."""
        worker = Cluster(len(self.coordinator.standbys), settings=dict(self.coordinator.settings))
        self.workers.append(worker)
        worker.start()
        worker.create_database(name)
        worker.primary.query(f"CREATE EXTENSION {EXTENSION}", name)
        self.set_sessions(worker, name)
        self.register_worker(worker, name)
        return worker

    def create_prepared(self, binary):
        """Creates a prepared database as a copy of another, since distributing sixty tables takes long."""
        if self.prepared is None:
            self.prepared = self.create_database()
            self.prepare(self.prepared, binary)
        return self.create_database(like=self.prepared)

    def drop_database(self, name):
        def drop(cluster):
            with contextlib.suppress(Failed):  # the extension's own session may end late
                cluster.drop_database(name)
            cluster.drop_database(name)
        self.on_each(drop)

    def prepare(self, database, binary):
        """Creates the current schema; the program itself distributes the tables."""
        steps = sorted(SCHEMA.glob("*.sql"))
        text = "".join(step.read_text(encoding="utf-8") for step in steps)
        self.primary.query(f"SET ROLE {ROLE}; BEGIN; {text}; INSERT INTO settings VALUES "
                           f"('schema', '{steps[-1].stem}'); COMMIT;", database)
        done = subprocess.run([binary, "store", "distribute", f"--set=store.url={self.url(database)}",
                               "--set=tsa.url=embedded:", "--set=service.data_dir=/nonexistent",
                               "--set=store.require_replicas=0", "--set=store.sharded=true"],
                              env=clean_environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"store distribute: exit {done.returncode}: {done.stderr}")
