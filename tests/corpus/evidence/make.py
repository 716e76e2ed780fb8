#!/usr/bin/python3 -B
"""Makes the base files and the keys of the corpus again: usage: make.py PROGRAM DIRECTORY

PROGRAM is `constancia`. A service issues the base files with keys of the corpus's own authorities, whom nobody
else trusts; DIRECTORY gets base/, keys/ and world.json. It takes some minutes, as a certificate has to end.
Afterwards cases.py has to be run, since all digests are others.
"""

import datetime
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
from cryptography import x509  # noqa: E402
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: E402
from cryptography.x509.oid import ExtendedKeyUsageOID as Use, NameOID  # noqa: E402

import timestamp_authority  # noqa: E402
from pki import DAY, Pki  # noqa: E402
from publisher import Publisher  # noqa: E402

LONG = 40 * 365 * DAY
PATIENCE = 300
FIRST_END = 60  # seconds until the first certificate of the authority of the renewed archive ends
# The stand-in authority takes P-256 keys alone for what it makes itself; these here are given to it.
KIND = "RSA-2048"


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Service:
    def __init__(self, program, directory, **settings):
        self.program, self.directory = program, directory
        self.flags = [f"--set={name.replace('__', '.')}={value}" for name, value in settings.items()]
        self.ready_file = directory / "ready.json"
        directory.mkdir(exist_ok=True)
        with open(directory / "log", "wb") as log:
            self.process = subprocess.Popen([program, "dev", "--data", directory / "data", "--listen", "127.0.0.1:0",
                                             "--ready-file", self.ready_file, *self.flags], stdout=log, stderr=log)
        while not self.ready_file.exists() or not self.ready_file.read_text():
            if self.process.poll() is not None:
                sys.exit((directory / "log").read_text())
            time.sleep(0.1)
        self.ready = json.loads(self.ready_file.read_text())

    def call(self, key, path, body=None, raw=False):
        url = path if path.startswith("http") else self.ready["base_url"] + path
        request = urllib.request.Request(url, body and json.dumps(body).encode(), {
            "Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})})
        for _ in range(PATIENCE):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.read() if raw else json.load(answer)
            except urllib.error.HTTPError as refusal:
                if refusal.code not in (404, 429):
                    sys.exit(f"{path}: {refusal.code} {refusal.read().decode()}")
                time.sleep(1)
        sys.exit(f"{path}: still refused")

    def until(self, key, path, wanted):
        for _ in range(PATIENCE * 2):
            found = self.call(key, path)
            if wanted(found):
                return found
            time.sleep(0.5)
        sys.exit(f"{path}: {found}")

    def certify(self, key, first, last):
        made = self.call(key, "/certifications", {"seq_from": first, "seq_to": last})
        return self.until(key, f"/certifications/{made['certification_id']}",
                          lambda found: found["status"] != "processing")

    def save(self, certification, names, to):
        urls = {"evidence.zip": certification["evidence_url"],
                **{f"report-{each['languages'][0]}.pdf": each["url"] for each in certification["reports"]},
                **{each["name"]: each["url"] for each in certification["content_parts"]}}
        for name, saved in names.items():
            (to / saved).write_bytes(self.call(None, urls[name], raw=True))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


# ---- further certificates: of the same authorities, and of others ----

def read_key(path):
    return serialization.load_pem_private_key(path.read_bytes(), None)


def read_certificate(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def new_key(kind):
    return rsa.generate_private_key(65537, int(kind[4:])) if kind.startswith("RSA") else \
        ec.generate_private_key({"P-256": ec.SECP256R1, "P-192": ec.SECP192R1}[kind]())


def usage(**given):
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    return x509.KeyUsage(**{name: given.get(name, False) for name in names})


class Extra:
    """`extensions` are (value, whether it is critical)."""

    def __init__(self, keys):
        self.keys = keys

    def issue(self, name, issuer, subject, extensions, kind=KIND, begins=-3600, ends=LONG, digest="SHA256"):
        key = new_key(kind)
        above = read_certificate(self.keys / f"{issuer}.pem") if issuer else None
        signing = read_key(self.keys / f"{issuer}.key") if issuer else key
        own = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Constancia tests"),
                         x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        now = datetime.datetime.utcnow().replace(microsecond=0)
        built = x509.CertificateBuilder(above.subject if above else own, own, key.public_key(), x509.random_serial_number(),
                                        now + datetime.timedelta(seconds=begins), now + datetime.timedelta(seconds=ends))
        for value, critical in extensions:
            built = built.add_extension(value, critical)
        built = built.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False) \
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), False)
        made = built.sign(signing, getattr(hashes, digest)())
        pem = serialization.Encoding.PEM
        (self.keys / f"{name}.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8,
                                                                  serialization.NoEncryption()))
        (self.keys / f"{name}.pem").write_bytes(made.public_bytes(pem))


def make_extra(keys):
    leaf = (x509.BasicConstraints(False, None), True)
    authority = (x509.BasicConstraints(True, None), True)
    signs, certifies = (usage(digital_signature=True, content_commitment=True), True), \
        (usage(key_cert_sign=True, crl_sign=True), True)

    def purpose(*uses, critical=False):
        return x509.ExtendedKeyUsage(uses), critical
    stamps = purpose(Use.TIME_STAMPING, critical=True)
    documents = purpose(x509.ObjectIdentifier("1.3.6.1.5.5.7.3.36"))
    make = Extra(keys).issue
    # Of the signer's own authority: a customer's, for e-mail; and what may not sign evidence.
    make("customer", "issuer", "A customer of the same authority", [leaf, signs, purpose(Use.EMAIL_PROTECTION)])
    make("plain", "issuer", "Another seal of the same authority", [leaf, signs])
    make("documents", "issuer", "A seal for documents", [leaf, signs, documents])
    make("tls", "issuer", "www.example.org", [leaf, signs, purpose(Use.SERVER_AUTH)])
    make("tls-and-mail", "issuer", "mail.example.org", [leaf, signs, purpose(Use.SERVER_AUTH, Use.EMAIL_PROTECTION)])
    make("client", "issuer", "A client of TLS", [leaf, signs, purpose(Use.CLIENT_AUTH)])
    make("code", "issuer", "A signer of programs", [leaf, signs, purpose(Use.CODE_SIGNING)])
    make("ocsp", "issuer", "A responder", [leaf, signs, purpose(Use.OCSP_SIGNING)])
    make("authority-as-signer", "issuer", "An authority that signs",
         [authority, (usage(digital_signature=True, key_cert_sign=True), True)])
    make("agrees", "issuer", "A key for agreement", [leaf, (usage(key_agreement=True), True)], kind="P-256")
    make("enciphers", "issuer", "A key that enciphers", [leaf, (usage(key_encipherment=True), True)])
    make("rsa-1024", "issuer", "A short key", [leaf, signs], kind="RSA-1024")
    make("p-192", "issuer", "A short curve", [leaf, signs], kind="P-192")
    make("sha-1", "issuer", "Signed by SHA-1", [leaf, signs], digest="SHA1")
    make("ended", "issuer", "A seal that had ended", [leaf, signs], begins=-90 * DAY, ends=-DAY)
    make("later", "issuer", "A seal to come", [leaf, signs], begins=2 * 365 * DAY)
    make("critical", "issuer", "An unknown critical extension",
         [leaf, signs, (x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.32473.7"), b"\5\0"), True)])
    # Issuers below the same root.
    make("issuer-tls", "root", "An issuer for TLS", [authority, certifies, purpose(Use.SERVER_AUTH)])
    make("below-tls", "issuer-tls", "A seal of an issuer for TLS", [leaf, signs])
    make("issuer-1024", "root", "An issuer with a short key", [authority, certifies], kind="RSA-1024")
    make("below-1024", "issuer-1024", "A seal below a short key", [leaf, signs])
    make("issuer-sha-1", "root", "An issuer signed by SHA-1", [authority, certifies], digest="SHA1")
    make("below-sha-1", "issuer-sha-1", "A seal below SHA-1", [leaf, signs])
    make("issuer-short", "root", "An issuer of leaves alone", [(x509.BasicConstraints(True, 0), True), certifies])
    make("issuer-too-deep", "issuer-short", "An issuer too deep", [authority, certifies])
    make("below-too-deep", "issuer-too-deep", "A seal too deep", [leaf, signs])
    make("below-leaf", "plain", "A seal issued by a seal", [leaf, signs])
    make("issuer-named", "root", "An issuer for names elsewhere",
         [authority, certifies, (x509.NameConstraints([x509.DirectoryName(x509.Name([x509.NameAttribute(
             NameOID.ORGANIZATION_NAME, "Somebody else")]))], None), True)])
    make("below-named", "issuer-named", "A seal of another name", [leaf, signs])
    make("issuer-no-sign", "root", "An issuer that may not issue", [authority, (usage(crl_sign=True), True)])
    make("below-no-sign", "issuer-no-sign", "A seal that was not to be", [leaf, signs])
    # Somebody's own.
    make("self-signed", None, "Sello de informes y archivos", [leaf, signs])
    make("other-root", None, "An operator's root", [authority, certifies])
    make("other-issuer", "other-root", "An issuer of seals", [authority, certifies])
    make("other-signer", "other-issuer", "Sello de informes y archivos", [leaf, signs])
    make("other-time", "other-root", "Unidad 1", [leaf, (usage(digital_signature=True), True), stamps])
    # Authorities of timestamps below the same root, not as they have to be.
    once = (usage(digital_signature=True), True)
    for name, extensions, more in (
            ("time-no-purpose", [], {}),
            ("time-not-critical", [purpose(Use.TIME_STAMPING)], {}),
            ("time-not-alone", [purpose(Use.TIME_STAMPING, Use.EMAIL_PROTECTION, critical=True)], {}),
            ("time-for-mail", [purpose(Use.EMAIL_PROTECTION, critical=True)], {}),
            ("time-1024", [stamps], {"kind": "RSA-1024"}),
            ("time-sha-1", [stamps], {"digest": "SHA1"}),
            ("time-ended", [stamps], {"begins": -90 * DAY, "ends": -DAY})):
        make(name, "time", f"Unidad: {name}", [leaf, once, *extensions], **more)
    make("time-authority", "time", "Unidad: an authority",
         [authority, (usage(digital_signature=True, key_cert_sign=True), True), stamps])
    make("issuer-for-mail", "root", "An issuer for mail", [authority, certifies, purpose(Use.EMAIL_PROTECTION)])
    make("time-below-mail", "issuer-for-mail", "Unidad: below mail", [leaf, once, stamps])


# ---- what a service issues ----

def start_authority(pki, name, issuer, **more):
    pki.issue(name, "timestamps", issuer, f"Unidad {name}", **more)
    directory = pki.path(name + "-serves")
    directory.mkdir()
    for ending, source in (("good.pem", f"{name}.pem"), ("good.key", f"{name}.key"), ("root.pem", f"{issuer}.pem")):
        shutil.copy(pki.path(source), directory / ending)
    (directory / "ready").touch()
    return serve(timestamp_authority.Server(timestamp_authority.Certificates(str(directory))))


def make_first(program, work, base, pki, other):
    """What is issued in one day."""
    stamps = [start_authority(pki, "one", "time", ends=LONG), start_authority(other, "two", "root", ends=LONG)]
    signer = pki.signer("Sello de informes y archivos", kind="RSA-3072")
    roots = work / "roots.pem"
    roots.write_bytes(pki.root.read_bytes() + other.root.read_bytes())
    service = Service(program, work / "first", tsa__url=",".join(each.url for each in stamps), tsa__roots=roots,
                      tsa__kind="non_qualified", tsa__tokens=2, tsa__allow_networks="127.0.0.0/8",
                      revocation__allow_networks="127.0.0.0/8", certification__level="LTA", seal__interval="1s",
                      evidence__interval="1s", **{name.replace(".", "__"): value for name, value in signer.items()})
    live, test = (service.ready["channels"]["content"][f"{mode}_key"] for mode in ("live", "test"))
    receipts = []

    def declare(key, *numbers):
        for number in numbers:
            receipts.append(service.call(key, "/events", {"client_ref": f"reference-{number}",
                                                          "payload": {"order": number, "what": "a pallet"}}))

    def sealed(key, event):
        return service.until(key, f"/events/{event['event_id']}", lambda found: found["timestamp"])
    for numbers in ((1, 2), (3,), (4, 5)):
        declare(live, *numbers)
        sealed(live, receipts[-1])
    declare(test, 1)
    (base / "receipts.json").write_text(json.dumps(receipts[:5], indent=1) + "\n")
    found = service.certify(live, 1, 3)
    service.save(found, {"evidence.zip": "live.zip", "report-en.pdf": "report-en.pdf", "report-es.pdf": "report-es.pdf",
                         "content-part-001.zip": "part.zip"}, base)
    service.until(live, f"/certifications/{found['certification_id']}", lambda it: it["evidence_record_sha256"])
    (base / "record.ers").write_bytes(service.call(live, found["evidence_record_url"], raw=True))
    # Whose range ends inside a segment at its beginning and at its end.
    service.save(service.certify(live, 2, 4), {"evidence.zip": "middle.zip"}, base)
    service.save(service.certify(live, 5, 5), {"evidence.zip": "last.zip"}, base)
    service.save(service.certify(test, 1, 1), {"evidence.zip": "test.zip", "report-en.pdf": "report-test.pdf"}, base)
    event = receipts[1]["event_id"]
    (base / "event.ers").write_bytes(service.call(live, f"/events/{event}/evidence-record", raw=True))
    subprocess.run([program, "proof", event, base / "live.zip", "-o", work / "taken.ers", "--record", base / "event.json"],
                   check=True, stdout=subprocess.DEVNULL)
    service.stop()
    named = {"live.zip": "evidence.zip", "report-en.pdf": "report-en.pdf", "report-es.pdf": "report-es.pdf",
             "part.zip": "content-part-001.zip"}
    for source, name in named.items():
        shutil.copy(base / source, work / name)
    subprocess.run([program, "bundle", base / "record.ers", *[work / name for name in named.values()], "--output",
                    work / "container.asice"], check=True, stdout=subprocess.DEVNULL)


def make_renewed(program, work, base, pki):
    """An archive of which a timestamp's certificate has ended, and was renewed before."""
    server = start_authority(pki, "mortal", "time", ends=FIRST_END)
    began = time.monotonic()
    service = Service(program, work / "renewed", tsa__url=server.url, tsa__roots=pki.root, tsa__kind="non_qualified",
                      tsa__allow_networks="127.0.0.0/8", revocation__allow_networks="127.0.0.0/8", seal__interval="500ms",
                      evidence__interval="500ms", signer__key=pki.path("Sello de informes y archivos.key"),
                      signer__chain=pki.chain("Sello de informes y archivos"))
    live = service.ready["channels"]["content"]["live_key"]
    event = service.call(live, "/events", {"client_ref": "kept", "payload": {"kept": "for long"}})
    service.until(live, f"/events/{event['event_id']}", lambda found: found["timestamp"])
    shutil.copy(pki.issue("mortal", "timestamps", "time", "Unidad mortal", ends=LONG), server.certificates.path("good.pem"))
    record = None
    while not record or record.count(bytes.fromhex("060b2a864886f70d0109100104")) < 2:  # timestamps
        time.sleep(1)
        record = service.call(live, f"/events/{event['event_id']}/evidence-record", raw=True)
    time.sleep(max(0, FIRST_END + 2 - (time.monotonic() - began)))
    service.save(service.certify(live, 1, 1), {"evidence.zip": "renewed.zip"}, base)
    (base / "renewed.ers").write_bytes(record)
    service.stop()
    subprocess.run([program, "proof", event["event_id"], base / "renewed.zip", "-o", work / "renewed-taken.ers", "--record",
                    base / "renewed.json"], check=True, stdout=subprocess.DEVNULL)


def main():
    program, to = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    work = pathlib.Path(tempfile.mkdtemp(prefix="corpus-"))
    base, keys = to / "base", to / "keys"
    for directory in (base, keys):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    publisher = Publisher(work / "pki", name="An operator's root", kind=KIND)
    pki = publisher.pki
    pki.add_issuer("time", "An issuer of timestamps")
    other = Pki(work / "other", name="Another authority's root", kind=KIND)
    make_first(program, work, base, pki, other)
    made = datetime.datetime.utcnow().replace(microsecond=0)
    make_renewed(program, work, base, pki)
    for name in ("root", "issuer", "time", "one"):
        for ending in (".pem", ".key"):
            shutil.copy(pki.path(name + ending), keys / (name + ending))
    for ending in (".pem", ".key"):
        shutil.copy(pki.path("Sello de informes y archivos" + ending), keys / ("signer" + ending))
        shutil.copy(other.path("two" + ending), keys / ("two" + ending))
    shutil.copy(other.root, keys / "root-two.pem")
    make_extra(keys)
    pki.revoke("Sello de informes y archivos", reason="keyCompromise")
    (base / "stolen.crl").write_bytes(subprocess.run(
        ["openssl", "crl", "-in", pki.write_list("issuer"), "-outform", "DER"], check=True, capture_output=True).stdout)
    (base / "roots.pem").write_bytes((keys / "root.pem").read_bytes() + (keys / "root-two.pem").read_bytes())
    (to / "world.json").write_text(json.dumps({"made": made.isoformat() + "Z"}) + "\n")
    publisher.close()
    shutil.rmtree(work)


main()
