"""HTTP itself: routes, methods, languages, headers, sizes, broken requests, order of the checks."""

import html
import http.client
import io
import json
import os
import pathlib
import re
import socket
import subprocess

import pytest
import yaml

from client import ERROR, PATIENCE, Answer, Client, check_promises, fresh

PATHS = {
    "/v1/events": "GET, HEAD, POST", "/v1/events/evt_x": "GET, HEAD",
    "/v1/events/evt_x/content": "GET, HEAD", "/v1/channel": "GET, HEAD",
    "/v1/channel/seals": "GET, HEAD",
    "/v1/account/balance": "GET, HEAD", "/v1/certifications": "GET, HEAD, POST",
    "/v1/certifications/CERT-2026-0000001": "GET, HEAD",
    "/v1/events/evt_x/evidence-record": "GET, HEAD",
    "/v1/certifications/CERT-2026-0000001/evidence-record": "GET, HEAD",
}
PUBLIC_PATHS = {
    **dict.fromkeys(["/v1/downloads/CERT-2026-0000001/a.pdf", "/v1/signers", "/v1/openapi.yaml",
                     "/v1/webhooks.yaml", "/verify/SVC-2026-AAAA-AAAA", "/assets/verify.css",
                     "/docs/errors"], "GET, HEAD"),
    "/verify": "GET, HEAD, POST", "/payments/stripe/notices": "POST",
}
WRONG_METHODS = ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"]
METHODS = ["GET", "HEAD", "POST", *WRONG_METHODS]


def allowed(answer):
    return {method.strip() for method in answer.headers["Allow"].split(",")}


# ---- routes ----

@pytest.mark.parametrize("path", [
    "/v2", "/v1//", "/v2/events", "/events", "/v1/events/", "/v1/Events", "/v1/events/a/b",
    "/v1/events//content", "/v1//events", "/v1/channel/", "/v1/account", "/v1/events/../channel",
    "/v1/certifications/", "/docs/", "/v1/events%2f", "/v1/events/%zz", "/metrics", "/readyz",
    "/livez",
])
def test_an_unknown_path_is_not_found_whatever_the_key(anyone, shared, path):
    for client in (anyone, shared.live):
        client.get(path).expect(404, "not_found")
    anyone.call("DELETE", path).expect(404, "not_found")


@pytest.mark.parametrize("path,allow", PATHS.items())
def test_a_wrong_method_is_told_which_are_right_before_the_key_is_looked_at(anyone, path, allow):
    allow = set(allow.split(", "))
    for method in METHODS:
        answer = anyone.call(method, path, b"{}" if method in ("PUT", "PATCH") else None)
        if method in allow:
            assert answer.status == 401, answer
        else:
            assert answer.status == 405, answer
            assert allowed(answer) == allow
            if method != "HEAD":
                assert answer.code == "validation_error"


@pytest.mark.parametrize("path,allow", PUBLIC_PATHS.items())
def test_a_wrong_method_of_a_public_path_is_told_which_are_right(anyone, path, allow):
    wanted = {"Accept": "application/json"}
    for method in WRONG_METHODS:
        answer = anyone.call(method, path, headers=wanted).expect(405, "validation_error")
        assert allowed(answer) == set(allow.split(", ")), method
    for method in WRONG_METHODS:
        anyone.call(method, path + "/x/y/z", headers=wanted).expect(404, "not_found")


@pytest.mark.parametrize("target", ["/v1/events", "/v1/channel", "/v1/account/balance",
                                    "/v1/certifications", "/v1/openapi.yaml",
                                    "/v1/webhooks.yaml", "/verify", "/", "/docs", "/docs/reference",
                                    "/v1", "/v1/", "/robots.txt", "/favicon.ico"])
def test_head_answers_like_get_without_a_body(shared, target):
    get, head = shared.live.get(target), shared.live.call("HEAD", target)
    assert head.status == get.status == 200
    assert head.body == b""
    for name in ("Content-Type", "Content-Length"):
        assert head.headers[name] == get.headers[name], name


def test_head_of_what_is_not_there_has_the_status_alone(shared):
    answer = shared.live.call("HEAD", "/v1/events/evt_none").expect(404)
    assert answer.body == b""


def test_an_event_that_is_not_there_is_not_found(shared):
    for name in ("evt_none", "evt_" + "x" * 60, "x", "%00", "evt_%C3%A9", "1", "a" * 3000):
        shared.live.get(f"/v1/events/{name}").expect(404, "not_found")
        shared.live.get(f"/v1/certifications/{name}").expect(404, "not_found")


@pytest.mark.parametrize("target", ["/v1/channel", "/v1/account/balance", "/v1/events/evt_none",
                                    "/v1/certifications/x", "/v1/events", "/v1/certifications"])
def test_unknown_and_repeated_query_parameters_are_refused(shared, target):
    answer = shared.live.get(target + "?surprise=1").expect(400, "validation_error")
    assert "surprise" in answer.message
    for query in ("limit=1&limit=2", "limit=1&limit=1", "status=x&status=y"):
        shared.live.get(f"/v1/events?{query}").expect(400, "validation_error")
    shared.live.get("/v1/events?limit=1&l%69mit=1").expect(400, "validation_error")


def test_a_broken_escape_in_the_query_is_refused(shared):
    for query in ("limit=%", "limit=%4", "limit=%zz", "status=%ff"):
        shared.live.get(f"/v1/events?{query}").expect(400, "validation_error")


# ---- headers of every answer ----

def test_every_answer_has_a_request_id_of_its_own(shared, anyone):
    answers = [shared.live.get("/v1/channel"), shared.live.get("/v1/channel"),
               shared.live.get("/v1/events/x"), anyone.get("/v1/channel"), anyone.get("/nowhere"),
               anyone.call("DELETE", "/v1/channel"), shared.live.register(),
               shared.live.register(client_ref=""), anyone.get("/assets/x"), anyone.get("/docs/errors")]
    assert [answer.status for answer in answers] == [200, 200, 404, 401, 404, 405, 201, 400, 404, 200]
    for answer in answers:
        check_promises(answer)
        assert answer.headers["Date"], answer
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == len(answers)


def test_the_error_record_has_its_four_members_and_a_page_that_explains_it(shared, anyone):
    answer = shared.live.get("/v1/events/evt_none").expect(404, "not_found")
    assert set(answer.json) == ERROR
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json["incident_id"] is None
    url = answer.json["doc_url"]
    if url is not None:
        assert url.startswith(shared.service.public_url)
        page = anyone.get(url[len(shared.service.public_url):].partition("#")[0]).expect(200)
        assert url.partition("#")[2] in page.body.decode()


def error_sections(anyone):
    """What the page of error codes says about each."""
    page = anyone.get("/docs/errors").expect(200).body.decode()
    assert page.endswith("</html>\n")
    found = re.findall(r'<section id="(\w+)">(.*?)</section>', page, re.DOTALL)
    return {code: html.unescape(text) for code, text in found}


def test_the_page_of_error_codes_has_cause_remedy_and_example_of_each_in_both_languages(anyone):
    described = pathlib.Path(__file__).resolve().parents[2] / "docs/openapi.yaml"
    schemas = yaml.safe_load(described.read_text())["components"]["schemas"]
    sections = error_sections(anyone)
    assert list(sections) == schemas["Error"]["properties"]["code"]["x-extensible-enum"]
    for code, text in sections.items():
        english, spanish = text.split('<div lang="es">')
        assert f"<h2><code>{code}</code> (HTTP " in english
        for part, words in ((english, ("Cause", "What to do", "Example")),
                            (spanish, ("Causa", "Qué hacer", "Ejemplo"))):
            assert all(word in part for word in words), part
            assert part.count("<dd>") == 2 and 'curl -sS "$CONSTANCIA_URL/' in part
            assert f'{{"code":"{code}","message":"' in part
        assert english.count("<code>curl") == spanish.count("<code>curl") == 1


@pytest.mark.parametrize("code", ["validation_error", "invalid_key", "unpaid_limit_exceeded", "account_not_operational",
                                  "not_found", "rate_limited"])
def test_an_example_of_the_page_of_error_codes_gets_that_code(shared, anyone, code):
    text = error_sections(anyone)[code]
    command, _, answer = re.search(r"<code>(curl .*?)</code>", text, re.DOTALL)[1].partition("\n\n")
    environment = {**os.environ, "CONSTANCIA_URL": f"{shared.service.public_url}/v1",
                   "CONSTANCIA_TEST_KEY": shared.test.key}
    sent = subprocess.run(["sh", "-c", f"{command} -w '\n%{{http_code}}'"], env=environment, capture_output=True,
                          text=True, timeout=60, check=True).stdout
    record, _, status = sent.rpartition("\n")
    assert json.loads(record)["code"] == code and answer.startswith(f"{status} ")
    if code == "validation_error":
        assert json.dumps(json.loads(record)["message"], ensure_ascii=False) in answer


# ---- languages ----

@pytest.mark.parametrize("header,language", [
    (None, "en"), ("", "en"), ("en", "en"), ("es", "es"), ("ES", "es"), ("es-ES", "es"),
    ("es-419, en;q=0.5", "es"), ("en-GB", "en"), ("fr", "en"), ("fr, es;q=0.3", "es"),
    ("en;q=0.5, es;q=0.9", "es"), ("es;q=0.5, en;q=0.9", "en"), ("es;q=0", "en"),
    ("es;q=0.001", "es"), ("*", "en"), ("fr;q=1, *;q=0.5", "en"), ("*;q=0.5, es;q=0.1", "en"),
    ("en;q=0, es", "es"), ("es; q=0.8 , en ;q=0.7", "es"), ("es;q=1.000", "es"),
    ("es;q=nonsense, en;q=0.1", "en"), (",,;;==", "en"), ("eso", "en"), ("e", "en"),
])
def test_the_language_is_negotiated_by_quality(shared, header, language):
    headers = {} if header is None else {"Accept-Language": header}
    answer = shared.live.get("/v1/events/evt_none", headers=headers).expect(404)
    assert answer.headers["Content-Language"] == language
    english = shared.live.get("/v1/events/evt_none").message
    assert (answer.message == english) == (language == "en")
    assert shared.live.get("/v1/channel", headers=headers).headers["Content-Language"] == language


@pytest.mark.usefixtures("one_day")
def test_each_error_speaks_both_languages(service, shared, shared_hash, anyone):
    """Every code that is cheap to cause; the rest are in the tests of their conditions."""
    limited = service.new_channel(credits=0, unpaid_limit=0)
    blocked = service.new_channel()
    service.admin("limit", "create", "--channel", blocked.id, "--period", "day", "--max", 1,
                  "--action", "block")
    blocked.live.register().expect(201)
    shared.live.register({"a": 1}, "taken")
    suspended = service.new_channel()
    service.admin("channel", "suspend", suspended.id)
    disabled = service.new_channel()
    service.admin("account", "disable", disabled.account_id)
    revoked = service.new_channel()
    service.admin("key", "revoke", revoked.live_key["key_id"])
    owing = service.new_channel(credits=0)
    owing.live.register().expect(201)
    requests = {
        "validation_error": lambda **how: shared.live.get("/v1/events?limit=0", **how),
        "invalid_key": lambda **how: anyone.get("/v1/channel", **how),
        "revoked_key": lambda **how: revoked.live.get("/v1/channel", **how),
        "unpaid_limit_exceeded": lambda **how: limited.live.register(**how),
        "account_not_operational": lambda **how: owing.live.certify(seq_from=1, seq_to=1, **how),
        "suspended": lambda **how: suspended.live.register(**how),
        "account_disabled": lambda **how: disabled.live.get("/v1/channel", **how),
        "not_found": lambda **how: shared.live.get("/v1/events/x", **how),
        "client_ref_conflict": lambda **how: shared.live.register({"b": 1}, "taken", **how),
        "payload_too_large":
            lambda **how: shared_hash.live.register_hash("0" * 64, occurred_at="x" * 20000, **how),
        "limit_blocked": lambda **how: blocked.live.register(**how),
        "rate_limited":
            lambda **how: shared.test.get("/v1/channel", scenario="rate_limited", **how),
    }
    for code, request in requests.items():
        english, spanish = request(language="en"), request(language="es")
        assert english.code == spanish.code == code
        assert english.headers["Content-Language"] == "en"
        assert spanish.headers["Content-Language"] == "es"
        assert english.message != spanish.message, code
        assert english.status == spanish.status


def test_a_message_names_the_field_and_the_reason_in_both_languages(shared):
    body = {"client_ref": fresh(), "payload": {}, "occurred_at": "tomorrow"}
    english = shared.live.post("/v1/events", body, language="en").expect(400).message
    spanish = shared.live.post("/v1/events", body, language="es").expect(400).message
    assert "'occurred_at'" in english and "RFC 3339" in english and "must" in english
    assert "'occurred_at'" in spanish and "RFC 3339" in spanish and "debe" in spanish


@pytest.fixture(scope="module")
def impatient(start):
    """A service that soon ends the connections whose request does not become whole."""
    return start(http__transfer_timeout="2s", http__idle_timeout="2s")


# ---- sizes, on the wire ----

def raw(service, head, body=b"", more=lambda: iter(())):
    """Sends bytes unchanged. Returns the answer, or None when the service ends the connection without one."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as link:
        link.sendall(head.replace("\n", "\r\n").encode() + body)
        try:
            for piece in more():
                link.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has answered and closed
        received = b""
        try:
            while True:
                data = link.recv(65536)
                if not data:
                    break
                received += data
                if complete(received):
                    break
        except ConnectionResetError:
            pass
    return parsed(received) if received else None


class Bytes:
    def __init__(self, data):
        self.data = data

    def makefile(self, mode):
        return io.BytesIO(self.data)


def parsed(received):
    response = http.client.HTTPResponse(Bytes(received))
    response.begin()
    return Answer("RAW", "", response.status, response.headers, response.read())


def complete(received):
    try:
        answer = parsed(received)
    except http.client.HTTPException:
        return False
    return len(answer.body) == int(answer.headers.get("Content-Length", -1))


def head(key, length, content_type="application/json"):
    return (f"POST /v1/events HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\n"
            f"Content-Type: {content_type}\n{length}\n\n")


@pytest.mark.parametrize("content_type,length", [
    ("application/json", 6 * 262144 + 16384 + 1), ("application/json", 10 ** 12),
    ("multipart/form-data; boundary=B", 10485760 * 2),
    ("multipart/form-data; boundary=B", 10 ** 15),
])
def test_an_over_long_body_is_refused_before_it_is_sent(shared, content_type, length):
    answer = raw(shared.service, head(shared.live.key, f"Content-Length: {length}", content_type))
    assert answer, "answered, though not a byte of the body came"
    answer.expect(413, "payload_too_large")
    check_promises(answer)


def test_an_over_long_hash_only_body_is_refused_before_it_is_sent(shared_hash):
    answer = raw(shared_hash.service, head(shared_hash.live.key, "Content-Length: 16385"))
    answer.expect(413, "payload_too_large")


def test_a_client_that_asks_first_is_told_that_its_body_is_too_long(shared):
    lines = "Content-Length: 99999999\nExpect: 100-continue"
    answer = raw(shared.service, head(shared.live.key, lines))
    answer.expect(413, "payload_too_large")


ENDLESS = 200 * 2 ** 20


@pytest.mark.parametrize("content_type,start", [
    ("application/json", b'{"client_ref":"endless","payload":{"a":"'),
    ("multipart/form-data; boundary=B",
     b'--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'),
], ids=["json", "form"])
def test_an_endless_body_is_refused_as_soon_as_it_is_too_long(shared, content_type, start):
    sent = []

    def endless():
        yield b"%x\r\n%s\r\n" % (len(start), start)
        for _ in range(ENDLESS // 65536):
            yield b"10000\r\n" + b"x" * 65536 + b"\r\n"
            sent.append(65536)
    answer = raw(shared.service, head(shared.live.key,
                                      "Transfer-Encoding: chunked", content_type), more=endless)
    assert answer is None or answer.expect(413, "payload_too_large")
    assert sum(sent) < ENDLESS - 65536, "it listened to the end"


def test_a_body_that_stops_coming_is_not_registered(shared):
    ref = fresh()
    body = b'{"client_ref":"%s","payload":{}}' % ref.encode()
    with socket.create_connection(("127.0.0.1", shared.service.port)) as link:
        text = head(shared.live.key, f"Content-Length: {len(body)}")
        link.sendall(text.replace("\n", "\r\n").encode() + body[:-1])
    shared.live.register({}, ref).expect(201)


# ---- broken requests ----

@pytest.mark.parametrize("lines", [
    "Content-Length: 2\nContent-Length: 2", "Content-Length: 2\nContent-Length: 3",
    "Content-Length: 2\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\nContent-Length: 2",
    "Content-Length: -1", "Content-Length: +2", "Content-Length: 2x", "Content-Length: 0x2",
    "Content-Length: 99999999999999999999", "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: identity", "Transfer-Encoding: chunked\nTransfer-Encoding: chunked",
])
def test_a_request_whose_length_is_ambiguous_is_refused_and_the_connection_closed(shared, lines):
    smuggled = b"GET /v1/channel HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" \
        % shared.live.key.encode()
    with socket.create_connection(("127.0.0.1", shared.service.port), timeout=PATIENCE) as link:
        text = head(shared.live.key, lines).replace("\n", "\r\n").encode()
        link.sendall(text + b"{}" + smuggled)
        received = b""
        try:
            while True:
                data = link.recv(65536)
                if not data:
                    break
                received += data
        except ConnectionResetError:
            pass
    assert b"HTTP/1.1 2" not in received, received
    assert not received or received.split(b" ")[1] in (b"400", b"413", b"501"), received


@pytest.mark.parametrize("text", [
    "GET\n\n", "\x00\x01\x02\n\n", "GET /v1/channel HTTP/9.9\nHost: x\n\n",
    "GET /v1/channel HTTP/1.1\nHost x\n\n", "GET " + "/a" * 40000 + " HTTP/1.1\nHost: x\n\n",
    "GET /v1/channel HTTP/1.1\nHost: x\n" + "X: " + "y" * 200000 + "\n\n",
], ids=["a word", "no letters", "another version", "no colon", "a long line", "a long header"])
def test_what_is_no_request_gets_no_success_and_does_no_harm(impatient, text):
    answer = raw(impatient, text)
    assert answer is None or answer.status >= 400
    with Client(impatient, impatient.ready["channels"]["content"]["test_key"]) as client:
        client.get("/v1/channel").expect(200)


def test_requests_on_one_connection_are_answered_in_order(shared):
    one = f"GET /v1/channel HTTP/1.1\nHost: x\nAuthorization: Bearer {shared.live.key}\n\n"
    two = f"GET /v1/events/evt_x HTTP/1.1\nHost: x\nAuthorization: Bearer {shared.live.key}\n" \
          "Connection: close\n\n"
    with socket.create_connection(("127.0.0.1", shared.service.port), timeout=PATIENCE) as link:
        link.sendall((one + one + two).replace("\n", "\r\n").encode())
        received = b""
        while data := link.recv(65536):
            received += data
    assert re.findall(rb"HTTP/1\.1 (\d+)", received) == [b"200", b"200", b"404"]


# ---- the order of the checks ----

def test_the_key_comes_before_everything_about_the_request(anyone):
    too_long = raw(anyone.service, head("none", "Content-Length: 99999999"))
    too_long.expect(401, "invalid_key")
    headers = {"Content-Type": "nonsense"}
    anyone.post("/v1/events", b"{", headers=headers).expect(401, "invalid_key")
    anyone.get("/v1/events?surprise=1").expect(401, "invalid_key")


def test_the_size_comes_before_the_modality(shared_hash):
    payload = {"a": "x" * 20000}
    shared_hash.live.register(payload).expect(413, "payload_too_large")
    shared_hash.live.register({"a": 1}).expect(400, "validation_error")
    content = b"x" * 20000
    shared_hash.live.register_file(content).expect(413, "payload_too_large")


def test_the_modality_comes_before_a_repeated_client_ref(shared, shared_hash):
    shared.live.register({}, "order").expect(201)
    shared.live.register_hash("0" * 64, "order").expect(400, "validation_error")
    shared_hash.live.register_hash("0" * 64, "order").expect(201)
    shared_hash.live.register({}, "order").expect(400, "validation_error")


@pytest.mark.usefixtures("one_day")
def test_a_repeated_client_ref_comes_before_the_limits_and_the_limits_before_the_debt(service):
    channel = service.new_channel(credits=0, unpaid_limit=1)
    channel.live.register({"n": 1}, "a").expect(201)
    channel.live.register({"n": 2}, "b").expect(402, "unpaid_limit_exceeded")
    service.admin("limit", "create", "--channel", channel.id, "--period", "month", "--max", 1,
                  "--action", "block")
    channel.live.register({"n": 2}, "b").expect(422, "limit_blocked")
    channel.live.register({"n": 2}, "a").expect(409, "client_ref_conflict")
    channel.live.register({"n": 1}, "a").expect(200)


def test_json_answers_are_json(shared):
    for answer in (shared.live.get("/v1/channel"), shared.live.get("/v1/events"),
                   shared.live.register(), shared.live.get("/v1/events?limit=0")):
        assert answer.headers["Content-Type"] == "application/json"
        json.loads(answer.body.decode("utf-8"))
