#!/usr/bin/env python3
"""Serves the environment of an operator until it is terminated: a certification authority that
publishes, and two timestamp authorities.

usage: world.py DIRECTORY TIMESTAMP_SERVER

TIMESTAMP_SERVER is the program of sigstore's timestamp-authority, behind TLS proxies
that demand a credential each. The other authority is the tests' own. All certificates but that of
TLS are of one authority: a root, an issuer of seals and one of timestamps, each with OCSP and lists.
The signer's RSA key is in a token of SoftHSM2. In DIRECTORY afterwards:

    root.pem                    what to trust
    softhsm2.conf               SOFTHSM2_CONF of the signer
    certificate basic bearer    settings for a service, one flag a line, by what the outside
                                authority demands; "certificate" demands a token besides. With
                                "basic" it is asked second, else first: it sends its own certificate
                                alone, and evidence records have nothing in addition to their tokens
    time                        the URL of the other authority, which demands nothing
    ready                       once it serves
    *.crl                       when it has been terminated: a list of each issuer as of then
"""

import pathlib
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import demanding_proxy  # noqa: E402
import timestamp_authority  # noqa: E402
from ports import reserve_port  # noqa: E402
from publisher import Publisher  # noqa: E402

USER, PASSWORD, TOKEN = "constancia", "a password: and a colon", "eyJhbGciOiJub25lIn0.e30."


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def start_outside(pki, program, directory):
    """The outside program and its URL, once it answers."""
    pki.issue("outside", "timestamps", "time", "Timestamps from outside")
    port = reserve_port()
    with open(directory / "outside.log", "wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", program, "serve", "--host", "127.0.0.1", "--port", str(port), "--scheme", "http",
             "--timestamp-signer", "file", "--file-signer-key-path", pki.path("outside.key"),
             "--certificate-chain-path", pki.chain("outside", "time"),
             "--enforce-intermediate-eku=false", "--disable-ntp-monitoring", "--use-http-201"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}/api/v1/timestamp"
    while True:
        try:
            urllib.request.urlopen(f"{url}/certchain").close()
            return process, url
        except urllib.error.URLError:
            if process.poll() is not None:
                sys.exit((directory / "outside.log").read_text())


def write_settings(directory, name, urls, root, signer, credentials):
    settings = {
        "tsa.url": ",".join(urls), "tsa.roots": root, "tsa.kind": "non_qualified",
        "tsa.tokens": 2, "tsa.allow_networks": "127.0.0.0/8", "tsa.timeout": "30s",
        "revocation.allow_networks": "127.0.0.0/8", "revocation.timeout": "30s",
        "certification.level": "LTA", **signer, **credentials}
    (directory / name).write_text("".join(f"--set={name}={value}\n"
                                          for name, value in settings.items()))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    publisher = Publisher(directory, name="Raíz de ejemplo", kind="RSA-3072")
    pki = publisher.pki
    pki.add_issuer("time", "An issuer of timestamps")
    signer = pki.signer("Sello de informes y archivos", "pkcs11")
    second = serve(timestamp_authority.Server(
        timestamp_authority.Certificates(str(pki.timestamps("Unidad 7", "time")))))
    outside, url = start_outside(pki, sys.argv[2], directory)
    tls = demanding_proxy.Certificates(str(directory / "tls"))
    demands = {
        "certificate": ({"mutual": True, "bearer": TOKEN},
                        {"tsa.client_certificate": tls.path("client.pem"),
                         "tsa.client_key": tls.path("client.key"), "tsa.token": TOKEN}),
        "bearer": ({"bearer": TOKEN}, {"tsa.token": TOKEN}),
        "basic": ({"basic": f"{USER}:{PASSWORD}"}, {"tsa.user": USER, "tsa.password": PASSWORD}),
    }
    for name, (demanded, given) in demands.items():
        proxy = serve(demanding_proxy.Server(tls, url, **demanded))
        urls = [proxy.url, second.url][::-1 if name == "basic" else 1]
        given = {"tsa.tls_roots": tls.path("root.pem"), **given}
        write_settings(directory, name, urls, pki.root, signer, {
            setting: f",{value}" if name == "basic" else f"{value},"
            for setting, value in given.items()})
    (directory / "time").write_text(second.url)
    (directory / "ready").write_text("ready\n")
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    terminated.wait()
    outside.terminate()
    outside.wait()
    for issuer in ("root", "issuer", "time"):
        pki.write_list(issuer)


main()
