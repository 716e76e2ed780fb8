#!/usr/bin/python3
"""A substitute RFC 3161 timestamp authority that can also misbehave. For tests only.

    timestamp_authority.py --directory DIR [--port N] [--port-file FILE] [--mode MODE]

Creates its certificates in DIR unless they exist (clients trust root.pem), listens on 127.0.0.1, and writes
the port number to FILE once it serves.

    POST /        a timestamp query; the mode determines the response
    PUT  /mode    sets the mode, as plain text; 204, or 400 for an unknown one
    GET  /mode    the mode
    GET  /count   the number of timestamp queries so far
    GET  /middle.crt   the intermediate certificate, DER
    GET  /middle.p7c   the same as PKCS#7

Modes:
    good            a valid timestamp
    no_accuracy     a valid one without accuracy
    named           a valid one with the authority's name (tsa) from its certificate and an extension that
                    is not critical
    ber             a valid one in BER with indefinite lengths, like the response
    alone           a valid one with only the authority's own certificate, issued by the intermediate whose
                    certificate is at GET /middle.crt
    alone_lost      the same, and GET /middle.crt returns 404
    alone_wrong     the same, and GET /middle.crt returns another certificate
    late[:SECONDS]  a valid one after SECONDS (default 5)
    wrong_imprint   over another digest
    wrong_nonce     with another nonce
    wrong_policy    under another policy than requested
    wrong_usage     by a certificate whose key usage is not timeStamping only
    wrong_name      names another authority (tsa) than the one whose certificate signed it
    critical        has an unknown critical extension
    wrong_time      two hours ahead
    ahead:SECONDS   that many seconds ahead
    untrusted       by an authority under another root
    rejected        status "rejection", no token
    garbage         200 and bytes that are not a response
    error           HTTP 500
    close           closes the connection without a response
    silent          never responds
    endless_header  sends an endless header line

Needs only Python's standard library and the `openssl` command. The TSTInfo is encoded here, so that it can be
wrong in any way, and signed with `openssl cms`.
"""

import argparse
import contextlib
import hashlib
import http.server
import os
import secrets
import subprocess
import threading
import time

POLICY = "2.25.1"
OTHER_POLICY = "2.25.2"
TST_INFO = "1.2.840.113549.1.9.16.1.4"
MODES = {"good", "no_accuracy", "named", "ber", "alone", "alone_lost", "alone_wrong", "late",
         "wrong_imprint", "wrong_nonce", "wrong_policy", "wrong_usage", "wrong_name", "critical",
         "wrong_time", "ahead", "untrusted", "rejected", "garbage", "error", "close", "silent",
         "endless_header"}

EXTENSIONS = """
[root]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[good]
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[wrong_usage]
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping, emailProtection
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[middle]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[alone]
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
authorityInfoAccess = caIssuers;URI:ldap://nowhere.example/, caIssuers;URI:@MIDDLE@
[req]
distinguished_name = dn
[dn]
"""


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, **more)


class Certificates:
    """Two roots, and signers under them: DIR/NAME.pem and DIR/NAME.key."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        if os.path.exists(self.path("ready")):
            return
        with open(self.path("openssl.cnf"), "w", encoding="ascii") as file:
            file.write(EXTENSIONS)
        self.make("root", "root", None)
        self.make("other_root", "root", None)
        self.make("good", "good", "root")
        self.make("wrong_usage", "wrong_usage", "root")
        self.make("untrusted", "good", "other_root")
        self.make("middle", "middle", "root")
        open(self.path("ready"), "w", encoding="ascii").close()

    def path(self, name):
        return os.path.join(self.directory, name)

    def make(self, name, extensions, issuer):
        key, request, certificate = (self.path(name + end) for end in (".key", ".csr", ".pem"))
        config = self.path("openssl.cnf")
        run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-keyout", key, "-out", request, "-config", config,
            "-subj", f"/O=Stand-in/CN=Timestamp {name}")
        signed_by = (["-CA", self.path(issuer + ".pem"), "-CAkey", self.path(issuer + ".key")]
                     if issuer else ["-signkey", key])
        run("openssl", "x509", "-req", "-in", request, "-out", certificate, "-days", "3650",
            "-set_serial", str(secrets.randbits(100) + 1), "-sha256",
            "-extfile", config, "-extensions", extensions, *signed_by)

    def make_alone(self, url):
        """Creates the authority below the intermediate; its certificate names the URL of the intermediate's."""
        with open(self.path("openssl.cnf"), "w", encoding="ascii") as file:
            file.write(EXTENSIONS.replace("@MIDDLE@", url))
        self.make("alone", "alone", "middle")

    def middle(self, form, mode):
        pem = self.path("other_root.pem" if mode == "alone_wrong" else "middle.pem")
        words = (["crl2pkcs7", "-nocrl", "-certfile", pem] if form == "p7c"
                 else ["x509", "-in", pem])
        return run("openssl", *words, "-outform", "DER").stdout

    def sign(self, content, name, ber=False):
        root = "other_root" if name == "untrusted" else "root"
        more = [] if name == "alone" else ["-certfile", self.path(root + ".pem")]
        return run("openssl", "cms", "-sign", "-binary", "-nodetach", "-outform", "DER",
                   "-econtent_type", TST_INFO, "-cades", "-nosmimecap", "-md", "sha256",
                   "-signer", self.path(name + ".pem"), "-inkey", self.path(name + ".key"),
                   *more, *(["-stream"] if ber else []), input=content).stdout


def tlv(tag, content):
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content


def integer(value):
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def object_identifier(dotted):
    first, second, *rest = (int(part) for part in dotted.split("."))
    content = b""
    for part in [first * 40 + second, *rest]:
        groups = [part & 0x7f]
        while part > 0x7f:
            part >>= 7
            groups.insert(0, part & 0x7f | 0x80)
        content += bytes(groups)
    return tlv(0x06, content)


def directory_name(organization, name):
    """Returns a Name in the form of the certificates."""
    return tlv(0x30, b"".join(
        tlv(0x31, tlv(0x30, object_identifier(kind) + tlv(0x0c, text.encode())))
        for kind, text in (("2.5.4.10", organization), ("2.5.4.3", name))))


def name_and_extensions(mode):
    """Returns the optional end of a TSTInfo: tsa and extensions."""
    names = {"named": "Timestamp good", "wrong_name": "Timestamp somebody else"}
    tsa = tlv(0xa0, tlv(0xa4, directory_name("Stand-in", names[mode]))) if mode in names else b""
    critical = {"named": b"", "critical": tlv(0x01, b"\xff")}.get(mode)
    return tsa if critical is None else tsa + tlv(0xa1, tlv(0x30, object_identifier("2.25.3") +
                                                            critical + tlv(0x04, b"\5\0")))


def elements(content):
    """Yields the concatenated DER elements: (tag, whole, inside)."""
    while content:
        tag, size, head = content[0], content[1], 2
        if size & 0x80:
            head += size & 0x7f
            size = int.from_bytes(content[2:head], "big")
        if len(content) < head + size:
            raise ValueError("cut short")
        yield tag, content[:head + size], content[head:head + size]
        content = content[head + size:]


def parse_query(der):
    (_, _, inside), = elements(der)
    version, imprint, *rest = elements(inside)
    if version[1] != integer(1):
        raise ValueError("version")
    query = {"imprint": imprint[1], "policy": None, "nonce": b""}
    for tag, whole, _ in rest:
        if tag == 0x06:
            query["policy"] = whole
        elif tag == 0x02:
            query["nonce"] = whole
    return query


def answer(certificates, der, mode, argument=""):
    """Returns the body of the response."""
    query = parse_query(der)
    if mode == "rejected":
        return tlv(0x30, tlv(0x30, integer(2) + tlv(0x30, tlv(0x0c, b"not today"))))
    if mode == "garbage":
        return hashlib.sha512(der).digest() * 3
    if mode == "wrong_imprint":
        query["imprint"] = query["imprint"][:-1] + bytes([query["imprint"][-1] ^ 1])
    if mode == "wrong_nonce":
        query["nonce"] = integer(secrets.randbits(100))
    policy = query["policy"] or object_identifier(POLICY)
    if mode == "wrong_policy":
        policy = object_identifier(OTHER_POLICY)
    now = time.time() + {"wrong_time": 7200, "ahead": float(argument or 0)}.get(mode, 0)
    text = time.strftime("%Y%m%d%H%M%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}"
    gen_time = text.rstrip("0").rstrip(".") if "." in text else text
    accuracy = tlv(0x30, integer(1) + tlv(0x80, b"\x01\xf4")) if mode != "no_accuracy" else b""
    info = tlv(0x30, integer(1) + policy + query["imprint"] + integer(secrets.randbits(64)) +
               tlv(0x18, (gen_time + "Z").encode()) + accuracy + query["nonce"] +
               name_and_extensions(mode))
    signer = mode if mode in ("wrong_usage", "untrusted") else "good"
    if mode.startswith("alone"):
        signer = "alone"
    if mode == "ber":
        return (b"\x30\x80\x30\x80" + integer(0) + b"\0\0" +
                certificates.sign(info, signer, ber=True) + b"\0\0")
    return tlv(0x30, tlv(0x30, integer(0)) + certificates.sign(info, signer))


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, format, *args):
        pass

    def reply(self, status, body=b"", content_type="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):
        if self.path == "/mode":
            self.reply(200, self.server.mode.encode())
        elif self.path == "/count":
            self.reply(200, str(self.server.count).encode())
        elif self.path in ("/middle.crt", "/middle.p7c") and self.server.mode != "alone_lost":
            self.server.fetched += 1
            self.reply(200, self.server.certificates.middle(self.path[-3:], self.server.mode),
                       "application/pkix-cert")
        else:
            self.reply(404)

    def do_PUT(self):
        mode = self.body().decode("ascii", "replace").strip()
        if self.path != "/mode" or mode.partition(":")[0] not in MODES:
            self.reply(400)
            return
        self.server.mode = mode
        self.send_response(204)
        self.end_headers()

    def do_POST(self):
        query = self.body()
        mode, _, argument = self.server.mode.partition(":")
        with self.server.lock:
            self.server.count += 1
            self.server.queries.append(query)
        if mode == "late":
            time.sleep(float(argument or 5))
        if mode == "silent":
            threading.Event().wait()
        if mode == "close":
            self.close_connection = True
            return
        if mode == "endless_header":
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: " + 300_000 * b"a")
            return
        if mode == "error":
            self.reply(500, b"out of order")
            return
        try:
            self.reply(200, answer(self.server.certificates, query, mode, argument),
                       "application/timestamp-reply")
        except ValueError:
            self.reply(400, b"not a timestamp query")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, certificates, port=0, mode="good", address="127.0.0.1"):
        super().__init__((address, port), Handler)
        self.certificates, self.mode = certificates, mode
        self.count = self.fetched = 0
        self.queries = []
        self.lock = threading.Lock()
        self.url = f"http://{address}:{self.server_address[1]}/"
        self.roots = certificates.path("root.pem")
        if os.path.exists(certificates.path("middle.pem")):
            certificates.make_alone(f"{self.url}middle.crt")

    def handle_error(self, request, client_address):
        pass  # some modes make clients give up


def main():
    parser = argparse.ArgumentParser(description="a substitute timestamp authority")
    parser.add_argument("--directory", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file")
    parser.add_argument("--mode", default="good")
    options = parser.parse_args()
    server = Server(Certificates(options.directory), options.port, options.mode)
    if options.port_file:
        with open(options.port_file + ".new", "w", encoding="ascii") as file:
            file.write(f"{server.server_address[1]}\n")
        os.rename(options.port_file + ".new", options.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
