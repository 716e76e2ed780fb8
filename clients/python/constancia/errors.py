"""What can go wrong. No message holds a key, a secret or the signature of a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

if TYPE_CHECKING:
    from .models import Certification, Event


class ConstanciaError(Exception):
    """Every error of this package."""

    idempotency_key: Optional[str] = None  # of a `certify` that failed, to repeat it with


class ConnectionFailed(ConstanciaError):
    """No whole answer came: the service may or may not have done what was asked."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent  # False when not a byte of the request left


class UnexpectedAnswer(ConstanciaError):
    """Something answered that is not the service, or not one that this client understands."""


class DigestMismatch(ConstanciaError):
    """What came, or was recorded, is not what it should be."""

    def __init__(self, what: str, expected: str, found: str) -> None:
        super().__init__(f"{what}: the digest is {found}, not {expected}")
        self.expected = expected
        self.found = found


class LogNotValid(ConstanciaError):
    """The files of a log contradict each other, or the signature of its checkpoint is false."""


class InvalidSignature(ConstanciaError):
    """A notice that the service did not sign, or not lately."""


class CertificationFailed(ConstanciaError):
    """The certification could not be issued; the same range can be requested again."""

    def __init__(self, certification: "Certification") -> None:
        super().__init__(f"{certification.certification_id} failed")
        self.certification = certification


class WaitTimeout(ConstanciaError):
    """The certification is not issued yet; waiting for it can go on."""

    def __init__(self, certification: "Certification", seconds: float) -> None:
        super().__init__(f"{certification.certification_id} is not issued after {seconds:g} s")
        self.certification = certification


class ReceiptNotKept(ConstanciaError):
    """The service registered `events`, and their receipts could not be kept. Keep them yourself
    (`event.to_json()`), or repeat the call: it returns the same receipts."""

    def __init__(self, events: "List[Event]", cause: BaseException) -> None:
        names = ", ".join(event.event_id for event in events[:3]) + (", …" if len(events) > 3 else "")
        super().__init__(f"{names}: registered, but the receipt was not kept: {cause}")
        self.events = events

    @property
    def event(self) -> "Event":
        """The first of them, the only one unless a batch was registered."""
        return self.events[0]


class ApiError(ConstanciaError):
    """The service refused. `code` is for programs, `message` for people; new codes may appear, so
    that a program falls back on the class, which follows the HTTP status."""

    def __init__(self, status: int, code: str, message: str, *, request_id: Optional[str] = None,
                 incident_id: Optional[str] = None, retry_after: Optional[int] = None,
                 event_id: Optional[str] = None, doc_url: Optional[str] = None) -> None:
        marks = [f"{status} {code}".strip()]
        marks += [f"request {request_id}"] if request_id else []
        marks += [f"incident {incident_id}"] if incident_id else []
        super().__init__(f"{message} ({', '.join(marks)})")
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id  # names the request in the service's log
        self.incident_id = incident_id  # on 5xx: quote it to the operator
        self.retry_after = retry_after  # seconds
        self.event_id = event_id  # of the original, on a Conflict of a registration
        self.doc_url = doc_url


class InvalidRequest(ApiError):
    """400: the message names the field and the reason."""


class Unauthorized(ApiError):
    """401: no key, or none that is valid."""


class PaymentRequired(ApiError):
    """402: unpaid events, or too little balance."""


class Forbidden(ApiError):
    """403: the account or channel is suspended or disabled."""


class Suspended(Forbidden):
    """403 `suspended`: registrations and certifications are refused; reading goes on."""


class AccountDisabled(Forbidden):
    """403 `account_disabled`: every call is refused."""


class NotFound(ApiError):
    """404: not on this channel and chain; or a link that is expired."""


class Conflict(ApiError):
    """409: the same reference was used for something else. Nothing was overwritten."""


class TooLarge(ApiError):
    """413."""


class LimitBlocked(ApiError):
    """422 `limit_blocked`: a consumption limit refuses events until its next period, which begins
    after `retry_after` seconds where the service says so."""


class TooManyRequests(ApiError):
    """429, still after all retries or with more to wait than they may take."""


class ServerError(ApiError):
    """5xx."""


class Unavailable(ServerError):
    """503, still after all retries: nothing was acknowledged."""


_CLASSES = {400: InvalidRequest, 401: Unauthorized, 402: PaymentRequired, 403: Forbidden,
            404: NotFound, 409: Conflict, 413: TooLarge, 429: TooManyRequests, 503: Unavailable}


_CODES = {"limit_blocked": LimitBlocked, "suspended": Suspended, "account_disabled": AccountDisabled}


def class_of(status: int, code: str = "") -> type[ApiError]:
    """Returns the class of a refusal: by its code where it has one of its own, else by the status."""
    general = _CLASSES.get(status, ServerError if status >= 500 else ApiError)
    special = _CODES.get(code)
    return special if special and issubclass(special, general) else general
