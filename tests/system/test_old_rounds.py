"""A store whose segments have paths of their own, as before rounds were written in blocks, continues:
what it holds stays proven, and what comes is sealed after it."""

import contextlib
import re
import sqlite3

import pytest

import evidence
import stores
from client import Service, run
from program import ROOT

pytestmark = pytest.mark.skipif(stores.KIND != "sqlite", reason="the file is changed by hand")

STEP_BEFORE, STEP = "007-own-failures", "008-rounds"
STEPS = ROOT / "src" / "store" / "schema" / "sqlite"
BLOCK = 1024


def siblings(leaves, index):
    """From leaf `index` up to the root of the tree over all of them."""
    path = []
    while len(leaves) > 1:
        if index ^ 1 < len(leaves):
            path.append(leaves[index ^ 1])
        pairs = [leaves[i:i + 2] for i in range(0, len(leaves), 2)]
        leaves = [evidence.combine(pair) if len(pair) == 2 else pair[0] for pair in pairs]
        index //= 2
    return path


def hashes(blob):
    return [blob[i:i + 32].hex() for i in range(0, len(blob), 32)]


def make_old(path):
    """Takes back what this step and the later ones added; each segment gets the path that it would
    have had."""
    steps = "".join(step.read_text(encoding="utf-8") for step in sorted(STEPS.glob("*.sql"))
                    if step.stem > STEP)
    later = "".join(undo % names for pattern, undo in (
        (r"CREATE (?:UNIQUE )?INDEX (\w+)", "DROP INDEX %s;"),
        (r"ALTER TABLE (\w+) ADD COLUMN (\w+)", "ALTER TABLE %s DROP COLUMN %s;"),
        (r"CREATE TABLE (\w+)", "DROP TABLE %s;")) for names in re.findall(pattern, steps))
    later += "".join(definition for table in re.findall(r"^DROP TABLE (\w+);", steps, re.M)
                     for step in sorted(STEPS.glob("*.sql"))
                     for definition in re.findall(rf"^CREATE TABLE {table} .*?;\n",
                                                  step.read_text(encoding="utf-8"), re.M | re.S))
    with contextlib.closing(sqlite3.connect(path)) as store:
        blocks = {(round_, block): hashes(roots) for round_, block, roots in
                  store.execute("SELECT round, block, roots FROM round_blocks")}
        tops = dict(store.execute("SELECT round, blocks FROM seal_rounds"))
        count = 0
        for segment, round_, place in list(store.execute(
                "SELECT segment_id, round, place FROM segments")):
            block, index = divmod(place, BLOCK)
            path_ = siblings(blocks[round_, block], index) + siblings(hashes(tops[round_]), block)
            store.execute("UPDATE segments SET path = ? WHERE segment_id = ?",
                          (bytes.fromhex("".join(path_)), segment))
            count += 1
        columns = ", ".join(row[1] for row in store.execute("PRAGMA table_info(events_before)"))
        store.executescript(f"""
            DROP VIEW events; -- they are in the order of chains again
            INSERT INTO events_before ({columns}) SELECT {columns} FROM events_arrived;
            {later}
            ALTER TABLE events_before RENAME TO events;
            DELETE FROM segments WHERE chain < 0; -- of acts
            DROP TABLE round_blocks;
            DROP TABLE staged_round;
            DROP TABLE round_tokens;
            ALTER TABLE seal_rounds DROP COLUMN blocks;
            ALTER TABLE segments DROP COLUMN place;
            ALTER TABLE chains DROP COLUMN sealed_round;
            ALTER TABLE chains DROP COLUMN sealed_before;
            UPDATE settings SET value = '{STEP_BEFORE}' WHERE name = 'schema';
            """)
        store.commit()
        return count


def check_all(service, channel, events, directory):
    (config,) = channel.live.get("/v1/channel").json["config_versions"]
    proofs = []
    for event in events:
        read = channel.live.sealed(event["event_id"])
        evidence.check_proof(read, read["proof"], config, service.data / "trust.pem", directory)
        proofs.append(read["proof"])
    return proofs


def test_a_store_of_before_goes_on(tmp_path):
    service = Service(tmp_path, rate__live=100000, seal__interval="200ms")
    service.start()
    try:
        channels = [service.new_channel() for _ in range(5)]
        events = {channel: [] for channel in channels}
        for n in range(3):
            for channel in channels:
                events[channel].append(channel.live.register({"n": n}).expect(201).json)
            channels[-1].live.sealed(events[channels[-1]][-1]["event_id"])
        before = {channel: check_all(service, channel, events[channel], tmp_path)
                  for channel in channels}
        assert service.stop() == 0
        assert make_old(service.store.path) >= 5
        refused = run("store", "check", *service.chosen())
        assert refused.returncode != 0 and "migrate" in refused.stdout + refused.stderr
        moved = run("store", "migrate", *service.chosen())
        assert moved.returncode == 0, moved.stderr

        service.start()
        after = {channel: check_all(service, channel, events[channel], tmp_path)
                 for channel in channels}
        assert after == before
        for channel in channels:
            events[channel].append(channel.live.register({"n": 9}).expect(201).json)
        for channel in channels:
            check_all(service, channel, events[channel], tmp_path)
        channel = channels[2]
        record = channel.live.certified(seq_from=1, seq_to=4)
        archive = tmp_path / "evidence.zip"
        archive.write_bytes(channel.live.download(record["evidence_url"]).expect(200).body)
        done = run("verify", archive, "--trust", service.data / "trust.pem")
        assert done.returncode == 0, done.stdout
        assert service.stop() == 0
        checked = run("store", "check", *service.chosen())
        assert checked.returncode == 0, checked.stdout
    finally:
        service.discard()
