"""The blocking client. It is thread-safe, and its threads share connections and batches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from ._answers import Decision, Stored
from ._arguments import KeyOf
from ._core import Core, Guard, result_of
from ._errors import LedgerError, Refused, Unreachable, about
from ._guarding import Opened
from ._inputs import EventInput
from ._intents import Options, Permit
from ._resources import Approvals, Log, Runs
from ._sender import Sender
from ._signer import Signed
from ._wire.blocking import Transport
from ._wire.effects import Operation

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Client(Core):
    """Calls one service as one agent. It does not connect before the first call.

    Arguments that are None are read from APS_URL, APS_TOKEN, APS_ORG, APS_AGENT, APS_KEY_ID and APS_KEY_FILE or APS_KEY.
    """

    def _begin(self) -> None:
        self._transport = Transport(self.settings.address)
        self._sender = Sender(self._delivery, self._transport)
        self.approvals = Approvals(self)
        self.runs = Runs(self)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, event: EventInput | Signed) -> Stored:
        """Store an event, and return when it is durable. Events of several threads share requests.

        Errors are Malformed, Overflow, Refused and Unreachable. After Unreachable the event may be stored: send the
        same Signed again.
        """
        prepared = self._prepared(event)
        try:
            return result_of((self._sender.send([prepared]))[0])
        except LedgerError as why:
            about(prepared.event_id, why)
            raise

    def send_all(self, events: Iterable[EventInput | Signed]) -> list[Stored | Refused | Unreachable]:
        """Store events in order. Return an outcome for each: a refused event does not prevent others from being stored.

        Errors are Malformed, before anything is sent, and Overflow.
        """
        return self._sender.send([self._signed(event) for event in events])

    def queue(self, event: EventInput | Signed) -> Signed:
        """Queue an event, which is sent in the background.

        Errors are Malformed, Overflow, and NotWritten if the queue's file cannot be written.
        """
        signed = self._signed(event)
        try:
            self._sender.queue([signed])
        except LedgerError as why:
            about(signed.event_id, why)
            raise
        return signed

    def flush(self, deadline: float = 30.0) -> list[tuple[Signed, Refused]]:
        """Wait at most the given seconds until the queue is empty. Return the events that the service refused finally.

        At most the last max_queued of those are kept. The error is Unreachable if the time expires; the events that are
        pending then stay in the queue.
        """
        return self._sender.flush(deadline)

    def close(self, deadline: float = 30.0) -> list[tuple[Signed, Refused]]:
        """Flush and stop. Errors are those of flush; everything is closed nevertheless."""
        try:
            return self._sender.close(deadline)
        finally:
            self._journal.close()
            self._transport.close()

    def evaluate(
        self,
        tool: str,
        payload: Mapping[str, Any] | None = None,
        *,
        actor_type: str | None = None,
        action_kind: str | None = None,
        request_approval: bool = False,
        on_behalf_of: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Ask the policy without doing or storing anything. request_approval requests the approval that it requires.

        on_behalf_of is for whom the agent would act (issuer, subject and actors), which the client's subject_token proves.
        """
        question = self._evaluate(tool, payload, actor_type, action_kind, request_approval, on_behalf_of)
        return self._transport.run(question)

    def act(
        self,
        tool: str,
        payload: Mapping[str, Any],
        do: Callable[[Permit], T],
        *,
        key: str | None = None,
        trace: str | None = None,
        options: Options = Options(),
    ) -> T:
        """Run a guarded act: it runs only if it is allowed, and at most once for a key. Return the result of do.

        If it was done before, the result has the form that it has in JSON.
        Errors are those of do, and Denied, ApprovalRequired, ApprovalDenied, NotDecided, OutcomeUnknown,
        FailedBefore, KeyReused, Malformed.
        """
        output: T = self._transport.run(self._guarding.run(tool, payload, do, self._options(options), key, trace))
        return output

    def open_act(
        self,
        tool: str,
        payload: Mapping[str, Any],
        *,
        key: str | None = None,
        trace: str | None = None,
        options: Options = Options(),
    ) -> Opened:
        """Obtain permission for an act that other code runs, for frameworks with hooks before and after a call.

        Run the act only if the result has a permit, and then call close_act. Errors are those of act.
        """
        return self._transport.run(self._guarding.open(tool, payload, self._options(options), key, trace))

    def close_act(self, opened: Opened, output: Any = None, failed: bool = False) -> None:
        """Record how an opened act ended, and state its result."""
        self._transport.run(self._guarding.close(opened, output, failed))

    def guard(
        self, tool: str, *, key: KeyOf | None = None, trace: str | None = None, options: Options = Options()
    ) -> Callable[[F], F]:
        """Decorate a function: each call is a guarded act whose payload is the arguments by name."""
        guard = Guard(tool, key, trace, options)

        def decorate(function: F) -> F:
            @functools.wraps(function)
            def guarded(*args: Any, **kwargs: Any) -> Any:
                bound = guard.bind(function, args, kwargs)
                name = guard.name(bound)
                return self.act(tool, bound.payload, bound.call, key=name, trace=trace, options=options)

            return guarded  # type: ignore[return-value]

        return decorate

    def resume(self) -> int:
        """After a restart: send the results that the service lacks, and state interrupted acts as unknown."""
        return self._guarding.resume()

    def log(self, slug: str, key: str) -> Log:
        """Return the public log of an organization under its pinned verifier key. Errors are NotAsked."""
        return Log(self, slug, key)

    def run(self, operation: Operation[T]) -> T:
        """Run an operation of this package, for calls without a method here."""
        return self._transport.run(operation)

    def _queue_result(self, event: Signed, on_stored: Callable[[], None]) -> None:
        self._sender.queue([event], lambda outcome: on_stored())
