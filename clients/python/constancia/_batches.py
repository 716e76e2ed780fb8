"""Batches of declarations: what is sent, and what each line of the answer says."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from ._http import api_error
from .errors import ApiError, UnexpectedAnswer
from .models import Event, decode, utc

ITEMS_MAX, BYTES_MAX = 1000, 8 << 20
Time = Union[str, datetime]


@dataclass(frozen=True)
class Declaration:
    """What one event declares: a payload, or a digest on a channel that keeps no content."""

    client_ref: str
    payload: Optional[Mapping[str, Any]] = None
    hash: Optional[str] = None
    hash_alg: Optional[str] = None
    occurred_at: Optional[Time] = None


@dataclass(frozen=True)
class Outcome:
    """What became of a declaration: an event, or the error of that one alone."""

    client_ref: str
    event: Optional[Event] = None
    error: Optional[ApiError] = None

    def result(self) -> Event:
        """Returns the event, or raises the error."""
        if self.error is not None:
            raise self.error
        if self.event is None:
            raise UnexpectedAnswer(f"{self.client_ref}: neither an event nor an error")
        return self.event


@dataclass(frozen=True)
class Item:
    client_ref: str
    line: bytes  # its JSON, without an end


def rfc3339(when: Time) -> str:
    """Returns a time as it is sent. A text is sent as it is."""
    return when if isinstance(when, str) else utc(when)


def to_json(value: Any) -> bytes:
    """Returns JSON in UTF-8; times in UTC. NaN and the like are no JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"),
                      default=of_other_kind).encode()


def of_other_kind(value: Any) -> str:
    if isinstance(value, datetime):
        return utc(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def body_of(declared: Union[Declaration, Mapping[str, Any]]) -> Dict[str, Any]:
    """Returns the body that `POST /events` takes for a declaration."""
    if isinstance(declared, Declaration):
        declared = {"client_ref": declared.client_ref, "payload": declared.payload,
                    "hash": declared.hash, "hash_alg": declared.hash_alg,
                    "occurred_at": declared.occurred_at}
        declared = {name: value for name, value in declared.items() if value is not None}
    if not isinstance(declared.get("client_ref"), str):
        raise ValueError("a declaration has a client_ref, a text")
    return dict(declared)


def batches(declarations: Iterable[Union[Declaration, Mapping[str, Any]]]) -> Iterator[List[Item]]:
    """Returns the declarations in batches that the service takes, reading no further than needed. One
    that is too large for any batch is alone in its own."""
    batch: List[Item] = []
    size = 0
    for declared in declarations:
        body = body_of(declared)
        item = Item(body["client_ref"], to_json(body))
        if batch and (len(batch) == ITEMS_MAX or size + len(item.line) + 1 > BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item.line) + 1
    if batch:
        yield batch


def outcomes(batch: List[Item], answer: bytes) -> List[Outcome]:
    """Returns what the service answered, one line for each item in their order."""
    lines = answer.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if len(lines) != len(batch):
        raise UnexpectedAnswer(f"{len(batch)} items were sent, and {len(lines)} lines came back")
    return [outcome_of(item, line) for item, line in zip(batch, lines)]


def outcome_of(item: Item, line: bytes) -> Outcome:
    """Returns what a line says: an Event or an Error, with `http_status`."""
    try:
        told = json.loads(line)
        status = told.pop("http_status")
        if not isinstance(status, int) or status < 200:
            raise ValueError("no status")
        if status >= 300:
            after = told.get("retry_after")
            return Outcome(item.client_ref, error=api_error(
                status, told, {} if after is None else {"Retry-After": str(after)}))
        event: Event = decode(Event, told)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnexpectedAnswer("a line of the answer is not of a batch") from None
    if event.client_ref != item.client_ref:
        raise UnexpectedAnswer(f"a line is of {event.client_ref!r}, not of {item.client_ref!r}")
    return Outcome(item.client_ref, event=replace(event, replayed=status == 200))
