"""A task that sends what waits: while one request is out events gather, and they go as the next batch."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

from .calls import Outcome, send_batch
from .errors import LedgerError, NotAsked, Refused, Unreachable
from .outbox import Outbox
from .sender import LONGEST_PAUSE
from .settings import Settings
from .signer import Signed
from .wire.aio import Transport


class AsyncSender:
    """Sends the events of one client, one request at a time."""

    def __init__(self, settings: Settings, transport: Transport, outbox: Outbox) -> None:
        self._settings = settings
        self._transport = transport
        self._outbox = outbox
        self._change = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def queue(self, events: Sequence[Signed], done: Callable[[Outcome], None] | None = None) -> None:
        """Put events into the queue and return. Errors are Overflow and those of the queue's file."""
        async with self._change:
            self._check_open()
            if self._outbox.has_file:
                await asyncio.to_thread(self._outbox.put, events, done)
            else:
                self._outbox.put(events, done)
            self._start()

    async def send(self, events: Sequence[Signed]) -> list[Outcome]:
        """Send events and wait for their outcomes, in their order. Errors are Overflow."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Outcome]] = [loop.create_future() for _ in events]
        async with self._change:
            self._check_open()
            self._outbox.check_room(len(events))
            for event, future in zip(events, futures, strict=True):
                self._outbox.put_waited(event, _setter(future))
            self._start()
        return list(await asyncio.gather(*futures))

    async def start(self) -> None:
        """Begin to send what a queue's file holds from before."""
        async with self._change:
            if len(self._outbox):
                self._start()

    def _check_open(self) -> None:
        if self._closed:
            raise NotAsked("the client is closed")

    def _start(self) -> None:
        self._change.notify_all()
        if self._task is None:
            self._task = asyncio.create_task(self._loop(), name="agentledger sender")

    async def _loop(self) -> None:
        failures = 0
        while True:
            async with self._change:
                await self._change.wait_for(lambda: self._outbox.ready or self._closed)
                if self._closed and (failures or not self._outbox.ready):
                    self._outbox.give_up()
                    return
                batch = [item.event for item in self._outbox.take()]
            outcomes = await self._send(batch)
            async with self._change:
                again = await self._settle(outcomes)
                self._change.notify_all()
                failures = failures + 1 if again else 0
                if again and not self._closed:
                    await self._pause(min(LONGEST_PAUSE, 2.0 ** min(failures, 10) / 2))

    async def _settle(self, outcomes: Sequence[Outcome]) -> bool:
        if self._outbox.settles_on_disk:
            return await asyncio.to_thread(self._outbox.settle, outcomes)
        return self._outbox.settle(outcomes)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._change.wait_for(lambda: self._closed), seconds)
        except TimeoutError:
            return

    async def _send(self, batch: list[Signed]) -> list[Outcome]:
        try:
            return await self._transport.run(send_batch(self._settings, batch, self._settings.retry))
        except (Refused, Unreachable) as why:
            return [why] * len(batch)
        except Exception as why:  # the sender must outlive a fault, because callers wait for it
            said = str(why) if isinstance(why, LedgerError) else type(why).__name__
            return [Unreachable(said)] * len(batch)

    async def flush(self, deadline: float) -> list[tuple[Signed, Refused]]:
        """Wait until nothing waits, at most so many seconds. See Sender.flush."""
        end = time.monotonic() + deadline
        async with self._change:
            while len(self._outbox):
                left = end - time.monotonic()
                try:
                    await asyncio.wait_for(self._change.wait(), max(left, 0.001))
                except TimeoutError:
                    raise Unreachable(f"{len(self._outbox)} events are still waiting") from None
            return self._outbox.take_refused()

    async def close(self, deadline: float) -> list[tuple[Signed, Refused]]:
        """Flush, then stop. Errors are those of flush; the task ends also then."""
        try:
            return await self.flush(deadline)
        finally:
            async with self._change:
                self._closed = True
                self._change.notify_all()
            if self._task is not None:
                await self._end_task(self._task)
            self._outbox.close()

    async def _end_task(self, task: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait_for(task, 1.0)
        except TimeoutError:  # it was in a request, and wait_for has cancelled it
            self._outbox.give_up()


def _setter(future: asyncio.Future[Outcome]) -> Callable[[Outcome], None]:
    loop, owner = future.get_loop(), threading.get_ident()

    def set_result(outcome: Outcome) -> None:
        if not future.done():
            future.set_result(outcome)

    def set_anywhere(outcome: Outcome) -> None:
        """Set the result from the loop's own thread, or from one that waited for a disk."""
        if threading.get_ident() == owner:
            set_result(outcome)
        else:
            loop.call_soon_threadsafe(set_result, outcome)

    return set_anywhere
