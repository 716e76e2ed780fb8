#!/usr/bin/env python3
"""A second, independent verifier of signed reports: sections 7 and 8 of docs/verify/evidence-format.md, as far as
they exceed the general form of PAdES. It holds everything in memory and serves the tests as a cross-check of
`constancia verify`.

usage: check_report.py [--trust ROOTS.pem] [--at TIME] REPORT [ARCHIVE]
Exit status 0: valid; 1: not valid; 2: intact, but the signer was not established, or it could not be checked as
of the time of --at; the reason is on standard error.
"""

import argparse
import datetime
import hashlib
import re
import sys

from cryptography import x509
from cryptography.x509 import ocsp

import check_cms
from check_cms import REFUSALS, NotEstablished, require

OBJECTS_MAX, BYTES_MAX = 256, 8 << 20
KINDS = (("Certs", "certificate", x509.load_der_x509_certificate),
         ("CRLs", "crl", x509.load_der_x509_crl), ("OCSPs", "ocsp", ocsp.load_der_ocsp_response))
PROPERTIES = ("CertificationId", "VerificationCode", "ChannelId", "Chain", "Language", "FirstSequence",
              "LastSequence", "EventCount", "FirstChainHash", "LastChainHash", "ArchiveSha256",
              "ArchiveSize")
SIGNATURE = re.compile(
    rb"/SubFilter /(ETSI\.CAdES\.detached|ETSI\.RFC3161)\b[^<]*?/ByteRange \[ ?(\d+) +(\d+) +(\d+) +(\d+) *\]"
    rb"[^<]*?/Contents <([0-9a-f]+)>", re.S)


def read_signatures(file):
    """Returns each signature as (SubFilter, its DER, the covered bytes, the end of them), in the order of the
    file."""
    found = []
    for match in SIGNATURE.finditer(file):
        begin, size, resumes, rest = map(int, match.groups()[1:5])
        require((begin, size, resumes) == (0, match.start(6) - 1, match.end(6) + 1), "ByteRange",
                "covers another part")
        data = bytes.fromhex(match[6].decode())
        end = check_cms.element(data)[2]
        require(not data[end:].strip(b"\0"), "Contents", "something after the DER")
        require(resumes + rest <= len(file), "ByteRange", "beyond the end")
        found.append((match[1].decode(), data[:end], file[:size] + file[resumes:resumes + rest],
                      resumes + rest))
    return found


def read_objects(update):
    """Returns the objects of the update with validation data as (kind, DER)."""
    dictionary = re.search(rb"\n(\d+) 0 obj\n<< /Type /DSS((?: /(?:Certs|CRLs|OCSPs) \[[ \dR]*\])*) >>\n",
                           update)
    require(dictionary, "DSS", "missing")
    objects = []
    for name, kind, load in KINDS:
        listed = re.search(rb"/%s \[((?: \d+ 0 R)+) \]" % name.encode(), dictionary[2])
        before = b""
        for number in re.findall(rb"(\d+) 0 R", listed[1]) if listed else ():
            head = re.search(rb"\n%s 0 obj\n<< /Length (\d+) >>\nstream\n" % number, update)
            require(head, "DSS", "an object that is not there")
            der = update[head.end():head.end() + int(head[1])]
            load(der)
            require(check_cms.element(der)[2] == len(der), "DSS", "not one DER element")
            digest = hashlib.sha256(der).digest()
            require(digest > before, "DSS", "order")
            before = digest
            objects.append((kind, der))
    require(len(objects) <= OBJECTS_MAX and sum(len(der) for _, der in objects) <= BYTES_MAX, "DSS",
            "too much")
    return objects


def judge_level(signed, token, last, objects):
    """Section 8. Returns T or LTA."""
    more = [x509.load_der_x509_certificate(der) for kind, der in objects if kind == "certificate"]
    told = [each for each in objects if each[0] != "certificate"]
    time, last_time = token.gen_time(), last.gen_time()
    require(last_time >= time - datetime.timedelta(seconds=300), "document timestamp", "too early")
    first = check_cms.judge_paths([(signed.path(more), time, False), (token.path(more), last_time, False)],
                                  told)
    check_cms.judge_paths([(last.path(more), last_time, True)], told)
    return "T" if check_cms.NOTHING in first else "LTA"


def read_properties(file):
    """Returns the properties in the report's XMP."""
    packet = re.search(rb"<\?xpacket begin=.*?<\?xpacket end=", file, re.S)
    require(packet, "XMP", "missing")
    found = dict(re.findall(r"<constancia:(\w+)>([^<]*)</constancia:\1>", packet[0].decode()))
    require(set(PROPERTIES) <= set(found), "XMP", "properties")
    require(int(found["EventCount"]) == int(found["LastSequence"]) - int(found["FirstSequence"]) + 1, "XMP",
            "EventCount")
    return found


def check(file, trust):
    """Returns the level and the properties."""
    trust = check_cms.Trust.of(trust)
    told = check_signatures(file, trust)
    trust.conclude()
    return told


def check_signatures(file, trust):
    signatures = read_signatures(file)
    require([each[0] for each in signatures] in (["ETSI.CAdES.detached"],
                                                 ["ETSI.CAdES.detached", "ETSI.RFC3161"]), "report",
            "other signatures")
    kind, cms, covered, end = signatures[0]
    signed, token = check_cms.check_signature(cms, covered, trust, kind)
    require(signed.revocations is None and signed.signing_time() is None, kind, "crls or signing-time")
    properties = read_properties(file[:end])
    require(properties["Chain"] == "test" or token, kind, "no timestamp")
    require(signatures[-1][3] == len(file), "report", "something after it")
    last = token
    if len(signatures) == 2:
        require(token, kind, "no timestamp")
        _, der, covered, _ = signatures[1]
        last = check_cms.check_token(der, hashlib.sha256(covered).digest(), trust, "document timestamp")
    if last:
        trust.check_end(last.time, check_cms.when(last.certificate, "not_valid_after"), kind)
    if len(signatures) == 1:
        return "T" if token else "B", properties
    return judge_level(signed, token, last, read_objects(file[end:])), properties


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trust")
    parser.add_argument("--at", type=check_cms.moment)
    parser.add_argument("report")
    parser.add_argument("archive", nargs="?")
    options = parser.parse_args()
    with open(options.report, "rb") as file:
        level, properties = check(file.read(), check_cms.Trust(options.trust, options.at))
    if options.archive:
        with open(options.archive, "rb") as file:
            data = file.read()
        require((properties["ArchiveSha256"], int(properties["ArchiveSize"]))
                == (hashlib.sha256(data).hexdigest(), len(data)), "XMP", "another archive")
    print(f"valid: {properties['CertificationId']}, signed B-{level}")


if __name__ == "__main__":
    try:
        main()
    except REFUSALS as problem:
        print(f"not valid: {type(problem).__name__}: {problem}", file=sys.stderr)
        sys.exit(2 if isinstance(problem, NotEstablished) else 1)
