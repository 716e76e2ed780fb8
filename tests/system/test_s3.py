"""A service with its content in an S3 service, which works, fails, stalls and gives wrong answers."""

import hashlib
import http.client
import io
import json
import pathlib
import secrets
import threading
import time
import urllib.parse
import urllib.request
import zipfile

import pytest

import s3_server
from client import Answer, Client, Service, eventually, fresh, run
from console import invited, signed_in

LARGE = secrets.token_bytes(3 << 20)  # several blocks of a reader


@pytest.fixture
def s3(tmp_path):
    server = s3_server.Server(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def start_on(tmp_path_factory):
    """Starts services on an S3 service; the secret comes from the environment."""
    running = []

    def start(server, prefix="constancia", **settings):
        chosen = {**server.settings(prefix), "content__timeout": "3s", **settings}
        secret = chosen.pop("content__secret_key")
        one = Service(tmp_path_factory.mktemp("service"), rate__live=100000, rate__test=100000,
                      seal__interval="200ms", **chosen,
                      environment={"CONSTANCIA_CONTENT_SECRET_KEY": secret})
        one.secrets.add(secret)
        running.append(one)
        return one.start()
    yield start
    for one in running:
        assert one.stop() in (0, None)
        log = one.log.read_text()
        assert not [secret for secret in one.secrets if secret in log]
        one.discard()


def store_check(service, server):
    done = run("store", "check", "--json", *service.chosen(), environment=server.environment())
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_the_life_of_content(s3, start_on):
    service = start_on(s3)
    channel = service.new_channel()
    client = channel.client("live")
    small = client.register({"n": 1}).expect(201).json
    marker = {"constancia/installation"}
    assert set(s3.objects) == marker
    document = {"text": "x" * 40000}
    long = client.register(document).expect(201).json
    file = client.register_file(LARGE, name="informe.bin").expect(201).json
    empty = client.register_file(b"", name="empty").expect(201).json
    assert len(s3.objects) == 4
    assert all(key.startswith("constancia/event/") for key in set(s3.objects) - marker)
    assert client.content(small["event_id"]).expect(200).json == {"n": 1}
    assert client.content(long["event_id"]).expect(200).json == document
    assert client.content(file["event_id"]).expect(200).body == LARGE
    assert client.content(empty["event_id"]).expect(200).body == b""
    # A repetition leaves nothing behind.
    client.register_file(LARGE, client_ref=file["client_ref"]).expect(200)
    record = client.certified(seq_from=1, seq_to=4)
    assert record["status"] == "completed"
    (part,) = record["content_parts"]
    whole = client.download(part["url"]).expect(200)
    assert hashlib.sha256(whole.body).hexdigest() == part["sha256"]
    assert whole.headers["Content-Disposition"] == 'attachment; filename="content-part-001.zip"'
    with zipfile.ZipFile(io.BytesIO(whole.body)) as archive:
        assert LARGE in [archive.read(name) for name in archive.namelist()]
    middle = client.download(part["url"], headers={"Range": "bytes=1000000-1999999"}).expect(206)
    assert middle.body == whole.body[1000000:2000000]
    target = f"/v1/events/{file['event_id']}/content"
    tag = f'"{file["hash"]}"'
    some = {"Range": "bytes=1000-1999", "If-Range": tag}
    assert client.get(target, headers=some).expect(206).body == LARGE[1000:2000]
    some["If-Range"] = '"another"'
    assert client.get(target, headers=some).expect(200).body == LARGE

    def fetched():  # the installation's mark aside, which the service looks at now and then
        return [request for request in s3.requests
                if request[0] == "GET" and "/installation" not in request[1]]
    asked = len(fetched())
    client.get(target, headers={"If-None-Match": tag}).expect(304)
    tag = f'"{part["sha256"]}"'
    client.download(part["url"], headers={"If-None-Match": tag}).expect(304)
    assert len(fetched()) == asked, "nothing is fetched of what the client has"
    for report in record["reports"]:
        body = client.download(report["url"]).expect(200).body
        assert hashlib.sha256(body).hexdigest() == report["sha256"]
    assert client.download(record["evidence_url"], method="HEAD").expect(200).body == b""
    assert service.stop() == 0
    store_check(service, s3)
    unusual = [request for request in s3.requests if request[2] not in (200, 204, 206, 416)]
    assert [request[2] for request in unusual] == [404], "whose place it is, asked for once"


def test_an_outage_of_content_leaves_the_rest_alone(s3, start_on):
    service = start_on(s3)
    client = service.new_channel().client("live")
    eventually(lambda: "content_ready 1" in service.monitor("/metrics")[1], "it has looked")
    s3.misbehave("status", status=503, times=10**6)
    reference = fresh()
    refused = client.register_file(LARGE, client_ref=reference).expect(503)
    assert refused.code == "temporarily_unavailable"
    client.register({"n": 1}).expect(201)
    eventually(lambda: "content_ready 0" in service.monitor("/metrics")[1], "it has noticed")
    status, text = service.monitor("/readyz")
    assert status == 200 and any("503" in warning for warning in json.loads(text)["warnings"]), text
    s3.behave()
    registered = client.register_file(LARGE, client_ref=reference).expect(201).json
    assert registered["sequence"] == 2
    eventually(lambda: not any("503" in warning for warning in
                               json.loads(service.monitor("/readyz")[1])["warnings"]),
               "it has noticed that, too")


@pytest.mark.parametrize("kind", ["lose-answer", "cut-upload", "stall", "lie-checksum",
                                  "error-inside"])
def test_passing_faults_are_not_seen(s3, start_on, kind):
    service = start_on(s3)
    client = service.new_channel().client("live")
    fault = s3.misbehave(kind, method="PUT")
    event = client.register_file(LARGE).expect(201).json
    assert fault.met == 1
    assert client.content(event["event_id"]).expect(200).body == LARGE


def test_altered_content_is_not_served(s3, start_on):
    service = start_on(s3)
    client = service.new_channel().client("live")
    event = client.register_file(LARGE).expect(201).json
    s3.misbehave("alter", method="GET")
    client.content(event["event_id"]).expect(500, "internal")
    assert client.content(event["event_id"]).expect(200).body == LARGE


def test_a_stalling_service_delays_only_who_needs_it(s3, start_on):
    service = start_on(s3, content__timeout="10s", http__deadline="60s")
    channel = service.new_channel()
    event = channel.client("live").register_file(LARGE).expect(201).json
    s3.misbehave("stall", method="GET", times=10**6)
    over = []

    def read():
        client = Client(service, channel.live_key["key"])
        over.append(client.content(event["event_id"]).status)
        client.close()
    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    eventually(lambda: len([request for request in s3.requests if request[0] == "GET" and
                            "/event/" in request[1]]) >= len(readers), "they wait for content")
    client = channel.client("live")
    for n in range(20):
        registered = client.register({"n": n}).expect(201).json
        client.get("/v1/events").expect(200)
        assert client.event(registered["event_id"])["hash"] == registered["hash"]
    assert not over  # they wait still
    s3.stopping.set()
    for reader in readers:
        reader.join()
    assert set(over) == {503}


def test_pages_of_the_console_do_not_wait_for_content(s3, start_on):
    service = start_on(s3, content__timeout="30s", http__deadline="60s")
    channel = service.new_channel()
    client = channel.client("live")
    events = [client.register_file(LARGE).expect(201).json, client.register({"text": "x" * 20000}).expect(201).json]
    reader = signed_in(service, invited(service, channel.account_id, "reader@example.org", "reader"))
    pages = [f"/console/events/{event['event_id']}" for event in events]
    s3.misbehave("stall", method="GET", times=10**6)
    for page in pages:
        assert "does not check the content" in reader.get(page).text() and f'href="{page}/content"' in reader.body
    assert not [request for request in s3.requests if request[0] == "GET" and "/event/" in request[1]]
    fetching = [http.client.HTTPConnection("127.0.0.1", service.port, timeout=60) for _ in range(4)]
    cookie = "; ".join(f"{name}={value}" for name, value in reader.cookies.items())
    for connection in fetching:
        connection.request("GET", f"{pages[0]}/content", headers={"Cookie": cookie})
    eventually(lambda: len([request for request in s3.requests if request[0] == "GET" and "/event/" in request[1]]) >=
               len(fetching), "the downloads wait for content")
    for page in pages:
        assert reader.get(page).status == 200
    client.register({"n": 1}).expect(201)
    for connection in fetching:
        connection.sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
    s3.stopping.set()


def certified_large(service):
    client = service.new_channel().client("live")
    client.register_file(LARGE).expect(201)
    return client, client.certified(seq_from=1, seq_to=1)


def test_a_download_that_breaks_is_cut(s3, start_on):
    service = start_on(s3)
    client, record = certified_large(service)
    (part,) = record["content_parts"]
    s3.misbehave("status", method="GET", status=403, code="AccessDenied", skip=1, times=10**6)
    target = part["url"][len(service.public_url):]
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request("GET", target)
    response = connection.getresponse()
    assert response.status == 200 and int(response.headers["Content-Length"]) == part["bytes"]
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    connection.close()
    eventually(lambda: [line for line in service.log_lines() if line["event"] == "download_aborted"],
               "the cut download is reported")
    s3.behave()
    assert len(client.download(part["url"]).expect(200).body) == part["bytes"]


def test_a_service_ends_while_downloads_hang(s3, start_on):
    service = start_on(s3)
    _, record = certified_large(service)
    target = record["content_parts"][0]["url"][len(service.public_url):]
    fault = s3.misbehave("stall-later", method="GET", times=10**6)
    connections = []
    for _ in range(4):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        connection.request("GET", target)
        assert connection.getresponse().status == 200
        connections.append(connection)
    eventually(lambda: fault.met >= 2 * len(connections), "each asks for its second block")
    connections.pop().close()  # gone before its part comes
    assert service.stop() == 0
    for connection in connections:
        connection.close()


def claim_long_ago(server):
    """The installation has had its place for years."""
    (marker,) = [entry for key, entry in server.objects.items() if key.endswith("/installation")]
    text = pathlib.Path(marker["path"]).read_text(encoding="ascii").split("\n")
    text[2] = "since 2020-01-01T00:00:00.000000Z"
    pathlib.Path(marker["path"]).write_text("\n".join(text), encoding="ascii")


def test_what_nothing_names_is_swept(s3, start_on, tmp_path):
    service = start_on(s3, content__keep_swept="0s")
    client, record = certified_large(service)
    event = client.get("/v1/events").expect(200).json["data"][0]
    assert service.stop() == 0
    claim_long_ago(s3)
    named = set(s3.objects)
    others = {"elsewhere/mine", "constancia/not ours", "constancia/event/aa/somebody",
              "constancia/letters/aa/" + 30 * "0", "event/aa/" + 30 * "0"}
    orphans = {"constancia/event/aa/" + 30 * "0", "constancia/issued/aa/" + 30 * "0",
               "constancia/issued/CERT-2026-9999999/aa/" + 30 * "0"}
    for key in others | orphans:
        path = tmp_path / secrets.token_hex(8)
        path.write_bytes(b"x")
        s3.objects[key] = {"path": str(path), "size": 1, "etag": "0" * 32,
                           "changed": int(time.time()), "meta": {}}
    for name, key in (("left", "constancia/issued/aa/" + 30 * "1"), ("theirs", "constancia/dump")):
        s3.uploads[name] = {"key": key, "started": int(time.time()), "parts": {}, "meta": {}}
    s3.age(2 * 86400)
    marks = {key.replace("constancia/", "constancia/swept/") for key in orphans}

    def until(objects):
        deadline = time.monotonic() + 120
        while set(s3.objects) != objects or set(s3.uploads) != {"theirs"}:
            assert time.monotonic() < deadline, (set(s3.objects) ^ objects, s3.uploads)
            time.sleep(0.1)
    service.start()
    until(named | others | orphans | marks)
    s3.age(10)
    assert service.stop() == 0
    service.start()
    until(named | others)
    del s3.uploads["theirs"]
    assert client.content(event["event_id"]).expect(200).body == LARGE
    assert client.download(record["report_url"]).expect(200)


def test_presigned_links(s3, start_on):
    service = start_on(s3, content__presigned_links="true", certification__link_lifetime="1h")
    _, record = certified_large(service)
    number = record["certification_id"]
    wanted = [(record["report_url"], "application/pdf", f"{number}-en.pdf", None),
              (record["evidence_url"], "application/zip", f"{number}-evidence.zip", None)]
    wanted += [(report["url"], "application/pdf", f"{number}-{report['languages'][0]}.pdf",
                report["sha256"]) for report in record["reports"]]
    wanted += [(part["url"], "application/zip", part["name"], part["sha256"])
               for part in record["content_parts"]]
    for url, content_type, name, digest in wanted:
        assert url.startswith(f"{s3.endpoint}/evidence/constancia/issued/"), url
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)
        assert query["X-Amz-Expires"] == ["3600"]
        with urllib.request.urlopen(url) as response:
            body = response.read()
        assert response.headers["Content-Type"] == content_type
        assert response.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        assert digest is None or hashlib.sha256(body).hexdigest() == digest
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url.replace("X-Amz-Expires=3600", "X-Amz-Expires=7200"))
        assert refused.value.code == 403


def test_a_backup_moves_to_another_place(s3, start_on, tmp_path):
    service = start_on(s3)
    certified_large(service)
    backup = tmp_path / "backup"
    made = service.admin("store", "backup", str(backup))
    assert made["content_objects"] == len(s3.objects) - 1, "the marker is the place's own"
    assert service.stop() == 0
    (tmp_path / "moved").mkdir()
    moved = Service(tmp_path / "moved", **s3.settings("second/place"))
    if not moved.settings.get("store.url", "sqlite:").startswith("sqlite:"):
        pytest.skip("the backup command is for the embedded store")
    done = run("store", "restore", "--live", str(backup), *moved.chosen())
    assert done.returncode == 0, done
    first = {key.split("/", 1)[1] for key in s3.objects
             if key.startswith("constancia/") and key != "constancia/installation"}
    assert first == {key.split("/", 2)[2] for key in s3.objects if key.startswith("second/place/")}
    store_check(moved, s3)
    moved.discard()


@pytest.mark.parametrize("url, sentence", [
    ("s3://Evidence/x", "'Evidence' is not a valid S3 bucket name"),
    ("s3://evidence/x?endpoint=minio:9000", "endpoint must be https://HOST[:PORT]"),
    ("s3://evidence?key=secret", "The parameter 'key=secret' of the s3: address is not valid"),
    ("s4://evidence", "It must be file:DIRECTORY or s3://BUCKET/PREFIX?endpoint=URL"),
    ("s3://evidence", "content.access_key: must be set for an s3: address"),
])
def test_config_check_explains(url, sentence, tmp_path):
    done = run("config", "check", "--data", str(tmp_path), f"--set=content.url={url}",
               "--set=tsa.url=embedded:")
    assert done.returncode == 1
    assert sentence in done.stderr, done.stderr


def test_config_print_hides_the_secret(s3):
    done = run("config", "print", environment=s3.environment())
    assert done.returncode == 0
    assert s3.access_key in done.stdout and s3.secret_key not in done.stdout


def linked(url, headers=None):
    """What a link of the content store gives, without the service."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {})) as response:
        return Answer("GET", url, response.status, response.headers, response.read())


def test_documents_that_share(s3, start_on):
    service = start_on(s3, content__presigned_links="true")
    client, first = certified_large(service)
    size = sum(entry["size"] for entry in s3.objects.values())
    again = client.certified(seq_from=1, seq_to=first["event_count"])
    grown = sum(entry["size"] for entry in s3.objects.values()) - size
    assert 0 < grown < len(LARGE) / 10
    # The content store gives whole objects alone. A report whose fonts have other glyphs, because of the characters of
    # its code, may be stored whole: it shares less than half of its bytes.
    for file in again["reports"] + again["content_parts"]:
        is_whole = file in again["reports"] and file["url"].startswith(s3.endpoint)
        get = linked if is_whole else client.download
        body = get(file["url"]).expect(200).body
        assert hashlib.sha256(body).hexdigest() == file["sha256"]
        part = get(file["url"], headers={"Range": "bytes=9-5000"}).expect(206)
        assert part.body == body[9:5001]
    assert store_check(service, s3)["valid"]
