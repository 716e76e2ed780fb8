"""What the sweep may remove, and when: no object of a commit in doubt, and none that is not this
installation's."""

import contextlib
import glob
import json
import os
import pathlib
import secrets
import shutil

import pytest

import s3_server
import stores
from client import Service, eventually, run
from fleet import Fleet
from postgres import Cluster
from program import copy_keys

pytestmark = pytest.mark.both_stores

DAY = 86400
DIGITS = "0123456789abcdefghijklmnopqrstuv"


def fresh_name(area):
    return f"{area}/aa/" + "".join(secrets.choice(DIGITS) for _ in range(30))


def place(root, name):
    path = os.path.join(root, *name.split("/"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"x")
    return path


def become_old(path):
    """By the clock of the file system, which is not the tests' where tests/clock moves that."""
    os.utime(path, (os.stat(path).st_mtime - 2 * DAY,) * 2)


def claim_long_ago(root):
    """The installation has had its place for years."""
    marker = os.path.join(root, "installation")
    with open(marker, encoding="ascii") as file:
        lines = file.read().split("\n")
    lines[2] = "since 2020-01-01T00:00:00.000000Z"
    with open(marker, "w", encoding="ascii") as file:
        file.write("\n".join(lines))


def objects(root, area):
    return [path for path in glob.glob(os.path.join(root, area, "**"), recursive=True)
            if os.path.isfile(path)]


@pytest.mark.postgresql
def test_what_a_commit_in_doubt_names_is_not_swept(tmp_path):
    with Cluster(standbys=1) as cluster, \
            Fleet(tmp_path, count=1, cluster=cluster, store__commit_timeout="2s",
                  content__keep_swept="0s", seal__interval="1h") as fleet:
        (node,) = fleet.nodes
        channel = fleet.new_channel()
        channel.live.register({}, "before").expect(201)
        root = f"{fleet.directory}/content"
        claim_long_ago(root)
        content = secrets.token_bytes(100000)
        cluster.standby.freeze()
        try:
            channel.live.register_file(content, "doubted").expect(503)
            (path,) = objects(root, "event")
            become_old(path)
            assert node.stop() == 0
            orphan = place(root, fresh_name("issued"))
            become_old(orphan)
            failures = node_events(node, "sweep_failed")
            node.spawn()
            eventually(lambda: len(node_events(node, "sweep_failed")) > len(failures),
                       "the sweep has found the store in doubt")
            assert os.path.exists(path) and os.path.exists(orphan)
            assert objects(root, "swept") == []
        finally:
            cluster.standby.thaw()
        node.wait("/readyz")
        event = eventually(lambda: (lambda answer: answer.status in (200, 201) and answer.json)(
            channel.live.register_file(content, "doubted")), "the standby is back")
        # Twice: what one run marks the next one deletes.
        for _ in range(2):
            assert node.stop() == 0
            node.start()
            eventually(lambda: not os.path.exists(orphan) or objects(root, "swept"),
                       "the sweep has come by")
        eventually(lambda: not os.path.exists(orphan), "what nothing names is gone")
        assert channel.live.content(event["event_id"]).expect(200).body == content


def node_events(node, name):
    return [line for line in node.log_lines() if line["event"] == name]


def test_another_installations_place_is_refused(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first, second = (Service(tmp_path / name, content__url=f"file:{tmp_path}/content")
                     for name in ("first", "second"))
    try:
        first.start()
        done = run("init", *second.chosen(), "--set=tsa.url=embedded:")
        assert done.returncode != 0 and "another installation" in done.stderr
        assert "content.url" in done.stderr
    finally:
        first.stop()
        first.discard()
        second.discard()


# ---- copies of the database ----

class Directory:
    """A place for content."""

    def __init__(self, directory):
        self.root = pathlib.Path(directory) / "content"

    def settings(self):
        return {"content__url": f"file:{self.root}"}

    def names(self):
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*")
                if path.is_file()}

    def read(self, name):
        return (self.root / name).read_text(encoding="ascii")

    def remove(self, name):
        (self.root / name).unlink()

    def close(self):
        pass


class Bucket:
    def __init__(self, directory):
        self.server = s3_server.Server(directory)

    def settings(self):
        return self.server.settings("constancia")

    def names(self):
        return {key.removeprefix("constancia/") for key in list(self.server.objects)}

    def read(self, name):
        path = self.server.objects[f"constancia/{name}"]["path"]
        return pathlib.Path(path).read_text(encoding="ascii")

    def remove(self, name):
        del self.server.objects[f"constancia/{name}"]

    def close(self):
        self.server.stop()


@pytest.fixture(params=[Directory, Bucket])
def content(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    made.close()


@pytest.fixture
def services(tmp_path, content):
    """Makes services on the one place for content, by their names."""
    with contextlib.ExitStack() as ending:
        def make(name, **settings):
            (tmp_path / name).mkdir()
            one = Service(tmp_path / name, describe=False, **{**content.settings(), **settings})
            ending.callback(one.discard)
            return one
        yield make


def copy_database(original, make):
    """While no service uses it."""
    if stores.KIND == "sqlite":
        copy = make("copy")
        copy.data.mkdir(mode=0o700)
        for path in original.data.glob("constancia.db*"):
            shutil.copy2(path, copy.data)
        return copy
    name = original.store.cluster.create_database(f"{original.store.database}_copy",
                                                  like=original.store.database)
    copy = make("copy", store__url=original.store.cluster.url(name),
                **({"store__sharded": "true"} if stores.DISTRIBUTED else {}))
    copy.data.mkdir(mode=0o700, exist_ok=True)
    copy_keys(original.data, copy.data)
    return copy


def sweep_token(content):
    lines = content.read("installation").split("\n") if "installation" in content.names() else []
    return next((line for line in lines if line.startswith("sweep ")), None)


def start_until_swept(service, content):
    before = sweep_token(content)
    service.start()
    eventually(lambda: sweep_token(content) not in (None, before), "it has swept")


def start_until_refused(service):
    service.log.touch()
    before = len(node_events(service, "sweep_refused"))
    service.start()
    eventually(lambda: len(node_events(service, "sweep_refused")) > before, "it does not sweep")
    assert "sweep_refused 1" in service.monitor("/metrics")[1]
    assert service.monitor("/readyz")[0] == 200


def test_neither_a_copy_of_the_database_nor_its_original_sweeps(services, content):
    original = services("original")
    start_until_swept(original, content)
    assert original.stop() == 0
    copy = copy_database(original, services)
    start_until_swept(original, content)
    assert "sweep_refused 0" in original.monitor("/metrics")[1]
    start_until_refused(copy)
    copy.new_channel().live.register({"a": 1}, "a").expect(201)
    assert sweep_token(content) == "sweep disputed"
    assert original.stop() == 0
    start_until_refused(original)
    assert original.stop() == 0 and copy.stop() == 0
    content.remove("installation")
    start_until_swept(original, content)
    assert sweep_token(content) != "sweep disputed"


def test_whoever_of_copy_and_original_comes_first_the_other_stops_it(services, content):
    original = services("original")
    start_until_swept(original, content)
    assert original.stop() == 0
    copy = copy_database(original, services)
    start_until_swept(copy, content)
    assert copy.stop() == 0
    start_until_refused(original)
    start_until_refused(copy)


# ---- backups ----

def test_a_restore_leaves_anothers_place_alone(services, content, tmp_path):
    saved = services("saved", content__url=f"file:{tmp_path}/saved/content")
    saved.start()
    saved.new_channel().live.register_file(secrets.token_bytes(100000)).expect(201)
    backup = tmp_path / "backup"
    assert saved.admin("store", "backup", str(backup))["content_objects"] == 1
    assert saved.stop() == 0
    other = services("other")
    other.start()
    assert other.stop() == 0
    found = content.names()

    restored = services("restored", prepared=False)
    done = run("store", "restore", "--live", backup, *restored.chosen())
    assert done.returncode != 0 and "belongs to another installation" in done.stderr
    manifest = json.loads((backup / "backup.json").read_text())
    del manifest["installation"]  # as before they were marked
    (backup / "backup.json").write_text(json.dumps(manifest))
    done = run("store", "restore", "--live", backup, *restored.chosen())
    assert done.returncode != 0 and "does not name its installation" in done.stderr
    assert content.names() == found
    content.remove("installation")
    done = run("store", "restore", "--live", backup, *restored.chosen())
    assert done.returncode == 0, done.stderr
    assert len([name for name in content.names() if name.startswith("event/")]) == 1
    if stores.KIND == "postgresql":
        copy_keys(saved.data, restored.data)
    restored.distribute()
    restored.start()
    assert restored.admin("store", "check")["valid"] is True
