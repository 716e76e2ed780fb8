"""Signatures and timestamps (CMS, RFC 5652, and RFC 3161): what they are over and what they say, with the standard
library; and whether the key of the certificate inside made them, with python3-cryptography where it is installed.
Whose certificate it is, whether it was revoked, and the other rules of sections 7 and 16 are not judged here."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .forms import Invalid, require

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    HAS_CRYPTOGRAPHY = True
except ImportError:
    HAS_CRYPTOGRAPHY = False

DEPTH_MAX = 32
SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
DATA = bytes.fromhex("2a864886f70d010701")
TST_INFO = bytes.fromhex("2a864886f70d0109100104")
CONTENT_TYPE = bytes.fromhex("2a864886f70d010903")
MESSAGE_DIGEST = bytes.fromhex("2a864886f70d010904")
SIGNING_TIME = bytes.fromhex("2a864886f70d010905")
TIMESTAMP = bytes.fromhex("2a864886f70d010910020e")
REFERENCE_1 = bytes.fromhex("2a864886f70d010910020c")
REFERENCE_2 = bytes.fromhex("2a864886f70d010910022f")
# Of the digests that a reference may name, those that are known here; of others nothing is said.
REFERENCE_DIGESTS = {bytes.fromhex("2b0e03021a"): "sha1", bytes.fromhex("608648016503040204"): "sha224"}
PSS = bytes.fromhex("2a864886f70d01010a")
DIGESTS = {bytes.fromhex(f"6086480165030402{last}"): name
           for last, name in (("01", "sha256"), ("02", "sha384"), ("03", "sha512"))}


class Unchecked(Exception):
    """The installed library cannot judge a signature."""


class Node:
    """An element of BER: its tag, and its content or what it consists of."""

    def __init__(self, data: bytes, at: int, end: int, depth: int = 1) -> None:
        require(depth <= DEPTH_MAX and at + 2 <= end, "BER", "cut off, or nested too deep")
        self._data, self._depth = data, depth
        self.tag = data[at]
        require(self.tag & 31 != 31, "BER", "a tag number above 30")
        size, begin = data[at + 1], at + 2
        self.is_definite = size != 0x80
        if size > 0x80:
            count = size & 127
            require(count <= 4 and begin + count <= end, "BER", "a length")
            size = int.from_bytes(data[begin:begin + count], "big")
            begin += count
        self.at, self.begin = at, begin
        if self.is_definite:
            require(begin + size <= end, "BER", "cut off")
            self.end = self.after = begin + size
        else:
            require(self.tag & 0x20, "BER", "a length")
            place = begin
            while data[place:place + 2] != b"\0\0":
                place = Node(data, place, end, depth + 1).after
            self.end, self.after = place, place + 2
            require(self.after <= end, "BER", "cut off")

    @property
    def content(self) -> bytes:
        return self._data[self.begin:self.end]

    @property
    def whole(self) -> bytes:
        return self._data[self.at:self.after]

    def children(self) -> List["Node"]:
        require(self.tag & 0x20, "BER", "an element that should consist of others")
        found, place = [], self.begin
        while place < self.end:
            found.append(Node(self._data, place, self.end, self._depth + 1))
            place = found[-1].after
        return found

    def octets(self) -> bytes:
        """Returns the bytes of an OCTET STRING, which BER may have in pieces."""
        if self.tag & 0x20:
            return b"".join(one.octets() for one in self.children())
        return self.content

    def der(self) -> bytes:
        """Returns its DER: lengths in their shortest form, sets in order."""
        if self.tag & 0x20 and self.tag != 0x24:
            parts = [one.der() for one in self.children()]
            content = b"".join(sorted(parts) if self.tag == 0x31 else parts)
            return tlv(self.tag, content)
        return tlv(self.tag & ~0x20, self.octets()) if self.tag == 0x24 else tlv(self.tag, self.content)


def tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 128:
        return bytes((tag, size)) + content
    count = (size.bit_length() + 7) // 8
    return bytes((tag, 0x80 | count)) + size.to_bytes(count, "big") + content


def parse(data: bytes, tag: int, where: str) -> Node:
    """Returns the one element that the data is, to its last byte."""
    node = Node(data, 0, len(data))
    require(node.tag == tag and node.after == len(data), where, "not one element of BER")
    return node


def expect(nodes: List[Node], tag: int, where: str) -> Node:
    require(nodes and nodes[0].tag == tag, where, "an element is missing or another one")
    return nodes.pop(0)


class Attribute(NamedTuple):
    kind: bytes
    values: List[Node]


def attributes_of(node: Optional[Node], where: str) -> List[Attribute]:
    found = []
    for one in node.children() if node else []:
        kind, values = one.children()
        require(kind.tag == 6 and values.tag == 0x31, where, "an attribute")
        found.append(Attribute(kind.content, values.children()))
    require(len(found) <= 16 and len({one.kind for one in found}) == len(found)
            and all(len(one.values) == 1 for one in found), where, "attributes")
    return found


class Signed:
    """A SignedData with one signer, whose message-digest is over its content."""

    def __init__(self, data: bytes, where: str, content: Optional[bytes], kind: bytes) -> None:
        """content: what a detached signature is over; None: it is inside."""
        self.where = where
        oid, inner = parse(data, 0x30, where).children()
        require(oid.content == SIGNED_DATA and inner.tag == 0xA0, where, "not SignedData")
        (sequence,) = inner.children()
        parts = sequence.children()
        self.version = int.from_bytes(expect(parts, 2, where).content, "big")
        self._digests = [one.children()[0].content for one in expect(parts, 0x31, where).children()]
        inside = expect(parts, 0x30, where).children()
        require(inside and inside[0].content == kind, where, "the type of its content")
        require(len(inside) == (1 if content is not None else 2), where, "whether its content is inside")
        self.content = content if content is not None else inside[1].children()[0].octets()
        choices = parts.pop(0).children() if parts and parts[0].tag == 0xA0 else []
        self.choices = {one.tag for one in choices}
        self.certificates = [one.whole for one in choices if one.tag == 0x30]
        require(1 <= len(choices) <= 16 and self.certificates, where, "its certificates")
        revocations = parts.pop(0).children() if parts and parts[0].tag == 0xA1 else None
        require(revocations is None or revocations or content is None, where, "an empty set of revocation data")
        self.has_other_revocations = any(one.tag == 0xA1 for one in revocations or ())
        signers = expect(parts, 0x31, where).children()
        require(not parts and len(signers) == 1, where, "not exactly one signer")
        self._read_signer(signers[0], kind)

    def _read_signer(self, signer: Node, kind: bytes) -> None:
        where, parts = self.where, signer.children()
        require(expect(parts, 2, where).content == b"\1", where, "the version of its signer")
        issuer, serial = expect(parts, 0x30, where).children()
        digest = expect(parts, 0x30, where).children()[0].content
        require(digest in DIGESTS, where, "another digest than SHA-2")
        require(self._digests == [digest], where, "its digest algorithms")
        self.digest = DIGESTS[digest]
        signed = expect(parts, 0xA0, where)
        self.attributes = attributes_of(signed, where)
        self.attributes_der = tlv(0x31, b"".join(sorted(one.der() for one in signed.children())))
        self.algorithm = expect(parts, 0x30, where).children()[0].content
        self.value = expect(parts, 4, where).octets()
        self._unsigned = parts.pop(0) if parts and parts[0].tag == 0xA1 else None
        require(not parts, where, "more than a signer has")
        require(self._value(CONTENT_TYPE).content == kind, where, "the attribute content-type")
        require(self._value(MESSAGE_DIGEST).octets()
                == hashlib.new(self.digest, self.content).digest(), where, "it is over something else")
        self.certificate = next((one for one in self.certificates
                                 if named_by(one) == (issuer.whole, serial.content)), b"")
        require(self.certificate, where, "the signer's certificate is not inside")
        references = [one for one in self.attributes if one.kind in (REFERENCE_1, REFERENCE_2)]
        require(references, where, "the attribute signing-certificate is missing")
        for one in references:
            self._check_reference(one)

    def _check_reference(self, attribute: Attribute) -> None:
        """ESSCertID (SHA-1) and ESSCertIDv2 name the signer's certificate first."""
        named = attribute.values[0].children()[0].children()[0].children()
        digest: Optional[str] = "sha1" if attribute.kind == REFERENCE_1 else "sha256"
        if attribute.kind == REFERENCE_2 and named[0].tag == 0x30:
            oid = named.pop(0).children()[0].content
            digest = DIGESTS.get(oid) or REFERENCE_DIGESTS.get(oid)
        if digest is not None:
            found = hashlib.new(digest, self.certificate, usedforsecurity=False).digest()
            require(named[0].octets() == found, self.where, "the attribute signing-certificate names another")

    def _value(self, kind: bytes) -> Node:
        for one in self.attributes:
            if one.kind == kind:
                return one.values[0]
        raise Invalid(f"{self.where}: an attribute is missing")

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the signer's certificate."""
        return hashlib.sha256(self.certificate).hexdigest()

    def timestamp(self) -> Optional[bytes]:
        """Returns the token over the signature's value, the only unsigned attribute there may be."""
        if self._unsigned is None:
            return None
        found = attributes_of(self._unsigned, self.where)
        require([one.kind for one in found] == [TIMESTAMP], self.where, "unsigned attributes")
        return found[0].values[0].whole

    def signing_time(self) -> datetime:
        node = self._value(SIGNING_TIME)
        text = node.content.decode("ascii")
        if node.tag == 0x17 and re.fullmatch("[0-9]{12}Z", text):
            return datetime.strptime(("20" if text < "50" else "19") + text, "%Y%m%d%H%M%SZ")
        require(node.tag == 0x18 and re.fullmatch("[0-9]{14}Z", text), self.where, "signing-time")
        return datetime.strptime(text, "%Y%m%d%H%M%SZ")

    def check_value(self) -> None:
        """Raises Invalid unless the key of the certificate inside made the signature."""
        if not HAS_CRYPTOGRAPHY:
            raise Unchecked("python3-cryptography is not installed")
        kinds: Dict[str, Any] = {"sha256": hashes.SHA256, "sha384": hashes.SHA384, "sha512": hashes.SHA512}
        made = kinds[self.digest]()
        try:
            key: Any = x509.load_der_x509_certificate(self.certificate).public_key()
            if isinstance(key, ec.EllipticCurvePublicKey):
                key.verify(self.value, self.attributes_der, ec.ECDSA(made))
            elif isinstance(key, rsa.RSAPublicKey):
                key.verify(self.value, self.attributes_der, padding.PSS(
                    padding.MGF1(made), padding.PSS.AUTO) if self.algorithm == PSS
                    else padding.PKCS1v15(), made)
            else:
                raise Unchecked(f"{self.where}: a key of another kind")
        except InvalidSignature:
            raise Invalid(f"{self.where}: the signature is wrong") from None
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise Unchecked(f"{self.where}: {error}") from None


def named_by(certificate: bytes) -> Tuple[bytes, bytes]:
    """Returns the issuer, in DER, and the serial number of a certificate."""
    parts = parse(certificate, 0x30, "a certificate").children()[0].children()
    if parts[0].tag == 0xA0:
        parts.pop(0)
    return parts[2].whole, parts[0].content


class Token:
    """A TimeStampToken: its imprint (SHA-256) and its time."""

    def __init__(self, data: bytes, where: str) -> None:
        self.signed = signed = Signed(data, where, None, TST_INFO)
        require(signed.version == 5 if signed.has_other_revocations
                else signed.version == 3 or signed.version == 4 and 0xA2 in signed.choices, where,
                "the version of its SignedData")
        parts = parse(self.signed.content, 0x30, where).children()
        require(expect(parts, 2, where).content == b"\1", where, "the version of its TSTInfo")
        expect(parts, 6, where)
        algorithm, imprint = expect(parts, 0x30, where).children()
        require(DIGESTS.get(algorithm.children()[0].content) == "sha256" and imprint.tag == 4, where,
                "another digest than SHA-256")
        self.imprint = imprint.octets().hex()
        expect(parts, 2, where)
        stated = expect(parts, 0x18, where).content.decode("ascii")
        found = re.fullmatch(r"([0-9]{14})(?:\.([0-9]{1,16}))?Z", stated)
        require(found, where, "its time")
        assert found
        fraction = (found[2] or "")[:6].ljust(6, "0")
        for extension in [one for part in parts if part.tag == 0xA1 for one in part.children()]:
            require([one.content for one in extension.children() if one.tag == 1] in ([], [b"\0"]), where,
                    "a critical extension of its TSTInfo")
        self.time = datetime.strptime(found[1], "%Y%m%d%H%M%S").replace(microsecond=int(fraction))
