"""A client of Constancia, which puts declarations on record and certifies them.

    with Client("https://constancia.example/v1", key) as client:
        event = client.register("order-1001", {"order": 1001, "total": "49.90"})
"""

from . import webhooks
from ._async import AsyncClient
from ._batches import Declaration, Outcome
from ._files import digest
from ._hooks import Hooks, RequestSent, ResponseReceived, RetryPlanned
from ._http import Retry
from ._receipts import ReceiptFile
from ._version import VERSION as __version__
from .client import Client
from .errors import (AccountDisabled, ApiError, CertificationFailed, Conflict, ConnectionFailed,
                     ConstanciaError, DigestMismatch, Forbidden, InvalidRequest, InvalidSignature,
                     LimitBlocked, LogNotValid, NotFound, PaymentRequired, ReceiptNotKept, ServerError, Suspended,
                     TooLarge, TooManyRequests, Unauthorized, Unavailable, UnexpectedAnswer,
                     WaitTimeout)
from .log_watch import LogFinding, LogWatch, watch_log
from .models import (Balance, Certification, CertificationRange, Channel, ChannelConfig, Content,
                     ContentPart, Document, Event, EventTimestamp, EventWithProof, FileCheck,
                     FileVerification, Page, Proof, ProofRound, ProofSegment, Report, Signer,
                     Verification)
from .verification import ArchiveCheck, Finding, ReceiptCheck, verify_archive

__all__ = [
    "AccountDisabled", "ApiError", "ArchiveCheck", "AsyncClient", "Balance", "Certification", "CertificationFailed",
    "CertificationRange", "Channel", "ChannelConfig", "Client", "Conflict", "ConnectionFailed",
    "ConstanciaError", "Content", "ContentPart", "Declaration", "DigestMismatch", "Document", "Event",
    "EventTimestamp", "EventWithProof", "FileCheck", "FileVerification", "Finding", "Forbidden", "Hooks",
    "InvalidRequest", "InvalidSignature", "LimitBlocked", "LogFinding",
    "LogNotValid", "LogWatch", "NotFound", "Outcome", "Page",
    "PaymentRequired", "Proof", "ProofRound", "ProofSegment", "ReceiptCheck", "ReceiptFile", "ReceiptNotKept", "Report",
    "RequestSent", "ResponseReceived", "Retry", "RetryPlanned", "ServerError", "Signer", "Suspended",
    "TooLarge", "TooManyRequests", "Unauthorized", "Unavailable", "UnexpectedAnswer", "Verification",
    "WaitTimeout", "__version__", "digest", "verify_archive", "watch_log", "webhooks",
]
