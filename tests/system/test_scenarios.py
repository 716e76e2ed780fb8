"""X-SVC-Test-Scenario: each cell of the table, and what it leaves untouched."""

import pytest

from client import fresh

READING = ["/v1/events", "/v1/channel", "/v1/account/balance", "/v1/certifications",
           "/v1/certifications/CERT-TEST-2026-0000000", "/v1/events/evt_none",
           "/v1/events/evt_none/content"]


@pytest.mark.parametrize("language,word", [("en", "limit"), ("es", "l\u00edmite")])
def test_unpaid_limit_refuses_a_registration_as_the_real_limit_does(shared, language, word):
    answer = shared.test.register(scenario="unpaid_limit", language=language)
    answer.expect(402, "unpaid_limit_exceeded")
    assert word in answer.message


def test_unpaid_does_not_affect_a_registration(shared):
    event = shared.test.register(scenario="unpaid").expect(201).json
    assert event["status"] == "test"


@pytest.mark.parametrize("scenario", ["unpaid", "unpaid_limit"])
def test_unpaid_and_unpaid_limit_refuse_a_certification(shared, scenario):
    shared.test.register().expect(201)
    answer = shared.test.certify(seq_from=1, seq_to=1, scenario=scenario)
    answer.expect(402, "account_not_operational")


@pytest.mark.parametrize("scenario", ["unpaid", "unpaid_limit"])
@pytest.mark.parametrize("target", READING)
def test_unpaid_and_unpaid_limit_affect_no_other_operation(shared, scenario, target):
    assert shared.test.get(target, scenario=scenario).status == shared.test.get(target).status


@pytest.mark.parametrize("target", READING)
def test_rate_limited_refuses_every_reading(shared, target):
    answer = shared.test.get(target, scenario="rate_limited").expect(429, "rate_limited")
    assert int(answer.headers["Retry-After"]) >= 1


def test_rate_limited_refuses_registrations_and_certifications(shared):
    for answer in (shared.test.register(scenario="rate_limited"),
                   shared.test.certify(seq_from=1, seq_to=1, scenario="rate_limited")):
        answer.expect(429, "rate_limited")
        assert int(answer.headers["Retry-After"]) >= 1
    shared.test.register().expect(201)


@pytest.mark.parametrize("scenario", ["", "paid", "UNPAID", "unpaid,rate_limited", "rate-limited"])
def test_an_unknown_scenario_is_refused(shared, scenario):
    headers = {"X-SVC-Test-Scenario": scenario}
    for target in READING[:4]:
        shared.test.get(target, headers=headers).expect(400, "validation_error")
    body = {"client_ref": fresh(), "payload": {}}
    answer = shared.test.post("/v1/events", body, headers=headers).expect(400, "validation_error")
    assert "X-SVC-Test-Scenario" in answer.message


@pytest.mark.parametrize("scenario", ["unpaid", "unpaid_limit", "rate_limited", "nonsense"])
def test_on_a_live_key_the_header_is_ignored(shared, scenario):
    shared.live.register(scenario=scenario).expect(201)
    shared.live.get("/v1/account/balance", scenario=scenario).expect(200)
    shared.live.certify(seq_from=1, seq_to=1, scenario=scenario).expect(202)


def test_a_forced_answer_changes_nothing(channel):
    channel.test.register({}, "a").expect(201)
    before = channel.service.admin("account", "show", channel.account_id)
    channel.test.register({}, "b", scenario="unpaid_limit").expect(402)
    channel.test.register({}, "c", scenario="rate_limited").expect(429)
    channel.test.certify(seq_from=1, seq_to=1, scenario="unpaid").expect(402)
    after = channel.service.admin("account", "show", channel.account_id)
    assert before == after
    assert channel.live.balance() == {"balance": 1000, "operational": True, "unpaid_events": 0}
    assert len(channel.test.get("/v1/events").json["data"]) == 1
    assert channel.test.get("/v1/certifications").json["data"] == []


def test_a_scenario_comes_before_the_body_and_after_the_key(shared, anyone):
    broken = {"headers": {"Content-Type": "application/json"}}
    shared.test.post("/v1/events", b"{", scenario="rate_limited", **broken).expect(429)
    shared.test.post("/v1/events", b"{", scenario="unpaid_limit", **broken).expect(402)
    shared.test.post("/v1/events", b"{", scenario="unpaid", **broken).expect(400)
    shared.test.post("/v1/certifications", b"{", scenario="unpaid", **broken).expect(402)
    anyone.post("/v1/events", b"{", scenario="rate_limited", **broken).expect(401)
    shared.test.register({}, "replayed").expect(201)
    shared.test.register({}, "replayed", scenario="unpaid_limit").expect(402)
