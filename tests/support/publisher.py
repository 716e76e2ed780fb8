#!/usr/bin/python3
"""Publishes the data of a certification authority (pki.py): certificates, revocation lists and OCSP responses,
over HTTP on 127.0.0.1. For tests only; needs the `openssl` command.

    GET  /NAME.crt            the certificate, DER
    GET  /NAME.crl            NAME's revocation list as of now, DER
    POST /ocsp/NAME           an OCSP request, answered by NAME's responder
    GET  /ocsp/NAME/REQUEST   the same, in base64 (RFC 6960 appendix A.1)

Modes of answers, `Publisher.mode`:
    good           the right answer
    late:SECONDS   the right answer after that time
    silent:SECONDS closes the connection after that time
    close          closes the connection at once
    error          HTTP 500
    lost           HTTP 404
    garbage        200 and bytes that are no answer
    former         the first right answer that was given there, whatever is asked
    try_later      OCSP: tryLater; lists: HTTP 503
    unknown        OCSP: the certificate is unknown; lists: HTTP 404
    wrong_signer   OCSP: signed by the responder of another issuer; lists: the list of another issuer
"""

import base64
import http.server
import pathlib
import subprocess
import tempfile
import threading
import time
import urllib.parse

from pki import Pki, openssl


TRY_LATER = bytes([0x30, 3, 0x0a, 1, 3])


def answer_ocsp(pki, name, request, *, signer=None, database=None):
    """Returns the DER response to a DER request."""
    signer = signer or name
    with tempfile.TemporaryDirectory() as directory:
        asked, answered = (pathlib.Path(directory, part) for part in ("request", "answer"))
        asked.write_bytes(request)
        openssl("ocsp", "-index", database or pki.database(), "-CA", pki.path(name + ".pem"),
                "-rsigner", pki.path(signer + "-responder.pem"),
                "-rkey", pki.path(signer + "-responder.key"), "-rmd", "sha256", "-ndays", "7",
                "-reqin", asked, "-respout", answered)
        return answered.read_bytes()


def other_issuer(pki, name):
    """Returns another issuer with a responder."""
    suffix = "-responder.pem"
    return next(path.name[:-len(suffix)] for path in sorted(pki.directory.glob("*" + suffix))
                if path.name != name + suffix)


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
        mode, _, argument = self.server.mode.partition(":")
        if mode in ("late", "silent"):
            time.sleep(float(argument))
        if mode in ("silent", "close"):
            self.close_connection = True
            return None
        with self.server.lock:
            self.server.asked.append((self.command, self.path))
            if self.server.lost or mode == "lost":
                return self.reply(404)
            if mode == "error":
                return self.reply(500)
            if mode == "garbage":
                return self.reply(200, bytes(range(256)), content_type)
            try:
                made = answer(self.server.pki, mode)
                if made is None:
                    return self.reply(503)
                if mode in ("good", "late"):
                    self.server.first.setdefault(self.path, made)
                return self.reply(200, self.server.first.get(self.path, made) if mode == "former" else made,
                                  content_type)
            except (OSError, ValueError, subprocess.CalledProcessError):
                return self.reply(404)

    def ocsp(self, name, request):
        def answer(pki, mode):
            if mode == "try_later":
                return TRY_LATER
            if mode == "unknown":
                with tempfile.NamedTemporaryFile() as nothing:
                    return answer_ocsp(pki, name, request, database=nothing.name)
            return answer_ocsp(pki, name, request, signer=other_issuer(pki, name) if mode == "wrong_signer" else None)
        self.serve(answer, "application/ocsp-response")

    def list(self, name):
        def answer(pki, mode):
            if mode == "try_later":
                return None
            if mode == "unknown":
                raise OSError(mode)
            issuer = other_issuer(pki, name) if mode == "wrong_signer" else name
            return openssl("crl", "-in", pki.write_list(issuer), "-outform", "DER").stdout
        self.serve(answer, "application/pkix-crl")

    def do_GET(self):
        name, _, kind = self.path.lstrip("/").rpartition(".")
        if self.path.startswith("/ocsp/"):
            name, _, request = self.path[len("/ocsp/"):].partition("/")
            self.ocsp(name, base64.b64decode(urllib.parse.unquote(request)))
        elif kind == "crl":
            self.list(name)
        elif kind == "crt":
            self.serve(lambda pki, _: openssl("x509", "-in", pki.path(name + ".pem"),
                                           "-outform", "DER").stdout, "application/pkix-cert")
        else:
            self.reply(404)

    def do_POST(self):
        request = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.ocsp(self.path[len("/ocsp/"):], request)


class Publisher(http.server.ThreadingHTTPServer):
    """`asked` lists the requests so far: (method, path); `first` has the first right answer of each path. While
    `lost` is set, nothing is available; while `answers` is not set, requests get no response."""

    daemon_threads = True

    def __init__(self, directory, address=("127.0.0.1", 0), **more):
        super().__init__(address, Handler)
        self.lock = threading.Lock()
        self.asked, self.lost, self.mode, self.first = [], False, "good", {}
        self.answers = threading.Event()
        self.answers.set()
        self.pki = Pki(directory, url=f"http://{address[0]}:{self.server_address[1]}", **more)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # clients that give up

    def close(self):
        self.answers.set()
        self.shutdown()
        self.server_close()
