"""X-SVC-Test-Scenario: each cell of the table, and what it does not affect."""

import pytest

from client import form, fresh

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


INVALID = [
    ("GET", "/v1/events?limit=0"), ("GET", "/v1/events?surprise=1"),
    ("GET", "/v1/events?cursor=altered"), ("GET", "/v1/events?status=paid"),
    ("GET", "/v1/channel?surprise=1"), ("GET", "/v1/certifications?limit=501"),
    ("GET", "/v1/certifications?status=paid"),
    ("POST", "/v1/events", b"{"), ("POST", "/v1/events", {"payload": {}}),
    ("POST", "/v1/events", {"client_ref": "a", "hash": "0" * 64, "hash_alg": "sha-256"}),
    ("POST", "/v1/events?surprise=1", {"client_ref": "a", "payload": {}}),
    ("POST", "/v1/certifications", b"{"), ("POST", "/v1/certifications", {}),
    ("POST", "/v1/certifications", {"seq_from": 2, "seq_to": 1}),
    ("POST", "/v1/certifications", {"seq_from": 1, "seq_to": 1, "surprise": 1}),
]


@pytest.mark.parametrize("scenario", ["unpaid", "unpaid_limit", "rate_limited"])
@pytest.mark.parametrize("request_line", INVALID, ids=lambda line: f"{line[1]} {line[2:]}")
def test_what_is_invalid_is_told_so_whatever_is_forced(shared, scenario, request_line):
    json = {"Content-Type": "application/json"}
    plain = shared.test.call(*request_line, headers=json).expect(400, "validation_error")
    forced = shared.test.call(*request_line, headers=json, scenario=scenario)
    assert forced.expect(400, "validation_error").message == plain.message


@pytest.mark.parametrize("scenario,status", [("unpaid_limit", 402), ("rate_limited", 429)])
def test_a_file_is_read_before_it_is_refused_and_never_kept(shared, scenario, status):
    reference = fresh()
    content_type, body = form(("client_ref", reference))
    shared.test.post("/v1/events", body, scenario=scenario,
                     headers={"Content-Type": content_type}).expect(400, "validation_error")
    shared.test.register_file(b"x" * 600_000, reference, scenario=scenario).expect(status)
    shared.test.register_file(b"y", reference).expect(201)


def test_a_scenario_comes_after_the_key_and_before_what_is_looked_up(shared, anyone):
    anyone.register(scenario="rate_limited").expect(401)
    shared.test.register({}, "replayed").expect(201)
    shared.test.register({}, "replayed", scenario="unpaid_limit").expect(402)
    shared.test.register({"other": 1}, "replayed", scenario="unpaid_limit").expect(402)
    shared.test.certify(seq_from=1, seq_to=10 ** 12, scenario="unpaid").expect(402)
