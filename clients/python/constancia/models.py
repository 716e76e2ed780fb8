"""What the service answers. Members that are not here yet are ignored, and words such as a `status`
are plain text, so that an older client understands a newer service."""

from __future__ import annotations

import dataclasses
import functools
import json
import typing
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Dict, Generic, List, Mapping, Optional, TypeVar

from .errors import UnexpectedAnswer

T = TypeVar("T")
OWN = {"replayed", "raw", "retry_after"}  # fields of this client, which no answer has


def decode(kind: Any, value: Any) -> Any:
    """JSON as one of the classes below, or of what they are made of."""
    try:
        return _decode(kind, value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        name = getattr(kind, "__name__", kind)
        raise UnexpectedAnswer(f"the answer is no {name}: {error!r}") from None


def _decode(kind: Any, value: Any) -> Any:
    origin = typing.get_origin(kind)
    if kind is Any or origin is dict or isinstance(kind, TypeVar):
        return value
    if origin is typing.Union:  # only Optional is used
        return None if value is None else _decode(typing.get_args(kind)[0], value)
    if origin is list:
        (item,) = typing.get_args(kind)
        return [_decode(item, one) for one in value]
    if kind is datetime:
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    if hasattr(kind, "__dataclass_fields__"):
        members = _members(kind)
        decoded = {name: _decode(members[name], given)
                   for name, given in ((_safe(key), given) for key, given in value.items())
                   if name in members}
        if issubclass(kind, Event):
            decoded["raw"] = value
        return kind(**decoded)
    if not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{kind.__name__} expected")
    return value


def _safe(name: str) -> str:
    return "from_" if name == "from" else name


@functools.lru_cache(maxsize=None)
def _members(kind: Any) -> Dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {one.name: hints[one.name] for one in dataclasses.fields(kind) if one.name not in OWN}


def utc(when: datetime) -> str:
    """Returns a time as the service writes it: RFC 3339 in UTC with microseconds."""
    if when.tzinfo is None or when.utcoffset() is None:
        raise ValueError("a time needs its offset from UTC: datetime.now(timezone.utc)")
    try:
        return when.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    except OverflowError:
        raise ValueError(f"{when} is not in the years 1 to 9999 of UTC") from None


def encode(value: Any) -> Any:
    """Returns a value of these classes as the JSON that the service would send."""
    if isinstance(value, datetime):
        return utc(value)
    if isinstance(value, (list, tuple)):
        return [encode(one) for one in value]
    if hasattr(value, "__dataclass_fields__"):
        return {"from" if one.name == "from_" else one.name: encode(getattr(value, one.name))
                for one in dataclasses.fields(value) if one.name not in OWN}
    return value


@dataclass(frozen=True)
class Page(Generic[T]):
    data: List[T]
    has_more: bool
    next_cursor: Optional[str]


# ---- events ----

@dataclass(frozen=True)
class EventTimestamp:
    type: str  # pending until sealed, then batch; simulated in test mode
    reference: Optional[str] = None
    sealed_at: Optional[datetime] = None


@dataclass(frozen=True)
class Event:
    """The receipt of a registration."""

    event_id: str
    channel_id: str
    client_ref: str
    sequence: int
    received_at: datetime
    hash: str
    modality: str
    chain_hash: str
    status: str  # registered, unpaid or test
    config_version: int
    mode: str  # live or test
    occurred_at: Optional[datetime] = None
    hash_alg: str = "sha-256"
    timestamp: Optional[EventTimestamp] = None
    replayed: bool = False  # it was registered before, and this is the original
    raw: Optional[Mapping[str, Any]] = field(default=None, repr=False, compare=False)  # as it came

    def to_json(self) -> str:
        """Returns the receipt as one line without its end, for `constancia verify --receipt`: as it
        was received, with members that this client does not know."""
        value = encode(self) if self.raw is None else self.raw
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class ProofSegment:
    segment_id: str
    first_sequence: int
    last_sequence: int
    seal_document: Dict[str, Any]
    root: str


@dataclass(frozen=True)
class ProofRound:
    root: str
    authority: str
    kind: str
    sealed_at: datetime
    token: str  # base64 of the RFC 3161 token in DER


@dataclass(frozen=True)
class Proof:
    """What leads from an event to trusted time; the last three once it is sealed."""

    previous_chain_hash: str
    config_hash: str
    segment: Optional[ProofSegment] = None
    path: Optional[List[List[str]]] = None
    round: Optional[ProofRound] = None


@dataclass(frozen=True)
class EventWithProof(Event):
    proof: Proof = None  # type: ignore[assignment]  # always there; Event's defaults go before it


@dataclass(frozen=True)
class Content:
    """Declared content as it is held."""

    body: bytes = field(repr=False)
    media_type: str
    file_name: Optional[str] = None


# ---- channel and account ----

@dataclass(frozen=True)
class ChannelConfig:
    version: int
    sealed_at: datetime
    modality: str
    declarant: str
    name: Optional[str] = None
    description: Optional[str] = None
    supplementary_info: Optional[str] = None


@dataclass(frozen=True)
class Channel:
    channel_id: str
    name: str
    mode_note: str
    current_config: ChannelConfig
    config_versions: List[ChannelConfig]
    #: Names the live chain in the log of segments; None: of a service before it had one.
    log_tag: Optional[str] = None

    @property
    def has_more_versions(self) -> bool:
        """Whether there are versions before these."""
        return bool(self.config_versions) and self.config_versions[0].version > 1


@dataclass(frozen=True)
class Balance:
    balance: int
    operational: bool
    unpaid_events: int


# ---- certifications; their links open for whoever has them, so that they are not shown ----

@dataclass(frozen=True)
class CertificationRange:
    from_: Optional[datetime] = None
    to: Optional[datetime] = None
    seq_from: Optional[int] = None
    seq_to: Optional[int] = None


@dataclass(frozen=True)
class Report:
    languages: List[str]
    url: str = field(repr=False)
    sha256: str


@dataclass(frozen=True)
class ContentPart:
    name: str
    url: str = field(repr=False)
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Certification:
    certification_id: str
    channel_id: str
    status: str  # processing, completed or failed
    requested_at: datetime
    range: CertificationRange
    mode: str
    progress: Optional[float] = None  # 0 to 1
    completed_at: Optional[datetime] = None
    event_count: Optional[int] = None
    config_versions_in_range: List[int] = field(default_factory=list)
    report_url: Optional[str] = field(default=None, repr=False)
    reports: List[Report] = field(default_factory=list)
    evidence_url: Optional[str] = field(default=None, repr=False)
    evidence_record_url: Optional[str] = None
    evidence_record_sha256: Optional[str] = None
    evidence_record_since: Optional[datetime] = None
    evidence_record_renew_at: Optional[datetime] = None
    verification_code: Optional[str] = None
    content_parts: List[ContentPart] = field(default_factory=list)
    replayed: bool = False  # it was requested before, and this is the original
    retry_after: Optional[int] = None  # seconds until the service would like to be asked again


# ---- what anybody may ask ----

@dataclass(frozen=True)
class Signer:
    certificates: str  # PEM
    development: bool
    issuer: str
    not_after: datetime
    not_before: datetime
    sha256: str
    subject: str
    used_from: datetime
    used_until: Optional[datetime] = None
    reason: Optional[str] = None


@dataclass(frozen=True)
class Document:
    name: str
    kind: str  # report, evidence or content_part
    bytes: int
    sha256: str
    language: Optional[str] = None


@dataclass(frozen=True)
class Verification:
    """A certification that the service issued, and the digests of its files."""

    certification_id: str
    verification_code: str
    mode: str
    status: str
    documents: List[Document]
    issued_at: Optional[datetime] = None
    event_count: Optional[int] = None
    first_sequence: Optional[int] = None
    last_sequence: Optional[int] = None


@dataclass(frozen=True)
class FileVerification:
    valid: bool
    could_not_check: bool
    trusted: bool
    findings: List[Dict[str, Any]]
    warnings: List[Dict[str, Any]]
    signers: List[Dict[str, Any]]
    authorities: List[Dict[str, Any]]
    files: Optional[List[Dict[str, Any]]] = None
    verdict: Optional[Dict[str, str]] = None
    as_of: Optional[datetime] = None
    checked: Optional[Dict[str, int]] = None
    evidence_records: Optional[List[Dict[str, Any]]] = None
    findings_version: Optional[int] = None
    histories: Optional[List[Dict[str, Any]]] = None
    longest_delay: Optional[Dict[str, Any]] = None
    logs: Optional[List[Dict[str, Any]]] = None
    signatures: Optional[List[Dict[str, Any]]] = None
    signer_list: Optional[Dict[str, Any]] = None
    trusted_list: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class FileCheck:
    verification: FileVerification
    issued: Optional[Verification] = None
