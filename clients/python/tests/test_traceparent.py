"""The caller's span: both events of an act are signed with it, and an event without a trace_id is of its trace."""

from __future__ import annotations

import json
import pathlib
import unittest
from typing import Any

from fakeservice import FakeService, accept
from harness import HERE

from agentledger import Client, Options, Retry
from agentledger._grammar import trace_of

assert HERE  # the harness puts the package on the path

VECTORS = pathlib.Path(__file__).parents[3] / "testdata" / "traceparent.json"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


class Traceparent(unittest.TestCase):
    def setUp(self) -> None:
        self.service = FakeService(accept)
        self.addCleanup(self.service.close)
        self.client = Client(**self.service.settings(), retry=Retry(attempts=1))
        self.addCleanup(self.client.close)

    def events(self) -> list[dict[str, Any]]:
        self.client.flush()
        lines = [x for _, path, body, _ in self.service.requests if "/events" in path for x in body.splitlines()]
        return list({e["event_id"]: e for e in map(json.loads, lines)}.values())

    def test_vectors(self) -> None:
        vectors = json.loads(VECTORS.read_text())
        self.assertGreater(len(vectors), 30)
        for v in vectors:
            self.assertEqual(v["trace"], trace_of(v["traceparent"]), v["name"])
        for other in (None, 7, [PARENT]):
            self.assertIsNone(trace_of(other))

    def test_acts(self) -> None:
        for parent, trace, want in (
            (PARENT, None, (PARENT, TRACE)),
            (PARENT, "trc-1", (PARENT, "trc-1")),
            (PARENT + "-x", None, (None, None)),
            (None, None, (None, None)),
        ):
            before = len(self.events())
            options = Options(traceparent=lambda: parent)
            key = f"{parent} {trace}"
            self.client.act("acme.refund", {"n": 1}, lambda _: "done", options=options, key=key, trace=trace)
            again = Options(traceparent=lambda: OTHER)  # a repetition under another caller is the same act
            self.client.act("acme.refund", {"n": 1}, lambda _: "done", options=again, key=key, trace=trace)
            both = self.events()[before:]
            self.assertEqual(["intent", "result"], [e["payload"]["phase"] for e in both])
            for e in both:
                self.assertEqual(want[0], e.get("traceparent"))
                if want[1] is None:
                    self.assertTrue(e["trace_id"].startswith("trc_"))
                else:
                    self.assertEqual(want[1], e["trace_id"])

    def test_events(self) -> None:
        for members, want in (
            ({"traceparent": PARENT}, TRACE),
            ({"traceparent": PARENT, "trace_id": "trc-1"}, "trc-1"),
        ):
            self.client.send({"action_kind": "note", **members})
            self.assertEqual(want, self.events()[-1]["trace_id"])
        self.client.send({"action_kind": "note", "traceparent": "00-x"})
        self.assertTrue(self.events()[-1]["trace_id"].startswith("trc_"))


if __name__ == "__main__":
    unittest.main()
