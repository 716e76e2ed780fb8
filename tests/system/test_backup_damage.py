"""Damaged and lost objects, read-only copies, and root: what a backup and a restore must not pass over."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

import stores
from client import run
from test_backup_misuse import empty_copy
from test_backup_series import Series, names

pytestmark = pytest.mark.both_stores


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
