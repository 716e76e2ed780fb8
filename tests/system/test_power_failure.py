"""What was acknowledged outlasts a power failure, whatever syncs failed or processes were killed
before it. The service runs over a disk that keeps exactly what good syncs covered: see
tests/support/forgetful.py."""

import http.client
import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

import sqlite_rows
from client import EVENT, Client, NotStarted, Service, eventually, run
from forgetful import Disk, build

pytestmark = pytest.mark.sqlite
LOG = "constancia.db-wal"
LASTING = EVENT - {"timestamp", "status"}


class Box:
    """A service on such a disk, with what it acknowledged."""

    def __init__(self, directory, library):
        self.disk = Disk(directory, library)
        self.service = Service(self.disk.root, environment=self.disk.environment(), describe=False,
                               seal__interval="1h", rate__live=1000000)
        self.receipts = {}  # client_ref: (event, content or None)
        self.numbers = itertools.count()

    def start(self):
        self.service.start()
        self.key = self.service.ready["channels"]["content"]["live_key"]
        return self

    def register(self, client_ref=None):
        """By turns small JSON, JSON kept as an object, and a file."""
        number = next(self.numbers)
        ref = client_ref or f"event-{number}"
        client = Client(self.service, self.key)
        try:
            if client_ref is None and number % 3 == 2:
                content = ref.encode() * 5000
                answer = client.register_file(content, ref)
            else:
                size = 30000 if client_ref is None and number % 3 == 1 else 1
                content = None
                answer = client.register({"n": "x" * size}, ref)
        finally:
            client.close()
        if answer.status in (200, 201):
            self.receipts[ref] = (answer.json, content)
        return answer

    def register_in_vain(self, client_ref):
        """With a failing sync ahead, or a kill: nothing is acknowledged and the process ends."""
        try:
            assert self.register(client_ref).status == 503
        except (OSError, http.client.HTTPException):
            pass
        eventually(lambda: self.service.process.poll() is not None, "the service ends")
        assert not self.disk.planned()

    def cut(self, survives=None):
        self.service.kill()
        self.disk.cut(survives)

    def command(self, *arguments):
        """Without a service, on the same disk."""
        return run(*arguments, "--json", *self.service.chosen(),
                   environment=self.disk.environment())

    def check(self):
        """All that was acknowledged is there, under its own number, and the store is sound."""
        client = Client(self.service, self.key)
        for event, content in self.receipts.values():
            found = client.event(event["event_id"])
            assert {name: found[name] for name in LASTING} == {name: event[name] for name in LASTING}
            if content is not None:
                assert client.content(event["event_id"]).expect(200).body == content
        events = client.walk("/v1/events", 500)
        assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
        client.close()
        assert self.service.admin("store", "check")["valid"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("library"))


@pytest.fixture
def box(tmp_path, library):
    made = Box(tmp_path, library)
    yield made
    made.service.kill()


@pytest.mark.parametrize("later", (0, 12))
def test_a_start_over_a_failed_sync_leaves_no_hole(box, later):
    """The log that a start finds in the page cache is not on the disk, and no later sync brings it
    there. A retry answered from it, and whatever is written after it, would be lost with it."""
    box.start()
    for _ in range(3):
        box.register().expect(201)
    box.disk.plan("fail", LOG)
    box.register_in_vain("in doubt")
    box.service.kill()
    box.start()
    assert box.register("in doubt").status in (200, 201)
    for _ in range(later):
        box.register().expect(201)
    box.cut()
    box.start().check()


@pytest.mark.parametrize("what", ("fail", "kill"))
def test_a_start_may_be_cut_short_at_each_of_its_syncs(box, what):
    """A page may get into the file only once the log that has it is on the disk: else the part of the
    log that is there would be played into a file that is ahead of it."""
    box.start()
    account = box.service.ready["account_id"]
    for number in itertools.count(1):
        box.register().expect(201)
        assert box.service.stop() == 0
        box.start()
        box.service.admin("account", "set", account, "--email", f"a{number}@example.org")
        box.disk.plan("fail", LOG)
        box.register_in_vain(f"in doubt {number}")
        box.service.kill()
        box.disk.plan(what, "/data", number)
        box.command("store", "check", "--no-content")
        met = not box.disk.planned()
        box.cut()
        box.start().check()
        if not met:
            break
    assert number > 5, "the syncs of a start"


@pytest.mark.parametrize("what", ("fail", "kill"))
@pytest.mark.parametrize("part", ("constancia.db", "/data/content", "/data"))
def test_making_a_store_may_be_cut_short_at_each_of_its_syncs(tmp_path, library, what, part):
    """A directory or a file that a start finds may be one that another made and could not sync."""
    for number in itertools.count(1):
        box = Box(tmp_path / str(number), library)
        box.disk.plan(what, part, number)
        box.command("init", "--set=tsa.url=embedded:")
        met = not box.disk.planned()
        box.disk.forget_plan()
        box.start()
        for _ in range(3):
            box.register().expect(201)
        box.cut()
        box.start().check()
        box.service.kill()
        if not met:
            break
    assert number > 1


@pytest.mark.parametrize("number", (1, 2))
def test_an_error_of_long_ago_does_not_stop_a_start(box, number):
    """The kernel reports it to the first process that syncs the file. What is written and synced again after
    that is on the disk: the log, and the file."""
    box.start()
    for _ in range(3):
        box.register().expect(201)
    box.service.kill()
    box.disk.plan("fail", "constancia.db", number)
    done = box.command("store", "check")
    assert done.returncode == 0, done.stderr
    assert not box.disk.planned()
    box.cut()
    box.start().check()


def test_a_disk_whose_syncs_go_on_failing_stops_a_start(box):
    box.start()
    box.register().expect(201)
    box.service.kill()
    for number in (2, 3, 4):
        box.disk.plan("fail", "constancia.db", number)
        box.command("store", "check")
    box.disk.forget_plan()
    box.start().check()


def test_a_store_that_somebody_copied_there_is_on_the_disk_before_it_is_served(box):
    box.start()
    box.register().expect(201)
    assert box.service.stop() == 0
    path = box.service.store.path
    copy = path.rename(box.disk.root / "copy")
    subprocess.run([sys.executable, "-c", "import shutil, sys; shutil.copyfile(*sys.argv[1:])",
                    copy, path], check=True, env={**os.environ, **box.disk.environment()})
    box.start()
    box.register().expect(201)
    box.cut()
    box.start().check()


def test_a_full_disk_is_answered_503_and_passes(box):
    """Also when what has no room is the index that SQLite would keep next to the log."""
    box.start()
    process = box.service.process.pid
    box.disk.plan("full", "-shm")
    client = Client(box.service, box.key)
    size = 0
    while size < 5000 * 4096:  # frames: an index grows at the 4063rd
        client.register({"n": "x" * 15000}).expect(201)
        size = (box.service.data / LOG).stat().st_size
    box.disk.plan("full", LOG)
    for _ in range(3):
        box.register().expect(503, "temporarily_unavailable")
    box.disk.forget_plan()
    for _ in range(3):
        box.register().expect(201)
    assert box.service.process.pid == process and box.service.process.poll() is None
    box.check()


def test_a_backup_and_what_is_restored_from_it_outlast_a_power_failure(box):
    box.start()
    for _ in range(3):
        box.register().expect(201)
    place = box.disk.root / "copies"
    place.mkdir()  # by somebody who did not sync
    box.service.admin("store", "backup", place / "today")
    box.cut()
    box.service.data.rename(box.disk.root / "lost")
    done = box.command("store", "restore", "--live", place / "today")
    assert done.returncode == 0, done.stderr
    box.cut()
    box.start().check()


def test_a_series_of_backups_outlasts_a_power_failure(box):
    """A complete backup, then an increment with objects that are linked."""
    box.start()
    place = box.disk.root / "series"
    chosen = f"--set=backup.directory={place}"
    for _ in range(2):
        for _ in range(3):
            box.register().expect(201)
        assert box.service.stop() == 0
        done = box.command("store", "backup", "--json", chosen)
        assert done.returncode == 0, done.stderr
        box.cut()
        checked = box.command("store", "backup-verify", chosen)
        assert checked.returncode == 0, checked.stderr
        box.start()
    assert json.loads(done.stdout)["kind"] == "incremental"
    box.service.kill()
    box.service.data.rename(box.disk.root / "lost")
    done = box.command("store", "restore", "--live", "--latest", chosen)
    assert done.returncode == 0, done.stderr
    box.cut()
    box.start().check()


def test_a_restore_is_not_begun_beside_the_log_of_another_store(box):
    """SQLite would play it into the restored one."""
    box.start()
    box.register().expect(201)
    box.service.admin("store", "backup", box.disk.root / "copy")
    box.service.kill()
    database = box.service.store.path
    database.rename(database.with_name("moved away"))
    assert (box.service.data / LOG).stat().st_size > 0
    done = box.command("store", "restore", "--live", box.disk.root / "copy")
    assert done.returncode == 1 and LOG in done.stderr
    with pytest.raises(NotStarted, match="ended"):
        box.start()  # nor is a new store made there
    database.with_name("moved away").rename(database)
    box.start().check()


def test_a_journal_whose_file_a_cut_took_keeps_no_new_store_out(box):
    """The file's name may be lost and the journal's not, while the file is made."""
    box.service.data.mkdir(mode=0o700, parents=True)
    (box.service.data / "constancia.db-journal").write_bytes(b"x" * 5000)
    box.start()
    box.register().expect(201)
    box.check()


def test_a_check_without_content_does_not_want_it(box):
    box.start()
    box.register().expect(201)
    assert box.service.stop() == 0
    shutil.move(box.service.data / "content", box.disk.root / "elsewhere")
    assert box.command("store", "check", "--no-content").returncode == 0
    assert box.command("store", "backup", box.disk.root / "copy", "--no-content").returncode == 0
    assert box.command("store", "check").returncode != 0


def test_other_programs_are_kept_out_while_the_store_is_open(box):
    box.start()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        sqlite3.connect(box.service.store.path, timeout=0).execute("SELECT * FROM events")
    assert sqlite_rows.rows(str(box.service.store.path), "SELECT count(*) FROM settings")[0][0] > 0
    assert box.service.stop() == 0
    holder = sqlite3.connect(box.service.store.path)
    holder.execute("SELECT * FROM events").fetchone()
    done = box.command("store", "check")
    assert done.returncode == 2 and "in use by another process" in done.stderr
    holder.close()
    assert box.command("store", "check").returncode == 0
