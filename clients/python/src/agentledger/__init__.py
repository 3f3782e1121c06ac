"""Client of agentledger, a transparency log service for AI agents.

Client blocks, AsyncClient is for asyncio; both sign events, send them, ask for decisions, and guard acts.
Package agentledger.verify verifies the documents of a log offline.

- An act runs only after its intent is accepted, and at most once for a key. After any failure it does not run.
- An event is only ever retried as the same bytes, so it is stored once.
- Nothing happens at import; there is no global state and no telemetry; no error contains a token or a key.
"""

from .aio import AsyncClient
from .answers import Approval, Decision, Stored
from .canonical import canonical_bytes, canonical_text
from .client import Client
from .errors import (
    ApprovalDenied,
    ApprovalRequired,
    Denied,
    FailedBefore,
    KeyReused,
    LedgerError,
    Malformed,
    NotAsked,
    NotDecided,
    NotWritten,
    OutcomeUnknown,
    Overflow,
    Refused,
    Unproved,
    Unreachable,
)
from .intents import Options, Permit
from .journal import Journal
from .settings import Retry
from .signer import Signed, Signer
from .strictjson import parse_exact

__version__ = "0.1.0"

__all__ = [
    "Approval",
    "ApprovalDenied",
    "ApprovalRequired",
    "AsyncClient",
    "Client",
    "Decision",
    "Denied",
    "FailedBefore",
    "Journal",
    "KeyReused",
    "LedgerError",
    "Malformed",
    "NotAsked",
    "NotDecided",
    "NotWritten",
    "Options",
    "OutcomeUnknown",
    "Overflow",
    "Permit",
    "Refused",
    "Retry",
    "Signed",
    "Signer",
    "Stored",
    "Unproved",
    "Unreachable",
    "canonical_bytes",
    "canonical_text",
    "parse_exact",
]
