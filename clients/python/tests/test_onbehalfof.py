"""The subject: both events of an act are signed with it, and a key is for one subject."""

from __future__ import annotations

import json
import unittest
from collections.abc import Callable
from typing import Any

from fakeservice import FakeService, accept, answer
from harness import HERE

from agentledger import Client, KeyReused, Options, Retry, Unreachable

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

    def sent_with(self, token: Callable[[], str | None], *events: dict[str, Any]) -> list[str]:
        before = len(self.service.requests)
        with Client(**self.service.settings(), retry=Retry(attempts=1), subject_token=token) as client:
            for event in events:
                client.send(event)
        return [headers.get("Agentledger-Subject-Token", "") for _, _, _, headers in self.service.requests[before:]]

    def test_tokens(self) -> None:
        event = {"action_kind": "tool_call", "payload": {}, "on_behalf_of": subject("u1")}
        tokens = iter(("jwt-1", None))
        self.assertEqual(["jwt-1", ""], self.sent_with(lambda: next(tokens), event, event))
        with Client(**self.service.settings(), retry=Retry(attempts=1), subject_token=lambda: "jwt-2") as client:
            client.send_all([event, event])
        self.assertEqual({"jwt-2"}, {h.get("Agentledger-Subject-Token") for _, _, _, h in self.service.requests[2:]})
        before = len(self.service.requests)
        for token in ("a b", "a\n"):
            with self.assertRaises(Unreachable):
                self.sent_with(lambda token=token: token, event)
        self.assertEqual(before, len(self.service.requests))

    def test_questions(self) -> None:
        before = len(self.service.requests)
        self.service.script = lambda *_: answer(200, {"decision": "allow"})
        with Client(**self.service.settings(), retry=Retry(attempts=1), subject_token=lambda: "jwt-1") as client:
            for of in (None, subject("u1")):
                client.evaluate("acme.refund", on_behalf_of=of)
        asked = [
            (json.loads(body).get("on_behalf_of"), headers.get("Agentledger-Subject-Token"))
            for _, _, body, headers in self.service.requests[before:]
        ]
        self.assertEqual([(None, None), (subject("u1"), "jwt-1")], asked)

    def test_no_session(self) -> None:
        def fail() -> str:
            raise KeyError("session")

        with self.assertRaises(Unreachable):
            self.sent_with(fail, {"action_kind": "tool_call", "payload": {}})
        self.assertEqual([], self.service.requests)


if __name__ == "__main__":
    unittest.main()
