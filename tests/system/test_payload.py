"""Declared JSON: its canonical form (RFC 8785), values without one, and its size."""

import hashlib
import json

import pytest

from client import fresh

LIMIT = 262144
SLACK = 16384
JSON = {"Content-Type": "application/json"}


def send(client, payload, ref=None):
    """The payload's bytes, unchanged."""
    body = b'{"client_ref":"%s","payload":%s}' % ((ref or fresh()).encode(), payload)
    return client.post("/v1/events", body, headers=JSON)


CANONICAL = [
    (b'{}', b'{}'),
    (b' { "b" : 1 , "a" : [ ] } ', b'{"a":[],"b":1}'),
    (b'{"\xe2\x82\xac":1,"\\r":2,"\xef\xac\xb3":3,"1":4,"\xf0\x9f\x98\x82":5,"\xc2\x80":6,'
     b'"\xc3\xb6":7}',
     b'{"\\r":2,"1":4,"\xc2\x80":6,"\xc3\xb6":7,"\xe2\x82\xac":1,"\xf0\x9f\x98\x82":5,'
     b'"\xef\xac\xb3":3}'),
    (b'{"n":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]}',
     b'{"n":[333333333.3333333,1e+30,4.5,0.002,1e-27]}'),
    (b'{"n":[-0,-0.0,0.0,1.0,100,1e21,1e20,-1E-7,9007199254740993.0,5e-324]}',
     b'{"n":[0,0,0,1,100,1e+21,100000000000000000000,-1e-7,9007199254740992,5e-324]}'),
    (b'{"n":[9007199254740991,-9007199254740991]}', b'{"n":[9007199254740991,-9007199254740991]}'),
    (b'{"s":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/"}',
     b'{"s":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'),
    (b'{"s":"\\ud83d\\ude02\\u007f\\u2028"}', b'{"s":"\xf0\x9f\x98\x82\x7f\xe2\x80\xa8"}'),
    (b'{"l":[null,true,false]}', b'{"l":[null,true,false]}'),
    (b'{"a":{"c":{"z":1,"y":2},"b":0},"A":"\\b\\t\\n\\f\\r"}',
     b'{"A":"\\b\\t\\n\\f\\r","a":{"b":0,"c":{"y":2,"z":1}}}'),
    (b'{"\\u0061":1,"":2}', b'{"":2,"a":1}'),
]


@pytest.mark.parametrize("sent,canonical", CANONICAL)
def test_the_canonical_form_is_what_is_hashed_held_and_given_back(shared, sent, canonical):
    event = send(shared.live, sent).expect(201).json
    assert event["hash"] == hashlib.sha256(canonical).hexdigest()
    content = shared.live.content(event["event_id"]).expect(200)
    assert content.body == canonical
    assert content.headers["Content-Type"] == "application/json"


def test_two_spellings_of_one_canonical_form_are_one_declaration(shared):
    ref = fresh()
    first = send(shared.live, b'{"a":1.0,"b":"\\u0041"}', ref).expect(201).json
    again = send(shared.live, b'{ "b":"A", "a":1e0 }', ref).expect(200).json
    assert again["event_id"] == first["event_id"]
    send(shared.live, b'{"b":"A","a":1.5}', ref).expect(409)


NONE = {
    "a member name is repeated": b'{"a":1,"a":1}',
    "a member name is repeated in another spelling": b'{"a":1,"\\u0061":2}',
    "a member name is repeated deep inside": b'{"x":[{"y":{"a":1,"b":2,"a":3}}]}',
    "a byte is not UTF-8": b'{"a":"\xff"}',
    "UTF-8 is cut": b'{"a":"\xe2\x82"}',
    "UTF-8 is overlong": b'{"a":"\xc0\xaf"}',
    "UTF-8 holds a surrogate": b'{"a":"\xed\xa0\x80"}',
    "a name is not UTF-8": b'{"\xff":1}',
    "a high surrogate is alone": b'{"a":"\\ud800"}',
    "a low surrogate is alone": b'{"a":"\\udc00"}',
    "a high surrogate is followed by a letter": b'{"a":"\\ud800A"}',
    "a surrogate in a name is alone": b'{"\\udfff":1}',
    "a number overflows": b'{"a":1e309}',
    "a negative number overflows": b'{"a":-1e400}',
    "an integer is beyond 2^53-1": b'{"a":9007199254740992}',
    "an integer is below -(2^53-1)": b'{"a":-9007199254740992}',
    "an integer is beyond 2^53": b'{"a":9007199254740993}',
    "an integer has 400 digits": b'{"a":1%s}' % (b"0" * 400),
}


@pytest.mark.parametrize("payload", NONE.values(), ids=NONE.keys())
def test_what_would_not_be_what_was_declared_is_refused_where(shared, payload):
    send(shared.live, payload).expect(400, "validation_error")


def test_a_refused_integer_is_told_to_be_sent_as_a_string(shared):
    assert "string" in send(shared.live, b'{"a":9007199254740993}').expect(400).message
    send(shared.live, b'{"a":"9007199254740993"}').expect(201)


def test_a_byte_order_mark_is_refused(shared):
    body = b'\xef\xbb\xbf{"client_ref":"bom","payload":{}}'
    shared.live.post("/v1/events", body, headers=JSON).expect(400, "validation_error")


def nested(levels, kind, inside):
    """A payload with that many levels, itself the first; `inside` is the content of the last."""
    if kind == "objects":
        member = b'"a":' + inside if inside else b""
        return b'{"a":' * (levels - 1) + b"{" + member + b"}" * levels
    return b'{"a":' + b"[" * (levels - 1) + inside + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize("inside", [b"", b"1", b'"x"', b"null"])
@pytest.mark.parametrize("kind", ["objects", "arrays"])
def test_a_payload_may_nest_64_levels_and_not_65(shared, kind, inside):
    send(shared.live, nested(64, kind, inside)).expect(201)
    send(shared.live, nested(65, kind, inside)).expect(400, "validation_error")


def padded(size):
    """Canonical JSON of exactly that many bytes."""
    return b'{"a":"%s"}' % (b"x" * (size - len(b'{"a":""}')))


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_payload_of_262144_canonical_bytes_is_taken_and_one_byte_more_is_not(shared, mode):
    client = shared.client(mode)
    event = send(client, padded(LIMIT)).expect(201).json
    content = client.content(event["event_id"]).expect(200)
    assert len(content.body) == LIMIT
    assert hashlib.sha256(content.body).hexdigest() == event["hash"]
    send(client, padded(LIMIT + 1)).expect(413, "payload_too_large")


def test_the_canonical_form_counts_and_not_the_spelling(shared):
    # Escapes make the text shorter once canonical, spaces vanish.
    text = b'{"a":"%s"}' % (b"x" * (LIMIT - 200) + b"\\u0041" * 192)
    assert len(text) > LIMIT
    event = send(shared.live, text).expect(201).json
    assert len(shared.live.content(event["event_id"]).body) == LIMIT
    # And longer: 1e20 is 21 digits.
    grown = b'{"a":[%s]}' % b",".join([b"1e20"] * 20000)
    assert len(grown) < LIMIT
    send(shared.live, grown).expect(413, "payload_too_large")


@pytest.mark.parametrize("escape,size", [
    (b"\\u0061", 1), (b"\\u003c", 1), (b"\\/", 1), (b"\\u00f1", 2), (b"\\u20ac", 3), (b"\\ud83d\\ude00", 4)])
def test_escapes_do_not_count(shared, escape, size):
    """Many libraries escape what is not ASCII, or what has a meaning in HTML."""
    character = json.loads(b'"%s"' % escape).encode()
    count, rest = divmod(LIMIT - len(b'{"a":""}'), size)
    text = b'{"a":"%s"}' % (escape * count + b"x" * rest)
    event = send(shared.live, text).expect(201).json
    content = shared.live.content(event["event_id"]).expect(200).body
    assert content == b'{"a":"%s"}' % (character * count + b"x" * rest) and len(content) == LIMIT
    answer = send(shared.live, text.replace(escape, b"x" * size + escape, 1))
    assert str(LIMIT + size) in answer.expect(413, "payload_too_large").message


@pytest.mark.parametrize("unit", [b"0", b"1e20", b"[]"])
def test_values_beyond_the_limit_are_refused_whatever_their_number(shared, unit):
    text = b'{"a":[%s]}' % b",".join([unit] * (1_500_000 // (len(unit) + 1)))
    answer = send(shared.live, text).expect(413, "payload_too_large")
    assert "'payload' has more than " in answer.message and str(LIMIT) in answer.message


def test_the_body_may_have_six_times_the_payload_and_16_kib(shared):
    start = b'{"client_ref":"%s","payload":%s' % (fresh().encode(), padded(LIMIT))
    body = start + b" " * (6 * LIMIT + SLACK - len(start) - 1) + b"}"
    assert len(body) == 6 * LIMIT + SLACK
    shared.live.post("/v1/events", body, headers=JSON).expect(201)
    body = body[:-1] + b" }"
    shared.live.post("/v1/events", body, headers=JSON).expect(413, "payload_too_large")


def test_a_hash_only_body_may_have_16_kib(shared_hash):
    body = json.dumps({"client_ref": fresh(), "hash": "0" * 64, "hash_alg": "sha-256"}).encode()
    whole = body[:-1] + b" " * (SLACK - len(body)) + b"}"
    assert len(whole) == SLACK
    shared_hash.live.post("/v1/events", whole, headers=JSON).expect(201)
    whole = whole[:-1] + b" }"
    shared_hash.live.post("/v1/events", whole, headers=JSON).expect(413, "payload_too_large")


@pytest.mark.parametrize("size", [16383, 16384, 16385, 100000])
def test_content_of_any_size_comes_back_as_it_was_hashed(shared, size):
    event = send(shared.live, padded(size)).expect(201).json
    assert shared.live.content(event["event_id"]).body == padded(size)
    assert event["hash"] == hashlib.sha256(padded(size)).hexdigest()
