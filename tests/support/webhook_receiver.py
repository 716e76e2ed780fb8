"""Webhook receivers for tests: a real one, which checks every signature, and scripted ones that misbehave.

    with Receiver() as receiver:
        endpoint = …create an endpoint at receiver.url…
        receiver.secrets = [endpoint["secret"]]
        delivery = receiver.next()

usage: webhook_receiver.py PORT FILE SECRET
Runs standalone and appends a line of JSON to the file for each notice before it acknowledges it.
"""

import hashlib
import hmac
import http.server
import json
import re
import socket
import ssl
import sys
import threading
import time

PATIENCE = 60
TOLERANCE = 300  # maximum age of a timestamp in seconds
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
ENVELOPE = ["id", "type", "created_at", "mode", "data"]

# The members of each type's data.
CERTIFICATION = {"certification_id", "channel_id", "status", "event_count"}
RECHARGE = {"recharge_id", "pack_id", "credits", "amount", "currency", "threshold"}
DATA = {
    "certification.completed": CERTIFICATION | {"verification_code"},
    "certification.failed": CERTIFICATION | {"incident_id"},
    "balance.low": {"threshold_id", "threshold", "balance"},
    "balance.exhausted": {"channel_id"},
    "events.unpaid_limit_reached": {"unpaid_limit", "unpaid_events", "unpaid_credits"},
    "consumption.limit_reached": {"limit_id", "scope", "channel_id", "key_id", "period",
                                  "period_key", "max_events", "action"},
    "recharge.auto_completed": RECHARGE | {"balance"},
    "recharge.auto_failed": RECHARGE | {"reason", "payment_url", "auto_recharge_disabled"},
    "event.sealed": {"sealed_at", "segments"},
    "certification.evidence_ready": CERTIFICATION | {"verification_code", "evidence_record_since"},
    "webhook.test": {"endpoint_id", "message"},
}


def signature(secret, timestamp, body):
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def problems(headers, body, secrets, prefix="SVC"):
    """Returns what is wrong with a delivery from the view of a receiver; `secrets` must all sign it."""
    found = []
    timestamp = headers.get(f"X-{prefix}-Timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE:
        found.append(f"the timestamp is {timestamp!r}")
    given = headers.get(f"X-{prefix}-Signature", "").split(",")
    expected = [f"v1={signature(secret, timestamp, body)}" for secret in secrets]
    if given != expected:
        found.append(f"{len(given)} signatures, not those expected of {len(secrets)} secrets")
    if headers.get("Content-Type") != "application/json":
        found.append(f"Content-Type is {headers.get('Content-Type')!r}")
    record = json.loads(body)
    if list(record) != ENVELOPE:
        found.append(f"the envelope has {list(record)}")
    if headers.get(f"X-{prefix}-Webhook-Id") != record["id"]:
        found.append("X-Webhook-Id is not the envelope's id")
    wanted = "tst_" if record["type"] == "webhook.test" else "ntc_"
    if not record["id"].startswith(wanted):
        found.append(f"the id is {record['id']}")
    if not TIME.fullmatch(record["created_at"]) or record["mode"] not in ("live", "test"):
        found.append(f"created_at {record['created_at']}, mode {record['mode']}")
    if set(record["data"]) != DATA.get(record["type"]):
        found.append(f"{record['type']} has the data {set(record['data'])}")
    return found


class Delivery:
    def __init__(self, path, headers, body, arrived):
        self.path, self.headers, self.body, self.arrived = path, headers, body, arrived
        self.record = json.loads(body)
        self.id, self.type, self.data = (self.record[name] for name in ("id", "type", "data"))


class Receiver:
    """Checks and records deliveries. `answer` determines the response: a status, or a function from the
    delivery to a status or (status, headers, body)."""

    def __init__(self, address="127.0.0.1", port=0, answer=200, secrets=(), prefix="SVC",
                 certificate=None):
        self.answer, self.secrets, self.prefix = answer, list(secrets), prefix
        self.deliveries, self.faults = [], []
        self.under_way = self.most_under_way = 0
        self.changed = threading.Condition()
        self.taken = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                receiver.handle(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

            def handle_error(self, *_):
                pass  # a sender that disconnected

        self.server = Server((address, port), Handler)
        scheme = "http"
        if certificate:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        host = f"[{address}]" if ":" in address else address
        self.url = f"{scheme}://{host}:{self.port}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def handle(self, handler):
        arrived = time.time()
        with self.changed:
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            self.changed.notify_all()
        try:
            body = handler.rfile.read(int(handler.headers["Content-Length"]))
            delivery = Delivery(handler.path, handler.headers, body, arrived)
            if self.secrets:
                faults = problems(handler.headers, body, self.secrets, self.prefix)
                self.faults += [f"{delivery.id}: {fault}" for fault in faults]
            answer = self.answer(delivery) if callable(self.answer) else self.answer
            status, headers, text = answer if isinstance(answer, tuple) else (answer, {}, b"")
        finally:
            with self.changed:
                self.under_way -= 1
        with self.changed:
            delivery.status = status
            self.deliveries.append(delivery)
            self.changed.notify_all()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def wait(self, question, what, patience=PATIENCE):
        end = time.monotonic() + patience
        with self.changed:
            while not question():
                left = end - time.monotonic()
                assert left > 0, (f"waited {patience} s in vain for {what}; came: "
                                  f"{[(d.id, d.type, d.status) for d in self.deliveries[-20:]]}")
                self.changed.wait(left)

    def next(self, patience=PATIENCE):
        """Returns the next delivery that was not returned yet."""
        self.wait(lambda: len(self.deliveries) > self.taken, "a delivery", patience)
        self.taken += 1
        return self.deliveries[self.taken - 1]

    def expect(self, count, patience=PATIENCE):
        """Returns all deliveries once there are `count`."""
        self.wait(lambda: len(self.deliveries) >= count, f"{count} deliveries", patience)
        self.taken = len(self.deliveries)
        return list(self.deliveries)

    def check(self):
        """Checks that all deliveries were valid."""
        assert not self.faults, self.faults[:5]


class BadReceiver:
    """A listener that runs `script(connection)` on each connection, by default after reading the request."""

    def __init__(self, script, address="127.0.0.1", read=True, context=None):
        self.script, self.read, self.context = script, read, context
        self.requests = []
        self.connections = 0
        self.listener = socket.create_server((address, 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        scheme = "https" if context else "http"
        self.url = f"{scheme}://{address}:{self.port}/hook"
        self.closed = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.play, args=(connection,), daemon=True).start()

    def play(self, connection):
        try:
            with connection:
                if self.context:
                    connection = self.context.wrap_socket(connection, server_side=True)
                if self.read:
                    self.requests.append(self.read_request(connection))
                self.script(connection)
        except (OSError, ValueError):
            pass  # the sender gave up

    @staticmethod
    def read_request(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            part = connection.recv(65536)
            if not part:
                raise OSError("no request")
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        size = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        while len(body) < size:
            body += connection.recv(65536)
        return head, body

    def close(self):
        self.closed.set()
        # A thread blocked in accept() is not woken by close() alone.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    port, path, secret = sys.argv[1:]
    with open(path, "a", encoding="utf-8") as file:
        def answer(delivery):
            line = {"id": delivery.id, "type": delivery.type, "data": delivery.data,
                    "problems": problems(delivery.headers, delivery.body, [secret])}
            file.write(json.dumps(line) + "\n")
            file.flush()
            return 200
        Receiver(port=int(port), answer=answer, secrets=[secret])
        threading.Event().wait()


if __name__ == "__main__":
    main()
