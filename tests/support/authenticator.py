"""An authenticator whose passkeys say what a test wants (WebAuthn Level 2, sections 5.8.1 and 6.1)."""

import base64
import hashlib
import json
import secrets

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, CREDENTIAL = 1, 4, 0x40


def text_of(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def bytes_of(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Passkey:
    """A passkey. Returns the fields of the console's forms; `asked` is the console's request."""

    def __init__(self, origin, user=b""):
        self.origin, self.user = origin, user
        self.id, self.key, self.count = secrets.token_bytes(32), ec.generate_private_key(ec.SECP256R1()), 0

    def client_data(self, asked, ceremony, origin):
        return json.dumps({"type": f"webauthn.{ceremony}", "challenge": asked["challenge"],
                           "origin": origin or self.origin, "crossOrigin": False}).encode()

    def data(self, asked, flags, party, more=b""):
        self.count += 1
        return (hashlib.sha256((party or asked["party"]).encode()).digest() + bytes([flags]) +
                self.count.to_bytes(4, "big") + more)

    def create(self, asked, origin=None, party=None, flags=PRESENT | VERIFIED):
        point = self.key.public_key().public_numbers()
        cose = (b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20" + point.x.to_bytes(32, "big") +
                b"\x22\x58\x20" + point.y.to_bytes(32, "big"))
        more = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + cose
        self.user = bytes_of(asked["user"])
        return {"client_data": text_of(self.client_data(asked, "create", origin)),
                "authenticator_data": text_of(self.data(asked, flags | CREDENTIAL, party, more))}

    def get(self, asked, origin=None, party=None, flags=PRESENT | VERIFIED):
        said, data = self.client_data(asked, "get", origin), self.data(asked, flags, party)
        signature = self.key.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(hashes.SHA256()))
        return {"credential": text_of(self.id), "client_data": text_of(said), "authenticator_data": text_of(data),
                "signature": text_of(signature), "user": text_of(self.user)}
