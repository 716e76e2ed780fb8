"""CMS for the second verifier: signers, timestamps and revocation data (docs/verify/evidence-format.md, sections 7
and 8). Uses python3-cryptography for certificates, CRLs and OCSP responses. For tests only."""

import datetime
import functools
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

CONTENT_TYPE, MESSAGE_DIGEST = (bytes.fromhex(f"2a864886f70d0109{last}") for last in ("03", "04"))
REFERENCE_1, REFERENCE_2 = (bytes.fromhex(f"2a864886f70d01091002{last}") for last in ("0c", "2f"))
PLAIN = {bytes.fromhex(each) for each in ("2a864886f70d010101", "2a864886f70d01010b", "2a864886f70d01010c",
                                          "2a864886f70d01010d", "2a8648ce3d040302", "2a8648ce3d040303", "2a8648ce3d040304")}
PSS = "1.2.840.113549.1.1.10"
SHA_2 = {bytes.fromhex(f"6086480165030402{last}"): name for last, name in (("01", "sha256"), ("02", "sha384"), ("03", "sha512"))}
OCSP_FORMAT = bytes.fromhex("2b0601050507" + "1002")
TIMESTAMP = bytes.fromhex("2a864886f70d010910020e")
TST_INFO = bytes.fromhex("2a864886f70d0109100104")
SHA256 = bytes.fromhex("608648016503040201")
SIGNING_TIME = bytes.fromhex("2a864886f70d010905")
NO_CHECK = "1.3.6.1.5.5.7.48.1.5"
OBJECTS_MAX, BYTES_MAX = 16, 8 << 20
AFTER, CURRENT, NOTHING = range(3)  # from the best to the worst
EXCLUDES_COMPROMISE = (x509.ReasonFlags.unspecified, x509.ReasonFlags.affiliation_changed,
                   x509.ReasonFlags.superseded, x509.ReasonFlags.cessation_of_operation)


class Invalid(Exception):
    pass


class NotEstablished(Invalid):
    """No error was found, but the signer was not established, or the evidence could not be checked."""


# Exceptions that mean that evidence is invalid: those of these checks, and those that libraries raise on damaged
# bytes.
REFUSALS = (Invalid, ArithmeticError, LookupError, TypeError, ValueError, struct.error, zlib.error,
            UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension, x509.ExtensionNotFound,
            x509.UnsupportedGeneralNameType)


def require(condition, where, what):
    if not condition:
        raise Invalid(f"{where}: {what}")


# ---- DER ----

def element(data, at=0):
    """Returns the tag, and the positions where the content begins and ends."""
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
    """Returns (tag, content, whole) of each of the concatenated elements."""
    found, at = [], 0
    while at < len(data):
        tag, begin, end = element(data, at)
        found.append((tag, data[begin:end], data[at:end]))
        at = end
    return found


def content(data, tag, where):
    """Returns the content of an element that must be the only one."""
    (found,) = elements(data)
    require(found[0] == tag, where, "another element")
    return found[1]


class SignedData:
    def __init__(self, der):
        self.der = der
        oid, data = elements(content(der, 0x30, "CMS"))
        require(oid[1] == bytes.fromhex("2a864886f70d010702") and data[0] == 0xa0, "CMS", "type")
        parts = elements(content(data[1], 0x30, "SignedData"))
        self.version = int.from_bytes(parts.pop(0)[1], "big")
        self.digests, self.encapsulated = parts.pop(0)[1], elements(parts.pop(0)[1])
        optional = {part[0]: part[1] for part in parts[:-1]}
        require(len(optional) == len(parts) - 1 and set(optional) <= {0xa0, 0xa1}, "SignedData", "members")
        # Attribute certificates and other kinds are not parsed.
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
        self.choices = [each[0] for each in choices]
        listed = [elements(each[1]) for part in self.signer if part[0] == 0xa0 for each in elements(part[1])]
        self.attributes = [(kind[1], [each[2] for each in elements(values[1])]) for kind, values in listed]

    def check_version(self, attached):
        """RFC 5652, section 5.1."""
        crls = [each[0] for each in self.revocations or []]
        wanted = 5 if 0xa1 in crls or 0xa3 in self.choices else 4 if 0xa2 in self.choices else \
            3 if 0xa1 in self.choices or attached else 1
        require(self.version == wanted, "SignedData", "version")

    def signed(self, kind, needed=True):
        """Returns the single value of a signed attribute, which must occur once."""
        found = [values for each, values in self.attributes if each == kind]
        require(len(found) <= 1 and all(len(values) == 1 for values in found) and (found or not needed), "SignedData",
                "a signed attribute is missing, or is there twice")
        return found[0][0] if found else None

    def check_references(self, exact):
        """Checks ESSCertID or ESSCertIDv2: the signer's certificate first, by every digest used."""
        first, second = self.signed(REFERENCE_1, False), self.signed(REFERENCE_2, False)
        require((second and not first) if exact else (first or second), "SignedData", "no reference to its certificate")
        for whole, digest in ((first, "sha1"), (second, "sha256")):
            if not whole:
                continue
            listed = elements(elements(content(whole, 0x30, "reference"))[0][1])
            require(listed and (len(listed) == 1 or not exact), "SignedData", "references")
            for at, each in enumerate(listed):
                parts = elements(each[1])
                if parts[0][0] == 0x30:
                    digest = SHA_2.get(elements(parts.pop(0)[1])[0][1])
                    require(digest, "SignedData", "a reference by another digest")
                own = self.certificates if at else [self.certificate]
                require(parts[0][0] == 0x04 and (at or parts[0][1] in [
                    hashlib.new(digest, it.public_bytes(serialization.Encoding.DER)).digest() for it in own]),
                        "SignedData", "a reference to another certificate")

    def check_form(self, timestamp):
        """Checks the rules common to signatures and tokens."""
        require(self.signer[0][1] == b"\1", "SignerInfo", "version")
        self.check_version(timestamp)
        kinds = [kind for kind, _ in self.attributes]
        require(len(set(kinds)) == len(kinds), "SignedData", "a signed attribute is there twice")
        self.signed(CONTENT_TYPE), self.signed(MESSAGE_DIGEST)
        digest = elements(self.signer[2][1])[0][1]
        require(digest in SHA_2 and (timestamp or SHA_2[digest] == "sha256")
                and [elements(each[1])[0][1] for each in elements(self.digests)] == [digest], "SignedData", "digest")
        self.check_references(not timestamp)
        if not timestamp:
            require(set(kinds) <= {CONTENT_TYPE, MESSAGE_DIGEST, REFERENCE_2, SIGNING_TIME}, "SignedData",
                    "other signed attributes")
            require(len(self.encapsulated) == 1, "SignedData", "content inside")

    def check_value(self, data):
        """Checks that the signer's key signed these bytes."""
        digest = SHA_2[elements(self.signer[2][1])[0][1]]
        require(content(self.signed(MESSAGE_DIGEST), 0x04, "digest") == hashlib.new(digest, data).digest(), "SignedData",
                "message-digest of something else")
        whole = next(each[2] for each in self.signer if each[0] == 0xa0)
        signed = b"\x31" + whole[1:]
        require(verifies(self.certificate.public_key(), self.value, signed, getattr(hashes, digest.upper())()), "SignedData",
                "the signature is of something else")

    def is_plain(self):
        """Returns whether verifies() supports its signature algorithm."""
        how = elements([each for each in self.signer if each[0] == 0x30][-1][1])[0][1]
        return self.der[1] != 0x80 and how in PLAIN

    def unsigned(self):
        """Returns the type and value of each unsigned attribute."""
        return [(kind[1], values[1]) for each in self.signer if each[0] == 0xa1
                for kind, values in [elements(of[1]) for of in elements(each[1])]]

    def timestamp(self):
        """Returns the token over the signature; None: there is none."""
        found = self.unsigned()
        require(len(found) <= 1 and all(kind == TIMESTAMP for kind, _ in found), "SignedData",
                "other unsigned attributes than one timestamp")
        return found[0][1] if found else None

    def signing_time(self):
        """Returns the signing-time attribute; None: absent."""
        for each in self.signer:
            if each[0] == 0xa0:
                found = {kind[1]: values[1] for kind, values in map(elements, (of[1] for of in
                                                                               elements(each[1])))}
                stated = found.get(SIGNING_TIME)
                return stated and datetime.datetime.strptime(
                    content(stated, 0x17, "signing-time").decode(), "%y%m%d%H%M%SZ")
        return None

    def gen_time(self):
        """Returns the genTime of a token."""
        require(self.encapsulated[0][1] == TST_INFO, "token", "content type")
        info = elements(content(content(self.encapsulated[1][1], 0x04, "token"), 0x30, "TSTInfo"))
        text = next(each[1] for each in info if each[0] == 0x18).decode()
        return datetime.datetime.strptime((text[:-1] + ("" if "." in text else ".0")),
                                          "%Y%m%d%H%M%S.%f")

    def path(self, more=()):
        """Returns the shortest path over issuers from the signer's certificate to a self-signed one."""
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
    """Returns a time without its zone. Later versions of the library have a name for it with a zone."""
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


def pem_of(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


@functools.lru_cache(maxsize=None)
def is_signed_by_pem(certificate, issuer):
    """Verifies with OpenSSL, for signature algorithms that the library does not support."""
    return run_openssl("verify", "-partial_chain", "-no_check_time", "-CAfile", "{issuer}", "{it}", issuer=issuer,
                       it=certificate)[0]


@functools.lru_cache(maxsize=4096)
def is_signed(certificate, issuer):
    if certificate.signature_algorithm_oid.dotted_string == PSS:
        return is_signed_by_pem(pem_of(certificate), pem_of(issuer))
    return verifies(issuer.public_key(), certificate.signature, certificate.tbs_certificate_bytes,
                    certificate.signature_hash_algorithm)


def openssl(*arguments):
    done = subprocess.run(("openssl",) + arguments, capture_output=True, text=True, check=False,
                          errors="replace")
    return done.returncode == 0, done.stdout + done.stderr


def run_openssl(*words, **files):
    """Runs openssl; {NAME} in the words stands for a file with that content. Returns success and output."""
    with tempfile.TemporaryDirectory() as directory:
        for name, each in files.items():
            with open(f"{directory}/{name}", "wb") as file:
                file.write(each)
        return openssl(*(word.format(**{name: f"{directory}/{name}" for name in files}) for word in words))


def attributes(name):
    """Returns the attributes of a DER Name for comparison, ignoring case and repeated blanks."""
    return [sorted((kind[1], " ".join(str(text[1], "utf-16-be" if text[0] == 0x1e else "utf-8",
                                          "replace").casefold().split()))
                   for kind, text in (elements(each[1]) for each in elements(rdn[1])))
            for rdn in elements(content(name, 0x30, "Name"))]


def is_named(tsa, certificate):
    """Returns whether the GeneralName is the certificate's subject or one of its alternative names."""
    (tag, name, _), = elements(tsa)
    if tag == 0xa4 and attributes(name) == attributes(certificate.subject.public_bytes()):
        return True
    names = extension(certificate, x509.SubjectAlternativeName)
    return bool(names) and tsa in [each[2] for each in elements(content(names.public_bytes(), 0x30,
                                                                        "names"))]


# ---- trust ----

def moment(text):
    """Parses an RFC 3339 time in UTC."""
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ" if "." in text else "%Y-%m-%dT%H:%M:%SZ")


SIGNER, AUTHORITY = "signature", "timestamp"
DOCUMENTS = {"1.3.6.1.5.5.7.3.36", "1.3.6.1.5.5.7.3.4", "1.2.840.113583.1.1.5", "1.3.6.1.4.1.311.10.3.12", "2.5.29.37.0"}
TIMES = {"1.3.6.1.5.5.7.3.8", "2.5.29.37.0"}
FOREIGN = {"1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.3", "1.3.6.1.5.5.7.3.8", "1.3.6.1.5.5.7.3.9"}
CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.S)


def extension_of(certificate, kind):
    try:
        return certificate.extensions.get_extension_for_class(kind)
    except x509.ExtensionNotFound:
        return None


def purposes_of(certificate):
    """Returns the key purposes; None: the extension is absent."""
    found = extension_of(certificate, x509.ExtendedKeyUsage)
    return found and [each.dotted_string for each in found.value]


def may_certify(certificate):
    """Returns whether it could be used as a certification authority: by basicConstraints or, without them, by
    version or key usage."""
    basic, usage = extension(certificate, x509.BasicConstraints), extension(certificate, x509.KeyUsage)
    if basic:
        return basic.ca
    return certificate.version == x509.Version.v1 and certificate.issuer == certificate.subject or \
        bool(usage and usage.key_cert_sign)


def check_leaf(certificate, purpose, where):
    """Section 7. Checks what the certificate of a signer or authority must allow."""
    usage, purposes = extension(certificate, x509.KeyUsage), purposes_of(certificate)
    require(not usage or usage.digital_signature or usage.content_commitment, where, "of a key that may not sign")
    require(not may_certify(certificate), where, "a certification authority's certificate")
    if purpose == AUTHORITY:
        require(purposes == ["1.3.6.1.5.5.7.3.8"] and extension_of(certificate, x509.ExtendedKeyUsage).critical, where,
                "not a timestamp authority's certificate: timeStamping, critical and alone")
    elif purposes is not None:
        require(set(purposes) & DOCUMENTS and not set(purposes) & FOREIGN, where, "a certificate for something else")


def is_own(certificate):
    return certificate.issuer == certificate.subject and is_signed(certificate, certificate)


def check_issuers(path, purpose, where):
    for at, each in enumerate(path):
        if is_own(each):
            continue
        require(each.signature_algorithm_oid.dotted_string == PSS or isinstance(
            each.signature_hash_algorithm, (hashes.SHA256, hashes.SHA384, hashes.SHA512)), where, "signed by a weak digest")
        if at:
            purposes = purposes_of(each)
            require(purposes is None or set(purposes) & (TIMES if purpose == AUTHORITY else DOCUMENTS), where,
                    "an issuer for something else")


@functools.lru_cache(maxsize=None)
def path_holds(path, purpose, seconds):
    """Checks RFC 5280 with OpenSSL: names, constraints, keys and digests by its level 2. `path` is PEM, from
    the leaf upwards; all certificates are valid at that time."""
    words = ["verify", "-partial_chain", "-check_ss_sig", "-auth_level", "2", "-attime", str(seconds), "-purpose",
             "timestampsign" if purpose == AUTHORITY else "any", "-CAfile", "{top}"]
    return run_openssl(*words, *(["-untrusted", "{between}"] if path[1:-1] else []), "{leaf}", top=path[-1],
                       between=b"".join(path[1:-1]), leaf=path[0])


def issuers_of(certificate, among):
    return [each for each in among if each.subject == certificate.issuer and each != certificate and is_signed(certificate, each)]


def climb(certificate, among, is_end):
    """Returns the shortest path over issuers to an end; None: there is none."""
    paths, reached = [[certificate]], [certificate]
    for path in paths:
        if is_end(path[-1]):
            return path
        for each in issuers_of(path[-1], among):
            if each not in reached:
                reached.append(each)
                paths.append([*path, each])
    return None


def climb_inside(certificate, inside):
    """Returns the path within a set: to a self-signed certificate or, without one, as far up as issuers are
    found."""
    found = climb(certificate, inside, is_own)
    while not found:
        reached = [certificate]
        found = [certificate]
        for path in (paths := [[certificate]]):
            found = path
            for each in issuers_of(path[-1], inside):
                if each not in reached:
                    reached.append(each)
                    paths.append([*path, each])
    return found


class Trust:
    """Certificates that a verifier trusts, each as an anchor, and the time of the check. Paths that lead to no
    anchor are recorded in `open`: the signer is then not established."""

    def __init__(self, path=None, at=None):
        self.anchors, self.at, self.open = [], at, []
        if path:
            with open(path, "rb") as file:
                self.anchors = [x509.load_pem_x509_certificate(each + b"\n" * (not each.endswith(b"\n")))
                                for each in re.findall(CERTIFICATE.pattern.rstrip(b"\n") + b"\n?", file.read(), re.S)]

    @classmethod
    def of(cls, trust):
        return trust if isinstance(trust, cls) else cls(trust)

    def now(self):
        return self.at or datetime.datetime.utcnow()

    def judge(self, certificate, inside, purpose, times, where):
        """Checks the path of a certificate as of those times and returns it."""
        check_leaf(certificate, purpose, where)
        for each in inside:
            require(each.issuer != each.subject or any(is_signed(each, other) for other in [each, *inside, *self.anchors]),
                    where, "a certificate inside that does not vouch for itself")
        own = climb_inside(certificate, inside)
        path = climb(certificate, [*self.anchors, *inside], lambda each: each in self.anchors)
        if not path:
            self.open.append(f"{where}: leads to no certificate that is trusted")
            path = own
        if purpose == SIGNER:
            require(all(each in path for each in inside) or all(each in own for each in inside), where,
                    "a certificate inside that is on no path")
        check_issuers(path, purpose, where)
        begins, ends = (choose(when(each, name) for each in path) for choose, name in ((max, "not_valid_before"),
                                                                                       (min, "not_valid_after")))
        for time in times:
            require(begins <= time.replace(microsecond=0) <= ends, where, "a certificate that is not valid at that time")
        seconds = int(begins.replace(tzinfo=datetime.timezone.utc).timestamp())
        good, text = path_holds(tuple(map(pem_of, path)), purpose, seconds)
        require(good, where, text)
        return path

    def check_end(self, last, until, where):
        """Records in `open` if the time of the check is outside the covered period; `last` is the time of the
        newest timestamp."""
        if self.at and (self.at < last or self.at > until):
            self.open.append(f"{where}: cannot be checked as of that time")

    def conclude(self):
        if self.open:
            raise NotEstablished(self.open[0])


# ---- tokens ----

class Token(SignedData):
    """A timestamp token in DER or BER. Checks its signature and reads imprint and time. Also checks that `tsa`
    names the signer and that the TSTInfo has no critical extension (RFC 3161 section 2.4.2)."""

    def __init__(self, token, where):
        super().__init__(token if token[1] != 0x80 else as_der(token))
        require(token[1] == 0x80 or element(token)[2] == len(token), where, "bytes after it")
        self.check_form(True)
        self.der = token
        require(self.encapsulated[0][1] == TST_INFO and len(self.encapsulated) == 2, where, "content type")
        inside = content(self.encapsulated[1][1], 0x04, "token")
        if self.is_plain():
            self.check_value(inside)
        else:
            good, text = run_openssl("cms", "-verify", "-noverify", "-binary", "-inform", "DER", "-in", "{it}", "-out",
                                     "/dev/null", it=token)
            require(good, where, text)
        info = elements(content(inside, 0x30, "TSTInfo"))
        require(content(self.signed(CONTENT_TYPE), 0x06, where) == TST_INFO, where, "content type")
        ends = {each[0]: each[1] for each in info[5:]}
        require(info[0][1] == b"\1" and (0xa0 not in ends or is_named(ends[0xa0], self.certificate)), where,
                "tsa names somebody else")
        for each in elements(ends.get(0xa1, b"")):
            require(elements(each[1])[1][0] != 0x01, where, "a critical extension")
        stated = re.fullmatch(r"(\d{14})(?:\.(\d{1,6})\d{0,10})?Z", info[4][1].decode())
        require(info[4][0] == 0x18 and stated, where, "genTime")
        self.time = datetime.datetime.strptime(stated[1], "%Y%m%d%H%M%S") + datetime.timedelta(
            microseconds=int((stated[2] or "0").ljust(6, "0")))
        algorithm, imprint = elements(info[2][1])
        self.imprint, self.policy, self.nonce = imprint[1], info[1][1], ends.get(0x02)
        require(elements(algorithm[1])[0][1] in SHA_2, where, "the imprint's digest")

    def gen_time(self):
        return self.time


def check_request(der, signed, where):
    """Checks that the bytes are a DER TimeStampReq for that token and nothing else (section 4.6)."""
    require(len(der) <= 1024, where, "request")
    parts = elements(content(der, 0x30, where))
    tags = bytes(part[0] for part in parts)
    require(re.fullmatch(rb"\x02\x30\x06?\x02?\x01?", tags) and parts[0][1] == b"\1", where, "request")
    algorithm, digest = elements(parts[1][1])
    kind, *parameters = elements(algorithm[1])
    require((kind[0], SHA_2.get(kind[1]), digest[0], digest[1]) == (0x06, "sha256", 0x04, signed.imprint)
            and parameters in ([], [(0x05, b"", b"\5\0")]), where, "imprint of the request")
    given = {part[0]: part[1] for part in parts[2:]}
    require(given.get(0x01, b"\xff") == b"\xff" and given.get(0x06, signed.policy) == signed.policy
            and given.get(0x02) == signed.nonce, where, "policy or nonce of the request")


def as_der(token):
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/ber", "wb") as file:
            file.write(token)
        good, text = openssl("cms", "-cmsout", "-inform", "DER", "-in", f"{directory}/ber", "-outform", "DER", "-out",
                             f"{directory}/der")
        require(good, "token", text)
        with open(f"{directory}/der", "rb") as file:
            return file.read()


@functools.lru_cache(maxsize=None)
def read_token(token):
    return Token(token, "token")


def check_token(token, digest, trust, where, more=(), times=()):
    """Checks a timestamp token over that digest (None: any) as of its own time and of `times`, with the
    certificates inside and `more`. Returns it."""
    signed = read_token(token)
    require(digest in (None, signed.imprint), where, "imprint")
    Trust.of(trust).judge(signed.certificate, [*signed.certificates, *more], AUTHORITY, [signed.time, *times], where)
    return signed


def check_attached(cms, trust, where):
    """Checks a CAdES signature with its content inside and a timestamp over it. Returns the content, the
    SHA-256 of the signer's certificate, and the timestamp's time."""
    trust, signed = Trust.of(trust), SignedData(cms)
    require(element(cms)[2] == len(cms), where, "bytes after it")
    inside = content(signed.encapsulated.pop()[1], 0x04, where)
    signed.check_form(False)
    require(signed.is_plain(), where, "another signature algorithm")
    signed.check_value(inside)
    token = signed.timestamp()
    require(token is not None and signed.revocations is None, where, "no timestamp, or revocation data")
    token = check_token(token, hashlib.sha256(signed.value).digest(), trust, where)
    trust.judge(signed.certificate, signed.certificates, SIGNER, [token.time], where)
    return inside, signed.certificate.fingerprint(hashes.SHA256()).hex(), token.time


def check_signature(cms, data, trust, where):
    """Checks a CAdES signature over those bytes as of its timestamp or of the time of the check. Returns its
    SignedData, and the timestamp over its value, if any."""
    trust, signed = Trust.of(trust), SignedData(cms)
    require(element(cms)[2] == len(cms), where, "bytes after it")
    signed.check_form(False)
    if signed.is_plain():
        signed.check_value(data)
    else:
        good, text = run_openssl("cms", "-verify", "-binary", "-inform", "DER", "-noverify", "-in", "{cms}", "-content",
                                 "{data}", "-out", "/dev/null", cms=cms, data=data)
        require(good, where, text)
    token = signed.timestamp()
    if token is not None:
        token = check_token(token, hashlib.sha256(signed.value).digest(), trust, where)
    trust.judge(signed.certificate, signed.certificates, SIGNER, [token.time if token else trust.now()], where)
    return signed, token


# ---- revocation data ----

def extension(of, kind):
    try:
        return of.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


class Statement:
    """The statement of one CRL or OCSP response about a certificate."""

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
    """Returns what a CRL states about the certificate; None: nothing."""
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
        return Statement(when(crl, "last_update"), when(crl, "next_update"))
    reason, invalid = extension(entry, x509.CRLReason), extension(entry, x509.InvalidityDate)
    since = min([when(entry, "revocation_date")]
                + ([when(invalid, "invalidity_date")] if invalid else []))
    return Statement(when(crl, "last_update"), when(crl, "next_update"), since, reason and reason.reason)


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
    """Returns the statement of an OCSP response and the responder if it must be checked itself; (None, None):
    no statement."""
    response = ocsp.load_der_ocsp_response(der)
    if response.response_status != ocsp.OCSPResponseStatus.SUCCESSFUL:
        return None, None
    singles = [each for each in response.responses if is_about(each, certificate, issuer)]
    responder = responder_of(response, issuer) if len(singles) == 1 else None
    if not responder or not valid_at(responder, when(response, "produced_at")) \
            or singles[0].certificate_status == ocsp.OCSPCertStatus.UNKNOWN:
        return None, None
    single = singles[0]
    told = Statement(min(when(single, "this_update"), when(response, "produced_at")),
                when(single, "next_update"), when(single, "revocation_time"), single.revocation_reason)
    free = responder is issuer or any(each.oid.dotted_string == NO_CHECK
                                      for each in responder.extensions)
    return told, None if free else responder


def judge(certificate, issuer, objects, time, is_self_dated, lists_alone=False):
    best = NOTHING
    for kind, der in objects:
        if kind == "crl":
            told = read_crl(der, certificate, issuer)
        elif lists_alone:
            continue
        else:
            told, responder = read_ocsp(der, certificate, issuer)
            if responder and judge(responder, issuer, objects, time, is_self_dated, True) == NOTHING:
                continue
        if not told:
            continue
        if told.revoked and (told.revoked <= time
                             or is_self_dated and told.reason not in EXCLUDES_COMPROMISE):
            require(lists_alone, certificate.subject.rfc4514_string(), "was revoked")
            return NOTHING
        if told.issued > when(certificate, "not_valid_after"):
            continue
        best = min(best, AFTER if told.issued >= time else
                   CURRENT if told.following and told.following >= time else NOTHING)
    return best


def judge_paths(paths, objects):
    """`paths`: (path, time, whether the time is stated by the key in question only)."""
    return [judge(certificate, issuer, objects, time, is_self_dated)
            for path, time, is_self_dated in paths for certificate, issuer in zip(path, path[1:])]


def read_revocations(signed):
    """Section 7. Returns the revocation data inside as (kind, DER)."""
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
    """Section 7. Checks that the revocation data suffices and that all of it is needed. Returns the level."""
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
