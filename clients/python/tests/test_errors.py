"""Errors about an event name it, and what is not set is None."""

from __future__ import annotations

import asyncio
import inspect
import json
import unittest
from collections.abc import Callable
from typing import Any, get_type_hints

import harness  # noqa: F401  (the path of the package)
from fakeservice import FakeService, Reply, accept, answer, stored

import agentledger
from agentledger import AsyncClient, Client, Journal, LedgerError, Overflow, Refused, Retry, verify

ONCE = Retry(attempts=1)
EVENT: agentledger.Event = {"action_kind": "tool_call", "event_id": "evt-1", "payload": {"n": 1}}


class EventIDs(unittest.TestCase):
    def service(self, script: Callable[[str, str, bytes], Reply]) -> FakeService:
        service = FakeService(script)
        self.addCleanup(service.close)
        return service

    def test_sending(self) -> None:
        for name, script in {
            "refused": lambda *_: answer(422, {"error": "No", "request_id": "r"}, X_Request_Id="r"),
            "a page": lambda *_: (404, {}, b"<html>"),
            "no answer": lambda *_: None,
            "another form": lambda *_: (200, {}, b"[]"),
        }.items():
            service = self.service(script)
            with self.subTest(name), Client(**service.settings(), retry=ONCE) as c:
                with self.assertRaises(LedgerError) as raised:
                    c.send(EVENT)
                self.assertEqual("evt-1", raised.exception.event_id)
                outcomes = c.send_all([EVENT, {**EVENT, "event_id": "evt-2"}])
                self.assertEqual(["evt-1", "evt-2"], [getattr(why, "event_id", None) for why in outcomes])

            async def use() -> None:
                async with AsyncClient(**service.settings(), retry=ONCE) as tasks:
                    await tasks.send(EVENT)

            with self.subTest(name), self.assertRaises(LedgerError) as raised:
                asyncio.run(use())
            self.assertEqual("evt-1", raised.exception.event_id)

    def test_before_sending(self) -> None:
        service = self.service(accept)
        with Client(**service.settings(), max_queued=0) as c:
            for call in (c.send, c.queue):
                with self.assertRaises(Overflow) as full:
                    call(EVENT)
                self.assertEqual("evt-1", full.exception.event_id)
            with self.assertRaises(LedgerError) as malformed:
                c.sign({**EVENT, "payload": {"a": 1 << 60}})
            self.assertEqual("evt-1", malformed.exception.event_id)

    def test_guards(self) -> None:
        """Each error about an act names its intent, in both clients."""
        obligation = {"approval_id": "apr_1", "status": "pending", "action_digest": "0" * 64}
        replies: dict[str, Callable[[bytes], Reply]] = {
            "Denied": lambda body: answer(201, stored(body, policy_decision="deny", reason="no")),
            "NotDecided": lambda body: answer(500, {"error": "x"}),
            "NotDecided, another approval": lambda body: answer(
                201, stored(body, policy_decision="allow_with_obligation", approval=obligation)
            ),
        }
        for name, reply in replies.items():
            intents: list[str] = []

            def script(method: str, path: str, body: bytes) -> Reply:
                if not path.endswith("/events"):
                    return accept(method, path, body)
                intents.append(json.loads(body)["event_id"])
                return reply(body)

            service = self.service(script)
            with self.subTest(name), Client(**service.settings(), retry=ONCE) as c:
                self.check(name.split(",")[0], intents, lambda: c.act("acme.x", {}, self.fail))

            async def use() -> None:
                async with AsyncClient(**service.settings(), retry=ONCE) as tasks:
                    await tasks.act("acme.x", {}, self.fail)

            intents.clear()
            with self.subTest(name):
                self.check(name.split(",")[0], intents, lambda: asyncio.run(use()))

    def check(self, name: str, intents: list[str], call: Callable[[], object]) -> None:
        with self.assertRaises(LedgerError) as raised:
            call()
        self.assertEqual((name, intents[0]), (type(raised.exception).__name__, raised.exception.event_id))

    def test_acts_that_were_done_before(self) -> None:
        service = self.service(accept)
        with Client(**service.settings(), journal=Journal()) as c:
            with self.assertRaises(ZeroDivisionError):
                c.act("acme.x", {}, lambda permit: 1 / 0, key="k")
            intent = json.loads(service.requests[0][2])["event_id"]
            self.check("FailedBefore", [intent], lambda: c.act("acme.x", {}, self.fail, key="k"))
            self.check("KeyReused", [intent], lambda: c.act("acme.x", {"a": 1}, self.fail, key="k"))

    def test_what_is_not_set_is_none(self) -> None:
        service = self.service(lambda *_: (404, {}, b"<html>"))
        with Client(**service.settings(), retry=ONCE) as c, self.assertRaises(Refused) as raised:
            c.evaluate("acme.x")
        why = raised.exception
        self.assertEqual((None,) * 4, (why.code, why.request_id, why.retry_after, why.event_id))
        service.script = lambda *_: answer(200, {"decision": "allow"})
        with Client(**service.settings()) as c:
            decision = c.evaluate("acme.x")
        self.assertEqual((None,) * 3, (decision.policy_id, decision.rule_id, decision.reason))


class Signatures(unittest.TestCase):
    def test_editors_see_all_arguments(self) -> None:
        """No public method takes **kwargs, and each one has types."""
        parts: list[Any] = [Client, AsyncClient, Journal, verify, agentledger.Signer]
        with Client("http://127.0.0.1:1") as c:
            parts += [type(c.approvals), type(c.runs)]
        for part in parts:
            for name, member in inspect.getmembers(part, inspect.isfunction):
                if name.startswith("_") and name != "__init__":
                    continue
                with self.subTest(f"{part.__name__}.{name}"):
                    kinds = {p.kind for p in inspect.signature(member).parameters.values()}
                    self.assertNotIn(inspect.Parameter.VAR_KEYWORD, kinds)
                    self.assertIn("return", get_type_hints(member))

    def test_the_public_names_are_what_the_package_exports(self) -> None:
        public = {name for name in vars(agentledger) if not name.startswith("_")}
        self.assertEqual(set(agentledger.__all__) | {"verify", "adapters", "grants"}, public | {"adapters", "grants"})


if __name__ == "__main__":
    unittest.main()
