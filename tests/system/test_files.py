"""Files: valid, unusual and broken multipart forms; their size; retrieval of their content and names."""

import email.message
import hashlib
import re
import urllib.parse

import pytest

from client import Client, form, fresh

LIMIT = 10485760


def send(client, content_type, body):
    return client.post("/v1/events", body, headers={"Content-Type": content_type})


def part(name, value, more=b""):
    return (b'Content-Disposition: form-data; name="' + name + b'"' + more + b"\r\n\r\n"
            + value + b"\r\n")


def whole(*parts, boundary=b"B", end=b"--B--\r\n"):
    return b"".join(b"--" + boundary + b"\r\n" + each for each in parts) + end


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_file_is_registered_and_comes_back_byte_for_byte(shared, mode):
    client = shared.client(mode)
    content = bytes(range(256)) * 300 + b"\r\n--boundary-of-the-test\r\n--"
    event = client.register_file(content, name="report.pdf",
                                 occurred_at="2026-01-31T10:00:00+01:00").expect(201).json
    assert event["hash"] == hashlib.sha256(content).hexdigest()
    assert event["hash_alg"] == "sha-256"
    assert event["modality"] == "content"
    assert event["occurred_at"] == "2026-01-31T09:00:00.000000Z"
    answer = client.content(event["event_id"]).expect(200)
    assert answer.body == content
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Length"] == str(len(content))
    assert answer.headers["Content-Disposition"] == 'attachment; filename="report.pdf"'


def test_a_files_name_is_not_part_of_the_comparison(shared):
    ref = fresh()
    first = shared.live.register_file(b"same", ref, name="a.txt").expect(201).json
    again = shared.live.register_file(b"same", ref, name="b.txt").expect(200)
    assert again.json["event_id"] == first["event_id"]
    name = shared.live.content(first["event_id"]).headers["Content-Disposition"]
    assert "a.txt" in name, "the original name stays"
    shared.live.register_file(b"other", ref, name="a.txt").expect(409, "client_ref_conflict")


@pytest.mark.parametrize("size", [0, 1, 16384, 16385, 1000000])
def test_files_of_any_size_below_the_limit_are_taken(shared, size):
    content = b"\xa5" * size
    event = shared.live.register_file(content).expect(201).json
    assert shared.live.content(event["event_id"]).expect(200).body == content


def test_a_file_of_10485760_bytes_is_taken_and_one_byte_more_is_not(shared):
    content = b"0123456789abcdef" * (LIMIT // 16)
    event = shared.live.register_file(content).expect(201).json
    assert event["hash"] == hashlib.sha256(content).hexdigest()
    assert shared.live.content(event["event_id"]).body == content
    shared.live.register_file(content + b"x").expect(413, "payload_too_large")


GOOD_FORMS = {
    "the file comes first":
        ("multipart/form-data; boundary=B",
         lambda ref: whole(part(b"file", b"data", b'; filename="f"'), part(b"client_ref", ref))),
    "the boundary is quoted":
        ('multipart/form-data; boundary="B"',
         lambda ref: whole(part(b"client_ref", ref), part(b"file", b"data", b'; filename="f"'))),
    "the last parameter ends in a semicolon":
        ("multipart/form-data; boundary=B;",
         lambda ref: whole(part(b"client_ref", ref), part(b"file", b"data", b'; filename="f"'))),
    "another parameter has the boundary in quotes":
        (r'multipart/form-data; x="a;boundary=C\\"; boundary="\B" ;',
         lambda ref: whole(part(b"client_ref", ref), part(b"file", b"data", b'; filename="f"'))),
    "the quoted boundary has equals signs":
        ('multipart/form-data; boundary="=B=";',
         lambda ref: whole(part(b"client_ref", ref), part(b"file", b"data", b'; filename="f"'),
                           boundary=b"=B=", end=b"--=B=--")),
    "the type has capitals and another parameter":
        ("Multipart/Form-Data; charset=utf-8; BOUNDARY=B",
         lambda ref: whole(part(b"client_ref", ref), part(b"file", b"data", b'; filename="f"'))),
    "a name is not quoted, headers have any case":
        ("multipart/form-data; boundary=B",
         lambda ref: whole(b"content-disposition: form-data; name=client_ref\r\n\r\n" + ref
                           + b"\r\n", part(b"file", b"data", b'; filename="f"'))),
    "the boundary has 70 characters":
        ("multipart/form-data; boundary=" + "b" * 70,
         lambda ref: whole(part(b"client_ref", ref), part(b"file", b"data", b'; filename="f"'),
                           boundary=b"b" * 70, end=b"--" + b"b" * 70 + b"--\r\n")),
    "the last line has no end":
        ("multipart/form-data; boundary=B",
         lambda ref: whole(part(b"client_ref", ref), part(b"file", b"data", b'; filename="f"'),
                           end=b"--B--")),
    "a part has a type of its own":
        ("multipart/form-data; boundary=B",
         lambda ref: whole(part(b"client_ref", ref, b"\r\nContent-Type: text/plain"),
                           part(b"file", b"data", b'; filename="f"\r\nContent-Type: image/png'))),
}


@pytest.mark.parametrize("content_type,body", GOOD_FORMS.values(), ids=GOOD_FORMS.keys())
def test_a_form_is_good_when(shared, content_type, body):
    event = send(shared.live, content_type, body(fresh().encode())).expect(201).json
    assert event["hash"] == hashlib.sha256(b"data").hexdigest()


TYPE = "multipart/form-data; boundary=B"
REF = part(b"client_ref", b"a-form")
FILE = part(b"file", b"data", b'; filename="f"')
BAD_FORMS = {
    "there is no boundary": ("multipart/form-data", whole(REF, FILE)),
    "the boundary is empty": ("multipart/form-data; boundary=", whole(REF, FILE)),
    "the boundary is another": ("multipart/form-data; boundary=C", whole(REF, FILE)),
    "the boundary has 71 characters":
        ("multipart/form-data; boundary=" + "b" * 71,
         whole(REF, FILE, boundary=b"b" * 71, end=b"--" + b"b" * 71 + b"--\r\n")),
    "there is no client_ref": (TYPE, whole(FILE)),
    "there is no file": (TYPE, whole(REF)),
    "there is nothing": (TYPE, b""),
    "there is no part": (TYPE, b"--B--\r\n"),
    "client_ref is repeated": (TYPE, whole(REF, REF, FILE)),
    "the file is repeated": (TYPE, whole(REF, FILE, FILE)),
    "a field is not known": (TYPE, whole(REF, FILE, part(b"payload", b"{}"))),
    "a part has no name": (TYPE, whole(REF, b"Content-Disposition: form-data\r\n\r\nx\r\n", FILE)),
    "a part has no disposition": (TYPE, whole(REF, b"\r\nx\r\n", FILE)),
    "a part is an attachment":
        (TYPE, whole(b'Content-Disposition: attachment; name="client_ref"\r\n\r\na\r\n', FILE)),
    "the end is missing": (TYPE, whole(REF, FILE, end=b"")),
    "the last boundary is cut": (TYPE, whole(REF, FILE, end=b"--B-")),
    "the end is a part's beginning": (TYPE, whole(REF, FILE, end=b"--B\r\n")),
    "the headers do not end": (TYPE, b'--B\r\nContent-Disposition: form-data; name="client_ref"'),
    "a quotation does not end":
        (TYPE, whole(b'Content-Disposition: form-data; name="client_ref\r\n\r\na\r\n', FILE)),
    "client_ref is too long": (TYPE, whole(part(b"client_ref", b"a" * 256), FILE)),
    "client_ref is empty": (TYPE, whole(part(b"client_ref", b""), FILE)),
    "client_ref is not UTF-8": (TYPE, whole(part(b"client_ref", b"\xff"), FILE)),
    "client_ref has a control character": (TYPE, whole(part(b"client_ref", b"a\tb"), FILE)),
    "occurred_at is no time": (TYPE, whole(REF, part(b"occurred_at", b"yesterday"), FILE)),
    "occurred_at is empty": (TYPE, whole(REF, part(b"occurred_at", b""), FILE)),
    "the encoding is base64":
        (TYPE, whole(REF, part(b"file", b"ZGF0YQ==",
                               b'; filename="f"\r\nContent-Transfer-Encoding: base64'))),
    "a header is endless":
        (TYPE, whole(REF, part(b"file", b"data", b'; filename="f"\r\nX-A: ' + b"a" * 20000))),
    "the boundary is repeated": ("multipart/form-data; boundary=B; boundary=B", whole(REF, FILE)),
    "the name of the file is repeated":
        (TYPE, whole(REF, part(b"file", b"data", b'; filename="a"; filename="a"'))),
    "the extended name of the file is repeated":
        (TYPE, whole(REF, part(b"file", b"data", b"; filename*=utf-8''a; filename*=utf-8''a"))),
    "the name of the file is not UTF-8":
        (TYPE, whole(REF, part(b"file", b"data", b'; filename="\xff\xfe"'))),
    "the name of the file is too long":
        (TYPE, whole(REF, part(b"file", b"data", b'; filename="' + b"n" * 256 + b'"'))),
}


@pytest.mark.parametrize("content_type,body", BAD_FORMS.values(), ids=BAD_FORMS.keys())
def test_a_form_is_refused_when(shared, content_type, body):
    send(shared.live, content_type, body).expect(400, "validation_error")
    known = shared.live.get("/v1/events", query={"limit": 500}).json
    assert "a-form" not in [event["client_ref"] for event in known["data"]]


@pytest.mark.parametrize("mark", [b"", b'; filename=""', b"; filename*=UTF-8''"])
def test_text_in_place_of_a_file_is_refused_and_told_how_to_send_one(shared, mark):
    """As curl sends -F file=hello, and a browser a form in which no file was chosen."""
    ref = fresh()
    body = whole(part(b"client_ref", ref.encode()), part(b"file", b"hello", mark))
    answer = send(shared.live, TYPE, body).expect(400, "validation_error")
    assert "'file'" in answer.message and "-F file=@NAME" in answer.message
    answer = shared.live.post("/v1/events", body, headers={"Content-Type": TYPE}, language="es")
    assert answer.status == 400 and "-F file=@NOMBRE" in answer.message
    body = whole(part(b"client_ref", ref.encode()), part(b"file", b"hello", b'; filename="-"'))
    send(shared.live, TYPE, body).expect(201)


def disposition(answer):
    """The parameters of Content-Disposition, as a browser reads them."""
    values = answer.headers.get_all("Content-Disposition")
    assert len(values) == 1
    assert not re.search(r"[\x00-\x1f\x7f]", values[0])
    message = email.message.Message()
    message["Content-Disposition"] = values[0]
    assert message.get_content_disposition() == "attachment"
    parameters = dict(message.get_params(header="content-disposition")[1:])
    assert set(parameters) <= {"filename", "filename*"}, values
    extended = re.search(r"filename\*=([^;]*)", values[0])
    if extended:
        assert extended[1].startswith("UTF-8''")
        return urllib.parse.unquote(extended[1][len("UTF-8''"):], errors="strict")
    plain = re.search(r'filename="((?:[^"\\]|\\.)*)"', values[0])
    return re.sub(r"\\(.)", r"\1", plain[1])


@pytest.mark.parametrize("sent,kept", [
    (b"plain.txt", "plain.txt"),
    (b"two words.txt", "two words.txt"),
    ("informe a\u00f1o \u20ac.pdf".encode(), "informe a\u00f1o \u20ac.pdf"),
    ("\U0001f512.bin".encode(), "\U0001f512.bin"),
    (b"semi;colon=1.txt", "semi;colon=1.txt"),
    (b"100%41.txt", "100%41.txt"),
    (b"../../etc/passwd", "passwd"),
    (b"/etc/passwd", "passwd"),
    (b"it's.txt", "it's.txt"),
    ("\u202etxt.exe".encode(), "\u202etxt.exe"),
    (b"a" * 255, "a" * 255),
    (b"report.pdf\\", "report.pdf"),
    (b"C:\\dir\\report.pdf\\", "report.pdf"),
])
def test_the_original_name_comes_back_whatever_it_is_but_without_a_path(shared, sent, kept):
    body = whole(part(b"client_ref", fresh().encode()),
                 part(b"file", b"data", b'; filename="' + sent + b'"'))
    event = send(shared.live, TYPE, body).expect(201).json
    answer = shared.live.content(event["event_id"]).expect(200)
    assert disposition(answer) == kept


@pytest.mark.parametrize("sent", [
    b'a\\"; filename=\\"evil.exe', b'x%0d%0aSet-Cookie: a=b', b"C:\\\\Windows\\\\evil.exe", b"..",
    b".", b"", b"a/..", b"*", b"..\\\\..\\\\x",
])
def test_a_hostile_name_cannot_leave_its_place(shared, sent):
    body = whole(part(b"client_ref", fresh().encode()),
                 part(b"file", b"data", b'; filename="' + sent + b'"'))
    event = send(shared.live, TYPE, body)
    if event.status == 400:
        assert event.code == "validation_error"
        return
    answer = shared.live.content(event.expect(201).json["event_id"]).expect(200)
    assert answer.body == b"data"
    assert "Set-Cookie" not in answer.headers
    name = disposition(answer)
    assert name not in ("", ".", "..") and "/" not in name and not re.search(r"^[a-z]:\\", name)
    assert answer.headers["Content-Disposition"].count("filename=") <= 1 + name.count("filename=")


def test_a_name_cannot_carry_a_line_break_into_the_header(shared):
    body = whole(part(b"client_ref", b"a-form"),
                 part(b"file", b"data", b'; filename="a\r\nX-Evil: 1"'))
    send(shared.live, TYPE, body).expect(400, "validation_error")


def test_content_can_be_asked_for_by_head(shared):
    event = shared.live.register_file(b"twelve bytes", name="a.txt").expect(201).json
    answer = shared.live.call("HEAD", f"/v1/events/{event['event_id']}/content").expect(200)
    assert answer.body == b""
    assert answer.headers["Content-Length"] == "12"
    assert answer.headers["Content-Type"] == "application/octet-stream"


def test_content_is_the_channels_own(service, shared, anyone):
    event = shared.live.register({"secret": True}).expect(201).json
    target = f"/v1/events/{event['event_id']}/content"
    other = service.new_channel(account_id=shared.account_id)
    for client in (other.live, other.test, shared.test):
        client.get(target).expect(404, "not_found")
    anyone.get(target).expect(401, "invalid_key")
    shared.live.get("/v1/events/evt_none/content").expect(404, "not_found")


def test_a_hash_only_event_has_no_content(shared_hash):
    event = shared_hash.live.register_hash("0" * 64).expect(201).json
    shared_hash.live.content(event["event_id"]).expect(404, "not_found")


def test_a_form_may_come_in_pieces_of_any_size(shared):
    content_type, body = form(("client_ref", fresh()), ("file", b"\r\n--\r\n-" * 1000, "f"))

    def pieces():
        for start in range(0, len(body), 97):
            yield body[start:start + 97]
    client = Client(shared.service, shared.live.key)
    answer = client.exchange("POST", "/v1/events", pieces(), {
        "Authorization": f"Bearer {client.key}", "Content-Type": content_type})
    assert answer.status == 201, answer
    assert answer.json["hash"] == hashlib.sha256(b"\r\n--\r\n-" * 1000).hexdigest()
