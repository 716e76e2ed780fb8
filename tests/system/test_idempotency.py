"""Idempotency-Key on POST /certifications: a repeated request gets the same certification, and pays
once, whatever died or ran at the same moment."""

import collections
import http.client
import threading

import pytest

import stores
from client import Client, Service, eventually, fresh
from fleet import Fleet, at_once

pytestmark = pytest.mark.both_stores

FEE = 5
DAY_US = 24 * 3600 * 1000000
WHOLE = {"seq_from": 1, "seq_to": 3}


@pytest.fixture(scope="module")
def charging(start):
    return start(certification__fee=FEE, certification__open_per_account=3, seal__interval="1s")


def prepared(service, credits=100):
    """A channel with three events in each mode."""
    channel = service.new_channel(credits=credits + 3)
    for n in range(3):
        channel.live.register({"n": n}).expect(201)
        channel.test.register({"n": n}).expect(201)
    return channel


def ask(client, key, wanted=None, **more):
    headers = {"Idempotency-Key": key} if key is not None else {}
    return client.post("/v1/certifications", wanted or WHOLE, headers=headers, **more)


def is_replay(answer):
    assert answer.headers.get_all("Idempotent-Replayed", []) in ([], ["true"])
    return "Idempotent-Replayed" in answer.headers


def accepted(client, key, wanted=None):
    answer = ask(client, key, wanted).expect(202)
    assert not is_replay(answer)
    return answer.json


def replayed(client, key, wanted=None):
    answer = ask(client, key, wanted).expect(202)
    assert is_replay(answer)
    return answer.json


def identifiers(client):
    return [each["certification_id"] for each in client.walk("/v1/certifications", 100)]


def fees(service, channel):
    entries = service.admin("credits", "list", channel.account_id)["data"]
    return collections.Counter(entry["kind"] for entry in entries if entry["kind"].startswith("fee"))


# ---- the same request ----

def test_the_same_key_and_range_answer_the_same_certification(charging):
    channel = prepared(charging)
    first = accepted(channel.live, "a")
    again = replayed(channel.live, "a")
    assert again["certification_id"] == first["certification_id"]
    assert again["requested_at"] == first["requested_at"]
    channel.live.settled(first["certification_id"])
    done = replayed(channel.live, "a")
    assert done["status"] == "completed" and done["report_url"]
    assert channel.live.download(done["report_url"]).status == 200
    spanish = ask(channel.live, "a", language="es").expect(202).json
    assert spanish["report_url"] != done["report_url"], "in the language of the present request"
    assert identifiers(channel.live) == [first["certification_id"]]
    assert channel.live.balance()["balance"] == 100 - FEE
    # Another key of the channel is as good; another chain's has nothing to do with it.
    other = Client(charging, charging.new_key(channel.id, "live")["key"])
    assert replayed(other, "a")["certification_id"] == first["certification_id"]
    other.close()
    assert accepted(channel.test, "a")["certification_id"] != first["certification_id"]
    accepted(prepared(charging).live, "a")
    # Without a key each request is one of its own, and so with another one.
    accepted(channel.live, None)
    accepted(channel.live, "A")
    assert fees(charging, channel) == {"fee": 3}


def test_the_range_is_compared_as_it_was_asked_for(charging):
    channel = prepared(charging)
    wanted = {"from": "2001-01-01T00:00:00Z", "to": "2999-01-01T00:00:00.5Z"}
    first = accepted(channel.live, "times", wanted)
    assert first["event_count"] == 3
    channel.live.register().expect(201)
    same = {"to": "2999-01-01t01:00:00.500000999+01:00", "seq_to": None,
            "from": "2001-01-01T00:00:00.000Z", "seq_from": None}
    again = replayed(channel.live, "times", same)
    assert (again["certification_id"], again["event_count"]) == (first["certification_id"], 3)
    for other in ({**wanted, "to": "2999-01-01T00:00:00.500001Z"}, WHOLE,
                  {"seq_from": 1, "seq_to": 1000}):
        refused = ask(channel.live, "times", other).expect(409, "client_ref_conflict")
        assert first["certification_id"] in refused.message and not is_replay(refused)
        assert "Idempotency-Key" in refused.message
        spanish = ask(channel.live, "times", other, language="es").expect(409)
        assert "Idempotency-Key" in spanish.message != refused.message
    ask(channel.live, "times", {"seq_from": 3, "seq_to": 1}).expect(400, "validation_error")
    assert fees(charging, channel) == {"fee": 1}


def test_neither_balance_nor_limits_stand_in_the_way_of_a_repetition(charging):
    channel = prepared(charging, credits=FEE)
    first = accepted(channel.live, "last")
    assert channel.live.balance()["balance"] == 0
    ask(channel.live, "next").expect(402, "insufficient_balance")
    assert replayed(channel.live, "last")["certification_id"] == first["certification_id"]
    channel.live.register().expect(201)
    assert channel.live.balance()["operational"] is False
    ask(channel.live, "next").expect(402, "account_not_operational")
    assert replayed(channel.live, "last")["certification_id"] == first["certification_id"]
    # The key of what was refused is free.
    charging.admin("credits", "add", channel.account_id, 100)
    accepted(channel.live, "next", {"seq_from": 1, "seq_to": 1})


@pytest.mark.usefixtures("one_day")
def test_the_daily_test_quota_does_not_stand_in_the_way(service):
    channel = prepared(service)
    for n in range(20):
        channel.test.settled(accepted(channel.test, f"k{n}")["certification_id"])
    ask(channel.test, "k20").expect(429, "test_quota_exceeded")
    for n in range(20):
        replayed(channel.test, f"k{n}")
    ask(channel.test, "k20").expect(429, "test_quota_exceeded")
    assert len(identifiers(channel.test)) == 20


def test_what_is_forced_with_a_test_key_takes_no_key(shared):
    shared.test.register().expect(201)
    one = {"seq_from": 1, "seq_to": 1}
    key = fresh()
    ask(shared.test, key, one, scenario="unpaid").expect(402, "account_not_operational")
    accepted(shared.test, key, one)
    ask(shared.test, key, one, scenario="unpaid").expect(402, "account_not_operational")
    replayed(shared.test, key, one)


def test_a_suspended_channel_asks_for_nothing_not_even_again(charging):
    channel = prepared(charging)
    accepted(channel.live, "a")
    charging.admin("account", "suspend", channel.account_id)
    eventually(lambda: ask(channel.live, "a").status == 403, "it is suspended")
    charging.admin("account", "resume", channel.account_id)
    eventually(lambda: ask(channel.live, "a").status == 202, "it is not any more")
    assert fees(charging, channel) == {"fee": 1}


def test_a_failed_certification_is_answered_as_that_and_its_fee_stays_given_back(charging):
    channel = charging.new_channel(credits=20)
    content = b"declared otherwise " * 12345
    event = channel.live.register_file(content).expect(201).json
    channel.live.sealed(event["event_id"])
    (stored,) = [path for path in (charging.data / "content").rglob("*")
                 if path.is_file() and path.stat().st_size == len(content)]
    stored.chmod(0o600)
    stored.write_bytes(content.upper())
    one = {"seq_from": 1, "seq_to": 1}
    first = accepted(channel.live, "a", one)["certification_id"]
    assert channel.live.settled(first)["status"] == "failed"
    stored.write_bytes(content)
    again = replayed(channel.live, "a", one)
    assert (again["certification_id"], again["status"]) == (first, "failed")
    assert channel.live.balance()["balance"] == 19
    other = accepted(channel.live, "b", one)["certification_id"]
    assert channel.live.settled(other)["status"] == "completed"
    assert fees(charging, channel) == {"fee": 2, "fee_refund": 1}


# ---- the header ----

@pytest.mark.parametrize("key", ["", " ", "a b", "a\tb", "ñ", "k" * 256])
def test_what_is_no_key_is_refused_with_the_headers_name(shared, key):
    answer = ask(shared.test, key.encode()).expect(400, "validation_error")
    assert "Idempotency-Key" in answer.message


@pytest.mark.parametrize("key", ["k", "k" * 255, '"quoted"', "quoted", "!~", "a,b;c=d"])
def test_visible_ascii_is_a_key(shared, key):
    if not identifiers(shared.live):
        shared.live.register().expect(201)
    one = {"seq_from": 1, "seq_to": 1}
    first = accepted(shared.live, key, one)
    assert replayed(shared.live, f"  {key}\t", one)["certification_id"] == \
        first["certification_id"]


def test_it_is_sent_once(service, shared):
    shared.live.register().expect(201)
    before = identifiers(shared.live)
    for names in (("Idempotency-Key", "idempotency-key"), ("IDEMPOTENCY-KEY",) * 2):
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        connection.putrequest("POST", "/v1/certifications")
        body = b'{"seq_from":1,"seq_to":1}'
        for name, value in (("Authorization", f"Bearer {shared.live.key}"),
                            ("Content-Type", "application/json"),
                            ("Content-Length", str(len(body))), *((name, "same") for name in names)):
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        assert response.status == 400
        assert "Idempotency-Key is repeated" in response.read().decode()
        connection.close()
    assert identifiers(shared.live) == before


def test_other_operations_pay_no_heed_to_it(shared):
    headers = {"Idempotency-Key": "not one"}
    shared.live.register(headers=headers).expect(201)
    shared.live.get("/v1/certifications", headers=headers).expect(200)


# ---- at once ----

def one_of_all(answers):
    for answer in answers:
        answer.expect(202)
    assert len({answer.json["certification_id"] for answer in answers}) == 1
    assert sum(not is_replay(answer) for answer in answers) == 1


def test_many_at_once_are_one_certification_and_one_fee(charging):
    channel = prepared(charging)
    for turn in range(5):
        def work():
            with Client(charging, channel.live.key) as client:
                return ask(client, f"turn-{turn}")
        one_of_all(at_once([work] * 12))
        eventually(lambda: not channel.live.walk("/v1/certifications", 100, status="processing"),
                   "none is under way")
    assert len(identifiers(channel.live)) == 5
    assert fees(charging, channel) == {"fee": 5}
    assert channel.live.balance()["balance"] == 100 - 5 * FEE


def test_of_two_ranges_at_once_with_one_key_one_wins(charging):
    channel = prepared(charging)

    def work(number):
        with Client(charging, channel.live.key) as client:
            return ask(client, "same", {"seq_from": 1, "seq_to": 1 + number % 2})
    answers = at_once([lambda number=number: work(number) for number in range(12)])
    statuses = collections.Counter(answer.status for answer in answers)
    assert statuses == {202: 6, 409: 6}
    one_of_all([answer for answer in answers if answer.status == 202])
    assert fees(charging, channel) == {"fee": 1}


@pytest.mark.postgresql
def test_at_two_nodes_at_once_it_is_one_certification_and_one_fee(tmp_path):
    with Fleet(tmp_path, certification__fee=FEE, rate__live=100000) as fleet:
        channel = prepared(fleet)
        for turn in range(15):
            answers = at_once([lambda node=node, turn=turn: ask(node.client(channel.live.key),
                                                                f"turn-{turn}")
                               for node in fleet.nodes * 3])
            one_of_all(answers)
        assert len(identifiers(channel.live)) == 15
        assert fees(fleet, channel) == {"fee": 15}
        assert channel.live.balance()["balance"] == 100 - 15 * FEE
        fleet.check()


# ---- what dies ----

def test_killed_around_an_acceptance_it_is_accepted_once(tmp_path):
    """The service is killed while requests are on their way; then they are repeated as they were."""
    service = Service(tmp_path, certification__fee=FEE, certification__open_per_account=0,
                      rate__live=100000, seal__interval="1h").start()
    try:
        channel = prepared(service, credits=10000)
        told, unanswered = {}, 0
        for turn in range(3):
            keys = collections.defaultdict(list)

            def send(worker):
                with Client(service, channel.live.key) as client:
                    for n in range(10000):
                        key = f"{turn}-{worker}-{n}"
                        keys[worker].append(key)
                        try:
                            told[key] = accepted(client, key)["certification_id"]
                        except (OSError, http.client.HTTPException):
                            return
            threads = [threading.Thread(target=send, args=(worker,)) for worker in range(4)]
            for thread in threads:
                thread.start()
            before = len(told)
            eventually(lambda: len(told) >= before + 8 + turn, "some are accepted", pause=0.001)
            service.kill()
            for thread in threads:
                thread.join()
            service.start()
            for key in [key for sent in keys.values() for key in sent]:
                answer = ask(channel.live, key).expect(202)
                if key in told:
                    assert is_replay(answer) and answer.json["certification_id"] == told[key]
                else:
                    unanswered += 1
                    told[key] = answer.json["certification_id"]
        assert unanswered
        assert sorted(identifiers(channel.live)) == sorted(told.values())
        assert len(set(told.values())) == len(told)
        entries = service.store.rows("SELECT count(*), -sum(credits), count(DISTINCT reference) "
                                     "FROM credit_entries WHERE kind = 'fee'")
        assert entries == [[str(len(told)), str(len(told) * FEE), str(len(told))]]
        assert channel.live.balance()["balance"] == 10000 - len(told) * FEE
        service.admin("store", "check")
        assert service.stop() == 0
    finally:
        service.discard()


# ---- a day later ----

def keys_kept(service):
    return {key for (key,) in service.store.rows(
        "SELECT idempotency_key FROM certifications WHERE idempotency_key IS NOT NULL")}


def test_after_a_day_the_key_is_free_and_housekeeping_removes_it(tmp_path):
    service = Service(tmp_path, certification__fee=FEE, seal__interval="1s").start()
    try:
        channel = prepared(service)
        old = {key: accepted(channel.live, key)["certification_id"] for key in ("a", "b", "c")}
        for identifier in old.values():
            channel.live.settled(identifier)
        assert keys_kept(service) == {"a", "b", "c"}
        service.stop()
        # An hour short of a day for one, a day for the others.
        for key, age_us in (("a", DAY_US - 3600000000), ("b", DAY_US), ("c", DAY_US)):
            service.store.change(f"UPDATE certifications SET requested_at = requested_at - {age_us} "
                                 f"WHERE certification_id = {stores.text(old[key])}")
        service.start()
        other = {"seq_from": 2, "seq_to": 2}
        assert replayed(channel.live, "a")["certification_id"] == old["a"]
        new = accepted(channel.live, "b", other)["certification_id"]
        assert new not in old.values()
        assert replayed(channel.live, "b", other)["certification_id"] == new
        eventually(lambda: keys_kept(service) == {"a", "b"}, "housekeeping removed it")
        assert fees(service, channel) == {"fee": 4}
        assert channel.live.certification(old["c"])["status"] == "completed"
        assert service.stop() == 0
    finally:
        service.discard()
