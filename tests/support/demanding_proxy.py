#!/usr/bin/python3
"""A TLS proxy in front of a timestamp authority, which requires credentials. For tests only.

    demanding_proxy.py --directory DIR --target URL [--port-file FILE]
                       [--basic USER:PASSWORD] [--bearer TOKEN] [--mutual]

Creates its certificates in DIR unless they exist: root.pem, a private root that clients must trust; client.pem
and client.key, the client certificate for --mutual. Listens on 127.0.0.1 and writes the port number to FILE
once it serves. Requests without the required header are answered with 401; clients without a certificate of
that root are rejected in the handshake.

Needs only Python's standard library and the `openssl` command.
"""

import argparse
import base64
import hmac
import http.server
import os
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

CONFIG = """
[req]
distinguished_name = dn
[dn]
[root]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
subjectAltName = IP:127.0.0.1, DNS:localhost
extendedKeyUsage = serverAuth
[client]
extendedKeyUsage = clientAuth
"""


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


class Certificates:
    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        if os.path.exists(self.path("ready")):
            return
        with open(self.path("openssl.cnf"), "w", encoding="ascii") as file:
            file.write(CONFIG)
        for name, issuer in (("root", None), ("server", "root"), ("client", "root"),
                             ("stranger_root", None), ("stranger", "stranger_root")):
            self.make(name, issuer)
        open(self.path("ready"), "w", encoding="ascii").close()

    def path(self, name):
        return os.path.join(self.directory, name)

    def make(self, name, issuer):
        key, request, certificate = (self.path(name + end) for end in (".key", ".csr", ".pem"))
        config = self.path("openssl.cnf")
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", key, "-out", request, "-config", config, "-subj", f"/CN={name}")
        signed_by = (["-CA", self.path(issuer + ".pem"), "-CAkey", self.path(issuer + ".key"),
                      "-CAcreateserial"] if issuer else ["-signkey", key])
        kind = "root" if not issuer else "server" if name == "server" else "client"
        run("openssl", "x509", "-req", "-in", request, "-out", certificate, "-days", "3650",
            "-sha256", "-extfile", config, "-extensions", kind, *signed_by)
        os.chmod(key, 0o600)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, format, *args):
        pass

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = self.headers.get("Authorization", "")
        self.server.seen.append(given)
        if self.server.demanded and not hmac.compare_digest(given, self.server.demanded):
            self.reply(401, b"who are you?", [("WWW-Authenticate", "Basic realm=tsa")])
            return
        request = urllib.request.Request(
            self.server.target, body, {"Content-Type": self.headers["Content-Type"]})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.reply(answer.status, answer.read(),
                           [("Content-Type", answer.headers["Content-Type"])])
        except urllib.error.HTTPError as error:
            self.reply(error.code, error.read())
        except OSError as error:
            self.reply(502, str(error).encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, certificates, target, basic=None, bearer=None, mutual=False):
        super().__init__(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.path("server.pem"), certificates.path("server.key"))
        if mutual:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(certificates.path("root.pem"))
        # Each connection performs its handshake in its own thread.
        self.socket = context.wrap_socket(self.socket, server_side=True,
                                          do_handshake_on_connect=False)
        self.target = target
        self.seen = []
        self.demanded = None
        if basic:
            self.demanded = "Basic " + base64.b64encode(basic.encode()).decode()
        if bearer:
            self.demanded = "Bearer " + bearer
        self.url = f"https://127.0.0.1:{self.server_address[1]}/"

    def finish_request(self, request, client_address):
        """Reads what a rejected client sends, since a reset could overtake the alert with the reason."""
        try:
            request.do_handshake()
        except ssl.SSLError:
            with socket.socket(fileno=request.detach()) as plain:
                plain.settimeout(10)
                plain.shutdown(socket.SHUT_WR)
                while plain.recv(65536):
                    pass
            return
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # clients rejected in the handshake


def main():
    parser = argparse.ArgumentParser(description="a proxy that demands credentials")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--port-file")
    parser.add_argument("--basic")
    parser.add_argument("--bearer")
    parser.add_argument("--mutual", action="store_true")
    options = parser.parse_args()
    server = Server(Certificates(options.directory), options.target, options.basic, options.bearer,
                    options.mutual)
    if options.port_file:
        with open(options.port_file + ".new", "w", encoding="ascii") as file:
            file.write(f"{server.server_address[1]}\n")
        os.rename(options.port_file + ".new", options.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
