"""`constancia signer request`: the key and the PKCS#10 request for a seal certificate; an authority's certificate for it
is accepted by the check of the settings and by a start."""

import json
import os
import stat

import pytest

from client import BINARY, free_port
from pki import PASSPHRASE, Pki, openssl, passphrase_file, token_environment
from program import DevService, flags, run

SUBJECT = ("--country", "ES", "--organization", "Ejemplo, S.L.", "--organization-id", "VATES-B00000000",
           "--common-name", "Sello de Ejemplo")


@pytest.fixture(name="pki", scope="module")
def authority(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


def request(*words, environment=None):
    return run([BINARY, "signer", "request", *words], environment)


def text_of(csr):
    """What openssl reads in it, after it verified the signature of the request."""
    done = openssl("req", "-in", csr, "-verify", "-text", "-noout", "-nameopt", "RFC2253,utf8,-esc_msb")
    return done.stdout.decode()


def certify(pki, csr, name):
    """The chain that an authority sends back, with the usage that was requested."""
    made, chain = pki.path(f"{name}.pem"), pki.path(f"{name}-chain.pem")
    openssl("x509", "-req", "-in", csr, "-CA", pki.path("issuer.pem"), "-CAkey", pki.path("issuer.key"),
            "-copy_extensions", "copy", "-days", "365", "-out", made)
    chain.write_bytes(b"".join(pki.path(each).read_bytes() for each in (made, "issuer.pem", "root.pem")))
    return chain


class Service(DevService):
    """It has no authority that answers: what is tested is which key it takes."""

    awaits_clock = False


def assert_accepted(pki, tmp_path, key, chain, environment=None, **more):
    settings = {"signer.key": key, "signer.chain": chain, "service.data_dir": tmp_path / "data",
                "tsa.url": "http://127.0.0.1:9/", "tsa.roots": pki.root, "tsa.allow_networks": "127.0.0.0/8", **more}
    ports = {"service.listen": f"127.0.0.1:{free_port()}", "service.admin_listen": f"127.0.0.1:{free_port()}"}
    done = run([BINARY, "config", "check", *flags({**settings, **ports})], environment)
    assert done.returncode == 0, done.stderr
    del settings["service.data_dir"]
    service = Service(tmp_path / "data", tmp_path / "log", settings, environment=environment)
    try:
        service.start()
        listed = json.dumps(service.admin("signer", "list"), ensure_ascii=False)
        assert "Sello de Ejemplo" in listed, listed
    finally:
        service.stop()


@pytest.mark.parametrize("kind", ["p256", "rsa3072"])
def test_a_key_is_made_and_its_certificate_is_accepted(pki, tmp_path, kind):
    key = tmp_path / "seal.key"
    done = request("--key", key, *SUBJECT, "--type", kind, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"key": str(key), "key_made": True, "request": f"{key}.csr"}
    assert stat.S_IMODE(key.stat().st_mode) == 0o400
    text = text_of(f"{key}.csr")
    assert "CN=Sello de Ejemplo,organizationIdentifier=VATES-B00000000,O=Ejemplo\\, S.L.,C=ES" in text, text
    assert "X509v3 Key Usage: critical\n                    Non Repudiation\n" in text, text
    assert ("(3072 bit)" if kind == "rsa3072" else "NIST CURVE: P-256") in text, text
    assert_accepted(pki, tmp_path, key, certify(pki, f"{key}.csr", kind))


def test_an_existing_key_is_used_and_never_overwritten(tmp_path):
    key = tmp_path / "seal.key"
    assert request("--key", key, *SUBJECT).returncode == 0
    before = key.read_bytes()
    done = request("--key", key, *SUBJECT, "-o", tmp_path / "second.csr", "--json")
    assert json.loads(done.stdout)["key_made"] is False
    assert key.read_bytes() == before
    first, second = (openssl("req", "-in", path, "-pubkey", "-noout").stdout
                     for path in (f"{key}.csr", tmp_path / "second.csr"))
    assert first == second


def test_a_passphrase_encrypts_the_key(pki, tmp_path):
    key, locked = tmp_path / "seal.key", passphrase_file(pki)
    done = request("--key", key, *SUBJECT, "--passphrase-file", locked["signer.passphrase_file"])
    assert done.returncode == 0, done.stderr
    assert "ENCRYPTED" in key.read_text() and PASSPHRASE not in done.stdout + done.stderr
    assert_accepted(pki, tmp_path, key, certify(pki, f"{key}.csr", "encrypted"), **locked)


@pytest.mark.parametrize("kind", ["P-256", "RSA-3072"])
def test_a_token_signs_its_request(pki, tmp_path, kind):
    name = "held-" + kind.lower()
    held = pki.signer(name, "pkcs11", kind=kind)
    csr = tmp_path / "token.csr"
    words = ("--key", held["signer.key"], *SUBJECT, "--passphrase-file", held["signer.passphrase_file"])
    environment = token_environment(pki)
    missing = request(*words, environment=environment)
    assert missing.returncode == 2 and "--output" in missing.stderr
    done = request(*words, "--output", csr, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "CN=Sello de Ejemplo" in text_of(csr)
    assert_accepted(pki, tmp_path, held["signer.key"], certify(pki, csr, "token-" + kind), environment,
                    **{"signer.passphrase_file": held["signer.passphrase_file"]})


def test_a_weak_key_is_refused(tmp_path):
    key = tmp_path / "weak.key"
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key)
    os.chmod(key, 0o400)
    done = request("--key", key, *SUBJECT)
    assert done.returncode == 1 and "3072 bits" in done.stderr, done.stderr
    assert not (tmp_path / "weak.key.csr").exists()


@pytest.mark.parametrize("option, value, expected", [
    ("--country", "Spain", "ISO 3166-1"), ("--country", "es", "ISO 3166-1"),
    ("--organization", "", "1 to 64 bytes"), ("--organization", "x" * 65, "1 to 64 bytes"),
    ("--organization-id", "B00000000", "EN 319 412-1"), ("--organization-id", "VATES B0", "EN 319 412-1"),
    ("--common-name", "a\nb", "1 to 64 bytes"), ("--type", "ed25519", "p256 or rsa3072")])
def test_a_wrong_subject_is_refused_before_a_key_is_made(tmp_path, option, value, expected):
    key = tmp_path / "seal.key"
    words = list(SUBJECT)
    if option in words:
        words[words.index(option) + 1] = value
    else:
        words += [option, value]
    done = request("--key", key, *words)
    assert done.returncode in (1, 2) and expected in done.stderr, done.stderr
    assert option in done.stderr and not key.exists()


def test_what_is_missing_is_named():
    for option in ("--key", "--country", "--organization"):
        words = ["--key", "k", *SUBJECT]
        place = words.index(option)
        done = request(*words[:place], *words[place + 2:])
        assert done.returncode == 2 and f"{option} is missing" in done.stderr, done.stderr
