"""What a second verifier needs of CMS: who signed, a timestamp, revocation data (docs/evidence-format.md,
sections 7 and 8). With python3-cryptography for certificates, CRLs and OCSP responses; for tests alone."""

import datetime
import hashlib
import os
import re
import struct
import subprocess
import tempfile
import zlib

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

OCSP_FORMAT = bytes.fromhex("2b0601050507" + "1002")
TIMESTAMP = bytes.fromhex("2a864886f70d010910020e")
TST_INFO = bytes.fromhex("2a864886f70d0109100104")
SHA256 = bytes.fromhex("608648016503040201")
SIGNING_TIME = bytes.fromhex("2a864886f70d010905")
NO_CHECK = "1.3.6.1.5.5.7.48.1.5"
OBJECTS_MAX, BYTES_MAX = 16, 8 << 20
AFTER, CURRENT, NOTHING = range(3)  # from the best to the worst
LEAVES_THE_PAST = (x509.ReasonFlags.unspecified, x509.ReasonFlags.affiliation_changed,
                   x509.ReasonFlags.superseded, x509.ReasonFlags.cessation_of_operation)


class Invalid(Exception):
    pass


# Exceptions that mean that something is not valid: those of these checks, and of libraries that read damaged bytes.
REFUSALS = (Invalid, ArithmeticError, LookupError, TypeError, ValueError, struct.error, zlib.error,
            UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension, x509.ExtensionNotFound,
            x509.UnsupportedGeneralNameType)


def require(condition, where, what):
    if not condition:
        raise Invalid(f"{where}: {what}")


# ---- DER ----

def element(data, at=0):
    """Its tag, where its content begins, and where it ends."""
    tag, size, begin = data[at], data[at + 1], at + 2
    require(tag & 31 != 31, "DER", "a long tag")
    if size & 128:
        count = size & 127
        require(1 <= count <= 4, "DER", "a length")
        size, begin = int.from_bytes(data[begin:begin + count], "big"), begin + count
        require(size >> (8 * count - 8) and size > 127, "DER", "a length that could be shorter")
    require(begin + size <= len(data), "DER", "cut off")
    return tag, begin, begin + size


def elements(data):
    """The (tag, content, whole) of each, one behind the other."""
    found, at = [], 0
    while at < len(data):
        tag, begin, end = element(data, at)
        found.append((tag, data[begin:end], data[at:end]))
        at = end
    return found


def content(data, tag, where):
    """Of a single element that is all there is."""
    (found,) = elements(data)
    require(found[0] == tag, where, "another element")
    return found[1]


class SignedData:
    def __init__(self, der):
        oid, data = elements(content(der, 0x30, "CMS"))
        require(oid[1] == bytes.fromhex("2a864886f70d010702") and data[0] == 0xa0, "CMS", "type")
        parts = elements(content(data[1], 0x30, "SignedData"))
        self.version = int.from_bytes(parts.pop(0)[1], "big")
        self.digests, self.encapsulated = parts.pop(0)[1], elements(parts.pop(0)[1])
        optional = {part[0]: part[1] for part in parts[:-1]}
        require(len(optional) == len(parts) - 1 and set(optional) <= {0xa0, 0xa1}, "SignedData", "members")
        # Attribute certificates, and what else may be among them, are not read.
        choices = elements(optional.get(0xa0, b""))
        require(all(each[0] in (0x30, 0xa0, 0xa1, 0xa2, 0xa3) for each in choices), "SignedData",
                "certificates")
        self.certificates = [x509.load_der_x509_certificate(each[2]) for each in choices
                             if each[0] == 0x30]
        self.revocations = elements(optional[0xa1]) if 0xa1 in optional else None
        (signer,) = elements(parts[-1][1])
        self.signer = elements(signer[1])
        issuer, serial = elements(self.signer[1][1])
        found = [each for each in self.certificates if each.issuer.public_bytes() == issuer[2]
                 and each.serial_number == int.from_bytes(serial[1], "big")]
        require(found, "SignedData", "the signer's certificate is not inside")
        self.certificate = found[0]
        self.value = next(each[1] for each in self.signer if each[0] == 0x04)

    def unsigned(self):
        """The type and value of each unsigned attribute."""
        return [(kind[1], values[1]) for each in self.signer if each[0] == 0xa1
                for kind, values in [elements(of[1]) for of in elements(each[1])]]

    def timestamp(self):
        """The token over the signature; None: there is none."""
        found = self.unsigned()
        require(len(found) <= 1 and all(kind == TIMESTAMP for kind, _ in found), "SignedData",
                "other unsigned attributes than one timestamp")
        return found[0][1] if found else None

    def signing_time(self):
        """As the signed attributes state it; None: they do not."""
        for each in self.signer:
            if each[0] == 0xa0:
                found = {kind[1]: values[1] for kind, values in map(elements, (of[1] for of in
                                                                               elements(each[1])))}
                stated = found.get(SIGNING_TIME)
                return stated and datetime.datetime.strptime(
                    content(stated, 0x17, "signing-time").decode(), "%y%m%d%H%M%SZ")
        return None

    def gen_time(self):
        """Of a token."""
        require(self.encapsulated[0][1] == TST_INFO, "token", "content type")
        info = elements(content(content(self.encapsulated[1][1], 0x04, "token"), 0x30, "TSTInfo"))
        text = next(each[1] for each in info if each[0] == 0x18).decode()
        return datetime.datetime.strptime((text[:-1] + ("" if "." in text else ".0")),
                                          "%Y%m%d%H%M%S.%f")

    def path(self, more=()):
        """The shortest from the signer's certificate over issuers to one that is its own."""
        known, paths, reached = [*self.certificates, *more], [[self.certificate]], [self.certificate]
        for path in paths:
            if path[-1].issuer == path[-1].subject:
                require(is_signed(path[-1], path[-1]), "path", "a root that does not vouch for itself")
                return path
            for each in known:
                if each not in reached and each.subject == path[-1].issuer \
                        and is_signed(path[-1], each):
                    reached.append(each)
                    paths.append([*path, each])
        raise Invalid("path: no root is inside")


# ---- signatures ----

def when(of, name):
    """A time without its zone: later versions of the library have it with one, under another name."""
    aware = getattr(of, name + "_utc", None) if hasattr(of, name + "_utc") else getattr(of, name)
    return aware and aware.replace(tzinfo=None)


def verifies(key, signature, data, digest):
    if not isinstance(digest, (hashes.SHA256, hashes.SHA384, hashes.SHA512)):
        return False
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, data, ec.ECDSA(digest))
        else:
            key.verify(signature, data, padding.PKCS1v15(), digest)
    except InvalidSignature:
        return False
    return True


def is_signed(certificate, issuer):
    return verifies(issuer.public_key(), certificate.signature, certificate.tbs_certificate_bytes,
                    certificate.signature_hash_algorithm)


def openssl(*arguments):
    done = subprocess.run(("openssl",) + arguments, capture_output=True, text=True, check=False,
                          errors="replace")
    return done.returncode == 0, done.stdout + done.stderr


def attributes(name):
    """Of a Name in DER, as names are compared: without regard to case and to repeated blanks."""
    return [sorted((kind[1], " ".join(str(text[1], "utf-16-be" if text[0] == 0x1e else "utf-8",
                                          "replace").casefold().split()))
                   for kind, text in (elements(each[1]) for each in elements(rdn[1])))
            for rdn in elements(content(name, 0x30, "Name"))]


def is_named(tsa, certificate):
    """Whether that GeneralName is of the certificate's subject, or an alternative name of it."""
    (tag, name, _), = elements(tsa)
    if tag == 0xa4 and attributes(name) == attributes(certificate.subject.public_bytes()):
        return True
    names = extension(certificate, x509.SubjectAlternativeName)
    return bool(names) and tsa in [each[2] for each in elements(content(names.public_bytes(), 0x30,
                                                                        "names"))]


def check_info(path, where):
    """Of the token in that file, DER or BER: the signature, whoever made it; that `tsa` names the
    signer; that nothing critical is in the TSTInfo (RFC 3161, section 2.4.2). Answers the imprint, the
    time, and what a request may have asked for: the policy and, or None, the nonce."""
    with tempfile.TemporaryDirectory() as directory:
        good, text = openssl("cms", "-verify", "-noverify", "-binary", "-inform", "DER", "-in", path,
                             "-out", f"{directory}/info", "-signer", f"{directory}/signer")
        require(good, where, text)
        with open(f"{directory}/info", "rb") as file:
            info = elements(content(file.read(), 0x30, "TSTInfo"))
        with open(f"{directory}/signer", "rb") as file:
            signer = x509.load_pem_x509_certificate(file.read())
    ends = {each[0]: each[1] for each in info[5:]}
    require(0xa0 not in ends or is_named(ends[0xa0], signer), where, "tsa names somebody else")
    for each in elements(ends.get(0xa1, b"")):
        require(elements(each[1])[1][0] != 0x01, where, "a critical extension")
    stated = re.fullmatch(r"(\d{14})(?:\.(\d{1,6})\d{0,10})?Z", info[4][1].decode())
    require(info[4][0] == 0x18 and stated, where, "genTime")
    time = datetime.datetime.strptime(stated[1], "%Y%m%d%H%M%S")
    return elements(info[2][1])[1][1], time + datetime.timedelta(
        microseconds=int((stated[2] or "0").ljust(6, "0"))), (info[1][1], ends.get(0x02))


def check_request(der, imprint, asked, where):
    """A TimeStampReq in DER for that token, and nothing else (section 4.6)."""
    policy, nonce = asked
    require(len(der) <= 1024, where, "request")
    parts = elements(content(der, 0x30, where))
    tags = bytes(part[0] for part in parts)
    require(re.fullmatch(rb"\x02\x30\x06?\x02?\x01?", tags) and parts[0][1] == b"\1", where, "request")
    algorithm, digest = elements(parts[1][1])
    kind, *parameters = elements(algorithm[1])
    require((kind[0], kind[1], digest[0], digest[1]) == (0x06, SHA256, 0x04, imprint)
            and parameters in ([], [(0x05, b"", b"\5\0")]), where, "imprint of the request")
    given = {part[0]: part[1] for part in parts[2:]}
    require(given.get(0x01, b"\xff") == b"\xff" and given.get(0x06, policy) == policy
            and given.get(0x02) == nonce, where, "policy or nonce of the request")


def check_trust(path, imprint, trust, where, between=None, at=None):
    """The token's authority, by OpenSSL, and what the token is over. `openssl ts` does not read other
    certificates than those of X.509."""
    more = ["-attime", str(at)] if at is not None else []
    readable, _ = openssl("ts", "-reply", "-token_in", "-in", path, "-text")
    if readable:
        good, text = openssl("ts", "-verify", "-token_in", "-in", path, "-digest", imprint.hex(),
                             "-CAfile", trust, *(["-untrusted", between] if between else []), *more)
    else:
        good, text = openssl("cms", "-verify", "-cades", "-inform", "DER", "-in", path, "-purpose",
                             "timestampsign", "-CAfile", trust, "-out", "/dev/null",
                             *(["-certfile", between] if between else []), *more)
    require(good, where, text)


def check_token(token, digest, trust, where):
    """A timestamp token over that SHA-256. Answers its SignedData."""
    signed = SignedData(token)
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/token", "wb") as file:
            file.write(token)
        require(check_info(f"{directory}/token", where)[0] == digest, where, "imprint")
        if trust:
            check_trust(f"{directory}/token", digest, trust, where)
    for each in signed.certificates:
        require(each.issuer != each.subject or is_signed(each, each), where, "a certificate inside")
    return signed


def check_signature(cms, data, trust, where):
    """A CAdES signature over those bytes. Answers its SignedData, and that of the timestamp over its
    value, if it has one."""
    signed = SignedData(cms)
    with tempfile.TemporaryDirectory() as directory:
        for name, each in (("cms", cms), ("data", data)):
            with open(os.path.join(directory, name), "wb") as file:
                file.write(each)
        anchor = ("-cades", "-CAfile", trust) if trust else ("-noverify",)
        good, text = openssl("cms", "-verify", "-binary", "-inform", "DER", "-purpose", "any",
                             *anchor, "-in", f"{directory}/cms", "-content", f"{directory}/data",
                             "-out", "/dev/null")
    require(good, where, text)
    token = signed.timestamp()
    if token is not None:
        token = check_token(token, hashlib.sha256(signed.value).digest(), trust, where)
    return signed, token


def check_attached(cms, trust, where):
    """A CAdES signature with its content inside, and a timestamp of it. Answers the content, the SHA-256 of who
    signed, and the timestamp's time."""
    signed = SignedData(cms)
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/cms", "wb") as file:
            file.write(cms)
        anchor = ("-cades", "-CAfile", trust) if trust else ("-noverify",)
        good, text = openssl("cms", "-verify", "-binary", "-inform", "DER", "-purpose", "any", *anchor,
                             "-in", f"{directory}/cms", "-out", f"{directory}/content")
        require(good, where, text)
        with open(f"{directory}/content", "rb") as file:
            inside = file.read()
    token = signed.timestamp()
    require(token is not None and signed.revocations is None, where, "no timestamp, or revocation data")
    token = check_token(token, hashlib.sha256(signed.value).digest(), trust, where)
    return inside, signed.certificate.fingerprint(hashes.SHA256()).hex(), token.gen_time()


# ---- revocation data ----

def extension(of, kind):
    try:
        return of.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


class Told:
    """What one object says of a certificate."""

    def __init__(self, issued, following, revoked=None, reason=None):
        self.issued, self.following, self.revoked, self.reason = issued, following, revoked, reason


def valid_at(certificate, time):
    return when(certificate, "not_valid_before") <= time <= when(certificate, "not_valid_after")


def of_scope(crl, certificate):
    point = extension(crl, x509.IssuingDistributionPoint)
    if not point:
        return True
    basic = extension(certificate, x509.BasicConstraints)
    authority = bool(basic and basic.ca)
    own = extension(certificate, x509.CRLDistributionPoints) or ()
    names = [name for each in own for name in each.full_name or ()]
    return not (point.indirect_crl or point.only_some_reasons or point.only_contains_attribute_certs
                or point.only_contains_user_certs and authority
                or point.only_contains_ca_certs and not authority
                or point.relative_name
                or point.full_name and not set(point.full_name) & set(names))


def read_crl(der, certificate, issuer):
    """None: it says nothing of it."""
    crl = x509.load_der_x509_crl(der)
    usage = extension(issuer, x509.KeyUsage)
    if crl.issuer != certificate.issuer or when(crl, "next_update") is None or (usage and not usage.crl_sign) \
            or not verifies(issuer.public_key(), crl.signature, crl.tbs_certlist_bytes,
                            crl.signature_hash_algorithm) \
            or extension(crl, x509.DeltaCRLIndicator) or not of_scope(crl, certificate) \
            or not valid_at(issuer, when(crl, "last_update")):
        return None
    entry = crl.get_revoked_certificate_by_serial_number(certificate.serial_number)
    if not entry:
        return Told(when(crl, "last_update"), when(crl, "next_update"))
    reason, invalid = extension(entry, x509.CRLReason), extension(entry, x509.InvalidityDate)
    since = min([when(entry, "revocation_date")]
                + ([when(invalid, "invalidity_date")] if invalid else []))
    return Told(when(crl, "last_update"), when(crl, "next_update"), since, reason and reason.reason)


def is_about(single, certificate, issuer):
    name, key = hashlib.new(single.hash_algorithm.name), hashlib.new(single.hash_algorithm.name)
    name.update(issuer.subject.public_bytes())
    spki = issuer.public_key().public_bytes(serialization.Encoding.DER,
                                            serialization.PublicFormat.SubjectPublicKeyInfo)
    key.update(elements(content(spki, 0x30, "key"))[1][1][1:])
    return (single.serial_number, single.issuer_name_hash, single.issuer_key_hash) == \
        (certificate.serial_number, name.digest(), key.digest())


def responder_of(response, issuer):
    def signed_by(certificate):
        return verifies(certificate.public_key(), response.signature, response.tbs_response_bytes,
                        response.signature_hash_algorithm)
    if signed_by(issuer):
        return issuer
    for each in response.certificates:
        usage = extension(each, x509.ExtendedKeyUsage)
        if signed_by(each):
            return each if usage and ExtendedKeyUsageOID.OCSP_SIGNING in usage \
                and is_signed(each, issuer) and each.issuer == issuer.subject else None
    return None


def read_ocsp(der, certificate, issuer):
    """What it says, and who has to be good himself; (None, None): nothing of it."""
    response = ocsp.load_der_ocsp_response(der)
    if response.response_status != ocsp.OCSPResponseStatus.SUCCESSFUL:
        return None, None
    singles = [each for each in response.responses if is_about(each, certificate, issuer)]
    responder = responder_of(response, issuer) if len(singles) == 1 else None
    if not responder or not valid_at(responder, when(response, "produced_at")) \
            or singles[0].certificate_status == ocsp.OCSPCertStatus.UNKNOWN:
        return None, None
    single = singles[0]
    told = Told(min(when(single, "this_update"), when(response, "produced_at")),
                when(single, "next_update"), when(single, "revocation_time"), single.revocation_reason)
    free = responder is issuer or any(each.oid.dotted_string == NO_CHECK
                                      for each in responder.extensions)
    return told, None if free else responder


def judge(certificate, issuer, objects, time, self_dated, lists_alone=False):
    best = NOTHING
    for kind, der in objects:
        if kind == "crl":
            told = read_crl(der, certificate, issuer)
        elif lists_alone:
            continue
        else:
            told, responder = read_ocsp(der, certificate, issuer)
            if responder and judge(responder, issuer, objects, time, self_dated, True) == NOTHING:
                continue
        if not told:
            continue
        if told.revoked and (told.revoked <= time
                             or self_dated and told.reason not in LEAVES_THE_PAST):
            require(lists_alone, certificate.subject.rfc4514_string(), "was revoked")
            return NOTHING
        if told.issued > when(certificate, "not_valid_after"):
            continue
        best = min(best, AFTER if told.issued >= time else
                   CURRENT if told.following and told.following >= time else NOTHING)
    return best


def judge_paths(paths, objects):
    """`paths`: (path, time, whether its own word is all there is for the time)."""
    return [judge(certificate, issuer, objects, time, self_dated)
            for path, time, self_dated in paths for certificate, issuer in zip(path, path[1:])]


def read_revocations(signed):
    """Section 7: what is inside, as (kind, DER)."""
    objects = []
    for tag, inside, whole in signed.revocations:
        if tag == 0x30:
            objects.append(("crl", whole))
            continue
        require(tag == 0xa1, "crls", "neither a CRL nor an OCSP response")
        kind, value = elements(inside)
        require(kind[0] == 6 and kind[1] == OCSP_FORMAT, "crls", "another format")
        objects.append(("ocsp", value[2]))
    for kind, der in objects:
        (x509.load_der_x509_crl if kind == "crl" else ocsp.load_der_ocsp_response)(der)
    return objects


def check_inside(signed, token):
    """Section 7: revocation data suffices, and all of it is needed. Answers the level."""
    if signed.revocations is None:
        return "T" if token else "B"
    objects = read_revocations(signed)
    require(token and 1 <= len(objects) <= OBJECTS_MAX and len(set(objects)) == len(objects)
            and sum(len(der) for _, der in objects) <= BYTES_MAX, "crls", "none, too many, or twice")
    require(signed.version == (5 if any(kind == "ocsp" for kind, _ in objects) else 1), "crls", "version")
    time = token.gen_time()
    paths = [(signed.path(), time, False), (token.path(), time, True)]
    whole = judge_paths(paths, objects)
    require(NOTHING not in whole, "crls", "do not suffice")
    for at in range(len(objects)):
        try:
            without = judge_paths(paths, objects[:at] + objects[at + 1:])
        except Invalid:
            continue
        require(any(worse > was for worse, was in zip(without, whole)), "crls", "one that is not needed")
    return "LT"
