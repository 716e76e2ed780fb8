"""The same declaration again, and another one under the same client_ref."""

import hashlib
import threading

import pytest

from client import Client, eventually, fresh

pytestmark = pytest.mark.both_stores

STANDING = {"status", "timestamp"}  # their present values; all else as first answered


def check_replay(first, again):
    again.expect(200)
    assert again.headers["Idempotent-Replayed"] == "true"
    for name in set(first) - STANDING:
        assert again.json[name] == first[name], name


@pytest.mark.parametrize("mode", ["live", "test"])
def test_the_same_declaration_answers_the_original_event(channel, mode):
    client, ref = channel.client(mode), fresh()
    first = client.register({"a": 1}, ref, "2026-01-31T09:30:00Z").expect(201).json
    balance = client.balance()
    for _ in range(3):
        check_replay(first, client.register({"a": 1}, ref, "2026-01-31T09:30:00Z"))
    assert client.balance() == balance, "a replay consumes nothing"
    assert client.register().expect(201).json["sequence"] == first["sequence"] + 1


def test_the_time_is_compared_after_it_was_normalized(shared):
    ref = fresh()
    first = shared.live.register({}, ref, "2026-01-31T09:30:00.1234567Z").expect(201).json
    check_replay(first, shared.live.register({}, ref, "2026-01-31t10:30:00.123456+01:00"))


@pytest.mark.parametrize("change", [
    {"payload": {"a": 2}}, {"occurred_at": None}, {"occurred_at": "2026-01-31T09:30:00.000001Z"},
])
def test_another_declaration_under_the_same_client_ref_is_a_conflict(shared, change):
    ref = fresh()
    sent = {"payload": {"a": 1}, "occurred_at": "2026-01-31T09:30:00Z"}
    first = shared.live.register(client_ref=ref, **sent).expect(201).json
    conflict = shared.live.register(client_ref=ref, **{**sent, **change})
    conflict.expect(409, "client_ref_conflict")
    assert conflict.json["event_id"] == first["event_id"] and first["event_id"] in conflict.message
    told = shared.live.register(client_ref=ref, **{**sent, **change}, language="es").expect(409)
    assert first["event_id"] in told.message and told.message != conflict.message
    assert "Idempotent-Replayed" not in conflict.headers
    check_replay(first, shared.live.register(client_ref=ref, **sent))
    read = shared.live.event(first["event_id"])
    assert (read["hash"], read["occurred_at"]) == (first["hash"], first["occurred_at"])


def test_another_algorithm_is_another_declaration(shared_hash):
    ref = fresh()
    shared_hash.live.register_hash("a" * 64, ref).expect(201)
    shared_hash.live.register_hash("a" * 128, ref, "sha-512").expect(409, "client_ref_conflict")
    shared_hash.live.register_hash("b" * 64, ref).expect(409, "client_ref_conflict")
    shared_hash.live.register_hash("a" * 64, ref).expect(200)


def test_a_client_ref_that_was_refused_is_still_free(shared):
    ref = fresh()
    shared.live.register({"a": 1}, ref, "no time").expect(400)
    shared.live.register({"a": 2}, ref).expect(201)


def test_two_keys_of_a_channel_share_its_client_refs(shared):
    second = Client(shared.service, shared.service.new_key(shared.id, "live")["key"])
    ref = fresh()
    first = shared.live.register({"a": 1}, ref).expect(201).json
    check_replay(first, second.register({"a": 1}, ref))
    second.register({"a": 2}, ref).expect(409)


def test_a_replay_holds_though_the_credits_and_the_unpaid_limit_are_used_up(service):
    channel = service.new_channel(credits=1, unpaid_limit=1)
    paid = channel.live.register({"n": 1}, "paid").expect(201).json
    unpaid = channel.live.register({"n": 2}, "unpaid").expect(201).json
    channel.live.register({"n": 3}, "refused").expect(402, "unpaid_limit_exceeded")
    check_replay(paid, channel.live.register({"n": 1}, "paid"))
    check_replay(unpaid, channel.live.register({"n": 2}, "unpaid"))
    channel.live.register({"n": 4}, "paid").expect(409, "client_ref_conflict")


def test_a_replay_tells_the_status_as_it_stands_now(service):
    channel = service.new_channel(credits=0)
    first = channel.live.register({"n": 1}, "a").expect(201).json
    assert first["status"] == "unpaid"
    service.admin("credits", "add", channel.account_id, 1)
    again = channel.live.register({"n": 1}, "a")
    check_replay(first, again)
    assert again.json["status"] == "registered"
    channel.live.sealed(first["event_id"])
    sealed = channel.live.register({"n": 1}, "a")
    check_replay(first, sealed)
    assert sealed.json["timestamp"]["type"] == "batch"


@pytest.mark.usefixtures("one_day")
def test_a_replay_holds_though_a_limit_blocks_new_events(channel):
    first = channel.live.register({"n": 1}, "a").expect(201).json
    channel.service.admin("limit", "create", "--channel", channel.id, "--period", "day",
                          "--max", 1, "--action", "block")
    channel.live.register({"n": 2}, "b").expect(422, "limit_blocked")
    check_replay(first, channel.live.register({"n": 1}, "a"))
    channel.live.register({"n": 3}, "a").expect(409, "client_ref_conflict")


def test_a_replay_holds_though_the_configuration_changed(channel):
    first = channel.live.register({"n": 1}, "a").expect(201).json
    channel.service.admin("channel", "configure", channel.id, "--name", "Another name")
    check_replay(first, channel.live.register({"n": 1}, "a"))
    assert channel.live.register().expect(201).json["config_version"] == 2


def test_many_at_once_make_one_event(channel):
    clients = [Client(channel.service, channel.live.key) for _ in range(16)]
    answers = []
    start = threading.Barrier(len(clients))

    def send(client):
        start.wait()
        for n in range(5):
            answers.append((n, client.register({"n": n}, f"same-{n}")))
    threads = [threading.Thread(target=send, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 16 * 5
    for n in range(5):
        mine = [answer for place, answer in answers if place == n]
        assert sorted(answer.status for answer in mine) == [200] * 15 + [201]
        assert len({answer.json["event_id"] for answer in mine}) == 1
    assert channel.live.balance()["balance"] == 995
    events = channel.live.walk("/v1/events", 2)
    assert [event["sequence"] for event in events] == [1, 2, 3, 4, 5]


def test_of_many_different_ones_at_once_one_wins_and_the_rest_conflict(channel):
    clients = [Client(channel.service, channel.live.key) for _ in range(12)]
    answers = []
    start = threading.Barrier(len(clients))

    def send(n, client):
        start.wait()
        answers.append(client.register({"n": n}, "one"))
    threads = [threading.Thread(target=send, args=pair) for pair in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [201] + [409] * 11
    assert len({answer.json["event_id"] for answer in answers}) == 1, "all name the one"


def test_a_large_content_is_kept_once_however_often_it_is_declared(service, channel):
    objects = service.data / "content"

    def stored():
        return [path for path in objects.rglob("*")
                if path.is_file() and path.stat().st_size == 123457]
    content = hashlib.sha256(b"seed").digest() * 3858 + b"x"
    assert len(content) == 123457 and not stored()
    channel.live.register_file(content, "a").expect(201)
    channel.live.register_file(content, "a").expect(200)
    channel.live.register_file(content, "a", occurred_at="2026-01-01T00:00:00Z").expect(409)
    answer = channel.live.register_file(content, "a")
    assert answer.status == 200

    eventually(lambda: len(stored()) == 1, "what no event names is deleted")
