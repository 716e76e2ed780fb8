"""Documents: canonical JSON with exactly the members of section 4, each of its form."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from datetime import datetime, timedelta
from typing import Any, Callable, Dict, List, Mapping, Sequence

INTEGER_MAX = 2**53 - 1
TOLERANCE = timedelta(seconds=300)
LATEST = "9999-12-31T23:59:59.999999Z"
Form = Callable[[Any], bool]


class Invalid(Exception):
    """Something that the page rules out."""


def require(condition: object, where: str, what: str) -> None:
    """Raises Invalid unless the condition holds."""
    if not condition:
        raise Invalid(f"{where}: {what}")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: Any) -> bytes:
    """Returns the canonical form (RFC 8785) of what documents hold: no fractions, names of ASCII."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False,
                      separators=(",", ":")).encode()


def time_of(text: str) -> datetime:
    return datetime(int(text[:4]), int(text[5:7]), int(text[8:10]), int(text[11:13]), int(text[14:16]),
                    int(text[17:19]), int(text[20:26]))


def text_of(time: datetime) -> str:
    return time.isoformat(timespec="microseconds") + "Z"


def later(text: str) -> str:
    """Returns the latest time that is not after one, give or take 300 s. Times compare as texts."""
    try:
        return text_of(time_of(text) + TOLERANCE)
    except OverflowError:
        return LATEST


# ---- forms of members ----

TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
HASH = re.compile(r"[0-9a-f]{64}")


def is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def is_time(value: Any) -> bool:
    if not (isinstance(value, str) and TIME.fullmatch(value)):
        return False
    try:
        time_of(value)
    except ValueError:
        return False
    return True


def is_hash(value: Any) -> bool:
    return isinstance(value, str) and HASH.fullmatch(value) is not None


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def integer(first: int = 1, last: int = INTEGER_MAX) -> Form:
    return lambda value: type(value) is int and first <= value <= last


def one_of(*words: str) -> Form:
    return lambda value: isinstance(value, str) and value in words


def short(most: int) -> Form:
    return lambda value: is_text(value) and 1 <= len(value.encode()) <= most


def hashes(most: int) -> Form:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(is_hash, value))


def ascending(most: int) -> Form:
    return lambda value: hashes(most)(value) and value == sorted(set(value))


def or_null(form: Form) -> Form:
    return lambda value: value is None or form(value)


def base64_of(most: int) -> Form:
    def check(value: Any) -> bool:
        return isinstance(value, str) and 0 < len(decoded(value)) <= most
    return check


def decoded(text: str) -> bytes:
    """Returns what base64 of section 1 stands for."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid("base64 is wrong") from None
    require(base64.b64encode(data).decode() == text, "base64", "other bits than its own")
    return data


IS_CHAIN = one_of("live", "test")
Members = Mapping[str, Form]


def members(value: Any, forms: Members, where: str) -> Dict[str, Any]:
    """Returns an object that has exactly these members, each of its form."""
    require(isinstance(value, dict) and value.keys() == forms.keys(), where, "other members")
    for name, form in forms.items():
        require(form(value[name]), where, f"'{name}' is not of its form")
    return value  # type: ignore[no-any-return]


def parsed(data: bytes, where: str, most: int) -> Any:
    """Returns the value of canonical JSON."""
    require(0 < len(data) <= most, where, "its size")
    value = json.loads(data.decode("utf-8"))
    require(canonical(value) == data, where, "not canonical")
    return value


def document(data: bytes, forms: Members, where: str, most: int = 262144) -> Dict[str, Any]:
    """Returns the members of a document."""
    return members(parsed(data, where, most), forms, where)


# ---- the tree of section 5 ----

def join(one: str, other: str) -> str:
    first, second = sorted((bytes.fromhex(one), bytes.fromhex(other)))
    return hashlib.sha256(first + second).hexdigest()


def along(leaf: str, path: Sequence[str]) -> str:
    for sibling in path:
        leaf = join(leaf, sibling)
    return leaf


class Tree:
    """Computes a root while its leaves come. Of a tree of n leaves it holds the roots of the complete trees
    on its left, one for each bit of n that is set."""

    def __init__(self) -> None:
        self._left: List[str] = []
        self._count = 0

    def add(self, leaf: str) -> None:
        bits = self._count
        while bits & 1:
            leaf, bits = join(self._left.pop(), leaf), bits >> 1
        self._left.append(leaf)
        self._count += 1

    def root(self) -> str:
        """Returns the root over the leaves so far, of which there is one at least."""
        *others, root = self._left
        for left in reversed(others):
            root = join(left, root)
        return root
