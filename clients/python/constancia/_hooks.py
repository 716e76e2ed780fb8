"""Hooks for logs and metrics. None is given a key, a body, or the query of an address."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Callable, Optional

LOG = logging.getLogger("constancia")


@dataclass(frozen=True)
class RequestSent:
    """A request that is about to be sent."""

    method: str
    url: str  # without its query, which opens a file in a download's link
    attempt: int  # 1 is the first


@dataclass(frozen=True)
class ResponseReceived:
    """The head of an answer, whatever its status."""

    method: str
    url: str
    attempt: int
    status: int
    seconds: float  # from the request to the head of the answer
    request_id: Optional[str]  # names the request in the service's log


@dataclass(frozen=True)
class RetryPlanned:
    """An attempt that failed, and after which another one follows."""

    method: str
    url: str
    attempt: int  # the one that failed
    delay: float  # seconds until the next one
    error: Exception


@dataclass(frozen=True)
class Hooks:
    """Functions that a client calls, in the thread that does the exchange. What they raise is logged
    (logger `constancia`) and changes nothing."""

    on_request: Optional[Callable[[RequestSent], Any]] = None
    on_response: Optional[Callable[[ResponseReceived], Any]] = None
    on_retry: Optional[Callable[[RetryPlanned], Any]] = None


def call(hook: Optional[Callable[[Any], Any]], value: Any) -> None:
    """Calls a hook, if there is one. A fault of it must not hide what the service did."""
    if hook is None:
        return
    try:
        hook(value)
    except Exception:  # noqa: BLE001
        LOG.exception("a hook failed")
