"""The schema of both engines, as a database has it: the same tables and columns; and on PostgreSQL
fit to be distributed by account with the statements of docs/operate/sharding.md."""

import pathlib
import re
import sqlite3
import subprocess
import sys

import pytest

from postgres import Cluster, ROLE

pytestmark = pytest.mark.both_stores

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "src" / "store" / "schema"

# How the engines find an event, by its client_ref and by its number: the places where they differ.
ONLY_SQLITE = {"client_refs", "client_ref_buckets", "client_ref_filters", "client_ref_runs",
               "fresh_client_refs_0", "fresh_client_refs_1", "events_runs"}
EVENTS = ("events_before", "events_arrived")  # both as the server's one table
ONLY_SQLITE_COLUMNS = {("events_arrived", "arrival"), ("chains", "last_run")}
ONLY_POSTGRESQL = {("events", "ref_hash")}


def steps(engine):
    return sorted((SCHEMA / engine).glob("*.sql"))


@pytest.fixture(scope="module")
def sqlite():
    """{table: [columns]}"""
    connection = sqlite3.connect(":memory:")
    for path in steps("sqlite"):
        connection.executescript(path.read_text(encoding="utf-8"))
    tables = [name for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    yield {table: {row[1]: bool(row[3]) for row in connection.execute(
        f"SELECT cid, name, type, \"notnull\" OR pk > 0 FROM pragma_table_info('{table}')")}
        for table in tables}
    connection.close()


@pytest.fixture(scope="module")
def server():
    with Cluster(standbys=0) as cluster:
        database = cluster.create_database()
        for path in steps("postgres"):
            cluster.primary.query(f"SET ROLE {ROLE}; " + path.read_text(encoding="utf-8"), database)
        yield lambda sql: cluster.primary.rows(sql, database)


@pytest.fixture(scope="module")
def postgresql(server):
    tables = {}
    for table, column, required in server(
            "SELECT table_name, column_name, is_nullable = 'NO' FROM information_schema.columns "
            "WHERE table_schema = 'public'"):
        tables.setdefault(table, {})[column] = required == "t"
    return tables


def test_every_step_is_there_for_both():
    assert [path.name for path in steps("sqlite")] == [path.name for path in steps("postgres")]


def test_both_have_the_same_tables_and_columns(sqlite, postgresql):
    assert ONLY_SQLITE | set(EVENTS) <= set(sqlite), "what is named here differs"
    assert set(sqlite) - ONLY_SQLITE - set(EVENTS) == set(postgresql) - {"events"}
    for own in set(sqlite) - ONLY_SQLITE:
        table = "events" if own in EVENTS else own
        columns = postgresql[table]
        expected = {column for column in columns if (table, column) not in ONLY_POSTGRESQL}
        assert {one for one in sqlite[own] if (own, one) not in ONLY_SQLITE_COLUMNS} == expected, own
        for column in expected:
            assert sqlite[own][column] == columns[column], f"{own}.{column}: NULL or not"
    for table, column in ONLY_POSTGRESQL:
        assert column in postgresql[table]
    for table, column in ONLY_SQLITE_COLUMNS:
        assert column in sqlite[table]


# ---- kinds of steps ----

GOOD = """-- Kind: rolling
CREATE TABLE facts (account BIGINT NOT NULL, fact TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX facts_once ON facts(account, fact) WHERE fact <> '';
ALTER TABLE accounts ADD COLUMN later BIGINT; -- NULL: unknown
ALTER TABLE accounts ADD COLUMN more TEXT COLLATE "C" NOT NULL DEFAULT 'none';
SELECT 1;
"""


def embedded(place, sqlite, postgres):
    """The exit code of embed.py for one step, and what it prints."""
    for engine, text in (("sqlite", sqlite), ("postgres", postgres)):
        (place / engine).mkdir(exist_ok=True)
        (place / engine / "001-step.sql").write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-B", SCHEMA / "embed.py", place / "out.c", place / "out.d", place],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_a_rolling_step_may_add_what_older_programs_ignore(tmp_path):
    assert embedded(tmp_path, GOOD, GOOD) == (0, "")


@pytest.mark.parametrize("statement", [
    "CREATE INDEX accounts_by_name ON accounts(name)",
    "CREATE INDEX CONCURRENTLY accounts_by_name ON accounts(name)",
    "CREATE TABLE facts (account BIGINT REFERENCES accounts)",
    "CREATE VIEW facts AS SELECT 1",
    "ALTER TABLE accounts ADD COLUMN later BIGINT NOT NULL",
    "ALTER TABLE accounts ADD COLUMN later BIGINT DEFAULT random()",
    "ALTER TABLE accounts ADD COLUMN later BIGINT CHECK (later > 0)",
    "ALTER TABLE accounts ADD COLUMN later BIGINT UNIQUE",
    "ALTER TABLE accounts DROP COLUMN name",
    "ALTER TABLE accounts ALTER COLUMN name DROP NOT NULL",
    "DROP TABLE facts",
    "UPDATE accounts SET name = ''",
    "INSERT INTO settings VALUES ('a', 'b')",
])
def test_a_rolling_step_must_not_do_what_they_notice_or_wait_for(tmp_path, statement):
    bad = f"-- Kind: rolling\n{statement};\n"
    for engines in ((bad, GOOD), (GOOD, bad)):
        code, words = embedded(tmp_path, *engines)
        assert code == 1 and statement in words, words
    assert embedded(tmp_path, bad.replace("rolling", "stop"), bad.replace("rolling", "stop")) == (0, "")


def test_each_step_names_its_kind_the_same_for_both_engines(tmp_path):
    for engines in (("SELECT 1;", GOOD), ("-- Kind: any\nSELECT 1;", GOOD), ("-- Why.\n" + GOOD, GOOD)):
        code, words = embedded(tmp_path, *engines)
        assert code == 1 and "the first line must be" in words, words
    code, words = embedded(tmp_path, GOOD, "-- Kind: stop\nSELECT 1;\n")
    assert code == 1 and "different kinds" in words, words


# ---- distribution ----

@pytest.fixture(scope="module")
def distributed():
    """{table: how}, by the program's own list."""
    text = (ROOT / "src" / "store" / "schema" / "distribution.def").read_text(encoding="utf-8")
    listed = re.findall(r"^(BY_ACCOUNT|ON_NONE)\((\w+)\)$", text, re.M)
    found = {table: "undistributed" if how == "ON_NONE" else "distributed" for how, table in listed}
    assert len(found) == len(listed)
    assert listed[0] == ("BY_ACCOUNT", "accounts"), "the others follow it"
    return found


def test_the_program_distributes_every_table(postgresql, distributed):
    assert set(distributed) == set(postgresql)


def test_what_has_an_account_and_is_no_list_for_all_is_distributed(postgresql, distributed):
    global_ones = {table for table, how in distributed.items() if how == "undistributed"}
    assert global_ones == {"settings", "api_keys", "seal_rounds", "round_blocks", "staged_round",
                           "round_tokens", "leases", "certification_numbers",
                           "rollbacks", "signers", "signer_lists", "public_keys", "link_secrets", "log_tiles", "log_checkpoints",
                           "validation_objects", "token_validation", "archive_timestamps",
                           "archive_timestamp_blocks", "tokens_at_rest", "timestamp_roots",
                           "users", "memberships", "sign_in_links", "sessions", "passkeys",
                           "passkey_challenges", "known_browsers"}
    for table in set(postgresql) - global_ones:
        assert postgresql[table].get("account") is True, f"{table}.account is NOT NULL"


def test_every_unique_key_of_a_distributed_table_holds_the_account(server, distributed):
    """Without it no sharded database would take the table."""
    keys = server(
        "SELECT t.relname, i.relname, indisprimary, "
        "(SELECT string_agg(attname, ',' ORDER BY place) FROM unnest(indkey::smallint[]) "
        "WITH ORDINALITY AS key(number, place) JOIN pg_attribute "
        "ON attrelid = indrelid AND attnum = key.number) "
        "FROM pg_index JOIN pg_class t ON t.oid = indrelid JOIN pg_class i ON i.oid = indexrelid "
        "WHERE t.relnamespace = 'public'::regnamespace AND (indisunique OR indisexclusion)")
    leading = set()
    for table, index, primary, columns in keys:
        if distributed[table] == "undistributed":
            continue
        assert "account" in columns.split(","), f"{index} of {table}: {columns}"
        if primary == "t":
            assert columns.split(",")[0] == "account", f"{index} of {table}: {columns}"
            leading.add(table)
    assert leading == {table for table, how in distributed.items() if how == "distributed"}


def test_no_foreign_key_or_trigger_reaches_over_shards(server):
    assert server("SELECT conrelid::regclass, conname FROM pg_constraint WHERE contype = 'f' "
                  "AND connamespace = 'public'::regnamespace") == []
    assert server("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal") == []


# ---- look-ups ----

def test_plans_made_while_there_is_no_event_find_events_by_the_index_that_they_are_for(server):
    """Statements are planned once for a connection, maybe before the first event."""
    def plan(select, where):
        rows = server("SET enable_seqscan = off; SET enable_bitmapscan = off; "
                      f"EXPLAIN SELECT {select} FROM events WHERE account = 1 AND {where}")
        return " ".join(rows[0])

    assert server("SELECT count(*) FROM events") == [["0"]]
    assert "events_pkey" in plan("received_at", "event = 5")
    assert "events_by_ref_hash" in plan("client_ref", "ref_hash = 7 AND event >> 40 = 1")
