"""Rate limits: their headers on every answer, and real refusals."""

import socket
import time

import pytest

from client import PATIENCE, Client, eventually, fresh, read_answer

LOOK = "/v1/account/balance"


@pytest.fixture(scope="module")
def limited(start):
    """A service with the limits that a fresh one has."""
    return start(rate__live=50, rate__test=10)


def numbers(answer):
    return tuple(int(answer.headers[f"RateLimit-{name}"])
                 for name in ("Limit", "Remaining", "Reset"))


def drain(client, target=LOOK, at_once=50):
    """Asks until refused; the answers before, and the refusal. Requests are sent without waiting for their
    answers, so that tokens do not come as fast as they go however slow the machine is."""
    key = f"Authorization: Bearer {client.key}\r\n" if client.key else ""
    request = f"GET {target} HTTP/1.1\r\nHost: x\r\n{key}\r\n".encode()
    given = []
    with socket.create_connection(("127.0.0.1", client.service.port), timeout=PATIENCE) as link:
        answers = link.makefile("rb")
        while not any(answer.status == 429 for answer in given):
            assert len(given) < 2000, "2000 requests without a refusal"
            link.sendall(request * at_once)
            given += [read_answer(answers, "GET", target) for _ in range(at_once)]
    refused = next(place for place, answer in enumerate(given) if answer.status == 429)
    for answer in given[:refused + 1]:
        client.judge(answer)
    return given[:refused], given[refused]


def test_a_test_key_has_10_a_second_and_no_more_at_once(limited):
    channel = limited.new_channel()
    limit, remaining, reset = numbers(channel.test.get(LOOK).expect(200))
    assert (limit, remaining, reset) == (10, 9, 1)
    started = time.monotonic()
    allowed, refused = drain(channel.test)
    passed = time.monotonic() - started
    assert 9 <= len(allowed) <= 9 + 10 * passed + 1
    refused.expect(429, "rate_limited")
    assert int(refused.headers["Retry-After"]) == 1
    assert numbers(refused) == (10, 0, 1)
    time.sleep(int(refused.headers["Retry-After"]))
    channel.test.get(LOOK).expect(200)


def test_a_live_key_has_a_burst_of_200(limited):
    channel = limited.new_channel()
    limit, remaining, reset = numbers(channel.live.get(LOOK).expect(200))
    assert (limit, remaining, reset) == (200, 199, 1)
    started = time.monotonic()
    allowed, refused = drain(channel.live)
    passed = time.monotonic() - started
    assert 199 <= len(allowed) <= 199 + 50 * passed + 1
    refused.expect(429, "rate_limited")
    limit, remaining, reset = numbers(refused)
    assert (limit, remaining) == (200, 0) and 3 <= reset <= 4
    for answer in allowed:
        limit, remaining, reset = numbers(answer)
        assert reset in ((limit - remaining + 49) // 50, (limit - remaining) // 50)


def test_each_key_has_a_bucket_of_its_own(limited):
    channel = limited.new_channel()
    drain(channel.test)
    channel.live.get(LOOK).expect(200)
    sister = Client(limited, limited.new_key(channel.id, "test")["key"])
    sister.get(LOOK).expect(200)
    assert numbers(sister.get(LOOK))[1] >= 8


def test_an_account_may_have_a_rate_of_its_own(limited):
    channel = limited.new_channel(rate=5)
    assert numbers(channel.live.get(LOOK).expect(200))[0] == 20
    assert numbers(channel.test.get(LOOK).expect(200))[0] == 10
    started = time.monotonic()
    allowed, refused = drain(channel.live)
    assert 18 <= len(allowed) <= 19 + 5 * (time.monotonic() - started) + 1
    refused.expect(429, "rate_limited")


def test_a_rate_comes_before_the_scenario_the_body_and_the_registration(limited):
    channel = limited.new_channel()
    ref = fresh()
    channel.test.register({}, ref).expect(201)
    drain(channel.test)
    for ask in (lambda: channel.test.register({}, ref),
                lambda: channel.test.register(scenario="nonsense"),
                lambda: channel.test.post("/v1/events", b"{", headers={"Content-Type": "x"}),
                lambda: channel.test.get("/v1/events?surprise=1")):
        def refused(ask=ask):
            drain(channel.test)
            answer = ask()  # a token may have come meanwhile
            return answer if answer.status == 429 else None
        eventually(refused, "it is refused").expect(429, "rate_limited")


def test_suspension_comes_before_the_rate(limited):
    channel = limited.new_channel()
    limited.admin("channel", "suspend", channel.id)
    eventually(lambda: channel.test.register().status == 403, "the suspension is known")
    drain(channel.test)
    channel.test.register().expect(403, "suspended")


def test_a_forced_429_counts_like_any_request(limited):
    channel = limited.new_channel()
    answer = channel.test.get(LOOK, scenario="rate_limited").expect(429, "rate_limited")
    assert numbers(answer)[:2] == (10, 9)


def test_every_answer_tells_the_rate_also_without_a_key(limited):
    anyone = Client(limited)
    answers = [anyone.get(LOOK).expect(401), anyone.get("/nowhere").expect(404),
               anyone.call("PUT", LOOK).expect(405), anyone.get("/v1/openapi.yaml").expect(200),
               anyone.get("/verify").expect(200)]
    for answer in answers:
        assert numbers(answer)[0] == 200
    channel = limited.new_channel()
    for answer in (channel.test.get("/v1/events/x").expect(404),
                   channel.test.register(client_ref="").expect(400)):
        assert numbers(answer)[0] == 10


def test_callers_without_a_valid_key_share_a_bucket_per_address(limited):
    anyone, other = Client(limited), Client(limited, "svc_live_" + "x" * 36)
    channel = limited.new_channel()
    channel.live.get(LOOK).expect(200)
    started = time.monotonic()
    _, refused = drain(anyone)
    refused.expect(429, "rate_limited")
    assert int(refused.headers["Retry-After"]) >= 1
    allowed, _ = drain(other)
    assert {answer.status for answer in allowed} <= {401}
    assert len(allowed) <= 50 * (time.monotonic() - started) + 1, "what came since for both"
    channel.live.get(LOOK).expect(200)


def test_the_list_of_signers_is_open_but_not_without_limit(start):
    """It is read from the store: it must not be free to request it for ever."""
    service = start(rate__live=1, rate__test=1)
    anyone, channel = Client(service), service.new_channel()
    allowed, refused = drain(anyone, "/v1/signers")
    assert allowed and {answer.status for answer in allowed} == {200}
    assert [numbers(answer)[0] for answer in allowed] == [4] * len(allowed)
    refused.expect(429, "rate_limited")
    assert int(refused.headers["Retry-After"]) >= 1 and numbers(refused)[:2] == (4, 0)
    # No key is checked there, and none pays for it.
    assert channel.live.get("/v1/signers").status in (200, 429)
    assert numbers(channel.live.get(LOOK).expect(200)) == (4, 3, 1)


def test_a_refused_registration_registered_nothing(limited):
    channel = limited.new_channel()

    def refused():
        drain(channel.test)
        ref = fresh()
        return ref if channel.test.register({}, ref).status == 429 else None  # a token may have come meanwhile
    ref = eventually(refused, "one is refused")
    time.sleep(1.1)
    assert ref not in [event["client_ref"] for event in channel.test.get("/v1/events").expect(200).json["data"]]
    channel.test.register({}, ref).expect(201)
