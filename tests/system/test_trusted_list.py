"""What `constancia verify` says of signers and authorities by an EU trusted list."""

import json
import subprocess

import pytest

import trusted_list as lists
from client import run
from pki import DAY, Pki
from trusted_list import GRANTED, SEALS, TIMES, WITHDRAWN, service


@pytest.fixture(scope="module")
def scheme(tmp_path_factory):
    """Who signs lists: an operator below a root, and another one."""
    pki = Pki(tmp_path_factory.mktemp("scheme"), "A scheme's root")
    pki.issue("operator", "lists", "issuer", "A list's operator", ends=3650 * DAY)
    pki.issue("stranger", "leaf", None, "A stranger", ends=3650 * DAY)
    pki.issue("other", "leaf", "issuer", "Who signs something else", ends=3650 * DAY)
    pki.issue("enciphers", "enciphers", "issuer", "Who signs nothing", ends=3650 * DAY)
    pki.issue("unstated", "unstated", "issuer", "Whose key is for nothing said", ends=3650 * DAY)
    # In the strings of another time: T61String.
    pki.issue("latin", "lists", "issuer", "Señor Núñez", ends=3650 * DAY, strings="nombstr")
    return pki


@pytest.fixture(scope="module")
def evidence(service, tmp_path_factory):
    """An archive, and the issuers of its signer and of its authority."""
    channel = service.new_channel()
    channel.live.register({}).expect(201)
    record = channel.live.certified(seq_from=1, seq_to=1)
    directory = tmp_path_factory.mktemp("evidence")
    archive = directory / "evidence.zip"
    archive.write_bytes(channel.live.download(record["evidence_url"]).expect(200).body)
    roots = {}
    for block in (service.data / "trust.pem").read_text().split("-----BEGIN")[1:]:
        pem = "-----BEGIN" + block
        subject = subprocess.run(["openssl", "x509", "-noout", "-subject"], input=pem, text=True,
                                 capture_output=True, check=True).stdout
        path = directory / ("time.pem" if "timestamp" in subject else "seal.pem")
        path.write_text(pem)
        roots[path.stem] = path
    channel.close()
    return {"archive": archive, "trust": service.data / "trust.pem", **roots}


@pytest.fixture
def ask(evidence, scheme, tmp_path):
    def ask_list(content, expected=0, at=None, root="root"):
        path = tmp_path / "list.xml"
        path.write_bytes(content)
        done = run("verify", evidence["archive"], "--trust", evidence["trust"], "--json",
                   "--trusted-list", path, "--trusted-list-root", scheme.path(root + ".pem"),
                   *(["--at", at] if at else []))
        assert done.returncode == expected, (done.stdout, done.stderr)
        return json.loads(done.stdout)
    return ask_list


def signed(scheme, services, name="operator", **more):
    times = {each: more.pop(each) for each in ("issued", "next_update") if each in more}
    return lists.sign(lists.unsigned(services, **times), scheme.path(name + ".key"),
                      [scheme.path(name + ".pem"), scheme.path("issuer.pem")], **more)


def standing(told, who):
    return told[who][0]["qualified"]


def test_a_granted_authority_was_qualified(evidence, scheme, ask):
    told = ask(signed(scheme, [service(evidence["time"], TIMES, [(GRANTED, -100)])]))
    assert told["trusted_list"]["territory"] == "ES"
    assert told["trusted_list"]["signer"] == "A list's operator"
    assert standing(told, "authorities") == {
        "standing": "qualified", "reason": "a qualified time stamping service",
        "service": "A service", "provider": "A provider"}
    assert standing(told, "signers")["standing"] == "unknown"


@pytest.mark.parametrize("periods, wanted", [
    ([(GRANTED, -1), (WITHDRAWN, -100)], "qualified"),
    ([(WITHDRAWN, -1), (GRANTED, -100)], "not_qualified"),
    ([(WITHDRAWN, 1), (GRANTED, -100)], "qualified"),
    ([(GRANTED, 1)], "not_qualified"),
    ([(GRANTED, -1, lists.TYPE + "TSA"), (GRANTED, -100)], "not_qualified"),
    ([(GRANTED, -1), (GRANTED, -100, lists.TYPE + "TSA")], "qualified"),
    ([(lists.STATUS + "recognisedatnationallevel", -1)], "not_qualified"),
    ([(GRANTED, -100), (GRANTED, -1)], "unknown"),  # in a wrong order
])
def test_the_status_at_the_time_counts(evidence, scheme, ask, periods, wanted):
    told = ask(signed(scheme, [service(evidence["time"], TIMES, periods)]))
    assert standing(told, "authorities")["standing"] == wanted


def test_a_service_of_another_kind_says_nothing(evidence, scheme, ask):
    told = ask(signed(scheme, [service(evidence["time"], SEALS, [(GRANTED, -100)]),
                               service(evidence["seal"], TIMES, [(GRANTED, -100)])]))
    assert standing(told, "authorities")["standing"] == "unknown"
    assert standing(told, "signers")["standing"] == "unknown"


CRITERIA = '<q:CriteriaList assert="{}">{}</q:CriteriaList>'
SIGNS = '<q:KeyUsage><q:KeyUsageBit name="{}">{}</q:KeyUsageBit></q:KeyUsage>'


@pytest.mark.parametrize("extensions, wanted, reason", [
    ("", "not_qualified", "not issue certificates for electronic seals"),
    (lists.for_seals(), "not_qualified", "not a qualified certificate"),
    (lists.for_seals() + lists.qualification(["QCStatement"], CRITERIA.format("all", "")),
     "not_qualified", "not for electronic seals"),
    (lists.for_seals() + lists.qualification(["QCStatement", "QCForESeal"], CRITERIA.format("all", "")),
     "qualified", "is not stated"),
    (lists.for_seals() + lists.qualification(["QCStatement", "QCForESeal", "QCWithQSCD"],
                                             CRITERIA.format("all", "")), "qualified", "in a qualified device"),
    (lists.for_seals() + lists.qualification(["QCStatement", "QCForESeal", "NotQualified"],
                                             CRITERIA.format("all", "")), "not_qualified",
                      "not a qualified certificate"),
    (lists.for_seals() + lists.qualification(["QCStatement", "QCForESeal"],
                                             CRITERIA.format("all", SIGNS.format("keyCertSign", "true"))),
     "not_qualified", "not a qualified certificate"),
    (lists.for_seals() + lists.qualification(["QCStatement", "QCForESeal"],
                                             CRITERIA.format("none", SIGNS.format("keyCertSign", "true"))),
     "qualified", ""),
    (lists.for_seals() + lists.qualification(["QCStatement", "QCForESeal"],
                                             CRITERIA.format("atLeastOne", "<q:Other/>")),
     "unknown", "not supported"),
])
def test_a_signer_needs_a_qualified_certificate_for_seals(evidence, scheme, ask, extensions, wanted, reason):
    """The certificate itself says nothing of it: the list's qualifiers do."""
    told = ask(signed(scheme, [service(evidence["seal"], SEALS, [(GRANTED, -100)], extensions)]))
    assert standing(told, "signers")["standing"] == wanted
    assert reason in standing(told, "signers")["reason"]


def test_a_list_by_an_operator_whose_own_certificate_is_given(evidence, scheme, ask):
    content = signed(scheme, [service(evidence["time"], TIMES, [(GRANTED, -100)])])
    assert standing(ask(content, root="operator"), "authorities")["standing"] == "qualified"
    content = signed(scheme, [service(evidence["time"], TIMES, [(GRANTED, -100)])], whole="#list")
    assert standing(ask(content), "authorities")["standing"] == "qualified"


def refused(ask, content, why, **more):
    told = ask(content, expected=2, **more)
    assert told["trusted_list"] is None and told["signers"][0]["qualified"] is None
    (finding,) = [each for each in told["findings"] if each["path"].endswith("list.xml")]
    assert why in finding["what"], finding


def test_a_list_that_somebody_else_signed_is_refused(evidence, scheme, ask):
    services = [service(evidence["time"], TIMES, [(GRANTED, -100)])]
    refused(ask, signed(scheme, services, "stranger"), "does not chain to any of the roots")
    refused(ask, signed(scheme, services), "does not chain to any of the roots", root="stranger")
    # The trusted certificate together with a stranger's key.
    content = lists.sign(lists.unsigned(services), scheme.path("stranger.key"),
                         [scheme.path("operator.pem"), scheme.path("issuer.pem")])
    refused(ask, content, "an invalid signature")


def test_who_is_not_for_lists_signs_none(evidence, scheme, ask):
    """Anybody's certificate may lead to the root of a scheme's operator."""
    services = [service(evidence["time"], TIMES, [(GRANTED, -100)])]
    for name in ("other", "enciphers", "unstated", "issuer"):
        refused(ask, signed(scheme, services, name), "not for signing trusted lists")
    # Unless it is named itself; an authority, or a key for something else, is not taken even then.
    told = ask(signed(scheme, services, "other"), root="other")
    assert standing(told, "authorities")["standing"] == "qualified"
    for name in ("enciphers", "unstated", "issuer"):
        refused(ask, signed(scheme, services, name), "not for signing trusted lists", root=name)


def test_a_name_in_old_strings_is_told(evidence, scheme, ask):
    text = subprocess.run(["openssl", "asn1parse", "-in", scheme.path("latin.pem")], check=True,
                          capture_output=True, text=True, errors="replace").stdout
    assert "T61STRING" in text
    told = ask(signed(scheme, [service(evidence["time"], TIMES, [(GRANTED, -100)])], "latin"))
    assert told["trusted_list"]["signer"] == "Señor Núñez"


def test_a_list_whose_dates_cannot_be_is_refused(evidence, scheme, ask):
    services = [service(evidence["time"], TIMES, [(GRANTED, -100)])]
    refused(ask, signed(scheme, services, issued=0.02), "in the future")
    refused(ask, signed(scheme, services, issued=-0.02, next_update=-0.02), "the time of its next update")
    refused(ask, signed(scheme, services, issued=-0.02, next_update=-1), "the time of its next update")
    refused(ask, signed(scheme, services, next_update=215), "the time of its next update")
    told = ask(signed(scheme, services, next_update=190))
    assert standing(told, "authorities")["standing"] == "qualified"


def test_a_closed_list_is_never_out_of_date(evidence, scheme, ask):
    """As the United Kingdom's last one. Issued in a minute, within what clocks may differ, so that it is
    after the evidence."""
    services = [service(evidence["time"], TIMES, [(GRANTED, -100)])]
    content = signed(scheme, services, issued=0.001, next_update=None)
    for at in (None, lists.moment(400)):
        assert standing(ask(content, at=at), "authorities")["standing"] == "qualified"
    # Its services have ended, which changes nothing of what they were.
    ended = [service(evidence["time"], TIMES, [(WITHDRAWN, 0.0009), (GRANTED, -100)])]
    told = ask(signed(scheme, ended, issued=0.001, next_update=None), at=lists.moment(400))
    assert standing(told, "authorities")["standing"] == "qualified"


def test_a_closed_list_says_nothing_of_what_came_after(evidence, scheme, ask):
    services = [service(evidence["time"], TIMES, [(GRANTED, -100)])]
    told = ask(signed(scheme, services, issued=-0.02, next_update=None))
    assert standing(told, "authorities")["standing"] == "unknown"
    assert "the list was closed before" in standing(told, "authorities")["reason"]
    refused(ask, signed(scheme, services, issued=0.02, next_update=None), "in the future")


def test_an_empty_list_is_told_as_such(ask):
    refused(ask, b"", "is empty")


def test_a_list_that_is_out_of_date_is_refused(evidence, scheme, ask):
    services = [service(evidence["time"], TIMES, [(GRANTED, -100)])]
    refused(ask, signed(scheme, services, issued=-0.02, next_update=-0.01), "out of date")
    refused(ask, signed(scheme, services), "out of date", at=lists.moment(400))


@pytest.mark.parametrize("before, after", [
    (b"granted", b"Granted"), (b"An operator of", b"Another one of"), (b"SigningTime>20", b"SigningTime>19"),
    (b"<TSPServices>", b"<TSPServices><!-- -->"), (b"</TrustServiceStatusList>", b"<x/></TrustServiceStatusList>"),
])
def test_a_list_that_was_changed_is_refused(evidence, scheme, ask, before, after):
    content = signed(scheme, [service(evidence["time"], TIMES, [(GRANTED, -100)])])
    assert before in content
    changed = content.replace(before, after, 1)
    if after.endswith(b"<!-- -->"):  # comments are not part of what is signed, and change nothing
        assert standing(ask(changed), "authorities")["standing"] == "qualified"
    else:
        refused(ask, changed, "the trusted list has an invalid signature")


def test_a_signature_that_does_not_cover_all_is_refused(evidence, scheme, ask):
    services = [service(evidence["time"], TIMES, [(GRANTED, -100)])]
    refused(ask, signed(scheme, services, properties=False), "does not cover all")
    refused(ask, signed(scheme, services, transforms=[lists.ENVELOPED]), "does not cover all")
    refused(ask, signed(scheme, services, whole="#signature"), "does not cover all")
    content = signed(scheme, services)
    refused(ask, content.replace(b"<TSPServices>", b'<TSPServices Id="list">', 1), "a duplicate identifier")
    start, end = content.index(b"<ds:Signature "), content.index(b"</ds:Signature>") + 15
    refused(ask, content[:start] + content[end:], "no signature, or more than one")
    refused(ask, content[:end] + content[start:end] + content[end:], "no signature, or more than one")
    # The signed list inside another one.
    inner = content[content.index(b"<TrustService"):]
    outer = lists.etree.tostring(lists.unsigned([])).replace(b"</TrustServiceStatusList>",
                                                            inner + b"</TrustServiceStatusList>")
    refused(ask, outer, "no signature, or more than one")


@pytest.mark.parametrize("content", [
    b"", b"x", b"<a/>", b"<TrustServiceStatusList/>", b"<" * 100000, b"<a>" * 10000,
    b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'])
def test_what_is_no_list_is_refused(ask, content):
    told = ask(content, expected=2)
    assert told["trusted_list"] is None
    assert not any("root:" in each["what"] for each in told["findings"])


def test_it_is_told_in_words_too(evidence, scheme, tmp_path):
    path = tmp_path / "list.xml"
    path.write_bytes(signed(scheme, [service(evidence["time"], TIMES, [(GRANTED, -100)])]))
    words = ["verify", evidence["archive"], "--trust", evidence["trust"]]
    done = run(*words, "--trusted-list", path, "--trusted-list-root", scheme.root)
    assert "QUALIFIED at that time: a qualified time stamping service (A service, A provider)" in done.stdout
    assert "UNKNOWN whether it was qualified at that time" in done.stdout
    assert "trusted list of ES (An operator of a scheme)" in done.stdout
    assert run(*words, "--trusted-list", path).returncode == 2
    assert run(*words, "--trusted-list-root", path).returncode == 2


def test_no_other_program_loads_xml_libraries():
    from client import BINARY
    loaded = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout
    assert "libxml" not in loaded and "libxslt" not in loaded
