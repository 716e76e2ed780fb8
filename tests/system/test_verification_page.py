"""The public page that checks a code or a file."""

import hashlib
import html
import http.client
import io
import json
import pathlib
import re
import threading
import zipfile

import pytest

import checked
from client import PATIENCE, Client, eventually, form, run

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


# A form writes a space as '+', and a browser takes line breaks out of what is pasted into it.
PASTED = {
    "a trailing space": ("{code}+", "{code}%20"),
    "a line break": ("{code}%0A", "{code}%0D%0A"),
    "spaces for hyphens": ("{spaced}", "{spaced}"),
    "no hyphens": ("{bare}", "{bare}"),
    "non-breaking hyphens": ("{soft}", "{soft}"),
    "a line broken in a quoted mail": ("{broken}", "{broken}"),
    "a full stop": ("{code}.", "{code}."),
}


@pytest.mark.both_stores
@pytest.mark.parametrize("mode", ["live", "test"])
@pytest.mark.parametrize("how", PASTED)
def test_a_code_is_recognized_however_it_was_pasted(issued, anyone, mode, how):
    record = issued.records[mode]
    code = record["verification_code"]
    written = {"code": code, "bare": code.replace("-", "").lower(), "soft": code.replace("-", "%E2%80%91"),
               "broken": code[:-4] + "%0D%0A%3E+" + code[-4:]}
    in_query, in_path = PASTED[how]
    query = in_query.format(spaced=code.replace("-", "+"), **written)
    written["broken"] = written["broken"].replace("+", "%20")
    path = in_path.format(spaced=code.replace("-", "%20"), **written)
    for target in (f"/verify?code={query}", f"/verify/{path}"):
        found = anyone.get(target, headers=JSON).expect(200).json
        assert found["certification_id"] == record["certification_id"]
        assert found["verification_code"] == code
        assert record["certification_id"] in anyone.get(target, headers=HTML).expect(200).body.decode()


def test_no_other_code_is_taken_for_one(issued, anyone):
    code = issued.records["live"]["verification_code"]
    other = code[:-1] + ("2" if code[-1] != "2" else "3")
    for wrong in (other, code[:-1], code + "A", code.replace("-", "_"), code + "%20" + code, code + "%20" * 1100,
                  code.replace("-", "-TEST-", 1), "TEST" + code, "A" + code):
        anyone.get(f"/verify?code={wrong}", headers=JSON).expect(404, "not_found")


def test_a_digest_is_recognized_with_the_spaces_of_a_form(issued, anyone):
    report = issued.records["live"]["reports"][0]["sha256"]
    for digest in (report + "+", "%09" + report + "%0A", report[:32] + "+" + report[32:]):
        found = anyone.get(f"/verify?sha256={digest}", headers=JSON).expect(200).json
        assert found["certification_id"] == issued.records["live"]["certification_id"]
        assert report in anyone.get(f"/verify?sha256={digest}", headers=HTML).expect(200).body.decode()


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
    assert "no probative value" in english and "sin valor probatorio" in spanish


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


# ---- a file, checked in full ----

FIXTURE = pathlib.Path(__file__).parent.parent / "support/fixtures/evidence-1/archive.zip"


def check_once(client, content, headers=None, **more):
    content_type, body = form(("file", content, "evidence.zip"))
    return client.post("/verify", body, headers={"Content-Type": content_type, **(headers or JSON)}, **more)


def is_another_checked(answer):
    return answer.status == 429 and (b"Another file" in answer.body or "otro fichero".encode() in answer.body)


def check(client, content, headers=None, **more):
    """An address has its turn back only after the answer: the next file may come too early."""
    def first_turn():
        answer = check_once(client, content, headers, **more)
        return None if is_another_checked(answer) else answer

    answer = eventually(first_turn, "the former file's turn ends")
    if answer.status == 200 and not headers:
        checked.check_described(answer.json["verification"], of_service=True)
    return answer


def words(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.body.decode()))


@pytest.fixture(scope="module")
def files(issued):
    """Archive and English report, by mode."""
    found = {}
    for mode, record in issued.records.items():
        client = issued.client(mode)
        report, = [each for each in record["reports"] if each["languages"] == ["en"]]
        found[mode] = {"archive": client.download(record["evidence_url"]).expect(200).body,
                       "report": client.download(report["url"]).expect(200).body}
    return found


@pytest.mark.parametrize("mode", ["live", "test"])
@pytest.mark.parametrize("kind", ["archive", "report"])
def test_a_file_is_checked_in_full(issued, files, anyone, mode, kind):
    told = check(anyone, files[mode][kind]).expect(200).json
    assert told["issued"]["certification_id"] == issued.records[mode]["certification_id"]
    found = told["verification"]
    assert found["valid"] and found["trusted"] and not found["findings"]
    assert found["signatures"][0]["path"] == "file"
    assert found["checked"]["events" if kind == "archive" else "reports"] == 1
    page = check(anyone, files[mode][kind], HTML).expect(200)
    text = words(page)
    assert f"This {kind} is valid" in text and "This service issued exactly this file" in text
    assert "That the declarations are true." in text
    for identity in found["signers"] + found["authorities"]:
        assert identity["name"] in text and identity["sha256"] in text
        assert "\\" not in identity["name"]
    assert ("no probative value." in text) == (mode == "test")
    if mode == "live":
        assert "Timestamp authorities" in text and "Verifiable without this service until" in text


def test_the_page_about_a_file_speaks_spanish(files, anyone):
    text = words(check(anyone, files["live"]["archive"], HTML, language="es").expect(200))
    for wanted in ("Este archivo es válido", "Qué acredita", "Qué no acredita", "Firmantes",
                   "Autoridades de sellado de tiempo", "Verificabilidad a largo plazo"):
        assert wanted in text
    assert re.search(r"\d+ de [a-z]+ de 20\d\d, \d\d:\d\d:\d\d UTC", text)


def test_a_damaged_file_is_not_valid_and_attests_nothing(files, anyone):
    for kind, content in files["live"].items():
        damaged = bytearray(content)
        damaged[len(damaged) // 2] ^= 1
        told = check(anyone, bytes(damaged)).expect(200).json
        assert told["issued"] is None and not told["verification"]["valid"]
        assert told["verification"]["findings"]
        text = words(check(anyone, bytes(damaged), HTML).expect(200))
        assert "This file is not valid" in text and "Errors" in text
        assert "What it attests" not in text and "Signers" not in text


@pytest.mark.parametrize("language, member", [("en", "what"), ("es", "what_es")])
def test_the_page_has_findings_in_its_language(files, anyone, language, member):
    for content in (files["live"]["report"][:-200], b"x", FIXTURE.read_bytes()):
        found = check(anyone, content).expect(200).json["verification"]
        assert found["findings"] and found["findings_version"] == 2
        page = check(anyone, content, HTML, language=language).expect(200)
        text = html.unescape(words(page))
        for finding in found["findings"] + found["warnings"]:
            told = finding[member].removesuffix(finding["detail"] or "").strip()
            assert told in text, (told, text)
            if finding["detail"]:
                assert finding["detail"] in text
                assert ('<span lang="en">' in page.body.decode()) == (language == "es")
        assert '<ul lang="en">' not in page.body.decode()


def test_what_the_service_adds_has_codes_like_the_rest(files, anyone):
    assert {each["code"] for each in check(anyone, b"x").expect(200).json["verification"]["findings"]} == {
        "file.kind_unknown", "origin.not_signed"}
    told = check(anyone, FIXTURE.read_bytes()).expect(200).json["verification"]
    assert "origin.other_signer" in {each["code"] for each in told["findings"]}


def test_evidence_of_another_service_is_not_this_ones(anyone):
    told = check(anyone, FIXTURE.read_bytes()).expect(200).json
    assert told["issued"] is None and not told["verification"]["valid"]
    assert told["verification"]["verdict"]["code"] == "not_issued"
    assert any("does not chain to any of the roots" in each["what"] for each in told["verification"]["findings"])


def test_a_file_of_no_kind_is_not_this_services(anyone):
    for content in (b"x", b"PK\3\4", b"<script>alert(1)</script>"):
        told = check(anyone, content).expect(200).json
        assert told["issued"] is None and not told["verification"]["valid"]
        assert not told["verification"]["could_not_check"] and not told["verification"]["trusted"]
        assert told["verification"]["files"][0]["origin"] == "foreign"
    text = words(check(anyone, b"x", HTML).expect(200))
    assert "Not valid: this service did not issue this file" in text
    text = words(check(anyone, b"x", HTML, language="es").expect(200))
    assert "No válido: este servicio no emitió este fichero" in text


def test_what_a_file_says_becomes_no_markup(files, anyone):
    """Names of entries reach the findings."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as made:
        for name in ("mimetype", "<img src=x onerror=alert(1)>", *"abcdefgh"):
            made.writestr(name, "x")
    page = check(anyone, whole.getvalue(), HTML).expect(200)
    assert b"<img" not in page.body


def test_a_form_that_makes_no_sense_is_refused_with_a_page(anyone):
    for fields in ([("file", b"")], [("other", "x")], [("file", b"x", "a"), ("file", b"x", "b")], []):
        content_type, body = form(*fields)
        anyone.post("/verify", body, headers={"Content-Type": content_type, **JSON}) \
            .expect(400, "validation_error")
        page = anyone.post("/verify", body, headers={"Content-Type": content_type, **HTML})
        assert page.status == 400 and page.headers.get_content_type() == "text/html"
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert 'role="alert"' in page.body.decode() and '<form' in page.body.decode()
    anyone.post("/verify", b"{}", headers={"Content-Type": "application/json", **JSON}) \
        .expect(400, "validation_error")


def test_text_in_place_of_a_file_is_refused_and_told_how_to_send_one(anyone):
    for field in (("file", b"hello"), ("file", b"", ""), ("file", b"hello", "")):
        content_type, body = form(field)
        answer = anyone.post("/verify", body, headers={"Content-Type": content_type, **JSON})
        assert "-F file=@NAME" in answer.expect(400, "validation_error").message


def test_what_is_too_large_is_refused_before_it_came(start):
    service = start(http__check_size=1)
    client = Client(service)
    check(client, bytes(1024 * 1024)).expect(200)
    client = Client(service)
    answer = check(client, bytes(1024 * 1024 + 1))
    assert answer.status == 413
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
    connection.request("POST", "/verify", headers={
        "Content-Type": "multipart/form-data; boundary=x", "Content-Length": str(1 << 30),
        "Expect": "100-continue"})
    assert connection.getresponse().status == 413
    service = start(http__check_size=0)
    assert Client(service).get("/verify", headers=HTML).expect(200).body.count(b"<form") == 2
    assert check(Client(service), b"x").status == 405


def test_an_address_has_one_file_checked_at_a_time_and_few_in_a_second(start, files):
    service = start(rate__live=50)
    content_type, body = form(("file", files["live"]["archive"], "a.zip"))
    slow = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
    slow.putrequest("POST", "/verify")
    slow.putheader("Content-Type", content_type)
    slow.putheader("Accept", "application/json")
    slow.putheader("Content-Length", str(len(body)))
    slow.putheader("Expect", "100-continue")
    slow.endheaders()
    assert slow.sock.recv(1000).startswith(b"HTTP/1.1 100 "), "its processing begins before this answer"
    slow.send(body[:1000])
    eventually(lambda: is_another_checked(check_once(Client(service), b"x")), "it is one at a time")
    slow.send(body[1000:])
    assert slow.getresponse().status == 200
    assert beyond_the_rate(service)
    assert Client(service).get("/verify", headers=HTML).status == 200


def beyond_the_rate(service):
    """The first that is refused of files of one address, of which there is one a second. Another refusal is that one
    is checked at a time: its turn is given back after its answer."""
    for _ in range(100):
        answer = check(Client(service), b"x")
        assert answer.status in (200, 429), answer
        if answer.status == 429 and "Too many requests" in answer.message:
            return answer
    raise AssertionError("100 files were taken")


def begin_check(service, content, address, last=1000):
    """A file of which the end does not come, from an address behind the proxy."""
    content_type, body = form(("file", content, "a.zip"))
    slow = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
    slow.putrequest("POST", "/verify")
    for name, value in (("Content-Type", content_type), ("Accept", "application/json"),
                        ("X-Forwarded-For", address), ("Content-Length", str(len(body)))):
        slow.putheader(name, value)
    slow.endheaders()
    slow.send(body[:-last])
    return slow, body[-last:]


def test_slow_files_close_the_page_to_nobody(start, files):
    """However many come: a turn is for a file that is whole."""
    service = start(service__trusted_proxies="127.0.0.1/32")
    archive = files["live"]["archive"]
    slow = [begin_check(service, archive, f"192.0.2.{i + 1}") for i in range(12)]
    check(Client(service), archive, {**JSON, "X-Forwarded-For": "192.0.2.100"}).expect(200)
    for connection, rest in slow[:2]:
        connection.send(rest)
        assert connection.getresponse().status == 200


def test_of_slow_files_that_hold_much_the_first_gives_way(start, files):
    service = start(service__trusted_proxies="127.0.0.1/32", http__body_memory=16)
    large = bytes(3 * 1024 * 1024)
    slow = [begin_check(service, large, f"192.0.2.{i + 1}") for i in range(4)]
    check(Client(service), files["live"]["archive"],
          {**JSON, "X-Forwarded-For": "192.0.2.100"}).expect(200)
    eventually(lambda: service.metric("http_checks_refused_total") > 0, "all that was sent has come")
    connection, rest = slow[0]
    connection.send(rest)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    assert answer.status == 503 and answer.headers["Retry-After"]
    assert told["code"] == "temporarily_unavailable" and told["incident_id"]
    assert "being checked" in told["message"]
    connection, rest = slow[-1]
    connection.send(rest)
    assert connection.getresponse().status == 200
    refused = service.logged(lambda line: line["event"] == "request_failed")
    assert refused and all(line["level"] == "info" for line in refused)


def test_a_page_with_little_memory_says_what_it_takes(start):
    """Not 503, after which the same would happen again."""
    service = start(http__body_memory=16)
    text = words(Client(service).get("/verify", headers=HTML).expect(200))
    assert "Maximum size: 3 MiB." in text
    assert check(Client(service), bytes(8 * 1024 * 1024)).status == 413


def test_a_refusal_by_address_does_not_speak_of_a_key(start):
    service = start(rate__live=50)
    refused = beyond_the_rate(service)
    assert "key" not in refused.message and "address" in refused.message


def test_another_method_is_refused_with_a_page(service, anyone):
    page = anyone.call("OPTIONS", "/verify", headers=HTML)
    assert page.status == 405 and page.headers.get_content_type() == "text/html"
    assert page.headers["Allow"] == "GET, HEAD, POST" and 'role="alert"' in page.body.decode()
    anyone.call("OPTIONS", "/verify", headers=JSON).expect(405, "validation_error")


def test_a_file_whose_signature_holds_may_still_differ_from_what_was_issued(files, anyone):
    """Of a report the revisions after the signature, which it does not cover."""
    report = files["live"]["report"]
    first, size, second, rest = map(int, re.search(
        rb"/ByteRange\s*\[\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*\]", report).groups())
    signed = report[:second + rest]
    assert len(signed) < len(report)
    told = check(anyone, signed).expect(200).json
    assert told["issued"] is None and told["verification"]["valid"]
    assert any("no record" in each["what"] for each in told["verification"]["warnings"])
    assert told["verification"]["files"][0]["origin"] == "signed"
    text = words(check(anyone, signed, HTML).expect(200))
    assert "has no record of having issued this file" in text
    assert "Nevertheless, it is signed with a key of this service." in text
    assert "no signed data was changed" in text and "byte for byte" not in text
    text = words(check(anyone, report, HTML).expect(200))
    assert "identical to the issued one, byte for byte" in text and "Nevertheless" not in text


def test_an_evidence_record_needs_what_it_covers(issued, anyone):
    certification = issued.records["live"]["certification_id"]
    url = f"/v1/certifications/{certification}/evidence-record"
    record = eventually(lambda: (answer := issued.live.get(url)).status == 200 and answer.body,
                        "there is an evidence record", 300)
    told = check(anyone, record).expect(200).json["verification"]
    assert told["could_not_check"] and told["checked"]["evidence_records"] == 1
    text = words(check(anyone, record, HTML).expect(200))
    assert "This is an evidence record. To verify it together with the files that it covers" in text


# ---- containers ----

@pytest.fixture(scope="module")
def container(service, tmp_path_factory):
    """All files of a certification with content, and what `constancia bundle` makes of them."""
    folder = tmp_path_factory.mktemp("container")
    channel = service.new_channel()
    sequence = channel.live.register({"a": 1}).expect(201).json["sequence"]
    certified = channel.live.certified(seq_from=sequence, seq_to=sequence)
    links = [certified["evidence_url"], *(each["url"] for each in certified["reports"]),
             *(each["url"] for each in certified["content_parts"])]
    documents = []
    for link in links:
        answer = channel.live.download(link).expect(200)
        documents.append(folder / answer.headers.get_filename())
        documents[-1].write_bytes(answer.body)
    url = f"/v1/certifications/{certified['certification_id']}/evidence-record"
    record = folder / "record.ers"
    record.write_bytes(eventually(lambda: (answer := channel.live.get(url)).status == 200 and answer.body,
                                  "there is an evidence record", 300))
    channel.close()
    output = folder / "all.asice"
    done = run("bundle", record, *documents, "-o", output)
    assert done.returncode == 0, done.stderr
    return {"id": certified["certification_id"], "documents": documents, "content": output.read_bytes()}


@pytest.mark.both_stores
def test_a_container_is_checked_with_all_that_is_in_it(container, anyone):
    answer = check(anyone, container["content"]).expect(200).json
    told = answer["verification"]
    assert answer["issued"] is None, "it is no file of the certification itself"
    assert told["valid"] and told["trusted"] and not told["findings"], told["findings"]
    assert told["checked"]["reports"] == 2 and told["checked"]["parts"] == 1 and told["checked"]["events"] == 1
    inside = {each["path"]: each for each in told["files"]}
    assert inside.pop("file")["kind"] == "container"
    assert inside.pop("file/META-INF/evidencerecord001.ers")["origin"] is None
    assert set(inside) == {f"file/{each.name}" for each in container["documents"]}
    for path in container["documents"]:
        each = inside[f"file/{path.name}"]
        assert each["origin"] == "issued" and each["certification_id"] == container["id"]
        assert each["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_page_about_a_container_names_its_files(container, anyone):
    text = words(check(anyone, container["content"], HTML).expect(200))
    assert "This container is valid" in text and "Anyone can create a container" in text
    assert text.count(f"issued by this service: {container['id']}") == len(container["documents"])
    assert "has no record of having issued" not in text
    assert re.search("That all its files existed at \\d+ [A-Z][a-z]+ 20", text)
    text = words(check(anyone, container["content"], HTML, language="es").expect(200))
    assert "Este contenedor es válido" in text and f"emitido por este servicio: {container['id']}" in text


def test_a_damaged_container_is_not_valid(container, anyone):
    whole = container["content"]
    for at in range(1000, len(whole), len(whole) // 7):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        told = eventually(lambda: (answer := check(anyone, bytes(damaged))).status == 200 and answer.json,
                          "the turn of the one before is given back")
        assert not told["verification"]["valid"], at


def test_hostile_files_do_not_disturb_the_service(service, files, anyone, channel):
    """Many at once: each is answered in some way, and registration continues."""
    statuses = []

    def hand_in(content):
        client = Client(service)
        statuses.append(check(client, content).status)
        client.close()
    hostile = [b"PK\3\4" + bytes(300000), files["live"]["archive"][:-30], b"%PDF-1.7\n" + b"9" * 500000]
    threads = [threading.Thread(target=hand_in, args=(hostile[i % 3],)) for i in range(9)]
    for thread in threads:
        thread.start()
    channel.live.register({"during": 1}).expect(201)
    for thread in threads:
        thread.join()
    assert len(statuses) == 9 and set(statuses) <= {200, 429, 503} and 200 in statuses
    eventually(lambda: check(anyone, files["live"]["archive"]).status == 200, "files are checked as before")
