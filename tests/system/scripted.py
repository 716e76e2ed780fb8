"""A server whose answers a test writes, for the tests of the clients, and the path of the Python client."""

import contextlib
import copy
import http.server
import socketserver
import sys
import threading

import pytest

from client import ROOT

CLIENT = ROOT / "clients" / "python"
sys.path.insert(0, str(CLIENT))


class Script(http.server.BaseHTTPRequestHandler):
    """Each request is answered by the next of the server's answers: a function of this handler,
    which may end the connection instead."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        self.body = self.rfile.read(length)
        self.server.seen.append(copy.copy(self))  # a kept connection has one handler for all requests
        self.server.answers.pop(0)(self)

    do_GET = do_POST = answer

    def log_message(self, *words):
        pass


def say(status, body=b"", **headers):
    def answer(handler):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return answer


def last(status, body):
    """Answers well, and then ends the connection without a word."""
    def answer(handler):
        say(status, body)(handler)
        handler.close_connection = True
    return answer


def hang_up(handler):
    handler.close_connection = True


def cut(body, length, status=200, **headers):
    """Tells a length, and ends before."""
    def answer(handler):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True
    return answer


def chunked(body, count=1):
    """Tells no length."""
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        with contextlib.suppress(ConnectionError):  # the client has had enough
            for _ in range(count):
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
            handler.wfile.write(b"0\r\n\r\n")
            return
        handler.close_connection = True
    return answer


class Threaded(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


@pytest.fixture
def script():
    server = Threaded(("127.0.0.1", 0), Script)
    server.seen, server.answers, server.statuses = [], [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield server
    server.shutdown()
    server.server_close()
