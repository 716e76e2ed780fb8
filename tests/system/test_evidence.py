"""The documents of a certification: archive, parts and reports, judged by `constancia verify`, by
standard tools, and by the published rules."""

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import zipfile

import pytest

import checked
import evidence
from client import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTENT = b"\x00\x01 a file \xff" * 5000
MIMETYPE = b"application/vnd.etsi.asic-e+zip"


class Delivery:
    """The documents of one certification as files in a directory."""

    def __init__(self, channel, mode, directory, **wanted):
        client = channel.client(mode)
        self.trust = channel.service.data / "trust.pem"
        self.record = client.certified(**wanted)
        assert self.record["status"] == "completed"
        self.directory = directory
        self.archive = self.save("evidence.zip", client.download(self.record["evidence_url"]))
        self.reports = {report["languages"][0]:
                        self.save(f"report-{report['languages'][0]}.pdf",
                                  client.download(report["url"]))
                        for report in self.record["reports"]}
        self.parts = [self.save(part["name"], client.download(part["url"]))
                      for part in self.record["content_parts"]]

    def save(self, name, answer):
        path = self.directory / name
        path.write_bytes(answer.expect(200).body)
        return path

    @property
    def all(self):
        return [self.archive, *self.parts, *self.reports.values()]


@pytest.fixture(scope="module")
def channel(service):
    made = service.new_channel()
    made.events = []
    client = made.live
    for n in range(4):
        made.events.append(client.register({"n": n, "text": "\u20ac"}, f"json-{n}",
                                           "2026-01-31T09:30:00.5Z").expect(201).json)
    client.sealed(made.events[-1]["event_id"])
    service.admin("channel", "configure", made.id, "--name", "Renamed <&> \u00f1",
                  "--supplementary-info", "What it means: \u201cthis\u201d")
    made.events.append(client.register_file(CONTENT, "file", "a.bin").expect(201).json)
    made.events.append(client.register({"large": "x" * 50000}, "large").expect(201).json)
    for n in range(3):
        made.test.register({"n": n}).expect(201)
    yield made
    made.close()


@pytest.fixture(scope="module")
def live(channel, tmp_path_factory):
    return Delivery(channel, "live", tmp_path_factory.mktemp("live"), seq_from=2, seq_to=6)


@pytest.fixture(scope="module")
def test(channel, tmp_path_factory):
    return Delivery(channel, "test", tmp_path_factory.mktemp("test"), seq_from=1, seq_to=3)


def verify(*paths, trust=None, expected=0, options=()):
    """The JSON of the verifier, which must agree with its exit code."""
    arguments = ["verify", *paths, "--json", *options]
    if trust:
        arguments += ["--trust", trust]
    done = run(*arguments)
    assert done.returncode == expected, (done.returncode, done.stdout, done.stderr)
    result = json.loads(done.stdout)
    checked.check_described(result)
    assert result["trusted_list"] is None
    words = {"valid": ("VALID: ", "V\u00c1LIDO: "), "not_valid": ("NOT VALID: ", "NO V\u00c1LIDO: ")}
    code, english, spanish = (result["verdict"][name] for name in ("code", "en", "es"))
    assert (code == "valid", code == "not_valid") == (expected == 0, expected == 1)
    if code in words:
        assert english.startswith(words[code][0]) and spanish.startswith(words[code][1])
    for someone in result["signers"] + result["authorities"]:
        assert set(someone) - {"first_gen_time", "last_gen_time", "not_revoked", "timestamps"} == {
            "issuer", "issuer_name", "name", "not_after", "not_before", "qualified", "sha256", "subject",
            "trusted"}
        assert someone["qualified"] is None
    for authority in result["authorities"]:
        assert authority["timestamps"] >= 1
        assert authority["first_gen_time"] <= authority["last_gen_time"]
        assert 0 <= authority["not_revoked"] <= authority["timestamps"]
    assert result["valid"] == (expected == 0)
    assert result["could_not_check"] == (expected == 2)
    assert bool(result["findings"]) == (expected != 0)
    return result


# ---- constancia verify ----

def test_everything_together_is_valid_and_trusted_under_the_roots(live):
    result = verify(*live.all, trust=live.trust)
    assert result["trusted"] is True
    assert result["checked"]["events"] == 5
    assert result["checked"]["reports"] == 2
    assert result["checked"]["parts"] == len(live.parts) == 1
    assert result["checked"]["segments"] >= 2
    assert result["checked"]["timestamps"] >= 2
    ends = {authority["not_after"] for authority in result["authorities"]}
    levels = {signature["path"]: signature["level"] for signature in result["signatures"]}
    assert levels == {str(live.archive): "B-LT", **{str(r): "B-LTA" for r in live.reports.values()}}
    assert all(signature["checkable_until"] in ends for signature in result["signatures"])


def test_findings_have_codes_and_both_languages(live, tmp_path):
    altered = tmp_path / "altered.zip"
    damaged = bytearray(live.archive.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    altered.write_bytes(damaged)
    result = verify(altered, trust=live.trust, expected=1)
    assert result["findings_version"] == 2
    assert {finding["severity"] for finding in result["findings"]} == {"wrong"}
    first = result["findings"][0]
    english, spanish = (run("verify", altered, "--trust", live.trust, "--lang", language).stdout.splitlines()
                        for language in ("en", "es"))
    place = f"{altered}: {first['where']}: " if first["where"] else f"{altered}: "
    assert f"NOT VALID: {place}{first['what']}" in english
    assert f"NO V\u00c1LIDO: {place}{first['what_es']}" in spanish
    assert spanish[:2] == english[:2], "the verdict is in both languages anyway"
    assert spanish[1] == f"NO V\u00c1LIDO: {place}{first['what_es']}."
    assert run("verify", altered, "--trust", live.trust).stdout.splitlines() == english
    refused = run("verify", altered, "--lang", "fr")
    assert refused.returncode == 2 and "--lang must be en or es" in refused.stderr


def test_a_step_that_fails_has_its_code_and_what_it_said(live, tmp_path):
    cut = tmp_path / "cut.pdf"
    cut.write_bytes(live.reports["en"].read_bytes()[:-200])
    (finding,) = [one for one in verify(cut, trust=live.trust, expected=1)["findings"]]
    assert finding["code"] == "report.not_valid" and finding["detail"]
    missing = verify(tmp_path / "missing.zip", trust=live.trust, expected=2)["findings"][0]
    assert (missing["code"], missing["severity"]) == ("file.not_readable", "unchecked")
    assert missing["detail"] == "cannot open: No such file or directory"
    assert missing["what_es"] == f"no se pudo leer el fichero: {missing['detail']}"


def members(node):
    if isinstance(node, dict):
        for name, value in node.get("properties", {}).items():
            yield name
            yield from members(value)
        for name in ("items", "oneOf"):
            yield from members(node.get(name))
    elif isinstance(node, list):
        for each in node:
            yield from members(each)


def test_the_manual_has_every_option_and_every_member():
    """Of the section of the page that is about the command."""
    page = (ROOT / "man" / "constancia.1").read_text(encoding="utf-8")
    page = page[page.index(".It Cm verify Oo"):page.index(".It Cm proof Ar EVENT_ID")]
    told = run("verify", "--help").stdout
    options = set(re.findall(r"^  --([a-z-]+)", told, re.M)) - {"config", "data", "set", "help"}
    assert {"trust", "lang", "json", "at"} <= options
    assert options == set(re.findall(r"Fl -([a-z-]+) ?(?:Ar|$)", page, re.M))
    named = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"^\.(?:Pf \( )?(?:Va|Li) (.*)$", page, re.M))))
    schemas = checked.described()["components"]["schemas"]
    for name in ("FileVerification", "FileVerdict", "FileFinding", "CheckedFile", "FileParty",
                 "FileEvidenceRecord", "FileDelay", "FileHistory"):
        assert set(members(schemas[name])) <= named, name
    for code in schemas["FileVerdict"]["properties"]["code"]["enum"]:
        assert code in named
    for code in schemas["FileFinding"]["properties"]["severity"]["enum"]:
        assert code in named


def test_a_report_of_the_test_chain_is_of_level_b(test):
    result = verify(*test.reports.values(), trust=test.trust)
    assert {signature["level"] for signature in result["signatures"]} == {"B-B"}


def test_without_roots_it_is_intact_and_whose_it_is_not_established(live):
    result = verify(*live.all, expected=2)
    assert result["trusted"] is False and result["verdict"]["code"] == "signer_not_established"
    assert all("not established" in finding["what"] for finding in result["findings"])
    done = run("verify", *live.all)
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    assert lines[0].startswith("INTACT, SIGNER NOT ESTABLISHED: nothing was changed since it was signed in the "
                               "name of Development report signer (")
    assert lines[1].startswith("\u00cdNTEGRO, FIRMANTE NO ACREDITADO: ")
    assert lines[-1].startswith("INTACT, SIGNER NOT ESTABLISHED: 5 events, ")


def test_the_first_line_names_who_issued_it(live):
    lines = run("verify", *live.all, "--trust", live.trust).stdout.splitlines()
    assert lines[0] == ("VALID: issued by Development report signer (Constancia development, no legal value); the "
                        "times were given by Development timestamp authority (Constancia development, no legal "
                        "value).")
    assert lines[1].startswith("V\u00c1LIDO: emitido por Development report signer (")
    assert lines[-1].startswith("VALID: 5 events, ")


def test_a_certificate_alone_is_an_anchor(live, tmp_path):
    """With trust in one signer, or one authority, the root above it is not needed."""
    with zipfile.ZipFile(live.archive) as archive:
        for name in ("ASiCManifest001.xml", "signature001.p7s"):
            (tmp_path / name).write_bytes(archive.read(f"META-INF/{name}"))
    signer = tmp_path / "signer.pem"
    subprocess.run(["openssl", "cms", "-verify", "-noverify", "-binary", "-inform", "DER", "-in",
                    tmp_path / "signature001.p7s", "-content", tmp_path / "ASiCManifest001.xml", "-signer", signer,
                    "-out", os.devnull], check=True, capture_output=True)
    options = ["--trust-signer", signer, "--trust-timestamps", root(live, "timestamp")]
    assert verify(*live.all, options=options)["trusted"] is True


def test_under_other_roots_whose_it_is_is_not_established(live, tmp_path):
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", tmp_path / "key", "-out", other,
                    "-subj", "/CN=Another", "-days", "10"], check=True, capture_output=True)
    result = verify(*live.all, trust=other, expected=2)
    assert result["trusted"] is False and result["verdict"]["code"] == "signer_not_established"
    assert not any(someone["trusted"] for someone in result["signers"] + result["authorities"])


def root(live, name):
    (found,) = live.trust.parent.rglob(f"{name}-root.pem")
    return found


def test_roots_of_signers_and_of_authorities_are_kept_apart(live):
    """Each kind of root vouches for its own kind alone."""
    report, timestamp = root(live, "report"), root(live, "timestamp")
    apart = verify(*live.all, options=["--trust-signer", report, "--trust-timestamps", timestamp])
    assert apart["trusted"] is True
    mixed = ["--trust-signer", timestamp, "--trust-timestamps", report]
    assert verify(*live.all, options=mixed, expected=2)["trusted"] is False
    for path in live.all:
        if path not in live.parts:
            verify(path, options=mixed, expected=2)
    half = verify(*live.all, options=["--trust-signer", report], expected=2)
    assert half["trusted"] is False and half["verdict"]["code"] == "authority_not_established"
    (finding,) = half["findings"]
    assert "timestamp authority was not established" in finding["what"]


def test_it_says_who_signed_and_who_gave_the_time(live):
    result = verify(*live.all, trust=live.trust)
    (signer,), (authority,) = result["signers"], result["authorities"]
    assert signer["subject"].startswith("CN=Development report signer,")
    assert signer["issuer"].startswith("CN=Development report root,")
    assert authority["subject"].startswith("CN=Development timestamp authority,")
    assert signer["not_before"] < live.record["completed_at"] < signer["not_after"]
    pin = ["--signer", "0" * 64, "--signer", signer["sha256"].upper()]
    assert verify(*live.all, trust=live.trust, options=pin)["trusted"] is True
    assert verify(*live.all, options=[*pin, "--trust-timestamps", root(live, "timestamp")])["trusted"]
    pin = ["--signer", authority["sha256"]]
    result = verify(*live.all, trust=live.trust, options=pin, expected=1)
    assert "not one of the required signers" in result["findings"][0]["what"]
    assert run("verify", live.archive, "--signer", "abc").returncode == 2
    done = run("verify", *live.all, "--trust", live.trust)
    assert "signed by: Development report signer (" in done.stdout
    assert "time given by: Development timestamp authority (" in done.stdout


# ---- receipts ----

def test_a_receipt_says_whether_the_archive_holds_the_event(channel, live, tmp_path):
    """The answers to the registrations, as they came, against what was certified later."""
    files = []
    for event in channel.events[1:]:
        files.append(tmp_path / f"{event['sequence']}.json")
        files[-1].write_text(json.dumps(event, indent=1))
    many = tmp_path / "many.ndjson"
    many.write_text("\n".join(json.dumps(event) for event in channel.events[1:]))
    array = tmp_path / "array.json"
    array.write_text(json.dumps(channel.events[1:]))
    each = [word for path in files for word in ("--receipt", path)]
    for options in (each, ["--receipt", many], ["--receipt", array]):
        result = verify(live.archive, trust=live.trust, options=options)
        assert result["checked"]["receipts"] == len(channel.events) - 1
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(channel.events[0]))
    result = verify(live.archive, trust=live.trust, options=["--receipt", outside], expected=2)
    assert result["findings"][0]["path"] == str(outside)
    assert "no given archive contains event 1" in result["findings"][0]["what"]


@pytest.mark.parametrize("member,other", [
    ("event_id", "evt_another"), ("client_ref", "another"), ("received_at", "2026-01-01T00:00:00Z"),
    ("occurred_at", None), ("hash", "0" * 64), ("modality", "hash_only"), ("chain_hash", "0" * 64),
    ("config_version", 77)])
def test_an_altered_receipt_proves_nothing_against_genuine_evidence(channel, live, tmp_path, member, other):
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(channel.events[1] | {member: other}))
    result = verify(live.archive, trust=live.trust, options=["--receipt", path], expected=2)
    (finding,) = result["findings"]
    assert finding["path"] == str(path)
    assert f"acknowledged event: {member}; the archive or the receipt is not genuine" in finding["what"]
    assert result["trusted"] is True


def without_null(record):
    """What a client with types writes that omits members that are null."""
    return {name: without_null(value) if isinstance(value, dict) else value
            for name, value in record.items() if value is not None}


def test_an_absent_member_of_a_receipt_is_null(channel, live, tmp_path):
    null = [event for event in channel.events[1:] if event["occurred_at"] is None]
    declared = [event for event in channel.events[1:] if event["occurred_at"]]
    assert null and declared
    path = tmp_path / "receipts.ndjson"
    path.write_text("\n".join(json.dumps(without_null(event)) for event in null + declared))
    result = verify(live.archive, trust=live.trust, options=["--receipt", path])
    assert result["checked"]["receipts"] == len(null + declared)
    dropped = {name: value for name, value in declared[0].items() if name != "occurred_at"}
    path.write_text(json.dumps(dropped))
    result = verify(live.archive, trust=live.trust, options=["--receipt", path], expected=2)
    (finding,) = result["findings"]
    assert finding["code"] == "receipt.event_differs" and "event: occurred_at; " in finding["what"]
    for name in declared[0].keys() - {"occurred_at", "receipt", "status", "timestamp"}:
        path.write_text(json.dumps({member: value for member, value in null[0].items() if member != name}))
        result = verify(live.archive, trust=live.trust, options=["--receipt", path], expected=2)
        assert [each["code"] for each in result["findings"]] == ["receipt.not_usable"], name


def test_what_is_no_receipt_could_not_be_checked(live, tmp_path):
    path = tmp_path / "receipt.json"
    for text in ("", "{}", "[]", "no", '{"code": "validation_error"}'):
        path.write_text(text)
        verify(live.archive, trust=live.trust, options=["--receipt", path], expected=2)
    verify(live.archive, trust=live.trust, options=["--receipt", tmp_path / "none"], expected=2)


# ---- ranges and times ----

def test_a_range_by_time_says_what_it_leaves_open(channel, live, tmp_path):
    first, last = channel.events[1]["received_at"], channel.events[-1]["received_at"]
    by_time = Delivery(channel, "live", tmp_path, start=first, to=last)
    result = verify(*by_time.all, trust=live.trust)
    assert result["checked"]["events"] == 4
    assert any("requested by time" in warning["what"] for warning in result["warnings"])
    result = verify(by_time.archive, live.archive, trust=live.trust)
    assert any("before the first one;" in warning["what"] for warning in result["warnings"])


def test_the_longest_delay_is_reported(channel, live):
    delay = verify(live.archive, trust=live.trust)["longest_delay"]
    assert delay["path"] == str(live.archive)
    assert delay["received_at"] == channel.events[delay["sequence"] - 1]["received_at"]


def test_each_document_is_valid_alone(live):
    verify(live.archive, trust=live.trust)
    for report in live.reports.values():
        verify(report, trust=live.trust)


def test_test_evidence_is_whole_and_says_that_it_has_no_probative_value(test):
    result = verify(*test.all, trust=test.trust)
    assert any("probative" in warning["what"] for warning in result["warnings"]), result


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.6, 0.8, 0.97, 1.0])
@pytest.mark.parametrize("kind", ["archive", "part", "en", "es"])
def test_a_flipped_bit_anywhere_is_found(live, tmp_path, kind, share):
    original = {"archive": live.archive, "part": live.parts[0], **live.reports}[kind]
    data = bytearray(original.read_bytes())
    data[int(share * (len(data) - 1))] ^= 0x01
    altered = tmp_path / original.name
    altered.write_bytes(data)
    others = [path for path in live.all if path != original]
    done = run("verify", altered, *others, "--trust", live.trust, "--json")
    assert done.returncode in (1, 2), done.stdout
    result = json.loads(done.stdout)
    assert result["valid"] is False and result["findings"]


@pytest.mark.parametrize("kind", ["archive", "part", "en", "es"])
def test_a_cut_or_lengthened_file_is_found(live, tmp_path, kind):
    original = {"archive": live.archive, "part": live.parts[0], **live.reports}[kind]
    data = original.read_bytes()
    for altered in (data[:-1], data[:len(data) // 2], data + b"\n", data + b"x" * 100):
        path = tmp_path / original.name
        path.write_bytes(altered)
        others = [other for other in live.all if other != original]
        assert run("verify", path, *others, "--trust", live.trust).returncode in (1, 2)


def test_a_report_or_part_of_another_certification_is_not_vouched_for(channel, live, tmp_path):
    """The report promises that the program checks whether the files belong together."""
    other = Delivery(channel, "live", tmp_path, seq_from=1, seq_to=3)
    verify(*other.all, trust=live.trust)
    verify(*live.all, *other.all, trust=live.trust)
    result = verify(live.archive, other.reports["en"], trust=live.trust, expected=2)
    assert str(other.reports["en"]) in [finding["path"] for finding in result["findings"]]
    result = verify(live.archive, *other.parts, trust=live.trust, expected=2)
    assert other.record["certification_id"] in result["findings"][0]["what"]
    result = verify(other.reports["en"], trust=live.trust)
    assert any("archive" in warning["what"] for warning in result["warnings"])


def test_what_cannot_be_checked_is_told_apart_from_what_is_wrong(live, tmp_path):
    result = verify(tmp_path / "absent.zip", expected=2)
    assert result["findings"]
    text = tmp_path / "letter.txt"
    text.write_text("Dear Sir or Madam")
    assert run("verify", text).returncode == 2
    empty = tmp_path / "empty.zip"
    empty.write_bytes(b"")
    assert run("verify", empty).returncode == 2
    assert run("verify").returncode == 2
    assert run("verify", live.archive, "--trust", tmp_path / "absent.pem").returncode == 2
    assert run("verify", live.archive, "--trust", text).returncode == 2


def test_verification_needs_neither_the_service_nor_its_data(live, tmp_path):
    before = sorted(os.listdir(live.directory))
    done = run("verify", *live.all, "--trust", live.trust, cwd=tmp_path,
               environment={"HOME": "/nonexistent"})
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(live.directory)) == before and os.listdir(tmp_path) == []


# ---- the archive by its published rules ----

def opened(path):
    return zipfile.ZipFile(io.BytesIO(path.read_bytes()))


def lines(archive, kind):
    """All documents of one kind of stream."""
    found = []
    for name in sorted(archive.namelist()):
        if re.fullmatch(rf"{kind}/{kind}-\d{{6}}\.ndjson\.gz", name):
            text = gzip.decompress(archive.read(name))
            assert text.endswith(b"\n")
            found += text[:-1].split(b"\n")
    return found


def test_the_archive_is_an_asic_container(live, test):
    for delivery in (live, test):
        data = delivery.archive.read_bytes()
        assert data[:4] == b"PK\x03\x04" and data[30:38] == b"mimetype"
        assert data[38:38 + len(MIMETYPE)] == MIMETYPE, "readable at offset 38"
        archive = opened(delivery.archive)
        assert archive.testzip() is None
        names = archive.namelist()
        assert names[0] == "mimetype"
        assert {"manifest.json", "README.txt", "LEEME.txt", "genesis.json",
                "META-INF/ASiCManifest001.xml", "META-INF/signature001.p7s"} <= set(names)
        manifest = json.loads(archive.read("manifest.json"))
        listed = {entry["path"]: entry for entry in manifest["files"]}
        assert set(listed) == {name for name in names if name not in ("mimetype", "manifest.json")
                               and not name.startswith("META-INF/")}
        for name, entry in listed.items():
            content = archive.read(name)
            assert (evidence.sha256(content), len(content)) == (entry["sha256"], entry["size"])
        assert len(archive.read("README.txt")) > 500 and len(archive.read("LEEME.txt")) > 500


def test_the_manifest_tells_what_the_certification_tells(live, channel):
    manifest = json.loads(opened(live.archive).read("manifest.json"))
    record = live.record
    for name in ("certification_id", "channel_id", "event_count", "mode", "verification_code"):
        assert manifest[name] == record[name], name
    assert manifest["frozen_range"] == {"first_sequence": 2, "last_sequence": 6}
    assert manifest["requested_range"] == record["range"]
    assert manifest["issued_at"] == record["completed_at"]
    assert [each["version"] for each in manifest["config_versions"]] == \
        record["config_versions_in_range"] == [1, 2]
    assert [(part["name"], part["sha256"], part["bytes"]) for part in manifest["content_parts"]] \
        == [(part["name"], part["sha256"], part["bytes"]) for part in record["content_parts"]]
    assert manifest["first_chain_hash"] == channel.events[1]["chain_hash"]
    assert manifest["last_chain_hash"] == channel.events[5]["chain_hash"]
    assert manifest["previous_chain_hash"] == channel.events[0]["chain_hash"]


def test_openssl_finds_the_archives_signature_good_and_the_asic_manifest_lists_all(live, tmp_path):
    archive = opened(live.archive)
    manifest = archive.read("META-INF/ASiCManifest001.xml")
    (tmp_path / "manifest.xml").write_bytes(manifest)
    (tmp_path / "signature.p7s").write_bytes(archive.read("META-INF/signature001.p7s"))
    command = ["openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in",
               tmp_path / "signature.p7s", "-content", tmp_path / "manifest.xml", "-CAfile",
               live.trust, "-purpose", "any", "-out", "/dev/null"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    (tmp_path / "manifest.xml").write_bytes(manifest.replace(b"manifest.json", b"manifest.jsoN"))
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    digests = dict(re.findall(rb'URI="([^"]+)"><ds:DigestMethod[^>]*/>'
                              rb"<ds:DigestValue>([^<]+)</ds:DigestValue>", manifest))
    expected = {name for name in archive.namelist()
                if name != "mimetype" and not name.startswith("META-INF/")}
    assert {name.decode() for name in digests} == expected
    for name, digest in digests.items():
        content = archive.read(name.decode())
        assert base64.b64decode(digest) == hashlib.sha256(content).digest()


def test_the_chain_in_the_archive_is_the_chain_that_was_acknowledged(live, channel):
    archive = opened(live.archive)
    records = lines(archive, "events")
    manifest = json.loads(archive.read("manifest.json"))
    configs = {each["version"]: each["hash"] for each in manifest["config_versions"]}
    previous = manifest["previous_chain_hash"]
    for line, event in zip(records, channel.events[1:]):
        record = json.loads(line)
        assert evidence.canonical(record) == line
        assert evidence.sha256(line) == event["chain_hash"]
        assert record["previous_chain_hash"] == previous
        previous = event["chain_hash"]
        assert record["config_hash"] == configs[record["config_version"]]
        assert record["received_at"] == event["received_at"], "exactly the value acknowledged"
        for name in ("event_id", "client_ref", "sequence", "occurred_at", "hash", "hash_alg",
                     "modality", "config_version", "channel_id"):
            assert record[name] == event[name], name
    assert len(records) == 5
    for version, digest in configs.items():
        document = archive.read(f"config/config-{version:06}.json")
        assert evidence.sha256(document) == digest
        shown = channel.live.get("/v1/channel").json["config_versions"][version - 1]
        assert evidence.config_hash(channel.id, shown) == digest


def test_the_seals_in_the_archive_lead_to_tokens_that_openssl_accepts(live, tmp_path):
    archive = opened(live.archive)
    hashes = {json.loads(line)["sequence"]: evidence.sha256(line)
              for line in lines(archive, "events")}
    for line in lines(archive, "leaves"):
        leaf = json.loads(line)
        assert leaf["sequence"] not in hashes
        hashes[leaf["sequence"]] = leaf["chain_hash"]
    rounds = {}
    previous_token = None
    for line in lines(archive, "rounds"):
        each = json.loads(line)
        rounds[each["round_id"]] = (each, previous_token)
        (token,) = each["tokens"]
        assert evidence.token_is_over(token["token"], each["root"], live.trust, tmp_path)
        assert token["kind"] == "development" and token["gen_time"] == each["gen_time"]
        previous_token = evidence.sha256(base64.b64decode(token["token"]))
    expected = None
    for line in lines(archive, "seals"):
        segment = json.loads(line)
        seal = segment["seal"]
        assert expected is None or seal["first_sequence"] == expected
        expected = seal["last_sequence"] + 1
        leaves = [hashes[n] for n in range(seal["first_sequence"], seal["last_sequence"] + 1)]
        assert leaves[-1] == seal["chain_hash_last"]
        root = evidence.tree_root(leaves + [evidence.sha256(evidence.canonical(seal))])
        root = evidence.sibling_root(root, segment["path"])
        each, token_before = rounds[segment["round_id"]]
        assert root == each["root"]
        if token_before:
            assert seal["previous_token_hash"] == token_before
    assert expected == 7


def test_a_test_archive_has_no_seals(test):
    names = opened(test.archive).namelist()
    assert not [name for name in names if name.startswith(("seals/", "rounds/", "leaves/"))]
    assert json.loads(opened(test.archive).read("manifest.json"))["mode"] == "test"


def test_the_parts_hold_every_content_under_a_name_that_leads_to_its_event(live, channel):
    held = {}
    for path in live.parts:
        part = opened(path)
        assert part.testzip() is None
        for line in part.read("index.ndjson").splitlines():
            entry = json.loads(line)
            held[entry["event_id"]] = part.read(entry["entry"])
            assert evidence.sha256(held[entry["event_id"]]) == entry["hash"]
    assert set(held) == {event["event_id"] for event in channel.events[1:]}
    for event in channel.events[1:]:
        assert evidence.sha256(held[event["event_id"]]) == event["hash"]
    assert held[channel.events[4]["event_id"]] == CONTENT


def test_the_readme_is_enough_to_follow_with_standard_tools(live):
    archive = opened(live.archive)
    for name in ("README.txt", "LEEME.txt"):
        text = archive.read(name).decode("utf-8")
        for tool in ("openssl", "sha256sum", "jq"):
            assert tool in text, (name, tool)


# ---- the reports ----

def text_of(path):
    done = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, check=True)
    return re.sub(r"\s+", " ", done.stdout.decode())


def test_pdfsig_finds_one_good_signature_and_the_whole_report_covered(live, test, tmp_path):
    """Of a document timestamp it tells what it covers, and verifies none."""
    for delivery, found in ((live, 2), (test, 1)):
        for report in delivery.reports.values():
            done = subprocess.run(["pdfsig", "-nocert", report], capture_output=True, text=True,
                                  check=False, env={**os.environ, "HOME": str(tmp_path)})
            assert done.stdout.count("Signature #") == found, done.stdout + done.stderr
            assert "Signature Validation: Signature is Valid." in done.stdout, done.stdout
            assert done.stdout.count("Total document signed") == 1, done.stdout
            assert "Total document signed" in done.stdout[done.stdout.index(f"#{found}"):]
            assert "ETSI.CAdES.detached" in done.stdout


def test_the_reports_are_sound_pdf(live):
    for report in live.reports.values():
        done = subprocess.run(["qpdf", "--check", report], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_both_reports_tell_the_same_facts_each_in_its_language(live, channel):
    english, spanish = text_of(live.reports["en"]), text_of(live.reports["es"])
    record = live.record
    archive_digest = evidence.sha256(live.archive.read_bytes())
    for text in (english, spanish):
        solid = text.replace(" ", "")
        for fact in (record["certification_id"], record["verification_code"], channel.id):
            assert fact in text, fact
        for digest in (archive_digest, record["content_parts"][0]["sha256"],
                       channel.events[1]["chain_hash"], channel.events[5]["chain_hash"]):
            assert digest in solid or digest[:32] in solid, digest
        for declared in ("A declarant", "Renamed <&> \u00f1", "What it means"):
            assert declared in text, declared
        for event in channel.events[1:6]:
            assert event["client_ref"] in text
    assert "Certification report" in english and "Informe de certificaci\u00f3n" in spanish
    assert "does not attest" in english and "No acredita" in spanish
    assert "not verified" in english.lower() and "no verificado" in spanish.lower()
    assert record["verification_code"] in english and record["verification_code"] in spanish


def test_a_report_names_authorities_as_people_write_them_and_says_how_long_it_lasts(live, test):
    for language, level, words in (("en", "PAdES, level B-LTA", "without this service until at least"),
                                   ("es", "PAdES, nivel B-LTA", "sin este servicio al menos hasta")):
        text = text_of(live.reports[language])
        assert "Development timestamp authority (Constancia development, no legal value)" in text
        assert "CN=" not in text and "\\," not in text
        assert level in text and words in text
        done = run("verify", live.reports[language], "--json")
        assert done.returncode == 2
        (found,) = json.loads(done.stdout)["signatures"]
        year = found["checkable_until"][:4]
        assert found["level"] == "B-LTA" and year in text[text.index(words):][:80]
    assert "PAdES, level B-B" in text_of(test.reports["en"])


def test_a_test_report_says_on_every_page_that_it_has_no_probative_value(test):
    for language, words in (("en", "NO PROBATIVE VALUE"), ("es", "SIN VALOR PROBATORIO")):
        done = subprocess.run(["pdftotext", test.reports[language], "-"], capture_output=True,
                              check=True)
        pages = done.stdout.decode().rstrip("\f").split("\f")
        for page in pages:
            assert words in re.sub(r"\s+", " ", page), page


def test_the_reports_are_two_and_signed_separately(live):
    english, spanish = (live.reports[name].read_bytes() for name in ("en", "es"))
    assert english != spanish
    signatures = [re.search(rb"/Contents\s*<([0-9a-fA-F]+)>", data)[1].rstrip(b"0")
                  for data in (english, spanish)]
    assert signatures[0] != signatures[1]


# ---- without the library that compresses faster ----

def compressor_is_loaded(service):
    with open(f"/proc/{service.process.pid}/maps", encoding="utf-8") as maps:
        return "/libisal.so" in maps.read()


def test_where_no_faster_compressor_is_installed_zlib_makes_the_same_archive(start, tmp_path):
    """In its place is a file that cannot be loaded. Fields that are of a certification alone aside."""
    service = start()
    channel = service.new_channel()
    for n in range(200):
        event = channel.live.register({"n": n}).expect(201).json
    channel.live.sealed(event["event_id"])
    deliveries = []
    for name in ("with", "without"):
        if name == "without":
            assert compressor_is_loaded(service) == (platform.machine() == "x86_64")
            assert service.stop() == 0
            (tmp_path / "libisal.so.2").write_bytes(b"")
            service.environment = {"LD_LIBRARY_PATH": str(tmp_path)}
            service.start()
        (tmp_path / name).mkdir()
        deliveries.append(Delivery(channel, "live", tmp_path / name, seq_from=1, seq_to=200))
    assert not compressor_is_loaded(service)
    for delivery in deliveries:
        assert verify(*delivery.all, trust=delivery.trust)["checked"]["events"] == 200
        with_zlib = run("verify", *delivery.all, "--trust", delivery.trust, environment=service.environment)
        assert with_zlib.returncode == 0, with_zlib.stderr
    for kind in ("events", "seals"):
        first, second = (lines(opened(delivery.archive), kind) for delivery in deliveries)
        assert first and first == second
    channel.close()
