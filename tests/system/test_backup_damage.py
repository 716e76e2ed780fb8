"""Damaged and lost objects, read-only copies, and root: what a backup and a restore must not pass over."""

import json
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess
import tempfile

import pytest

import stores
from client import Service, run
from test_backup_misuse import empty_copy
from test_backup_series import Series, flip, names, objects, on_sqlite

pytestmark = pytest.mark.both_stores


def content_of(service):
    return service.data / "content"


def stored(service, content):
    """The name of the object with this content."""
    (path,) = [path for path in content_of(service).rglob("*") if path.is_file() and path.read_bytes() == content]
    return str(path.relative_to(content_of(service)))


def put(service, name, content):
    path = content_of(service) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def restored(copy, directory, *options):
    done = run("store", "restore", "--json", directory, *options, *copy.chosen())
    return done, json.loads(done.stdout or "null")


def is_absent(copy):
    """Whether the store was not restored."""
    if stores.KIND == "sqlite":
        return not copy.store.path.exists()
    return "There is no store" in run("store", "check", *copy.chosen()).stderr


def spoil(path, damage):
    if damage == "flipped":
        flip(path)
    elif damage == "cut":
        os.truncate(path, 100)
    else:
        path.unlink()


@on_sqlite  # objects are the same beside each store
# ---- damage in the backup ----

@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
@pytest.mark.parametrize("kind", ["series", "single"])
def test_a_damaged_object_is_not_restored(start, tmp_path, kind, damage):
    series = Series(start, tmp_path / "series")
    series.register(1, 2)
    backup = pathlib.Path(series.back_up()["directory"])
    if kind == "series":
        series.register(1, 1)
        backup = pathlib.Path(series.back_up()["directory"])
    else:
        backup = tmp_path / "single"
        series.service.admin("store", "backup", backup)
    name = stored(series.service, b"\2" * 30000)
    spoil(backup / "content" / name, damage)
    refused = run("store", "backup-verify", backup, *series.service.chosen())
    assert refused.returncode == 1 and name in refused.stderr, refused.stderr
    copy = empty_copy(tmp_path)
    refused, _ = restored(copy, backup)
    assert refused.returncode == 1 and name in refused.stderr and "--skip-damaged" in refused.stderr, refused.stderr
    assert is_absent(copy)
    assert not (content_of(copy) / name).exists()
    done, told = restored(copy, backup, "--skip-damaged", "--no-check")
    assert done.returncode == 1, "something is not restored"
    assert (told["skipped_count"], told["skipped_objects"], told["valid"]) == (1, [name], None)
    assert len(objects(copy.data)) == len(objects(backup)) - (damage != "gone")
    assert not (content_of(copy) / name).exists()
    checked = json.loads(run("store", "check", "--json", *copy.chosen()).stdout)
    assert checked["missing_objects"] == [name] and checked["problem_count"] == 1


def test_the_check_names_what_a_restore_skipped(start, tmp_path):
    series = Series(start, tmp_path / "series")
    series.register(1, 2)
    backup = pathlib.Path(series.back_up()["directory"])
    name = stored(series.service, b"\1" * 30000)
    flip(backup / "content" / name)
    copy = empty_copy(tmp_path)
    done = run("store", "restore", backup, "--skip-damaged", *copy.chosen())
    assert done.returncode == 1, done.stderr
    assert "Skipped, because they are damaged or missing in the backup: 1." in done.stdout
    assert f"\n  {name}\n" in done.stdout
    assert f"object {name} is missing" in done.stdout


@on_sqlite  # objects are the same beside each store
@pytest.mark.parametrize("damage", ["digest", "name", "line", "cut"])
def test_a_damaged_list_is_refused_and_can_be_skipped(start, tmp_path, damage):
    series = Series(start, tmp_path / "series")
    series.register(1, 3)
    backup = pathlib.Path(series.back_up()["directory"])
    lines = (backup / "content.sha256").read_text().splitlines(keepends=True)
    lost = lines[1].split()[1].removeprefix("content/")
    lines[1] = {"digest": ("1" if lines[1][0] == "0" else "0") + lines[1][1:], "name": lines[1][:-3] + "?!\n",
                "line": "\n", "cut": ""}[damage]
    (backup / "content.sha256").write_text("".join(lines))
    copy = empty_copy(tmp_path)
    refused, _ = restored(copy, backup)
    assert refused.returncode == 1 and "content.sha256" in refused.stderr, refused.stderr
    assert is_absent(copy)
    done, told = restored(copy, backup, "--skip-damaged")
    assert done.returncode == 1 and "content.sha256" in told["skipped_objects"], (done.stderr, told)
    assert told["skipped_count"] == 2 and told["valid"] is False
    assert len(told["problems"]) == 1 and lost in told["problems"][0]
    assert len(objects(copy.data)) == 2


def test_a_right_object_in_place_is_better_than_a_damaged_one(start, tmp_path):
    series = Series(start, tmp_path / "series")
    series.register(1, 1)
    backup = pathlib.Path(series.back_up()["directory"])
    name = stored(series.service, b"\1" * 30000)
    spoil(backup / "content" / name, "cut")
    copy = empty_copy(tmp_path)
    put(copy, name, b"\1" * 30000)
    done, told = restored(copy, backup)
    assert done.returncode == 0, done.stderr
    assert told["valid"] and told["skipped_count"] == 0


def test_a_backup_without_content_is_restored_and_its_objects_are_named(start, tmp_path):
    """They are copied into the content store afterwards: the restore makes its directory."""
    series = Series(start, tmp_path / "series")
    series.register(1, 1)
    backup = series.back_up("--no-content")["directory"]
    name = stored(series.service, b"\1" * 30000)
    copy = empty_copy(tmp_path)
    done, told = restored(copy, backup)
    assert done.returncode == 1 and told["valid"] is False, (done.stderr, told)
    assert [problem for problem in told["problems"] if name in problem] and told["next"]
    put(copy, name, b"\1" * 30000)
    assert json.loads(run("store", "check", "--json", *copy.chosen()).stdout)["problem_count"] == 0


# ---- objects that were missing when the backup was made ----

@pytest.mark.parametrize("kind", ["series", "single"])
def test_only_the_objects_that_were_missing_may_be_missing(start, tmp_path, kind):
    """Another problem in place of a known one is no known problem, whatever their number."""
    series = Series(start, tmp_path / "series")
    series.register(1, 3)
    lost, other, _ = (stored(series.service, bytes([n]) * 30000) for n in (1, 2, 3))
    (content_of(series.service) / lost).unlink()
    words = [] if kind == "series" else [tmp_path / "single"]
    made = json.loads(run("store", "backup", *words, "--json", *series.service.chosen()).stdout)
    assert (made["content_missing"], made["valid"]) == (1, False)
    backup = pathlib.Path(made["directory"])
    assert lost in (backup / "content.missing").read_text()
    known = empty_copy(tmp_path / "known")
    done, told = restored(known, backup)
    assert done.returncode == 0 and told["valid"], (done.stderr, told)
    assert len(told["problems"]) == 1 and lost in told["problems"][0]
    copy = empty_copy(tmp_path / "other")
    put(copy, lost, b"\1" * 30000)
    put(copy, other, b"x" * 30000)  # of the right size: kept, and the check reads it
    done, told = restored(copy, backup)
    assert done.returncode == 1 and told["valid"] is False, told
    assert len(told["problems"]) == 1 and other in told["problems"][0]
    listed = (backup / "content.missing").read_text()
    (backup / "content.missing").write_text(listed.replace(lost, other))
    refused = run("store", "backup-verify", backup, *series.service.chosen())
    assert refused.returncode == 1 and "content.missing" in refused.stderr, refused.stderr


# ---- what the content store lost ----

def test_what_the_content_store_lost_is_taken_from_the_previous_backup(start, tmp_path):
    """Of a plain object and of one that shares bytes with another."""
    series = Series(start, tmp_path / "series", seal__interval="1h")
    service = series.service
    file = secrets.token_bytes(1_500_000)
    series.channel.live.register_file(file, "file").expect(201)
    for _ in range(2):
        assert series.channel.live.certified(seq_from=1, seq_to=1)["status"] == "completed"
    first = series.back_up()
    assert (first["content_lost"], first["valid"]) == (0, True)
    ((part,),) = service.store.rows(
        "SELECT object FROM issued_files WHERE kind = 'part' AND shared_object IS NOT NULL")
    plain = stored(service, file)
    kept = {name: (content_of(service) / name).read_bytes() for name in (part, plain)}
    for name in kept:
        (content_of(service) / name).unlink()
    done = run("store", "backup", "--json", *service.chosen())
    told = json.loads(done.stdout)
    assert done.returncode == 1, "the content store has lost something"
    assert (told["content_missing"], told["content_lost"], told["valid"]) == (0, 2, False)
    backup = pathlib.Path(told["directory"])
    for name, content in kept.items():
        assert (backup / "content" / name).read_bytes() == content
        assert service.logged(lambda line, name=name: line["event"] == "object_missing" and line["object"] == name
                              and first["directory"] in line["taken_from"])
    assert run("store", "backup-verify", backup, *service.chosen()).returncode == 0
    copy = empty_copy(tmp_path)
    done, told = restored(copy, backup)
    assert done.returncode == 0 and told["valid"], (done.stderr, told)
    # Damage in place of a loss, also without another size.
    flip_at = {part: bytearray(kept[part]), plain: bytearray(kept[plain][:-1])}
    flip_at[part][len(kept[part]) // 2] ^= 1
    for name, content in flip_at.items():
        put(service, name, content)
    told = json.loads(run("store", "backup", "--json", *service.chosen()).stdout)
    assert (told["content_missing"], told["content_lost"], told["valid"]) == (0, 2, False)
    for name, content in kept.items():
        assert (pathlib.Path(told["directory"]) / "content" / name).read_bytes() == content
    for name, content in kept.items():
        put(service, name, content)
    assert series.back_up()["content_lost"] == 0


def test_a_damaged_copy_of_what_is_lost_is_not_taken(start, tmp_path):
    series = Series(start, tmp_path / "series")
    series.register(1, 2)
    first = pathlib.Path(series.back_up()["directory"])
    name = stored(series.service, b"\1" * 30000)
    (content_of(series.service) / name).unlink()
    flip(first / "content" / name)
    done = run("store", "backup", "--json", *series.service.chosen())
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert (told["content_missing"], told["content_lost"], told["content_objects"]) == (1, 0, 1)


# ---- read-only copies ----

def test_a_read_only_copy_does_not_add_to_the_series(start, tmp_path):
    place = tmp_path / "series"
    series = Series(start, place, backup__keep=1, backup__full_every=1)
    series.register(1, 1)
    series.back_up()
    before = names(place)
    copy = empty_copy(tmp_path, backup__directory=str(place), backup__keep=1)
    done = run("store", "restore", "--latest", *copy.chosen())
    assert done.returncode == 0, done.stderr
    refused = run("store", "backup", *copy.chosen())
    assert refused.returncode == 1 and "read-only copy" in refused.stderr, refused.stderr
    assert "store wake" in refused.stderr and names(place) == before
    done = run("store", "backup", tmp_path / "single", *copy.chosen())
    assert done.returncode == 0, done.stderr
    assert series.back_up()["removed"] == 1
    assert run("store", "wake", *copy.chosen()).returncode == 0
    assert run("store", "backup", *copy.chosen()).returncode == 0


def test_service_quiet_stops_the_series(start, tmp_path):
    service = start(backup__directory=str(tmp_path / "series"), service__quiet="true")
    refused = run("store", "backup", *service.chosen())
    assert refused.returncode == 1 and "read-only copy" in refused.stderr, refused.stderr


# ---- root ----

@pytest.mark.skipif(os.geteuid() != 0, reason="of root")
def test_root_adds_to_the_series_as_the_owner_of_the_data_directory(start, tmp_path):
    nobody = pwd.getpwnam("nobody")
    series = Series(start, tmp_path / "series")
    series.register(1, 1)
    assert series.service.stop() == 0
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        data, backups = pathlib.Path(place) / "data", pathlib.Path(place) / "series"
        shutil.copytree(series.service.data, data, ignore=lambda _, found: {name for name in found
                                                                          if name.endswith("sock")})
        backups.mkdir()
        subprocess.run(["chown", "-R", f"{nobody.pw_uid}:{nobody.pw_gid}", data, backups], check=True)
        words = ["--set", f"service.data_dir={data}", "--set", f"backup.directory={backups}"]
        if stores.KIND == "sqlite":
            words += ["--set", f"store.url=sqlite:{data}/constancia.db"]
        for _ in range(2):
            done = run("store", "backup", *series.service.chosen(), *words)
            assert done.returncode == 0, done.stderr
        made = [path for place in (data, backups) for path in [place, *place.rglob("*")]]
        assert len(names(backups)) == 2 and {path.lstat().st_uid for path in made} == {nobody.pw_uid}
