"""What the sweep may touch and when: nothing that a commit in doubt names, nothing that is not this
installation's."""

import glob
import os
import secrets
import time

import pytest

from client import Service, eventually, run
from fleet import Fleet
from postgres import Cluster

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
    os.utime(path, (time.time() - 2 * DAY,) * 2)


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
            Fleet(tmp_path, count=1, cluster=cluster, store__commit_timeout="700ms",
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
