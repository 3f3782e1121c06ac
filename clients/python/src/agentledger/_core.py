"""Code shared by Client and AsyncClient: their settings, and calls as operations that neither has run yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import _calls as calls
from ._answers import Decision, Stored
from ._arguments import Bound, KeyOf
from ._canonical import Convert
from ._calls import Outcome
from ._delivery import Delivery
from ._guarding import Guarding
from ._inputs import EventInput, given
from ._intents import Options
from ._journal import Journal
from ._outbox import MAX_QUEUED, Outbox
from ._queuefile import QueueFile
from ._settings import Retry, read_settings
from ._signer import Signed, Unsigned
from ._wire.effects import Operation


class Core:
    """The part of a client that neither waits nor connects."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        org: str | None = None,
        agent: str | None = None,
        key_id: str | None = None,
        key: str | bytes | None = None,
        *,
        timeout: float = 30.0,
        retry: Retry = Retry(),
        convert: Convert | None = None,
        queue_file: str | os.PathLike[str] | None = None,
        max_queued: int = MAX_QUEUED,
        journal: Journal | None = None,
        subject_token: Callable[[], str | None] | None = None,
    ) -> None:
        """key is the Ed25519 seed in base64 or its 32 bytes. timeout limits one try of a request, in seconds.

        With queue_file, queued events survive a crash; max_queued limits the queue. journal is the journal of guarded
        acts: without one they are remembered in memory. subject_token returns the token by which the service verifies
        on_behalf_of of events: a JWT of at most 8 KiB whose issuer is that of the ingest key. It is called for each
        request with events, possibly in another thread, and proves those of its subject. If it raises, the events are
        sent later. Errors are NotAsked.
        """
        self.settings = read_settings(
            url,
            token,
            org,
            agent,
            key_id,
            key,
            timeout=timeout,
            retry=retry,
            convert=convert,
            subject_token=subject_token,
        )
        self.convert = convert
        file = QueueFile(queue_file) if queue_file is not None else None
        self._delivery = Delivery(self.settings, Outbox(max_queued, file))
        self._journal = journal or Journal()
        self._guarding = Guarding(self.settings, self._journal, self._queue_result)
        self._begin()

    def _begin(self) -> None:
        """Make what waits and connects. The last step of the constructor."""
        raise NotImplementedError

    def _queue_result(self, event: Signed, on_stored: Callable[[], None]) -> None:
        """Queue a result of an act; on_stored is called once the service has stored it. It may wait for the disk."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.address.authority})"

    @property
    def pending(self) -> int:
        """The number of queued events that are neither stored nor refused yet."""
        return self._delivery.outbox.kept

    def sign(self, event: EventInput) -> Signed:
        """Complete and sign an event. Errors are Malformed with the place of the value, and NotAsked without a key."""
        return self.settings.require_signer().sign(event)

    def _signed(self, event: EventInput | Signed) -> Signed:
        return event if isinstance(event, Signed) else self.sign(event)

    def _prepared(self, event: EventInput | Signed) -> Signed | Unsigned:
        """Return an event that the sender signs, because a thread that signs many in a row is faster."""
        return event if isinstance(event, Signed) else self.settings.require_signer().prepare(event)

    def _evaluate(
        self,
        tool: str,
        payload: Mapping[str, Any] | None,
        actor_type: str | None,
        action_kind: str | None,
        request_approval: bool,
        on_behalf_of: Mapping[str, Any] | None,
    ) -> Operation[Decision]:
        subject = None if on_behalf_of is None else dict(on_behalf_of)
        more = given(
            actor_type=actor_type, action_kind=action_kind, request_approval=request_approval or None, on_behalf_of=subject
        )
        return calls.evaluate(self.settings, tool, payload or {}, more, self.convert)

    def _options(self, options: Options) -> Options:
        return options if options.convert or not self.convert else replace(options, convert=self.convert)


def result_of(outcome: Outcome) -> Stored:
    """Return the answer for an event, or raise the error."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@dataclass(frozen=True)
class Guard:
    """How calls of one function are guarded."""

    tool: str
    key: KeyOf | None
    trace: str | None
    options: Options

    def bind(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
        """Return one call of the function. Errors are TypeError, as for a call."""
        return Bound(function, args, kwargs)

    def name(self, bound: Bound) -> str | None:
        """Return the key of a call, or None."""
        return None if self.key is None else self.key(bound.payload)
