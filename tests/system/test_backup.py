"""Backup and restore of a store on PostgreSQL: taken while two nodes register, restored on another
cluster, which continues from that point."""

import itertools
import json
import os
import shutil
import subprocess
import threading

import pytest

from client import eventually
from fleet import Fleet, FleetNode, gapless
from program import clean_environment, copy_keys
from postgres import Cluster

pytestmark = pytest.mark.postgresql
COLUMNS = ("account, event, key, ref_hash, client_ref, received_at, occurred_at, encode(hash, 'hex'), "
           "config_version, encode(chain_hash, 'hex'), encode(content, 'hex'), file_name, "
           "content_object, content_bytes")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(standbys=1) as running:
        yield running


@pytest.fixture(scope="module")
def another(cluster):
    del cluster
    with Cluster(standbys=1) as running:
        yield running


@pytest.fixture(scope="module")
def fleet(cluster, tmp_path_factory):
    with Fleet(tmp_path_factory.mktemp("fleet"), count=2, cluster=cluster) as running:
        yield running


class Restored(Fleet):
    """A deployment whose store is to come from a backup: it is not initialized."""

    def __init__(self, directory, cluster, **settings):
        super().__init__(directory, count=0, cluster=cluster, **settings)
        self.node = FleetNode(self, "node1")
        self.nodes.append(self.node)

    def restore(self, backup, **environment):
        return subprocess.run(self.node.command("store", "restore", "--live", backup), capture_output=True,
                              text=True, env=clean_environment(environment), timeout=600,
                              check=False)

    def is_empty(self):
        return self.number("SELECT count(*) FROM pg_class "
                           "WHERE relnamespace = 'public'::regnamespace") == 0


class Load:
    """Registrations at both nodes until it is stopped; every receipt is kept."""

    def __init__(self, fleet, channel):
        self.receipts, self.failures, self.stopping = [], [], threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(node, channel.live_key["key"]))
                        for node in fleet.nodes for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def work(self, node, key):
        client = node.client(key)
        try:
            for n in itertools.count():  # each seventh a file, each third JSON above 16 KiB
                if self.stopping.is_set():
                    return
                ref = f"{node.name}-{threading.get_ident()}-{n}"
                if n % 7 == 0:
                    answer = client.register_file(ref.encode() * 3000, ref)
                else:
                    answer = client.register({"n": n, "text": "x" * (n % 3 * 9000)}, ref)
                self.receipts.append(answer.expect(201).json)
        except BaseException as error:
            self.failures.append(error)
        finally:
            client.close()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures


def number(event):
    return int(event["client_ref"].split("-")[-1])


@pytest.fixture(scope="module")
def taken(fleet, tmp_path_factory):
    """A backup that was made under load: where it is, the channel, the receipts given before it began
    and after it ended."""
    directory = tmp_path_factory.mktemp("backup") / "one"
    channel = fleet.new_channel(credits=100000)
    load = Load(fleet, channel)
    eventually(lambda: len(load.receipts) > 150 or load.failures, "many events are registered")
    before = list(load.receipts)
    told = fleet.admin("store", "backup", directory)
    during = len(load.receipts)
    eventually(lambda: len(load.receipts) > during + 20 or load.failures, "the load continued")
    load.stop()
    assert all(node.alive() for node in fleet.nodes), "the end of pg_dump is no one's end"
    assert told["content_objects"] >= len([e for e in before if number(e) % 7 == 0 or
                                           number(e) % 3 == 2]) > 0
    yield directory, channel, before, load.receipts[during:]
    channel.close()


def without_seals(event):
    """What a reading of the event has, too: answers to registrations alone have receipts."""
    return {**{name: value for name, value in event.items() if name != "receipt"}, "timestamp": None, "proof": None}


def test_a_backup_under_load_comes_back_on_another_cluster(fleet, another, taken, tmp_path):
    directory, channel, before, after = taken
    assert sorted(entry.name for entry in directory.iterdir()) == \
        ["backup.json", "constancia.pgdump", "content", "content.sha256"]
    assert (directory / "constancia.pgdump").stat().st_mode & 0o077 == 0
    restored = Restored(tmp_path, another)
    done = restored.restore(directory)
    assert done.returncode == 0, done.stderr
    assert restored.node.admin("store", "check")["valid"] is True
    another.primary.wait_for_standbys()
    copy_keys(fleet.nodes[0].data, restored.node.data)
    with restored:
        client = restored.node.client(channel.live_key["key"])
        for receipt in before:
            assert without_seals(client.event(receipt["event_id"])) == without_seals(receipt)
        rows = restored.rows(f"SELECT {COLUMNS} FROM events ORDER BY account, event")
        assert len(rows) >= len(before)
        assert rows == fleet.rows(f"SELECT {COLUMNS} FROM events ORDER BY account, event")[:len(rows)]
        another.primary.wait_for_standbys()
        assert rows == another.standby.rows(f"SELECT {COLUMNS} FROM events ORDER BY account, event",
                                            restored.database)
        # Numbers follow the last one; a client with a receipt gets it again, one without gets a new one.
        first = client.register({"n": 1}, "first behind the backup").expect(201).json
        assert first["sequence"] == len(rows) + 1
        lost = [event for event in after if event["sequence"] > len(rows)]
        assert lost
        client.get(f"/v1/events/{lost[-1]['event_id']}").expect(404)
        files = [event for event in before if event["sequence"] <= len(rows)
                 and number(event) % 7 == 0]
        assert files
        for event in files:
            assert client.content(event["event_id"]).expect(200).body == \
                event["client_ref"].encode() * 3000
            again = client.register_file(event["client_ref"].encode() * 3000, event["client_ref"])
            assert without_seals(again.expect(200).json) == without_seals(event)
        gapless(client.walk("/v1/events", 500))
        client.sealed(first["event_id"])
        client.close()
        restored.check()
    again = restored.restore(directory)
    assert again.returncode != 0


def test_it_never_comes_back_over_anything(fleet, taken, another, tmp_path):
    restored = Restored(tmp_path, another)
    try:
        restored.query("SET ROLE constancia; CREATE TABLE someone_elses (a INT)")
        done = restored.restore(taken[0])
        assert done.returncode == 1 and "already has tables" in done.stderr
        assert restored.rows("SELECT relname FROM pg_class "
                             "WHERE relnamespace = 'public'::regnamespace") == [["someone_elses"]]
    finally:
        another.drop_database(restored.database)
    before = fleet.number("SELECT count(*) FROM events")
    done = fleet.nodes[0].run("store", "restore", "--live", taken[0])
    assert done.returncode == 1 and "already has tables" in done.stderr
    assert fleet.number("SELECT count(*) FROM events") == before


@pytest.fixture
def empty(another, tmp_path):
    another.primary.wait_for_standbys()
    restored = Restored(tmp_path, another)
    yield restored
    another.drop_database(restored.database)


@pytest.mark.parametrize("damage", ["byte", "cut", "manifest", "object", "engine"])
def test_what_is_not_whole_does_not_come_back(empty, taken, tmp_path, damage):
    backup = tmp_path / "damaged"
    shutil.copytree(taken[0], backup)
    dump, manifest = backup / "constancia.pgdump", backup / "backup.json"
    if damage == "byte":
        data = bytearray(dump.read_bytes())
        data[len(data) // 2] ^= 1
        dump.write_bytes(data)
    elif damage == "cut":
        os.truncate(dump, dump.stat().st_size - 1)
    elif damage == "manifest":
        manifest.unlink()
    elif damage == "object":
        next(path for path in (backup / "content").rglob("*") if path.is_file()).unlink()
    else:
        facts = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**facts, "store_file": "constancia.db"}))
    done = empty.restore(backup)
    assert done.returncode != 0
    expected = {"byte": "does not match its manifest", "cut": "does not match its manifest",
                "manifest": "backup.json", "object": "objects", "engine": "constancia.pgdump"}
    assert expected[damage] in done.stderr, done.stderr
    assert empty.is_empty()


def test_without_the_standbys_that_are_asked_for_nothing_is_restored(empty, another, taken):
    another.standby.stop("immediate")
    try:
        done = empty.restore(taken[0])
        assert done.returncode != 0 and "standby" in done.stderr, done.stderr
        assert empty.is_empty()
    finally:
        another.standby.start()


# ---- the programs that do it ----

def tool(directory, name, text):
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def backup_here(fleet, directory, url=None, **environment):
    """By a command that opens the store itself: no service runs with these settings."""
    command = fleet.nodes[0].command("store", "backup", directory, "--no-content")
    command += [f"--set=service.data_dir={directory}.data"]
    command += [f"--set=store.url={url}"] if url else []
    os.makedirs(f"{directory}.data", exist_ok=True)
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          env=clean_environment(environment))


def test_their_absence_is_told(fleet, empty, taken, tmp_path):
    (tmp_path / "nothing").mkdir()
    done = backup_here(fleet, tmp_path / "one", PATH=str(tmp_path / "nothing"))
    assert done.returncode == 2 and "pg_dump" in done.stderr and "postgresql-client" in done.stderr
    assert not (tmp_path / "one" / "backup.json").exists()
    done = empty.restore(taken[0], PATH=str(tmp_path / "nothing"))
    assert done.returncode == 2 and "pg_restore" in done.stderr
    assert "postgresql-client" in done.stderr
    assert empty.is_empty()


def test_what_they_complain_of_is_told(fleet, tmp_path):
    """As one does that is older than the server."""
    tool(tmp_path / "bin", "pg_dump",
         "echo 'pg_dump: error: aborting because of server version mismatch' >&2\n"
         "echo 'pg_dump: detail: server version: 15.1; pg_dump version: 9.6' >&2\nexit 1\n")
    done = backup_here(fleet, tmp_path / "one", PATH=f"{tmp_path}/bin")
    assert done.returncode == 2
    assert "server version mismatch" in done.stderr and "pg_dump version: 9.6" in done.stderr
    assert not (tmp_path / "one" / "backup.json").exists()


def test_a_password_is_in_no_argument(fleet, tmp_path):
    secret = "it's \\ a=secret"
    url = fleet.settings["store.url"].replace(
        "constancia@", "constancia:it%27s%20%5C%20a%3Dsecret@")
    tool(tmp_path / "bin", "pg_dump",
         f"printf '%s\\n' \"$@\" > {tmp_path}/arguments\n"
         f"printf '%s' \"$PGPASSWORD\" > {tmp_path}/password\n"
         f"exec {shutil.which('pg_dump')} \"$@\"\n")
    done = backup_here(fleet, tmp_path / "one", url, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "one" / "backup.json").exists()
    assert (tmp_path / "password").read_text() == secret
    assert "secret" not in (tmp_path / "arguments").read_text()
    assert "user='constancia'" in (tmp_path / "arguments").read_text()
