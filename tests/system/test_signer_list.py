"""The signed list of the certificates that sign: /v1/signers.p7m, verify --signers, and the copy in archives."""

import base64
import hashlib
import json
import subprocess
import zipfile

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from client import Client, eventually, run
from program import ROOT
from test_verification_signers import certify, thief

CHECK = ROOT / "tests/support/check_archive.py"


def fetch(service, signer=None):
    """The signed list; with `signer`, the first one that this certificate signed."""
    client = Client(service)

    def look():
        answer = client.get("/v1/signers.p7m")
        if answer.status == 404:
            return None
        path = service.data.parent / f"signers-{hashlib.sha256(answer.body).hexdigest()[:8]}.p7m"
        path.write_bytes(answer.expect(200).body)
        return (path, answer) if signer is None or said(path)["certificates"][-1]["sha256"] == signer else None
    try:
        return eventually(look, "the list is signed")
    finally:
        client.close()


def said(path):
    """What it says, by OpenSSL."""
    done = subprocess.run(["openssl", "cms", "-verify", "-noverify", "-binary", "-inform", "DER", "-in", path],
                          check=True, capture_output=True)
    return json.loads(done.stdout)


def verify(path, trust, *lists):
    words = [word for each in lists for word in ("--signers", each)]
    done = run("verify", path, "--json", "--trust", trust, *words)
    return done.returncode, json.loads(done.stdout)


def whats(told):
    return " ".join(each["what"] for each in told["findings"])


def keep(directory, name, content):
    path = directory / name
    path.write_bytes(content)
    return path


def assert_proved(key, certificate):
    """The key signed the certificate of its service."""
    assert key["sha256"] == certificate
    Ed25519PublicKey.from_public_bytes(base64.b64decode(key["key"])).verify(
        base64.b64decode(key["proof"]), b"constancia-receipt-key/1\n" + bytes.fromhex(certificate))


@pytest.mark.both_stores
def test_the_list_is_served_signed_and_says_what_the_other_one_says(start):
    service = start()
    path, answer = fetch(service)
    assert answer.headers["Content-Type"] == "application/pkcs7-mime"
    assert "signers.p7m" in answer.headers["Content-Disposition"]
    listed = said(path)
    public = Client(service).get("/v1/signers").expect(200).json
    (given,) = public["data"]
    (item,) = listed["certificates"]
    assert {name: item[name] for name in ("sha256", "used_from", "used_until", "reason")} == \
        {name: given[name] for name in ("sha256", "used_from", "used_until", "reason")}
    assert listed["v"] == 2 and set(listed["service"]) == {"name", "prefix", "url"}
    for kind in ("log_keys", "receipt_keys"):
        (key,) = listed[kind]
        if kind == "receipt_keys":
            assert_proved(key, item["sha256"])
            key = {name: key[name] for name in ("key", "used_from", "used_until")}
        assert public[kind] == [key] and key["used_until"] is None
    done = subprocess.run(["openssl", "cms", "-verify", "-cades", "-binary", "-inform", "DER", "-purpose", "any",
                           "-CAfile", service.data / "trust.pem", "-in", path], capture_output=True)
    assert done.returncode == 0 and json.loads(done.stdout) == listed, done.stderr
    # It is in the store: nothing is signed for a request.
    assert fetch(service)[1].body == answer.body
    assert Client(service).get("/v1/signers.p7m", headers={"If-None-Match": answer.headers["ETag"]}).status == 304


@pytest.mark.both_stores
def test_what_a_stolen_key_signs_after_its_end_is_not_valid_offline(start, tmp_path):
    service = start(rate__live=100000)
    old_list, _ = fetch(service)
    own, own_report = certify(service.new_channel().live, "own")
    stolen = thief(tmp_path / "thief", service)
    try:
        false_list, _ = fetch(stolen)
        before, before_report = certify(stolen.new_channel().live, "before")
    finally:
        stolen.discard()
    service.admin("signer", "end", "--reason", "stolen on 3 May")
    stolen = thief(tmp_path / "late", service)
    try:
        late_list, _ = fetch(stolen)
        after, report = certify(stolen.new_channel().live, "after")
    finally:
        stolen.discard()
    assert Client(service).get("/v1/signers.p7m").status == 404, "no key can sign what is true now"
    trust = keep(tmp_path, "trust.pem", (service.data / "trust.pem").read_bytes())
    # Another key, of the same authority, comes into force.
    assert service.stop() == 0
    (service.data / "signer" / "report.pem").unlink()
    service.start()
    sha256 = Client(service).get("/v1/signers").expect(200).json["data"][-1]["sha256"]
    new_list, _ = fetch(service, sha256)
    (key,) = said(new_list)["receipt_keys"]
    assert_proved(key, sha256)
    both = keep(tmp_path, "both.pem", trust.read_bytes() + (service.data / "trust.pem").read_bytes())
    end = said(new_list)["certificates"][0]["used_until"]
    assert said(new_list)["certificates"][0]["reason"] == "stolen on 3 May"
    for name, content in (("after.zip", after), ("after.pdf", report)):
        path = keep(tmp_path, name, content)
        assert "the key ended" not in whats(verify(path, both)[1]), "without the list nothing shows it"
        code, told = verify(path, both, new_list)
        assert code == 1 and f"the key ended at {end} (stolen on 3 May)" in whats(told), told
        assert told["signer_list"]["signer"] == sha256
    for name, content in (("before.pdf", before_report), ("own.zip", own), ("own.pdf", own_report)):
        code, told = verify(keep(tmp_path, name, content), both, new_list)
        assert code == 0, told
    # The thief's archive carries the thief's list.
    code, told = verify(keep(tmp_path, "before.zip", before), both, new_list)
    assert code == 2 and "one of the two lists of signers is false" in whats(told), told
    # What the thief lists helps only without the service's own list.
    for others, why in (([late_list], "according to another given list, the key that signed it was no "
                                      "longer in force"),
                        ([false_list], "a newer given list contradicts it")):
        for lists in ([new_list, *others], [*others, new_list]):
            code, told = verify(tmp_path / "after.zip", both, *lists)
            assert code == 1 and "the key ended" in whats(told), told
            code, told = verify(tmp_path / "own.zip", both, *lists)
            assert code == 2 and f"this list of signers was ignored: {why}" in whats(told), told
    # The older one agrees, and says less.
    assert verify(tmp_path / "own.zip", both, old_list, new_list)[0] == 0
    assert verify(tmp_path / "own.zip", both, old_list)[0] == 0


def test_a_list_that_cannot_be_believed_leaves_it_open(start, tmp_path):
    service = start(rate__live=100000)
    path, answer = fetch(service)
    archive = keep(tmp_path, "own.zip", certify(service.new_channel().live, "own")[0])
    trust = service.data / "trust.pem"
    altered = keep(tmp_path, "altered.p7m", answer.body.replace(b'"v":2', b'"v":1'))
    for given, why in ((altered, "the content was altered"), (trust, "this list of signers was ignored"),
                       (tmp_path / "none", "this list of signers was ignored")):
        code, told = verify(archive, trust, given)
        assert code == 2 and why in whats(told), told
    other = start()
    foreign, _ = fetch(other)
    code, told = verify(archive, trust, foreign)
    assert code == 2 and "does not chain to any of the roots" in whats(told), told
    both = keep(tmp_path, "both.pem", trust.read_bytes() + (other.data / "trust.pem").read_bytes())
    code, told = verify(archive, both, foreign)
    assert code == 1 and "is not on the list of signers" in whats(told), told
    assert verify(archive, trust, path)[0] == 0


@pytest.mark.both_stores
def test_archives_carry_the_list_that_was_current(start, tmp_path):
    service = start(rate__live=100000)
    _, answer = fetch(service)
    channel = service.new_channel()
    trust = service.data / "trust.pem"
    for client in (channel.live, channel.test):
        archive = keep(tmp_path, "carries.zip", certify(client, "one")[0])
        with zipfile.ZipFile(archive) as zipped:
            assert zipped.read("signers.p7m") == answer.body
            assert json.loads(zipped.read("manifest.json"))["v"] == 3
        code, told = verify(archive, trust)
        assert code == 0, told
        done = subprocess.run(["python3", "-B", CHECK, "--trust", trust, archive], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
