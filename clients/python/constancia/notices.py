"""What `data` of a notice has, by its `type`. Members that are not here yet stay in `Notice.data`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, List, Optional, Union


@dataclass(frozen=True)
class CertificationData:
    """`certification.completed`, `certification.failed`."""

    certification_id: str
    channel_id: str
    status: str  # completed or failed
    event_count: int
    verification_code: Optional[str] = None
    incident_id: Optional[str] = None


@dataclass(frozen=True)
class EvidenceReadyData:
    """`certification.evidence_ready`."""

    certification_id: str
    channel_id: str
    status: str  # completed
    event_count: int
    verification_code: str
    evidence_record_since: datetime


@dataclass(frozen=True)
class SealedSegment:
    """The events of one channel that a round sealed."""

    channel_id: str
    segment_id: str  # of the last event: a round may have several of a channel
    seq_from: int
    seq_to: int
    event_count: int


@dataclass(frozen=True)
class EventSealedData:
    """`event.sealed`."""

    sealed_at: datetime
    segments: List[SealedSegment]


@dataclass(frozen=True)
class BalanceLowData:
    """`balance.low`."""

    threshold_id: str
    threshold: int
    balance: int


@dataclass(frozen=True)
class BalanceExhaustedData:
    """`balance.exhausted`."""

    channel_id: str


@dataclass(frozen=True)
class UnpaidLimitData:
    """`events.unpaid_limit_reached`."""

    unpaid_limit: int
    unpaid_events: int
    unpaid_credits: int


@dataclass(frozen=True)
class ConsumptionLimitData:
    """`consumption.limit_reached`."""

    limit_id: str
    scope: str  # channel or key
    channel_id: str
    period: str  # day or month
    period_key: str
    max_events: int
    action: str  # warn or block
    key_id: Optional[str] = None


@dataclass(frozen=True)
class RechargeData:
    """`recharge.auto_completed`, `recharge.auto_failed`."""

    pack_id: str
    threshold: int
    recharge_id: Optional[str] = None
    credits: Optional[int] = None
    amount: Optional[str] = None
    currency: Optional[str] = None
    balance: Optional[int] = None
    reason: Optional[str] = None
    payment_url: Optional[str] = None
    auto_recharge_disabled: Optional[bool] = None


@dataclass(frozen=True)
class TestData:
    """`webhook.test`."""

    __test__ = False  # of pytest

    endpoint_id: str
    message: str


NoticeData = Union[CertificationData, EvidenceReadyData, EventSealedData, BalanceLowData, BalanceExhaustedData,
                   UnpaidLimitData, ConsumptionLimitData, RechargeData, TestData]

KINDS: Dict[str, Any] = {
    "certification.completed": CertificationData, "certification.failed": CertificationData,
    "certification.evidence_ready": EvidenceReadyData, "event.sealed": EventSealedData,
    "balance.low": BalanceLowData, "balance.exhausted": BalanceExhaustedData,
    "events.unpaid_limit_reached": UnpaidLimitData,
    "consumption.limit_reached": ConsumptionLimitData, "recharge.auto_completed": RechargeData,
    "recharge.auto_failed": RechargeData, "webhook.test": TestData,
}
