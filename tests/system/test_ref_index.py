"""The embedded store's index of client_refs is derived from events: damage is detected
when it is read, answered 503 and never as new, and repaired without an operator. `store check`
looks every event up in it."""

import contextlib
import json
import sqlite3

import pytest

import sizes
from client import Client, Service, eventually

pytestmark = pytest.mark.sqlite
EVENTS = 600
SIZES = {"refs_gathered": 60, "refs_bucket_entries": 8, "refs_group_buckets": 4}


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """A stopped service whose index has runs, and the events it has: (service, key, events)."""
    monkeypatch.setenv(sizes.NAME, ",".join(f"{name}={size}" for name, size in SIZES.items()))
    with contextlib.ExitStack() as ending:
        service = Service(tmp_path, rate__live=100000, rate__test=100000, seal__interval="1h")
        ending.callback(service.discard)
        service.start()
        channel = service.new_channel(credits=10 * EVENTS)
        key = channel.live_key["key"]
        with Client(service, key) as client:
            events = [client.register({"n": n}, client_ref=f"ref-{n}").expect(201).json
                      for n in range(EVENTS)]
        channel.close()
        assert service.stop() == 0
        yield service, key, events


def change(service, sql):
    with contextlib.closing(sqlite3.connect(service.store.path)) as store:
        store.executescript(sql)


def repeat(client, events):
    """Each is found again, or is unknown. Returns the number of unknown ones."""
    unknown = 0
    for number, event in enumerate(events):
        answer = client.register({"n": number}, client_ref=event["client_ref"])
        if answer.status == 503:
            unknown += 1
        else:
            assert answer.expect(200).json["event_id"] == event["event_id"]
    return unknown


def problems(service):
    done = service.run("store", "check", "--json")
    return json.loads(done.stdout)["problems"]


DAMAGES = {
    "a flipped bit": """UPDATE client_ref_buckets SET entries = CAST(substr(entries, 1, 3) AS BLOB)
        || CASE substr(entries, 4, 1) WHEN x'55' THEN x'54' ELSE x'55' END || substr(entries, 5)
        WHERE place = (SELECT MAX(place) FROM client_ref_buckets)""",
    "a lost bucket": """DELETE FROM client_ref_buckets
        WHERE place = (SELECT MAX(place) FROM client_ref_buckets)""",
    "a run's row": "UPDATE client_ref_runs SET filled = filled - 1 WHERE filled = buckets",
    "the key": """UPDATE settings SET value = '00112233445566778899aabbccddeeff'
        WHERE name = 'client_ref_key'""",
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_damaged_is_made_of_events(registered, what):
    service, key, events = registered
    change(service, DAMAGES[what])
    assert problems(service)
    service.start()
    with Client(service, key) as client:
        repeat(client, events)
        eventually(lambda: repeat(client, events) == 0, "all are found again")
        client.register({"n": "new"}).expect(201)
    (damaged, *_) = service.logged(lambda line: "ref_index_damaged" in json.dumps(line))
    assert damaged["level"] == "error"
    assert service.logged(lambda line: "ref_index_repaired" in json.dumps(line))
    assert service.stop() == 0
    assert problems(service) == []


def spoil_page(service, sql):
    """Fills the page that the query names with what SQLite cannot read."""
    with contextlib.closing(sqlite3.connect(service.store.path)) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,), (size,) = store.execute(sql).fetchone(), store.execute("PRAGMA page_size").fetchone()
    with open(service.store.path, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


PAGES = {
    "of a bucket": "SELECT MAX(pageno) FROM dbstat WHERE name = 'client_ref_buckets' AND pagetype = 'leaf'",
    "of all buckets": "SELECT rootpage FROM sqlite_schema WHERE name = 'client_ref_buckets'",
    "of runs": "SELECT rootpage FROM sqlite_schema WHERE name = 'client_ref_runs'",
}


@pytest.mark.parametrize("what", PAGES)
def test_a_page_that_cannot_be_read_stops_nothing(registered, what):
    service, key, events = registered
    spoil_page(service, PAGES[what])
    found = problems(service)
    assert any(text.startswith("client_ref index: ") for text in found), found
    service.start()
    with Client(service, key) as client:
        repeat(client, events)
        eventually(lambda: repeat(client, events) == 0, "all are found again")
        client.register({"n": "new"}).expect(201)
    assert service.logged(lambda line: line["event"] == "ref_index_repaired")
    assert not [line for line in service.log_lines() if line["event"] == "registration_quarantined"]
    assert service.stop() == 0
    assert problems(service) == []


def test_two_events_with_one_client_ref_are_named(registered):
    service, _, _ = registered
    change(service, """UPDATE events_arrived SET client_ref = 'ref-1' WHERE client_ref = 'ref-2';
        INSERT INTO settings VALUES ('client_refs_made_to', 'nowhere')""")
    service.start()
    service.logged(lambda line: "ref_index_repaired" in json.dumps(line))
    assert service.stop() == 0
    found = problems(service)
    assert any("events 2 and 3 have the same client_ref" in text for text in found), found
