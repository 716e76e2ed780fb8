"""X-SVC-Test-Scenario: each cell of the table, and what it does not affect."""

import datetime

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


REFUSALS = {  # of an event, a certification and a reading
    "temporarily_unavailable": (503, 503, 503), "client_ref_conflict": (409, None, None),
    "suspended": (403, 403, None), "account_disabled": (403, 403, 403), "limit_blocked": (422, None, None),
    "insufficient_balance": (None, 402, None), "certification_slow": (None, None, None),
    "certification_failed": (None, None, None)}


@pytest.mark.parametrize("scenario", REFUSALS)
def test_each_scenario_refuses_what_its_row_names(channel, scenario):
    event, certification, reading = REFUSALS[scenario]
    channel.test.register().expect(201)
    answer = channel.test.register(scenario=scenario)
    assert answer.status == event or (event is None and answer.status == 201), answer
    if event:
        assert answer.code == scenario
    answer = channel.test.certify(seq_from=1, seq_to=1, scenario=scenario)
    assert answer.status == certification or (certification is None and answer.status == 202), answer
    if certification:
        assert answer.code == scenario
    for target in READING[:4]:
        answer = channel.test.get(target, scenario=scenario)
        assert answer.status == reading or (reading is None and answer.status == 200), answer
    count = 1 if event else 2
    assert channel.test.get("/v1/events").json["data"][-1]["sequence"] == count


def test_a_forced_conflict_names_an_event_of_the_chain(channel):
    answer = channel.test.register(scenario="client_ref_conflict").expect(409)
    first = channel.test.register().expect(201).json
    assert answer.json["event_id"] == first["event_id"]


def test_a_forced_refusal_raises_no_alert_of_the_operator(start):
    service = start()
    channel = service.new_channel()
    for _ in range(3):
        channel.test.register(scenario="temporarily_unavailable").expect(503)
    channel.test.register().expect(201)
    _, text = service.monitor("/metrics")
    assert 'status="201"' in text and 'status="503"' not in text
    assert [line["level"] for line in service.log_lines() if line["event"] == "request_failed"] == ["info"] * 3


def test_a_certification_that_is_forced_to_fail(start):
    service = start()
    channel = service.new_channel()
    channel.test.register().expect(201)
    accepted = channel.test.certify(seq_from=1, seq_to=1, scenario="certification_failed").expect(202).json
    failed = channel.test.settled(accepted["certification_id"])
    assert failed["status"] == "failed" and failed["completed_at"] and failed["reports"] == []
    notices = service.admin("notice", "list", "--account", channel.account_id)["data"]
    assert [(one["type"], one["mode"]) for one in notices] == [("certification.failed", "test")]
    assert channel.test.certified(seq_from=1, seq_to=1)["status"] == "completed"
    assert service.metric("certifications_failed_total") == 0
    assert {line["level"] for line in service.log_lines() if line["event"] == "certification_failed"} == {"info"}


def test_a_slow_certification(channel):
    channel.test.register().expect(201)
    accepted = channel.test.certify(seq_from=1, seq_to=1, scenario="certification_slow").expect(202).json
    assert accepted["status"] == "processing"
    done = channel.test.settled(accepted["certification_id"])
    assert done["status"] == "completed"
    requested, completed = (datetime.datetime.fromisoformat(done[name]) for name in ("requested_at", "completed_at"))
    assert completed - requested >= datetime.timedelta(seconds=20)


@pytest.mark.parametrize("scenario", ["unpaid", "unpaid_limit", "rate_limited", "certification_failed", "nonsense"])
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


@pytest.mark.parametrize("scenario", ["unpaid", "unpaid_limit", "rate_limited", "temporarily_unavailable"])
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
