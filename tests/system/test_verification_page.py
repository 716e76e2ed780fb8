"""The public page on which anyone checks a code or a file."""

import re

import pytest

JSON = {"Accept": "application/json"}
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def issued(service):
    channel = service.new_channel("hash_only")
    channel.live.register_hash("0" * 64).expect(201)
    channel.test.register_hash("0" * 64).expect(201)
    channel.records = {mode: channel.client(mode).certified(seq_from=1, seq_to=1)
                       for mode in ("live", "test")}
    yield channel
    channel.close()


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_verification_code_is_recognized(issued, anyone, mode):
    record = issued.records[mode]
    code = record["verification_code"]
    for target in (f"/verify/{code}", f"/verify?code={code}", f"/verify/{code.lower()}"):
        found = anyone.get(target, headers=JSON).expect(200).json
        assert found["certification_id"] == record["certification_id"]
        assert found["verification_code"] == code
        assert found["mode"] == mode
        assert found["event_count"] == 1
        page = anyone.get(target, headers=HTML).expect(200)
        assert page.headers.get_content_type() == "text/html"
        text = page.body.decode()
        assert record["certification_id"] in text and code in text
        for report in record["reports"]:
            assert report["sha256"] in text
        assert ("probative" in text) == (mode == "test")


@pytest.mark.parametrize("mode", ["live", "test"])
def test_the_digest_of_each_report_is_recognized(issued, anyone, mode):
    for report in issued.records[mode]["reports"]:
        for digest in (report["sha256"], report["sha256"].upper()):
            found = anyone.get(f"/verify?sha256={digest}", headers=JSON).expect(200).json
            assert found["certification_id"] == issued.records[mode]["certification_id"]
            page = anyone.get(f"/verify?sha256={digest}", headers=HTML).expect(200)
            assert report["sha256"] in page.body.decode()


def test_what_was_never_issued_is_not_recognized(anyone):
    for target in ("/verify/SVC-2026-AAAA-AAAA", "/verify?code=SVC-2026-AAAA-AAAA",
                   "/verify?sha256=" + "0" * 64, "/verify/x", "/verify/CERT-2026-0000001"):
        anyone.get(target, headers=JSON).expect(404, "not_found")
        page = anyone.get(target, headers=HTML).expect(404)
        assert page.headers.get_content_type() == "text/html"


def test_no_code_at_all_finds_nothing(anyone):
    anyone.get("/verify?code=", headers=JSON).expect(404)
    anyone.get("/verify/null", headers=JSON).expect(404)


@pytest.mark.parametrize("query", ["sha256=0", "sha256=" + "g" * 64, "sha256=" + "0" * 63,
                                   "code=a&sha256=" + "0" * 64, "other=1", "code=a&code=b"])
def test_a_question_that_makes_no_sense_is_refused(anyone, query):
    anyone.get(f"/verify?{query}", headers=JSON).expect(400, "validation_error")


def test_the_page_speaks_both_languages(issued, anyone):
    code = issued.records["test"]["verification_code"]
    english = anyone.get(f"/verify/{code}", headers=HTML, language="en").body.decode()
    spanish = anyone.get(f"/verify/{code}", headers=HTML, language="es").body.decode()
    assert 'lang="en"' in english and 'lang="es"' in spanish
    assert "Verify" in english and "Verificar" in spanish
    assert "no probative value" in english and "no tiene valor probatorio" in spanish


def test_what_is_asked_for_is_shown_without_becoming_markup(anyone):
    for target in ("/verify/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/verify?code=%22%3E%3Cb%3E",
                   "/verify/%00"):
        answer = anyone.get(target, headers=HTML).expect(404)
        text = answer.body.decode()
        assert "<script>alert" not in text and '"><b>' not in text


def test_the_page_loads_nothing_from_elsewhere_and_may_not_be_framed(anyone):
    page = anyone.get("/verify", headers=HTML).expect(200)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy and "unsafe-eval" not in policy
    text = page.body.decode()
    assert "http://" not in text and "https://" not in text
    assert not re.search(r"<script(?![^>]*src=)", text) and "style=" not in text
    sources = re.findall(r'(?:src|href)="([^"#]+)"', text)
    assert sources
    for source in sources:
        asset = anyone.get(source).expect(200)
        assert asset.headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_discloses_no_content_and_no_channel(issued, anyone):
    for record in issued.records.values():
        for headers in (JSON, HTML):
            text = anyone.get(f"/verify/{record['verification_code']}", headers=headers) \
                .body.decode()
            assert "A declarant" not in text and "/v1/downloads" not in text
            assert issued.live.key not in text and issued.account_id not in text
