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
from test_backup_series import Series, names

pytestmark = pytest.mark.both_stores


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
