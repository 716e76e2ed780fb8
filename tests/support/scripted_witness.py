"""A witness of transparency logs (C2SP tlog-witness), written from the specification alone, that can also misbehave.

    witness = ScriptedWitness("witness.example/one", [vkey of the log])    .url, .vkey
    witness.behaviour = "refuse"          of all later requests; "cosign" at first

Behaviours: cosign; refuse (422), conflict (409 with a size that no log has), down (the connection is closed), lie (the
cosignature is of another text), other (the signature of an unknown key), empty (200 without a line), error (500),
repeat (its line 60 times).
"""

import base64
import http.server
import threading
import time

from tlog import COSIGNATURE, InvalidSignature, Key, is_consistent, parse_checkpoint, parse_note, sha256, verify_note


class Refusal(Exception):
    def __init__(self, status, body="", kind="text/plain; charset=utf-8"):
        super().__init__(status)
        self.status, self.body, self.kind = status, body, kind


class ScriptedWitness(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, name, logs, port=0):
        self.key = Key(name, COSIGNATURE)
        self.logs = {vkey.split("+")[0]: vkey for vkey in logs}
        self.behaviour = "cosign"
        self.known = {}      # origin: (size, root)
        self.cosigned = []   # (origin, size, root)
        self.requests = []   # (old size, size or None, status)
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/w"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def vkey(self):
        return self.key.vkey

    def close(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # clients that were killed

    def cosign(self, body):
        head, _, note = body.partition("\n\n")
        old, *proof = head.split("\n")
        text, _ = parse_note(note)
        origin, size, root = parse_checkpoint(text)
        word, old_size = old.split(" ")
        old_size = int(old_size)
        if word != "old" or old_size > size:
            raise Refusal(400)
        if origin not in self.logs:
            raise Refusal(404)
        try:
            signed = verify_note(note, self.logs[origin])
        except InvalidSignature:
            signed = []
        if not signed:
            raise Refusal(403)
        with self._lock:
            known_size, known_root = self.known.get(origin, (0, sha256(b"")))
            if old_size != known_size:
                raise Refusal(409, f"{known_size}\n", "text/x.tlog.size")
            path = [base64.b64decode(line, validate=True) for line in proof]
            if not is_consistent(known_size, known_root, size, root, path):
                raise Refusal(422)
            self.known[origin] = (size, root)
            self.cosigned.append((origin, size, root))
        return self.key.cosign(text, int(time.time()))

    def answer(self, body):
        if self.behaviour == "refuse":
            raise Refusal(422)
        if self.behaviour == "conflict":
            raise Refusal(409, f"{1 << 40}\n", "text/x.tlog.size")
        if self.behaviour == "error":
            raise Refusal(500)
        if self.behaviour == "empty":
            return ""
        if self.behaviour == "lie":
            return self.key.cosign("another.example\n1\nAAAA\n", int(time.time()))
        if self.behaviour == "other":
            return Key(self.key.name, COSIGNATURE).cosign(parse_note(body)[0], int(time.time()))
        return self.cosign(body) * (60 if self.behaviour == "repeat" else 1)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.server.behaviour == "down":
            self.close_connection = True
            return
        status, kind = 200, "text/plain; charset=utf-8"
        try:
            answer = self.server.answer(body) if self.path == "/w/add-checkpoint" else None
            if answer is None:
                status, answer = 404, ""
        except Refusal as refusal:
            status, answer, kind = refusal.status, refusal.body, refusal.kind
        self.server.requests.append((body.split("\n", 1)[0], status))
        data = answer.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass
