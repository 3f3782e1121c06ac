"""The errors of this package. All have one base, LedgerError, and none contains a token or a private key."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ._answers import Approval, Decision


class LedgerError(Exception):
    """Base of all errors of this package. event_id names the event that the error is about, if there is one."""

    event_id: str | None = None


class Malformed(LedgerError, ValueError):
    """A value was rejected before anything was signed or sent.

    path is the place as a JSON pointer, "" for the whole value.
    """

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.why = why
        self.path = path


class Refused(LedgerError):
    """The service answered with a status other than 2xx.

    status is the HTTP status, code the service's code for programs, and retry_after the seconds to wait as requested
    by the service; None if there is none. proved means that the answer is provably the service's, not a proxy's: its
    body has the form of the service's errors, and it has the request ID.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        proved: bool = False,
    ) -> None:
        text = f"{status} {message}" + (f" [{code}]" if code else "")
        super().__init__(text + (f" (request {request_id})" if request_id else ""))
        self.status = status
        self.message = message
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.proved = proved

    @property
    def final(self) -> bool:
        """Whether the service will never accept the event that it refused. Otherwise the event was not delivered."""
        mismatch = self.status == 403 and self.message.startswith("Organization mismatch")
        return self.proved and (self.status in (413, 422) or mismatch)


class Unreachable(LedgerError):
    """There is no usable answer: the connection failed or timed out, or the answer is malformed."""


class Overflow(LedgerError):
    """The queue of events is full. The given event is not in it."""


class NotWritten(LedgerError, OSError):
    """A file of the client cannot be written, for example because the disk is full. The given event is not in it."""

    def __init__(self, what: str, why: OSError, advice: str) -> None:
        super().__init__(f"{what} can't be written: {why.strerror or type(why).__name__}. {advice}")
        self.errno = why.errno


class NotDecided(LedgerError):
    """There is no decision, so the act was not done. The same call with the same key can safely be repeated."""

    def __str__(self) -> str:
        return super().__str__() + ". The act was not done: the same call is safe to repeat"


class Denied(LedgerError):
    """The policy or the ledger denies the act. The act was not done."""

    def __init__(self, reason: str, decision: Decision | None = None) -> None:
        super().__init__("the act is not allowed: " + reason)
        self.reason = reason
        self.decision = decision


class ApprovalRequired(LedgerError):
    """The act needs approval, and the caller did not want to wait for it (any longer)."""

    def __init__(self, approval: Approval) -> None:
        super().__init__(f"approval {approval.approval_id} is {approval.status}")
        self.approval = approval


class ApprovalDenied(Denied):
    """The act was not approved, or the approval ended in another way. comment and code are the approvers', or None."""

    def __init__(self, approval: Approval, decision: Decision | None = None) -> None:
        reason = f"the approval is {approval.status}"
        reason += f" [{approval.reason_code}]" if approval.reason_code else ""
        reason += f": {approval.comment}" if approval.comment else ""
        super().__init__(one_line(reason), decision)
        self.approval = approval
        self.comment = approval.comment
        self.code = approval.reason_code


class OutcomeUnknown(LedgerError):
    """The act began before, and its end is unknown. It is not repeated."""


class FailedBefore(LedgerError):
    """The act with this key ran before and failed. It is not repeated."""


class KeyReused(LedgerError, ValueError):
    """A key of the journal was used for another tool or other arguments."""


class Unproved(LedgerError):
    """Data of a log does not prove what it claims. It may be evidence: keep it."""


class NotAsked(LedgerError, ValueError):
    """A setting is missing or malformed, so no request was made."""


E = TypeVar("E", bound=LedgerError)


def about(event_id: str | None, why: E) -> E:
    """Return an error after setting its event, unless it has one."""
    if why.event_id is None:
        why.event_id = event_id
    return why


def one_line(text: str) -> str:
    """Return a foreign text without control characters, at most 512 characters, safe to print."""
    return "".join(c if c.isprintable() else "?" for c in text[:512])
