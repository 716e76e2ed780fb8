"""What is acknowledged is durable; what cannot be stored is not acknowledged."""

import http.client
import re
import resource
import subprocess

import pytest

import stores
from client import Client, eventually

pytestmark = pytest.mark.both_stores

CALLS = "fsync,fdatasync,rename,renameat,renameat2,recvfrom,read,sendto,sendmsg,write,writev"
SYNC = re.compile(r"(?:(?:fsync|fdatasync)\(\d+\)|<\.\.\. (?:fsync|fdatasync) resumed>\)) += 0")
RENAME = re.compile(r"(?:rename\w*\(.*|<\.\.\. rename\w* resumed>.*)\) += 0")


class Trace:
    """The system calls of a running service, until it has sent the answer."""

    def __init__(self, service, path, request, answer):
        self.service, self.path, self.request, self.answer = service, path, request, answer

    def __enter__(self):
        self.process = subprocess.Popen(
            ["strace", "-f", "-p", str(self.service.process.pid), "-e", f"trace={CALLS}", "-s",
             "200", "-o", self.path], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if "attached" not in line:
            self.process.kill()
            pytest.skip(f"no tracing here: {line}")
        return self

    def __exit__(self, *failure):
        try:
            if failure[0] is None:
                eventually(lambda: self.answer in self.path.read_text(), "the answer is traced")
        finally:
            self.process.terminate()
            self.process.wait()

    def between(self):
        """What happened from the request's coming to its answer's going, in order."""
        lines = self.path.read_text().splitlines()
        start = next(n for n, line in enumerate(lines) if self.request in line)
        end = next(n for n, line in enumerate(lines) if n > start and self.answer in line)
        kinds = []
        for line in lines[start:end]:
            if SYNC.search(line):
                kinds.append("sync")
            elif RENAME.search(line):
                kinds.append("rename")
        return kinds


@pytest.mark.sqlite
def test_no_answer_before_the_commit_is_on_the_disk(start, tmp_path):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    channel.live.register().expect(201)
    with Trace(service, tmp_path / "trace", "POST /v1/events", "HTTP/1.1 201") as trace:
        channel.live.register({"a": 1}, "traced").expect(201)
    assert "sync" in trace.between()


def test_a_file_is_on_the_disk_under_its_name_before_its_event_is(start, tmp_path):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    channel.live.register_file(b"first").expect(201)
    with Trace(service, tmp_path / "trace", "POST /v1/events", "HTTP/1.1 201") as trace:
        channel.live.register_file(b"x" * 100000, "traced").expect(201)
    kinds = trace.between()
    assert "rename" in kinds, kinds
    place = kinds.index("rename")
    assert "sync" in kinds[:place], "the bytes before they get their name"
    commits = 1 if stores.KIND == "sqlite" else 0  # PostgreSQL's are in another process
    assert kinds[place + 1:].count("sync") >= 1 + commits, "the directory, then the commit"


def limit_file_size(service, size):
    """No file may grow beyond it: as good as a full disk."""
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_content_that_cannot_be_stored_is_not_acknowledged_and_a_retry_resolves_it(start):
    service = start()
    channel = service.new_channel()
    channel.live.register({"n": 1}, "a").expect(201)
    limit_file_size(service, 3 * 2 ** 20)
    content = b"z" * 4 * 2 ** 20
    english = channel.live.register_file(content, "b").expect(503, "temporarily_unavailable")
    spanish = channel.live.register_file(content, "b", language="es")
    assert spanish.expect(503, "temporarily_unavailable").message != english.message
    assert int(english.headers["Retry-After"]) >= 1
    incident = english.json["incident_id"]
    assert incident != spanish.json["incident_id"]
    logged = service.logged(lambda line: line["event"] == "request_failed"
                            and line["incident_id"] == incident)
    assert len(logged) == 1 and logged[0]["cause"]
    assert logged[0]["cause"] not in english.body.decode(), "the cause is never in the body"
    assert str(service.data) not in english.body.decode()
    assert channel.live.register({"n": 2}, "c").expect(201).json["sequence"] == 2
    limit_file_size(service, resource.RLIM_INFINITY)
    event = channel.live.register_file(content, "b").expect(201).json
    assert event["sequence"] == 3
    assert channel.live.content(event["event_id"]).expect(200).body == content


def test_what_is_the_services_own_fault_has_an_incident_that_the_log_explains(start):
    service = start()
    channel = service.new_channel()
    content = b"kept " * 20000
    event = channel.live.register_file(content).expect(201).json
    stored = [path for path in (service.data / "content").rglob("*")
              if path.is_file() and path.stat().st_size == len(content)]
    stored[0].unlink()
    target = f"/v1/events/{event['event_id']}/content"
    english = channel.live.get(target).expect(500, "internal")
    spanish = channel.live.get(target, language="es").expect(500, "internal")
    assert english.message != spanish.message
    logged = service.logged(lambda line: line["event"] == "request_failed"
                            and line["incident_id"] == english.json["incident_id"])
    assert len(logged) == 1 and logged[0]["level"] == "error"
    assert stored[0].name in logged[0]["cause"]
    assert logged[0]["request_id"] == english.headers["X-Request-Id"]
    assert stored[0].name not in english.body.decode(), "the cause is never in the body"
    assert stored[0].name not in spanish.body.decode()


def test_content_altered_where_it_is_kept_is_not_served_as_what_was_declared(start):
    """The digest of the returned content equals the event's hash, or nothing is returned."""
    service = start()
    channel = service.new_channel()
    content = b"declared " * 20000
    file = channel.live.register_file(content).expect(201).json
    small = channel.live.register({"a": 1}, "small").expect(201).json
    stored = [path for path in (service.data / "content").rglob("*")
              if path.is_file() and path.stat().st_size == len(content)]
    stored[0].chmod(0o600)
    target = f"/v1/events/{file['event_id']}/content"
    for altered in (content[:-1] + b"X", content[:-1], content + b"X", b""):
        stored[0].write_bytes(altered)
        channel.live.get(target).expect(500, "internal")
        channel.live.call("HEAD", target).expect(500)
    stored[0].write_bytes(content)
    assert channel.live.get(target).expect(200).body == content
    assert service.stop() == 0
    other = stores.blob(b'{"a":2}')
    service.store.change(f"UPDATE {stores.EVENTS} SET content = {other} WHERE client_ref = 'small'")
    service.start()
    channel.live.content(small["event_id"]).expect(500, "internal")


@pytest.mark.sqlite
def test_a_store_that_cannot_be_written_acknowledges_nothing(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    kept = [channel.live.register({"n": n}, f"kept-{n}").expect(201).json for n in range(20)]
    limit_file_size(service, 1)
    for n in range(3):
        client = Client(service, channel.live.key)
        try:
            client.register({"n": n}, f"lost-{n}").expect(503, "temporarily_unavailable")
        except (OSError, http.client.HTTPException):
            pass  # it may also end, rather than continue with a store that it cannot trust
    if service.process.poll() is None:
        limit_file_size(service, resource.RLIM_INFINITY)
    service.kill()
    service.start()
    for n in range(3):
        answer = channel.live.register({"n": n}, f"lost-{n}")
        assert answer.status in (200, 201), answer
    listed = channel.live.walk("/v1/events", 500)
    assert [event["sequence"] for event in listed] == list(range(1, 24))
    for event, found in zip(kept, listed):
        assert (found["event_id"], found["chain_hash"]) == (event["event_id"], event["chain_hash"])
    assert channel.live.balance()["balance"] == 1000 - 23
    assert service.admin("store", "check")


@pytest.mark.sqlite
def test_what_a_full_disk_refused_goes_through_once_there_is_room(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    channel.live.register({"n": 1}, "a").expect(201)
    limit_file_size(service, 1)
    process = service.process
    client = Client(service, channel.live.key)
    client.register({"n": 2}, "b").expect(503, "temporarily_unavailable")
    limit_file_size(service, resource.RLIM_INFINITY)
    client.register({"n": 2}, "b").expect(201)
    assert service.process is process and process.poll() is None, "no sync failed, nothing is lost"
    assert len(channel.live.get("/v1/events").json["data"]) == 2
