"""Series of backups: increments, shared objects, verification, rotation, interruption at any moment, and the
recovery on another machine as the documentation says."""

import contextlib
import hashlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import forgetful
import stores
from client import BINARY, Client, Service, free_port, run
from program import ROOT, clean_environment, copy_keys

pytestmark = pytest.mark.both_stores
on_sqlite = pytest.mark.skipif(stores.KIND != "sqlite", reason="of the embedded store")


def objects(backup):
    """The objects of a backup by name, with their inodes."""
    content = pathlib.Path(backup) / "content"
    return {str(path.relative_to(content)): path.stat().st_ino for path in content.rglob("*")
            if path.is_file() and ".incoming" not in path.parts}


def names(place):
    return sorted(path.name for path in pathlib.Path(place).iterdir() if path.name != ".lock")


def listed(service):
    done = run("store", "backup-list", "--json", *service.chosen())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["backups"]


class Series:
    """A running service with a series, a channel, and what was registered before each backup."""

    def __init__(self, start, place, **settings):
        self.place = place
        self.service = start(backup__directory=str(place), **settings)
        self.channel = self.service.new_channel()
        self.receipts, self.files = [], 0

    def register(self, count=3, files=1):
        for n in range(count):
            self.receipts.append(self.channel.live.register({"n": n}, f"e{len(self.receipts)}").expect(201).json)
        for _ in range(files):
            self.files += 1
            self.receipts.append(self.channel.live.register_file(
                bytes([self.files]) * 30000, f"e{len(self.receipts)}").expect(201).json)

    def back_up(self, *options):
        return self.service.admin("store", "backup", *options)


def restore(directory, *words, **settings):
    """A copy that was restored: the service and what the command printed."""
    copy = Service(directory, prepared=False, rate__live=100000, **settings)
    copy.data.parent.mkdir(exist_ok=True)
    done = run("store", "restore", "--json", *words, *copy.chosen())
    assert done.returncode == 0, (done.stdout, done.stderr)
    return copy, json.loads(done.stdout)


def test_each_backup_of_a_series_is_a_whole_store(start, tmp_path):
    series = Series(start, tmp_path / "series", backup__full_every=3, backup__keep=10)
    made = []
    for _ in range(4):
        series.register()
        made.append((series.back_up(), len(series.receipts)))
    kinds = [told["kind"] for told, _ in made]
    embedded = stores.KIND == "sqlite"
    assert kinds == (["full", "incremental", "incremental", "full"] if embedded else ["full"] * 4)
    assert all(told["verified"] and told["valid"] for told, _ in made)
    assert [backup["name"] for backup in listed(series.service)] == names(series.place)
    if embedded:
        assert 0 < made[1][0]["pages_changed"] < made[1][0]["pages"]
        assert made[1][0]["store_bytes"] < made[0][0]["store_bytes"]
    # Objects are complete in each backup, and none takes space twice.
    for (before, _), (after, _) in zip(made, made[1:]):
        old, new = objects(before["directory"]), objects(after["directory"])
        assert len(new) == len(old) + 1 == after["content_objects"] and after["content_linked"] == len(old)
        assert all(new[name] == inode for name, inode in old.items())
    for told, _ in made:
        checked = subprocess.run(["sha256sum", "--check", "--strict", "content.sha256"], cwd=told["directory"],
                                 capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout
        assert run("store", "backup-verify", told["directory"], *series.service.chosen()).returncode == 0
    assert series.service.stop() == 0
    if not embedded:
        return
    for number, (told, count) in enumerate(made):
        copy, said = restore(tmp_path / f"copy{number}", told["directory"])
        assert said["valid"] is True and said["problems"] == [] and said["quiet"] is True
        refs = copy.store.rows(f"SELECT client_ref FROM {stores.EVENTS} ORDER BY event")
        assert sorted(ref for ref, in refs) == sorted(event["client_ref"] for event in series.receipts[:count])


@on_sqlite
def test_rotation_keeps_what_an_increment_needs(start, tmp_path):
    series = Series(start, tmp_path / "series", backup__full_every=3, backup__keep=2)
    left = []
    for _ in range(7):
        series.register(1, 1)
        series.back_up()
        left.append([int(name[:6]) for name in names(series.place)])
    assert left == [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4], [4, 5], [4, 5, 6], [4, 5, 6, 7]]
    for backup in listed(series.service):
        place = series.place / backup["name"]
        assert run("store", "backup-verify", place, *series.service.chosen()).returncode == 0
        assert len(objects(place)) == int(backup["name"][:6]), "an object of a removed backup is kept"


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@on_sqlite
@pytest.mark.parametrize("damage", ["database", "pages", "cut", "manifest"])
def test_a_damaged_base_is_noticed_and_replaced(start, tmp_path, damage):
    series = Series(start, tmp_path / "series")
    series.register()
    first = pathlib.Path(series.back_up()["directory"])
    if damage == "database":
        flip(first / "constancia.db")
    elif damage == "pages":
        flip(first / "constancia.pages")
    elif damage == "cut":
        os.truncate(first / "constancia.db", (first / "constancia.db").stat().st_size - 2048)
    else:
        (first / "backup.json").write_text("{}")
    refused = run("store", "backup-verify", first, *series.service.chosen())
    assert refused.returncode == 1 or damage == "manifest" and refused.returncode != 0, refused.stderr
    series.register()
    told = series.back_up()
    assert told["kind"] == "full" and told["verified"]
    if damage != "manifest":
        assert series.service.logged(lambda line: line["event"] == "backup_chain_damaged")
    assert run("store", "backup-verify", *series.service.chosen()).returncode == 0


def test_a_damaged_object_does_not_spread(start, tmp_path):
    series = Series(start, tmp_path / "series", backup__full_every=2)
    series.register(1, 3)
    first = pathlib.Path(series.back_up()["directory"])
    one, other, _ = (first / "content" / name for name in sorted(objects(first)))
    one.write_bytes(b"cut")
    series.register(1, 1)
    second = pathlib.Path(series.back_up()["directory"])  # another size: seen at once
    assert (second / "content" / one.relative_to(first / "content")).stat().st_size == 30000
    flip(second / "content" / other.relative_to(first / "content"))
    refused = run("store", "backup-verify", second, *series.service.chosen())
    assert refused.returncode == 1 and other.name in refused.stderr, refused.stderr
    third = pathlib.Path(series.back_up()["directory"])  # a complete one reads everything
    assert third.name.endswith("-full") and len(objects(third)) == 4
    assert run("store", "backup-verify", third, *series.service.chosen()).returncode == 0


def test_a_damaged_source_is_not_saved_as_if_it_were_right(start, tmp_path):
    series = Series(start, tmp_path / "series")
    series.register(1, 2)
    damaged = next(path for path in (series.service.data / "content").rglob("*")
                   if path.is_file() and path.read_bytes() == b"\1" * 30000)
    flip(damaged)
    done = run("store", "backup", "--json", *series.service.chosen())
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert (told["valid"], told["content_missing"], told["content_objects"]) == (False, 1, 1)
    assert series.service.logged(lambda line: line["event"] == "object_damaged")


def test_a_series_needs_its_setting(start, tmp_path):
    service = start()
    done = run("store", "backup", *service.chosen())
    assert done.returncode == 2 and "backup.directory" in done.stderr, done.stderr
    done = run("store", "restore", "--latest", *service.chosen())
    assert done.returncode == 2 and "backup.directory" in done.stderr, done.stderr
    done = run("store", "restore", *service.chosen())
    assert done.returncode == 2 and "--latest" in done.stderr, done.stderr
    (tmp_path / "empty").mkdir()
    done = run("store", "restore", "--latest", "--set", f"backup.directory={tmp_path}/empty", *service.chosen())
    assert done.returncode == 1 and "no complete backup" in done.stderr, done.stderr


# ---- interruption ----

@on_sqlite
def test_an_interrupted_backup_or_rotation_leaves_a_series_that_is_right(tmp_path):
    """Killed at each sync in turn, the removal of old ones included."""
    disk = forgetful.Disk(tmp_path / "box", forgetful.build(tmp_path))
    place = disk.root / "series"
    service = Service(disk.root / "service", rate__live=1000, backup__directory=str(place),
                      backup__keep=1, backup__full_every=2)
    with contextlib.ExitStack() as ending:
        ending.callback(service.discard)
        service.data.parent.mkdir(parents=True)
        killed = 0
        for ended in range(4):
            service.start()
            channel = service.new_channel()
            for n in range(2):
                channel.live.register_file(f"{ended}-{n}".encode() * 5000, f"e{n}").expect(201)
            channel.close()
            assert service.stop() == 0
            for number in range(1, 100):
                disk.plan("kill", "series", number)
                done = subprocess.run([BINARY, "store", "backup", *service.chosen()], capture_output=True,
                                      timeout=60, env=clean_environment(disk.environment()), check=False)
                disk.forget_plan()
                complete = listed(service) if place.exists() else []
                assert complete or not ended
                for backup in complete:
                    checked = run("store", "backup-verify", place / backup["name"], *service.chosen())
                    assert checked.returncode == 0, (number, checked.stderr)
                if done.returncode == 0:
                    break
                assert done.returncode == -signal.SIGKILL, done.stderr
                killed += 1
            assert not [name for name in names(place) if not name.endswith(("-full", "-incremental"))]
        assert killed > 20, killed


@on_sqlite
def test_a_backup_without_space_leaves_nothing(start, tmp_path):
    series = Series(start, tmp_path / "series")
    series.register()
    series.back_up()
    before = names(series.place)
    assert series.service.stop() == 0
    limited = subprocess.run(["bash", "-c", 'ulimit -f 20; trap "" XFSZ; exec "$@"', "-", BINARY, "store", "backup",
                              "--set", "backup.full_every=1", *series.service.chosen()],
                             env=clean_environment({}), capture_output=True, text=True, timeout=60, check=False)
    assert limited.returncode != 0
    assert names(series.place) == before


# ---- as the documentation says ----

def block(page, heading):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.search(rf"^## {heading}$.*?```\n(.*?)```", text, re.MULTILINE | re.DOTALL).group(1)


@on_sqlite
def test_the_recovery_of_the_documentation_on_another_machine(start, tmp_path):
    """Its lines unchanged, but for the user, systemd and the paths."""
    place, machine = tmp_path / "var/backups/constancia", tmp_path / "machine"
    place.parent.mkdir(parents=True)
    series = Series(start, place, seal__interval="300ms")
    series.register()
    series.channel.live.sealed(series.receipts[-1]["event_id"])
    series.back_up()
    series.register()
    series.channel.live.sealed(series.receipts[-1]["event_id"])
    series.back_up()
    assert series.service.stop() == 0
    (machine / "etc").mkdir(parents=True)
    (machine / "data").mkdir(mode=0o700)
    shutil.copytree(place, machine / "backups")
    (machine / "etc/constancia.conf").write_text(
        f"[service]\ndata_dir = {machine}/data\nlisten = 127.0.0.1:{free_port()}\n"
        f"admin_listen = 127.0.0.1:{free_port()}\n[tsa]\nurl = http://127.0.0.1:9/\n"
        f"[backup]\ndirectory = {machine}/backups\n[signer]\nkey = {machine}/etc/key.pem\n")
    lines = block("docs/operate/restore.md", "Recovery")
    assert "store restore --latest" in lines
    lines = lines.replace("/etc/constancia/", f"{machine}/etc/")
    script = ('sudo() { [ "$1" != -u ] || shift 2; "$@"; }\nconstancia() { "$PROGRAM" "$@"; }\n'
              'systemctl() { echo "systemctl $*"; }\n' + lines)
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, cwd=machine,
                          env=clean_environment({"PROGRAM": str(BINARY),
                                                 "CONSTANCIA_CONFIG": f"{machine}/etc/constancia.conf"}), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Checked: {len(series.receipts)} events, 2 objects, 0 problems." in done.stdout, done.stdout
    assert "signer.key" in done.stdout and f"{machine}/etc/key.pem" in done.stdout, "what is missing is named"
    assert "constancia store wake" in done.stdout
    assert (machine / "data/constancia.db").exists()
    # The unit reads another file than the one that is given here.
    shutil.rmtree(machine / "data")
    (machine / "data").mkdir(mode=0o700)
    given = ["--config", f"{machine}/etc/constancia.conf"]
    done = subprocess.run([BINARY, "store", "restore", "--latest", "--json", *given],
                          capture_output=True, text=True, timeout=120, env=clean_environment(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = json.loads(done.stdout)["next"]
    assert " ".join(["constancia serve", *given]) in [step[step.index("constancia"):] for step in steps]
    assert not [step for step in steps if "systemctl" in step], steps


@on_sqlite
def test_a_store_in_the_way_is_named_with_what_to_do(start, tmp_path):
    """The printed commands, run as they are, lead to a restore that confirms the rollback."""
    series = Series(start, tmp_path / "series", seal__interval="300ms")
    service = series.service
    series.register()
    series.channel.live.sealed(series.receipts[-1]["event_id"])
    series.back_up()
    series.register()
    series.channel.live.sealed(series.receipts[-1]["event_id"])
    assert service.stop() == 0
    refused = run("store", "restore", "--latest", *service.chosen())
    assert refused.returncode == 1 and "constancia.db" in refused.stderr
    said = re.findall(r"^  (\S.*)$", refused.stderr, re.MULTILINE)
    assert len(said) == 4
    script = 'systemctl() { :; }\ninstall() { mkdir -m 0700 "${@: -1}"; }\n' + "\n".join(said)
    subprocess.run(["bash", "-e", "-c", script], check=True)
    unconfirmed = run("store", "restore", "--latest", "--json", *service.chosen())
    assert unconfirmed.returncode == 0, (unconfirmed.stdout, unconfirmed.stderr)
    told = json.loads(unconfirmed.stdout)
    assert told["rollback_found"] and not told["rollback_accepted"]
    assert any("accept-rollback" in step for step in told["next"])
    for path in service.data.glob("constancia.db*"):
        path.unlink()
    done = run("store", "restore", "--latest", "--reason", "the disk died", "--json", *service.chosen())
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["rollback_found"] and told["rollback_accepted"] and told["valid"]
    assert not any("accept-rollback" in step for step in told["next"])
    service.start()
    assert json.loads(run("store", "wake", "--json", *service.chosen()).stdout)["quiet"] is False
    client = Client(service, series.channel.live.key)
    assert client.register({"n": "after"}, "after").expect(201).json["sequence"] == 5
    client.close()


@on_sqlite
def test_a_backup_of_a_series_restores_the_identical_database(start, tmp_path):
    """But for the mark of the copy: the rows of each table."""
    series = Series(start, tmp_path / "series", backup__full_every=10)
    for _ in range(3):
        series.register(20, 1)
        told = series.back_up()
    series.service.stop()
    copy, said = restore(tmp_path / "copy", "--latest", backup__directory=str(series.place))
    assert said["directory"] == told["directory"]

    def digest(store):
        tables = [name for name, in store.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        kept = [name for name in tables if name not in ("settings", "acts") and "sqlite_" not in name]
        return {name: hashlib.sha256(repr(store.rows(f"SELECT * FROM {name}")).encode()).hexdigest() for name in kept
                if name in ("events", "accounts", "channels", "chains", "keys")}
    assert digest(copy.store) == digest(series.service.store)
    copy_keys(series.service.data, copy.data)


@on_sqlite
@pytest.mark.skipif(os.geteuid() != 0, reason="of root")
def test_root_restores_as_the_owner_of_the_data_directory(start, tmp_path):
    nobody = pwd.getpwnam("nobody")
    series = Series(start, tmp_path / "series")
    series.register()
    series.back_up()
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        copy = Service(pathlib.Path(place) / "copy", backup__directory=f"{place}/series")
        shutil.copytree(series.place, f"{place}/series")
        copy.data.mkdir(mode=0o700, parents=True)
        subprocess.run(["chown", "-R", f"{nobody.pw_uid}:{nobody.pw_gid}", f"{place}/series", copy.data], check=True)
        done = run("store", "restore", "--latest", *copy.chosen())
        assert done.returncode == 0, done.stderr
        owners = {path.stat().st_uid for path in [copy.data, *copy.data.rglob("*")]}
        assert owners == {nobody.pw_uid} and copy.store.path.exists()
