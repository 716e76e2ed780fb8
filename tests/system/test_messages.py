"""What the response to a refused request says: what was received, what was expected, and what to do."""

import json

import pytest

from client import basic, form
from test_keys import checksum

LOOK = "/v1/account/balance"
HEADER = {"en": "Authorization: Bearer YOUR_KEY", "es": "Authorization: Bearer SU_CLAVE"}
DIGEST = {"hash": "0" * 64, "hash_alg": "sha-256"}


def told(answer, code="validation_error"):
    """The message; in all else the answer is as the interface has it."""
    assert answer.code == code, answer
    assert answer.headers["Content-Language"] in HEADER
    return answer.message


# ---- the key ----

def refused(client, language="en", headers=None, query=None):
    answer = client.get(LOOK, headers=headers, query=query, language=language).expect(401)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    return told(answer, "invalid_key")


def misplaced(key):
    """Where others look for a key: how it is sent, and what the message names."""
    return [({"headers": {name: key}}, name) for name in
            ("X-API-Key", "Api-Key", "x-api-key", "X-Auth-Token", "X-Of-Nobody")] + \
        [({"headers": {"Authorization": value}}, "Bearer") for value in
         (key, f"Token {key}", f"ApiKey {key}", "Digest username=x")] + \
        [({"headers": {"Authorization": value}}, "Basic") for value in
         ("Basic", f"Basic {key}", basic("somebody"), basic(f"somebody:{key}"))] + \
        [({"query": {name: key}}, "revo") for name in ("api_key", "access_token", "anything")]


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_missing_a_misplaced_and_an_unknown_key_are_told_apart(shared, anyone, language):
    missing = refused(anyone, language)
    assert HEADER[language] in missing
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer"}, {"X-SVC-Api-Key": ""}):
        assert refused(anyone, language, headers) == missing
    key = shared.live.key
    unknowns = {refused(anyone, language, {"Authorization": f"Bearer {text}"})
               for text in (key[:-1], key[:-1] + "!", "x", "x" * 4000, "YOUR_KEY")}
    unknowns |= {refused(anyone, language, {"X-SVC-Api-Key": "x"})}
    (unknown,) = unknowns
    assert HEADER[language] not in unknown and "svc_live_" in unknown
    for how, named in misplaced(key):
        message = refused(anyone, language, **how)
        assert message not in {missing, unknown}, how
        assert HEADER[language] in message, how
        assert named in message, message
        assert key not in message and key[9:] not in message, how


def test_a_well_formed_key_that_was_never_made_is_an_unknown_one_too(anyone):
    text = "svc_live_" + "0" * 30
    made_up = refused(anyone, "en", {"Authorization": f"Bearer {text}{checksum(text)}"})
    assert made_up == refused(anyone, "en", {"Authorization": "Bearer svc_live_0"})


def test_a_key_in_its_place_is_taken_whatever_else_is_sent(shared):
    for headers in ({"X-API-Key": "another"}, {"Api-Key": shared.test.key}):
        shared.live.get(LOOK, headers=headers).expect(200)


def test_a_header_that_no_one_has_heard_of_is_shown_cleaned(shared, anyone):
    name = "X-" + "a" * 3000
    message = refused(anyone, "en", {name: shared.live.key})
    assert len(message) < 400 and "X-aaa" in message and shared.live.key not in message


# ---- the body's type ----

@pytest.mark.parametrize("target,wanted", [
    ("/v1/events", "application/json, multipart/form-data"),
    ("/v1/certifications", "application/json")])
@pytest.mark.parametrize("language", ["en", "es"])
def test_a_wrong_content_type_is_shown_and_a_missing_one_is_told_as_missing(shared, target, wanted,
                                                                           language):
    missing = {told(shared.test.post(target, b"{}", headers=headers, language=language).expect(400))
               for headers in ({}, {"Content-Type": ""}, {"Content-Type": " "})}
    (message,) = missing
    assert wanted in message
    for came in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp; a=b"):
        headers = {"Content-Type": came}
        message = told(shared.test.post(target, b"{}", headers=headers, language=language)
                       .expect(400))
        assert f"'{came}'" in message and wanted in message


def test_a_file_for_verification_without_a_content_type_is_told_as_that(anyone):
    json_wanted = {"Accept": "application/json"}
    sent = told(anyone.post("/verify", b"x", headers=json_wanted))
    assert sent == "The request has no Content-Type. Send one: multipart/form-data."
    sent = told(anyone.post("/verify", b"x", headers={"Content-Type": "text/plain", **json_wanted}))
    assert sent == "Content-Type must be multipart/form-data, got 'text/plain'."


def test_what_came_for_a_content_type_is_cleaned_and_bounded(shared):
    for came, shown in ((b"text/\xff\xfe\x80x", "'text/???x'"), ("text/é".encode(), "'text/é'"),
                        (b"text/\t[31mred", "'text/?[31mred'"),
                        ("text/\u0085x".encode(), "'text/?x'"),
                        (b"<script>alert(1)</script>", "'<script>alert(1)</script>'"),
                        (b"text/" + b"x" * 8000, "x...'")):
        answer = shared.test.post("/v1/events", b"{}", headers={"Content-Type": came}).expect(400)
        assert shown in told(answer), answer
        assert len(answer.body) < 1000 and answer.headers.get_content_type() == "application/json"


def test_a_type_for_what_the_channel_does_not_take_is_not_offered(shared_hash):
    answer = shared_hash.test.post("/v1/events", b"{}", headers={"Content-Type": "text/plain"})
    assert "multipart" not in told(answer.expect(400))


def test_an_encoding_of_the_body_is_shown(shared):
    for target in ("/v1/events", "/v1/certifications"):
        answer = shared.test.post(target, {}, headers={"Content-Encoding": "br"}).expect(400)
        assert "'br'" in told(answer)


# ---- the modality ----

@pytest.mark.parametrize("language,digest,content,file", [
    ("en", "a digest", "content ('payload')", "a file"),
    ("es", "un resumen", "contenido ('payload')", "un fichero")])
def test_what_the_channel_takes_and_what_came_are_told(shared, shared_hash, language, digest,
                                                       content, file):
    for extra in ({}, {"hash": "zz"}, {"hash_alg": "md5"}):
        body = {"client_ref": "a", **DIGEST, **extra}
        message = told(shared.test.post("/v1/events", body, language=language).expect(400))
        assert "modali" in message and "'payload'" in message and digest in message
    # What is wrong with it besides is of no use to who sends it to the wrong channel.
    for payload in ({"a": 1}, "text", [1], None):
        body = {"client_ref": "a", "payload": payload}
        message = told(shared_hash.test.post("/v1/events", body, language=language).expect(400))
        assert "hash_only" in message and "'hash'" in message and content in message
    answer = shared_hash.test.register_file(b"bytes", language=language).expect(400)
    assert "hash_only" in told(answer) and "'hash'" in answer.message and file in answer.message
    answer = shared_hash.test.register_file(b"x" * 50000, language=language).expect(413)
    assert "hash_only" in told(answer, "payload_too_large") and file in answer.message


# ---- sizes ----

@pytest.mark.parametrize("language", ["en", "es"])
def test_what_is_too_large_is_told_with_the_bound(shared, shared_hash, language):
    for answer, bound in (
            (shared.test.register({"a": "x" * 262140}, language=language), "262144"),
            (shared.test.register({"a": "x" * 400000}, language=language), "400008"),
            (shared.test.register({"a": "x" * 1600000}, language=language), "1589248"),
            (shared.test.register_file(b"x" * 10485761, language=language), "10485760"),
            (shared_hash.test.register_hash("0" * 20000, language=language), "16384"),
            (shared.test.post("/v1/certifications", {"a": "x" * 20000}, language=language),
             "16384")):
        assert bound in told(answer.expect(413), "payload_too_large"), answer


# ---- forms ----

@pytest.mark.parametrize("body,named", [
    (b"--other\r\n", "boundary"),
    (b'--B\r\nContent-Disposition form-data; name="file"\r\n\r\nx\r\n--B--\r\n', "CR LF"),
    (b'--B\nContent-Disposition: form-data; name="file"\n\nx\n--B--\n', "CR LF"),
    (b"--B\r\nX: " + b"y" * 3000 + b"\r\n\r\nx\r\n--B--\r\n", "2048"),
    (b"--B\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--\r\n", "Content-Disposition: form-data"),
    (b'--B\r\nContent-Disposition: inline; name="file"\r\n\r\nx\r\n--B--\r\n', "form-data"),
    (b"--B\r\n" + b"X: y\r\n" * 17 + b"\r\nx\r\n--B--\r\n", "16"),
    (b'--B\r\nContent-Disposition: form-data; name="client_ref"\r\n\r\nx\r\n', "two pairs"),
    (b'--B\r\nContent-Disposition: form-data; name="client_ref"\r\n\r\nx\r\n--B--\r\nmore',
     "two pairs"),
], ids=["delimiter", "colon", "line end", "line", "no name", "inline", "lines", "end", "more"])
def test_a_broken_form_is_told_what_is_broken(shared, body, named):
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    answer = shared.test.call("POST", "/v1/events", body, headers).expect(400)
    assert named in told(answer), answer
    spanish = shared.test.call("POST", "/v1/events", body, headers, language="es").expect(400)
    assert spanish.message != answer.message


def test_a_field_that_is_too_long_repeated_or_unknown_is_told_by_name(shared):
    for fields, named in (
            ([("client_ref", "x" * 256)], ("'client_ref'", "255")),
            ([("client_ref", "a"), ("client_ref", "b")], ("'client_ref'", "once")),
            ([("colour\x1b", "red")], ("'colour?'", "Remove")),
            ([("x" * 500, "red")], ("xxx...'", "Remove"))):
        content_type, body = form(*fields)
        answer = shared.test.call("POST", "/v1/events", body, {"Content-Type": content_type})
        assert all(part in told(answer.expect(400)) for part in named), answer
    for target in ("/v1/events", "/v1/certifications"):
        body = json.dumps({"client_ref": "a", "payload": {}} if "events" in target else {})
        body = body[:-1] + (", " if "events" in target else "") + '"x\\u001b\\u0085": 1}'
        answer = shared.test.post(target, body.encode(),
                                  headers={"Content-Type": "application/json"}).expect(400)
        assert "'x??'" in told(answer), answer
