"""Receipts of a watcher's chains, on the disk: what they acknowledge, and until when they promise an entry of the
log."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from datetime import datetime, timezone
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from . import notes
from .forms import IS_CHAIN, Invalid, canonical, decoded, integer, is_hash, is_text, is_time, or_null, short, time_of
from .log import NAME_MAX, Climb, node
from .tiles import leaf_of

PREFIX = b"constancia-receipt/1\n"
PATH_MAX = 10
EPOCH = datetime(1970, 1, 1)
CHANNELS_MAX = 1000
PROMISE_MAX = 24 * 3600 * 1_000_000  # a promise of a later time after the event is none
IS_CHANNEL = short(39)
FORMS = {"channel_id": IS_CHANNEL, "mode": IS_CHAIN, "sequence": integer(), "chain_hash": is_hash}
SIGNED = {"received_at": is_time, "hash": is_text}
SIGNATURE = {"index": integer(0), "origin": is_text, "seal_by": or_null(is_time), "size": integer(), "key": is_text,
             "signature": is_text, "path": lambda value: isinstance(value, list) and len(value) <= PATH_MAX}


class Promise(NamedTuple):
    channel_id: str
    sequence: int
    chain_hash: str
    seal_by: Optional[int]  # microseconds; None: it promises nothing
    origin: str  # of the log that it names
    is_signed: bool  # by the key that it states
    is_far: bool  # it promises only a time beyond PROMISE_MAX


def micros(text: str) -> int:
    """Returns a time in microseconds since 1970."""
    passed = time_of(text) - EPOCH
    return (passed.days * 86400 + passed.seconds) * 1_000_000 + passed.microseconds


def text_of(time: int) -> str:
    whole, rest = divmod(time, 1_000_000)
    return datetime.fromtimestamp(whole, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:06d}Z"


def has_signature(event: Dict[str, Any], receipt: Dict[str, Any]) -> bool:
    """Returns whether the key that a receipt names signed it (section 10.4)."""
    try:
        kept = {name: event[name] for name in ("chain_hash", "channel_id", "hash", "received_at", "sequence")}
        statement = {**kept, "chain": event["mode"], "hash_alg": event.get("hash_alg") or "sha-256",
                     "origin": receipt["origin"], "seal_by": receipt["seal_by"], "v": "constancia-receipt/1"}
        climb, root = Climb(receipt["index"], receipt["size"]), leaf_of(canonical(statement))
        for one in map(decoded, receipt["path"]):
            if climb.is_at_root or len(one) != 32:
                return False
            root = node(one, root) if climb.is_left() else node(root, one)
        return (receipt["index"] < receipt["size"] and climb.is_at_root
                and notes.is_signed(decoded(receipt["key"]), PREFIX + root, decoded(receipt["signature"])))
    except (Invalid, TypeError, ValueError, RecursionError):
        return False


def wrong_members(event: Any) -> List[str]:
    """Returns what is wrong with an answer to a registration."""
    try:
        return ["no answer"] if not isinstance(event, dict) else [
            name for name, form in FORMS.items() if not form(event.get(name))]
    except ValueError:  # half a character
        return ["channel_id"]


def tag_of(channel_id: str) -> str:
    """Returns what names the live chain of a channel in the log."""
    return hashlib.sha256(f"constancia-tag/1\n{channel_id}\nlive".encode()).hexdigest()


class Promises:
    """All receipts of the chains that are watched: those of the given channels and those of receipts."""

    def __init__(self, channels: Iterable[str]) -> None:
        self._base = sqlite3.connect("")  # a file of its own that ends with it
        self._base.execute("CREATE TABLE promise (channel TEXT, sequence INTEGER, hash TEXT, seal_by INTEGER,"
                           " origin TEXT, signed INTEGER, far INTEGER)")
        self.channels: Dict[str, str] = {}  # by tag
        for channel_id in channels:
            self._watch(channel_id)
        self.test = self.false = self.malformed = 0
        self.first_malformed = ""

    def _watch(self, channel_id: str) -> None:
        tag = tag_of(channel_id)
        if tag not in self.channels and len(self.channels) == CHANNELS_MAX:
            raise ValueError(f"at most {CHANNELS_MAX} channels can be watched at once")
        self.channels[tag] = channel_id

    def close(self) -> None:
        self._base.close()

    def add(self, receipts: Iterable[Tuple[str, Any]]) -> None:
        self._base.executemany("INSERT INTO promise VALUES (?, ?, ?, ?, ?, ?, ?)", self._rows(receipts))

    def index(self) -> None:
        """Is called once all receipts are there."""
        self._base.execute("CREATE INDEX place ON promise (channel, sequence, hash)")

    def _rows(self, receipts: Iterable[Tuple[str, Any]]) -> Iterator[Promise]:
        for where, event in receipts:
            wrong = wrong_members(event)
            if wrong:
                self.malformed += 1
                self.first_malformed = self.first_malformed or f"{where}: {wrong[0]}"
            elif event["mode"] != "live":
                self.test += 1
            else:
                self._watch(event["channel_id"])
                yield self._read(event)

    def _read(self, event: Dict[str, Any]) -> Promise:
        receipt, seal_by, origin, is_signed, is_far = event.get("receipt"), None, "", False, False
        if receipt is not None:
            is_whole = (isinstance(receipt, dict) and all(form(receipt.get(name)) for name, form in SIGNATURE.items())
                        and all(form(event.get(name)) for name, form in SIGNED.items())
                        and len(receipt["origin"].encode(errors="replace")) <= NAME_MAX)
            if not is_whole or not has_signature(event, receipt):
                self.false += 1
            else:
                origin, is_signed = receipt["origin"], True
                if receipt["seal_by"] is not None:
                    seal_by = micros(receipt["seal_by"])
                    is_far = seal_by - micros(event["received_at"]) > PROMISE_MAX
        return Promise(event["channel_id"], event["sequence"], event["chain_hash"], seal_by, origin, is_signed, is_far)

    def hashes_of(self, channel_id: str, sequence: int, origin: str) -> List[Tuple[str, bool]]:
        """Returns the chain hashes that receipts acknowledge of an event, and whether one is signed for a log."""
        return [(chain_hash, bool(is_signed)) for chain_hash, is_signed in self._base.execute(
            "SELECT hash, MAX(signed AND origin = ?) FROM promise WHERE channel = ? AND sequence = ?"
            " GROUP BY hash ORDER BY hash", (origin, channel_id, sequence))]

    def of(self, channel_id: str, origin: str) -> Iterator[Promise]:
        """Returns one for each event and chain hash: that which binds the service of a log most."""
        last: Optional[Tuple[int, str]] = None
        for row in self._base.execute(
                "SELECT * FROM promise WHERE channel = ? ORDER BY sequence, hash, signed DESC, origin != ?,"
                " seal_by IS NULL, seal_by", (channel_id, origin)):
            promise = Promise(*row)
            if (promise.sequence, promise.chain_hash) != last:
                yield promise
            last = promise.sequence, promise.chain_hash

    def digest(self, channel_id: str, last: int) -> str:
        """Returns what stands for the receipts of events up to one: the state of `constancia log watch` has the same.
        Each hash covers the ones before it, so that who chooses the receipts cannot make it that of others."""
        found = bytes(32)
        for sequence, chain_hash in self._base.execute(
                "SELECT DISTINCT sequence, hash FROM promise WHERE channel = ? AND sequence <= ?"
                " ORDER BY sequence, hash", (channel_id, last)):
            found = hashlib.sha256(found + struct.pack("<q", sequence) + bytes.fromhex(chain_hash)).digest()
        return found.hex()
