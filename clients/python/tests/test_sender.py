"""Unexpected faults while events are taken, sent and settled: no caller waits forever."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import harness  # noqa: F401  (the path of the package)
from fakeservice import ORG, TOKEN, FakeService, Reply, Script, accept

from agentledger import AsyncClient, Client, LedgerError, Retry, Unreachable
from agentledger._batches import Batch
from agentledger._delivery import MAX_HOLD, Delivery
from agentledger._outbox import Outbox
from agentledger._sender import STILL
from agentledger._signer import Unsigned
from agentledger._wire import aio, blocking
from agentledger._wire.effects import Answer

FAST = Retry(attempts=2, base=0.001, most=0.002)


class Killed(BaseException):
    """A fault that is not an Exception, so it ends a thread."""


PLACES: tuple[tuple[Any, str], ...] = (
    (Outbox, "take"),
    (Outbox, "record"),
    (Batch, "signed"),
    (Batch, "settle"),
    (Batch, "undecided"),
    (Batch, "abandon"),
    (Unsigned, "sign"),
    (blocking.Transport, "fetch"),
    (blocking.Transport, "run"),
)
FAULTS = (MemoryError(), ValueError("x"), Killed())


def failing(owner: Any, name: str, fault: BaseException, times: int = 1) -> Any:
    """Make a method's first calls fail before they do anything."""
    real: Callable[..., Any] = getattr(owner, name)
    faults = [fault] * times

    def fail(*args: Any, **more: Any) -> Any:
        if faults:
            raise faults.pop()
        return real(*args, **more)

    return mock.patch.object(owner, name, fail)


def event(n: int) -> dict[str, Any]:
    return {"action_kind": "tool_call", "payload": {"n": n}}


class Faults(unittest.TestCase):
    def setUp(self) -> None:
        self.service = FakeService(accept)
        self.addCleanup(self.service.close)
        self.addCleanup(logging.disable, logging.NOTSET)
        logging.disable(logging.CRITICAL)
        hook, threading.excepthook = threading.excepthook, lambda args: None
        self.addCleanup(setattr, threading, "excepthook", hook)

    def test_the_sender_of_threads(self) -> None:
        for owner, name in PLACES:
            for fault in FAULTS:
                with self.subTest(place=name, fault=type(fault).__name__):
                    self.attempt(owner, name, fault)

    def attempt(self, owner: Any, name: str, fault: BaseException) -> None:
        """Send, queue and flush with one fault, and once more without any."""
        c = Client(**self.service.settings(), retry=FAST, timeout=5.0)
        told: list[object] = []

        def send(number: int) -> None:
            try:
                told.append(c.send(event(number)))
            except LedgerError as why:
                told.append(why)

        with failing(owner, name, fault):
            senders = [threading.Thread(target=send, args=(n,), daemon=True) for n in range(3)]
            for sender in senders:
                sender.start()
            for sender in senders:
                sender.join(20)
        self.assertEqual(3, len(told), "a caller still waits")
        signed = c.sign(event(3))
        with failing(owner, name, fault):
            c.queue(signed)
            c.flush(5)
        self.assertEqual("created", c.send(event(4)).status)
        c.close(5)

    def test_the_sender_of_tasks(self) -> None:
        for owner, name in PLACES[:-2]:
            with self.subTest(place=name):
                asyncio.run(self.attempt_async(owner, name, FAULTS[0]))
        for name in ("fetch", "run"):
            with self.subTest(place=name):
                asyncio.run(self.attempt_async(aio.Transport, name, FAULTS[0]))

    async def attempt_async(self, owner: Any, name: str, fault: BaseException) -> None:
        async with AsyncClient(**self.service.settings(), retry=FAST, timeout=5.0) as c:
            with failing(owner, name, fault):
                calls = (c.send(event(n)) for n in range(3))
                told = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 20)
            for outcome in told:
                self.assertTrue(not isinstance(outcome, Exception) or isinstance(outcome, LedgerError), outcome)
            signed = c.sign(event(3))
            with failing(owner, name, fault):
                await c.queue(signed)
                await c.flush(5)
            self.assertEqual("created", (await c.send(event(4))).status)

    def test_queued_events_arrive_in_their_order_after_a_fault(self) -> None:
        for owner, name in PLACES:
            self.service.requests.clear()
            with self.subTest(place=name), Client(**self.service.settings(), retry=FAST) as c:
                events = [c.sign(event(n)) for n in range(20)]
                with failing(owner, name, Killed()):
                    names = [c.queue(signed).event_id for signed in events]
                    c.flush(20)
                sent = b"".join(body for _, _, body, _ in self.service.requests)
                places = [sent.index(n.encode()) for n in names]
                self.assertEqual(sorted(places), places)

    def test_without_threads_a_caller_gets_an_error(self) -> None:
        with Client(**self.service.settings(), retry=FAST) as c:
            with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
                with self.assertRaisesRegex(Unreachable, "can't start new thread"):
                    c.send(event(0))
            self.assertEqual("created", c.send(event(1)).status)

    def test_a_sender_that_cannot_be_replaced_fails_its_waiters(self) -> None:
        with Client(**self.service.settings(), retry=FAST) as c:
            c.send(event(0))
            real = threading.Thread.start

            def only_own(thread: threading.Thread) -> None:
                if thread.name == "agentledger sender":
                    raise RuntimeError("can't start new thread")
                real(thread)

            with mock.patch.object(threading.Thread, "start", only_own), failing(Outbox, "take", Killed(), 2):
                with self.assertRaises(Unreachable):
                    c.send(event(1))
            self.assertEqual("created", c.send(event(2)).status)


class Gathering(unittest.TestCase):
    """Before a request the sender lets the last one's callers add their next events, and waits for no time to pass."""

    def rest(self, told: int, waiting: int, put: int) -> tuple[int, int]:
        """Gather with that many waiting events; each rest adds one more, at most put. Return rests and events."""
        service = FakeService(accept)
        self.addCleanup(service.close)
        client = Client(**service.settings())
        s, rests = client._sender, 0
        s._told = told

        def add(count: int) -> None:
            s._outbox.put_waited([client.sign(event(n)) for n in range(count)], [lambda outcome: None] * count)

        def rest(seconds: float) -> None:
            nonlocal rests
            self.assertEqual((0, False), (seconds, s._lock.locked()))
            rests += 1
            if rests <= put:
                add(1)

        add(waiting)
        with mock.patch("agentledger._sender.time.sleep", rest), s._lock:
            s._gather()
        client._delivery.close()
        return rests, s._outbox.waiting

    def test_it_ends_with_as_many_events_or_when_no_more_come(self) -> None:
        for told, waiting, put, want in (
            (0, 1, 0, (0, 1)),
            (1, 1, 0, (0, 1)),
            (5, 1, 9, (4, 5)),
            (64, 1, 0, (STILL, 1)),
            (64, 2, 3, (3 + STILL, 5)),
        ):
            with self.subTest(told=told, waiting=waiting, put=put):
                self.assertEqual(want, self.rest(told, waiting, put))


class Holding(unittest.TestCase):
    """What is not answered, or never accepted, holds back only its own traces."""

    def setUp(self) -> None:
        self.addCleanup(logging.disable, logging.NOTSET)
        logging.disable(logging.CRITICAL)

    def service(self, script: Any) -> FakeService:
        service = FakeService(script)
        self.addCleanup(service.close)
        return service

    def hanging(self) -> tuple[FakeService, threading.Event, threading.Semaphore]:
        """Return a service that holds the requests with event 0 or 1, when to release them, and how many arrived."""
        release, arrived = threading.Event(), threading.Semaphore(0)
        self.addCleanup(release.set)

        def hold(method: str, path: str, body: bytes) -> Reply:
            if {0, 1} & set(numbers(body)):
                arrived.release()
                release.wait(60)
            return accept(method, path, body)

        return self.service(hold), release, arrived

    def test_requests_that_hang(self) -> None:
        service, release, arrived = self.hanging()
        with Client(**service.settings(), timeout=90.0) as c:
            c.queue(traced(0))
            arrived.acquire(timeout=30)
            c.queue(traced(1))
            late = threading.Thread(target=c.send, args=(traced(0, 10),), daemon=True)
            late.start()
            arrived.acquire(timeout=30)
            stored = [threading.Event() for _ in range(8)]
            for n, done in enumerate(stored, 2):
                c._sender.queue([c.sign(traced(n))], lambda outcome, done=done: done.set())
            others = [threading.Thread(target=c.send, args=(traced(n),), daemon=True) for n in range(20, 30)]
            for other in others:
                other.start()
            for other in others:
                other.join(30)
                self.assertFalse(other.is_alive(), "a request that hangs holds back a caller")
            for done in stored:
                self.assertTrue(done.wait(30), "a request that hangs holds back a queued event")
            self.assertTrue(late.is_alive(), "an event overtook an earlier one of its trace")
            self.assertEqual(2, c.pending)
            release.set()
            late.join(30)
            self.assertEqual([], c.flush(30))
        self.check_order(service)

    def test_requests_that_hang_with_asyncio(self) -> None:
        service, release, arrived = self.hanging()

        async def use() -> None:
            async with AsyncClient(**service.settings(), timeout=90.0) as c:
                await c.queue(traced(0))
                await asyncio.to_thread(arrived.acquire, timeout=30)
                await c.queue(traced(1))
                late = asyncio.create_task(c.send(traced(0, 10)))
                await asyncio.to_thread(arrived.acquire, timeout=30)
                for n in range(2, 10):
                    await c.queue(traced(n))
                sends = [c.send(traced(n)) for n in range(20, 30)]
                await asyncio.wait_for(asyncio.gather(*sends), 30)
                while c.pending > 2:
                    await asyncio.sleep(0)
                self.assertFalse(late.done(), "an event overtook an earlier one of its trace")
                release.set()
                await late
                self.assertEqual([], await c.flush(30))

        asyncio.run(asyncio.wait_for(use(), 90))
        self.check_order(service)

    def check_order(self, service: FakeService) -> None:
        sent = [n for _, _, body, _ in service.requests for n in numbers(body)]
        self.assertEqual(len(set(sent)), len(sent), "an event was sent twice")
        self.assertLess(sent.index(0), sent.index(10))

    def blocking(self) -> tuple[FakeService, threading.Event]:
        """Return a service behind a firewall that blocks event 3, and when it stops to."""
        free = threading.Event()

        def block(method: str, path: str, body: bytes) -> Reply:
            return accept(method, path, body) if free.is_set() or 3 not in numbers(body) else (403, {}, b"<html>")

        return self.service(block), free

    def test_an_event_that_a_proxy_blocks(self) -> None:
        service, free = self.blocking()
        with mock.patch("agentledger._delivery.BACKOFF", FAST), Client(**service.settings()) as c:
            for n in range(10):
                c.queue(traced(n))
            c.queue(traced(3, 10))
            for n in range(20, 30):
                self.assertEqual("created", c.send(traced(n)).status)
            while c.pending > 2:
                self.assertEqual("created", c.send(traced(30)).status)
            free.set()
            self.assertEqual([], c.flush(30))
        stored = self.stored(service)
        self.assertEqual([*range(11), *range(20, 30)], sorted(set(stored) - {30}))
        self.assertLess(stored.index(3), stored.index(10))

    def test_an_event_that_a_proxy_blocks_with_asyncio(self) -> None:
        service, free = self.blocking()

        async def use() -> None:
            async with AsyncClient(**service.settings()) as c:
                for n in range(10):
                    await c.queue(traced(n))
                await c.queue(traced(3, 10))
                while c.pending > 2:
                    self.assertEqual("created", (await c.send(traced(30))).status)
                free.set()
                self.assertEqual([], await c.flush(30))

        with mock.patch("agentledger._delivery.BACKOFF", FAST):
            asyncio.run(asyncio.wait_for(use(), 90))
        stored = self.stored(service)
        self.assertEqual([*range(11)], sorted(set(stored) - {30}))
        self.assertLess(stored.index(3), stored.index(10))

    def stored(self, service: FakeService) -> list[int]:
        """Return the events in the order of their last requests, of which the others were refused."""
        last: dict[int, int] = {}
        for place, (_, _, body, _) in enumerate(service.requests):
            last.update({n: place for n in numbers(body)})
        return sorted(last, key=lambda n: last[n])

    def test_requests_grow_again_after_a_413(self) -> None:
        sizes: list[int] = []

        def limit(method: str, path: str, body: bytes) -> Reply:
            sizes.append(len(body.splitlines()))
            return (413, {}, b"<html>") if len(sizes) == 1 else accept(method, path, body)

        with Client(**self.service(limit).settings()) as c:
            c.send_all([event(n) for n in range(64)])
            for _ in range(20):
                c.send_all([event(n) for n in range(64)])
        self.assertEqual([64, 32, 32], sizes[:3])
        self.assertEqual(64, sizes[-1])


class Simulated(unittest.TestCase):
    """What a delivery decides, with a clock and answers of the test."""

    def setUp(self) -> None:
        self.addCleanup(logging.disable, logging.NOTSET)
        logging.disable(logging.CRITICAL)
        self.now = 0.0
        with Client(url="http://127.0.0.1:1", token=TOKEN, org=ORG, agent="agt_1", key_id="key_1", key=b"\7" * 32) as c:
            self.client = c
        self.outbox = Outbox(3, None)
        self.delivery = Delivery(self.client.settings, self.outbox, lambda: self.now)
        self.stored: list[int] = []

    def put(self, *names: int) -> None:
        self.outbox.put([self.client.sign(traced(n)) for n in names])

    def deliver(self, batch: Batch, script: Script) -> None:
        """Answer the request of a batch, and end it."""
        operation = self.delivery.deliver(batch)
        request = next(operation)
        reply = script(request.method, request.path, request.body)
        with contextlib.suppress(StopIteration):
            if reply is None:
                operation.throw(Unreachable("no answer"))
            else:
                status, headers, body = reply
                if status == 200:
                    self.stored += numbers(request.body)
                operation.send(Answer(status, headers, body))
        self.delivery.end(batch)

    def run_on(self, script: Script, steps: int = 100) -> None:
        """Deliver or let time pass, until nothing is to do, or for so many steps."""
        for _ in range(steps):
            batch = self.delivery.take()
            if batch is not None:
                self.deliver(batch, script)
            elif (pause := self.delivery.pause) is not None:
                self.now += pause
            else:
                return

    def test_blocked_events_and_an_outage(self) -> None:
        def block(method: str, path: str, body: bytes) -> Reply:
            return (403, {}, b"<html>") if {1, 2} & set(numbers(body)) else accept(method, path, body)

        self.put(1, 2)
        with mock.patch("agentledger._exchange.random.random", return_value=0.0):
            self.run_on(block)
            self.put(3)
            self.run_on(lambda *request: None)
            self.run_on(block)
        self.assertEqual([3], self.stored)

    def test_a_closed_sender_waits_for_a_request_that_hangs(self) -> None:
        self.put(0)
        hanging = self.delivery.take()
        assert hanging is not None
        self.now += MAX_HOLD
        self.delivery.take()
        self.put(1)
        self.run_on(lambda *request: None, 1)
        self.put(2)
        self.delivery.close()
        self.now += 100.0
        self.assertEqual((None, None, False), (self.delivery.take(), self.delivery.pause, self.delivery.has_ended))
        self.deliver(hanging, accept)
        self.run_on(accept)
        self.assertEqual(([0, 2, 1], True), (self.stored, self.delivery.has_ended))

    def test_the_last_refused_events_are_kept(self) -> None:
        line = json.dumps({"status_code": 422, "error": "Unknown signing key"}).encode()
        for n in range(5):
            self.put(n)
            self.run_on(lambda *request: (200, {"x-request-id": "req_1"}, line))
        self.assertEqual([2, 3, 4], [json.loads(event.text)["payload"]["n"] for event, _ in self.outbox.take_refused()])
        self.assertEqual([], self.outbox.take_refused())


def numbers(body: bytes) -> list[int]:
    """Return the numbers of the events of a request."""
    return [json.loads(line)["payload"]["n"] for line in body.splitlines()]


def traced(trace: int, n: int | None = None) -> dict[str, Any]:
    """Return an event with a trace and a number, by default the same."""
    return {"action_kind": "tool_call", "trace_id": f"trc_{trace}", "payload": {"n": trace if n is None else n}}


if __name__ == "__main__":
    unittest.main()
