"""A running `constancia dev` for programs that treat it badly, and a client for it."""

import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from ports import reserve_port as free_port  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("CONSTANCIA", os.path.join(ROOT, "build", "constancia"))
VOLATILE = ("status", "timestamp", "proof")


class NotStarted(Exception):
    """The service ended, or did not say that it is ready."""


class Refused(Exception):
    """An administration command that did not exit 0."""


class Service:
    def __init__(self, data, settings=(), wrap=()):
        self.data = data
        self.settings = ["service.admin_listen=", "rate.live=1000000", "rate.test=1000000",
                         *settings]
        self.wrap = list(wrap)
        self.port = free_port()
        self.process = None
        self.log = data + ".log"
        self.ready_file = data + ".ready"

    def spawn(self):
        if os.path.exists(self.ready_file):
            os.unlink(self.ready_file)
        command = [*self.wrap, BINARY, "dev", "--data", self.data,
                   "--listen", f"127.0.0.1:{self.port}", "--ready-file", self.ready_file]
        for setting in self.settings:
            command += ["--set", setting]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True)

    def wait_ready(self, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise NotStarted(f"ended with {self.process.returncode}")
            try:
                with open(self.ready_file, encoding="utf-8") as file:
                    return json.load(file)
            except (FileNotFoundError, ValueError):
                time.sleep(0.01)
        raise NotStarted(f"not ready after {seconds} s")

    def start(self, seconds=30):
        self.spawn()
        return self.wait_ready(seconds)

    def kill(self):
        """kill -9 of the process group, which takes the signing process too."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(40)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def cli(self, *arguments):
        command = [BINARY, *arguments, "--data", self.data, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise Refused(f"{' '.join(arguments)}: exit {done.returncode}: "
                          f"{done.stderr.strip()[-500:]} {done.stdout.strip()[-500:]}")
        return json.loads(done.stdout)

    def log_tail(self, lines=15):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-lines:])


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
