"""Notices of the service: checking who signed them, and reading them.

    notice = webhooks.verify(secret, request.headers, request.body)
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets as tokens
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional, Union

from ._batches import to_json
from .errors import InvalidSignature
from .models import decode
from .notices import KINDS, NoticeData

TOLERANCE = 300  # seconds that a notice may be old, or early


@dataclass(frozen=True)
class Notice:
    """`id` is the same on every retry: remember those that are dealt with. docs/integrate/webhooks.md and
    the interface's description tell what `data` has for each `type`."""

    id: str
    type: str
    created_at: datetime
    mode: str
    data: Dict[str, Any]

    @property
    def details(self) -> Optional[NoticeData]:
        """`data` as the class of this `type` in `constancia.notices`; None for a type that this client
        does not know, whose `data` can be read all the same."""
        kind = KINDS.get(self.type)
        details: Optional[NoticeData] = decode(kind, self.data) if kind else None
        return details


class Signed(NamedTuple):
    """What a test sends to a receiver."""

    headers: Dict[str, str]
    body: bytes


def verify(secret: Union[str, Iterable[str]], headers: Mapping[str, str], body: bytes, *,
           prefix: str = "SVC", tolerance: float = TOLERANCE,
           now: Optional[float] = None) -> Notice:
    """The notice, if one of its signatures is good, by the endpoint's secret or one of several.
    body: the bytes that came, before a JSON parser has seen them. prefix: the installation's."""
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError("the body is checked as the bytes that came")
    found = {name.lower(): value for name, value in headers.items()}
    timestamp = found.get(f"x-{prefix}-timestamp".lower(), "").strip()
    given = found.get(f"x-{prefix}-signature".lower(), "").split(",")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 18):
        raise InvalidSignature("there is no timestamp")
    if not abs((time.time() if now is None else now) - int(timestamp)) <= tolerance:  # nor by NaN
        raise InvalidSignature("the timestamp is too far from now")
    secrets = [secret] if isinstance(secret, str) else list(secret)
    expected = [_signature(one, timestamp, body) for one in secrets if one]
    # All are compared, so that the time it takes tells nothing of which is good.
    good = [hmac.compare_digest(one, text.strip().encode(errors="replace"))
            for one in expected for text in given]
    if not any(good):
        raise InvalidSignature("no signature is good")
    notice: Notice = decode(Notice, json.loads(bytes(body)))
    return notice


def _signature(secret: str, timestamp: str, body: bytes) -> bytes:
    mac = hmac.new(secret.encode(), timestamp.encode() + b"." + bytes(body), hashlib.sha256)
    return b"v1=" + mac.hexdigest().encode()


def sign_notice(secret: str, notice: Union[bytes, Mapping[str, Any]], *, prefix: str = "SVC",
                timestamp: Optional[int] = None) -> Signed:
    """Returns a notice as the service would send it, for tests of a receiver. notice: the bytes of a
    body, or its members; `id`, `type`, `created_at`, `mode` and `data` that are not given are made.
    timestamp: Unix seconds, now without it."""
    now = time.time() if timestamp is None else timestamp
    if isinstance(notice, (bytes, bytearray)):
        body = bytes(notice)
    else:
        created = datetime.fromtimestamp(now, timezone.utc)
        made = {"id": "ntc_" + tokens.token_hex(12), "type": "webhook.test", "created_at": created,
                "mode": "live", "data": {}, **notice}
        body = to_json(made)
    try:
        identifier = json.loads(body).get("id")
    except (ValueError, AttributeError):
        identifier = None
    headers = {"Content-Type": "application/json", f"X-{prefix}-Timestamp": str(int(now)),
               f"X-{prefix}-Signature": _signature(secret, str(int(now)), body).decode()}
    if isinstance(identifier, str):
        headers[f"X-{prefix}-Webhook-Id"] = identifier
    return Signed(headers, body)
