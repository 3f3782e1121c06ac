"""The client for asyncio. It belongs to one event loop at a time; its tasks share connections and batches."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from ._aioresources import AsyncApprovals, AsyncLog, AsyncRuns
from ._answers import Decision, Stored
from ._arguments import KeyOf
from ._asyncsender import AsyncSender
from ._core import Core, Guard, result_of
from ._errors import LedgerError, Refused, Unreachable, about
from ._guarding import Opened
from ._inputs import EventInput
from ._intents import Options, Permit
from ._signer import Signed
from ._wire.aio import Transport
from ._wire.effects import Operation

P = ParamSpec("P")
T = TypeVar("T")


class _Decorator(Protocol):
    """Makes coroutine functions of functions, and keeps their parameters."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[T]], /) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __call__(self, function: Callable[P, T], /) -> Callable[P, Coroutine[Any, Any, T]]: ...


class AsyncClient(Core):
    """Calls one service as one agent. It does not connect before the first call.

    Arguments that are None are read from APS_URL, APS_TOKEN, APS_ORG, APS_AGENT, APS_KEY_ID and APS_KEY_FILE or APS_KEY.
    """

    def _begin(self) -> None:
        self._transport = Transport(self.settings.address)
        self._sender = AsyncSender(self._delivery, self._transport, self.settings.address)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.approvals = AsyncApprovals(self)
        self.runs = AsyncRuns(self)

    async def __aenter__(self) -> AsyncClient:
        self._sender.wake()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, event: EventInput | Signed) -> Stored:
        """Store an event, and return when it is durable. Events of several tasks share requests.

        Errors are Malformed, Overflow, Refused and Unreachable. After Unreachable the event may be stored: send the
        same Signed again.
        """
        prepared = self._prepared(event)
        try:
            return result_of((await self._sender.send([prepared]))[0])
        except LedgerError as why:
            about(prepared.event_id, why)
            raise

    async def send_all(self, events: Iterable[EventInput | Signed]) -> list[Stored | Refused | Unreachable]:
        """Store events in order. Return an outcome for each: a refused event does not prevent others from being stored.

        Errors are Malformed, before anything is sent, and Overflow.
        """
        return await self._sender.send([self._signed(event) for event in events])

    async def queue(self, event: EventInput | Signed) -> Signed:
        """Queue an event, which is sent in the background.

        Errors are Malformed, Overflow, and NotWritten if the queue's file cannot be written.
        """
        signed = self._signed(event)
        try:
            await self._sender.queue([signed])
        except LedgerError as why:
            about(signed.event_id, why)
            raise
        return signed

    async def flush(self, deadline: float = 30.0) -> list[tuple[Signed, Refused]]:
        """Wait at most the given seconds until the queue is empty. Return the events that the service refused finally.

        At most the last max_queued of those are kept. The error is Unreachable if the time expires; the events that are
        pending then stay in the queue.
        """
        return await self._sender.flush(deadline)

    async def close(self, deadline: float = 30.0) -> list[tuple[Signed, Refused]]:
        """Flush and stop. Errors are those of flush; everything is closed nevertheless."""
        try:
            return await self._sender.close(deadline)
        finally:
            self._journal.close()
            await self._transport.close()

    async def evaluate(
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
        return await self._transport.run(question)

    @overload
    async def act(
        self,
        tool: str,
        payload: Mapping[str, Any],
        do: Callable[[Permit], Awaitable[T]],
        *,
        key: str | None = None,
        trace: str | None = None,
        options: Options = Options(),
    ) -> T: ...

    @overload
    async def act(
        self,
        tool: str,
        payload: Mapping[str, Any],
        do: Callable[[Permit], T],
        *,
        key: str | None = None,
        trace: str | None = None,
        options: Options = Options(),
    ) -> T: ...

    async def act(
        self,
        tool: str,
        payload: Mapping[str, Any],
        do: Callable[[Permit], object],
        *,
        key: str | None = None,
        trace: str | None = None,
        options: Options = Options(),
    ) -> object:
        """Run a guarded act: it runs only if it is allowed, and at most once for a key. Return the result of do.

        If it was done before, the result has the form that it has in JSON.
        Errors are those of do, and Denied, ApprovalRequired, ApprovalDenied, NotDecided, OutcomeUnknown,
        FailedBefore, KeyReused, Malformed.
        """
        self._loop = asyncio.get_running_loop()
        return await self._transport.run(self._guarding.run(tool, payload, do, self._options(options), key, trace))

    async def open_act(
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
        self._loop = asyncio.get_running_loop()
        return await self._transport.run(self._guarding.open(tool, payload, self._options(options), key, trace))

    async def close_act(self, opened: Opened, output: Any = None, failed: bool = False) -> None:
        """Record how an opened act ended, and state its result."""
        self._loop = asyncio.get_running_loop()
        await self._transport.run(self._guarding.close(opened, output, failed))

    def guard(
        self, tool: str, *, key: KeyOf | None = None, trace: str | None = None, options: Options = Options()
    ) -> _Decorator:
        """Decorate a function: each call is a guarded act whose payload is the arguments by name.

        The result is a coroutine function.
        """
        guard = Guard(tool, key, trace, options)

        def decorate(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
            @functools.wraps(function)
            async def guarded(*args: Any, **kwargs: Any) -> Any:
                bound = guard.bind(function, args, kwargs)
                name = guard.name(bound)
                return await self.act(tool, bound.payload, bound.call, key=name, trace=trace, options=options)

            return guarded

        return decorate

    async def resume(self) -> int:
        """After a restart: send the results that the service lacks, and state interrupted acts as unknown."""
        self._loop = asyncio.get_running_loop()
        return await asyncio.to_thread(self._guarding.resume)

    def log(self, slug: str, key: str) -> AsyncLog:
        """Return the public log of an organization under its pinned verifier key. Errors are NotAsked."""
        return AsyncLog(self, slug, key)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation of this package, for calls without a method here."""
        return await self._transport.run(operation)

    def _queue_result(self, event: Signed, on_stored: Callable[[], None]) -> None:
        """Queue a result. It is called in a thread other than the event loop's, because it waits for the disk."""
        assert self._loop is not None
        self._delivery.outbox.put([event], lambda outcome: on_stored())
        self._sender.hold()
        self._loop.call_soon_threadsafe(self._sender.wake)
