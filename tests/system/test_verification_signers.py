"""Signatures that the public page accepts: those of the service's own keys, while they were in force."""

import html
import shutil

import pytest

from client import Service, eventually, form
from operators import operators
from pki import Pki

JSON = {"Accept": "application/json"}
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


def ask(client, content, headers, **more):
    """One file of an address is checked at a time: the turn of the one before is given back behind its answer."""
    content_type, body = form(("file", content, "file"))
    return eventually(lambda: (answer := client.post("/verify", body, headers={"Content-Type": content_type, **headers},
                                                     **more)).status == 200 and answer, "it is checked")


def check(client, content):
    told = ask(client, content, JSON).json
    return told["issued"], told["verification"]


def certify(client, name):
    """The archive and the English report over one more event."""
    sequence = client.register({"n": name}, name).expect(201).json["sequence"]
    record = client.certified(seq_from=sequence, seq_to=sequence)
    assert record["status"] == "completed", record
    report, = [each for each in record["reports"] if each["languages"] == ["en"]]
    return [client.download(url).expect(200).body for url in (record["evidence_url"], report["url"])]


def refused(client, content, why):
    issued, told = check(client, content)
    assert issued is None
    assert not told["valid"] and not told["trusted"] and not told["could_not_check"]
    found = next((each for each in told["findings"] if why in each["what"]), None)
    assert found and found["code"].startswith("origin."), told["findings"]
    for language, member, words in (("en", "what", "Not valid: this service did not issue this file"),
                                    ("es", "what_es", "No válido: este servicio no emitió este fichero")):
        page = html.unescape(ask(client, content, HTML, language=language).body.decode())
        assert words in page and found[member] in page
        for meant in ("What it attests", "Qué acredita", "Signers", "Firmantes"):
            assert meant not in page


@pytest.mark.both_stores
def test_another_certificate_of_the_same_authority_signs_for_nobody_here(tmp_path, pki):
    """As an S/MIME certificate of a customer, whose chain leads to the very root that the service's own does."""
    for name in ("service", "customer"):
        (tmp_path / name).mkdir()
    with operators(tmp_path / "service", pki, pki.signer("service")) as service, \
            operators(tmp_path / "customer", pki, pki.signer("customer")) as customer:
        service.start()
        customer.start()
        page = service.test_client()
        for content in certify(page, "own"):
            issued, told = check(page, content)
            assert issued and told["valid"] and told["trusted"]
        for content in certify(customer.test_client(), "other"):
            refused(page, content, f"certificate is not one of this service (SHA-256 {pki.sha256('customer')})")


def thief(directory, service):
    """Another service with the same keys, the one that signs and the one of the timestamps among them."""
    made = Service(directory)
    keys = made.data / "signer"
    keys.mkdir(parents=True, mode=0o700)
    made.data.chmod(0o700)
    for path in (service.data / "signer").glob("*.pem"):
        shutil.copy2(path, keys)
    return made.start()


@pytest.mark.both_stores
def test_a_key_that_was_ended_signs_nothing_any_more(start, tmp_path):
    service = start(rate__live=100000)
    page = service.new_channel().live
    own = certify(page, "own")
    stolen = thief(tmp_path / "thief", service)
    try:
        elsewhere = stolen.new_channel()
        before = certify(elsewhere.live, "before")
        service.admin("signer", "end", "--reason", "stolen on 3 May")
        after, of_test = certify(elsewhere.live, "after"), certify(elsewhere.test, "test")
    finally:
        stolen.discard()
    (end,) = [each["used_until"] for each in page.get("/v1/signers").expect(200).json["data"]]
    for content in after:
        refused(page, content, f"the key ended at {end} (stolen on 3 May)")
    for content in of_test:
        refused(page, content, "no timestamp shows that the signature is older")
    for content in before:
        issued, told = check(page, content)
        assert issued is None and told["valid"]
        assert any("ended later (stolen on 3 May)" in each["what"] for each in told["warnings"])
    for content in own:
        issued, told = check(page, content)
        assert issued and told["valid"] and told["trusted"] and told["files"][0]["origin"] == "issued"
