"""GET /v1/events?hash=…: the events of the chain with a digest. An index is built of events after their
registration; what it does not have yet is scanned. So an acknowledged event is always found, or the answer is 503."""

import contextlib
import hashlib
import json
import random
import sqlite3

import pytest

import sizes
from client import Client, Service, eventually, run

SIZES = {"digests_gathered": 40, "digests_of_chain": 40, "digest_block": 3, "digests_merged": 5, "digests_deleted": 7,
         "digests_scanned_directly": 1, "digests_us": 20_000, "digests_failed_us": 20_000}


def digest_of(text, algorithm="sha256"):
    return hashlib.new(algorithm, str(text).encode()).hexdigest()


@contextlib.contextmanager
def serving(tmp_path, monkeypatch, **changed):
    monkeypatch.setenv(sizes.NAME, ",".join(f"{name}={size}" for name, size in (SIZES | changed).items()))
    with contextlib.ExitStack() as ending:
        service = Service(tmp_path, rate__live=100000, rate__test=100000, seal__interval="1h")
        ending.callback(service.discard)
        service.start()
        yield service


def found(client, digest, limit=500, **filters):
    return [event["event_id"] for event in client.walk("/v1/events", limit, hash=digest, **filters)]


def indexed(service):
    """Nothing more is to be added to the index."""
    def look():
        return service.metric("digest_index_lag_events") < SIZES["digests_gathered"]
    eventually(look, "the index has the events")


# ---- parameters ----

REFUSED = [
    ({"hash": "ab"}, "hash"),
    ({"hash": ""}, "hash"),
    ({"hash": "g" * 64}, "hash"),
    ({"hash": "a" * 63}, "hash"),
    ({"hash": "a" * 96}, "hash"),
    ({"hash": "a" * 64, "hash_alg": "sha-512"}, "hash"),
    ({"hash": "a" * 128, "hash_alg": "sha-256"}, "hash"),
    ({"hash": "a" * 64, "hash_alg": "SHA-256"}, "hash_alg"),
    ({"hash": "a" * 64, "hash_alg": "md5"}, "hash_alg"),
    ({"hash": "a" * 64, "hash_alg": ""}, "hash_alg"),
    ({"hash_alg": "sha-256"}, "hash_alg"),
]


@pytest.fixture(scope="module")
def channel(service):
    with contextlib.closing(service.new_channel()) as channel:
        yield channel


@pytest.mark.parametrize("query, name", REFUSED, ids=str)
def test_parameters_are_checked(channel, query, name):
    answer = channel.live.get("/v1/events", query=query).expect(400, "validation_error")
    assert f"'{name}'" in answer.message


@pytest.mark.parametrize("query, name", [(f"hash={'a' * 64}&hash={'a' * 64}", "hash"),
                                         (f"hash={'a' * 64}&hash_alg=sha-256&hash_alg=sha-256", "hash_alg")])
def test_repeated_parameters_are_refused(channel, query, name):
    answer = channel.live.get(f"/v1/events?{query}").expect(400, "validation_error")
    assert f"'{name}'" in answer.message


# ---- results ----

def test_all_kinds_of_content_are_found(service):
    with contextlib.closing(service.new_channel()) as channel:
        client = channel.live
        payload = client.register({"b": 1, "a": "é"}).expect(201).json
        again = client.register({"a": "é", "b": 1}).expect(201).json
        file = client.register_file(b"a file").expect(201).json
        canonical = hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()
        assert found(client, canonical) == [payload["event_id"], again["event_id"]]
        assert found(client, canonical.upper()) == [payload["event_id"], again["event_id"]]
        assert found(client, digest_of("a file")) == [file["event_id"]]
        assert found(client, digest_of("a file"), hash_alg="sha-256") == [file["event_id"]]
        assert found(client, digest_of("another")) == []
        assert found(channel.test, canonical) == []
        other = channel.test.register({"a": "é", "b": 1}).expect(201).json
        assert found(channel.test, canonical) == [other["event_id"]]
        assert found(client, canonical) == [payload["event_id"], again["event_id"]]


def test_algorithms_are_separate(service):
    with contextlib.closing(service.new_channel("hash_only")) as channel:
        client = channel.live
        long = digest_of("x", "sha512")
        one = client.register_hash(long, hash_alg="sha-512").expect(201).json
        two = client.register_hash(long[:64]).expect(201).json
        assert found(client, long) == found(client, long, hash_alg="sha-512") == [one["event_id"]]
        assert found(client, long[:64]) == [two["event_id"]]


def test_filters_combine_and_cursors_are_bound(service):
    with contextlib.closing(service.new_channel("hash_only")) as channel:
        client = channel.live
        digest = digest_of("same")
        events = [client.register_hash(digest, client_ref=f"same-{n}").expect(201).json for n in range(7)]
        client.register_hash(digest_of("other")).expect(201)
        ids = [event["event_id"] for event in events]
        for limit in 1, 2, 7:
            assert found(client, digest, limit) == ids
            assert found(client, digest, limit, order="desc") == ids[::-1]
        assert found(client, digest, seq_from=3, seq_to=5) == ids[2:5]
        assert found(client, digest, status="registered") == ids
        assert found(client, digest, status="unpaid") == found(client, digest, status="test") == []
        assert found(client, digest, client_ref="same-4") == [ids[4]]
        assert found(client, digest_of("other"), client_ref="same-4") == []
        assert found(client, digest, to=events[0]["received_at"]) == []
        later = [event["event_id"] for event in events if event["received_at"] >= events[3]["received_at"]]
        assert found(client, digest, **{"from": events[3]["received_at"]}) == later
        cursor = client.get("/v1/events", query={"hash": digest, "limit": 2}).expect(200).json["next_cursor"]
        for other in {"hash": digest_of("other")}, {}, {"hash": digest, "status": "registered"}:
            client.get("/v1/events", query={**other, "cursor": cursor}).expect(400, "validation_error")
        same = {"hash": digest.upper(), "hash_alg": "sha-256", "cursor": cursor}
        assert client.get("/v1/events", query=same).expect(200).json["data"][0]["event_id"] == ids[2]


# ---- the index ----

def test_lookups_agree_with_a_scan(tmp_path, monkeypatch):
    """While events are registered, runs are written and merged, and the service is killed."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    draws = random.Random(seed)
    with serving(tmp_path, monkeypatch) as service:
        channels = [service.new_channel("hash_only", credits=1_000_000) for _ in range(3)]
        expected = [{} for _ in channels]
        for _ in range(4):
            for _ in range(350):
                number = draws.choice((0, 0, 0, 1, 2))
                of = expected[number]
                digest = digest_of((number, draws.choice((draws.randrange(20), draws.randrange(10**9)))))
                answer = channels[number].live.register_hash(digest).expect(201).json
                of.setdefault(digest, []).append(answer["event_id"])
                if draws.random() < 0.2:
                    digest = draws.choice(list(of))
                    assert found(channels[number].live, digest, draws.choice((1, 3, 500))) == of[digest]
                if draws.random() < 0.1:
                    digest = draws.choice(list(of))
                    assert found(channels[number].live, digest, order="desc") == of[digest][::-1]
            if draws.random() < 0.7:
                service.kill()
                service.start()
        for channel, of in zip(channels, expected):
            listed = {}
            for event in channel.live.walk("/v1/events", 500):
                listed.setdefault(event["hash"], []).append(event["event_id"])
            assert listed == of
            for digest in of:
                assert found(channel.live, digest) == of[digest]
            assert found(channel.live, digest_of("none")) == []
            channel.close()
        assert service.stop() == 0
        assert problems(service) == []


def problems(service):
    return json.loads(service.run("store", "check", "--json").stdout)["problems"]


def test_too_many_events_to_scan_are_never_an_empty_list(tmp_path, monkeypatch):
    with serving(tmp_path, monkeypatch, digests_gathered=100_000, digests_of_chain=100_000,
                 digests_scanned=50) as service:
        with contextlib.closing(service.new_channel("hash_only")) as channel:
            client = channel.live
            first = client.register_hash(digest_of("first")).expect(201).json
            for n in range(60):
                client.register_hash(digest_of(n)).expect(201)
            answer = client.get("/v1/events", query={"hash": digest_of("first")})
            assert int(answer.expect(503, "temporarily_unavailable").headers["Retry-After"]) > 0
            client.get("/v1/events", query={"hash": digest_of("never")}).expect(503)
            assert found(client, digest_of("first"), seq_to=40) == [first["event_id"]]


@pytest.mark.sqlite
def test_a_restored_copy_has_the_index(tmp_path, monkeypatch):
    """Also while it is a read-only copy, and what was registered after the backup is not in it."""
    for name in "one", "two":
        (tmp_path / name).mkdir()
    with serving(tmp_path / "one", monkeypatch) as service:
        channel = service.new_channel("hash_only", credits=10_000)
        ids = {n: channel.live.register_hash(digest_of(n)).expect(201).json["event_id"] for n in range(300)}
        indexed(service)
        service.admin("store", "backup", tmp_path / "backup")
        channel.live.register_hash(digest_of("later")).expect(201)
        channel.close()
        copy = Service(tmp_path / "two", prepared=False, seal__interval="1h", rate__live=100000)
        try:
            done = run("store", "restore", tmp_path / "backup", *copy.chosen())
            assert done.returncode == 0, done.stderr
            copy.start()
            with Client(copy, channel.live_key["key"]) as client:
                for n, event in ids.items():
                    assert found(client, digest_of(n)) == [event]
                assert found(client, digest_of("later")) == []
            assert copy.stop() == 0
            assert copy.store.rows("SELECT COUNT(*) > 0 FROM digest_runs") == [["1"]] and problems(copy) == []
        finally:
            copy.discard()


# ---- damage ----

DAMAGES = {
    "a flipped bit": """UPDATE digest_blocks SET entries = CAST(x'00' || substr(entries, 2) AS BLOB)
        WHERE substr(entries, 1, 1) <> x'00'""",
    "lost blocks": "DELETE FROM digest_blocks WHERE length(low) > 0",
    "all blocks": "DELETE FROM digest_blocks",
    "a run": "DELETE FROM digest_runs WHERE run = (SELECT MAX(run) FROM digest_runs WHERE state = 0)",
    "a run's range": "UPDATE digest_runs SET last = last - 1 WHERE state = 0",
    "the progress": "DELETE FROM digest_series",
    "the key": f"UPDATE settings SET value = '{'0123456789abcdef' * 4}' WHERE name = 'digest_index_key'",
    "no key": "DELETE FROM settings WHERE name = 'digest_index_key'",
}


@pytest.mark.sqlite
@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_detected_and_the_index_built_again(tmp_path, monkeypatch, what):
    """What is damaged is never an incomplete list."""
    with serving(tmp_path, monkeypatch) as service:
        channel = service.new_channel("hash_only", credits=10_000)
        ids = {n: channel.live.register_hash(digest_of(n)).expect(201).json["event_id"] for n in range(300)}
        indexed(service)
        channel.close()
        assert service.stop() == 0
        assert problems(service) == []
        with contextlib.closing(sqlite3.connect(service.store.path)) as store:
            store.executescript(DAMAGES[what])
        assert problems(service) != []
        service.start()
        with Client(service, channel.live_key["key"]) as client:
            def all_found():
                answers = [client.get("/v1/events", query={"hash": digest_of(n)}) for n in ids]
                for n, answer in enumerate(answers):
                    if answer.status != 503:
                        assert [event["event_id"] for event in answer.expect(200).json["data"]] == [ids[n]]
                return all(answer.status == 200 for answer in answers)
            eventually(all_found, "the index is built again")
        assert service.stop() == 0
        assert problems(service) == []
