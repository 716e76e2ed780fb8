"""Requests over kept connections. Each may be repeated: it has the effect of once."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import re
import ssl
import time
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, TypeVar, Union

from . import _calls
from ._calls import CURRENT
from ._hooks import Hooks, RequestSent, ResponseReceived, RetryPlanned, call
from .errors import ApiError, ConnectionFailed, UnexpectedAnswer, class_of

T = TypeVar("T")
Headers = Union[Mapping[str, str], http.client.HTTPMessage]
ERROR_BODY_MAX = 65536
# The service is busy; or the request did not come through whole, or its answer did not come back.
AGAIN = {429, 503, 408, 502, 504}


@dataclass(frozen=True)
class Retry:
    """After 429 and 503 as the service says by Retry-After, after a lost connection in growing
    steps, each with some chance added so that many clients do not come back at once."""

    attempts: int = 5  # in all; 1: no retry
    patience: float = 60.0  # the most seconds that the waiting of a call takes

    def delay(self, attempt: int, retry_after: Optional[int], waited: float) -> Optional[float]:
        """Seconds until the next attempt, after so many; None when it is over."""
        if retry_after is None:
            seconds = random.uniform(0.25, 0.5) * float(2 ** (attempt - 1))
        else:
            seconds = retry_after + random.uniform(0, 0.25 * retry_after)
        left = self.patience - waited
        if attempt >= self.attempts or left <= 0 or (retry_after or 0) > left:
            return None
        return min(seconds, left)


class Body:
    """What is sent, in pieces that can be read again for another attempt."""

    def __init__(self, length: int, pieces: Callable[[], Iterator[bytes]]) -> None:
        self.length = length
        self.pieces = pieces

    @classmethod
    def of(cls, content: bytes) -> "Body":
        return cls(len(content), lambda: iter((content,)))


@dataclass(frozen=True)
class Request:
    method: str
    url: str = field(repr=False)  # that of a download opens the file
    headers: Mapping[str, str] = field(repr=False)
    body: Optional[Body] = None

    @property
    def shown(self) -> str:
        """The address without its query, for messages and hooks."""
        parts = urllib.parse.urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.method} {self.shown}"


class Answer:
    """A response whose body ends where it should, or reading it raises ConnectionFailed."""

    def __init__(self, name: str, response: http.client.HTTPResponse) -> None:
        self._name = name
        self._response = response
        self.status = response.status
        self.reason = response.reason
        self.headers = response.headers
        self.length = response.length  # None when it is not told

    @property
    def ended(self) -> bool:
        return self._response.isclosed()

    def read(self, most: Optional[int] = None) -> bytes:
        try:
            piece = self._response.read(most)
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailed(f"{self._name}: {type(error).__name__}") from None
        if most and not piece and self._response.length:
            raise ConnectionFailed(f"{self._name}: the connection ended before the answer did")
        return piece

    def json(self) -> Any:
        try:
            return json.loads(self.read())
        except ValueError:
            raise UnexpectedAnswer(f"{self._name}: the answer is no JSON") from None


class Transport:
    """Safe for threads: each connection is one request's at a time."""

    def __init__(self, timeout: float, context: Optional[ssl.SSLContext], retry: Retry,
                 hooks: Hooks = Hooks()) -> None:
        self.hooks = hooks
        self.timeout = timeout
        self.context = context
        self.retry = retry
        self._idle: Dict[str, List[http.client.HTTPConnection]] = {}

    def close(self) -> None:
        with contextlib.suppress(KeyError):  # another thread was faster
            while self._idle:
                for connection in self._idle.popitem()[1]:
                    connection.close()

    def perform(self, prepare: Callable[[], Request],
                consume: Callable[[Answer], T]) -> T:
        """What `consume` makes of a good answer; it raises ConnectionFailed when it is cut short,
        and the next attempt's request is prepared anew."""
        attempt, waited = 1, 0.0
        while True:
            request = prepare()
            retry_after = None
            try:
                return self._exchange(request, consume, attempt)
            except ApiError as error:
                failure: Exception = error
                retry_after = error.retry_after
                again = error.status in AGAIN
            except ConnectionFailed as error:
                if CURRENT.get():
                    CURRENT.get().check()  # type: ignore[union-attr]
                failure, again = error, True
                self.close()  # the others that are kept will hardly have lived longer
            pause = self.retry.delay(attempt, retry_after, waited) if again else None
            if pause is None:
                raise failure
            call(self.hooks.on_retry, RetryPlanned(request.method, request.shown, attempt, pause,
                                                   failure))
            _calls.sleep(pause)
            attempt, waited = attempt + 1, waited + pause

    def _exchange(self, request: Request, consume: Callable[[Answer], T], attempt: int) -> T:
        origin, target = split(request.url)
        current = CURRENT.get()
        if current:
            current.check()
        call(self.hooks.on_request, RequestSent(request.method, request.shown, attempt))
        began = time.monotonic()
        connection = self._connect(origin, request)
        kept = False
        try:
            if current:
                current.hold(connection.sock)
            answer = Answer(request.name, self._send(connection, target, request))
            call(self.hooks.on_response, ResponseReceived(
                request.method, request.shown, attempt, answer.status, time.monotonic() - began,
                answer.headers.get("X-Request-Id")))
            if answer.status >= 300:
                raise refusal(answer)
            result = consume(answer)
            kept = answer.ended and connection.sock is not None
            return result
        finally:
            if current:
                current.hold(None)
                kept = kept and not current.ended
            if kept:
                self._idle.setdefault(origin, []).append(connection)
            else:
                connection.close()

    def _connect(self, origin: str, request: Request) -> http.client.HTTPConnection:
        idle = self._idle.get(origin)
        with contextlib.suppress(IndexError):  # another thread was faster
            if idle:
                return idle.pop()
        scheme, _, host = origin.partition("://")
        try:
            if scheme == "https":
                self.context = self.context or ssl.create_default_context()
                connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                    host, timeout=self.timeout, context=self.context)
            else:
                connection = http.client.HTTPConnection(host, timeout=self.timeout)
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailed(f"{request.name}: {error}", sent=False) from None
        return connection

    @staticmethod
    def _send(connection: http.client.HTTPConnection, target: str,
              request: Request) -> http.client.HTTPResponse:
        headers = dict(request.headers)
        body = None
        if request.body is not None:
            headers["Content-Length"] = str(request.body.length)
            body = past_connections(request.body.pieces())
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                # A body that is refused on its way has an answer nevertheless.
                connection.request(request.method, target, body=body, headers=headers)
            return connection.getresponse()
        except LocalFailure as failure:
            raise failure.error from None
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailed(f"{request.name}: {type(error).__name__}") from None


class LocalFailure(Exception):
    """Carries an error of what is sent past those who take it for the connection's."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


def past_connections(pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from pieces
    except OSError as error:
        raise LocalFailure(error) from error


def split(url: str) -> "tuple[str, str]":
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("an address is http:// or https://, a host, and no user name")
    return f"{parts.scheme}://{parts.netloc}", urllib.parse.urlunsplit(("", "", *parts[2:4], ""))


def refusal(answer: Answer) -> ApiError:
    """The Error record, as far as it came."""
    record: Dict[str, Any] = {}
    with contextlib.suppress(ConnectionFailed, ValueError):
        given = json.loads(answer.read(ERROR_BODY_MAX))
        record = given if isinstance(given, dict) else {}
    return api_error(answer.status, record, answer.headers, answer.reason)


def api_error(status: int, record: Mapping[str, Any], headers: Headers,
              reason: str = "") -> ApiError:
    """Returns the error of a refusal; headers: of the answer that it came in."""
    after = headers.get("Retry-After", "")
    code = str(record.get("code") or "")
    return class_of(status, code)(
        status, code, str(record.get("message") or reason or "refused"),
        request_id=headers.get("X-Request-Id"), incident_id=record.get("incident_id"),
        retry_after=int(after) if re.fullmatch("[0-9]{1,9}", after) else None,
        event_id=record.get("event_id"), doc_url=record.get("doc_url"))
