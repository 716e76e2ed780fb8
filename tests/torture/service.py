"""A running `constancia dev` for programs that treat it badly, and a client for it."""

import hashlib
import http.client
import json
import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from program import (BINARY, ROOT, DevService, NotStarted, Refused,  # noqa: E402
                     kill_groups)

VOLATILE = ("status", "timestamp", "proof", "receipt")  # a receipt is of one answer


class Service(DevService):
    def __init__(self, data, settings=None, **more):
        super().__init__(data, data + ".log", {"service.admin_listen": "", "rate.live": "1000000",
                                               "rate.test": "1000000", **(settings or {})}, **more)

    def kill(self):
        """With what wraps it, and the signing process."""
        if self.process:
            kill_groups([self.process])
        super().kill()


class Client:
    """One connection, opened again after it broke."""

    def __init__(self, port, timeout=30, address="127.0.0.1"):
        self.port = port
        self.address = address
        self.timeout = timeout
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def request(self, method, path, key, body=None, content_type="application/json"):
        """(status, headers, bytes); OSError or HTTPException when there was no whole answer."""
        if not self.connection:
            self.connection = http.client.HTTPConnection(self.address, self.port,
                                                         timeout=self.timeout)
        headers = {"Authorization": "Bearer " + key}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            self.connection.request(method, "/v1" + path, body, headers)
            response = self.connection.getresponse()
            return response.status, response.headers, response.read()
        except BaseException:
            self.close()
            raise

    def get(self, path, key):
        status, _, body = self.request("GET", path, key)
        return status, json.loads(body)

    def register(self, key, declaration):
        return self.request("POST", "/events", key, declaration.body, declaration.content_type)

    def events(self, key):
        """Every event of the key's chain, in order."""
        cursor, events = "", []
        while True:
            status, page = self.get("/events?limit=500" + cursor, key)
            if status != 200:
                raise AssertionError(f"list of events: {status} {page}")
            events += page["data"]
            if not page["has_more"]:
                return events
            cursor = "&cursor=" + page["next_cursor"]


class Declaration:
    """A registration's body, the content it declares, and that content's digest."""

    def __init__(self, client_ref, body, content_type, content, digest):
        self.client_ref = client_ref
        self.body = body
        self.content_type = content_type
        self.content = content
        self.digest = digest


def declare_json(client_ref, text):
    content = json.dumps({"note": text}, separators=(",", ":")).encode()
    body = b'{"client_ref":"%s","payload":%s}' % (client_ref.encode(), content)
    return Declaration(client_ref, body, "application/json", content,
                       hashlib.sha256(content).hexdigest())


def declare_hash(client_ref, text):
    digest = hashlib.sha256(text.encode()).hexdigest()
    body = json.dumps({"client_ref": client_ref, "hash": digest, "hash_alg": "sha-256"}).encode()
    return Declaration(client_ref, body, "application/json", None, digest)


def declare_file(client_ref, content):
    boundary = uuid.uuid4().hex
    body = (f'--{boundary}\r\nContent-Disposition: form-data; name="client_ref"\r\n\r\n'
            f'{client_ref}\r\n--{boundary}\r\nContent-Disposition: form-data; name="file"; '
            f'filename="declared.bin"\r\nContent-Type: application/octet-stream\r\n\r\n').encode()
    body += content + f"\r\n--{boundary}--\r\n".encode()
    return Declaration(client_ref, body, "multipart/form-data; boundary=" + boundary, content,
                       hashlib.sha256(content).hexdigest())


def lasting(event):
    """What of an Event may never change, as text in the order given; takes bytes or a dict."""
    if isinstance(event, bytes):
        event = json.loads(event)
    return json.dumps({name: value for name, value in event.items() if name not in VOLATILE})


class Report:
    """Counts what was checked and says at once what failed."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, good, what):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED:", what, flush=True)
        return good

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0


__all__ = ["BINARY", "ROOT", "Client", "Declaration", "NotStarted", "Refused", "Report", "Service",
           "declare_file", "declare_hash", "declare_json", "lasting"]
