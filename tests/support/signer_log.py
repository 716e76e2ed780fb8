"""Lines of a signing process's log (src/seal/signer_log.h), in the form in which it writes them."""

import hashlib
import json

NAME = "signer.log"
STORE_ID_SIZE = 32


def lines(data):
    path = data / "signer" / NAME
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def mark(data, store, number, root=bytes(32)):
    """Adds a mark of that store at that round; `store` is the tests' (stores.py)."""
    ((name,),) = store.rows("SELECT value FROM settings WHERE name = 'store_id'")
    before = lines(data)
    previous = hashlib.sha256(before[-1]).hexdigest() if before else "0" * 64
    line = {"time": "2026-01-01T00:00:00.000000Z", "purpose": "round", "store": name[:STORE_ID_SIZE],
            "round": number, "sha256": root.hex(), "previous": previous}
    with (data / "signer" / NAME).open("ab") as log:
        log.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


def tamper(data):
    """Changes a line that is not the last."""
    kept = lines(data)
    assert len(kept) > 1
    kept[-2] = kept[-2].replace(b"2026-", b"2025-", 1)
    (data / "signer" / NAME).write_bytes(b"".join(kept))
