"""The queue: order, retries, bounds, crashes and full disks. Nothing is lost silently."""

from __future__ import annotations

import asyncio
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import unittest
from typing import Any
from unittest import mock

from fakeservice import TOKEN, FakeService, Reply, accept, answer, store_lines
from harness import HERE

from agentledger import AsyncClient, Client, NotAsked, Overflow, Refused, Retry, Unreachable
from agentledger._exchange import is_retryable, pause_after, read_refusal
from agentledger._queuefile import QueueFile
from agentledger._settings import Settings
from agentledger._wire.effects import Answer

FAST = Retry(attempts=3, base=0.001, most=0.002)


def sent(service: FakeService) -> list[int]:
    """Return the numbers of the events in the order in which they arrived."""
    lines = [line for _, path, body, _ in service.requests if path.endswith("/batch") for line in body.splitlines()]
    return [json.loads(line)["payload"]["n"] for line in lines]


def event(n: int) -> dict[str, Any]:
    return {"action_kind": "tool_call", "trace_id": "trc_1", "payload": {"n": n}}


class Queue(unittest.TestCase):
    def service(self, script: Any) -> FakeService:
        service = FakeService(script)
        self.addCleanup(service.close)
        return service

    def test_a_listener_that_fails_does_not_stop_the_sender(self) -> None:
        def fail(outcome: object) -> None:
            raise ValueError("no room")

        service = self.service(lambda method, path, body: store_lines(body))
        with self.assertLogs("agentledger", "WARNING") as logged:
            with Client(**service.settings()) as c:
                signed = [c.sign(event(n)) for n in range(3)]
                c._sender.queue(signed[:1], fail)
                c._sender.queue(signed[1:])
                c.flush()
        self.assertEqual([0, 1, 2], sent(service))
        self.assertEqual(["an outcome could not be recorded: ValueError"], [r.getMessage() for r in logged.records])

    def test_waiting_events_are_the_next_batch_in_order(self) -> None:
        arrived, release = threading.Event(), threading.Event()

        def hold(method: str, path: str, body: bytes) -> Reply:
            arrived.set()
            release.wait(30)
            return store_lines(body)

        service = self.service(hold)
        with Client(**service.settings()) as c:
            c.queue(event(0))
            arrived.wait(30)
            for n in range(1, 10):
                c.queue(event(n))
            release.set()
            c.flush()
        self.assertEqual(2, len(service.requests))
        self.assertEqual(list(range(10)), sent(service))

    def test_rejected_lines_are_retried_before_later_ones(self) -> None:
        refusals = iter([1, 3])

        def refuse_some(method: str, path: str, body: bytes) -> Reply:
            lines = []
            number = next(refusals, None)
            for line in body.splitlines():
                n = json.loads(line)["payload"]["n"]
                late = number is not None and n >= number
                entry = {"status_code": 503, "error": "later", "code": "overloaded"}
                lines.append(json.dumps(entry) if late else store_lines(line)[2].decode().strip())  # type: ignore[index]
            return 200, {}, "\n".join(lines).encode()

        service = self.service(refuse_some)
        with Client(**service.settings(), retry=FAST) as c:
            outcomes = c.send_all([event(n) for n in range(5)])
        self.assertEqual(["created"] * 5, [getattr(o, "status", o) for o in outcomes])
        self.assertEqual([0, 1, 2, 3, 4, 1, 2, 3, 4, 3, 4], sent(service))

    def test_a_lost_answer_is_sent_again_and_a_replay_is_success(self) -> None:
        lost = iter([None])

        def lose(method: str, path: str, body: bytes) -> Reply:
            for _ in lost:
                return None
            entry = {"status_code": 200, "event_id": json.loads(body)["event_id"], "status": "replayed"}
            return 200, {}, json.dumps(entry).encode()

        service = self.service(lose)
        with Client(**service.settings(), retry=FAST) as c:
            self.assertEqual("replayed", c.send(event(1)).status)
        self.assertEqual(service.requests[0][2], service.requests[1][2])

    def test_overflow_is_reported_and_the_others_arrive(self) -> None:
        release = threading.Event()

        def hold(method: str, path: str, body: bytes) -> Reply:
            release.wait(30)
            return store_lines(body)

        service = self.service(hold)
        with Client(**service.settings(), max_queued=3) as c:
            for n in range(3):
                c.queue(event(n))
            with self.assertRaises(Overflow):
                c.queue(event(3))
            with self.assertRaises(Overflow):
                c.send_all([event(4)])
            release.set()
            c.flush()
        self.assertEqual([0, 1, 2], sent(service))

    def test_flush_and_close_end_at_their_deadline(self) -> None:
        service = self.service(lambda *_: answer(503, {"error": "x", "code": "frozen"}))
        c = Client(**service.settings(), retry=FAST)
        c.queue(event(1))
        with self.assertRaises(Unreachable):
            c.flush(0.05)
        with self.assertRaises(Unreachable):
            c.close(0.05)
        with self.assertRaises(NotAsked):
            c.queue(event(2))

    def test_asyncio_has_the_same_queue(self) -> None:
        service = self.service(accept)

        async def fill() -> None:
            async with AsyncClient(**service.settings()) as c:
                for n in range(20):
                    await c.queue(event(n))
                self.assertEqual([], await c.flush())

        asyncio.run(fill())
        self.assertEqual(list(range(20)), sent(service))


class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "queue"
        self.service = FakeService(accept)
        self.addCleanup(self.service.close)

    def test_events_of_a_killed_process_arrive(self) -> None:
        settings = {**self.service.settings(), "url": "http://127.0.0.1:1"}
        program = f"""
import os, sys
sys.path.insert(0, {str(HERE.parent / 'src')!r})
from agentledger import Client
c = Client(**{settings!r}, queue_file={str(self.path)!r})
for n in range(3):
    c.queue({{"action_kind": "tool_call", "payload": {{"n": n}}}})
os._exit(9)
"""
        self.assertEqual(9, subprocess.run([sys.executable, "-c", program]).returncode)
        with open(self.path, "ab") as out:
            out.write(b'{"event": "cut sho')
        with Client(**self.service.settings(), queue_file=self.path) as c:
            c.flush()
        self.assertEqual([0, 1, 2], sent(self.service))
        again = QueueFile(self.path)
        self.assertEqual([], again.waiting())
        again.close()

    def test_a_full_disk_is_reported_and_the_event_is_not_queued(self) -> None:
        with Client(**self.service.settings(), queue_file=self.path) as c:
            with mock.patch("agentledger._queuefile.os.fsync", side_effect=OSError(28, "No space left on device")):
                with self.assertRaises(OSError):
                    c.queue(event(1))
            c.queue(event(2))
            c.flush()
        self.assertEqual([2], sent(self.service))

    def test_an_event_that_is_queued_twice_is_removed_once(self) -> None:
        arrived, release = threading.Event(), threading.Event()

        def hold(method: str, path: str, body: bytes) -> Reply:
            arrived.set()
            release.wait(30)
            return store_lines(body)

        self.service.script = hold
        with Client(**self.service.settings(), queue_file=self.path) as c:
            c.queue(event(0))
            arrived.wait(30)
            signed = c.sign(event(1))
            for _ in range(2):
                c.queue(signed)
            release.set()
            c.flush(10)
            c.queue(event(2))
            c.flush(10)
        self.assertEqual([0, 1, 1, 2], sent(self.service))
        again = QueueFile(self.path)
        self.assertEqual([], again.waiting())
        again.close()

    def test_rejected_events_are_kept_in_a_separate_file(self) -> None:
        entry = json.dumps({"status_code": 422, "error": "Invalid signature"}).encode()
        self.service.script = lambda *_: (200, {"X-Request-Id": "req-1"}, entry)
        with Client(**self.service.settings(), queue_file=self.path) as c:
            signed = c.queue(event(1))
            refused = c.flush()
        self.assertEqual([(signed.event_id, 422)], [(e.event_id, why.status) for e, why in refused])
        line = b'{"status": 422, "code": "", "message": "Invalid signature", "event": ' + signed.text + b"}\n"
        self.assertEqual(line, pathlib.Path(f"{self.path}.refused").read_bytes())

    def test_a_full_disk_leaves_no_part_of_a_rejected_event(self) -> None:
        with Client(**self.service.settings()) as c:
            signed = c.sign(event(1))
        queue = QueueFile(self.path)
        queue.append([signed])
        refused = [(signed, Refused(422, "Invalid signature"))]
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
        try:
            with self.assertRaises(OSError):
                queue.remove([signed], refused)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        queue.remove([signed], refused)
        queue.close()
        lines = pathlib.Path(f"{self.path}.refused").read_bytes().splitlines()
        self.assertEqual([json.loads(signed.text)], [json.loads(line)["event"] for line in lines])

    def test_one_process_has_the_file_and_damage_is_reported(self) -> None:
        first = QueueFile(self.path)
        with self.assertRaises(NotAsked):
            QueueFile(self.path)
        first.close()
        self.path.write_bytes(b"no line of a queue\n")
        with self.assertRaises(NotAsked):
            QueueFile(self.path)


class Retries(unittest.TestCase):
    def test_retry_after_counts_and_permanent_faults_are_not_retried(self) -> None:
        for status, headers, body, again, least in (
            (429, {"retry-after": "7"}, b'{"code":"rate_limited"}', True, 7.0),
            (503, {"retry-after": "2"}, b'{"code":"overloaded"}', True, 2.0),
            (503, {}, b'{"code":"frozen"}', False, 0.0),
            (429, {}, b'{"code":"plan_limit"}', False, 0.0),
            (422, {}, b"{}", False, 0.0),
            (502, {"retry-after": "soon"}, b"<html>", True, 0.0),
            (500, {}, b"", False, 0.0),
        ):
            with self.subTest(status=status, body=body):
                refusal = read_refusal(Answer(status, headers, body))
                self.assertEqual(again, is_retryable(refusal))
                self.assertGreaterEqual(pause_after(1, refusal, Retry()), least)

    def test_backoff_doubles_up_to_its_bound_with_jitter(self) -> None:
        retry = Retry(attempts=8, base=0.2, most=1.0)
        for tried, most in ((1, 0.2), (2, 0.4), (3, 0.8), (4, 1.0), (40, 1.0)):
            for _ in range(20):
                pause = pause_after(tried, Unreachable("x"), retry)
                self.assertTrue(most / 2 <= pause <= most, (tried, pause))


class Secrets(unittest.TestCase):
    def test_no_text_shows_a_token_or_a_key(self) -> None:
        service = FakeService(lambda *_: answer(401, {"error": "Invalid API key\x1b[31m"}))
        c = Client(**service.settings(), retry=FAST)
        with self.assertRaises(Refused) as refused:
            c.evaluate("acme.x")
        seed = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
        texts = [
            str(refused.exception),
            repr(c),
            repr(c.settings),
            str(c.settings.signer),
            repr(vars(c.settings.signer or c)),
        ]
        for text in texts:
            self.assertNotIn(TOKEN, text)
            self.assertNotIn(seed, text)
            self.assertNotIn("\\x07\\x07", text)
            self.assertNotIn("\x1b", text)
        with self.assertRaises(NotAsked) as malformed:
            Client(**{**service.settings(), "key": "not a key " + seed})
        self.assertNotIn(seed, str(malformed.exception))
        self.assertIsInstance(c.settings, Settings)
        c.close()
        service.close()


if __name__ == "__main__":
    unittest.main()
