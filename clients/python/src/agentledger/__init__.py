"""Client of agentledger, a transparency log service for AI agents.

Client blocks, AsyncClient is for asyncio; both sign events, send them, ask for decisions, and guard acts.
Package agentledger.verify verifies the documents of a log offline.

- An act runs only after its intent is accepted, and at most once for a key. After any failure it does not run.
- An event is only ever retried as the same bytes, so it is stored once.
- Nothing happens at import; there is no global state and no telemetry; no error contains a token or a key.
"""

from ._aio import AsyncClient
from ._answers import Approval, Decision, Stored
from ._canonical import canonical_bytes, canonical_text
from ._client import Client
from ._errors import (
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
from ._guarding import Opened
from ._inputs import Event, EventInput, StepInput, Workflow
from ._intents import Options, Permit
from ._journal import Journal
from ._publiclog import Followed, Head
from ._runs import Run, Step
from ._settings import Retry
from ._signer import Signed, Signer
from ._strictjson import parse_exact

__version__ = "0.1.0"

__all__ = [
    "Approval",
    "ApprovalDenied",
    "ApprovalRequired",
    "AsyncClient",
    "Client",
    "Decision",
    "Denied",
    "Event",
    "EventInput",
    "FailedBefore",
    "Followed",
    "Head",
    "Journal",
    "KeyReused",
    "LedgerError",
    "Malformed",
    "NotAsked",
    "NotDecided",
    "NotWritten",
    "Opened",
    "Options",
    "OutcomeUnknown",
    "Overflow",
    "Permit",
    "Refused",
    "Retry",
    "Run",
    "Signed",
    "Signer",
    "Step",
    "StepInput",
    "Stored",
    "Unproved",
    "Unreachable",
    "Workflow",
    "canonical_bytes",
    "canonical_text",
    "parse_exact",
]
