"""Older stores are migrated, on both engines, also when several nodes migrate at the same moment."""

import contextlib
import copy
import hashlib
import json
import os
import pathlib
import re
import sqlite3
import subprocess

import pytest

from client import BINARY
from pki import Pki
from program import clean_environment, flags, run
from postgres import Cluster, Failed, ROLE, SUPERUSER, programs

pytestmark = pytest.mark.both_stores

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src" / "store" / "schema"
STEPS = sorted(path.stem for path in (SCHEMA / "postgres").glob("*.sql"))
KINDS = [(SCHEMA / "postgres" / f"{step}.sql").read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("-- Kind: ")
         for step in STEPS]
PROCESSES = 8


@pytest.fixture(scope="module")
def cluster():
    with Cluster(standbys=0) as running:
        yield running


class Old:
    """A store with the first step's schema."""

    def __init__(self, engine, cluster, directory):
        self.engine, self.cluster, self.directory = engine, cluster, directory
        sql = (SCHEMA / engine / f"{STEPS[0]}.sql").read_text(encoding="utf-8")
        if engine == "postgres":
            self.database = cluster.create_database()
            self.url = cluster.url(self.database)
        else:
            self.url = f"sqlite:{directory}/constancia.db"
        self.change(sql + f"INSERT INTO settings VALUES ('schema', '{STEPS[0]}');")

    def change(self, sql):
        if self.engine == "postgres":
            self.cluster.primary.query(f"SET ROLE {ROLE}; {sql}", self.database)
            return
        with contextlib.closing(sqlite3.connect(f"{self.directory}/constancia.db")) as connection:
            connection.executescript(sql)
            connection.commit()

    def at(self, directory):
        """A place for another, in which there is nothing yet."""
        other = copy.copy(self)
        other.directory, other.url = directory, f"sqlite:{directory}/constancia.db"
        return other

    def schema(self):
        return self.ask("SELECT value FROM settings WHERE name = 'schema'")

    def ask(self, sql):
        """One value."""
        if self.engine == "postgres":
            return self.cluster.primary.query(sql, self.database)
        with contextlib.closing(sqlite3.connect(f"{self.directory}/constancia.db")) as connection:
            return connection.execute(sql).fetchone()[0]

    def chosen(self):
        return [f"--set=store.url={self.url}", "--set=tsa.url=embedded:",
                f"--set=service.data_dir={self.directory}", "--set=store.require_replicas=0"]

    def spawn(self, *words):
        return subprocess.Popen(
            [BINARY, *words, "--json", *self.chosen()],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment())

    def run(self, *words):
        process = self.spawn(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture(params=["postgres", "sqlite"])
def old(request, cluster, tmp_path):
    return Old(request.param, cluster, tmp_path)


def test_a_dry_run_tells_the_steps_and_takes_none(old):
    assert STEPS[1:], "there is something to do"
    for words in (("migrate",), ("store", "migrate")):
        code, out, err = old.run(*words, "--dry-run")
        assert (code, json.loads(out)) == (0, {"applied": False, "steps": STEPS[1:], "kinds": KINDS[1:]}), err
    assert old.schema() == STEPS[0]


def test_an_old_store_is_refused_with_what_to_do(old):
    code, _, err = old.run("init")
    assert code == 1 and "store migrate" in err and STEPS[0] in err


@pytest.mark.parametrize("words", [("account", "list"), ("migrate",), ("serve",)])
def test_an_empty_database_is_to_be_initialized(cluster, tmp_path, words):
    """A database of a server exists before its store, so that there is nothing to migrate."""
    url = cluster.url(cluster.create_database())
    settings = {"store.url": url, "store.require_replicas": 0, "tsa.url": "embedded:", "service.data_dir": tmp_path}
    done = run([BINARY, *words, *flags(settings)])
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "There is no store at postgresql://" in said and "constancia init" in said, said
    assert "migrate" not in said.replace("constancia migrate:", ""), said


def test_many_move_it_at_once_and_each_step_is_taken_once(old):
    started = [old.spawn("migrate") for _ in range(PROCESSES)]
    ended = [process.communicate(timeout=120) for process in started]
    applied = []
    for process, (out, err) in zip(started, ended):
        if process.returncode == 0:
            told = json.loads(out)
            applied += told["steps"]
            assert told["applied"] == bool(told["steps"])
        else:
            assert old.engine == "sqlite", err
            assert "in use by another process" in err
    assert applied == STEPS[1:], "one took them all, the others found nothing left to do"
    assert old.schema() == STEPS[-1]
    code, out, err = old.run("audit", "list")
    (act,) = json.loads(out)["data"]
    assert (act["operation"], act["arguments"]) == ("store migrate", {"steps": STEPS[1:]}), "on record with it"
    code, out, err = old.run("migrate")
    assert (code, json.loads(out)) == (0, {"applied": False, "steps": [], "kinds": []}), err
    code, _, err = old.run("init")
    assert code == 0, err
    code, out, err = old.run("audit", "list", "--installation")
    assert json.loads(out)["data"][0]["operation"] == "init", err
    code, out, err = old.run("store", "check")
    assert code == 0 and json.loads(out)["valid"] is True, err


def test_why_it_was_moved_and_prepared_is_on_record(old):
    for words in (("migrate", "--reason", "the upgrade"), ("init", "--reason", "a second node")):
        code, _, err = old.run(*words)
        assert code == 0, err
    _, out, _ = old.run("audit", "list", "--installation")
    assert [(act["operation"], act["reason"]) for act in json.loads(out)["data"]] == [
        ("init", "a second node"), ("store migrate", "the upgrade")]
    for words in (("migrate",), ("store", "migrate"), ("init",)):
        code, _, err = old.run(*words, "--reason", "two\nlines")
        assert code == 2 and "--reason" in err, err
    if old.engine == "sqlite":
        code, _, err = old.run("store", "distribute", "--reason", "a server more")
        assert code == 1 and "cannot distribute tables" in err, err


@pytest.mark.parametrize("live", [True, False])
def test_a_restore_that_moves_an_older_schema_on_says_so(tmp_path, live):
    """And whether the copy was to send from its first moment on."""
    backup = tmp_path / "backup"
    (backup / "content").mkdir(parents=True)
    older = Old("sqlite", None, backup)
    file = backup / "constancia.db"
    (backup / "backup.json").write_text(json.dumps({
        "content_bytes": 0, "content_missing": 0, "content_objects": 0, "created_at": "2026-01-02T03:04:05.000006Z",
        "installation": "", "program": "constancia", "store_bytes": file.stat().st_size,
        "store_file": "constancia.db", "store_sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "v": 1}))
    restored = older.at(tmp_path / "data")
    code, _, err = restored.run("store", "restore", backup, *["--live"] * live, "--reason", "a disk died")
    assert code == 0, err
    assert restored.schema() == STEPS[-1]
    _, out, err = restored.run("audit", "list", "--installation")
    restore, moved = json.loads(out)["data"]
    assert (moved["operation"], moved["arguments"]) == ("store migrate", {"steps": STEPS[1:]}), err
    assert (restore["operation"], restore["arguments"]) == ("store restore", {
        "created_at": "2026-01-02T03:04:05.000006Z", "directory": str(backup), "live": live})
    assert restore["reason"] == moved["reason"] == "a disk died"


def test_many_nodes_prepare_one_empty_store(cluster, tmp_path):
    database = cluster.create_database()
    url = cluster.url(database)
    pki = Pki(tmp_path / "pki")
    keys = flags({**pki.signer("common"), "tsa.url": "http://127.0.0.1:9/", "tsa.roots": pki.root})
    started = [subprocess.Popen(
        [BINARY, "init", f"--set=store.url={url}", f"--set=service.data_dir={tmp_path}/{number}",
         "--set=store.require_replicas=0", *keys], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=clean_environment()) for number in range(PROCESSES)]
    for process in started:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert cluster.primary.query("SELECT value FROM settings WHERE name = 'schema'",
                                 database) == STEPS[-1]


def test_a_newer_store_is_refused_by_an_older_program(old):
    old.change("UPDATE settings SET value = '999-later' WHERE name = 'schema';")
    for words in (("serve",), ("init",), ("migrate",), ("migrate", "--dry-run"), ("store", "check")):
        code, _, err = old.run(*words)
        assert code not in (0, None) and "999-later" in err and "newer version" in err, (words, err)
        assert "store migrate" not in err
    assert old.schema() == "999-later"


@pytest.mark.parametrize("kind", ["rolling", "stop"])
def test_a_store_that_is_newer_by_rolling_steps_alone_is_used(cluster, tmp_path, kind):
    """A program with another step made it (tests/support/schema)."""
    for engine in ("sqlite", "postgres"):
        (tmp_path / engine).mkdir()
        newer = Old(engine, cluster, tmp_path / engine)
        done = subprocess.run(
            [pathlib.Path(BINARY).with_name(f"constancia-{kind}"), "store", "migrate", *newer.chosen()],
            capture_output=True, text=True, env=clean_environment(), check=False)
        assert done.returncode == 0 and f"900-{kind} ({kind})" in done.stdout, done.stderr
        code, _, err = newer.run("init")
        if kind == "stop":
            assert code == 1 and "900-stop" in err and "newer version" in err, err
            continue
        assert code == 0, err
        code, out, err = newer.run("store", "check")
        assert code == 0 and json.loads(out)["valid"] is True, err
        code, out, err = newer.run("migrate")
        assert (code, json.loads(out)) == (0, {"applied": False, "steps": [], "kinds": []}), err
        assert newer.schema() == "900-rolling", "it stays as it is"
        # The mark of an unknown step, by a program that says nothing about older ones.
        newer.change("UPDATE settings SET value = '999-later' WHERE name = 'schema';")
        code, _, err = newer.run("store", "check")
        assert code == 1 and "999-later" in err and "newer version" in err, err


def test_a_program_of_before_seals_no_more_once_the_store_is_moved(cluster, tmp_path):
    """As it wrote rounds; existing ones stay, and may be copied to another server."""
    old = Old("postgres", cluster, tmp_path)
    write = ("INSERT INTO seal_rounds (round, root, authority, kind, sealed_at, obtained_at,"
             " request, response_head, token, token_hash)"
             " SELECT {0}, '', 'a', 'development', 1, 1, '', '', '', ''"
             " WHERE (SELECT COALESCE(MAX(round), 0) FROM seal_rounds) = {0} - 1;")
    old.change(write.format(1))
    code, _, err = old.run("migrate")
    assert code == 0, err
    with pytest.raises(Failed, match="seal_rounds_in_blocks"):
        old.change(write.format(2))
    other = Old("postgres", cluster, tmp_path)
    other.change("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    copy = subprocess.run(
        [os.path.join(programs(), "pg_dump"), "-h", cluster.primary.directory,
         "-p", str(cluster.primary.port), "-U", SUPERUSER, "-d", old.database],
        capture_output=True, text=True, check=True).stdout
    cluster.primary.query(copy, other.database)
    assert cluster.primary.query("SELECT round FROM seal_rounds", other.database) == "1"


def test_a_step_that_fails_leaves_the_schema_as_it_was(old):
    """The table of a later step is there already."""
    later = [(SCHEMA / old.engine / f"{step}.sql").read_text(encoding="utf-8") for step in STEPS[1:]]
    table = re.findall(r"CREATE TABLE (\w+)", "".join(later))[-1]
    old.change(f"CREATE TABLE {table} (x BIGINT);")
    code, _, err = old.run("migrate")
    assert code != 0 and table in err
    assert old.schema() == STEPS[0]
    old.change(f"DROP TABLE {table};")
    code, _, err = old.run("migrate")
    assert code == 0, err
    assert old.schema() == STEPS[-1]
