"""The schema of both engines, as a database has it: the same tables and columns; and on PostgreSQL
fit to be distributed by account with the statements of docs/operations.md."""

import pathlib
import re
import sqlite3

import pytest

from postgres import Cluster, ROLE

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "src" / "store" / "schema"

# How the engines find an event by its client_ref: the one place where they differ.
ONLY_SQLITE = {"client_refs", "fresh_client_refs_0", "fresh_client_refs_1"}
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
    assert ONLY_SQLITE <= set(sqlite), "what is named here differs"
    assert set(sqlite) - ONLY_SQLITE == set(postgresql)
    for table, columns in postgresql.items():
        expected = {column for column in columns if (table, column) not in ONLY_POSTGRESQL}
        assert set(sqlite[table]) == expected, table
        for column in expected:
            assert sqlite[table][column] == columns[column], f"{table}.{column}: NULL or not"
    for table, column in ONLY_POSTGRESQL:
        assert column in postgresql[table]


# ---- distribution ----

@pytest.fixture(scope="module")
def documented():
    """{table: how}, by the statements of the documentation."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text[text.index("\n## Sharding"):]
    found = {}
    for table, rest in re.findall(r"^SELECT create_distributed_table\('(\w+)', (.*)\);$", section,
                                  re.M):
        assert table not in found
        found[table] = "distributed"
        assert rest == ("'account'" if table == "accounts"
                        else "'account', colocate_with => 'accounts'"), table
    for table in re.findall(r"^SELECT create_reference_table\('(\w+)'\);$", section, re.M):
        assert table not in found
        found[table] = "reference"
    return found


def test_the_documentation_does_not_promise_what_does_not_work():
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text[text.index("\n## Sharding"):]
    assert section.index("does not work") < section.index("create_distributed_table")


def test_the_documentation_distributes_every_table(postgresql, documented):
    assert set(documented) == set(postgresql)


def test_what_has_an_account_and_is_no_list_for_all_is_distributed(postgresql, documented):
    global_ones = {table for table, how in documented.items() if how == "reference"}
    assert global_ones == {"settings", "api_keys", "seal_rounds", "round_blocks", "staged_round",
                           "round_tokens", "leases", "certification_numbers",
                           "rollbacks", "signers", "link_secrets",
                           "validation_objects", "token_validation", "archive_timestamps",
                           "archive_timestamp_blocks", "tokens_at_rest", "timestamp_roots"}
    for table in set(postgresql) - global_ones:
        assert postgresql[table].get("account") is True, f"{table}.account is NOT NULL"


def test_every_unique_key_of_a_distributed_table_holds_the_account(server, documented):
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
        if documented[table] == "reference":
            continue
        assert "account" in columns.split(","), f"{index} of {table}: {columns}"
        if primary == "t":
            assert columns.split(",")[0] == "account", f"{index} of {table}: {columns}"
            leading.add(table)
    assert leading == {table for table, how in documented.items() if how == "distributed"}


def test_no_foreign_key_or_trigger_reaches_over_shards(server):
    assert server("SELECT conrelid::regclass, conname FROM pg_constraint WHERE contype = 'f' "
                  "AND connamespace = 'public'::regnamespace") == []
    assert server("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal") == []
