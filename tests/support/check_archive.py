#!/usr/bin/env python3
"""A second, independent verifier of evidence archives and their content parts.

Written only from docs/verify/evidence-format.md, with the standard library, the openssl command and, for revocation
data, python3-cryptography. It holds everything in memory and serves the tests as a cross-check of `constancia
verify`.

usage: check_archive.py [--trust ROOTS.pem] [--at TIME] [--beside ARCHIVE]... ARCHIVE [PART...]
       check_archive.py --serve
Exit status as of `constancia verify`: 0: valid; 1: not valid; 2: intact, but the signer was not established, or
it could not be checked as of the time of --at; the reason is on standard error. With --serve, each line of
standard input has the arguments of one check, and each line of standard output its verdict: "valid: …",
"not valid: …" or "not established: …". One process then serves a complete test program.
"""

import argparse
import base64
import datetime
import hashlib
import json
import re
import shlex
import struct
import sys
import zlib

from cryptography import x509

import check_cms
import check_revocation
import tlog
from check_cms import REFUSALS, NotEstablished, Trust, require

TOLERANCE = datetime.timedelta(seconds=300)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
HASH = re.compile(r"[0-9a-f]{64}")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def canonical(value):
    """RFC 8785 for the values used here: integers and ASCII names."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def is_time(value):
    return isinstance(value, str) and bool(TIME.fullmatch(value)) and bool(time_of(value))


def is_text(value):
    return isinstance(value, str) and "\0" not in value


def one_of(*words):
    return lambda value: isinstance(value, str) and value in words


def integer(first, last=2**53 - 1):
    return lambda value: type(value) is int and first <= value <= last


def is_base64(most):
    def check(value):
        der = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
        return 0 < len(der) <= most and base64.b64encode(der).decode() == value
    return check


def hash_list(most):
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(is_hash, value))


def is_hash(value):
    return isinstance(value, str) and bool(HASH.fullmatch(value))


def or_null(check):
    return lambda value: value is None or check(value)


# Members with the same meaning in all documents; others are checked where they are read.
FORMS = {
    "authority": is_text, "bytes": integer(1, 10**9), "chain": one_of("live", "test"),
    "chain_hash": is_hash, "channel_id": is_text, "certification_id": is_text,
    "client_ref": lambda value: is_text(value) and 1 <= len(value.encode()) <= 255,
    "config_version": integer(1), "count": integer(1, 16384), "created_at": is_time,
    "declarant": is_text, "description": or_null(is_text), "entry": is_text, "event_count": integer(1),
    "event_id": is_text, "first_sequence": integer(1), "from": or_null(is_time),
    "gen_time": is_time, "hash_alg": one_of("sha-256", "sha-512"), "issued_at": is_time,
    "last_sequence": integer(1), "max_error_us": integer(0), "modality": one_of("content", "hash_only"),
    "mode": one_of("live", "test"), "name": is_text, "number": integer(1, 10000),
    "occurred_at": or_null(is_time), "path": lambda value: is_text(value) or hash_list(63)(value),
    "prefix": is_text, "previous_seal_hash": or_null(is_hash), "previous_token_hash": or_null(is_hash),
    "received_at": is_time, "request": or_null(is_base64(1024)), "root": is_hash,
    "round_id": lambda value: is_text(value) and 1 <= len(value.encode()) <= 127, "sealed_at": is_time,
    "segment_id": is_text, "seq_from": or_null(integer(1)), "seq_to": or_null(integer(1)),
    "sequence": integer(1), "sha256": is_hash, "size": or_null(integer(0)), "source": is_text, "stamp": integer(1),
    "supplementary_info": or_null(is_text), "synchronized": lambda value: type(value) is bool,
    "to": or_null(is_time), "verification_code": is_text, "verification_url": is_text,
    "version": integer(1), "kind": one_of("qualified", "non_qualified", "development", "certificate",
                                          "crl", "ocsp"),
}


def members_of(value, members, where):
    """Checks that an object has exactly these members."""
    require(isinstance(value, dict) and set(value) == set(members.split()), where, "members")
    for name, member in value.items():
        form = FORMS.get(name, is_hash if name.endswith("_hash") else None)
        require(form is None or form(member), where, name)
    return value


def document(data, members, where, versions=(1,)):
    require(len(data) <= {"manifest.json": 16777215, "signers.p7m": 6 << 20}.get(where, 262144), where, "size")
    value = json.loads(data.decode("utf-8"))
    members_of(value, members, where)
    require(canonical(value) == data, where, "not canonical")
    if "v" in members.split():
        require(type(value["v"]) is int and value["v"] in versions, where, "v")
    return value


def time_of(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")


def read_zip(path):
    """Section 2. Returns an ordered dict from name to content."""
    with open(path, "rb") as file:
        data = file.read()
    end = struct.unpack("<4sHHHHIIH", data[-22:])
    _, _, _, _, count, size, offset, _ = end
    require(end == (b"PK\5\6", 0, 0, count, count, size, offset, 0), path, "end record")
    require(count <= 65534 and len(data) <= 2**32 - 1, path, "size")
    require(offset + size + 22 == len(data), path, "directory")
    entries, at, record = {}, 0, offset
    for _ in range(count):
        central = struct.unpack("<4sHHHHHHIIIHHHHHII", data[record:record + 46])
        crc, length, name_size = central[7], central[8], central[10]
        raw = data[record + 46:record + 46 + name_size]
        name = raw.decode("ascii")
        common = (10, 0, 0, 0, 0x21, crc, length, length, name_size, 0)
        require(central == (b"PK\1\2", 0x030A) + common + (0, 0, 0, 0x81A40000, at), path, name)
        require(data[at:at + 30 + name_size] == struct.pack("<4sHHHHHIIIHH", b"PK\3\4", *common) + raw,
                path, f"local header of {name}")
        require(re.fullmatch(r"[A-Za-z0-9._/-]{1,100}", name) and name not in entries
                and not {"", ".", ".."} & set(name.split("/")), path, f"name {name}")
        content = data[at + 30 + name_size:at + 30 + name_size + length]
        require(len(content) == length and zlib.crc32(content) == crc, path, f"CRC of {name}")
        entries[name] = content
        at += 30 + name_size + length
        record += 46 + name_size
    require(at == offset and record == offset + size, path, "bytes of no entry")
    return entries


def lines_of(entries, stream):
    lines, number = [], 1
    while (name := f"{stream}/{stream}-{number:06}.ndjson.gz") in entries:
        inflater = zlib.decompressobj(31)
        text = inflater.decompress(entries[name])
        require(inflater.eof and not inflater.unused_data, name, "gzip")
        require(text.endswith(b"\n"), name, "last line")
        own = text[:-1].split(b"\n")
        require(len(lines) == (number - 1) * 100000 and len(own) <= 100000, name, "number of lines")
        lines += own
        number += 1
    return lines


def node(a, b):
    return sha256(b"".join(sorted((bytes.fromhex(a), bytes.fromhex(b)))))


def root_of(level):
    while len(level) > 1:
        level = [node(*level[i:i + 2]) if i + 1 < len(level) else level[i]
                 for i in range(0, len(level), 2)]
    return level[0]


def check_signers(entries, trust, signer, signed_at):
    """Section 15: the list of signers inside, against the archive's own signer."""
    where = "signers.p7m"
    if where not in entries:
        return
    text, own, given = check_cms.check_attached(entries[where], trust, where)
    kinds = ["log_keys", "receipt_keys"] if json.loads(text)["v"] == 2 else []
    listed = document(text, " ".join(["certificates issued_at service v", *kinds]), where, (2 if kinds else 1,))
    check_keys(listed, kinds, where)
    require(set(listed["service"]) == {"name", "prefix", "url"}, where, "service")
    require(1 <= len(listed["certificates"]) <= 1000, where, "certificates")
    uses = {}
    for item in listed["certificates"]:
        require(set(item) == {"certificate", "reason", "sha256", "used_from", "used_until"}, where, "members")
        require(sha256(base64.b64decode(item["certificate"], validate=True)) == item["sha256"] not in uses, where,
                "sha256")
        require((item["reason"] is None) == (item["used_until"] is None), where, "reason")
        require(TIME.fullmatch(item["used_from"]) and (item["used_until"] is None
                                                       or TIME.fullmatch(item["used_until"])), where, "times")
        uses[item["sha256"]] = item
    require(sum(item["used_until"] is None for item in uses.values()) <= 1, where, "in force")
    require(abs(given - time_of(listed["issued_at"])) <= datetime.timedelta(hours=1), where, "issued_at")
    require(signed_at is None or given <= signed_at + TOLERANCE, where, "later than the archive")
    for sha256_of_it, when in ((own, given), (signer, signed_at)):
        use = uses.get(sha256_of_it)
        require(use is not None, where, "a signer that is not listed")
        require(use["used_until"] is None or (when is not None and when <= time_of(use["used_until"])), where, "ended")
        require(when is None or when >= time_of(use["used_from"]) - TOLERANCE, where, "too early")


def check_keys(listed, kinds, where):
    """Section 15: the keys that sign without certificates."""
    require(not kinds or any(listed[kind] for kind in kinds), where, "no keys")
    for kind in kinds:
        require(len({item["key"] for item in listed[kind]}) == len(listed[kind]) <= 1000, where, kind)
        for item in listed[kind]:
            proof = {"proof", "sha256"} if kind == "receipt_keys" and "proof" in item else set()
            require(set(item) == {"key", "used_from", "used_until"} | proof, where, "members of a key")
            require(not proof or (len(base64.b64decode(item["proof"], validate=True)) == 64
                                  and re.fullmatch("[0-9a-f]{64}", item["sha256"])), where, "proof of a key")
            require(all(time is None or TIME.fullmatch(time) for time in (item["used_from"], item["used_until"])),
                    where, "times of a key")
            bytes_of_it = base64.b64decode(item["key"].split("+", 2)[2] if kind == "log_keys" else item["key"],
                                           validate=True)
            require(len(bytes_of_it) == (33 if kind == "log_keys" else 32), where, "key")


def check_signature(entries, manifest, trust):
    """Section 7."""
    asic = ('<?xml version="1.0" encoding="UTF-8"?>\n'
            '<asic:ASiCManifest xmlns:asic="http://uri.etsi.org/02918/v1.2.1#"'
            ' xmlns:ds="http://www.w3.org/2000/09/xmldsig#">\n'
            '<asic:SigReference URI="META-INF/signature001.p7s"'
            ' MimeType="application/x-pkcs7-signature"/>\n')
    for name in ["manifest.json"] + [file["path"] for file in manifest["files"]]:
        digest = base64.b64encode(hashlib.sha256(entries[name]).digest()).decode()
        asic += (f'<asic:DataObjectReference URI="{name}"><ds:DigestMethod'
                 ' Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/>'
                 f"<ds:DigestValue>{digest}</ds:DigestValue></asic:DataObjectReference>\n")
    asic += "</asic:ASiCManifest>\n"
    found = entries["META-INF/ASiCManifest001.xml"]
    require(found == asic.encode(), "ASiCManifest001.xml", "other bytes")
    where = "signature001.p7s"
    signed, token = check_cms.check_signature(entries["META-INF/signature001.p7s"], found, trust,
                                              where)
    require(manifest["mode"] == "test" or token, where, "no timestamp")
    if token:
        require(time_of(manifest["issued_at"]) <= token.time + TOLERANCE, where, "issued_at is after its timestamp")
        trust.check_end(token.time, check_cms.when(token.certificate, "not_valid_after"), where)
    stated = signed.signing_time()
    require(stated == time_of(manifest["issued_at"]).replace(microsecond=0), where, "signing-time")
    given = token and token.time
    if manifest["v"] > 2:
        check_signers(entries, trust, signed.certificate.fingerprint(check_cms.hashes.SHA256()).hex(), given)
    return check_cms.check_inside(signed, token), given


def check_parts(manifest, first, last):
    """The content parts that section 6 lists."""
    where, after = "content_parts", first - 1
    require(len(manifest["content_parts"]) <= 10000, where, "number")
    for number, part in enumerate(manifest["content_parts"], 1):
        members_of(part, "bytes first_sequence last_sequence name sha256", where)
        require(part["name"] == f"content-part-{number:03}.zip", where, "name")
        require(after < part["first_sequence"] <= part["last_sequence"] <= last, where, "range")
        after = part["last_sequence"]


def check_manifest(entries):
    """Sections 3 and 6."""
    where = "manifest.json"
    manifest = document(entries[where], "certification_id channel_id config_versions content_parts"
                        " event_count files first_chain_hash frozen_range issued_at last_chain_hash"
                        " mode previous_chain_hash requested_range service v verification_code",
                        where, versions=(1, 2, 3))
    members_of(manifest["service"], "name prefix verification_url", where)
    members_of(manifest["frozen_range"], "first_sequence last_sequence", where)
    members_of(manifest["requested_range"], "from seq_from seq_to to", where)
    for listed in manifest["files"]:
        members_of(listed, "path sha256 size", where)
    versions_ = [members_of(listed, "hash version", where)["version"]
                 for listed in manifest["config_versions"]]
    require(versions_ == sorted(set(versions_)) and all(is_hash(listed["hash"]) for listed
                                                        in manifest["config_versions"]), where, "versions")
    names = list(entries)
    require(len(names) <= 20000, where, "number of entries")
    require(names[0] == "mimetype"
            and entries["mimetype"] == b"application/vnd.etsi.asic-e+zip", "mimetype", "content")
    require(names[-3:] == ["manifest.json", "META-INF/ASiCManifest001.xml",
                           "META-INF/signature001.p7s"], where, "order of the entries")
    listed = [(name, sha256(entries[name]), len(entries[name])) for name in names[1:-3]]
    require(listed == [(f["path"], f["sha256"], f["size"]) for f in manifest["files"]],
            where, "files")
    expected = ["README.txt", "LEEME.txt", "genesis.json"]
    if manifest["v"] > 2 and names[4] == "signers.p7m":
        expected.append("signers.p7m")
    expected += [f"config/config-{c['version']:06}.json" for c in manifest["config_versions"]]
    for stream in ("events", "leaves", "seals", "rounds", "validation", "renewals", "checkpoints", "log", "history"):
        number = 1
        while (name := f"{stream}/{stream}-{number:06}.ndjson.gz") in entries:
            expected.append(name)
            number += 1
    require(expected == names[1:-3], where, "entries")
    first, last = (manifest["frozen_range"][k] for k in ("first_sequence", "last_sequence"))
    require(1 <= first <= last and manifest["event_count"] == last - first + 1, where, "range")
    check_parts(manifest, first, last)
    asked = manifest["requested_range"]
    times, numbers = (asked["from"], asked["to"]), (asked["seq_from"], asked["seq_to"])
    require(len(asked) == 4 and (times == (None, None) and numbers == (first, last)
                                 or numbers == (None, None) and None not in times
                                 and times[0] < times[1]), where, "requested_range")
    return manifest


def check_events(entries, manifest):
    """Sections 4.1 to 4.3. Returns chain hashes and events by sequence."""
    channel, mode = manifest["channel_id"], manifest["mode"]
    genesis = document(entries["genesis.json"], "chain channel_id created_at v", "genesis.json")
    require((genesis["chain"], genesis["channel_id"]) == (mode, channel), "genesis.json", "channel")
    configs = {}
    for listed in manifest["config_versions"]:
        name = f"config/config-{listed['version']:06}.json"
        config = document(entries[name], "channel_id declarant description modality name sealed_at"
                          " supplementary_info v version", name)
        require((config["channel_id"], config["version"], sha256(entries[name]))
                == (channel, listed["version"], listed["hash"]), name, "hash or version")
        require(len(entries[name]) <= 32768, name, "size")
        configs[listed["version"]] = (listed["hash"], config["modality"])
    hashes, events = {}, {}
    previous, received, used = manifest["previous_chain_hash"], "", set()
    sequence = manifest["frozen_range"]["first_sequence"]
    if sequence == 1:
        require(previous == sha256(entries["genesis.json"]), "genesis.json", "event 1")
    for line in lines_of(entries, "events"):
        where = f"event {sequence}"
        event = document(line, "chain channel_id client_ref config_hash config_version event_id hash"
                         " hash_alg modality occurred_at previous_chain_hash received_at sequence v",
                         where)
        require((event["chain"], event["channel_id"], event["sequence"], event["previous_chain_hash"])
                == (mode, channel, sequence, previous), where, "does not continue the chain")
        require(event["received_at"] >= received, where, "received_at")
        asked = manifest["requested_range"]
        require(not asked["from"] or asked["from"] <= event["received_at"] < asked["to"], where,
                "requested_range")
        require(configs.get(event["config_version"]) == (event["config_hash"], event["modality"]), where,
                "config_hash or modality")
        require(time_of(event["received_at"]) <= time_of(manifest["issued_at"]) + TOLERANCE, where,
                "received after issued_at")
        require(event["modality"] == "hash_only" or event["hash_alg"] == "sha-256", where, "hash_alg")
        require(re.fullmatch({"sha-256": "[0-9a-f]{64}", "sha-512": "[0-9a-f]{128}"}
                             [event["hash_alg"]], event["hash"]), where, "hash")
        received, previous = event["received_at"], sha256(line)
        used.add(event["config_version"])
        hashes[sequence], events[sequence] = previous, event
        sequence += 1
    first, last = (manifest["frozen_range"][k] for k in ("first_sequence", "last_sequence"))
    require(sequence == last + 1 and hashes[first] == manifest["first_chain_hash"]
            and hashes[last] == manifest["last_chain_hash"], "manifest.json", "range or its hashes")
    require(used == set(configs), "manifest.json", "config_versions")
    return hashes, events


def check_objects(entries):
    """Section 4.7. Returns the objects by their SHA-256."""
    objects, before = {}, ""
    for line in lines_of(entries, "validation"):
        given = document(line, "der kind sha256", "validation")
        require(is_base64(262144)(given["der"]), "validation", "der")
        require(given["kind"] in ("certificate", "crl", "ocsp"), "validation", "kind")
        der = base64.b64decode(given["der"], validate=True)
        require(sha256(der) == given["sha256"] > before, "validation", "sha256 or order")
        objects[given["sha256"]] = (given["kind"], der)
        before = given["sha256"]
    require(len(objects) <= 4096 and sum(len(der) for _, der in objects.values()) <= 32 << 20,
            "validation", "too many objects")
    return objects


def certificates_of(given, objects, where):
    """Returns the certificates that a token names; checks its references."""
    for member, kinds, most in (("certificates", ("certificate",), 64), ("revocations", ("crl", "ocsp"), 16)):
        names = given.get(member, [])
        require(hash_list(most)(names), where, member)
        require(names == sorted(set(names)) and all(HASH.fullmatch(name) for name in names), where,
                member)
        require(all(name in objects and objects[name][0] in kinds for name in names), where, member)
    return [x509.load_der_x509_certificate(objects[name][1]) for name in given.get("certificates", [])]


def check_token(given, digest, between, trust, times, where):
    """Checks a token over that digest as of its own time and of `times`. Returns its bytes, its time and its
    imprint."""
    require(given["kind"] in ("qualified", "non_qualified", "development"), where, "kind")
    require(is_base64(131072 if "stamp" in given else 65536)(given["token"]), where, "token")
    token = base64.b64decode(given["token"], validate=True)
    signed = check_cms.check_token(token, digest and bytes.fromhex(digest), trust, where, between, times)
    if given.get("request") is not None:
        check_cms.check_request(base64.b64decode(given["request"], validate=True), signed, where)
    require(signed.time == time_of(given["gen_time"]), where, "gen_time")
    return token, signed.time, signed.imprint.hex()


def covering(given, stamps, where):
    """Section 4.9. Returns the archive timestamp that covers a token, or None."""
    renewal = given.get("renewal")
    if renewal is None:
        return None
    members_of(renewal, "path stamp", where)
    require(renewal["stamp"] in stamps and hash_list(40)(renewal["path"]), where, "renewal")
    stamp = stamps[renewal["stamp"]]
    top = sha256(base64.b64decode(given["token"], validate=True))
    for sibling in renewal["path"]:
        top = node(top, sibling)
    require(top == stamp["imprint"], where, "is not covered by its renewal")
    require(time_of(given["gen_time"]) <= stamp["time"], where, "renewed before its time")
    stamp["named"] = True
    return stamp


def check_renewals(entries, trust):
    """Section 4.9. Returns the archive timestamps by number."""
    stamps, before = {}, None
    for line in lines_of(entries, "renewals"):
        given = document(line, "authority gen_time kind renewal stamp token", "renewals")
        where = f"archive timestamp {given['stamp']}"
        require(given["stamp"] < (before or 2**53) and len(stamps) < 65536, where, "order")
        before = given["stamp"]
        later = covering(given, stamps, where)
        _, time, imprint = check_token(given, None, [], trust, [later["time"]] if later else [], where)
        stamps[before] = {"time": time, "imprint": imprint, "named": False}
    return stamps


def check_round_token(round_, given, objects, stamps, trust):
    """Returns the SHA-256 of the token and the revocation state of its certificates."""
    where = round_["round_id"]
    between = certificates_of(given, objects, where)
    renewal = covering(given, stamps, where)
    token, time, _ = check_token(given, round_["root"], between, trust,
                                 [renewal["time"]] if renewal else [], where)
    names = given.get("revocations", [])
    require(len(names) <= 16, where, "revocations")
    standing, bare = check_revocation.judge(token, "".join(check_cms.pem_of(each).decode() for each in between), [objects[name] for name in names], time,
                                            renewal and renewal["time"]) if names else ("open", True)
    require(bare, where, "superfluous revocation data")
    return sha256(token), standing


TOKEN = "authority gen_time kind request token"
TOKEN_2 = f"{TOKEN} certificates renewal revocations"


def read_round(line, version):
    """Sections 4.6 and 12. Returns the line with its tokens in the form of version 2."""
    if version == 1:
        round_ = document(line, f"{TOKEN} root round_id", "rounds")
        round_["tokens"] = [{name: round_[name] for name in TOKEN.split()}]
        return round_
    round_ = document(line, "gen_time root round_id tokens", "rounds")
    require(isinstance(round_["tokens"], list) and 1 <= len(round_["tokens"]) <= 2, round_["round_id"],
            "tokens")
    for token in round_["tokens"]:
        members_of(token, TOKEN_2, round_["round_id"])
    require(round_["gen_time"] == round_["tokens"][0]["gen_time"], round_["round_id"], "gen_time")
    return round_


def check_rounds(entries, manifest, signed_at, trust):
    """Returns the rounds in order, each with the previous round and the hash of its token."""
    version = manifest["v"]
    rounds, before, named = [], None, set()
    require(version > 1 or not any(name.startswith(("validation/", "renewals/")) for name in entries),
            "rounds", "version 1 has no such file")
    objects = check_objects(entries) if version > 1 else {}
    stamps = check_renewals(entries, trust) if version > 1 else {}
    for line in lines_of(entries, "rounds"):
        round_ = read_round(line, version)
        require(not before or round_["round_id"] != before["round_id"], "rounds", "repeated")
        checked = [check_round_token(round_, token, objects, stamps, trust)
                   for token in round_["tokens"]]
        round_["hash"] = checked[0][0]
        round_["revoked"] = all(standing == "revoked" for _, standing in checked)
        for token in round_["tokens"]:
            named |= {*token.get("certificates", []), *token.get("revocations", [])}
        latest = min([time_of(manifest["issued_at"])] + ([signed_at] if signed_at else [])) + TOLERANCE
        require(time_of(round_["gen_time"]) <= latest, round_["round_id"], "after the archive was issued")
        round_["before"] = before
        if before:
            require(time_of(before["gen_time"]) <= time_of(round_["gen_time"]) + TOLERANCE,
                    round_["round_id"], "before the round before")
        for bound in ([time_of(manifest["issued_at"]), signed_at] if manifest["mode"] == "live" else []):
            require(time_of(round_["gen_time"]) <= bound + TOLERANCE, round_["round_id"], "after the archive was issued")
        rounds.append(round_)
        before = round_
    require(named == set(objects), "validation", "an object that no token names")
    require(all(stamp["named"] for stamp in stamps.values()), "renewals", "one that nothing names")
    return rounds


SEAL = ("chain chain_hash_before chain_hash_last channel_id clock count first_sequence last_sequence"
        " previous_seal_hash previous_token_hash segment_id v")


def read_seal(bytes_, manifest):
    """Section 4.5. Returns a seal document of the archive's chain."""
    require(len(bytes_) <= 2048, "seals", "seal")
    seal = document(bytes_, SEAL, "seals")
    where = seal["segment_id"]
    members_of(seal["clock"], "max_error_us source synchronized", where)
    require((seal["chain"], seal["channel_id"]) == (manifest["mode"], manifest["channel_id"]), where, "channel")
    begin, end = seal["first_sequence"], seal["last_sequence"]
    require(begin <= end and end - begin + 1 == seal["count"] <= 16384, where, "count")
    return seal


def check_history(entries, manifest):
    """Section 4.12. Returns for each segment before those of the archive the same as check_seals, without the hash
    of its token."""
    history, before = [], (0, 0, None, None)
    chain_hash = sha256(entries["genesis.json"])
    for line in lines_of(entries, "history"):
        seal = read_seal(line, manifest)
        where = seal["segment_id"]
        require(seal["first_sequence"] == before[1] + 1, "history", f"{where} does not continue")
        require((seal["previous_seal_hash"], seal["chain_hash_before"]) == (before[2], chain_hash), "history",
                f"{where} names another seal or hash before")
        before = (seal["first_sequence"], seal["last_sequence"], sha256(line), seal["previous_seal_hash"])
        chain_hash = seal["chain_hash_last"]
        history.append((*before, None, chain_hash))
    if history:
        first = read_seal(canonical(json.loads(lines_of(entries, "seals")[0])["seal"]), manifest)
        require((first["first_sequence"], first["previous_seal_hash"], first["chain_hash_before"])
                == (before[1] + 1, before[2], chain_hash), "history", "does not lead to the first segment")
    return history


def check_seals(entries, manifest, hashes, events, rounds, trust):
    """Sections 4.4, 4.5 and 5. Returns for each segment its first and last event, the hashes of its seal and
    of the previous seal, and the hash of its token."""
    first, last = (manifest["frozen_range"][k] for k in ("first_sequence", "last_sequence"))
    leaves = {}
    for line in lines_of(entries, "leaves"):
        leaf = document(line, "chain_hash sequence", "leaves")
        require(leaf["sequence"] not in hashes and leaf["sequence"] > max(leaves, default=0), "leaves", "order")
        leaves[leaf["sequence"]] = leaf["chain_hash"]
    require(leaves.get(first - 1, manifest["previous_chain_hash"])
            == manifest["previous_chain_hash"], "leaves", "before the range")
    known = {**hashes, **leaves, first - 1: manifest["previous_chain_hash"]}
    previous_seal, next_sequence, covered, seals, at = None, None, set(), [], 0
    for line in lines_of(entries, "seals"):
        segment = document(line, "path round_id seal", "seals")
        bytes_ = canonical(segment["seal"])
        require(hash_list(40)(segment["path"]), "seals", "path")
        seal = read_seal(bytes_, manifest)
        where = seal["segment_id"]
        begin, end = seal["first_sequence"], seal["last_sequence"]
        require(begin == next_sequence or next_sequence is None and begin <= first <= end, where,
                "place")
        require((seal["previous_seal_hash"] is None) == (begin == 1)
                and previous_seal in (None, seal["previous_seal_hash"]), where, "seal before")
        require(seal["chain_hash_before"] == known.get(begin - 1, seal["chain_hash_before"])
                and seal["chain_hash_last"] == known[end], where, "chain hashes")
        require(len(segment["path"]) <= 40, where, "path")
        top = root_of([known[i] for i in range(begin, end + 1)] + [sha256(bytes_)])
        for sibling in segment["path"]:
            top = node(top, sibling)
        skipped = at
        while rounds[at]["round_id"] != segment["round_id"]:
            at += 1
        # Only the previous round may precede the round of the first segment.
        require(at - skipped <= (2 if seals else 1), "rounds", "one that no segment needs")
        round_ = rounds[at]
        require(top == round_["root"], where, "does not lead to the round's root")
        require(not round_["revoked"], where, "all authorities of its round were revoked")
        if round_["before"]:
            require(seal["previous_token_hash"] == round_["before"]["hash"], where, "token before")
        else:
            require(seal["previous_token_hash"] is None, where, "the round before is left out")
            if begin > 1 and not previous_seal:
                trust.open.append(f"{where}: it names no token before, and is not the first of its chain")
        for i in range(begin, end + 1):
            require(i not in events or time_of(events[i]["received_at"])
                    <= time_of(round_["gen_time"]) + TOLERANCE, where, "received after its time")
        covered.update(range(begin, end + 1))
        previous_seal, next_sequence = sha256(bytes_), end + 1
        seals.append((begin, end, previous_seal, seal["previous_seal_hash"], round_["hash"]))
    require(covered == set(hashes) | set(leaves), "seals", "do not cover range and leaves")
    require(at == len(rounds) - 1, "rounds", "one that no segment needs")
    return seals


def check_note(note, where):
    """Section 17: the form of a signed note."""
    require(len(note.encode()) <= 65536 and not re.search("[\0-\t\v-\x1f]", note), where, "size or characters of a note")
    _, signatures = tlog.parse_note(note)
    require(1 <= len(signatures) <= 64, where, "the number of signatures")
    for name, _, signature in signatures:
        require(1 <= len(name.encode()) <= 255 and not re.search(r"[\s+\x7f]", name), where, "the name of a key")
        require(1 <= len(signature) <= 16376, where, "the size of a signature")


def read_checkpoints(entries):
    """Section 4.10. Returns the roots of the log by its size, in the order of the file."""
    where, roots, before, proof, origins = "checkpoints", {}, -1, None, set()
    for line in lines_of(entries, where):
        given = document(line, "consistency note", where)
        require(isinstance(given["note"], str) and hash_list(63)(given["consistency"]), where, "forms")
        check_note(given["note"], where)
        text, _ = tlog.parse_note(given["note"])
        origin, size, root = tlog.parse_checkpoint(text)
        require(len(origin.encode()) <= 255 and "\n\n" not in text, where, "an origin, or an extension line")
        require(size > before and (size > 0 or root == hashlib.sha256().digest()), where, "order, or an empty tree")
        require(proof is None or tlog.is_consistent(before, roots[before], size, root, proof), where, "consistency")
        origins.add(origin)
        roots[size], before, proof = root, size, [bytes.fromhex(hash_) for hash_ in given["consistency"]]
    require(not proof and len(origins) <= 1, where, "the last consistency proof, or several origins")
    return roots


def check_log(entries, manifest, hashes, seals):
    """Sections 4.11 and 17: the places of the segments in the log."""
    names = [name for name in entries if name.startswith(("checkpoints/", "log/"))]
    require(manifest["v"] > 2 or not names, "log", "versions 1 and 2 have no such file")
    if not names:
        return
    roots = read_checkpoints(entries)
    require(roots, "checkpoints", "none")
    tag, sizes = tlog.tag_of(manifest["channel_id"], manifest["mode"]), [0]
    for (begin, end, seal, _, _), line in zip(seals, lines_of(entries, "log"), strict=True):
        where = f"log: events {begin} to {end}"
        place = document(line, "index path size", "log")
        require(hash_list(63)(place["path"]), where, "path")
        if place["size"] is None:
            require(place["index"] is None and not place["path"], where, "a place without a checkpoint")
            continue
        require(place["size"] in roots and integer(0, place["size"] - 1)(place["index"]), where, "index or size")
        sizes.append(place["size"])
        require(sizes == sorted(sizes), where, "an earlier checkpoint than the segment before")
        entry = canonical({"chain_hash_last": hashes[end], "first_sequence": begin, "last_sequence": end,
                           "seal_hash": seal, "tag": tag, "v": 1})
        path = [bytes.fromhex(hash_) for hash_ in place["path"]]
        root = tlog.root_of_path(tlog.leaf_hash(entry), place["index"], place["size"], path)
        require(root == roots[place["size"]], where, "is not in the log there")


def check_part(path, number, listed, manifest, events):
    """Section 9."""
    with open(path, "rb") as file:
        data = file.read()
    require((sha256(data), len(data)) == (listed["sha256"], listed["bytes"]), path, "digest")
    require(len(data) <= 10**9, path, "size")
    entries = read_zip(path)
    require(len(entries) <= 60000 and len(entries["part.json"]) <= 512, path, "entries")
    head = document(entries["part.json"], "certification_id channel_id number v", path)
    require((head["certification_id"], head["channel_id"], head["number"])
            == (manifest["certification_id"], manifest["channel_id"], number), path, "head")
    names = list(entries)
    index = entries["index.ndjson"]
    require(names[0] == "part.json" and names[-1] == "index.ndjson" and index.endswith(b"\n"),
            path, "entries")
    found = []
    for name, line in zip(names[1:-1], index[:-1].split(b"\n"), strict=True):
        item = document(line, "entry event_id hash sequence", path)
        require(len(line) <= 512, path, "a line of the index")
        event = events[item["sequence"]]
        require(item["entry"] == name and re.fullmatch(
            rf"content/{item['sequence']:012}\.(json|bin)", name), path, name)
        require(sha256(entries[name]) == item["hash"] == event["hash"]
                and item["event_id"] == event["event_id"], path, name)
        found.append(item["sequence"])
    require(found == [i for i, event in sorted(events.items()) if event["modality"] == "content"
                      and listed["first_sequence"] <= i <= listed["last_sequence"]],
            path, "events of content")


def facts_of(path, entries, manifest, hashes, seals, history):
    """Section 10.2. Returns the facts on which other archives of the same channel must agree."""
    channel, mode = manifest["channel_id"], manifest["mode"]
    facts = {("genesis", channel, mode): sha256(entries["genesis.json"])}
    with open(path, "rb") as file:
        facts["archive", manifest["certification_id"]] = sha256(file.read())
    for listed in manifest["config_versions"]:
        facts["configuration", channel, listed["version"]] = listed["hash"]
    before = manifest["frozen_range"]["first_sequence"] - 1
    events = {before: manifest["previous_chain_hash"], **hashes}
    for line in lines_of(entries, "leaves"):
        leaf = json.loads(line)
        events[leaf["sequence"]] = leaf["chain_hash"]
    for sequence, chain_hash in events.items():
        facts["event", channel, mode, sequence] = chain_hash
    for begin, end, seal, previous, token in seals:
        if previous:
            facts["seal", channel, mode, begin - 1] = previous
        for sequence in range(begin, end + 1):
            facts["seal", channel, mode, sequence] = seal
            facts["token", channel, mode, sequence] = token
    for begin, end, seal, _, _, chain_hash in history:
        facts["event", channel, mode, end] = chain_hash
        for sequence in range(begin, end + 1):
            facts["seal", channel, mode, sequence] = seal
    return facts


def check_archive(path, trust):
    """Checks a single archive. Returns its manifest, its events, its facts and a summary."""
    entries = read_zip(path)
    manifest = check_manifest(entries)
    level, signed_at = check_signature(entries, manifest, trust)
    hashes, events = check_events(entries, manifest)
    rounds, seals, history = check_rounds(entries, manifest, signed_at, trust), [], []
    require(manifest["v"] > 2 or not any(name.startswith("history/") for name in entries), path,
            "a version before 3 has no history")
    if manifest["mode"] == "live":
        seals = check_seals(entries, manifest, hashes, events, rounds, trust)
        leaves = {leaf["sequence"]: leaf["chain_hash"] for leaf in map(json.loads, lines_of(entries, "leaves"))}
        check_log(entries, manifest, {**hashes, **leaves}, seals)
        history = check_history(entries, manifest)
    else:
        streams = ("leaves/", "seals/", "rounds/", "validation/", "renewals/", "checkpoints/", "log/", "history/")
        require(not any(name.startswith(streams) for name in entries), path,
                "a test archive has no seals")
    return manifest, events, facts_of(path, entries, manifest, hashes, seals, history), \
        f"{len(events)} events, {len(rounds)} rounds, signed B-{level}"


def check(arguments):
    """Returns a summary; raises one of REFUSALS for invalid evidence."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trust")
    parser.add_argument("--at", type=check_cms.moment)
    parser.add_argument("--beside", action="append", default=[])
    parser.add_argument("archive")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args(arguments)
    trust = Trust(options.trust, options.at)
    manifest, events, known, said = check_archive(options.archive, trust)
    for path in options.beside:
        for about, told in check_archive(path, trust)[2].items():
            require(known.setdefault(about, told) == told, path, f"another history: {about}")
    by_digest = {part["sha256"]: i for i, part in enumerate(manifest["content_parts"])}
    for path in options.parts:
        with open(path, "rb") as file:
            i = by_digest.get(sha256(file.read()))
        require(i is not None, path, "the manifest does not list it")
        check_part(path, i + 1, manifest["content_parts"][i], manifest, events)
    trust.conclude()
    return f"valid: {said}, {len(options.parts)} parts"


def refusal(problem):
    word = "established" if isinstance(problem, NotEstablished) else "valid"
    return f"not {word}: {type(problem).__name__}: {problem}"


def serve():
    for line in sys.stdin:
        try:
            verdict = check(shlex.split(line))
        except REFUSALS as problem:
            verdict = refusal(problem)
        print(" ".join(verdict.split()), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        try:
            print(check(sys.argv[1:]))
        except REFUSALS as problem:
            print(refusal(problem), file=sys.stderr)
            sys.exit(2 if isinstance(problem, NotEstablished) else 1)
