"""GET and POST /v1/notices: the notices of the test mode, for a machine that no webhook reaches."""

import contextlib
import json
import socket
import threading
import time

import pytest

from client import PATIENCE, Client, Description, eventually
from hooks import Receiver, new_endpoint

pytestmark = pytest.mark.both_stores

NOTICES = "/v1/notices"


@pytest.fixture(name="listening", scope="module")
def service_of_listeners(start):
    return start(webhook__schedule="300ms,600ms", webhook__timeout="60s", http__deadline="8s")


@pytest.fixture(name="channel")
def channel_of_test(listening):
    with contextlib.closing(listening.new_channel()) as channel:
        yield channel


def fetch(client, cursor=None, **query):
    parts = {**({} if cursor is None else {"cursor": cursor}), **query}
    text = "&".join(f"{name}={value}" for name, value in parts.items())
    answer = client.get(f"{NOTICES}?{text}" if text else NOTICES).expect(200).json
    assert set(answer) == {"data", "has_more", "next_cursor"} and answer["next_cursor"]
    return answer


def end_of(client):
    answer = fetch(client)
    assert answer["data"] == [] and answer["has_more"] is False
    return answer["next_cursor"]


def create(client, kind="balance.low"):
    return client.post(NOTICES, {"type": kind}).expect(201).json


def described(service):
    return Description(Client(service).get("/v1/webhooks.yaml").expect(200).body)


def judged(description, notice):
    """It is as /v1/webhooks.yaml describes its type, and as no other type is described."""
    for name, item in description.document["webhooks"].items():
        media = item["post"]["requestBody"]["content"]["application/json"]
        good = description.validator(media["schema"]).is_valid(notice)
        assert good == (name == notice["type"]), (name, notice)


def test_each_type_has_a_sample_as_described(listening, channel):
    client, description = channel.test, described(listening)
    cursor, made = end_of(client), []
    for kind in description.document["webhooks"]:
        made.append(create(client, kind))
        assert (made[-1]["type"], made[-1]["mode"]) == (kind, "test")
        judged(description, made[-1])
        assert made[-1]["data"].get("channel_id", channel.id) == channel.id
    answer = fetch(client, cursor)
    assert answer["data"] == made and answer["has_more"] is False
    times = [notice["created_at"] for notice in made]
    assert times == sorted(set(times)) and len({notice["id"] for notice in made}) == len(made)


def test_pages_follow_each_other_and_the_last_one_goes_on(channel):
    client = channel.test
    first = end_of(client)
    made = [create(client) for _ in range(5)]
    seen, cursor, mores = [], first, []
    for _ in range(3):
        answer = fetch(client, cursor, limit=2)
        seen, cursor = seen + answer["data"], answer["next_cursor"]
        mores.append(answer["has_more"])
    assert seen == made and mores == [True, True, False]
    assert fetch(client, cursor)["data"] == []
    assert fetch(client, cursor)["next_cursor"] == cursor
    late = create(client)
    assert fetch(client, cursor)["data"] == [late]
    assert fetch(client, first)["data"] == [*made, late]
    assert end_of(client) == fetch(client, first)["next_cursor"]


def test_test_certifications_have_notices_as_their_endpoint_gets_them(listening, channel):
    with Receiver() as receiver:
        endpoint = new_endpoint(listening, channel.account_id, receiver.url)
        receiver.secrets = [endpoint["secret"]]
        client = channel.test
        client.register().expect(201)
        cursor = end_of(client)
        client.certified(seq_from=1, seq_to=1)
        client.settled(client.certify(seq_from=1, seq_to=1, scenario="certification_failed").expect(202)
                       .json["certification_id"])
        create(client)
        sent = eventually(lambda: receiver.deliveries if len(receiver.deliveries) == 2 else None, "two notices")
        got = fetch(client, cursor)["data"]
        assert [notice["type"] for notice in got] == ["certification.completed", "certification.failed", "balance.low"]
        assert sorted((json.loads(one.body) for one in sent), key=lambda one: one["created_at"]) == got[:2]
        assert channel.id == got[0]["data"]["channel_id"]
        receiver.check()


def test_live_certifications_have_none(channel):
    cursor = end_of(channel.test)
    channel.live.register().expect(201)
    channel.live.certified(seq_from=1, seq_to=1)
    assert fetch(channel.test, cursor)["data"] == []


def test_another_channel_has_its_own(listening, channel):
    with contextlib.closing(listening.new_channel(account_id=channel.account_id)) as sibling, \
            contextlib.closing(listening.new_channel()) as stranger:
        cursors = [end_of(one.test) for one in (sibling, stranger)]
        cursor = end_of(channel.test)
        made = create(channel.test)
        for other, own in zip((sibling, stranger), cursors):
            assert fetch(other.test, own)["data"] == []
            message = other.test.get(f"{NOTICES}?cursor={cursor}").expect(400, "validation_error").message
            assert "cursor" in message
        assert fetch(channel.test, cursor)["data"] == [made]


def test_a_live_key_is_refused(channel):
    for answer in (channel.live.get(NOTICES), channel.live.post(NOTICES, {"type": "balance.low"})):
        message = answer.expect(400, "validation_error").message
        assert "test key" in message and "live" in message
    assert "clave de pruebas" in channel.live.get(NOTICES, language="es").message
    Client(channel.service).get(NOTICES).expect(401, "invalid_key")


@pytest.mark.parametrize("body,words", [
    ({}, "'type'"), ({"type": 3}, "'type'"), ({"type": "balance"}, "balance.exhausted"), ([], "JSON object"),
    ({"type": "balance.low", "data": {}}, "'data'"), ({"type": None}, "'type'"), (b"{", "JSON")])
def test_what_is_malformed_is_refused(channel, body, words):
    cursor = end_of(channel.test)
    answer = channel.test.post(NOTICES, body, headers={"Content-Type": "application/json"})
    assert words in answer.expect(400, "validation_error").message
    assert fetch(channel.test, cursor)["data"] == []


@pytest.mark.parametrize("query", ["wait=31", "wait=-1", "wait=x", "limit=0", "limit=101", "cursor=", "cursor=abc",
                                   "after=1", "wait="])
def test_wrong_parameters_are_named(channel, query):
    message = channel.test.get(f"{NOTICES}?{query}").expect(400, "validation_error").message
    assert query.split("=", maxsplit=1)[0] in message


def test_scenarios_apply(channel):
    cursor = end_of(channel.test)
    for scenario, status in (("rate_limited", 429), ("temporarily_unavailable", 503)):
        channel.test.get(NOTICES, scenario=scenario).expect(status, scenario)
        channel.test.post(NOTICES, {"type": "balance.low"}, scenario=scenario).expect(status, scenario)
    assert fetch(channel.test, cursor)["data"] == []


# ---- waiting ----

class Waiting(threading.Thread):
    """A request that waits, in a thread of its own."""

    def __init__(self, channel, cursor):
        super().__init__()
        self.client = Client(channel.service, channel.test.key)
        self.cursor, self.answer = cursor, None

    def run(self):
        with self.client:
            self.answer = self.client.get(f"{NOTICES}?cursor={self.cursor}&wait=30")

    def ended(self):
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.answer.expect(200).json


def test_a_waiting_request_has_the_notice_when_it_arises(channel):
    """The deadline of the service is far longer than the wait until the notice. The first request has waited when it
    is written, or comes after it: it is the same answer."""
    cursor = end_of(channel.test)
    waiting = [Waiting(channel, cursor) for _ in range(3)]
    for one in waiting:
        one.start()
    made = create(channel.test)
    for one in waiting:
        assert one.ended()["data"] == [made]


def test_a_wait_ends_without_a_notice_before_the_deadline_would_end_it(channel):
    cursor = end_of(channel.test)
    began = time.monotonic()
    answer = fetch(channel.test, cursor, wait=30)
    assert answer["data"] == [] and answer["next_cursor"] == cursor
    assert time.monotonic() - began >= 3.9  # half of the deadline: never earlier while nothing stops it


def test_more_requests_than_may_wait_are_answered_at_once(channel):
    cursor = end_of(channel.test)
    waiting = [Waiting(channel, cursor) for _ in range(12)]
    for one in waiting:
        one.start()
    for one in waiting:
        assert one.ended()["data"] == []


def test_a_request_whose_connection_ends_does_no_harm(channel):
    cursor = end_of(channel.test)
    head = (f"GET {NOTICES}?cursor={cursor}&wait=30 HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {channel.test.key}\r\n\r\n")
    for _ in range(4):
        with socket.create_connection(("127.0.0.1", channel.service.port)) as connection:
            connection.sendall(head.encode())
    made = create(channel.test)
    assert fetch(channel.test, cursor, wait=30)["data"] == [made]


def test_waiting_requests_are_answered_when_the_service_ends(start):
    """Half of the deadline is longer than the test would wait for the end."""
    service = start(http__deadline="3600s")
    channel = service.new_channel()
    cursor = end_of(channel.test)
    channel.close()
    waiting = [Waiting(channel, cursor) for _ in range(3)]
    for one in waiting:
        one.start()
    eventually(lambda: service.metric('http_connections_by_state{state="busy"}') == 3 or None, "they wait")
    assert service.stop() == 0
    for one in waiting:
        assert one.ended()["data"] == []


# ---- what is kept ----

def test_the_newest_notices_of_a_channel_are_kept(start):
    service = start(environment={"TORTURE_SIZES": "test_notices=3"})
    with contextlib.closing(service.new_channel()) as channel:
        cursor = end_of(channel.test)
        made = [create(channel.test) for _ in range(5)]
        assert fetch(channel.test, cursor)["data"] == made[-3:]


def test_old_notices_are_removed_and_a_cursor_goes_on(start):
    service = start(environment={"TORTURE_SIZES": "housekeeping_us=100000"})
    with contextlib.closing(service.new_channel()) as channel:
        cursor = end_of(channel.test)
        create(channel.test)
        assert service.stop() == 0
        service.store.change("UPDATE test_notices SET position = position - 2 * 86400000000")
        service.start()
        eventually(lambda: not fetch(channel.test, cursor)["data"] or None, "it is removed")
        made = create(channel.test)
        assert fetch(channel.test, cursor)["data"] == [made]
