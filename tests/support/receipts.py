"""Signed receipts, checked from their description in the evidence format alone (tests/support/tlog.py has the tree)."""

import base64
import datetime
import json

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import tlog

PREFIX = b"constancia-receipt/1\n"


def statement(event):
    """The bytes that the leaf of a response to a registration is made of."""
    receipt = event["receipt"]
    kept = ("chain_hash", "channel_id", "hash", "hash_alg", "received_at", "sequence")
    members = {name: event[name] for name in kept} | {name: receipt[name] for name in ("origin", "seal_by")}
    members |= {"chain": event["mode"], "v": "constancia-receipt/1"}
    return json.dumps(members, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def root(event):
    """The root of the tree; None: the path does not fit."""
    receipt = event["receipt"]
    path = [base64.b64decode(item, validate=True) for item in receipt["path"]]
    return tlog.root_of_path(tlog.leaf_hash(statement(event)), receipt["index"], receipt["size"], path)


def is_signed(event):
    """Whether the receipt is valid for the rest of the response."""
    receipt = event["receipt"]
    found = root(event) if receipt else None
    if found is None:
        return False
    key = ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(receipt["key"], validate=True))
    try:
        key.verify(base64.b64decode(receipt["signature"], validate=True), PREFIX + found)
    except InvalidSignature:
        return False
    return True


def seconds(event):
    """From its reception to the time until which it is to be sealed."""
    times = [datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
             for text in (event["received_at"], event["receipt"]["seal_by"])]
    return (times[1] - times[0]).total_seconds()


def text_of(private):
    """The public key, as receipts state it."""
    raw = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return base64.b64encode(raw).decode()


def sign(event, private, origin="log.example/segments", seal_by=None):
    """Makes the receipt of a response, as a service with that key does for a batch of one."""
    event = {**event, "receipt": {"index": 0, "origin": origin, "path": [], "seal_by": seal_by, "size": 1}}
    event["receipt"]["key"] = text_of(private)
    event["receipt"]["signature"] = base64.b64encode(private.sign(PREFIX + root(event))).decode()
    return event
