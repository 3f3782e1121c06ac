"""Tasks that send pending events: events that arrive while a request is in flight form the next batch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from . import _process as process
from ._batches import Batch, Done, log
from ._calls import Outcome
from ._delivery import FAULT_PAUSE, Delivery
from ._errors import NotAsked, Refused, Unreachable
from ._settings import Address
from ._signer import Signed, Unsigned
from ._wire import blocking
from ._wire.aio import Transport


class AsyncSender:
    """Sends the events of one client. Each request is a task. It belongs to one event loop at a time."""

    def __init__(self, delivery: Delivery, transport: Transport, address: Address) -> None:
        self._delivery = delivery
        self._outbox = delivery.outbox
        self._transport = transport
        self._address = address
        self._reset()
        process.watch(self)
        if len(self._outbox):
            self.hold()

    def _reset(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._settled: set[asyncio.Future[None]] = set()
        self._woken = False

    def _enter_loop(self) -> None:
        """Continue in the running event loop. The error is NotAsked while another one uses the client."""
        running = asyncio.get_running_loop()
        if self._loop is running:
            return
        if self._loop is not None and not self._loop.is_closed():
            raise NotAsked("the client is in use by another event loop: create one client for each")
        self._reset()
        self._outbox.recover()
        self._loop = running

    def after_fork(self) -> None:
        """Start anew in a forked child: the tasks are those of the parent's event loop."""
        self._reset()
        self._delivery.after_fork()
        self._transport.after_fork()

    def _finish(self, seconds: float) -> None:
        """Send for at most the given seconds what the event loop, which has ended, left behind."""
        end = time.monotonic() + seconds
        transport = blocking.Transport(self._address)
        self._outbox.recover()
        while len(self._outbox) and (left := end - time.monotonic()) > 0:
            self._delivery.hurry(left)
            batch = self._delivery.take()
            if batch is None:
                return
            try:
                transport.run(self._delivery.deliver(batch))
            finally:
                self._delivery.end(batch)
            if self._outbox.kept and not (batch.progress or batch.too_large):
                time.sleep(min(0.2, left))
        transport.close()

    def hold(self) -> None:
        """Send at the end of the process what is queued and not sent by then."""
        process.hold(self._outbox, self._finish)

    async def queue(self, events: Sequence[Signed], done: Done | None = None) -> None:
        """Put events into the queue and return. Errors are Overflow, NotWritten and NotAsked."""
        self._enter_loop()
        if self._outbox.has_file:
            await asyncio.to_thread(self._outbox.put, events, done)
        else:
            self._outbox.put(events, done)
        self.hold()
        self.wake()

    async def send(self, events: Sequence[Signed | Unsigned]) -> list[Outcome]:
        """Send events and wait for their outcomes, in order. Errors are Overflow and NotAsked."""
        self._enter_loop()
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Outcome]] = [loop.create_future() for _ in events]
        self._outbox.put_waited(events, [_Setter(future) for future in futures])
        self.wake()
        return [await future for future in futures]

    def wake(self) -> None:
        """Check for sendable events once the tasks that are ready now have queued theirs. The error is NotAsked."""
        self._enter_loop()
        if not self._woken and self._delivery.is_due():
            self._woken = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Start the requests that are due, and return at the next time at which one may be."""
        self._woken = False
        try:
            self._take_all()
            pause = self._delivery.pause
        except Exception as why:
            log.warning("the sender continues after a fault: %s", type(why).__name__)
            pause = FAULT_PAUSE
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if pause is None else asyncio.get_running_loop().call_later(pause, self._go_on)

    def _take_all(self) -> None:
        while (batch := self._delivery.take()) is not None:
            task = asyncio.create_task(self._deliver(batch), name="agentledger sender")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _deliver(self, batch: Batch) -> None:
        try:
            await self._transport.run(self._delivery.deliver(batch))
        except asyncio.CancelledError:  # close has waited enough, or the event loop ends
            self._end(batch)
            self._outbox.give_up()
            raise
        except Exception as why:
            log.warning("the sender continues after a fault: %s", type(why).__name__)
        self._end(batch)
        self._go_on()

    def _end(self, batch: Batch) -> None:
        try:
            self._delivery.end(batch)
        except Exception as why:
            log.warning("the sender continues after a fault: %s", type(why).__name__)
        for waiter in self._settled:
            if not waiter.done():
                waiter.set_result(None)

    async def flush(self, deadline: float) -> list[tuple[Signed, Refused]]:
        """Wait at most the given seconds until nothing is pending. See Sender.flush."""
        self._enter_loop()
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline
        while len(self._outbox):
            self._go_on()
            waiter: asyncio.Future[None] = loop.create_future()
            self._settled.add(waiter)
            try:
                await asyncio.wait_for(waiter, max(end - loop.time(), 0.001))
            except TimeoutError:
                raise Unreachable(f"{len(self._outbox)} events are still waiting") from None
            finally:
                self._settled.discard(waiter)
        return self._outbox.take_refused()

    async def close(self, deadline: float) -> list[tuple[Signed, Refused]]:
        """Flush, then stop. Errors are those of flush; the tasks end nevertheless."""
        try:
            return await self.flush(deadline)
        finally:
            process.release(self._outbox)
            self._delivery.close()
            if self._timer is not None:
                self._timer.cancel()
            await self._end_tasks()
            self._outbox.give_up()
            await asyncio.to_thread(self._outbox.close)

    async def _end_tasks(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Setter:
    """Sets the outcome of a future, unless its task was cancelled."""

    __slots__ = ("_future",)

    def __init__(self, future: asyncio.Future[Outcome]) -> None:
        self._future = future

    def __call__(self, outcome: Outcome) -> None:
        if not self._future.done():
            self._future.set_result(outcome)
