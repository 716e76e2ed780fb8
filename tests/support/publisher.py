#!/usr/bin/python3
"""Publishes the data of a certification authority (pki.py): certificates, revocation lists and OCSP responses,
over HTTP on 127.0.0.1. For tests only; needs the `openssl` command.

    GET  /NAME.crt            the certificate, DER
    GET  /NAME.crl            NAME's revocation list as of now, DER
    POST /ocsp/NAME           an OCSP request, answered by NAME's responder
    GET  /ocsp/NAME/REQUEST   the same, in base64 (RFC 6960 appendix A.1)
"""

import base64
import http.server
import pathlib
import subprocess
import tempfile
import threading
import urllib.parse

from pki import Pki, openssl


def answer_ocsp(pki, name, request):
    """Returns the DER response to a DER request."""
    with tempfile.TemporaryDirectory() as directory:
        asked, answered = (pathlib.Path(directory, part) for part in ("request", "answer"))
        asked.write_bytes(request)
        openssl("ocsp", "-index", pki.database(), "-CA", pki.path(name + ".pem"),
                "-rsigner", pki.path(name + "-responder.pem"),
                "-rkey", pki.path(name + "-responder.key"), "-rmd", "sha256", "-ndays", "7",
                "-reqin", asked, "-respout", answered)
        return answered.read_bytes()


HANGS_SECONDS = 600


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, format, *args):
        pass

    def reply(self, status, body=b"", content_type="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve(self, answer, content_type):
        """Serves one request at a time: `openssl ca` uses fixed files."""
        if not self.server.answers.is_set():
            self.server.asked.append((self.command, self.path))
            self.server.answers.wait(HANGS_SECONDS)
            self.close_connection = True
            return None
        with self.server.lock:
            self.server.asked.append((self.command, self.path))
            if self.server.lost:
                return self.reply(404)
            try:
                return self.reply(200, answer(self.server.pki), content_type)
            except (OSError, ValueError, subprocess.CalledProcessError):
                return self.reply(404)

    def ocsp(self, name, request):
        self.serve(lambda pki: answer_ocsp(pki, name, request), "application/ocsp-response")

    def do_GET(self):
        name, _, kind = self.path.lstrip("/").rpartition(".")
        if self.path.startswith("/ocsp/"):
            name, _, request = self.path[len("/ocsp/"):].partition("/")
            self.ocsp(name, base64.b64decode(urllib.parse.unquote(request)))
        elif kind == "crl":
            self.serve(lambda pki: openssl("crl", "-in", pki.write_list(name),
                                           "-outform", "DER").stdout, "application/pkix-crl")
        elif kind == "crt":
            self.serve(lambda pki: openssl("x509", "-in", pki.path(name + ".pem"),
                                           "-outform", "DER").stdout, "application/pkix-cert")
        else:
            self.reply(404)

    def do_POST(self):
        request = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.ocsp(self.path[len("/ocsp/"):], request)


class Publisher(http.server.ThreadingHTTPServer):
    """`asked` lists the requests so far: (method, path). While `lost` is set, nothing is available; while
    `answers` is not set, requests get no response."""

    daemon_threads = True

    def __init__(self, directory, **more):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.asked, self.lost = [], False
        self.answers = threading.Event()
        self.answers.set()
        self.pki = Pki(directory, url=f"http://127.0.0.1:{self.server_address[1]}", **more)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # clients that give up

    def close(self):
        self.answers.set()
        self.shutdown()
        self.server_close()
