"""Requests of pages of other origins (CORS): which origins may read an answer, preflights, and a real browser."""

import contextlib
import http.client
import http.server
import json
import threading

import pytest

from client import PATIENCE, Client, fresh
from test_reload import Reloading
from test_request_heads import Talk

pytestmark = pytest.mark.sqlite  # no header depends on the store

LISTED = "https://app.example.org"
OTHERS = ["https://app.example.org:8443", "http://app.example.org", "https://app.example.org.", "https://example.org",
          "https://app.example.org.evil.example", "https://evil-app.example.org", "HTTPS://APP.EXAMPLE.ORG",
          "https://app.example.org/", "null", "*", "", "https://app.example.org, https://app.example.org",
          "https://app.example.or"]
KEYED = ["/v1/events", "/v1/events/evt_x", "/v1/events/evt_x/content", "/v1/events/evt_x/evidence-record",
         "/v1/channel", "/v1/channel/seals", "/v1/account/balance", "/v1/certifications", "/v1/certifications/cert_x",
         "/v1/certifications/cert_x/evidence-record"]
OPEN = ["/v1", "/v1/", "/v1/openapi.yaml", "/v1/webhooks.yaml", "/v1/signers", "/v1/signers.p7m", "/verify",
        "/verify/SVC-0", "/v1/downloads/cert_x/report.pdf?expires=1&mac=x"]
OWN = ["/", "/docs", "/docs/reference", "/docs/errors", "/assets/console.js", "/robots.txt", "/favicon.ico", "/console",
       "/console/sign-in", "/console/events", "/console/try/send", "/payments/stripe/notices", "/nothing"]


@pytest.fixture(scope="module")
def listed(start):
    return start(http__cors_origins=f"https://other.example.org, {LISTED}")


def ask(service, method, path, headers=None, body=None, key=None):
    """The answer, without the judgement of the interface's description, which has no preflights."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        sent = {**({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        answer.text = answer.read()
        return answer


def preflight(service, path, origin=LISTED, method="POST", **more):
    return ask(service, "OPTIONS", path, {"Origin": origin, "Access-Control-Request-Method": method, **more})


def allowed(answer):
    assert "Access-Control-Allow-Credentials" not in answer.headers
    values = answer.headers.get_all("Access-Control-Allow-Origin", [])
    assert len(values) <= 1
    exposed = answer.headers.get("Access-Control-Expose-Headers", "").split(", ")
    assert bool(values) == ("X-Request-Id" in exposed), "the two come together"
    return values[0] if values else None


def varies(answer):
    values = answer.headers.get_all("Vary", [])
    assert len(values) == 1 and "Accept-Language" in values[0]
    return "Origin" in values[0].split(", ")


# ---- who may read ----

@pytest.mark.parametrize("path", OPEN)
def test_what_needs_no_key_is_for_every_origin(service, listed, path):
    for one in (service, listed):
        for headers in ({}, {"Origin": LISTED}, {"Origin": "https://anyone.example"}, {"Origin": "null"}):
            for method in ("GET", "HEAD"):
                answer = ask(one, method, path, headers)
                assert allowed(answer) == "*" and not varies(answer), (path, headers)


@pytest.mark.parametrize("path", [*KEYED, "/v1/nothing"])
def test_what_needs_a_key_is_for_listed_origins(service, listed, path):
    key = listed.new_channel().live_key["key"]
    for one in (None, key):
        answer = ask(listed, "GET", path, {"Origin": LISTED}, key=one)
        assert allowed(answer) == LISTED and varies(answer), answer.status
        for origin in OTHERS:
            answer = ask(listed, "GET", path, {"Origin": origin}, key=one)
            assert allowed(answer) is None, origin
        answer = ask(listed, "GET", path, key=one)
        assert allowed(answer) is None
        assert varies(answer) or path == "/v1/nothing", "a cache must not give this answer to a page of the list"
    answer = ask(service, "GET", path, {"Origin": LISTED})
    assert allowed(answer) is None and not varies(answer), "off by default"


@pytest.mark.parametrize("path", OWN)
def test_all_else_is_for_its_own_origin(listed, path):
    for method in ("GET", "POST", "OPTIONS"):
        answer = ask(listed, method, path, {"Origin": LISTED, "Access-Control-Request-Method": "POST"}, body=b"")
        assert allowed(answer) is None and not varies(answer), path
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert method != "OPTIONS" or answer.status in (404, 405)


def test_a_repeated_origin_is_no_listed_one(listed):
    key = listed.new_channel().live_key["key"]
    said = Talk(listed, f"GET /v1/channel HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nOrigin: {LISTED}\r\n"
                        f"Origin: {LISTED}\r\nConnection: close\r\n\r\n".encode())
    ((status, head, _),) = said.answers
    assert status == 200 and "Access-Control" not in head


def test_the_monitoring_listener_has_no_such_headers(listed):
    connection = http.client.HTTPConnection("127.0.0.1", listed.admin_port, timeout=PATIENCE)
    connection.request("GET", "/readyz", headers={"Origin": LISTED})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 200 and allowed(answer) is None


# ---- preflights ----

@pytest.mark.parametrize("path", KEYED)
def test_a_preflight_of_a_listed_origin_needs_no_key(service, listed, path):
    answer = preflight(listed, path, **{"Access-Control-Request-Headers": "authorization,content-type"})
    assert (answer.status, answer.text, allowed(answer)) == (204, b"", LISTED)
    assert varies(answer)
    methods = answer.headers["Access-Control-Allow-Methods"].split(", ")
    posts = path in ("/v1/events", "/v1/certifications")
    assert set(methods) == ({"GET", "HEAD", "POST"} if posts else {"GET", "HEAD"})
    headers = answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert {"authorization", "content-type", "idempotency-key", "accept-language", "x-svc-api-key",
            "x-svc-test-scenario", "if-none-match", "range"} <= set(headers)
    assert int(answer.headers["Access-Control-Max-Age"]) > 0
    for origin in OTHERS:
        refused = preflight(listed, path, origin)
        assert refused.status == 405 and allowed(refused) is None, origin
        assert not refused.headers.get("Access-Control-Allow-Methods")
    assert preflight(service, path).status == 405, "off by default"


def test_a_preflight_of_any_origin_is_answered_for_what_needs_no_key(service):
    for path in OPEN:
        answer = preflight(service, path, "https://anyone.example")
        assert (answer.status, allowed(answer)) == (204, "*"), path
    assert preflight(service, "/v1/nothing").status == 404


def test_options_that_is_no_preflight_stays_refused(listed):
    for headers in ({}, {"Origin": LISTED}, {"Access-Control-Request-Method": "POST"}):
        for path in ("/v1/events", "/verify"):
            answer = ask(listed, "OPTIONS", path, headers)
            assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, POST"
            assert not answer.headers.get("Access-Control-Allow-Methods")
    said = Talk(listed, b"OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert said.statuses == [204]


def test_preflights_cost_no_key_and_are_limited_by_address(start):
    limited = start(http__cors_origins=LISTED, rate__live=1, rate__test=1)
    with Client(limited, limited.new_channel().live_key["key"]) as client:
        statuses = [preflight(limited, "/v1/events").status for _ in range(40)]
        assert statuses[:4] == [204] * 4 and 429 in statuses, "as many as without a key"
        answer = client.get("/v1/channel").expect(200)
        assert answer.headers["RateLimit-Remaining"] == "3", "the key has its whole burst"
    assert ask(limited, "GET", "/v1/signers").status == 200, "and so has the address for what is public"


# ---- errors ----

def test_errors_of_a_listed_origin_can_be_read(start):
    limited = start(http__cors_origins=LISTED, rate__live=1, rate__test=1)
    key = limited.new_channel().live_key["key"]
    found = {}
    for _ in range(20):
        answer = ask(limited, "GET", "/v1/channel", {"Origin": LISTED}, key=key)
        found[answer.status] = answer
    found[401] = ask(limited, "GET", "/v1/channel", {"Origin": LISTED}, key="svc_live_x")
    found[405] = ask(limited, "DELETE", "/v1/channel", {"Origin": LISTED})
    assert set(found) == {200, 429, 401, 405}
    for status, answer in found.items():
        assert allowed(answer) == LISTED, status
        exposed = answer.headers["Access-Control-Expose-Headers"].split(", ")
        safe = {"Cache-Control", "Content-Language", "Content-Length", "Content-Type", "Date", "Vary", "Connection"}
        unread = set(answer.headers) - set(exposed) - safe
        assert {name for name in unread if not name.startswith("Access-Control")} == set(), status
    assert int(found[429].headers["Retry-After"]) >= 1


@pytest.mark.parametrize("origin", [LISTED, "https://anyone.example"])
def test_answers_before_the_body_has_arrived_have_the_headers(listed, origin):
    """These are written to the socket without the library."""
    key = listed.new_channel().live_key["key"]
    heads = {413: f"POST /v1/events HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {key}\r\n"
                  "Content-Length: 90000000\r\n",
             401: "POST /v1/events HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 90000000\r\n",
             431: f"GET /v1/channel HTTP/1.1\r\nX-Long: {'x' * 20000}\r\n",
             400: "POST /v1/events HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n"}
    for wanted, head in heads.items():
        said = Talk(listed, f"{head}Host: a\r\nConnection: close\r\nOrigin: {origin}\r\n\r\n".encode())
        ((status, answer, _),) = said.answers
        assert status == wanted
        assert (f"Access-Control-Allow-Origin: {origin}" in answer) == (origin == LISTED), answer
        assert "Vary: Accept-Language, Origin" in answer
    said = Talk(listed, f"POST /verify HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\nContent-Length: 90000000\r\n"
                        "Content-Type: application/pdf\r\n\r\n".encode())
    assert "Access-Control-Allow-Origin: *" in said.answers[0][1]


# ---- a real browser ----

class Site:
    """A page of another origin."""

    def __init__(self):
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!DOCTYPE html><title>page</title><main>page</main>")

            def log_message(self, *arguments):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


FETCH = """
const done = arguments[arguments.length - 1];
const [url, options] = arguments;
fetch(url, options).then(async answer => done({status: answer.status, text: await answer.text(),
    headers: Object.fromEntries(answer.headers)}), error => done({failed: String(error)}));
"""


@pytest.fixture(scope="module")
def sites():
    with contextlib.ExitStack() as ending:
        yield [ending.enter_context(contextlib.closing(Site())) for _ in range(2)]


def fetch(browser, url, **options):
    return browser.ask("POST", f"{browser.session}/execute/async", {"script": FETCH, "args": [url, options]})


def test_a_page_of_another_origin_uses_the_interface(start, browse, sites):
    """It registers, is refused, verifies without a key; a page of an origin that is not listed only verifies."""
    listed, unlisted = sites
    service = start(http__cors_origins=listed.origin)
    key = service.new_channel().live_key["key"]
    url, browser = service.public_url, browse("en")
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = json.dumps({"client_ref": fresh(), "payload": {"a": 1}})
    browser.open(listed.origin)
    for replayed in (None, "true"):
        said = fetch(browser, f"{url}/v1/events", method="POST", body=body, headers=headers)
        assert said["status"] == (200 if replayed else 201), said
        assert said["headers"]["x-request-id"] and said["headers"].get("idempotent-replayed") == replayed
    with Client(service, key) as client:
        event = client.register_file(b"abc", name="three.bin").expect(201).json["event_id"]
    said = fetch(browser, f"{url}/v1/events/{event}/content", headers={**headers, "Range": "bytes=1-"})
    assert (said["status"], said["text"]) == (206, "bc") and "three.bin" in said["headers"]["content-disposition"], said
    said = fetch(browser, f"{url}/v1/events", method="POST", body=body, headers={"Content-Type": "application/json"})
    assert said["status"] == 401 and json.loads(said["text"])["code"] == "invalid_key", said
    big = fetch(browser, f"{url}/v1/certifications", method="POST", body=" " * 2000000, headers=headers)
    assert big.get("status") == 413 or "failed" in big, "a browser may see that the connection ends before the answer"
    for site in sites:
        browser.open(site.origin)
        said = fetch(browser, f"{url}/verify?code=SVC-0000-0000-0000", headers={"Accept": "application/json"})
        assert said["headers"]["content-type"] == "application/json", said
        assert fetch(browser, f"{url}/v1/openapi.yaml")["text"].startswith("openapi:")
        said = fetch(browser, f"{url}/verify", method="POST", body="{}",
                     headers={"Content-Type": "application/json", "Accept": "application/json"})
        assert "status" in said, said
    browser.open(unlisted.origin)
    assert "failed" in fetch(browser, f"{url}/v1/channel", headers=headers), "neither with a preflight"
    assert "failed" in fetch(browser, f"{url}/v1/channel"), "nor without one"
    assert "failed" in fetch(browser, f"{url}/console")
    browser.complaints()


def test_the_list_is_reloaded(tmp_path):
    one = Reloading(tmp_path)
    try:
        one.start()
        assert allowed(one.get("/v1/channel", Origin=LISTED)) is None
        one.reload(http__cors_origins=LISTED)
        assert allowed(one.get("/v1/channel", Origin=LISTED)) == LISTED
        assert one.stop() in (0, None)
    finally:
        one.discard()
