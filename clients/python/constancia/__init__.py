"""A client of Constancia, which puts declarations on record and certifies them.

    with Client("https://constancia.example/v1", key) as client:
        event = client.register("order-1001", {"order": 1001, "total": "49.90"})
"""

from . import webhooks
from ._files import digest
from ._http import Retry
from ._version import VERSION as __version__
from .client import Client
from .errors import (ApiError, CertificationFailed, Conflict, ConnectionFailed, ConstanciaError,
                     DigestMismatch, Forbidden, InvalidRequest, InvalidSignature, NotFound,
                     PaymentRequired, ServerError, TooLarge, TooManyRequests, Unauthorized,
                     Unavailable, UnexpectedAnswer, WaitTimeout)
from .models import (Balance, Certification, CertificationRange, Channel, ChannelConfig, Content,
                     ContentPart, Document, Event, EventTimestamp, EventWithProof, FileCheck,
                     FileVerification, Page, Proof, ProofRound, ProofSegment, Report, Signer,
                     Verification)

__all__ = [
    "ApiError", "Balance", "Certification", "CertificationFailed", "CertificationRange", "Channel",
    "ChannelConfig", "Client", "Conflict", "ConnectionFailed", "ConstanciaError", "Content",
    "ContentPart", "DigestMismatch", "Document", "Event", "EventTimestamp", "EventWithProof",
    "FileCheck", "FileVerification", "Forbidden", "InvalidRequest", "InvalidSignature", "NotFound",
    "Page", "PaymentRequired", "Proof", "ProofRound", "ProofSegment", "Report", "Retry",
    "ServerError", "Signer", "TooLarge", "TooManyRequests", "Unauthorized", "Unavailable",
    "UnexpectedAnswer", "Verification", "WaitTimeout", "__version__", "digest", "webhooks",
]
