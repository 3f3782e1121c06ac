"""The vectors of testdata/answers.json: which answers end an event, and which leave it in the queue."""

from __future__ import annotations

import json
import pathlib
import tempfile
import unittest
from typing import Any

import harness
from fakeservice import FakeService, Reply, accept

from agentledger import Client, LedgerError, Refused, Retry, Unreachable
from agentledger._answers import Stored
from agentledger._batches import Batch, Item
from agentledger._calls import send_batch, send_event, undelivered
from agentledger._settings import Settings
from agentledger._signer import Signed
from agentledger._wire.effects import Answer, Operation

CORPUS = json.loads((harness.REPOSITORY / "testdata" / "answers.json").read_text("utf-8"))
FAST = Retry(attempts=2, base=0.001, most=0.002)


def run(operation: Operation[Any], answer: Answer) -> Any:
    """Answer the one request of an operation."""
    next(operation)
    try:
        operation.send(answer)
    except StopIteration as end:
        return end.value
    raise AssertionError("a second request")


def verdict(settings: Settings, vector: dict[str, Any]) -> str:
    """Return what the queue does with an event after an answer."""
    event = Signed(b"{}", CORPUS["event_id"], "trc-1", "")
    headers = {name.lower(): value for name, value in vector["headers"].items()}
    answer = Answer(vector["status"], headers, vector["body"].encode())
    if vector["sent"] == "alone":
        try:
            outcomes = [run(send_event(settings, event, Retry(1)), answer)]
        except (Refused, Unreachable) as why:
            outcomes = [why]
    else:
        try:
            outcomes = run(send_batch(settings, [event]), answer)
        except (Refused, Unreachable) as why:
            outcomes = [undelivered(why, event.event_id)]
    for why in outcomes:
        if isinstance(why, LedgerError):
            assert why.event_id == event.event_id
    batch = Batch([Item(event, True, True)])
    batch.settle(outcomes, 1)
    if not batch.ended:
        return "kept"
    return "stored" if isinstance(batch.ended[0][1], Stored) else "refused"


class Answers(unittest.TestCase):
    def service(self, script: Any) -> FakeService:
        service = FakeService(script)
        self.addCleanup(service.close)
        return service

    def test_vectors(self) -> None:
        service = self.service(accept)
        with Client(**service.settings()) as c:
            for vector in CORPUS["vectors"]:
                with self.subTest(vector["sent"] + ": " + vector["name"]):
                    self.assertEqual(vector["verdict"], verdict(c.settings, vector))

    def test_an_undelivered_event_stays_in_the_file_with_a_warning(self) -> None:
        service = self.service(lambda *_: (404, {"Content-Type": "text/html"}, b"<html>default backend</html>"))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "queue"
            with self.assertLogs("agentledger", "WARNING") as logged:
                c = Client(**service.settings(), queue_file=path, retry=FAST)
                for n in range(3):
                    c.queue({"action_kind": "tool_call", "payload": {"n": n}})
                with self.assertRaises(LedgerError):
                    c.close(0.2)
            self.assertIn("queued events were not delivered, and are sent again later: 404", logged.output[0])
            self.assertEqual(1, len(logged.output))
            service.script = accept
            with Client(**service.settings(), queue_file=path) as c:
                self.assertEqual([], c.flush(10))
            self.assertFalse(pathlib.Path(f"{path}.refused").exists())

    def test_a_request_that_is_too_large_for_a_proxy_is_sent_in_parts(self) -> None:
        sizes: list[int] = []

        def limit(method: str, path: str, body: bytes) -> Reply:
            sizes.append(len(body.splitlines()))
            return accept(method, path, body) if sizes[-1] < 4 else (413, {}, b"<html>")

        with Client(**self.service(limit).settings()) as c:
            outcomes = c.send_all([{"action_kind": "tool_call", "payload": {"n": n}} for n in range(8)])
        self.assertEqual(["created"] * 8, [getattr(o, "status", o) for o in outcomes])
        self.assertEqual([8, 4, 2, 3, 3], sizes)


if __name__ == "__main__":
    unittest.main()
