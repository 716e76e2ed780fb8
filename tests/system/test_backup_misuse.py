"""What must not make a series of backups useless: other installations, names and files that do not belong there,
missing parts, a lost content store, damage, a power failure."""

import json
import pathlib
import sqlite3
import struct

import pytest

import forgetful
import stores
from client import Service, run
from test_backup_series import Series, listed, names, on_sqlite, restore

pytestmark = pytest.mark.both_stores


def empty_copy(place, **settings):
    copy = Service(place / "copy", prepared=False, **settings)
    copy.data.parent.mkdir(parents=True, exist_ok=True)
    return copy


def test_a_series_belongs_to_one_installation(start, tmp_path):
    place = tmp_path / "series"
    mine = Series(start, place, backup__keep=1, backup__full_every=1)
    mine.register()
    mine.back_up()
    before = names(place)
    other = start(backup__directory=str(place), backup__keep=1)
    refused = run("store", "backup", *other.chosen())
    assert refused.returncode == 1 and "another installation" in refused.stderr, refused.stderr
    assert str(place) in refused.stderr and names(place) == before
    assert mine.back_up()["removed"] == 1


@on_sqlite
def test_names_that_are_no_backups_do_not_stop_the_series(start, tmp_path):
    series = Series(start, tmp_path / "series")
    series.place.mkdir()
    (series.place / "000007-20261129T020000Z-full").write_text("a file")
    (series.place / "000003-20261129T020000Z-full").mkdir()
    (series.place / "9223372036854775807-20261129T020000Z-full").mkdir()
    (series.place / "1000000-20261129T020000Z-incremental").symlink_to("/nowhere")
    series.register()
    assert series.back_up()["directory"].startswith(f"{series.place}/1000001-")
    series.register()
    assert series.back_up()["directory"].startswith(f"{series.place}/1000002-")
    done = run("store", "backup-list", "--json", *series.service.chosen())
    told = json.loads(done.stdout)
    assert done.returncode == 1 and [backup["name"][:8] for backup in told["backups"]] == ["1000001-", "1000002-"]
    assert told["unreadable"].startswith("1000000-")
    assert run("store", "backup-verify", *series.service.chosen()).returncode == 0


def test_the_latest_is_not_silently_an_older_one(start, tmp_path):
    series = Series(start, tmp_path / "series", backup__full_every=1)
    series.register()
    first = series.back_up()["directory"]
    series.register()
    second = pathlib.Path(series.back_up()["directory"])
    (second / "backup.json").write_text("{}")
    series.service.stop()
    copy = empty_copy(tmp_path, backup__directory=str(series.place))
    for words in (("store", "restore", "--latest"), ("store", "backup-verify")):
        refused = run(*words, *copy.chosen())
        assert refused.returncode == 1 and second.name in refused.stderr, (words, refused.stdout, refused.stderr)
    assert not copy.store.path.exists() if stores.KIND == "sqlite" else True
    if stores.KIND == "sqlite":
        assert run("store", "restore", first, *copy.chosen()).returncode == 0


@on_sqlite
@pytest.mark.parametrize("part", ["0 constancia.db", "1 constancia.increment", "2 constancia.increment",
                                  "2 constancia.pages", "0 backup.json", "1 backup.json"])
def test_a_part_of_the_chain_that_is_gone_is_replaced(start, tmp_path, part):
    series = Series(start, tmp_path / "series")
    made = []
    for _ in range(3):
        series.register()
        made.append(pathlib.Path(series.back_up()["directory"]))
    which, name = part.split()
    (made[int(which)] / name).unlink()
    series.register()
    told = series.back_up()
    assert (told["kind"], told["verified"]) == ("full", True)
    assert run("store", "backup-verify", *series.service.chosen()).returncode == 0


@on_sqlite
def test_what_is_verified_can_be_restored(start, tmp_path):
    """A wrong page number in an increment whose page a later increment has."""
    series = Series(start, tmp_path / "series")
    made = []
    for _ in range(3):
        series.register()
        made.append(pathlib.Path(series.back_up()["directory"]))
    size = json.loads((made[0] / "backup.json").read_text())["page_size"]

    def records(backup):
        data = (backup / "constancia.increment").read_bytes()
        return [struct.unpack_from(">Q", data, at)[0] for at in range(0, len(data), 8 + size)]
    first = records(made[1])
    index = next(n for n, page in enumerate(first) if page in records(made[2]))
    with open(made[1] / "constancia.increment", "r+b") as file:
        file.seek(index * (8 + size))
        file.write(struct.pack(">Q", 1 << 55))
    series.service.stop()
    verified = run("store", "backup-verify", *series.service.chosen())
    copy = empty_copy(tmp_path, backup__directory=str(series.place))
    restored = run("store", "restore", "--latest", *copy.chosen())
    assert (verified.returncode == 0) == (restored.returncode == 0), (verified.stderr, restored.stderr)


def test_the_last_backup_with_every_object_is_kept(start, tmp_path):
    series = Series(start, tmp_path / "series", backup__keep=2, backup__full_every=1)
    series.register(1, 2)
    whole = pathlib.Path(series.back_up()["directory"])
    for _ in range(3):
        series.back_up("--no-content")
    assert whole.exists(), names(series.place)
    told = series.back_up()
    assert told["content_linked"] == 2 and not whole.exists() and len(names(series.place)) == 2


@on_sqlite
def test_a_series_is_not_inside_what_it_saves(start, tmp_path):
    service = start()
    for place in (service.data, service.data / "backups", service.data / "content/backups"):
        done = run("config", "check", "--set", f"backup.directory={place}", *service.chosen())
        assert done.returncode == 1 and "backup.directory" in done.stdout + done.stderr, (place, done.stdout)
        assert "must not be inside" in done.stdout + done.stderr, done.stdout


@on_sqlite
def test_a_backup_and_a_restore_outlast_a_power_failure(tmp_path):
    """What was reported complete, and nothing that was removed is needed."""
    disk = forgetful.Disk(tmp_path / "box", forgetful.build(tmp_path))
    place = disk.root / "series"
    service = Service(disk.root / "service", rate__live=1000, backup__directory=str(place),
                      backup__keep=1, backup__full_every=2, environment=disk.environment())
    service.data.parent.mkdir(parents=True)
    count = 0
    for turn in range(3):
        service.start()
        channel = service.new_channel()
        for n in range(2):
            channel.live.register_file(f"{turn}-{n}".encode() * 5000, f"e{n}").expect(201)
            count += 1
        channel.close()
        assert service.stop() == 0
        done = run("store", "backup", *service.chosen(), environment=disk.environment())
        assert done.returncode == 0, done.stderr
        disk.cut()
        backup = listed(service)[-1]
        assert backup["content_objects"] == count
        done = run("store", "backup-verify", place / backup["name"], *service.chosen())
        assert done.returncode == 0, done.stderr
    copy = empty_copy(disk.root, backup__directory=str(place))
    done = run("store", "restore", "--latest", *copy.chosen(), environment=disk.environment())
    assert done.returncode == 0, (done.stdout, done.stderr)
    disk.cut()
    done = run("store", "check", "--json", *copy.chosen())
    assert done.returncode == 0 and json.loads(done.stdout)["objects"] == count, done.stdout
    with sqlite3.connect(copy.store.path) as store:
        assert "restored from the backup" in str(store.execute("SELECT * FROM settings").fetchall())
