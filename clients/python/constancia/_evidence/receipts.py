"""Receipts against the events of an archive (section 10.3), of which there may be any number."""

from __future__ import annotations

import json
import os
import sqlite3
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from .archive import Archive
from .chain import Link
from .forms import IS_CHAIN, integer, is_hash, is_text, is_time

LINE_MAX, WHOLE_MAX = 1 << 20, 64 << 20
LEFT_OUT_MAX = 10  # that are named
UNUSABLE_MAX = 10  # that are named
COMPARED = ("event_id", "client_ref", "received_at", "occurred_at", "hash", "hash_alg", "modality",
            "config_version")
FORMS = {"event_id": is_text, "client_ref": is_text, "channel_id": is_text, "mode": IS_CHAIN,
         "sequence": integer(), "received_at": is_time, "hash": is_text, "modality": is_text,
         "chain_hash": is_hash, "config_version": integer(1)}


class NotUsable(Exception):
    """What was given is no receipt; as a value, what is in the place of one."""


class Differences:
    """Compares receipts with events that come in order. Receipts wait on the disk, not in memory."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._base = sqlite3.connect("")  # a file of its own that ends with it
        self._base.execute("CREATE TABLE receipt (sequence INTEGER, facts TEXT)")
        self._waiting: Iterator[Tuple[int, str]] = iter(())
        self._next: Optional[Tuple[int, str]] = None
        self.compared = 0
        self.outside = 0  # of events that the archive does not hold
        self.left_out: List[int] = []  # of events that it would have to hold
        self.unusable: List[str] = []  # why some were not compared; the first ones
        self._usable = 0

    def close(self) -> None:
        self._base.close()

    def add(self, receipts: Iterable[Tuple[str, Any]]) -> None:
        """Takes receipts, each with what to call it. One that cannot be used spoils no other one."""
        self._base.executemany("INSERT INTO receipt VALUES (?, ?)", self._rows(receipts))
        if self.unusable and not self._usable:
            raise NotUsable(self.unusable[0])

    def _rows(self, receipts: Iterable[Tuple[str, Any]]) -> Iterator[Tuple[int, str]]:
        manifest = self._archive.manifest
        for where, value in receipts:
            reason = fault_of(value)
            if reason:
                if len(self.unusable) < UNUSABLE_MAX:
                    self.unusable.append(f"{where}: {reason}")
                continue
            self._usable += 1
            if (value["channel_id"], value["mode"]) != (manifest["channel_id"], manifest["mode"]):
                self.outside += 1
                continue
            facts = {name: value.get(name) for name in (*COMPARED, "chain_hash")}
            facts["hash_alg"] = facts["hash_alg"] or "sha-256"
            yield value["sequence"], json.dumps(facts)

    def begin(self) -> None:
        """Is called once all receipts are there, and before the first event."""
        self._base.execute("CREATE INDEX place ON receipt (sequence)")
        self._waiting = iter(self._base.execute("SELECT sequence, facts FROM receipt ORDER BY sequence"))
        self._next = next(self._waiting, None)

    def of(self, link: Link) -> List[str]:
        """Returns how the receipts of an event differ from it."""
        self._pass_over(link.sequence)
        found = []
        while self._next and self._next[0] == link.sequence:
            facts = json.loads(self._next[1])
            names = ["chain_hash"] if facts["chain_hash"] != link.chain_hash else []
            if link.event is not None:
                names += [name for name in COMPARED if facts[name] != link.event[name]]
                self.compared += 1
            else:
                self._count_outside(link.sequence, facts)
            if names:
                found.append(f"event {link.sequence} differs from the acknowledged event: {', '.join(names)}")
            self._next = next(self._waiting, None)
        return found

    def end(self) -> None:
        """Is called after the last event."""
        self._pass_over(2**63)

    def _pass_over(self, sequence: int) -> None:
        while self._next and self._next[0] < sequence:
            self._count_outside(self._next[0], json.loads(self._next[1]))
            self._next = next(self._waiting, None)

    def _count_outside(self, sequence: int, facts: Dict[str, Any]) -> None:
        """Counts the receipt of an event that the archive does not hold. One that was received in the time
        that was asked for, before the range, was left out: later ones may be of after the request."""
        start = self._archive.manifest["requested_range"]["from"]
        self.outside += 1
        if (start and sequence < self._archive.first and facts["received_at"] >= start
                and len(self.left_out) < LEFT_OUT_MAX):
            self.left_out.append(sequence)


def fault_of(value: Any) -> Optional[str]:
    """Returns why something is no receipt."""
    if isinstance(value, NotUsable):
        return str(value)
    if not isinstance(value, dict):
        return "it is not the answer to a registration"
    return next((f"'{name}' is missing or not of its form" for name, form in FORMS.items()
                 if not form(value.get(name))), None)


def parsed(line: bytes) -> Any:
    """Returns the value of a line, or why it has none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return NotUsable(str(error))


def read(path: "os.PathLike[str]") -> Iterator[Tuple[str, Any]]:
    """Returns the receipts of a file: one in each line, one alone, or a JSON array of them."""
    with open(path, "rb") as file:
        first = file.readline(LINE_MAX)
        begins = first.lstrip()[:1]
        try:
            json.loads(first)
            is_lines = begins == b"{"
        except (ValueError, RecursionError):  # of several lines, or a line that is no receipt
            second = file.readline(LINE_MAX)
            is_lines = begins != b"[" and second.lstrip()[:1] == b"{" and isinstance(parsed(second), dict)
        file.seek(0)
        try:
            if not is_lines:
                data = file.read(WHOLE_MAX + 1)
                if len(data) > WHOLE_MAX:
                    raise NotUsable(f"{path}: it has more than {WHOLE_MAX} bytes, and not one receipt a line")
                value = json.loads(data) if data.strip() else []
                for number, one in enumerate(value if isinstance(value, list) else [value], 1):
                    yield f"{path}: receipt {number}", one
                return
            number = 0
            for line in iter(lambda: file.readline(LINE_MAX), b""):
                number += 1
                if line.strip():
                    yield f"{path}: line {number}", parsed(line)
        except (ValueError, RecursionError) as error:
            raise NotUsable(f"{path}: {error}") from None
