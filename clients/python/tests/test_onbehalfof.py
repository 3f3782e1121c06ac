"""The subject: both events of an act are signed with it, and a key is for one subject."""

from __future__ import annotations

import json
import unittest
from typing import Any

from fakeservice import FakeService, accept
from harness import HERE

from agentledger import Client, KeyReused, Options, Retry

assert HERE  # the harness puts the package on the path


def subject(name: str) -> dict[str, Any]:
    return {"issuer": "https://login.example", "subject": name, "actors": [{"subject": "planner"}]}


class OnBehalfOf(unittest.TestCase):
    def setUp(self) -> None:
        self.service = FakeService(accept)
        self.addCleanup(self.service.close)
        self.client = Client(**self.service.settings(), retry=Retry(attempts=1))
        self.addCleanup(self.client.close)

    def events(self) -> list[dict[str, Any]]:
        self.client.flush()
        lines = [x for _, path, body, _ in self.service.requests if "/events" in path for x in body.splitlines()]
        return list({e["event_id"]: e for e in map(json.loads, lines)}.values())

    def act(self, of: dict[str, Any] | None, key: str) -> Any:
        return self.client.act("acme.refund", {"n": 1}, lambda _: "done", options=Options(on_behalf_of=lambda: of), key=key)

    def test_acts(self) -> None:
        for of, key in ((subject("u1"), "a"), (None, "b")):
            before = len(self.events())
            self.act(of, key)
            self.act(of, key)
            both = self.events()[before:]
            self.assertEqual(["intent", "result"], [e["payload"]["phase"] for e in both])
            self.assertEqual([of, of], [e.get("on_behalf_of") for e in both])
        for of, key in ((subject("u2"), "a"), (None, "a"), (subject("u1"), "b")):
            with self.assertRaises(KeyReused):
                self.act(of, key)


if __name__ == "__main__":
    unittest.main()
