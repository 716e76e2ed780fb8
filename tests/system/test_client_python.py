"""The Python client (clients/python) against the service, and against servers that fail as the
service only does in bad hours."""

import contextlib
import dataclasses
import hashlib
import hmac
import http.client
import inspect
import io
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from datetime import datetime, timedelta, timezone

import pytest
import yaml

from client import ROOT, eventually, fresh
from hooks import Receiver, new_endpoint
from scripted import CLIENT, chunked, cut, hang_up, last, say, script  # noqa: F401

import constancia
from constancia import models, webhooks
from constancia._http import Retry

QUICK = Retry(attempts=4, patience=20)
OPERATIONS = {
    "registerEvent": ["register", "register_digest"], "registerFile": ["register_file"],
    "registerEvents": ["register_many"], "listEvents": ["events_page"],
    "getEvent": ["event"], "getEventContent": ["content"],
    "getEventEvidenceRecord": ["event_evidence_record"], "getChannel": ["channel"],
    "getChannelSeals": ["channel_seals"],
    "getBalance": ["balance"], "listNotices": ["notices_page"], "createNotice": ["create_notice"],
    "requestCertification": ["certify"],
    "listCertifications": ["certifications_page"], "getCertification": ["certification"],
    "getCertificationEvidenceRecord": ["certification_evidence_record"], "download": ["download"],
    "listSigners": ["signers"], "getSignerList": ["signer_list"], "getDescription": ["description"], "verify": ["verify_digest"],
    "verifyFile": ["verify_file"], "verifyCode": ["verify"],
    "getWebhookDescription": ["webhook_description"],
    "getIndex": [],  # where a person finds the documentation
}
SCHEMAS = {
    "Event": models.Event, "EventTimestamp": models.EventTimestamp, "Channel": models.Channel,
    "ChannelConfig": models.ChannelConfig, "AccountBalance": models.Balance,
    "Certification": models.Certification, "CertificationRange": models.CertificationRange,
    "CertificationReport": models.Report, "ContentPart": models.ContentPart,
    "EventProof": models.Proof, "SealedSegment": models.ProofSegment,
    "SealingRound": models.ProofRound, "Signer": models.Signer, "FileCheck": models.FileCheck,
    "FileVerification": models.FileVerification, "Verification": models.Verification,
    "IssuedDocument": models.Document,
}


def connect(service, key=None, **more):
    return constancia.Client(f"{service.public_url}/v1", key, **more)


@pytest.fixture
def client(service, channel):
    with connect(service, channel.live_key["key"]) as made:
        yield made


@pytest.fixture
def naps(monkeypatch):
    """How long each pause would have been."""
    taken = []
    monkeypatch.setattr("constancia._http.time.sleep", taken.append)
    return taken


# ---- what the description has ----

def described(name="openapi"):
    return yaml.safe_load((ROOT / "docs" / f"{name}.yaml").read_text(encoding="utf-8"))


def test_every_operation_has_a_method_with_its_filters():
    description = described()
    shared = description["components"]["parameters"]
    for path in description["paths"].values():
        for operation in path.values():
            if not isinstance(operation, dict):
                continue
            names = OPERATIONS[operation["operationId"]]
            filters = [shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one
                       for one in operation.get("parameters", ())]
            for name in names:
                given = inspect.signature(getattr(constancia.Client, name)).parameters
                for one in filters:
                    if one["in"] == "query" and name.endswith("_page"):
                        wanted = "from_" if one["name"] == "from" else one["name"]
                        assert wanted in given, (name, wanted)


def test_every_member_of_an_answer_has_a_field():
    schemas = described()["components"]["schemas"]
    for name, kind in SCHEMAS.items():
        fields = {"from" if one.name == "from_" else one.name for one in dataclasses.fields(kind)}
        assert fields - models.OWN == set(schemas[name]["properties"]), name
    added = schemas["EventWithProof"]["allOf"][1]["properties"]
    own = {one.name for one in dataclasses.fields(models.EventWithProof)}
    assert own == {one.name for one in dataclasses.fields(models.Event)} | set(added)
    error = constancia.ApiError(500, "internal", "x")
    assert set(schemas["Error"]["properties"]) <= set(vars(error))


def test_members_and_words_that_are_not_known_yet_do_no_harm():
    page = {"type": "quantum", "sealed_at": None, "reference": None, "new": {"a": 1}}
    assert models.decode(models.EventTimestamp, page).type == "quantum"
    with pytest.raises(constancia.UnexpectedAnswer):
        models.decode(models.EventTimestamp, {"reference": None})
    with pytest.raises(constancia.UnexpectedAnswer):
        models.decode(models.Balance, {"balance": "1", "operational": True, "unpaid_events": 0})
    with pytest.raises(constancia.UnexpectedAnswer):
        models.decode(models.Balance, [])


def has_batches():
    return "/events/batch" in described()["paths"]


def finds_by_hash():
    return "hash" in [one.get("name") for one in described()["paths"]["/events"]["get"]["parameters"]]


# ---- registering and reading ----

def test_a_payload_is_registered_once_and_read_again(client):
    when = datetime(2026, 1, 31, 9, 30, 0, 123456, tzinfo=timezone(timedelta(hours=1)))
    payload = {"text": "ñ \u2028 \"", "total": "49.90", "nested": [{"a": None}]}
    ref = fresh("order/ñ")
    first = client.register(ref, payload, occurred_at=when)
    again = client.register(ref, payload, occurred_at=when)
    assert (first.replayed, again.replayed) == (False, True)
    assert client.register(ref, payload, occurred_at=when.isoformat()).replayed, "the same time in another form"
    assert dataclasses.replace(again, replayed=False, timestamp=None) == dataclasses.replace(
        first, timestamp=None)
    assert first.occurred_at == when and first.client_ref == ref
    assert first.received_at.tzinfo is not None
    content = client.content(first.event_id)
    assert json.loads(content.body) == payload and content.media_type == "application/json"
    assert hashlib.sha256(content.body).hexdigest() == first.hash
    full = client.event(first.event_id)
    assert full.chain_hash == first.chain_hash and full.proof.config_hash
    with pytest.raises(constancia.Conflict) as refused:
        client.register(ref, {"other": 1})
    assert refused.value.event_id == first.event_id
    assert refused.value.code == "client_ref_conflict" and refused.value.request_id


def test_a_file_is_sent_in_pieces_and_comes_back(client, tmp_path):
    source = tmp_path / 'a "quoted" ñ.bin'
    source.write_bytes(os.urandom(3_000_001))
    event = client.register_file(fresh(), source)
    assert event.hash == constancia.digest(source)
    steps = []
    target = tmp_path / "back"
    found = client.save_content(event, target, progress=lambda at, all: steps.append((at, all)))
    assert target.read_bytes() == source.read_bytes() and found == event.hash
    assert steps[-1] == (3_000_001, 3_000_001) and len(steps) > 10
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
    assert client.content(event.event_id).file_name == source.name
    with open(source, "rb") as file:
        file.seek(3_000_000)
        last = client.register_file(fresh(), file, name="last.bin",
                                    occurred_at=datetime.now(timezone.utc))
        assert not file.closed
    assert client.content(last.event_id).body == source.read_bytes()[-1:]
    with pytest.raises(constancia.TooLarge) as refused:
        client.register_file(fresh(), io.BytesIO(bytes(20_000_000)))
    assert refused.value.code == "payload_too_large"
    assert client.balance().operational, "the next call has a connection"


def test_seal_documents_are_saved(client, tmp_path):
    event = client.register(fresh(), {})
    done = client.wait(client.certify(seq_from=event.sequence, seq_to=event.sequence, seal_history=True))
    for number, bounds in enumerate(({}, {"from_": 1, "to": event.sequence}, {"from_": event.received_at})):
        path = tmp_path / f"seals-{number}"
        assert client.channel_seals(path, **bounds) == constancia.digest(path)
        seals = [json.loads(line) for line in path.read_bytes().splitlines()]
        assert seals[-1]["last_sequence"] >= event.sequence
        assert number == 2 or seals[0]["first_sequence"] == 1
    client.download(done.evidence_url, tmp_path / "evidence.zip")
    with zipfile.ZipFile(tmp_path / "evidence.zip") as opened:
        assert ("history/history-000001.ndjson.gz" in opened.namelist()) == (event.sequence > 1)
    assert client.channel_seals(tmp_path / "none", from_=event.sequence + 10 ** 9) == constancia.digest(tmp_path / "none")
    with pytest.raises(constancia.InvalidRequest):
        client.channel_seals(tmp_path / "wrong", from_=2, to=1)
    assert not (tmp_path / "wrong").exists()


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(client, tmp_path, naps):
    with pytest.raises(FileNotFoundError):
        client.register_file(fresh(), tmp_path / "missing")

    class Spoilt(io.BytesIO):
        def read(self, size=-1):
            raise OSError("the disk says no")
    with pytest.raises(OSError, match="the disk says no"):
        client.register_file(fresh(), Spoilt(b"x" * 100))
    assert naps == []
    read_end, write_end = os.pipe()
    os.close(write_end)
    with open(read_end, "rb") as pipe, pytest.raises(ValueError, match="seekable"):
        client.register_file(fresh(), pipe)


def test_a_digest_is_registered(service, hash_channel, tmp_path):
    file = tmp_path / "contract"
    file.write_bytes(b"contract")
    with connect(service, hash_channel.live_key["key"]) as client:
        for algorithm in ("sha-256", "sha-512"):
            event = client.register_digest(fresh(), constancia.digest(file, algorithm),
                                           algorithm=algorithm)
            assert event.hash_alg == algorithm and event.modality == "hash_only"
        with pytest.raises(constancia.NotFound):
            client.content(event.event_id)
        assert client.channel().current_config.modality == "hash_only"
    with pytest.raises(ValueError):
        constancia.digest(file, "md5")


@pytest.mark.skipif(not has_batches(), reason="a service without batches")
def test_a_batch_is_registered_once(client):
    ref = fresh()
    declared = [constancia.Declaration(ref, {"a": 1}), {"client_ref": ref, "payload": {"a": 2}},
                {"client_ref": "", "payload": {}}, constancia.Declaration(ref, {"a": 1})]
    declared += [constancia.Declaration(fresh(), {"n": n}) for n in range(100)]
    found = list(client.register_many(declared))
    assert found[0].result().sequence == 1 and found[3].result().replayed
    assert isinstance(found[1].error, constancia.Conflict) and found[1].error.event_id == found[0].event.event_id
    assert isinstance(found[2].error, constancia.InvalidRequest)
    assert [one.result().sequence for one in found[4:]] == list(range(2, 102))
    again = list(client.register_many(declared))
    assert [one.event and one.event.event_id for one in again] == [one.event and one.event.event_id for one in found]
    assert all(one.event.replayed for one in again if one.event)


@pytest.mark.skipif(not finds_by_hash(), reason="a service without look-up by content")
def test_a_file_is_found_by_its_content(service, client, hash_channel, tmp_path):
    source = tmp_path / "contract"
    source.write_bytes(os.urandom(100_000))
    assert not client.is_on_record(source)
    event = client.register_file(fresh(), source)
    assert client.is_on_record(source) and client.is_on_record(source.read_bytes())
    assert [one.event_id for one in client.find_file(source)] == [event.event_id]
    assert [one.event_id for one in client.find_by_hash(event.hash.upper())] == [event.event_id]
    with connect(service, hash_channel.live_key["key"]) as other:
        assert not other.is_on_record(source)
        other.register_digest(fresh(), constancia.digest(source, "sha-512"), algorithm="sha-512")
        assert other.is_on_record(source)


def test_notices_of_the_test_mode_are_fetched(service, channel):
    with connect(service, channel.test_key["key"]) as client:
        end = client.notices_page()
        assert end.data == [] and end.next_cursor
        made = client.create_notice("consumption.limit_reached")
        page = client.notices_page(cursor=end.next_cursor, wait=1, limit=1)
        assert page.data == [made] and page.data[0].details.action == "block"
        assert client.notices_page(cursor=page.next_cursor).data == []
        with pytest.raises(constancia.InvalidRequest):
            client.create_notice("balance")


def test_retries_end_with_the_patience():
    retry = Retry(attempts=100, patience=3)
    assert retry.delay(5, None, 2.9) == pytest.approx(0.1) and retry.delay(5, None, 3) is None
    assert retry.delay(1, 0, 3) is None and retry.delay(100, None, 0) is None


def test_lists_go_on_from_page_to_page(client):
    before = datetime.now(timezone.utc) - timedelta(minutes=5)
    refs = [client.register(fresh(), {"n": n}).client_ref for n in range(7)]
    assert [one.client_ref for one in client.events(page_size=3)] == refs
    assert [one.client_ref for one in client.events(seq_from=2, seq_to=4)] == refs[1:4]
    assert [one.client_ref for one in client.events(order="desc", page_size=3)] == refs[::-1]
    assert [one.sequence for one in client.events(client_ref=refs[3])] == [4]
    assert list(client.events(client_ref=fresh())) == []
    assert len(list(client.events(from_=before, status="registered"))) == 7
    assert list(client.events(to=before)) == []
    page = client.events_page(limit=5)
    assert page.has_more and len(page.data) == 5
    assert len(client.events_page(limit=5, cursor=page.next_cursor).data) == 2
    with pytest.raises(ValueError, match="offset"):
        client.events_page(from_=datetime(2026, 1, 1))


def test_errors_tell_what_is_to_be_told(service, channel, client):
    with pytest.raises(constancia.InvalidRequest) as refused:
        client.register("", {})
    assert refused.value.status == 400 and refused.value.code == "validation_error"
    assert "client_ref" in refused.value.message and refused.value.request_id in str(refused.value)
    with pytest.raises(constancia.NotFound):
        client.event("evt_../../channel")
    with connect(service, "svc_live_unknown") as stranger, \
            pytest.raises(constancia.Unauthorized) as refused:
        stranger.balance()
    with connect(service, channel.live_key["key"], language="es") as spanish:
        with pytest.raises(constancia.InvalidRequest) as here:
            spanish.register("", {})
        with pytest.raises(constancia.InvalidRequest) as there:
            client.register("", {})
        assert here.value.message != there.value.message


def test_a_forced_refusal_is_waited_for_as_long_as_told(service, channel, naps):
    with connect(service, channel.test_key["key"], scenario="rate_limited", retry=QUICK) as client:
        with pytest.raises(constancia.TooManyRequests) as refused:
            client.balance()
    assert refused.value.retry_after >= 1
    assert len(naps) == 3 and all(one >= refused.value.retry_after for one in naps)
    with connect(service, channel.test_key["key"], scenario="unpaid_limit") as client:
        with pytest.raises(constancia.PaymentRequired):
            client.register(fresh(), {})


def test_keys_and_links_are_not_shown(service, channel, client, tmp_path):
    assert channel.live_key["key"] not in repr(client)
    for bad in ("svc_live_secret\n", "", "ñ"):
        with pytest.raises(ValueError) as refused:
            connect(service, bad)
        assert "secret" not in str(refused.value)
    with pytest.raises(ValueError) as refused:
        constancia.Client("http://user:hidden@127.0.0.1/v1")
    assert "hidden" not in str(refused.value)
    link = f"{service.public_url}/v1/downloads/CERT-2026-0000001/report-en.pdf?expires=9&mac=hidden"
    with pytest.raises(constancia.NotFound) as refused:
        client.download(link, tmp_path / "report")
    assert "hidden" not in str(refused.value) and not list(tmp_path.iterdir())


# ---- certifications ----

def test_a_certification_from_the_request_to_its_files(service, channel, client, tmp_path):
    for n in range(3):
        client.register(fresh(), {"n": n})
    source = tmp_path / "source"
    source.write_bytes(b"held content")
    client.register_file(fresh(), source)
    asked = client.certify(seq_from=1, seq_to=4)
    assert asked.range.seq_to == 4 and asked.replayed is False
    seen = []
    done = client.wait(asked, timeout=300, progress=seen.append)
    assert done.status == seen[-1].status == "completed" and done.event_count == 4
    assert "mac=" not in repr(done)
    files = client.save(done, tmp_path / "files")
    assert len(files) == 4
    on_record = {one.sha256 for one in client.verify(done.verification_code).documents}
    assert {constancia.digest(one) for one in files} == on_record
    with connect(service) as anyone:
        check = anyone.verify_file(files[0])
        assert check.verification.valid
        assert check.issued.certification_id == done.certification_id
        found = anyone.verify_digest(constancia.digest(files[-1]))
        assert found.verification_code == done.verification_code
        assert anyone.signers()[-1].used_until is None
        assert anyone.description().startswith("openapi: 3.1")
        with pytest.raises(constancia.NotFound):
            anyone.verify("SVC-2026-0000-0000")
    assert [one.certification_id for one in client.certifications(page_size=1)] == [
        done.certification_id]
    record = eventually(lambda: recorded(client.certification_evidence_record,
                                         done.certification_id), "there is a record",
                        patience=300)  # the renewer rests for a minute after what failed
    now = client.certification(done.certification_id)
    assert hashlib.sha256(record).hexdigest() == now.evidence_record_sha256
    event = next(client.events())
    assert eventually(lambda: recorded(client.event_evidence_record, event.event_id), "and here",
                      patience=300)
    assert client.event(event.event_id).proof.round.token


def recorded(fetch, identifier):
    with contextlib.suppress(constancia.NotFound):
        return fetch(identifier)
    return None


def test_waiting_ends_in_time_and_on_failure(client, monkeypatch):
    client.register(fresh(), {})
    real = client.wait(client.certify(seq_from=1, seq_to=1), timeout=300)
    monkeypatch.setattr(client, "certification",
                        lambda _: dataclasses.replace(real, status="processing"))
    with pytest.raises(constancia.WaitTimeout) as late:
        client.wait(real, timeout=0.3)
    assert late.value.certification.status == "processing"
    monkeypatch.setattr(client, "certification",
                        lambda _: dataclasses.replace(real, status="failed"))
    with pytest.raises(constancia.CertificationFailed):
        client.wait(real.certification_id)
    with pytest.raises(constancia.InvalidRequest):
        client.certify()


# ---- notices ----

SECRET, OTHER = "whsec_" + "01" * 32, "whsec_" + "fe" * 32
BODY = ('{"id":"ntc_1","type":"balance.low","created_at":"2026-01-02T03:04:05.678901Z",'
        '"mode":"live","data":{"text":"ñ"},"new":1}').encode()


def signed(secret, timestamp, body=BODY):
    return "v1=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body,
                            hashlib.sha256).hexdigest()


def test_a_notice_is_taken_with_a_good_signature_alone():
    now = 1767323045

    def check(given, body=BODY, timestamp=str(now), secret=SECRET, at=now):
        return webhooks.verify(secret, {"x-svc-timestamp": timestamp, "X-Svc-Signature": given},
                               body, now=at)
    good, other = signed(SECRET, now), signed(OTHER, now)
    for given in (good, f"{other},{good}", f"{good}, {other}"):
        notice = check(given)
        assert notice.id == "ntc_1" and notice.data == {"text": "ñ"}
    assert check(other, secret=[SECRET, OTHER]).type == "balance.low"
    for given in (other, "", "v1=", good[:-1], good[3:], good.replace("v1", "v2"), good + "0",
                  "ñ", "v1=\udcff"):
        with pytest.raises(constancia.InvalidSignature):
            check(given)
    for odd in ({"tolerance": float("nan"), "now": now + 9999}, {"now": float("nan")}):
        with pytest.raises(constancia.InvalidSignature):
            webhooks.verify(SECRET, {"X-SVC-Timestamp": str(now), "X-SVC-Signature": good}, BODY,
                            **odd)
    for bad in ({"body": BODY + b" "}, {"at": now + 301}, {"at": now - 301}, {"timestamp": "now"},
                {"timestamp": ""}, {"timestamp": "-1"}, {"timestamp": "9" * 5000}, {"secret": []}):
        with pytest.raises(constancia.InvalidSignature):
            check(good, **bad)
    empty = {"timestamp": str(now), "secret": ""}
    with pytest.raises(constancia.InvalidSignature):
        check(signed("", now), **empty)
    with pytest.raises(TypeError):
        check(good, body=BODY.decode())


def test_a_notice_of_the_service_is_good(start):
    service = start()
    account = service.new_account(credits=100)
    with Receiver() as receiver:
        endpoint = new_endpoint(service, account, receiver.url)
        receiver.secrets = [endpoint["secret"]]
        service.admin("webhook", "test", endpoint["endpoint_id"])
        delivery = receiver.next()
    notice = webhooks.verify(endpoint["secret"], delivery.headers, delivery.body, tolerance=3600)
    assert notice.type == "webhook.test" and notice.id.startswith("tst_")
    assert notice.data["endpoint_id"] == endpoint["endpoint_id"]


# ---- bad hours ----

BALANCE = b'{"balance":1,"operational":true,"unpaid_events":0}'
CERTIFICATION = (b'{"certification_id":"CERT-1","channel_id":"c","status":"processing",'
                 b'"mode":"live","range":{},"requested_at":"2026-01-02T03:04:05.678901Z"}')


@pytest.fixture
def scripted(script):
    with constancia.Client(script.url, "svc_test_key", retry=QUICK, user_agent="shop/1") as made:
        yield made


def test_retries_wait_at_least_as_long_as_told(script, scripted, naps):
    script.answers += [say(503, Retry_After="3"), say(429, Retry_After="1"), say(408),
                       say(502), say(200, BALANCE)]
    scripted._transport.retry = Retry(attempts=5)
    assert scripted.balance().balance == 1
    assert 3 <= naps[0] <= 3.75 and 1 <= naps[1] <= 1.25 and len(naps) == 4
    assert script.seen[0].path == "/v1/account/balance"
    assert script.seen[0].headers["User-Agent"].startswith("shop/1 constancia-python/")
    assert script.seen[0].headers["Authorization"] == "Bearer svc_test_key"


def test_what_is_too_long_to_wait_for_is_told_at_once(script, scripted, naps):
    script.answers += [say(429, b'{"code":"test_quota_exceeded","message":"m"}',
                           Retry_After="40000")]
    with pytest.raises(constancia.TooManyRequests) as refused:
        scripted.balance()
    assert naps == [] and refused.value.retry_after == 40000
    script.answers += [say(500, b'{"code":"internal","message":"m","incident_id":"inc_1"}')]
    with pytest.raises(constancia.ServerError) as refused:
        scripted.balance()
    assert naps == [] and refused.value.incident_id == "inc_1" and "inc_1" in str(refused.value)
    script.answers += [say(302, Location="http://127.0.0.1:1/")]
    with pytest.raises(constancia.ApiError):
        scripted.balance()
    script.answers += [say(200, b"<html>")]
    with pytest.raises(constancia.UnexpectedAnswer):
        scripted.balance()


def test_a_lost_connection_repeats_what_may_be_repeated(script, scripted, naps):
    script.answers += [hang_up, cut(BALANCE[:9], len(BALANCE)), say(200, BALANCE)]
    assert scripted.balance().operational and len(naps) == 2


def test_a_certification_is_asked_for_under_one_key_in_all_attempts(script, scripted, naps):
    script.answers += [hang_up, say(503, Retry_After="1"), say(502), say(202, CERTIFICATION)]
    assert not scripted.certify(seq_from=1, seq_to=1).replayed
    first, *others = [one.headers["Idempotency-Key"] for one in script.seen]
    assert others == [first] * 3 and len(first) >= 22
    script.answers += [say(202, CERTIFICATION, Idempotent_Replayed="true")] * 2
    assert scripted.certify(seq_from=1, seq_to=1).replayed
    assert script.seen[-1].headers["Idempotency-Key"] != first
    scripted.certify(seq_from=1, seq_to=1, idempotency_key="own")
    assert script.seen[-1].headers["Idempotency-Key"] == "own"
    for bad in ("", "a b", "a\n", "ñ", "k" * 256):
        with pytest.raises(ValueError):
            scripted.certify(seq_from=1, seq_to=1, idempotency_key=bad)
    assert script.answers == [] and len(script.seen) == 6


def test_a_certification_that_failed_tells_the_key_for_its_repetition(script, scripted, naps):
    for answers, kind in (([hang_up] * 4, constancia.ConnectionFailed),
                          ([say(503, Retry_After="1")] * 4, constancia.Unavailable),
                          ([say(202, b"<html>")], constancia.UnexpectedAnswer)):
        script.answers += answers
        with pytest.raises(kind) as failed:
            scripted.certify(seq_from=1, seq_to=1)
        key = failed.value.idempotency_key
        assert key == script.seen[-1].headers["Idempotency-Key"]
        script.answers += [say(202, CERTIFICATION)]
        scripted.certify(seq_from=1, seq_to=1, idempotency_key=key)
        assert script.seen[-1].headers["Idempotency-Key"] == key
    script.answers += [say(404)]
    with pytest.raises(constancia.NotFound) as failed:
        scripted.balance()
    assert failed.value.idempotency_key is None


def test_a_code_that_is_not_known_yet_does_no_harm(script, scripted, naps):
    body = b'{"code":"unheard_of","message":"m","event_id":"evt_1","new":{"a":[]}}'
    for status, kind in ((409, constancia.Conflict), (400, constancia.InvalidRequest),
                         (422, constancia.ApiError), (507, constancia.ServerError)):
        script.answers += [say(status, body)]
        with pytest.raises(kind) as refused:
            scripted.balance()
        assert (refused.value.status, refused.value.code) == (status, "unheard_of")
        assert refused.value.event_id == "evt_1"
    script.answers += [say(400, b'{"code":7,"message":["m"]}')]
    with pytest.raises(constancia.InvalidRequest):
        scripted.balance()
    assert naps == []


def losing(service):
    """Has the service do what was asked, and loses its answer."""
    def answer(handler):
        handler.server.statuses.append(forwarded(service, handler).status)
        handler.close_connection = True
    return answer


def passing(service):
    def answer(handler):
        came = forwarded(service, handler)
        handler.server.statuses.append(came.status)
        say(came.status, came.read(), **{name.replace("-", "_"): value for name, value in
            came.getheaders() if name in ("Content-Type", "Idempotent-Replayed")})(handler)
    return answer


def forwarded(service, handler):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    headers = {name: value for name, value in handler.headers.items() if name != "Host"}
    connection.request(handler.command, handler.path, handler.body, headers)
    return connection.getresponse()


def test_what_the_service_did_is_not_done_again_when_its_answer_is_lost(start, script):
    service = start(certification__fee=7)
    channel = service.new_channel(credits=100)
    with constancia.Client(script.url, channel.live_key["key"], retry=QUICK) as client:
        script.answers += [losing(service), passing(service)] * 2
        event = client.register(fresh(), {"a": 1})
        asked = client.certify(seq_from=1, seq_to=1)
        assert script.statuses == [201, 200, 202, 202]
        assert event.replayed and asked.replayed
    with connect(service, channel.live_key["key"]) as client:
        assert [one.certification_id for one in client.certifications()] == [
            asked.certification_id]
        assert client.balance().balance == 100 - 1 - 7


def test_nothing_that_listens_is_a_failed_connection(script, naps):
    script.shutdown()
    script.server_close()
    with constancia.Client(script.url, "k", retry=QUICK) as client:
        with pytest.raises(constancia.ConnectionFailed) as failed:
            client.certify(seq_from=1, seq_to=1)
    assert not failed.value.sent and len(naps) == 3


def test_a_header_that_cannot_be_sent_is_the_callers_mistake():
    for bad in ({"user_agent": "x\ny"}, {"user_agent": "ñ€"}, {"language": "e\rn"},
                {"scenario": "a\0"}, {"scenario": "a", "header_prefix": "S V C"}):
        with pytest.raises(ValueError):
            constancia.Client("http://127.0.0.1:1", **bad)


def test_a_file_is_sent_again_from_where_it_began(script, scripted, naps):
    digest = hashlib.sha256(b"what follows").hexdigest()
    event = {"event_id": "e", "channel_id": "c", "client_ref": "r", "sequence": 1,
             "received_at": "2026-01-02T03:04:05.678901Z", "hash": digest,
             "modality": "content", "chain_hash": "0", "status": "test", "config_version": 1,
             "mode": "test"}
    script.answers += [hang_up, say(201, json.dumps(event).encode())]
    file = io.BytesIO(b"left out, what follows")  # words that the digits of a boundary never make
    file.seek(10)
    assert scripted.register_file("r", file, name="../n.txt").event_id == "e"
    assert script.seen[0].body == script.seen[1].body and b"what follows\r\n--" in script.seen[1].body
    assert b'filename="n.txt"' in script.seen[1].body and b"left out" not in script.seen[1].body
    script.answers += [say(201, json.dumps({**event, "hash": "0" * 64}).encode())]
    with pytest.raises(constancia.DigestMismatch):
        scripted.register_file("r", io.BytesIO(b"what follows"))


def test_a_download_goes_on_where_it_was_cut(script, scripted, tmp_path, naps):
    whole = os.urandom(300_000)
    digest = hashlib.sha256(whole).hexdigest()
    target = tmp_path / "evidence.zip"
    script.answers += [cut(whole[:100_000], len(whole)),
                       cut(whole[100_000:150_000], 200_000, 206,
                           Content_Range="bytes 100000-299999/300000"),
                       say(206, whole[150_000:], Content_Range="bytes 150000-299999/300000")]
    steps = []
    assert scripted.download(f"{script.url}/x?mac=1", target, sha256=digest,
                             progress=lambda *at: steps.append(at)) == digest
    assert [one.headers["Range"] for one in script.seen] == [
        None, "bytes=100000-", "bytes=150000-"]
    assert all("If-Range" not in one.headers for one in script.seen)
    assert "Authorization" not in script.seen[0].headers
    assert target.read_bytes() == whole and steps[-1] == (300_000, 300_000)
    assert list(tmp_path.iterdir()) == [target]


ENDLESS = chunked(b"x" * 65536, 1000)


def test_a_download_without_a_length_has_a_bound(script, tmp_path):
    whole = b"w" * 1000
    target = tmp_path / "file"
    script.answers += [chunked(whole), ENDLESS, chunked(whole + b"w"), say(200, whole + b"w")]
    with constancia.Client(script.url, "svc_test_key", retry=QUICK, download_max=1000) as small:
        small.download(f"{script.url}/x", target, sha256=hashlib.sha256(whole).hexdigest())
        assert target.read_bytes() == whole
        target.unlink()
        for _ in range(3):
            with pytest.raises(constancia.UnexpectedAnswer, match="1000 bytes"):
                small.download(f"{script.url}/x", target, sha256=hashlib.sha256(whole).hexdigest())
            assert not list(tmp_path.iterdir())


def completed(script, **changed):
    given = {"certification_id": "CERT-1", "channel_id": "chn_1", "status": "completed", "mode": "live",
             "requested_at": "2026-01-01T00:00:00.000000Z", "range": {"seq_from": 1, "seq_to": 1},
             "verification_code": "SVC-2026-AAAA-AAAA", "evidence_url": f"{script.url}/files/CERT-1.zip"}
    return models.decode(models.Certification, {**given, **changed})


def test_saving_takes_no_more_than_is_on_record(script, scripted, tmp_path):
    issued = say(200, json.dumps({
        "verification_code": "SVC-2026-AAAA-AAAA", "certification_id": "CERT-1", "mode": "live",
        "status": "completed", "documents": [{
            "name": "CERT-1.zip", "kind": "evidence", "language": None, "bytes": 7,
            "sha256": hashlib.sha256(b"content").hexdigest()}]}).encode())
    script.answers += [issued, chunked(b"content"), issued, ENDLESS]
    (saved,) = scripted.save(completed(script), tmp_path)
    saved.unlink()
    with pytest.raises(constancia.UnexpectedAnswer, match="7 bytes"):
        scripted.save(completed(script), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("member, changed", [
    ("evidence_url", {"evidence_url": None}), (r"reports\[0\].url", {"reports": [{"languages": [], "url": "", "sha256": "0"}]}),
    (r"content_parts\[0\].url", {"content_parts": [{"name": "p.zip", "url": "", "bytes": 1, "sha256": "0"}]})])
def test_saving_names_the_file_that_is_missing(script, scripted, tmp_path, member, changed):
    with pytest.raises(constancia.UnexpectedAnswer, match=f"CERT-1 is completed and has no {member}"):
        scripted.save(completed(script, **changed), tmp_path / "certification")
    assert not list(tmp_path.iterdir())


def test_what_changed_between_its_pieces_is_fetched_anew(script, scripted, tmp_path, naps):
    target = tmp_path / "evidence.zip"
    scripted._transport.retry = Retry(attempts=5)
    script.answers += [cut(b"old " * 10, 80, ETag='"1"'),
                       cut(b"new " * 5, 80, ETag='W/"2"'),
                       cut(b"new " * 10, 80, ETag='"2"'),
                       say(206, b"new " * 5, Content_Range="bytes 40-59/80", ETag='"2"'),
                       say(206, b"new " * 5, Content_Range="bytes 60-79/80", ETag='"2"')]
    scripted.download(f"{script.url}/x", target)
    assert [(one.headers["Range"], one.headers["If-Range"]) for one in script.seen] == [
        (None, None), ("bytes=40-", '"1"'), (None, None), ("bytes=40-", '"2"'),
        ("bytes=60-", '"2"')]
    assert target.read_bytes() == b"new " * 20 and not script.answers


def test_more_than_the_file_is_refused(script, tmp_path):
    script.answers = [cut(b"01234", 10, ETag='"1"'),
                      say(206, b"5" * 1000, Content_Range="bytes 5-9/10", ETag='"1"')]
    with constancia.Client(script.url, "k", retry=QUICK) as client, pytest.raises(constancia.UnexpectedAnswer):
        client.download(f"{script.url}/x", tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_rest_of_another_file_is_refused_where_no_digest_tells(script, scripted, tmp_path, naps):
    told = {"Content_Range": "bytes 40-79/80"}
    for tag, rest in (('"1"', {"ETag": '"2"', **told}), ('"1"', told), ("", told),
                      ('"1"', {"ETag": '"1"', "Content_Range": "bytes 40-79/*"})):
        script.answers += [cut(b"old " * 10, 80, ETag=tag), say(206, b"new " * 10, **rest)]
        with pytest.raises(constancia.UnexpectedAnswer):
            scripted.download(f"{script.url}/x", tmp_path / "file")
        assert not list(tmp_path.iterdir())


def test_two_downloads_of_one_file_have_a_part_each(script, scripted, tmp_path, naps):
    whole = os.urandom(200_000)
    digest = hashlib.sha256(whole).hexdigest()
    target = tmp_path / "file"
    started, second_asks = threading.Event(), threading.Event()
    first = threading.Thread(target=scripted.download, args=(f"{script.url}/x", target), kwargs={
        "sha256": digest, "progress": lambda *at: started.set()})

    def slowly(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(whole)))
        handler.end_headers()
        handler.wfile.write(whole[:100_000])
        second_asks.wait(60)
        handler.wfile.write(whole[100_000:])

    def after_it(handler):
        second_asks.set()
        first.join(60)
        say(200, b"other")(handler)
    script.answers += [slowly, after_it]
    first.start()
    assert started.wait(60)
    with pytest.raises(constancia.DigestMismatch):
        scripted.download(f"{script.url}/x", target, sha256=digest)
    assert target.read_bytes() == whole and list(tmp_path.iterdir()) == [target]
    assert [one.headers["Range"] for one in script.seen] == [None, None]


def test_a_part_that_was_finished_before_its_lock_came_is_let_be(script, scripted, tmp_path,
                                                                 monkeypatch):
    whole = b"w" * 1000
    digest = hashlib.sha256(whole).hexdigest()
    target, rest = tmp_path / "file", tmp_path / f".file.{digest[:32]}.part"
    rest.write_bytes(whole[:500])

    def late(part, how):
        rest.write_bytes(whole)
        rest.replace(target)
    monkeypatch.setattr("constancia._files.fcntl.flock", late)
    script.answers += [say(200, b"other")]
    with pytest.raises(constancia.DigestMismatch):
        scripted.download(f"{script.url}/x", target, sha256=digest)
    assert target.read_bytes() == whole and list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("plant", [
    lambda rest, victim: rest.symlink_to(victim), lambda rest, victim: os.link(victim, rest),
    lambda rest, victim: os.mkfifo(rest)])
def test_what_others_put_at_a_part_is_not_written_to(script, scripted, tmp_path, plant):
    whole = b"w" * 1000
    digest = hashlib.sha256(whole).hexdigest()
    target, rest = tmp_path / "file", tmp_path / f".file.{digest[:32]}.part"
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    plant(rest, victim)
    script.answers += [say(200, whole)]
    scripted.download(f"{script.url}/x", target, sha256=digest)
    assert target.read_bytes() == whole and victim.read_bytes() == b"precious"
    assert target.is_file() and not target.is_symlink()


def test_a_part_of_another_user_and_one_without_locks_is_not_gone_on_with(script, scripted,
                                                                         tmp_path, naps,
                                                                         monkeypatch):
    whole = b"w" * 1000
    digest = hashlib.sha256(whole).hexdigest()
    target, rest = tmp_path / "file", tmp_path / f".file.{digest[:32]}.part"
    rest.write_bytes(whole[:500])
    for name, value in (("os.geteuid", lambda: os.getuid() + 1), ("fcntl", None)):
        with monkeypatch.context() as without:
            without.setattr(f"constancia._files.{name}", value)
            script.answers += [cut(whole[:100], 1000), hang_up, hang_up, hang_up]
            with pytest.raises(constancia.ConnectionFailed):
                scripted.download(f"{script.url}/x", target, sha256=digest)
            assert list(tmp_path.iterdir()) == [rest] and rest.read_bytes() == whole[:500]
            script.answers += [say(200, whole)]
            scripted.download(f"{script.url}/x", target, sha256=digest)
            assert script.seen[-1].headers["Range"] is None and target.read_bytes() == whole
            target.unlink()


def test_a_download_that_failed_is_resumed_by_the_next_call(script, scripted, tmp_path, naps):
    whole = os.urandom(200_000)
    digest = hashlib.sha256(whole).hexdigest()
    target = tmp_path / "part.zip"
    target.write_bytes(b"what was there")
    script.answers += [cut(whole[:90_000], len(whole)), hang_up, hang_up, hang_up]
    with pytest.raises(constancia.ConnectionFailed):
        scripted.download(f"{script.url}/x", target, sha256=digest)
    assert target.read_bytes() == b"what was there"
    script.answers += [say(206, whole[90_000:], Content_Range="bytes 90000-199999/200000")]
    scripted.download(f"{script.url}/x", target, sha256=digest)
    assert target.read_bytes() == whole and list(tmp_path.iterdir()) == [target]


def test_a_spoilt_rest_is_fetched_anew_and_a_wrong_file_does_not_appear(script, scripted, tmp_path,
                                                                       naps):
    whole = b"w" * 1000
    digest = hashlib.sha256(whole).hexdigest()
    target = tmp_path / "file"
    rest = tmp_path / f".file.{digest[:32]}.part"
    for left, first in ((b"x" * 500, say(206, whole[500:], Content_Range="bytes 500-999/1000")),
                        (b"x" * 2000, say(416, Content_Range="bytes */1000"))):
        rest.write_bytes(left)
        script.answers += [first, say(200, whole)]
        scripted.download(f"{script.url}/x", target, sha256=digest)
        assert target.read_bytes() == whole
        target.unlink()
    rest.write_bytes(whole)
    scripted.download(f"{script.url}/x", target, sha256=digest.upper())
    assert target.read_bytes() == whole and script.answers == []
    target.unlink()
    script.answers += [say(200, b"other")]
    with pytest.raises(constancia.DigestMismatch):
        scripted.download(f"{script.url}/x", target, sha256=digest)
    assert list(tmp_path.iterdir()) == []
    script.answers += [cut(b"1234", 10)] * 4
    with pytest.raises(constancia.ConnectionFailed):
        scripted.download(f"{script.url}/x", target)
    assert list(tmp_path.iterdir()) == []


def test_a_connection_is_kept_and_one_that_ended_is_replaced(script, scripted, naps):
    script.answers += [say(200, BALANCE), last(200, BALANCE), say(200, BALANCE), say(404, b"{}")]
    scripted.balance()
    scripted.balance()
    assert script.seen[0].client_address == script.seen[1].client_address
    scripted.balance()
    assert len(naps) == 1 and script.seen[2].client_address != script.seen[1].client_address
    with pytest.raises(constancia.NotFound):
        scripted.balance()


# ---- the package ----

def test_the_walk_through_of_the_readme_works_when_pasted(service, tmp_path):
    text = (CLIENT / "README.md").read_text(encoding="utf-8")
    fences = "python|py" if has_batches() and finds_by_hash() else "python"
    pieces = re.findall(rf"```(?:{fences})\n(.*?)```", text, re.DOTALL)
    assert len(pieces) >= 4
    channel = service.new_channel()
    environment = {**os.environ, "CONSTANCIA_URL": f"{service.public_url}/v1",
                   "CONSTANCIA_KEY": channel.live_key["key"], "PYTHONPATH": str(CLIENT),
                   "PYTHONDONTWRITEBYTECODE": "1", "PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(pieces)], cwd=tmp_path,
                          env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "completed 1.0" in done.stdout and list(tmp_path.glob("**/*.pdf"))
    assert "origin_not_established []" in done.stdout
    receipts = (tmp_path / "receipts.ndjson").read_text().splitlines()
    assert len({json.loads(line)["event_id"] for line in receipts}) > 100  # of a batch, too


def test_the_package_says_what_it_needs():
    text = (CLIENT / "pyproject.toml").read_text(encoding="utf-8")
    assert "\ndependencies" not in text and 'name = "constancia"' in text
    assert (CLIENT / "constancia" / "py.typed").exists()
    packages = {str(one.parent.relative_to(CLIENT)).replace("/", ".") for one in CLIENT.rglob("constancia/**/__init__.py")}
    assert packages == set(re.search(r"packages = \[(.*)\]", text)[1].replace('"', "").split(", "))
    assert (CLIENT / "CHANGELOG.md").exists()
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert set(constancia.__all__) <= set(dir(constancia))
