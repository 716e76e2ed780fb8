"""The service as its users see it: the program, its administration and its HTTP interface.

Every answer that comes through Client.call is checked at once for what every answer must have
(headers, the Error record), and against the schema that the service's own description of its
interface (/v1/openapi.yaml) gives it.
"""

import base64
import http.client
import json
import os
import pathlib
import re
import secrets
import urllib.parse

import jsonschema
import yaml

import program
import stores  # finds tests/support
from ports import reserve_port as free_port
from program import BINARY, PATIENCE, ROOT, DevService, NotStarted, Refused, eventually

EVENT = {"event_id", "channel_id", "client_ref", "sequence", "received_at", "occurred_at", "hash",
         "hash_alg", "modality", "chain_hash", "status", "timestamp", "config_version", "mode"}
TIMESTAMP = {"type", "reference", "sealed_at"}
CHANNEL = {"channel_id", "name", "log_tag", "mode_note", "current_config", "config_versions"}
CONFIG = {"version", "sealed_at", "modality", "name", "description", "declarant",
          "supplementary_info"}
CERTIFICATION = {"certification_id", "channel_id", "status", "progress", "requested_at",
                 "completed_at", "range", "event_count", "config_versions_in_range", "report_url",
                 "reports", "evidence_url", "evidence_record_url", "evidence_record_sha256",
                 "evidence_record_since", "evidence_record_renew_at", "verification_code", "mode",
                 "content_parts"}
RANGE = {"from", "to", "seq_from", "seq_to"}
REPORT = {"languages", "url", "sha256"}
PART = {"name", "url", "sha256", "bytes"}
BALANCE = {"balance", "operational", "unpaid_events"}
ERROR = {"code", "message", "doc_url", "incident_id", "event_id"}
LIST = {"data", "has_more", "next_cursor"}

STATUSES = {
    "validation_error": {400, 405, 416, 431}, "invalid_key": {401}, "revoked_key": {401},
    "unpaid_limit_exceeded": {402}, "account_not_operational": {402},
    "insufficient_balance": {402}, "suspended": {403}, "account_disabled": {403},
    "not_found": {404}, "client_ref_conflict": {409}, "payload_too_large": {413},
    "limit_blocked": {422}, "rate_limited": {429}, "test_quota_exceeded": {429},
    "internal": {500}, "temporarily_unavailable": {503},
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
HASH = re.compile(r"[0-9a-f]{64}")


def fresh(name="ref"):
    return f"{name}-{secrets.token_hex(8)}"


class Answer:
    def __init__(self, method, target, status, headers, body):
        self.method = method
        self.target = target
        self.status = status
        self.headers = headers  # an email.message.Message: names without regard to case
        self.body = body

    def __repr__(self):
        return f"<{self.method} {self.target[:200]}: {self.status} {self.body[:600]!r}>"

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of an Error record."""
        assert self.headers.get_content_type() == "application/json", self
        return self.json["code"]

    @property
    def message(self):
        return self.json["message"]

    def expect(self, status, code=None):
        assert self.status == status, self
        if code:
            assert self.code == code, self
        return self


def check_promises(answer):
    """What every answer of the interface has."""
    headers = answer.headers
    for name in ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"):
        values = headers.get_all(name, [])
        assert len(values) == 1 and values[0].isdigit(), (name, answer, headers.items())
    assert int(headers["RateLimit-Remaining"]) <= int(headers["RateLimit-Limit"]), answer
    assert headers.get("X-Request-Id"), answer
    assert headers.get("Content-Type") or answer.status // 100 == 3, answer
    assert headers.get("Content-Language") in ("en", "es", "en, es"), answer
    assert "accept-language" in headers.get("Vary", "").lower(), answer
    drawn_with = answer.target.startswith(("/assets/", "/log/")) and answer.status < 400
    assert drawn_with or headers.get("Cache-Control") == "no-store", answer
    if answer.status >= 400:
        check_error(answer)
    else:
        check_wait(answer)


def check_wait(answer):
    """A certification in processing says when to ask again, and nothing else without an error does."""
    retry_after = answer.headers.get("Retry-After")
    path = answer.target.partition("?")[0]
    asked = (answer.method, answer.status) == ("POST", 202) and path == "/v1/certifications" or \
        (answer.method, answer.status) == ("GET", 200) and re.fullmatch("/v1/certifications/[^/]+", path)
    if asked and answer.json["status"] == "processing":
        assert retry_after and 1 <= int(retry_after) <= 60, answer
    elif answer.method != "HEAD":
        assert retry_after is None, answer


def check_error(answer):
    headers = answer.headers
    retry_after = headers.get("Retry-After")
    blocked = answer.status == 422 and answer.code == "limit_blocked"
    if answer.status in (429, 503) or blocked:
        assert retry_after and retry_after.isdigit() and int(retry_after) >= 1, answer
    else:
        assert retry_after is None, answer
    assert (headers.get("WWW-Authenticate") == "Bearer") == (answer.status == 401), answer
    assert bool(headers.get("Allow")) == (answer.status == 405), answer
    if answer.method == "HEAD" or headers.get_content_type() == "text/html":
        return
    record = answer.json
    assert set(record) == ERROR, answer
    assert answer.status in STATUSES[record["code"]], answer
    assert isinstance(record["message"], str) and record["message"], answer
    assert record["doc_url"] is None or record["doc_url"].startswith("http"), answer
    if answer.status == 409 and answer.target.endswith("/events"):
        assert record["event_id"] and record["event_id"] in record["message"], answer
    else:
        assert record["event_id"] is None, answer
    if answer.status >= 500:
        assert re.fullmatch(r"inc_\w+", record["incident_id"]), answer
    else:
        assert record["incident_id"] is None, answer


def check_outcome(line):
    """What every line of the answer to a batch has."""
    if line["http_status"] < 300:
        assert set(line) == EVENT | {"http_status", "receipt"}, line
        return
    assert set(line) == ERROR | {"client_ref", "retry_after", "http_status"}, line
    assert line["http_status"] in STATUSES[line["code"]], line
    assert (line["retry_after"] is not None) == (line["http_status"] in (422, 429, 503)), line
    assert (line["event_id"] is not None) == (line["http_status"] == 409), line
    assert (line["incident_id"] is not None) == (line["http_status"] >= 500), line


# Stricter than RFC 3339: what the service sends has one form alone.
FORMATS = jsonschema.FormatChecker(formats=())
FORMATS.checks("date-time")(lambda value: not isinstance(value, str) or TIME.fullmatch(value))


class Description:
    """An OpenAPI document as a judge of what the service sends."""

    named = set()  # operations of all documents
    judged = set()  # those of them that an answer was judged by

    def __init__(self, text):
        self.document = yaml.load(text, yaml.CSafeLoader)
        self.resolver = jsonschema.RefResolver("", self.document)
        self.paths = []
        # What follows a # is not sent: such an operation is another one's, with another body.
        paths = {template: item for template, item in self.document.get("paths", {}).items()
                 if "#" not in template}
        for template, item in paths.items():
            prefix = self.server_path(item.get("servers") or self.document["servers"])
            pattern = re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(prefix + template))
            self.paths.append((re.compile(pattern), item))
        self.named.update(operation["operationId"] for item in paths.values()
                          for method, operation in item.items() if method in ("get", "post"))
        # A fixed path is meant before one with places.
        self.paths.sort(key=lambda path: path[0].pattern.count("[^/]+"))

    @staticmethod
    def server_path(servers):
        """The part before a path, without the address of the installation."""
        url = servers[0]["url"]
        for name, variable in servers[0].get("variables", {}).items():
            url = url.replace("{" + name + "}", variable["default"])
        return urllib.parse.urlsplit(url).path.rstrip("/")

    def resolve(self, node):
        while "$ref" in node:
            node = self.resolver.resolve(node["$ref"])[1]
        return node

    def validator(self, schema):
        return jsonschema.Draft202012Validator(schema, resolver=self.resolver,
                                               format_checker=FORMATS)

    def operation(self, method, path):
        for pattern, item in self.paths:
            if pattern.fullmatch(path):
                return self.resolve(item).get("get" if method == "HEAD" else method.lower())
        return None

    def check(self, answer):
        path = urllib.parse.urlsplit(answer.target).path
        operation = self.operation(answer.method, path)
        if operation is None:
            described = answer.status in (400, 404, 405, 413, 429) or not path.startswith("/v1/")
            assert described, f"{answer} is of an operation that /v1/openapi.yaml does not name"
            return
        responses = operation["responses"]
        response = responses.get(str(answer.status)) or responses.get(f"{answer.status // 100}XX")
        assert response, f"{answer} has a status that /v1/openapi.yaml does not give it"
        self.judged.add(operation["operationId"])
        response = self.resolve(response)
        for name, header in response.get("headers", {}).items():
            if self.resolve(header).get("required"):
                assert name in answer.headers, f"{answer} lacks the header {name}"
        if answer.method == "HEAD" or not answer.body:
            return
        media_type = answer.headers.get_content_type()
        content = response.get("content", {})
        assert media_type in content, f"{answer} is {media_type}, which is not described"
        schema = content[media_type].get("schema")
        if schema and media_type == "application/json":
            self.validator(schema).validate(answer.json)


def read_answer(answers, method, target):
    """The next of a connection on which requests were sent without waiting for their answers."""
    status = int(answers.readline().split()[1])
    headers = http.client.parse_headers(answers)
    return Answer(method, target, status, headers, answers.read(int(headers["Content-Length"])))


class Client:
    """One kept connection, with or without a key."""

    def __init__(self, service, key=None):
        self.service = service
        self.key = key
        self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def exchange(self, method, target, body, headers):
        for attempt in (1, 2):
            reused = self.connection is not None
            if not reused:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.service.port,
                                                             timeout=PATIENCE)
            try:
                self.connection.request(method, target, body=body, headers=headers)
                response = self.connection.getresponse()
                answer = Answer(method, target, response.status, response.headers, response.read())
                if response.will_close:
                    self.close()
                return answer
            except (http.client.HTTPException, ConnectionError):
                self.close()
                if not reused or attempt == 2:
                    raise

    def call(self, method, target, body=None, headers=None, *, language=None, scenario=None,
             query=None):
        """A body that is not bytes is sent as JSON."""
        sent = {}
        if self.key:
            sent["Authorization"] = f"Bearer {self.key}"
        if language:
            sent["Accept-Language"] = language
        if scenario:
            sent["X-SVC-Test-Scenario"] = scenario
        if body is not None and not isinstance(body, (bytes, bytearray)):
            body = json.dumps(body, ensure_ascii=False).encode()
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        if query:
            target += "?" + urllib.parse.urlencode(query)
        answer = self.exchange(method, target, body, sent)
        self.judge(answer)
        return answer

    def judge(self, answer):
        check_promises(answer)
        if self.service.description:
            self.service.description.check(answer)

    def get(self, target, **more):
        return self.call("GET", target, **more)

    def post(self, target, body, **more):
        return self.call("POST", target, body, **more)

    # ---- the operations ----

    def register(self, payload=None, client_ref=None, occurred_at=None, **more):
        body = {"client_ref": fresh() if client_ref is None else client_ref,
                "payload": {} if payload is None else payload}
        if occurred_at is not None:
            body["occurred_at"] = occurred_at
        return self.post("/v1/events", body, **more)

    def send_batch(self, items, array=False, **more):
        """POST /v1/events/batch. An item that is bytes is sent as it is."""
        texts = [item if isinstance(item, bytes) else json.dumps(item, ensure_ascii=False).encode() for item in items]
        body = b"[" + b",".join(texts) + b"]" if array else b"\n".join(texts)
        headers = {"Content-Type": "application/json" if array else "application/x-ndjson", **more.pop("headers", {})}
        return self.post("/v1/events/batch", body, headers=headers, **more)

    def register_batch(self, items, array=False, **more):
        """The outcomes, one for each item, each judged by its description."""
        answer = self.send_batch(items, array, **more).expect(200)
        assert answer.headers.get_content_type() == "application/x-ndjson", answer
        lines = [json.loads(line) for line in answer.body.splitlines()]
        assert len(lines) == len(items), answer
        if self.service.description:
            schema = {"$ref": "#/components/schemas/BatchOutcome"}
            for line in lines:
                self.service.description.validator(schema).validate(line)
                check_outcome(line)
        return lines

    def register_hash(self, digest, client_ref=None, hash_alg="sha-256", occurred_at=None, **more):
        body = {"client_ref": fresh() if client_ref is None else client_ref, "hash": digest,
                "hash_alg": hash_alg}
        if occurred_at is not None:
            body["occurred_at"] = occurred_at
        return self.post("/v1/events", body, **more)

    def register_file(self, content, client_ref=None, name="file.bin", occurred_at=None, **more):
        fields = [("client_ref", fresh() if client_ref is None else client_ref)]
        if occurred_at is not None:
            fields.append(("occurred_at", occurred_at))
        content_type, body = form(*fields, ("file", content, name))
        headers = {"Content-Type": content_type, **more.pop("headers", {})}
        return self.call("POST", "/v1/events", body, headers, **more)

    def event(self, event_id):
        return self.get(f"/v1/events/{event_id}").expect(200).json

    def content(self, event_id):
        return self.get(f"/v1/events/{event_id}/content")

    def balance(self):
        return self.get("/v1/account/balance").expect(200).json

    def certify(self, **range_and_more):
        wanted = {name: range_and_more.pop(name) for name in ("seq_from", "seq_to", "to", "seal_history")
                  if name in range_and_more}
        if "start" in range_and_more:
            wanted["from"] = range_and_more.pop("start")
        return self.post("/v1/certifications", wanted, **range_and_more)

    def certification(self, certification_id, **more):
        return self.get(f"/v1/certifications/{certification_id}", **more).expect(200).json

    def certified(self, **range_and_more):
        """A certification that is over."""
        accepted = self.certify(**range_and_more).expect(202).json
        return self.settled(accepted["certification_id"])

    def settled(self, certification_id):
        def look():
            record = self.certification(certification_id)
            return record if record["status"] != "processing" else None
        return eventually(look, f"{certification_id} is issued", 5 * PATIENCE)

    def sealed(self, event_id):
        """An event once its segment is sealed."""
        def look():
            event = self.event(event_id)
            return event if event["timestamp"]["type"] == "batch" else None
        return eventually(look, f"{event_id} is sealed", 5 * PATIENCE)

    def download(self, url, method="GET", headers=None):
        """By a link of the interface, without the key."""
        parts = urllib.parse.urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}" == self.service.public_url, url
        open_client = Client(self.service)
        answer = open_client.call(method, f"{parts.path}?{parts.query}", headers=headers)
        open_client.close()
        return answer

    def walk(self, target, limit, **filters):
        """All items of a list, page by page."""
        items, query = [], {"limit": limit, **filters}
        while True:
            page = self.get(target, query=query).expect(200).json
            assert set(page) == LIST
            assert len(page["data"]) <= limit
            items += page["data"]
            assert page["has_more"] == (page["next_cursor"] is not None)
            if not page["has_more"]:
                return items
            query["cursor"] = page["next_cursor"]


def form(*fields, boundary="boundary-of-the-tests"):
    """Content type and body of multipart/form-data: (name, text) or (name, bytes, file name)."""
    body = b""
    for name, value, *file_name in fields:
        body += f"--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"".encode()
        if file_name:
            body += b'; filename="' + file_name[0].encode() + b'"\r\n'
            body += b"Content-Type: application/octet-stream"
        body += b"\r\n\r\n" + (value if isinstance(value, bytes) else value.encode()) + b"\r\n"
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()


def basic(key):
    return "Basic " + base64.b64encode(f"{key}:".encode()).decode()


def run(*arguments, environment=None, timeout=5 * PATIENCE, **more):
    """The program, to its end."""
    return program.run([BINARY, *arguments], environment, timeout, **more)


class Channel:
    """A channel of an account of its own, unless another one's account is given."""

    def __init__(self, service, account_id, record, keys):
        self.service = service
        self.account_id = account_id
        self.id = record["channel_id"]
        self.live_key, self.test_key = keys["live"], keys["test"]
        self.live = Client(service, self.live_key["key"])
        self.test = Client(service, self.test_key["key"])

    def client(self, mode):
        return {"live": self.live, "test": self.test}[mode]

    def close(self):
        self.live.close()
        self.test.close()


class Administration:
    """Owners and what is theirs, by the administration commands of `admin`. `secrets` are what must
    not be in the log."""

    def entry(self):
        """The service that clients of a channel use."""
        return self

    def new_account(self, credits=1000, **flags):
        return self.admin("account", "create", "--name", "An account", "--credits", credits,
                          *(text for name, value in flags.items()
                            for text in (f"--{name.replace('_', '-')}", value)))["account_id"]

    def new_key(self, channel_id, mode):
        key = self.admin("key", "create", "--channel", channel_id, "--mode", mode)
        self.secrets.add(key["key"])
        return key

    def new_channel(self, modality="content", account_id=None, credits=1000, **flags):
        account_id = account_id or self.new_account(credits, **flags)
        record = self.admin("channel", "create", "--account", account_id, "--name", "A channel",
                            "--declarant", "A declarant", "--modality", modality)
        keys = {mode: self.new_key(record["channel_id"], mode) for mode in ("live", "test")}
        return Channel(self.entry(), account_id, record, keys)

    def acts_sealed(self, *words):
        """The entries of the audit log that `audit list` has by these words, once all are sealed. With an
    interval of an hour, later ones are sealed only if a certification waits for them."""
        def look():
            acts = self.admin("audit", "list", "--limit", "1000", *words)["data"]
            return acts if all(act["seal"] for act in acts) else None
        return eventually(look, "the acts are sealed")


class Service(Administration, DevService):
    """On a directory of its own, and on a store of the kind that is tested."""

    restore_signals = False  # SIGXFSZ stays ignored

    def __init__(self, directory, environment=None, describe=True, prepared=True, **settings):
        directory = pathlib.Path(directory)
        data = directory / "data"
        if loops := os.environ.get("CONSTANCIA_TEST_HTTP_LOOPS"):
            settings.setdefault("http__loops", loops)
        self.describe = describe
        self.store = None if "store__url" in settings else stores.make(data, prepared)
        super().__init__(data, directory / "log",
                         {**(self.store.settings() if self.store else {}),
                          **{name.replace("__", "."): value for name, value in settings.items()}},
                         ready_file=directory / "ready.json", environment=environment)
        self.printed = directory / "printed"
        self.secrets = set()
        self.admin_port = free_port()
        self.public_url = f"http://127.0.0.1:{self.port}"
        self.description = None

    def serving(self):
        return [*super().serving(), f"--set=service.admin_listen=127.0.0.1:{self.admin_port}"]

    def start(self, seconds=PATIENCE):
        try:
            super().start(seconds)
        except NotStarted:
            self.kill()
            raise
        for channel in self.ready["channels"].values():
            self.secrets |= {channel["live_key"], channel["test_key"]}
        if self.describe and not self.description:
            self.describe_self()
        return self

    def describe_self(self):
        answer = Client(self).get("/v1/openapi.yaml").expect(200)
        self.description = Description(answer.body)

    def distribute(self):
        """The tables of a store that was not prepared, where they are to be."""
        if stores.DISTRIBUTED:
            done = run("store", "distribute", *self.chosen())
            assert done.returncode == 0, done.stderr

    def discard(self):
        """Ends it, whatever it says to that, and its store."""
        self.kill()
        if self.store:
            self.store.discard()

    def monitor(self, path):
        """The operator's listener: status and text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=PATIENCE)
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def metric(self, name):
        """What /metrics says of it, since the start or now."""
        _, text = self.monitor("/metrics")
        (line,) = [line for line in text.splitlines() if line.split(" ")[0] == "constancia_" + name]
        return float(line.split()[1])
