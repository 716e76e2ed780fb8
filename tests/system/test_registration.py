"""POST /v1/events: what is accepted, what it answers, and what is refused."""

import hashlib
import unicodedata

import pytest

from client import EVENT, HASH, TIME, TIMESTAMP, form, fresh

pytestmark = pytest.mark.both_stores

SHA256 = hashlib.sha256(b"held by the client").hexdigest()
SHA512 = hashlib.sha512(b"held by the client").hexdigest()


def check_event(event, mode, modality):
    """Every member of the record, with its type and what is always true of it."""
    assert set(event) - {"receipt"} == EVENT  # a registration has it, and a lookup has not
    assert event["event_id"].startswith("evt_") and len(event["event_id"]) <= 64
    assert event["channel_id"].startswith("chn_") and len(event["channel_id"]) <= 64
    assert isinstance(event["client_ref"], str)
    assert type(event["sequence"]) is int and event["sequence"] >= 1
    assert TIME.fullmatch(event["received_at"])
    assert event["occurred_at"] is None or TIME.fullmatch(event["occurred_at"])
    assert event["hash_alg"] in ("sha-256", "sha-512")
    assert len(event["hash"]) == {"sha-256": 64, "sha-512": 128}[event["hash_alg"]]
    assert event["hash"] == event["hash"].lower() and int(event["hash"], 16) >= 0
    assert event["modality"] == modality
    assert HASH.fullmatch(event["chain_hash"])
    assert event["status"] in (("test",) if mode == "test" else ("registered", "unpaid"))
    assert type(event["config_version"]) is int and event["config_version"] >= 1
    assert event["mode"] == mode
    timestamp = event["timestamp"]
    assert set(timestamp) == TIMESTAMP
    if mode == "test":
        assert timestamp == {"type": "simulated", "reference": None, "sealed_at": None}
    elif timestamp["type"] == "pending":
        assert timestamp["reference"] is None and timestamp["sealed_at"] is None
    else:
        assert timestamp["type"] == "batch"
        assert timestamp["reference"].startswith("seg_")
        assert TIME.fullmatch(timestamp["sealed_at"])


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_json_event_is_registered_with_every_member_of_the_record(shared, mode):
    event = shared.client(mode).register({"a": 1}, occurred_at="2026-01-31T09:30:00Z")
    event.expect(201)
    check_event(event.json, mode, "content")
    assert event.json["hash"] == hashlib.sha256(b'{"a":1}').hexdigest()
    assert event.json["hash_alg"] == "sha-256"
    assert event.json["occurred_at"] == "2026-01-31T09:30:00.000000Z"
    assert event.json["channel_id"] == shared.id
    assert "Idempotent-Replayed" not in event.headers


@pytest.mark.parametrize("mode", ["live", "test"])
@pytest.mark.parametrize("hash_alg,digest", [("sha-256", SHA256), ("sha-512", SHA512)])
def test_a_digest_is_registered_with_either_algorithm(shared_hash, mode, hash_alg, digest):
    event = shared_hash.client(mode).register_hash(digest, hash_alg=hash_alg).expect(201).json
    check_event(event, mode, "hash_only")
    assert (event["hash"], event["hash_alg"]) == (digest, hash_alg)
    assert event["occurred_at"] is None


def test_a_digest_is_taken_in_either_case_and_returned_in_lower_case(shared_hash):
    ref = fresh()
    event = shared_hash.live.register_hash(SHA256.upper(), ref).expect(201).json
    assert event["hash"] == SHA256
    shared_hash.live.register_hash(SHA256, ref).expect(200)


@pytest.mark.parametrize("digest,hash_alg", [
    (SHA256, "sha-512"), (SHA512, "sha-256"), (SHA256[:-1], "sha-256"), (SHA256 + "0", "sha-256"),
    (SHA256[:-1] + "g", "sha-256"), ("", "sha-256"), (SHA256, "SHA-256"), (SHA256, "sha-1"),
    (SHA256, "md5"), (SHA256, ""), (int(SHA256[:8], 16), "sha-256"), (None, "sha-256"),
    (SHA256, None), (" " + SHA256[1:], "sha-256"), ("0x" + SHA256[2:], "sha-256"),
])
def test_a_digest_that_does_not_fit_its_algorithm_is_refused(shared_hash, digest, hash_alg):
    body = {"client_ref": fresh(), "hash": digest, "hash_alg": hash_alg}
    shared_hash.live.post("/v1/events", body).expect(400, "validation_error")


@pytest.mark.parametrize("missing", ["client_ref", "hash", "hash_alg"])
def test_every_required_field_of_a_digest_is_required(shared_hash, missing):
    body = {"client_ref": fresh(), "hash": SHA256, "hash_alg": "sha-256"}
    del body[missing]
    answer = shared_hash.live.post("/v1/events", body).expect(400, "validation_error")
    assert missing in answer.message


@pytest.mark.parametrize("missing", ["client_ref", "payload"])
def test_every_required_field_of_a_json_event_is_required(shared, missing):
    body = {"client_ref": fresh(), "payload": {}}
    del body[missing]
    answer = shared.live.post("/v1/events", body).expect(400, "validation_error")
    assert missing in answer.message


@pytest.mark.parametrize("payload", [None, [], [{}], "text", 1, True])
def test_a_payload_is_an_object(shared, payload):
    body = {"client_ref": fresh(), "payload": payload}
    answer = shared.live.post("/v1/events", body).expect(400, "validation_error")
    assert "payload" in answer.message


@pytest.mark.parametrize("extra", ["Payload", "occured_at", "metadata", "", "hash\u00e9"])
def test_unknown_members_of_the_body_are_refused_and_named(shared, extra):
    body = {"client_ref": fresh(), "payload": {}, extra: 1}
    answer = shared.live.post("/v1/events", body).expect(400, "validation_error")
    assert extra in answer.message


def test_repeated_members_of_the_body_are_refused(shared):
    body = b'{"client_ref":"a","payload":{},"client_ref":"a"}'
    answer = shared.live.post("/v1/events", body, headers={"Content-Type": "application/json"})
    answer.expect(400, "validation_error")


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_modality_that_is_not_the_channels_is_refused(shared, shared_hash, mode):
    shared.client(mode).register_hash(SHA256).expect(400, "validation_error")
    shared_hash.client(mode).register({"a": 1}).expect(400, "validation_error")
    shared_hash.client(mode).register_file(b"bytes").expect(400, "validation_error")
    both = {"client_ref": fresh(), "payload": {}, "hash": SHA256, "hash_alg": "sha-256"}
    shared.client(mode).post("/v1/events", both).expect(400, "validation_error")
    shared_hash.client(mode).post("/v1/events", both).expect(400, "validation_error")


@pytest.mark.parametrize("content_type", [
    None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp",
    "text/json", "multipart/mixed; boundary=x", "application/octet-stream", "",
])
def test_a_wrong_or_missing_content_type_is_refused(shared, content_type):
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = shared.live.post("/v1/events", b'{"client_ref":"a","payload":{}}', headers=headers)
    answer.expect(400, "validation_error")
    assert "Content-Type" in answer.message


@pytest.mark.parametrize("content_type", [
    "application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8",
])
def test_the_content_type_of_json_may_have_parameters_and_any_case(shared, content_type):
    body = b'{"client_ref":"%s","payload":{}}' % fresh().encode()
    shared.live.post("/v1/events", body, headers={"Content-Type": content_type}).expect(201)


@pytest.mark.parametrize("body", [
    b"", b"{", b"null", b"[]", b'"text"', b"{}x", b"{'client_ref':'a'}", b'{"client_ref":"a",}',
    b'{"client_ref":"a" "payload":{}}', b"\x00", b'{"client_ref":"a","payload":{}}{}',
    b'{"client_ref":"a","payload":{"x":01}}', b'{"client_ref":"a","payload":{"x":NaN}}',
    b'{"client_ref":"a","payload":{"x":"\x01"}}', b'{"client_ref":"a","payload":{/**/}}',
])
def test_malformed_json_is_refused(shared, body):
    answer = shared.live.post("/v1/events", body, headers={"Content-Type": "application/json"})
    answer.expect(400, "validation_error")


# ---- client_ref ----

@pytest.mark.parametrize("ref", [
    "a", " ", "a" * 255, "\u00e9" * 127, "\U0001f512" * 63, "/?#%&=", "\"\\'", "\u202e", "null",
])
def test_a_client_ref_has_1_to_255_bytes_of_utf8(service, ref):
    channel = service.new_channel()
    assert channel.live.register(client_ref=ref).expect(201).json["client_ref"] == ref
    assert channel.live.register(client_ref=ref).expect(200).json["client_ref"] == ref


@pytest.mark.parametrize("ref", [
    "", "a" * 256, "\u00e9" * 128, "\U0001f512" * 64, "\u0000", "a\nb", "\t", "\u001f", "\u007f",
    "\u0085", 1, None, True, ["a"], {"a": 1},
])
def test_any_other_client_ref_is_refused(shared, ref):
    body = {"client_ref": ref, "payload": {}}
    answer = shared.live.post("/v1/events", body).expect(400, "validation_error")
    assert "client_ref" in answer.message


def test_client_refs_are_compared_byte_by_byte(channel):
    composed = unicodedata.normalize("NFC", "caf\u00e9")
    decomposed = unicodedata.normalize("NFD", composed)
    refs = [composed, decomposed, "Caf\u00e9", "caf\u00e9 ", " caf\u00e9"]
    events = [channel.live.register(client_ref=ref).expect(201).json for ref in refs]
    assert [event["sequence"] for event in events] == [1, 2, 3, 4, 5]


def test_each_chain_has_client_refs_and_a_sequence_of_its_own(channel):
    ref = fresh()
    live = channel.live.register({"a": 1}, ref).expect(201).json
    test = channel.test.register({"b": 2}, ref).expect(201).json
    assert live["sequence"] == test["sequence"] == 1
    assert live["chain_hash"] != test["chain_hash"]
    assert live["event_id"] != test["event_id"]
    other = channel.service.new_channel(account_id=channel.account_id)
    assert other.live.register({"c": 3}, ref).expect(201).json["sequence"] == 1


# ---- the chain ----

@pytest.mark.parametrize("mode", ["live", "test"])
def test_sequences_are_gapless_and_reception_times_never_decrease(channel, mode):
    client = channel.client(mode)
    events = [client.register({"n": n}).expect(201).json for n in range(20)]
    assert [event["sequence"] for event in events] == list(range(1, 21))
    times = [event["received_at"] for event in events]
    assert times == sorted(times)
    assert len({event["chain_hash"] for event in events}) == 20
    client.register({}, client_ref="").expect(400)
    client.register({"other": 1}, events[0]["client_ref"]).expect(409)
    client.register({"n": 0}, events[0]["client_ref"]).expect(200)
    assert client.register().expect(201).json["sequence"] == 21


def test_the_event_read_later_is_the_one_acknowledged(channel):
    acknowledged = channel.live.register({"a": 1}, occurred_at="2026-02-03T04:05:06.7Z").json
    read = channel.live.event(acknowledged["event_id"])
    assert set(read) == EVENT | {"proof"}
    for name in EVENT - {"timestamp"}:
        assert read[name] == acknowledged[name], name
    assert acknowledged["timestamp"]["type"] == "pending"


# ---- times ----

ACCEPTED_TIMES = [
    ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000000Z"),
    ("2026-01-31t09:30:00z", "2026-01-31T09:30:00.000000Z"),
    ("2026-01-31T09:30:00.5Z", "2026-01-31T09:30:00.500000Z"),
    ("2026-01-31T09:30:00.123456Z", "2026-01-31T09:30:00.123456Z"),
    ("2026-01-31T09:30:00.123456999Z", "2026-01-31T09:30:00.123456Z"),
    ("2026-01-31T09:30:00.999999999Z", "2026-01-31T09:30:00.999999Z"),
    ("2026-01-31T23:59:59+00:00", "2026-01-31T23:59:59.000000Z"),
    ("2026-01-31T23:59:59-00:00", "2026-01-31T23:59:59.000000Z"),
    ("2026-01-31T23:30:00-01:00", "2026-02-01T00:30:00.000000Z"),
    ("2026-03-01T00:30:00+05:45", "2026-02-28T18:45:00.000000Z"),
    ("2024-02-29T12:00:00+14:00", "2024-02-28T22:00:00.000000Z"),
    ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"),
    ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
    ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
    ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ("2026-01-31T09:30:00+23:59", "2026-01-30T09:31:00.000000Z"),
]
REFUSED_TIMES = [
    "", "2026-01-31", "2026-01-31T09:30:00", "2026-01-31 09:30:00Z", "2026-01-31T09:30Z",
    "2026-01-31T09:30:60Z", "2016-12-31T23:59:60Z", "0000-12-31T00:00:00Z", "2026-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
    "2026-04-31T00:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T09:60:00Z",
    "2026-01-31T09:30:00.Z", "2026-01-31T09:30:00.1234567890Z", "2026-01-31T09:30:00,5Z",
    "2026-01-31T09:30:00+0200", "2026-01-31T09:30:00+02", "2026-01-31T09:30:00+24:00",
    "2026-01-31T09:30:00+02:60", "2026-01-31T09:30:00Z ", " 2026-01-31T09:30:00Z",
    "2026-01-31T09:30:00UTC", "20260131T093000Z", "+2026-01-31T09:30:00Z", "26-01-31T09:30:00Z",
    "2026-1-31T09:30:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
    "1769851800", "2026-01-31T09:30:00\u22121:00", "2026-W05-6T09:30:00Z",
]


@pytest.mark.parametrize("sent,answered", ACCEPTED_TIMES)
def test_times_are_normalized_to_utc_and_cut_to_microseconds(shared, sent, answered):
    event = shared.live.register(occurred_at=sent).expect(201).json
    assert event["occurred_at"] == answered
    assert shared.live.event(event["event_id"])["occurred_at"] == answered


@pytest.mark.parametrize("sent", REFUSED_TIMES)
def test_other_times_are_refused(shared, sent):
    answer = shared.live.register(occurred_at=sent).expect(400, "validation_error")
    assert "occurred_at" in answer.message
    form_answer = shared.live.register_file(b"x", occurred_at=sent)
    form_answer.expect(400, "validation_error")


@pytest.mark.parametrize("sent", [1769851800, 1.5, True, {}, []])
def test_a_time_is_a_string(shared, sent):
    body = {"client_ref": fresh(), "payload": {}, "occurred_at": sent}
    shared.live.post("/v1/events", body).expect(400, "validation_error")


def test_an_event_may_occur_at_any_time_or_at_none_that_is_said(shared):
    assert shared.live.register().expect(201).json["occurred_at"] is None
    shared.live.register(occurred_at="2999-01-01T00:00:00Z").expect(201)


# ---- the query and the way in ----

def test_a_query_parameter_is_not_known_here(shared):
    body = {"client_ref": fresh(), "payload": {}}
    shared.live.post("/v1/events?dry_run=1", body).expect(400, "validation_error")


def test_a_body_with_a_content_encoding_is_not_taken_for_something_else(shared):
    body = b'{"client_ref":"a","payload":{}}'
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    shared.live.post("/v1/events", body, headers=headers).expect(400, "validation_error")


def test_the_form_and_the_json_of_one_content_are_the_same_declaration(shared):
    ref = fresh()
    first = shared.live.register({"b": 1, "a": [True]}, ref).expect(201).json
    content_type, body = form(("client_ref", ref), ("file", b'{"a":[true],"b":1}', "a.json"))
    again = shared.live.post("/v1/events", body, headers={"Content-Type": content_type})
    assert again.expect(200).json["event_id"] == first["event_id"]
