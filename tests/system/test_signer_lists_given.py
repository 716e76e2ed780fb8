"""What `constancia verify` makes of lists of signers that are older than a key, or of another service: what is genuine is
not called forged for them, and no stranger vouches for itself next to the service's own list."""

import base64
import datetime
import hashlib
import json
import subprocess
import sys

import pytest

from program import BINARY, ROOT

sys.path.insert(0, str(ROOT / "tests/corpus/evidence"))
import forge  # noqa: E402
from cryptography import x509  # noqa: E402
from cryptography.hazmat.primitives import hashes  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: E402
from cryptography.x509.oid import NameOID  # noqa: E402

pytestmark = pytest.mark.sqlite
DAY = 86400
AT = "2029-11-27T18:25:46Z"


@pytest.fixture(scope="module")
def stranger():
    """A certificate of the same authority for another organization."""
    key, issuer, own = rsa.generate_private_key(65537, 2048), forge.certificate("issuer"), forge.certificate("customer")
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Somebody else"),
                      x509.NameAttribute(NameOID.COMMON_NAME, "A stranger's seal")])
    built = x509.CertificateBuilder(issuer.subject, name, key.public_key(), x509.random_serial_number(),
                                    forge.began() - datetime.timedelta(days=1), forge.began() + datetime.timedelta(days=9999))
    for each in own.extensions:
        if isinstance(each.value, (x509.BasicConstraints, x509.KeyUsage, x509.AuthorityKeyIdentifier)):
            built = built.add_extension(each.value, each.critical)
    return key, built.sign(forge.key("issuer"), hashes.SHA256())


@pytest.fixture(autouse=True)
def keys(stranger, monkeypatch):
    key, certificate = forge.key, forge.certificate
    monkeypatch.setattr(forge, "key", lambda name: stranger[0] if name == "stranger" else key(name))
    monkeypatch.setattr(forge, "certificate", lambda name: stranger[1] if name == "stranger" else certificate(name))


@pytest.fixture
def listed(tmp_path):
    def one(by, seconds, *items):
        """Signed that number of seconds after the corpus was made; `items` are (key, used from, used until)."""
        def entry(name, begins, ends):
            der = forge.der_of(forge.certificate(name))
            return {"certificate": base64.b64encode(der).decode(), "reason": None if ends is None else "stolen",
                    "sha256": hashlib.sha256(der).hexdigest(), "used_from": forge.stated(forge.moment(begins)),
                    "used_until": None if ends is None else forge.stated(forge.moment(ends))}
        time = forge.moment(seconds)
        content = forge.canonical({"certificates": [entry(*each) for each in items], "issued_at": forge.stated(time), "v": 1,
                                   "service": {"name": "Service", "prefix": "svc", "url": "https://service.example"}})
        path = tmp_path / f"{by}-{seconds}.p7m"
        path.write_bytes(forge.signed_data(
            by, content, attached=True, inside=forge.path_of(by),
            more=[forge.attribute(forge.SIGNING_TIME, forge.utc_time(time))],
            unsigned=lambda value: forge.stamp_of(value, time, {})))
        return path
    return one


@pytest.fixture
def verify(tmp_path):
    def one(lists, by=None, seconds=None):
        """The genuine archive, or signed by another key then: the status and the codes of what was found."""
        edits = [["sign", by, {"time": seconds, "signing_time": None}]] if by else []
        paths, trust, _ = forge.write({"name": "one", "files": [{"base": "live.zip", "edits": edits, "name": "evidence.zip"}],
                                       "trust": "roots.pem"}, tmp_path)
        words = [word for each in lists for word in ("--signers", each)]
        done = subprocess.run([BINARY, "verify", *paths, "--json", "--at", AT, "--trust", trust, *words], capture_output=True,
                              check=False)
        return done.returncode, {each["code"] for each in json.loads(done.stdout)["findings"]}
    return one


def test_a_key_that_is_newer_than_the_list_is_not_called_a_stranger(listed, verify):
    before = listed("signer", -3600, ("signer", -DAY, None))
    assert verify([before], "plain", 30 * DAY) == (2, {"signers.not_listed_yet"})
    after = listed("plain", 31 * DAY, ("signer", -DAY, DAY), ("plain", DAY, None))
    assert verify([before, after], "plain", 30 * DAY) == (0, set())
    # By a list that is not older it is one.
    assert verify([listed("signer", 31 * DAY, ("signer", -DAY, None))], "plain", 30 * DAY) == (1, {"signers.not_listed"})


def test_a_stranger_adds_no_signer_to_the_services_list(listed, verify):
    own = listed("signer", DAY, ("signer", -DAY, None))
    more = listed("stranger", DAY + 20, ("signer", -DAY, DAY + 10), ("stranger", DAY + 10, None))
    assert verify([own], "stranger", DAY - 600) == (1, {"signers.not_listed"})
    for lists in ([own, more], [more, own]):
        status, codes = verify(lists, "stranger", DAY + 15)
        assert status == 2 and "signers.several_services" in codes


def test_a_strangers_list_makes_nothing_genuine_forged(listed, verify):
    own = listed("signer", DAY, ("signer", -DAY, None))
    for other in (listed("stranger", DAY + 20, ("stranger", 0, None)),
                  listed("stranger", DAY + 30, ("signer", -DAY, -DAY), ("stranger", -DAY, None))):
        assert verify([own]) == (0, set())
        assert verify([own, other]) == (2, {"signers.several_services"})


def test_two_services_of_one_organization_make_nothing_genuine_forged(listed, verify):
    """Which of two lists that contradict each other is the service's is open."""
    own = listed("signer", DAY, ("signer", -DAY, None))
    other = listed("plain", DAY + 20, ("plain", -DAY, None))
    assert verify([own]) == (0, set())
    assert verify([own, other]) == (2, {"signers.contradicted"})
    assert verify([other]) == (1, {"signers.not_listed"})
