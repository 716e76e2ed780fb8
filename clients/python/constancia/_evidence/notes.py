"""Keys that sign checkpoints of a log, and whose signatures a note has (C2SP signed-note, tlog-cosignature). With
python3-cryptography, where it is installed."""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple, Optional

from .forms import decoded, require
from .log import Note

try:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    HAS_ED25519 = True
except ImportError:
    HAS_ED25519 = False

ED25519, COSIGNATURE = 1, 4
TIME_MAX = 253402300799  # of the year 9999


class NoteKey(NamedTuple):
    name: str
    id: bytes
    kind: int
    key: bytes


def read_key(vkey: str, kind: int) -> NoteKey:
    """Reads a verifier key, NAME+ID+KEY. Raises Invalid."""
    parts = vkey.split("+", 2)
    require(len(parts) == 3 and parts[0], "a verifier key", "it is not NAME+ID+KEY")
    data = decoded(parts[2])
    require(len(data) == 33 and data[0] in (ED25519, COSIGNATURE), "a verifier key", "it is none of Ed25519")
    own = hashlib.sha256(parts[0].encode() + b"\n" + data).digest()[:4]
    require(parts[1] == own.hex(), "a verifier key", "its id is of another key")
    require(data[0] == kind, "a verifier key",
            "it is that of a witness" if kind == ED25519 else "it is none of a witness")
    return NoteKey(parts[0], own, data[0], data[1:])


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """Returns whether an Ed25519 key made a signature."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True


def signature_of(note: Note, key: NoteKey) -> Optional[bytes]:
    """Returns the first signature of a key under a note: further ones are ignored."""
    for name, data in note.signatures:
        if name == key.name and data[:4] == key.id:
            return data[4:]
    return None


def check_log(note: Note, key: NoteKey) -> Optional[bool]:
    """Returns whether the log's key signed a note; None: it has no signature of that key."""
    signature = signature_of(note, key)
    return None if signature is None else is_signed(key.key, note.text.encode(), signature)


def cosigned_at(note: Note, key: NoteKey) -> Optional[int]:
    """Returns when a witness cosigned, in seconds; None: it did not, or the line in its name is false."""
    signature = signature_of(note, key)
    if signature is None or len(signature) != 72:
        return None
    (time,) = struct.unpack(">Q", signature[:8])
    message = f"cosignature/v1\ntime {time}\n".encode() + note.text.encode()
    return time if time <= TIME_MAX and is_signed(key.key, message, signature[8:]) else None
