"""The adapters: each against a stand-in for its framework that follows the published protocol, and httpx itself."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import sys
import types
import unittest
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import httpx
from fakeservice import FakeService, Reply, accept, answer, stored
from harness import HERE

from agentledger import AsyncClient, Client, Denied, NotDecided, Retry, canonical_bytes

assert HERE  # the harness puts the package on the path

FAST = Retry(attempts=1)


def by_tool(method: str, path: str, body: bytes) -> Reply:
    """Answer like a service that denies tools whose name ends in delete."""
    if path.endswith("/events") and json.loads(body)["tool_name"].endswith("delete"):
        return answer(201, stored(body, policy_decision="deny", reason="Not yours"))
    return accept(method, path, body)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.service = FakeService(by_tool)
        self.addCleanup(self.service.close)

    def client(self) -> Client:
        client = Client(**self.service.settings(), retry=FAST)
        self.addCleanup(client.close)
        return client

    def events(self, phase: str) -> list[dict[str, Any]]:
        lines = [x for _, path, body, _ in self.service.requests if "/events" in path for x in body.splitlines()]
        events = {e["event_id"]: e for e in map(json.loads, lines)}
        return [e for e in events.values() if e["payload"].get("phase") == phase]


@dataclass
class ToolMessage:
    content: str
    tool_call_id: str
    name: str = ""
    status: str = "success"


def langchain_modules() -> dict[str, types.ModuleType]:
    middleware, messages = types.ModuleType("langchain.agents.middleware"), types.ModuleType("langchain_core.messages")
    middleware.AgentMiddleware = type("AgentMiddleware", (), {})  # type: ignore[attr-defined]
    messages.ToolMessage = ToolMessage  # type: ignore[attr-defined]
    names = ("langchain", "langchain.agents", "langchain_core")
    parents = {name: types.ModuleType(name) for name in names}
    return {**parents, "langchain.agents.middleware": middleware, "langchain_core.messages": messages}


def tool_request(name: str, **args: Any) -> Any:
    return types.SimpleNamespace(tool_call={"name": name, "args": args, "id": f"call_{name}"})


class LangChain(Case):
    def test_calls_are_guarded_and_refusals_are_messages(self) -> None:
        with mock.patch.dict(sys.modules, langchain_modules()):
            from agentledger.adapters.langchain import guard_tools

            client = self.client()
            guard = guard_tools(client, name=lambda n: f"acme.{n}", key=lambda r: r.tool_call["id"])
            ran: list[str] = []

            def handler(request: Any) -> ToolMessage:
                ran.append(request.tool_call["name"])
                return ToolMessage("refunded", request.tool_call["id"])

            for _ in range(2):
                reply = guard.wrap_tool_call(tool_request("refund", order="A-1"), handler)
                self.assertEqual(("refunded", "success"), (reply.content, reply.status))
            denied = guard.wrap_tool_call(tool_request("delete"), handler)
            self.assertEqual(("error", "call_delete"), (denied.status, denied.tool_call_id))
            self.assertIn("Not yours", denied.content)
            self.assertEqual(["refund"], ran)
            client.flush()
        self.assertEqual("A-1", self.events("intent")[0]["payload"]["order"])
        self.assertEqual(["ok"], [e["payload"]["status"] for e in self.events("result")])

    def test_asyncio(self) -> None:
        async def use() -> None:
            from agentledger.adapters.langchain import guard_tools

            async with AsyncClient(**self.service.settings(), retry=FAST) as client:
                guard = guard_tools(client, name=lambda n: f"acme.{n}")

                async def handler(request: Any) -> ToolMessage:
                    return ToolMessage("read", request.tool_call["id"])

                self.assertEqual("read", (await guard.awrap_tool_call(tool_request("read"), handler)).content)
                self.assertEqual("error", (await guard.awrap_tool_call(tool_request("delete"), handler)).status)
                with self.assertRaises(TypeError):
                    guard.wrap_tool_call(tool_request("read"), handler)

        with mock.patch.dict(sys.modules, langchain_modules()):
            asyncio.run(use())


    def test_a_graph_is_interrupted_until_approvers_have_voted(self) -> None:
        """A stand-in for langgraph.types.interrupt raises until the graph is resumed, as often as it was resumed."""
        approval = {"approval_id": "apr_1", "status": "pending", "action_digest": ""}

        def script(method: str, path: str, body: bytes) -> Reply:
            if path.endswith("/consume"):
                return answer(200, {"status": "consumed", "grant": "a grant"})
            if "/approvals/" in path:
                return answer(200, approval)
            if path.endswith("/events"):
                e = json.loads(body)
                action = {n: e[n] for n in ("agent_id", "organization_id", "payload", "tool_name")}
                approval["action_digest"] = hashlib.sha256(canonical_bytes({**action, "v": 1})).hexdigest()
                return answer(201, stored(body, policy_decision="allow_with_obligation", approval=approval))
            return accept(method, path, body)

        class Interrupted(Exception):
            pass

        self.service.script = script
        waiting: list[Any] = []
        resumed = 0

        def interrupt(value: Any) -> str:
            nonlocal seen
            waiting.append(value)
            seen += 1
            if seen > resumed:
                raise Interrupted
            return "resumed"

        ran: list[str] = []

        def handler(request: Any) -> ToolMessage:
            ran.append(request.tool_call["name"])
            return ToolMessage("refunded", request.tool_call["id"])

        with mock.patch.dict(sys.modules, langchain_modules()):
            from agentledger.adapters.langchain import guard_tools

            client = self.client()
            with self.assertRaisesRegex(TypeError, "requires a key"):
                guard_tools(client, interrupt=interrupt)
            guard = guard_tools(
                client, name=lambda n: f"acme.{n}", key=lambda r: r.tool_call["id"], interrupt=interrupt
            )
            for resumed in range(3):
                seen = 0
                with self.assertRaises(Interrupted):
                    guard.wrap_tool_call(tool_request("refund", order="A-1"), handler)
                page = f"{self.service.url}/console/approvals/apr_1"
                expected = ("apr_1", page, "acme.refund")
                self.assertEqual(expected, tuple(waiting[-1][n] for n in ("approval_id", "url", "tool")))
            self.assertEqual([], ran)
            approval["status"] = "approved"
            seen = 0
            self.assertEqual("refunded", guard.wrap_tool_call(tool_request("refund", order="A-1"), handler).content)
            approval["status"] = "pending"

            async def use() -> None:
                async with AsyncClient(**self.service.settings(), retry=FAST) as tasks:
                    middleware = guard_tools(tasks, key=lambda r: r.tool_call["id"], interrupt=interrupt)
                    with self.assertRaises(Interrupted):
                        await middleware.awrap_tool_call(tool_request("read"), handler)

            resumed = seen = 0
            asyncio.run(use())
        self.assertEqual((["refund"], 2), (ran, len(self.events("intent"))))


@dataclass
class GuardrailOutput:
    behavior: dict[str, Any] = field(default_factory=lambda: {"type": "allow"})

    @classmethod
    def allow(cls) -> GuardrailOutput:
        return cls()

    @classmethod
    def reject_content(cls, message: str) -> GuardrailOutput:
        return cls({"type": "reject_content", "message": message})


def agents_module() -> types.ModuleType:
    module = types.ModuleType("agents")
    module.ToolGuardrailFunctionOutput = GuardrailOutput  # type: ignore[attr-defined]
    module.tool_input_guardrail = lambda function: function  # type: ignore[attr-defined]
    module.tool_output_guardrail = lambda function: function  # type: ignore[attr-defined]
    return module


class OpenAIAgents(Case):
    def test_guardrails_ask_before_and_report_after(self) -> None:
        async def call(before: Any, after: Any, tool: str, arguments: str) -> dict[str, Any]:
            context = types.SimpleNamespace(tool_name=tool, tool_arguments=arguments, tool_call_id="call_1")
            reply = await before(types.SimpleNamespace(context=context, agent=None))
            if reply.behavior["type"] == "allow":
                await after(types.SimpleNamespace(context=context, agent=None, output="refunded"))
            behavior: dict[str, Any] = reply.behavior
            return behavior

        async def use() -> None:
            from agentledger.adapters.openai_agents import guard_tool

            async with AsyncClient(**self.service.settings(), retry=FAST) as client:
                before, after = guard_tool(client, name=lambda n: f"acme.{n}")
                self.assertEqual({"type": "allow"}, await call(before, after, "refund", '{"order":"A-1"}'))
                denied = await call(before, after, "delete", "")
                self.assertEqual("reject_content", denied["type"])
                self.assertIn("Not yours", denied["message"])
                self.assertEqual("reject_content", (await call(before, after, "refund", "no JSON"))["type"])
                self.assertEqual("reject_content", (await call(before, after, "refund", "[1]"))["type"])

        with mock.patch.dict(sys.modules, {"agents": agents_module()}):
            asyncio.run(use())
        self.assertEqual(["acme.refund", "acme.delete"], [e["tool_name"] for e in self.events("intent")])
        self.assertEqual(["ok"], [e["payload"]["status"] for e in self.events("result")])


class Crew:
    """A stand-in for crewai.hooks and for the part of a crew that calls a tool."""

    def __init__(self) -> None:
        self.before: list[Any] = []
        self.after: list[Any] = []
        self.module = types.ModuleType("crewai")
        hooks = types.ModuleType("crewai.hooks")
        for name in ("before", "after"):
            setattr(hooks, f"register_{name}_tool_call_hook", getattr(self, name).append)
            setattr(hooks, f"unregister_{name}_tool_call_hook", getattr(self, name).remove)
        self.module.hooks = hooks  # type: ignore[attr-defined]
        self.modules = {"crewai": self.module, "crewai.hooks": hooks}

    def call(self, tool: str, **tool_input: Any) -> str:
        """Call a tool as a crew does; the hooks after the call run for blocked calls too."""
        context = types.SimpleNamespace(tool_name=tool, tool_input=tool_input, tool_result=None)
        blocked = any(hook(context) is False for hook in self.before)
        result = f"Tool execution blocked by hook. Tool: {tool}" if blocked else "refunded"
        after = types.SimpleNamespace(tool_name=tool, tool_input=tool_input, tool_result=result)
        for hook in self.after:
            result = hook(after) or result
        return result


class CrewAI(Case):
    def test_hooks_block_and_report(self) -> None:
        crew = Crew()
        with mock.patch.dict(sys.modules, crew.modules):
            from agentledger.adapters.crewai import guard_tools

            client = self.client()
            refused: list[tuple[str, Any]] = []
            unregister = guard_tools(
                client, name=lambda n: f"acme.{n}", on_refused=lambda tool, why: refused.append((tool, why))
            )
            self.assertEqual("refunded", crew.call("refund", order="A-1"))
            self.assertIn("blocked", crew.call("delete", customer=1))
            self.assertEqual("delete", refused[0][0])
            self.assertIsInstance(refused[0][1], Denied)
            unregister()
            self.assertEqual(([], []), (crew.before, crew.after))
            with guard_tools(client):
                self.assertEqual((1, 1), (len(crew.before), len(crew.after)))
            self.assertEqual(([], []), (crew.before, crew.after))
            client.flush()
        self.assertEqual(["ok"], [e["payload"]["status"] for e in self.events("result")])


class Httpx(Case):
    def test_requests_are_acts_and_made_once(self) -> None:
        from agentledger.adapters.httpx import GuardedTransport, Repeated

        made: list[httpx.Request] = []

        def bank(request: httpx.Request) -> httpx.Response:
            made.append(request)
            return httpx.Response(200, json={"paid": True}, headers={"Agentledger-Receipt": "bm90ZSDDqQ=="})

        client = self.client()
        with httpx.Client(transport=GuardedTransport(client, httpx.MockTransport(bank))) as web:
            once = {"Idempotency-Key": "refund-1", "Authorization": "Bearer of-the-bank"}
            reply = web.post("https://bank.example/refunds?dry=1", json={"order": "A-1"}, headers=once)
            self.assertEqual({"paid": True}, reply.json())
            with self.assertRaises(Repeated):
                web.post("https://bank.example/refunds?dry=1", json={"order": "A-1"}, headers=once)
            with self.assertRaises(Denied):
                web.delete("https://bank.example/refunds/1")
        client.flush()
        self.assertEqual(["POST"], [request.method for request in made])
        self.assertEqual(b'{"order": "A-1"}', made[0].read())
        intent = self.events("intent")[0]
        self.assertEqual("http.post", intent["tool_name"])
        self.assertEqual(
            ("bank.example", "/refunds", "dry=1"), tuple(intent["payload"][n] for n in ("host", "path", "query"))
        )
        self.assertNotIn("of-the-bank", json.dumps(intent))
        self.assertEqual("note \u00e9", self.events("result")[0]["payload"]["receipt"])

    def test_a_request_without_an_approval_asks_for_a_receipt(self) -> None:
        from agentledger import Options
        from agentledger.adapters.httpx import AsyncGuardedTransport
        from agentledger.grants import GrantMiddleware, Grants
        from agentledger.verify._keys import parse_log_key
        from agentledger.verify._receipts import action_of, confirm_act, find_receipt

        self.service.script = accept
        routes: Any = [{"route": "POST *", "host": "shop.example", "optional": True}]
        grants = Grants([], routes, receipts=("did:web:shop.example", bytes(32)))
        seen: list[set[bytes]] = []

        async def shop(scope: Any, receive: Any, send: Any) -> None:
            seen.append({name for name, _ in scope["headers"]} & {b"agentledger-intent", b"agentledger-call"})
            self.assertNotIn("agentledger.grant", scope)
            body = (await receive())["body"]
            await send({"type": "http.response.start", "status": 201, "headers": []})
            await send({"type": "http.response.body", "body": body})

        below = httpx.ASGITransport(app=GrantMiddleware(shop, grants))

        async def post(options: Options) -> None:
            async with AsyncClient(**self.service.settings(), retry=FAST) as client:
                transport = AsyncGuardedTransport(client, below, options=options)
                async with httpx.AsyncClient(transport=transport) as web:
                    reply = await web.post("https://shop.example/orders", content=b"seven")
                    self.assertEqual((201, b"seven"), (reply.status_code, reply.content))
                await client.flush()

        asyncio.run(post(Options()))
        asyncio.run(post(Options(receipt=True)))
        self.assertEqual([set(), {b"agentledger-intent", b"agentledger-call"}], seen)
        intents, results = self.events("intent"), self.events("result")
        self.assertEqual([None, True], [find_receipt(e) and True for e in results])
        key = parse_log_key(grants.receipt_key or "")
        confirmed = confirm_act(results[1], intents[1]["event_id"], action_of(intents[1]), [key])
        self.assertEqual(("did:web:shop.example", 201, None), (confirmed.by, confirmed.status, confirmed.approval_id))

    def test_an_approved_request_carries_its_grant(self) -> None:
        from agentledger.adapters.httpx import AsyncGuardedTransport

        grant = "agentledger/grant/v1\no\napr_1\na\nd\np\n" + "ab" * 16 + "\nf\nt\n\n\u2014 o/grant AAAA\n"
        approval = {"approval_id": "apr_1", "status": "approved", "action_digest": "0" * 64}

        def approve(method: str, path: str, body: bytes) -> Reply:
            if path.endswith("/consume"):
                return answer(200, {"status": "consumed", "grant": grant})
            if path.endswith("/events"):
                e = json.loads(body)
                action = {n: e[n] for n in ("agent_id", "organization_id", "payload", "tool_name")}
                digest = hashlib.sha256(canonical_bytes({**action, "v": 1})).hexdigest()
                asked = {**approval, "action_digest": digest}
                return answer(201, stored(body, policy_decision="allow_with_obligation", approval=asked))
            return accept(method, path, body)

        self.service.script = approve
        grants: list[str] = []

        async def bank(request: httpx.Request) -> httpx.Response:
            call = json.loads(base64.b64decode(request.headers["Agentledger-Call"]))
            self.assertEqual(("/refunds", "intent"), (call["path"], call["phase"]))
            grants.append(base64.b64decode(request.headers["Agentledger-Grant"]).decode())
            return httpx.Response(200)

        async def use() -> None:
            async with AsyncClient(**self.service.settings(), retry=FAST) as ledger:
                transport = AsyncGuardedTransport(ledger, httpx.MockTransport(bank))
                async with httpx.AsyncClient(transport=transport) as web:
                    self.assertEqual(200, (await web.post("https://bank.example/refunds")).status_code)
                await ledger.flush()

        asyncio.run(use())
        self.assertEqual([grant], grants)
        result = self.events("result")[0]["payload"]
        self.assertEqual(("apr_1", "ab" * 16), (result["approval_id"], result["grant_nonce"]))

    def test_no_decision_makes_no_request(self) -> None:
        from agentledger.adapters.httpx import GuardedTransport

        self.service.script = lambda *_: answer(500, {"error": "Internal error"})
        transport = GuardedTransport(self.client(), httpx.MockTransport(lambda request: self.fail("it was made")))
        with httpx.Client(transport=transport) as web, self.assertRaises(NotDecided):
            web.get("https://bank.example/")


if __name__ == "__main__":
    unittest.main()
