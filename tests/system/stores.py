"""Where the services of the tests keep what they record. One variable chooses for all of them:

    CONSTANCIA_TEST_STORE=sqlite        a file in each service's data directory (the default)
    CONSTANCIA_TEST_STORE=postgresql    a fresh database for each service, on a primary with a
                                        synchronous standby that all tests share
    CONSTANCIA_TEST_STORE=distributed   the same on servers that distribute the tables, where the
                                        PostgreSQL at hand can; else the tests are skipped
"""

import contextlib
import os
import pathlib
import sqlite3
import sys
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import distributed  # noqa: E402
import postgres  # noqa: E402
import sqlite_rows  # noqa: E402

KIND = os.environ.get("CONSTANCIA_TEST_STORE", "sqlite")
assert KIND in ("sqlite", "postgresql", "distributed"), f"CONSTANCIA_TEST_STORE={KIND}"
DISTRIBUTED = KIND == "distributed"
if DISTRIBUTED:
    KIND = "postgresql"

# The table that has new events; what can be read as `events` everywhere can be changed there alone.
EVENTS = "events" if KIND == "postgresql" else "events_arrived"

SHARDS = "4"  # of each table: two on each server are enough, and every database has them
BINARY = os.environ.get("CONSTANCIA", "build/constancia")
_cluster = None


def offered():
    """Whether the tests can be on such a store here."""
    return not DISTRIBUTED or distributed.offered()


def cluster():
    """The shared one, started when it is first asked for. No test that uses it doubts the disk:
    what survives what is for clusters of their own."""
    global _cluster
    if _cluster is None:
        _cluster = (distributed.Distributed(settings={"citus.shard_count": SHARDS}) if DISTRIBUTED
                    else postgres.Cluster(standbys=1))
        _cluster.start()
    return _cluster


def close():
    global _cluster
    if _cluster is not None:
        _cluster.close()
    _cluster = None


@contextlib.contextmanager
def cluster_with(environment):
    """Until the end, stores are made on servers that have these variables."""
    global _cluster
    shared, _cluster = _cluster, None
    try:
        if KIND == "postgresql":
            with mock.patch.dict(os.environ, environment):
                cluster()
        yield
    finally:
        close()
        _cluster = shared


def create_database(prepared=True):
    """One of the shared cluster, on which a service can start if it is prepared, and the settings
    that it takes."""
    shared = cluster()
    if not DISTRIBUTED:  # a commit may take as long as the request: the disk is that of all tests
        return shared.create_database(), {"store.commit_timeout": "15s"}
    database = shared.create_prepared(BINARY) if prepared else shared.create_database()
    return database, {"store.sharded": "true"}


class SqliteStore:
    def __init__(self, data, _prepared):
        self.path = pathlib.Path(data) / "constancia.db"

    def settings(self):
        return {}

    def change(self, sql):
        """Statements on a store that no service uses."""
        connection = sqlite3.connect(self.path)
        try:
            connection.executescript(sql)
            connection.commit()
        finally:
            connection.close()

    def rows(self, sql):
        return [[str(value) for value in row] for row in sqlite_rows.rows(str(self.path), sql)]

    def server_of(self, account_id):
        del account_id

    def discard(self):
        pass


class PostgresStore:
    def __init__(self, data, prepared):
        del data
        self.cluster = cluster()
        self.database, self.more = create_database(prepared)

    def settings(self):
        return {"store.url": self.cluster.url(self.database, connect_timeout=30), **self.more}

    def change(self, sql):
        self.cluster.primary.query(sql, self.database)

    def rows(self, sql):
        return self.cluster.primary.rows(sql, self.database)

    def server_of(self, account_id):
        """Which has the account's rows."""
        if not DISTRIBUTED:
            return None
        ((port,),) = self.rows(
            "SELECT p.nodeport FROM accounts a, pg_dist_shard_placement p WHERE p.shardid = "
            "get_shard_id_for_distribution_column('accounts', a.account) "
            f"AND a.account_id = {text(account_id)}")
        return port

    def rows_read(self, table):
        """How many of a table the connections that have ended have read, wherever it is."""
        counted = ("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables "
                   "WHERE relid = '{}'::regclass")
        if DISTRIBUTED:
            asked = text(counted.format("%s"))
            return sum(int(rows) for (rows,) in self.rows(
                f"SELECT result FROM run_command_on_shards('{table}', {asked})"))
        return int(self.cluster.primary.query(counted.format(table), self.database))

    def discard(self):
        if self.cluster is _cluster:
            self.cluster.drop_database(self.database)


def make(data, prepared=True):
    """Not prepared, a distributed one is as empty as any other."""
    return (PostgresStore if KIND == "postgresql" else SqliteStore)(data, prepared)


def text(value):
    """A literal."""
    return "'" + value.replace("'", "''") + "'"


def blob(value):
    """A literal of bytes."""
    return f"'\\x{value.hex()}'" if KIND == "postgresql" else f"x'{value.hex()}'"


def numbers(count):
    """What a statement selects n from, 1 to count."""
    if KIND == "postgresql":
        return f"generate_series(1, {count}) AS numbers(n)"
    return (f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) "
            "SELECT n FROM s) AS numbers")
