"""What a copy does once it is resumed: what the original did since the copy was made is not repeated,
what waited meanwhile gets its full time, and an interrupted restore never leaves a copy that sends."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

import forgetful
import stores
from client import BINARY, Client, Service, eventually, free_port, run
from money import bill, movements, new_pack
from payment_provider import PaymentProvider
from program import ROOT, clean_environment, copy_keys

pytestmark = pytest.mark.both_stores

SCHEDULES = 3  # seconds in which each job would have looked several times
on_sqlite = pytest.mark.skipif(stores.KIND != "sqlite", reason="of the embedded store")
on_postgres = pytest.mark.skipif(stores.KIND != "postgresql", reason="of a server")


@pytest.fixture
def provider():
    with contextlib.closing(PaymentProvider()) as running:
        yield running


def buyer(service, credits=6, threshold=5):
    """A channel whose account buys ten credits when it has fewer than five."""
    channel = service.new_channel(credits=credits)
    bill(service, channel.account_id)
    service.admin("topup", "set", "--account", channel.account_id, "--threshold", threshold,
                  "--pack", new_pack(service)["pack_id"], "--daily-max", 5)
    return channel


@contextlib.contextmanager
def restored(service, backup, directory, alter="", **settings):
    """A copy that serves and is quiet; the original has ended."""
    copy = Service(directory / "copy", prepared=False, rate__live=100000, rate__test=100000, **settings)
    copy.data.parent.mkdir()
    done = run("store", "restore", backup, *copy.chosen())
    assert done.returncode == 0, done.stderr
    copy.distribute()
    if alter:
        copy.store.change(alter)
    copy_keys(service.data, copy.data)
    try:
        copy.start()
        yield copy
    finally:
        copy.discard()


def bought(service, channel):
    return [one for one in movements(service, channel.account_id) if one[0] == "purchase"]


def test_a_copy_does_not_charge_again_for_what_it_does_not_know(start, tmp_path, provider):
    service = start(**provider.settings())
    charged, spared = buyer(service), buyer(service)
    bill(service, spared.account_id, customer="cus_two")
    service.admin("store", "backup", tmp_path / "backup")
    for _ in range(2):
        charged.live.register().expect(201)
    eventually(lambda: bought(service, charged), "the original has bought")
    assert service.stop() == 0
    with restored(service, tmp_path / "backup", tmp_path, **provider.settings()) as copy:
        for channel in (charged, spared):
            copy.admin("credits", "add", channel.account_id, -2)
        told = copy.admin("store", "wake", "--dry-run")
        assert told["on_waking"] == {"charges_looked_up": 0, "topups_looked_up": 2,
                                     "certifications_given_time": 0}
        assert not copy.admin("store", "wake")["quiet"]
        eventually(lambda: bought(copy, spared), "who was not charged is served")
        (line,) = copy.logged(lambda line: line["event"] == "topup_held")
        assert line["account_id"] == charged.account_id
        topup = copy.admin("topup", "show", charged.account_id)
        assert not topup["enabled"] and topup["reason"] == "charged_elsewhere", topup
        (paid,) = copy.logged(lambda line: line["event"] == "unknown_payment_found")
        assert paid["reference"] in provider.intents
        assert bought(copy, charged) == [] and len(provider.charges) == 2
        # The operator has settled it.
        copy.admin("topup", "on", charged.account_id)
        eventually(lambda: bought(copy, charged), "it continues when it is reported to")
        assert len(provider.charges) == 3


@pytest.mark.parametrize("while_quiet", [False, True], ids=["woken", "quiet"])
def test_a_sale_in_the_copy_hides_nothing_that_the_original_charged(start, tmp_path, provider,
                                                                    while_quiet):
    service = start(**provider.settings())
    charged = buyer(service)
    service.admin("store", "backup", tmp_path / "backup")
    for _ in range(2):
        charged.live.register().expect(201)
    eventually(lambda: bought(service, charged), "the original has bought")
    assert service.stop() == 0
    for intent in provider.intents.values():  # three days ago
        intent["created"] -= 3 * 86400
    with restored(service, tmp_path / "backup", tmp_path,
                  "UPDATE accounts SET created_at = created_at - 864000000000",
                  **provider.settings()) as copy:
        pack = new_pack(copy)
        if not while_quiet:
            copy.admin("store", "wake")
        copy.admin("purchase", "create", "--account", charged.account_id, "--pack", pack["pack_id"])
        copy.admin("credits", "add", charged.account_id, -2)
        if while_quiet:
            copy.admin("store", "wake")
        copy.logged(lambda line: line["event"] == "topup_held")
        assert bought(copy, charged) == [] and len(provider.charges) == 1


def test_whose_payments_are_not_told_keeps_nobody_waiting(start, tmp_path, provider):
    service = start(**provider.settings())
    unknown, served = buyer(service), buyer(service)
    bill(service, served.account_id, customer="cus_two")
    asked = buyer(service, credits=6)
    bill(service, asked.account_id, customer="cus_three")
    service.admin("store", "backup", tmp_path / "backup")
    assert service.stop() == 0
    told = provider.list_intents
    provider.list_intents = lambda query: told(query) if query["customer"] != "cus_one" else \
        (503, {"error": {"type": "api_error", "message": "By the script."}}, {})
    with restored(service, tmp_path / "backup", tmp_path, **provider.settings()) as copy:
        for channel in (unknown, served, asked):
            copy.admin("credits", "add", channel.account_id, -2)
        copy.admin("store", "wake")
        for channel in (served, asked):
            eventually(lambda: bought(copy, channel), "the others buy")
        (line, *_) = copy.logged(lambda line: line["event"] == "topup_interrupted")
        assert "list of payments" in line["cause"], line
        assert bought(copy, unknown) == []
        provider.list_intents = told
        eventually(lambda: bought(copy, unknown), "it is checked again")


def test_a_charge_that_was_asked_for_is_looked_up_first(start, tmp_path, provider):
    """Though the provider has forgotten its key."""
    provider.behaviour = "unavailable"
    service = start(**provider.settings())
    channel = buyer(service, credits=3)
    eventually(lambda: ("POST", "/v1/payment_intents") in [asked[:2] for asked in provider.requests],
               "it was tried")
    service.admin("store", "backup", tmp_path / "backup")
    provider.behaviour = "pay"
    eventually(lambda: bought(service, channel), "the original was paid")
    assert service.stop() == 0
    provider._answers.clear()
    with restored(service, tmp_path / "backup", tmp_path, **provider.settings()) as copy:
        time.sleep(SCHEDULES)
        assert bought(copy, channel) == []
        assert copy.admin("store", "wake", "--dry-run")["on_waking"]["charges_looked_up"] == 1
        copy.admin("store", "wake")
        eventually(lambda: bought(copy, channel), "the copy knows that it was paid")
        assert len(provider.charges) == 1


# The first one's range is sealed, the other's is not; both have waited for two days.
WAITS = """
UPDATE certifications SET status = 'processing', completed_at = NULL,
    requested_at = requested_at - 172800000000, next_attempt_at = 1, attempts = 1000, lease = NULL;
UPDATE certifications SET last_sequence = 2, range_seq_to = 2 WHERE account = (SELECT MAX(account) FROM accounts);
DELETE FROM issued_files;
DELETE FROM evidence_queue;
"""


def test_certifications_have_their_time_from_the_waking_on(start, tmp_path):
    service = start(seal__interval="1h")
    channels = [service.new_channel(credits=100) for _ in range(2)]
    ids = []
    for channel in channels:
        channel.live.register({"n": 1}).expect(201)
        ids.append(channel.live.certified(seq_from=1, seq_to=1)["certification_id"])
    channels[1].live.register({"n": 2}).expect(201)
    service.admin("store", "backup", tmp_path / "backup")
    assert service.stop() == 0
    with restored(service, tmp_path / "backup", tmp_path, WAITS) as copy:
        clients = [Client(copy, channel.live_key["key"]) for channel in channels]
        time.sleep(SCHEDULES)
        for client, certification_id in zip(clients, ids):
            assert client.certification(certification_id)["status"] == "processing"
        told = copy.admin("store", "wake", "--dry-run")
        assert told["due"]["certifications"] == told["on_waking"]["certifications_given_time"] == 2
        copy.admin("store", "wake")
        for client, certification_id in zip(clients, ids):
            assert client.settled(certification_id)["status"] == "completed"
            client.close()


# ---- no moment without the mark ----

def is_marked(store):
    try:
        rows = store.rows("SELECT value FROM settings WHERE name = 'quiet'")
    except (sqlite3.Error, subprocess.CalledProcessError):
        return False
    return len(rows) == 1 and "restored from the backup" in rows[0][0]


@pytest.fixture
def backup(start, tmp_path):
    service = start()
    service.new_channel(credits=1).live.register().expect(201)
    service.admin("store", "backup", tmp_path / "backup")
    assert service.stop() == 0
    return tmp_path / "backup"


@on_sqlite
def test_a_restore_that_is_killed_leaves_nothing_that_is_not_quiet(backup, tmp_path):
    library = forgetful.build(tmp_path)
    came = 0
    for number in range(1, 100):
        disk = forgetful.Disk(tmp_path / f"killed{number}", library)
        copy = Service(disk.root, rate__live=1000)
        disk.plan("kill", str(disk.root), number)
        done = subprocess.run([BINARY, "store", "restore", backup, *copy.chosen()],
                              env=clean_environment(disk.environment()), capture_output=True,
                              timeout=60, check=False)
        if copy.store.path.exists():
            came += 1
            shutil.copy(copy.store.path, tmp_path / "looked.db")  # without its write-ahead log
            with contextlib.closing(sqlite3.connect(tmp_path / "looked.db")) as found:
                ((value,),) = found.execute("SELECT value FROM settings WHERE name = 'quiet'")
            assert "restored from the backup" in value
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        again = run("store", "restore", backup, *copy.chosen())
        assert again.returncode == 0 or copy.store.path.exists(), again.stderr
    assert came > 2 and number > came


@contextlib.contextmanager
def killed_restore(backup, tmp_path, command):
    """A service whose restore was killed by the command in the place of pg_restore."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "pg_restore").write_text(f"#!/bin/sh\n{command}\n")
    (tools / "pg_restore").chmod(0o755)
    copy = Service(tmp_path / "copy", prepared=False, rate__live=1000)
    copy.data.parent.mkdir()
    try:
        done = subprocess.run([BINARY, "store", "restore", backup, *copy.chosen()],
                              env=clean_environment({"PATH": f"{tools}:{os.environ['PATH']}"}),
                              capture_output=True, timeout=120, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        yield copy
    finally:
        copy.discard()


@on_postgres
def test_a_restore_that_is_killed_behind_the_data_is_quiet(backup, tmp_path):
    """Between the end of pg_restore and the commit after it, which writes the mark."""
    with killed_restore(backup, tmp_path, f'"{shutil.which("pg_restore")}" "$@" && kill -9 $PPID') as copy:
        assert copy.store.rows("SELECT count(*) FROM settings WHERE name = 'quiet'") == [["0"]]
        again = run("store", "restore", backup, *copy.chosen())
        assert again.returncode == 1 and "already" in again.stderr, again.stderr
        copy.distribute()
        told = json.loads(run("store", "wake", "--dry-run", "--json", *copy.chosen()).stdout)
        assert told["quiet"] and "restored from the backup" in told["reason"], told
        told = json.loads(run("store", "wake", "--json", *copy.chosen()).stdout)
        assert not told["quiet"], told


@on_postgres
def test_a_restore_that_is_killed_before_can_be_repeated(backup, tmp_path):
    with killed_restore(backup, tmp_path, "kill -9 $PPID") as copy:
        again = run("store", "restore", backup, *copy.chosen())
        assert again.returncode == 0, again.stderr
        assert is_marked(copy.store)
        assert copy.store.rows("SELECT count(*) FROM pg_tables WHERE tablename = 'restoring'") == [["0"]]


@on_sqlite
def test_a_restore_that_fails_in_its_migration_is_quiet(backup, tmp_path):
    """The backup's schema is one that this program does not know."""
    path = backup / "constancia.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE settings SET value = '999-unknown' WHERE name = 'schema'")
        database.commit()
    manifest = json.loads((backup / "backup.json").read_text())
    digest = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout
    manifest.update(store_sha256=digest.split()[0], store_bytes=path.stat().st_size)
    (backup / "backup.json").write_text(json.dumps(manifest))
    copy = Service(tmp_path / "copy", rate__live=1000)
    copy.data.parent.mkdir()
    done = run("store", "restore", backup, *copy.chosen())
    assert done.returncode != 0 and "schema" in done.stderr, done.stderr
    assert is_marked(copy.store)


# ---- as the documentation says ----

def drill():
    text = (ROOT / "docs/operate/restore.md").read_text(encoding="utf-8")
    return re.search(r"^## Restore drill$.*?```\n(.*?)```", text, re.MULTILINE | re.DOTALL).group(1)


@on_sqlite
def test_the_drill_of_the_documentation(backup, tmp_path):
    """Its lines unchanged, but for the user and a port that may be taken."""
    port = free_port()
    place = tmp_path / "drill"
    place.mkdir()
    shutil.copytree(backup, place / "DIR")
    (place / "drill.conf").write_text(
        f"[service]\ndata_dir = {place}/data\nlisten = 127.0.0.1:{free_port()}\n"
        f"admin_listen = 127.0.0.1:{port}\n[content]\nurl = file:{place}/content\n"
        "[tsa]\nurl = embedded:\n")
    lines = drill().replace("127.0.0.1:8081", f"127.0.0.1:{port}")
    script = ('sudo() { shift 2; "$@"; }\nconstancia() { "$PROGRAM" "$@"; }\n' + lines)
    # A session of its own: the service goes with the shell, whatever happens.
    with open(place / "printed", "w+", encoding="utf-8") as printed:
        shell = subprocess.Popen(["bash", "-e", "-c", script], cwd=place, stdout=printed,
                                 stderr=printed, start_new_session=True,
                                 env=clean_environment({"PROGRAM": str(BINARY)}))
        try:
            code = shell.wait(300)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
        printed.seek(0)
        text = printed.read()
    assert code == 0, text
    assert "The copy is read-only" in text and "read-only copy since" in text and "on waking" in text, text
