"""The Python client's batches, look-up by content, hooks, classes of refusals, times and notices, against a
server whose answers the tests write."""

import hashlib
import io
import json
import threading
from datetime import date, datetime, timedelta, timezone

import pytest
import yaml

from client import ROOT, fresh
from scripted import cut, hang_up, say, script  # noqa: F401

import constancia
from constancia import Declaration, Hooks, notices, webhooks
from constancia._batches import BYTES_MAX, ITEMS_MAX

from test_client_python import BALANCE, QUICK, naps  # noqa: F401
from test_client_python_receipts import EVENT

HERE = timezone(timedelta(hours=-5))
WHEN = datetime(2026, 1, 31, 22, 30, 0, 5, tzinfo=HERE)


@pytest.fixture
def seen():
    return []


@pytest.fixture
def scripted(script, seen):  # noqa: F811
    with constancia.Client(script.url, "svc_test_secret", retry=QUICK, receipts=seen.append) as made:
        yield made


# ---- batches ----

def items_of(handler):
    assert handler.path == "/v1/events/batch" and handler.headers["Content-Type"] == "application/x-ndjson"
    assert handler.body.endswith(b"\n")
    return [json.loads(line) for line in handler.body.splitlines()]


def registered(ref, status=201):
    return {**EVENT, "event_id": f"evt_{ref}", "client_ref": ref, "http_status": status}


def refused(status, code, retry_after=None, **more):
    return {"code": code, "message": "m", "client_ref": "r", "http_status": status, "retry_after": retry_after, **more}


def ndjson(lines):
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def batch(*lines, **headers):
    return say(200, ndjson(lines), Content_Type="application/x-ndjson", **headers)


def echo(handler):
    say(200, ndjson(registered(item["client_ref"]) for item in items_of(handler)))(handler)


def test_a_batch_has_one_outcome_for_each_item_in_order(script, scripted, seen):  # noqa: F811
    script.answers += [batch(registered("a"), refused(409, "client_ref_conflict", event_id="evt_9"),
                             registered("c", 200), refused(422, "limit_blocked"))]
    found = list(scripted.register_many([
        Declaration("a", {"when": WHEN}), {"client_ref": "b", "payload": {}},
        Declaration("c", hash="0" * 64, hash_alg="sha-256", occurred_at=WHEN), {"client_ref": "d", "payload": {}}]))
    assert items_of(script.seen[0]) == [
        {"client_ref": "a", "payload": {"when": "2026-02-01T03:30:00.000005Z"}}, {"client_ref": "b", "payload": {}},
        {"client_ref": "c", "hash": "0" * 64, "hash_alg": "sha-256", "occurred_at": "2026-02-01T03:30:00.000005Z"},
        {"client_ref": "d", "payload": {}}]
    assert [one.client_ref for one in found] == ["a", "b", "c", "d"]
    assert found[0].result().event_id == "evt_a" and not found[0].event.replayed
    assert found[2].result().replayed
    with pytest.raises(constancia.Conflict) as conflict:
        found[1].result()
    assert conflict.value.event_id == "evt_9" and isinstance(found[3].error, constancia.LimitBlocked)
    assert [one.event_id for one in seen] == ["evt_a", "evt_c"]
    assert json.loads(seen[0].to_json()) == {**EVENT, "event_id": "evt_a", "client_ref": "a"}, "a receipt as of POST /events"


def test_batches_are_cut_by_number_and_size_and_sent_while_they_are_used(script, scripted):  # noqa: F811
    script.answers += [echo] * 2
    taken = []

    def declared():
        for n in range(ITEMS_MAX + 1):
            taken.append(n)
            yield Declaration(f"r{n}", {"n": n})
    found = scripted.register_many(declared())
    assert next(found).client_ref == "r0" and len(taken) == ITEMS_MAX + 1 and len(script.seen) == 1
    assert [one.client_ref for one in found] == [f"r{n}" for n in range(1, ITEMS_MAX + 1)]
    assert [len(items_of(one)) for one in script.seen] == [ITEMS_MAX, 1]
    assert list(scripted.register_many([])) == [] and len(script.seen) == 2
    script.answers += [echo] * 3
    big = [Declaration(f"b{n}", {"text": "x" * (BYTES_MAX // 2 - 50)}) for n in range(5)]
    assert [one.client_ref for one in scripted.register_many(big)] == ["b0", "b1", "b2", "b3", "b4"]
    assert [len(items_of(one)) for one in script.seen[2:]] == [2, 2, 1]
    assert all(len(one.body) <= BYTES_MAX for one in script.seen)


def test_an_item_that_no_batch_holds_is_an_outcome_of_its_own(script, scripted):  # noqa: F811
    script.answers += [batch(registered("a")), say(413, b'{"code":"payload_too_large","message":"m"}'),
                       batch(registered("c"))]
    found = list(scripted.register_many([Declaration("a", {}), Declaration("b", {"x": "y" * BYTES_MAX}),
                                         Declaration("c", {})]))
    assert [one.client_ref for one in found] == ["a", "b", "c"]
    assert isinstance(found[1].error, constancia.TooLarge) and script.seen[1].path == "/v1/events"


def test_a_smaller_limit_of_an_installation_is_kept_to(script, scripted, seen):  # noqa: F811
    def small(handler):
        items = items_of(handler) if handler.path.endswith("batch") else []
        (echo if len(items) <= 2 else say(413, b'{"code":"payload_too_large","message":"m"}'))(handler)
    script.answers += [small] * 7
    found = list(scripted.register_many(Declaration(f"r{n}", {}) for n in range(5)))
    assert [one.result().client_ref for one in found] == [one.client_ref for one in seen] == [f"r{n}" for n in range(5)]
    assert [len(items_of(one)) for one in script.seen] == [5, 2, 3, 1, 2]


def test_a_batch_whose_answer_is_lost_is_repeated(script, scripted, seen, naps):  # noqa: F811
    whole = ndjson([registered("a"), registered("b")])
    script.answers += [hang_up, cut(whole[:-30], len(whole)), say(503, Retry_After="1"),
                       batch(registered("a", 200), registered("b", 200))]
    found = list(scripted.register_many([Declaration("a", {}), Declaration("b", {})]))
    assert [one.result().replayed for one in found] == [True, True] and len(naps) == 3
    assert len({one.body for one in script.seen}) == 1 and len(seen) == 2


def test_items_that_were_refused_for_a_while_are_repeated_alone(script, scripted, seen, naps):  # noqa: F811
    script.answers += [batch(registered("a"), refused(429, "rate_limited"), refused(400, "validation_error"),
                             refused(503, "unavailable", retry_after=2)),
                       batch(registered("b"), refused(429, "rate_limited")), batch(registered("d"))]
    found = list(scripted.register_many([Declaration(ref, {}) for ref in "abcd"]))
    assert [one.event and one.event.event_id for one in found] == ["evt_a", "evt_b", None, "evt_d"]
    assert [[item["client_ref"] for item in items_of(one)] for one in script.seen] == [
        ["a", "b", "c", "d"], ["b", "d"], ["d"]]
    assert naps[0] >= 2 and len(seen) == 3
    script.answers += [batch(refused(429, "rate_limited"))] * 4
    (last,) = scripted.register_many([Declaration("e", {})])
    assert isinstance(last.error, constancia.TooManyRequests) and script.answers == []


@pytest.mark.parametrize("answer", [
    b"", ndjson([registered("a")] * 2), ndjson([registered("b")]), b"[]\n", b"{}\n", b'{"http_status":201}\n',
    ndjson([registered("a", "201")]), ndjson([registered("a", 0)]), b"null\n", b"<html>\n"])
def test_an_answer_that_is_none_of_a_batch_is_refused(script, scripted, answer):  # noqa: F811
    script.answers += [say(200, answer)]
    with pytest.raises(constancia.UnexpectedAnswer):
        list(scripted.register_many([Declaration("a", {})]))


def test_receipts_of_a_batch_are_one_write(script, tmp_path):  # noqa: F811
    script.answers += [echo] * 2
    path = tmp_path / "receipts.ndjson"
    with constancia.Client(script.url, "k", receipts=path) as client:
        assert len(list(client.register_many(Declaration(f"r{n}", {}) for n in range(1500)))) == 1500
    assert [json.loads(line)["client_ref"] for line in path.read_text().splitlines()] == [
        f"r{n}" for n in range(1500)]
    script.answers += [echo]
    with constancia.Client(script.url, "k", receipts=tmp_path / "no" / "file") as client:
        with pytest.raises(constancia.ReceiptNotKept) as failed:
            list(client.register_many(Declaration(f"r{n}", {}) for n in range(5)))
    assert [one.client_ref for one in failed.value.events] == [f"r{n}" for n in range(5)]


def test_a_declaration_that_is_none_is_the_callers_mistake(script, scripted):  # noqa: F811
    for bad in ({}, {"client_ref": 1}, Declaration("a", {"x": float("nan")}), Declaration("a", {"x": {1}})):
        with pytest.raises((ValueError, TypeError)):
            list(scripted.register_many([bad]))
    assert script.seen == []


# ---- look-up by content ----

PAGE = {"data": [EVENT], "has_more": False, "next_cursor": None}
NONE = {"data": [], "has_more": False, "next_cursor": None}


def test_a_file_is_hashed_here_and_asked_for_by_its_digests(script, scripted, tmp_path):  # noqa: F811
    source = tmp_path / "contract"
    source.write_bytes(b"I declare.")
    digests = [("sha-256", hashlib.sha256(b"I declare.").hexdigest()),
               ("sha-512", hashlib.sha512(b"I declare.").hexdigest())]
    for given in (source, str(source), b"I declare.", io.BytesIO(b"I declare.")):
        script.seen.clear()
        script.answers += [say(200, json.dumps(NONE).encode()), say(200, json.dumps(PAGE).encode())]
        assert scripted.is_on_record(given)
        for one, (name, digest) in zip(script.seen, digests):
            assert f"hash={digest}" in one.path and f"hash_alg={name}" in one.path and not one.body
    script.answers += [say(200, json.dumps(NONE).encode())] * 2
    assert not scripted.is_on_record(b"else")
    script.answers += [say(200, json.dumps(PAGE).encode())]
    assert [one.event_id for one in scripted.find_by_hash("AB" * 32)] == ["evt_1"]
    assert f"hash={'ab' * 32}" in script.seen[-1].path and "hash_alg" not in script.seen[-1].path


# ---- hooks ----

def test_hooks_are_called_and_see_no_key(script, tmp_path, naps):  # noqa: F811
    told = []
    hooks = Hooks(on_request=told.append, on_response=told.append, on_retry=told.append)
    script.answers += [hang_up, say(503, Retry_After="1"), say(200, BALANCE, X_Request_Id="req_1"),
                       say(200, b"file")]
    with constancia.Client(script.url, "svc_test_secret", retry=QUICK, hooks=hooks) as client:
        client.balance()
        client.download(f"{script.url}/x?mac=hidden", tmp_path / "file")
    kinds = [type(one).__name__ for one in told]
    assert kinds == ["RequestSent", "RetryPlanned", "RequestSent", "ResponseReceived", "RetryPlanned",
                     "RequestSent", "ResponseReceived", "RequestSent", "ResponseReceived"]
    assert [one.attempt for one in told[:7]] == [1, 1, 2, 2, 2, 3, 3]
    assert isinstance(told[1].error, constancia.ConnectionFailed) and told[4].error.status == 503
    assert told[4].delay == naps[1] and told[6].request_id == "req_1" and told[6].seconds >= 0
    assert told[0].url == f"{script.url}/v1/account/balance" and told[7].url == f"{script.url}/x"
    assert "secret" not in repr(told) and "hidden" not in repr(told)


def test_a_hook_that_fails_changes_nothing(script, caplog):  # noqa: F811
    def fail(_):
        raise RuntimeError("the log is full")
    script.answers += [say(201, json.dumps(EVENT).encode())]
    with constancia.Client(script.url, "k", hooks=Hooks(fail, fail, fail)) as client:
        assert client.register("r", {}).event_id == "evt_1"
    assert [one.name for one in caplog.records] == ["constancia"] * 2


# ---- refusals, times, progress ----

@pytest.mark.parametrize("status, code, kind, general", [
    (422, "limit_blocked", constancia.LimitBlocked, constancia.ApiError),
    (403, "suspended", constancia.Suspended, constancia.Forbidden),
    (403, "account_disabled", constancia.AccountDisabled, constancia.Forbidden),
    (403, "else", constancia.Forbidden, constancia.ApiError), (422, "else", constancia.ApiError, constancia.ApiError),
    (409, "suspended", constancia.Conflict, constancia.ApiError)])
def test_refusals_with_a_remedy_of_their_own_have_a_class(script, scripted, naps, status, code, kind,  # noqa: F811
                                                          general):
    script.answers += [say(status, json.dumps({"code": code, "message": "m"}).encode(), Retry_After="7200")]
    with pytest.raises(general) as failed:
        scripted.register("r", {})
    assert type(failed.value) is kind and failed.value.retry_after == 7200 and naps == []


def test_times_are_sent_in_utc_with_microseconds(script, scripted):  # noqa: F811
    script.answers += [say(201, json.dumps(EVENT).encode())]
    scripted.register("r", {"due": WHEN, "list": [{"at": WHEN}]}, occurred_at=WHEN)
    body = json.loads(script.seen[0].body)
    assert body["payload"] == {"due": "2026-02-01T03:30:00.000005Z", "list": [{"at": "2026-02-01T03:30:00.000005Z"}]}
    assert body["occurred_at"] == "2026-02-01T03:30:00.000005Z"
    naive = datetime(2026, 1, 1)
    for call in (lambda: scripted.register("r", {"due": naive}), lambda: scripted.register("r", {}, occurred_at=naive),
                 lambda: scripted.events_page(from_=naive), lambda: scripted.certify(from_=naive, to=WHEN),
                 lambda: scripted.register("r", {"due": datetime.max.replace(tzinfo=HERE)})):
        with pytest.raises(ValueError, match="offset|years"):
            call()
    with pytest.raises(TypeError, match="date"):
        scripted.register("r", {"due": date(2026, 1, 1)})
    assert len(script.seen) == 1


def test_the_progress_of_waiting_ends_at_one(script, scripted, naps):  # noqa: F811
    base = {"certification_id": "CERT-1", "channel_id": "c", "mode": "live", "range": {},
            "requested_at": "2026-01-02T03:04:05.678901Z"}
    for last in ({}, {"progress": 0.99}, {"progress": None}, {"progress": 1}):
        script.answers += [say(200, json.dumps({**base, "status": "processing", "progress": 0.5}).encode()),
                           say(200, json.dumps({**base, "status": "completed", **last}).encode())]
        steps = []
        done = scripted.wait("CERT-1", progress=lambda now: steps.append(now.progress))  # noqa: B023
        assert steps == [0.5, 1.0] and done.progress == 1.0


def test_waiting_asks_no_sooner_than_the_service_says(script, scripted, naps):  # noqa: F811
    base = {"certification_id": "CERT-1", "channel_id": "c", "mode": "live", "range": {}, "status": "processing",
            "requested_at": "2026-01-02T03:04:05.678901Z"}
    script.answers += [say(200, json.dumps(base).encode(), Retry_After="3"), say(200, json.dumps(base).encode()),
                       say(200, json.dumps({**base, "status": "completed"}).encode())]
    assert scripted.wait("CERT-1").retry_after is None
    assert naps[0] == 3 and naps[1] < 3


@pytest.mark.parametrize("call", [
    lambda client: client.register("else", {}), lambda client: client.register_file("else", io.BytesIO(b"x")),
    lambda client: client.register_digest("else", "0" * 64)])
def test_a_receipt_of_another_declaration_is_kept_and_refused(script, scripted, seen, call):  # noqa: F811
    script.answers += [say(201, json.dumps(EVENT).encode())]
    with pytest.raises(constancia.UnexpectedAnswer, match="'r', not 'else'"):
        call(scripted)
    assert [one.event_id for one in seen] == ["evt_1"]
    script.answers += [say(201, json.dumps(EVENT).encode())] * 2
    with pytest.raises(constancia.DigestMismatch):
        scripted.register_digest("r", "1" * 64)
    assert scripted.register_digest("r", EVENT["hash"].upper()).hash == EVENT["hash"]


# ---- notices ----

def test_a_notice_that_a_test_signs_is_a_notice():
    signed = webhooks.sign_notice("whsec_1", {"type": "certification.completed", "data": {
        "certification_id": "CERT-1", "channel_id": "c", "status": "completed", "event_count": 3,
        "verification_code": "SVC-1", "new": 1}})
    notice = webhooks.verify("whsec_1", signed.headers, signed.body)
    assert notice.details == notices.CertificationData("CERT-1", "c", "completed", 3, "SVC-1")
    assert notice.data["new"] == 1 and signed.headers["X-SVC-Webhook-Id"] == notice.id
    old = webhooks.sign_notice("whsec_1", signed.body, timestamp=1767323045, prefix="ACME")
    assert old.body == signed.body and old.headers["X-ACME-Timestamp"] == "1767323045"
    assert webhooks.verify("whsec_1", old.headers, old.body, prefix="ACME", now=1767323045) == notice
    for secret, body in (("whsec_2", signed.body), ("whsec_1", signed.body + b" ")):
        with pytest.raises(constancia.InvalidSignature):
            webhooks.verify(secret, signed.headers, body)


def test_each_type_of_notice_has_a_class_with_its_members():
    described = yaml.safe_load((ROOT / "docs" / "webhooks.openapi.yaml").read_text(encoding="utf-8"))
    for name, hook in described["webhooks"].items():
        (_, own) = hook["post"]["requestBody"]["content"]["application/json"]["schema"]["allOf"]
        schema = described["components"]["schemas"][own["properties"]["data"]["$ref"].rpartition("/")[2]]
        fields = notices.KINDS[name].__dataclass_fields__
        assert set(schema["properties"]) <= set(fields), name
        assert {field for field, one in fields.items() if one.default is not None
                and one.default.__class__.__name__ == "_MISSING_TYPE"} <= set(schema["required"]), name


def test_notices_by_request_have_their_data():
    segment = {"channel_id": "c", "segment_id": "seg_1", "seq_from": 4, "seq_to": 9, "event_count": 6}
    ready = {"certification_id": "CERT-1", "channel_id": "c", "status": "completed", "event_count": 3,
             "verification_code": "SVC-1", "evidence_record_since": WHEN}
    for kind, data, details in (
            ("event.sealed", {"sealed_at": WHEN, "segments": [segment]},
             notices.EventSealedData(WHEN, [notices.SealedSegment(**segment)])),
            ("certification.evidence_ready", ready, notices.EvidenceReadyData(**ready))):
        signed = webhooks.sign_notice("whsec_1", {"type": kind, "data": data})
        assert webhooks.verify("whsec_1", signed.headers, signed.body).details == details


def test_a_type_of_notice_that_is_not_known_yet_is_usable():
    signed = webhooks.sign_notice("whsec_1", {"type": "moon.full", "data": {"a": [1]}})
    notice = webhooks.verify("whsec_1", signed.headers, signed.body)
    assert notice.details is None and notice.data == {"a": [1]} and notice.type == "moon.full"
    spoilt = webhooks.sign_notice("whsec_1", {"type": "balance.low", "data": {"balance": "x"}})
    notice = webhooks.verify("whsec_1", spoilt.headers, spoilt.body)
    with pytest.raises(constancia.UnexpectedAnswer):
        notice.details  # noqa: B018


def test_clients_of_one_file_of_receipts_in_many_threads(script, tmp_path):  # noqa: F811
    path = tmp_path / "receipts.ndjson"

    def one(handler):
        say(201, json.dumps({**EVENT, "client_ref": json.loads(handler.body)["client_ref"]}).encode())(handler)
    script.answers += [one] * 40
    with constancia.Client(script.url, "k", receipts=path) as client:
        threads = [threading.Thread(target=lambda: [client.register(fresh(), {}) for _ in range(5)])
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({json.loads(line)["client_ref"] for line in path.read_text().splitlines()}) == 40
