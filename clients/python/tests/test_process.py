"""The end of a process, and forks: queued events are sent or counted on standard error, and a child never waits."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

from fakeservice import FakeService, Reply, accept, store_lines
from harness import HERE

from agentledger import _process as process
from agentledger._forkgate import fork_gate
from agentledger import AsyncClient, Client, Journal, NotAsked, Retry, Unreachable

BLOCKING = """
c = Client(**settings)
for n in range(20):
    c.queue({"action_kind": "tool_call", "payload": {"n": n}})
"""
ASYNC = """
import asyncio

async def main():
    c = AsyncClient(**settings)
    for n in range(20):
        await c.queue({"action_kind": "tool_call", "payload": {"n": n}})

asyncio.run(main())
"""


def answer(method: str, path: str, body: bytes) -> Reply:
    return store_lines(body) if path.endswith("/batch") else accept(method, path, body)


def stored(service: FakeService) -> int:
    return sum(body.count(b'"event_id"') for _, _, body, _ in service.requests)


def unused_address() -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"


def in_child(do: Callable[[], Any]) -> str:
    """Return the result of do in a forked child, or its error. The child is killed after 20 seconds."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(do())
        except BaseException as why:
            text = f"{type(why).__name__}: {why}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    killer = threading.Timer(20, os.kill, (child, signal.SIGKILL))
    killer.start()
    try:
        with os.fdopen(read, "rb") as result:
            return result.read().decode() or "it never ended"
    finally:
        killer.cancel()
        os.waitpid(child, 0)


class Process(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore", ResourceWarning)  # sockets of an event loop that has ended
        self.service = FakeService(answer)
        self.addCleanup(self.service.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def script(self, text: str, settings: dict[str, Any], seconds: float = 5.0) -> subprocess.CompletedProcess[str]:
        head = f"import sys; sys.path.insert(0, {str(HERE.parent / 'src')!r})\nfrom agentledger import *\nimport agentledger._process\n"
        head += f"agentledger._process.EXIT_SECONDS = {seconds}\nsettings = {settings!r}\n"
        return subprocess.run([sys.executable, "-c", head + text], capture_output=True, text=True, timeout=60)

    def test_queued_events_are_sent_at_the_end(self) -> None:
        for name, text in {"blocking": BLOCKING, "async": ASYNC, "exit": BLOCKING + "sys.exit(3)\n", "error": BLOCKING + "1/0\n"}.items():
            with self.subTest(name):
                self.service.requests.clear()
                end = self.script(text, self.service.settings())
                self.assertEqual(20, stored(self.service))
                self.assertNotIn("agentledger:", end.stderr)
                self.assertEqual({"exit": 3, "error": 1}.get(name, 0), end.returncode)

    def test_what_is_left_is_counted(self) -> None:
        for name, text in {"blocking": BLOCKING, "async": ASYNC}.items():
            with self.subTest(name):
                settings = {**self.service.settings(), "url": unused_address(), "retry": Retry(attempts=2, base=0.01)}
                began = time.monotonic()
                end = self.script(text, settings, 0.5)
                self.assertLess(time.monotonic() - began, 30)
                line = "agentledger: 20 queued events were not delivered before the process ended; they are lost"
                self.assertEqual(line, end.stderr.splitlines()[-1])  # after warnings of failed tries
                self.assertEqual(0, end.returncode)

    def test_a_file_keeps_what_is_left(self) -> None:
        file = str(self.folder / "queue")
        down = {**self.service.settings(), "url": unused_address(), "queue_file": file}
        end = self.script(BLOCKING, down, 0.2)
        line = f"agentledger: 20 queued events were not delivered before the process ended; the next client with queue_file {file} sends them"
        self.assertEqual(line, end.stderr.splitlines()[-1])
        with Client(**self.service.settings(), queue_file=file):
            pass
        self.assertEqual(20, stored(self.service))

    def test_refused_events_are_told(self) -> None:
        line = json.dumps({"status_code": 422, "error": "Unknown signing key"}).encode() + b"\n"
        self.service.script = lambda method, path, body: (200, {"X-Request-Id": "req_1"}, line)
        one = 'c = Client(**settings)\nc.queue({"action_kind": "tool_call", "payload": {}})\n'
        told = "queued events were refused for good, 1 in this request: 422 Unknown signing key"
        for name, text in {"end": one, "with": one.replace("c = ", "with ").replace(")\nc.", ") as c:\n    c.")}.items():
            with self.subTest(name):
                end = self.script(text, self.service.settings())
                self.assertIn(told, end.stderr)
                self.assertNotIn("not delivered", end.stderr)

    def test_clients_that_are_never_closed_are_forgotten(self) -> None:
        before = len(process._outboxes)
        for _ in range(process._MANY + 10):
            c = Client(**self.service.settings())
            c.queue({"action_kind": "tool_call", "payload": {}})
            c.flush()
        self.assertLessEqual(len(process._outboxes), before + process._MANY)

    def test_a_closed_client_is_quiet(self) -> None:
        end = self.script(BLOCKING + "c.close()\n", self.service.settings())
        self.assertEqual(("", 20), (end.stderr, stored(self.service)))

    def test_pending(self) -> None:
        arrived, release = threading.Event(), threading.Event()

        def hold(method: str, path: str, body: bytes) -> Reply:
            arrived.set()
            release.wait(30)
            return answer(method, path, body)

        self.service.script = hold
        with Client(**self.service.settings()) as c:
            self.assertEqual(0, c.pending)
            for n in range(3):
                c.queue({"action_kind": "tool_call", "payload": {"n": n}})
            arrived.wait(30)
            self.assertEqual(3, c.pending)
            release.set()
            c.flush()
            self.assertEqual(0, c.pending)

    def test_a_fork_waits_for_signatures(self) -> None:
        """OpenSSL's locks would stay locked in the child otherwise."""
        gate, waits, may_leave, order = fork_gate(), threading.Event(), threading.Event(), list[str]()
        inside = threading.Event()

        def sign() -> None:
            with gate:
                inside.set()
                may_leave.wait(10.0)
                order.append("signed")

        def fork() -> None:
            if (child := os.fork()) == 0:
                os._exit(0)
            order.append("forked")
            os.waitpid(child, 0)

        signs, forks = threading.Thread(target=sign), threading.Thread(target=fork)
        with mock.patch("agentledger._forkgate.time.sleep", lambda seconds: waits.set()):
            signs.start()
            self.assertTrue(inside.wait(10.0))
            forks.start()
            self.assertTrue(waits.wait(10.0), "the fork does not wait")
            may_leave.set()
            signs.join()
            forks.join()
        self.assertEqual(["signed", "forked"], order)
        with gate:  # it is open again
            pass

    def test_a_forked_child_sends(self) -> None:
        with Client(**self.service.settings()) as c:
            c.send({"action_kind": "tool_call", "payload": {}})
            own = c.sign({"action_kind": "tool_call", "payload": {"of": "the child"}})
            self.assertEqual(own.event_id, in_child(lambda: c.send(own).event_id))
            self.assertEqual(own.event_id, in_child(lambda: (c.queue(own), c.flush(), own.event_id)[2]))
            c.send({"action_kind": "tool_call", "payload": {}})
        self.assertEqual(4, stored(self.service))

    def test_a_forked_child_does_not_send_what_its_parent_queued(self) -> None:
        release = threading.Event()

        def hold(method: str, path: str, body: bytes) -> Reply:
            release.wait(30)
            return answer(method, path, body)

        self.service.script = hold
        with Client(**self.service.settings()) as c:
            for n in range(5):
                c.queue({"action_kind": "tool_call", "payload": {"n": n}})
            self.assertEqual("0", in_child(lambda: c.pending))
            self.assertEqual("[]", in_child(c.close))
            release.set()
            c.flush()
        self.assertEqual(5, stored(self.service))

    def test_a_forked_child_has_no_file(self) -> None:
        file, folder = self.folder / "queue", self.folder / "journal"
        with Client(**self.service.settings(), queue_file=file, journal=Journal(folder)) as c:
            queued = in_child(lambda: c.queue({"action_kind": "tool_call", "payload": {}}))
            self.assertIn("belongs to the process that opened it: create a client with another queue_file", queued)
            acted = in_child(lambda: c.act("acme.orders.read", {}, lambda permit: 1, key="k"))
            self.assertIn("belongs to the process that opened it: create a Journal with another folder", acted)
            self.assertIn("in use by another process", in_child(lambda: Client(**self.service.settings(), queue_file=file)))
        with Client(**self.service.settings(), queue_file=file, journal=Journal(folder)) as c:  # the child kept no lock
            c.queue({"action_kind": "tool_call", "payload": {}})
        with self.assertRaises(NotAsked), Client(**self.service.settings(), queue_file=file) as c, c._delivery.outbox._disk:
            Client(**self.service.settings(), queue_file=file)

    def test_a_forked_child_has_its_own_event_loop(self) -> None:
        c = AsyncClient(**self.service.settings())

        async def send() -> str:
            return (await c.send({"action_kind": "tool_call", "payload": {}})).event_id

        async def parent() -> str:
            await send()
            sent = await asyncio.to_thread(in_child, lambda: asyncio.run(send()))
            await send()
            return sent

        self.assertRegex(asyncio.run(parent()), "^evt_")
        self.assertEqual(3, stored(self.service), "the child disabled a connection of its parent")

    def test_the_end_of_a_process_waits_only_after_failures(self) -> None:
        c = AsyncClient(**self.service.settings())
        c._delivery._most = 8  # not so many events are needed for several requests
        c._delivery.outbox.put([c.sign({"action_kind": "tool_call", "payload": {"n": n}}) for n in range(40)])
        failures = iter([(413, {}, b"<html>"), (503, {}, b"<html>")])
        self.service.script = lambda *request: next(failures, answer(*request))
        pauses: list[float] = []
        with mock.patch("agentledger._asyncsender.time.sleep", pauses.append):
            c._sender._finish(60)
        self.assertEqual((0, [0.2]), (c.pending, pauses))

    def test_interim_answers_are_skipped(self) -> None:
        async def send() -> str:
            async with AsyncClient(**self.service.settings(), retry=Retry(attempts=1)) as c:
                return (await c.send({"action_kind": "tool_call", "payload": {}})).status

        with Client(**self.service.settings(), retry=Retry(attempts=1)) as c:
            for self.service.interim in (1, 16, 0):
                self.assertEqual("created", c.send({"action_kind": "tool_call", "payload": {}}).status)
                self.assertEqual("created", asyncio.run(send()))
            self.service.interim = 17
            with self.assertRaises(Unreachable):
                c.send({"action_kind": "tool_call", "payload": {}})
            with self.assertRaises(Unreachable):
                asyncio.run(send())

    def test_one_event_loop_after_the_other(self) -> None:
        c = AsyncClient(**self.service.settings())

        async def send() -> str:
            return (await c.send({"action_kind": "tool_call", "payload": {}})).status

        self.assertEqual(["created"] * 3, [asyncio.run(send()) for _ in range(3)])

        async def beside() -> str:
            await send()
            return await asyncio.to_thread(lambda: asyncio.run(send()))

        with self.assertRaisesRegex(NotAsked, "in use by another event loop"):
            asyncio.run(beside())

    def test_what_one_event_loop_queued_is_sent_by_the_next(self) -> None:
        c = AsyncClient(**self.service.settings())

        async def queue() -> None:
            for n in range(5):
                await c.queue({"action_kind": "tool_call", "payload": {"n": n}})

        asyncio.run(queue())
        asyncio.run(c.close())
        self.assertEqual((5, 0), (stored(self.service), c.pending))

    def test_a_pool_of_processes(self) -> None:
        with Client(**self.service.settings()) as c:
            c.send({"action_kind": "tool_call", "payload": {}})
            global _client
            _client = c
            with multiprocessing.get_context("fork").Pool(2) as pool:
                self.assertEqual(6, len(set(pool.map_async(_send, range(6)).get(30))))
        self.assertEqual(7, stored(self.service))


_client: Client


def _send(n: int) -> str:
    return _client.send({"action_kind": "tool_call", "payload": {"n": n}}).event_id
