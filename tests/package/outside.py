"""What an operator finds outside: a certification authority that issues seals from requests and publishes revocation
data, and a timestamp authority behind TLS, under a root that browsers know. Runs until it is terminated.

usage: outside.py DIRECTORY ADDRESS

In DIRECTORY afterwards: root.pem (of seals and timestamps), web.pem (the root of the TLS certificates), ready (once
it serves). `seal(directory, request)` issues what was requested.
"""
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import timestamp_authority  # noqa: E402
from pki import DAY, Pki, moment  # noqa: E402
from publisher import Publisher  # noqa: E402

HOST = "tsa.example.net"
PUBLISHER_PORT = 80


class Behind(timestamp_authority.Server):
    """With a certificate for HOST."""

    def __init__(self, certificates, address, context):
        super().__init__(certificates, 443, address=address)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


def web_certificate(directory):
    """The root that browsers know, and the authority's certificate under it."""
    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    root, key, own = (directory / name for name in ("web.pem", "web.key", "tls.pem"))
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
            "-out", root, "-days", "3650", "-subj", "/CN=A root that browsers know")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            directory / "tls.key", "-out", own, "-days", "365", "-subj", f"/CN={HOST}", "-CA", root, "-CAkey", key,
            "-addext", f"subjectAltName=DNS:{HOST}", "-addext", "basicConstraints=critical,CA:FALSE")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, directory / "tls.key")
    return context


def seal(directory, address, request):
    """The chain, in PEM, of a certificate for the request with the usages that it asks for."""
    pki = Pki(directory, url=f"http://{address}:{PUBLISHER_PORT}")
    made = pki.path("seal.pem")
    pki.ca(pki.configure("issuer"), "-in", request, "-out", made, "-notext", "-preserveDN", "-outdir", pki.directory,
           "-startdate", moment(-3600), "-enddate", moment(365 * DAY), "-extensions", "leaf", *pki.by("issuer"))
    return b"".join(pki.path(f"{name}.pem").read_bytes() for name in ("seal", "issuer", "root"))


def main():
    directory, address = pathlib.Path(sys.argv[1]), sys.argv[2]
    publisher = Publisher(directory, (address, PUBLISHER_PORT), name="Raíz de ejemplo")
    publisher.pki.add_issuer("time", "An issuer of timestamps")
    authority = Behind(timestamp_authority.Certificates(str(publisher.pki.timestamps("Unidad 7", "time"))), address,
                       web_certificate(directory))
    threading.Thread(target=authority.serve_forever, daemon=True).start()
    shutil.copy(publisher.pki.root, directory / "roots.pem")
    (directory / "ready").write_text("ready\n")
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    terminated.wait()


if __name__ == "__main__":
    main()
