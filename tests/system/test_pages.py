"""The pages that tell a person what this is and what to read next, and what programs look for at any
server."""

import datetime
import hashlib
import html.parser
import re
import struct
import time
import zlib

import pytest
import yaml

from client import Client, eventually

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PAGES = ["/", "/docs", "/docs/reference", "/docs/errors"]
VOID = {"br", "hr", "img", "input", "link", "meta"}


class Page(html.parser.HTMLParser):
    """Links, anchors and text of a page whose elements are all closed in turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.anchors, self.words = [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        assert "style" not in told and not any(name.startswith("on") for name in told), told
        if tag not in VOID:
            self.open.append(tag)
        if "id" in told:
            self.anchors.append(told["id"])
        self.links += [told[name] for name in ("href", "src") if name in told]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data):
        self.words += data


def read(client, path, **more):
    answer = client.get(path, headers=HTML, **more).expect(200)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return Page(answer.body.decode())


@pytest.mark.parametrize("path", PAGES)
def test_every_link_of_a_page_leads_somewhere_in_this_service(anyone, path):
    page = read(anyone, path)
    assert page.links
    assert len(page.anchors) == len(set(page.anchors))
    for link in set(page.links):
        target, _, anchor = link.partition("#")
        assert not target or re.match(r"/(?!/)", target), link
        if target:
            anyone.get(target, headers=HTML).expect(200)
        if anchor:
            assert anchor in (read(anyone, target) if target else page).anchors, link


@pytest.mark.parametrize("path", PAGES)
def test_a_page_takes_nothing_from_elsewhere_and_runs_nothing(anyone, path):
    answer = anyone.get(path, headers=HTML).expect(200)
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert b"<script" not in answer.body and b"<style" not in answer.body


def test_the_first_page_says_what_this_is_where_to_verify_and_how_to_begin(service, anyone):
    for language, words in (("en", ["Declarations on record", "They never attest that the declarations are true"]),
                            ("es", ["Dejar constancia", "Nunca acreditan que lo declarado sea cierto"])):
        answer = anyone.get("/", headers=HTML, language=language).expect(200)
        page = Page(answer.body.decode())
        assert f'<html lang="{language}">' in answer.body.decode()
        assert answer.headers["Content-Language"] == language
        assert all(word in page.words for word in words)
        assert {"/verify", "/docs", "/docs/reference"} <= set(page.links)
        assert "curl -u svc_test_…: \\\n  --json" in page.words
        assert f"{service.public_url}/v1/certifications" in page.words
        assert "noindex" not in answer.body.decode()


def test_the_documentation_has_an_index_in_both_languages(service, anyone):
    for language, word in (("en", "Error codes"), ("es", "Códigos de error")):
        page = read(anyone, "/docs", language=language)
        assert word in page.words and f"{service.public_url}/v1" in page.words
        assert {"/docs/reference", "/docs/errors", "/docs/reference#notices", "/v1/openapi.yaml",
                "/v1/webhooks.yaml", "/verify"} <= set(page.links)


def test_the_examples_of_the_reference_read_the_base_address_that_the_guide_and_the_clients_read(anyone):
    page = read(anyone, "/docs/reference").words
    assert "export CONSTANCIA_URL=https://register.example.org/v1" in page
    assert '"$CONSTANCIA_URL/events"' in page and '"${CONSTANCIA_URL%/v1}/verify"' in page
    assert not re.search(r"CONSTANCIA_URL\W{1,6}/v1/", page)


@pytest.mark.parametrize("path", ["/v1", "/v1/"])
def test_the_base_address_tells_programs_and_people_where_the_documentation_is(service, anyone, path):
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"},
                    {"Accept": "text/html;q=0.5, application/json"}):
        told = anyone.get(path, headers=headers).expect(200).json
        assert told.pop("name") == "Constancia" and len(told) == 6
        for address in told.values():
            assert address.startswith(service.public_url)
            anyone.get(address.removeprefix(service.public_url)).expect(200)
    assert "/docs/reference" in read(anyone, path).links
    vary = anyone.get(path).headers["Vary"]
    assert "Accept" in vary.replace(" ", "").split(",")


def test_another_installation_is_told_by_its_own_name_and_address(start):
    service = start(service__name="A & <B>", service__public_url="https://register.example.org",
                    service__prefix="reg")
    client = Client(service)
    page = client.get("/", headers=HTML).expect(200).body.decode()
    assert "A &amp; &lt;B&gt;" in page and "<B>" not in page
    assert "curl -u reg_test_…:" in page and "https://register.example.org/v1/events" in page
    told = client.get("/v1").expect(200).json
    assert told["name"] == "A & <B>" and told["openapi_url"] == "https://register.example.org/v1/openapi.yaml"


def test_pages_are_there_without_a_key_and_count_in_the_bucket_of_pages(start):
    service = start(rate__live=1)
    client = Client(service)
    limit = int(client.get("/", headers=HTML).expect(200).headers["RateLimit-Limit"])
    started, answers = time.monotonic(), []
    while not answers or answers[-1].status == 200:
        answers.append(client.get(PAGES[len(answers) % len(PAGES)], headers=HTML))
    assert len(answers) <= limit * (time.monotonic() - started + 1) + 1, "all of them are in one bucket"
    for path in (*PAGES[1:], "/"):
        refused = eventually(lambda path=path: (answer := client.get(path, headers=HTML)).status == 429 and answer,
                             f"{path} is refused")
        assert refused.headers.get_content_type() == "text/html", path


# ---- the reference ----

def test_the_reference_has_each_operation_record_and_notice_under_its_own_anchor(service, anyone):
    page = read(anyone, "/docs/reference")
    notices = yaml.safe_load(anyone.get("/v1/webhooks.yaml").expect(200).body)
    wanted = {f"schema-{name}" for document in (service.description.document, notices)
              for name in document["components"]["schemas"]}
    operations = [operation for path in [*service.description.document["paths"].values(),
                                         *notices["webhooks"].values()]
                  for method, operation in path.items() if method in ("get", "post")]
    wanted |= {operation["operationId"] for operation in operations}
    assert len(wanted) > 50 and wanted <= set(page.anchors)
    for operation in operations:
        assert operation["summary"] in page.words


def test_the_reference_tells_every_status_and_parameter_of_an_operation(service, anyone):
    text = anyone.get("/docs/reference").expect(200).body.decode()
    assert len(text) < 1000000
    for item in service.description.document["paths"].values():
        for method in {"get", "post"} & set(item):
            operation = item[method]
            section = text[text.index(f'<section id="{operation["operationId"]}">'):]
            section = section[:section.index("</section>")]
            for status in operation["responses"]:
                assert f"<code>{status}</code>" in section, (operation["operationId"], status)
            for parameter in operation.get("parameters", []):
                name = service.description.resolve(parameter)["name"]
                assert f"<code>{name}</code>" in section, (operation["operationId"], name)
            for language in ("curl", "python", "typescript", "java", "go", "php", "csharp"):
                assert f'class="example {language}"' in section, operation["operationId"]


# ---- for programs ----

def test_where_to_report_a_weakness_is_what_the_operator_set(start):
    service = start(service__security_contact="mailto:security@example.org,https://example.org/report",
                    service__public_url="https://register.example.org")
    answer = Client(service).get("/.well-known/security.txt").expect(200)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    fields = [line.split(": ", 1) for line in answer.body.decode().splitlines()]
    told = dict(fields)
    assert [value for name, value in fields if name == "Contact"] == \
        ["mailto:security@example.org", "https://example.org/report"]
    assert [name for name, _ in fields].count("Expires") == 1
    assert told["Preferred-Languages"] == "en, es"
    assert told["Canonical"] == "https://register.example.org/.well-known/security.txt"
    expires = datetime.datetime.fromisoformat(told["Expires"].replace("Z", "+00:00"))
    ahead = expires - datetime.datetime.now(datetime.timezone.utc)
    assert datetime.timedelta(days=30) < ahead < datetime.timedelta(days=365)


def test_without_a_contact_none_is_invented(anyone):
    anyone.get("/.well-known/security.txt").expect(404, "not_found")


def test_crawlers_may_read_the_pages_and_nothing_that_a_key_opens(anyone):
    answer = anyone.get("/robots.txt").expect(200)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    lines = answer.body.decode().splitlines()
    assert lines[0] == "User-agent: *"
    refused = [line.removeprefix("Disallow: ") for line in lines[1:]]
    for path in ("/v1", "/v1/events", "/v1/downloads/x/y", "/payments/stripe/notices"):
        assert any(path.startswith(prefix) for prefix in refused), path
    for path in ("/", "/docs", "/docs/reference", "/verify"):
        assert not any(path.startswith(prefix) for prefix in refused), path
    assert b"noindex" in anyone.get("/verify", headers=HTML).expect(200).body


def test_the_icon_is_one_with_two_sizes(anyone):
    data = anyone.get("/favicon.ico").expect(200).body
    assert struct.unpack("<HHH", data[:6]) == (0, 1, 2)
    for number, size in enumerate((16, 32)):
        width, height, _, _, _, bits, length, at = struct.unpack(
            "<BBBBHHLL", data[6 + 16 * number:22 + 16 * number])
        picture = data[at:at + length]
        assert (width, height, bits) == (size, size, 32) and picture[:8] == b"\x89PNG\r\n\x1a\n"
        start = picture.index(b"IDAT") + 4
        rows = zlib.decompress(picture[start:start + struct.unpack(">L", picture[start - 8:start - 4])[0]])
        assert len(rows) == size * (1 + 4 * size)
        middle = rows[(size // 2) * (1 + 4 * size) + 1 + 4 * (size // 4):][:4]
        assert rows[1:5] == bytes(4) and middle[3] == 255
    svg = anyone.get("/assets/mark.svg").expect(200)
    assert svg.headers.get_content_type() == "image/svg+xml" and svg.body.startswith(b"<svg ")


@pytest.mark.parametrize("name", ["console.css", "console.js", "passkeys.js", "proof.js", "verify.css", "verify.js",
                                  "reference.css", "mark.svg", "noto-sans.woff"])
def test_what_pages_are_drawn_with_is_sent_once(anyone, name):
    whole = anyone.get(f"/assets/{name}").expect(200)
    tag = f'"{hashlib.sha256(whole.body).hexdigest()}"'
    kept = "public, max-age=604800" if name.endswith("woff") else "no-cache"
    assert whole.headers.get_all("ETag") == [tag] and whole.headers["Cache-Control"] == kept
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    again = anyone.get(f"/assets/{name}", headers={"If-None-Match": tag}).expect(304)
    assert again.body == b"" and again.headers["ETag"] == tag and again.headers["Cache-Control"] == kept
    assert anyone.get(f"/assets/{name}", headers={"If-None-Match": '"older"'}).expect(200).body == whole.body
    assert anyone.get(f"/assets/{name}x").expect(404).headers["Cache-Control"] == "no-store"
