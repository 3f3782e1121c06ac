"""The vectors of testdata/grants.json against real servers: Starlette and FastAPI below uvicorn."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import socket
import threading
import time
import tracemalloc
import unittest
from datetime import datetime
from typing import Any

import fastapi
import harness
import starlette.applications
import starlette.responses
import uvicorn

from agentledger import LedgerError, Unproved
from agentledger.grants import MAX_BODY, MAX_USED, GrantMiddleware, Grants, _Refusal, _Used, open_receipt

VECTORS = json.loads((harness.REPOSITORY / "testdata" / "grants.json").read_text("utf-8"))


NAMES = "organization_id agent_id tool_name action_digest approval_id nonce intent_event_id status at".split()


def milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def subject_of(scope: Any) -> Any:
    text = dict(scope["headers"]).get(b"x-subject")
    return None if text is None else json.loads(text)


def body_of(vector: dict[str, Any]) -> bytes:
    if "body_size" in vector:
        return b" " * vector["body_size"]
    return base64.b64decode(vector["body_b64"]) if "body_b64" in vector else vector.get("body", "").encode()


class Clock:
    def __init__(self) -> None:
        self.now = milliseconds(VECTORS["start"])

    def __call__(self) -> int:
        return self.now


def answer_of(scope: Any, body: bytes) -> dict[str, str]:
    grant = scope.get("agentledger.grant")
    if grant is None:
        return {}
    return {"agent": grant.agent, "approval": grant.approval_id, "body": base64.b64encode(body).decode()}


def starlette_app(grants: Grants) -> Any:
    async def endpoint(request: Any) -> Any:
        return starlette.responses.JSONResponse(answer_of(request.scope, await request.body()))

    app = starlette.applications.Starlette()
    app.add_route("/{path:path}", endpoint, methods=["GET", "POST", "PUT", "DELETE"])
    app.add_middleware(GrantMiddleware, grants=grants)
    return app


def fastapi_app(grants: Grants) -> Any:
    app = fastapi.FastAPI()

    async def endpoint(request: Any) -> Any:
        return answer_of(request.scope, await request.body())

    endpoint.__annotations__ = {"request": fastapi.Request}
    app.api_route("/{path:path}", methods=["GET", "POST", "PUT", "DELETE"])(endpoint)
    app.add_middleware(GrantMiddleware, grants=grants)
    return app


class Served:
    """An application below uvicorn."""

    def __init__(self, app: Any) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve([self.socket])))
        self.thread.start()
        while not self.server.started:
            time.sleep(0.005)

    def send(self, vector: dict[str, Any]) -> tuple[int, str | None, bytes]:
        """Send a request byte by byte as the vector has it."""
        body = body_of(vector)
        head = [f"{vector['method']} {vector['target']} HTTP/1.1", "Host: shop.example", "Connection: close"]
        head += [f"Content-Length: {len(body)}"] + [f"{name}: {value}" for name, value in vector["headers"]]
        with socket.create_connection(self.socket.getsockname()) as link:
            sent = b"" if vector["status"] == 413 else body  # the announced length is refused before the body
            link.sendall("\r\n".join([*head, "", ""]).encode() + sent)
            with link.makefile("rb") as answer:
                top, _, rest = answer.read().partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in top.decode().split("\r\n")[1:])
        return int(top.split(b" ")[1]), headers.get("agentledger-receipt"), rest

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()


class InServersTest(unittest.TestCase):
    def check(self, app: Any) -> None:
        clock = Clock()
        key = VECTORS["receipt_key"]
        signs = (key["name"], key["seed_b64"])
        grants = Grants(**VECTORS["config"], now=clock, receipts=signs, on_behalf_of=subject_of)
        self.assertEqual(grants.receipt_key, key["vkey"])
        served = Served(app(grants))
        self.addCleanup(served.close)
        for vector in VECTORS["cases"]:
            clock.now = milliseconds(vector["now"])
            status, receipt, text = served.send(vector)
            self.assertEqual(receipt, vector.get("receipt_b64"), vector["name"])
            want: dict[str, str] = {}
            if vector["status"] != 200:
                want = {"error": vector["error"], "code": vector["code"]}
            elif "agent" in vector:
                sent = base64.b64encode(body_of(vector)).decode()
                want = {"agent": vector["agent"], "approval": vector["approval"], "body": sent}
            self.assertEqual((status, json.loads(text)), (vector["status"], want), vector["name"])

    def test_starlette(self) -> None:
        self.check(starlette_app)

    def test_fastapi(self) -> None:
        self.check(fastapi_app)


class GrantsTest(unittest.TestCase):
    def test_receipts(self) -> None:
        corpus = json.loads((harness.REPOSITORY / "testdata" / "receipts.json").read_text("utf-8"))
        for vector in corpus["receipts"]:
            with self.subTest(vector["name"]):
                note = base64.b64decode(vector["note_b64"])
                if vector["verdict"] == "refuse":
                    self.assertRaises(Unproved, open_receipt, note, corpus["key"])
                    continue
                receipt = open_receipt(note, corpus["key"])
                want = {**vector["expect"], "at": milliseconds(vector["expect"]["at"])}
                self.assertEqual(list(dataclasses.astuple(receipt)), [want[name] for name in NAMES])
                self.assertTrue(note.decode().startswith(receipt.text()))
        self.assertRaises(LedgerError, Grants, **VECTORS["config"], receipts=("two words", bytes(32)))

    def test_bad_configurations(self) -> None:
        Grants(**VECTORS["config"])
        for bad in VECTORS["bad_configs"]:
            with self.subTest(bad["name"]), self.assertRaises((LedgerError, TypeError)):
                Grants(**bad["config"])

    def test_example_of_the_document(self) -> None:
        document = (harness.REPOSITORY / "docs" / "guides" / "grants-at-the-tool.md").read_text("utf-8")
        source = document.split("```python\n")[1].split("```")[0]
        app = fastapi.FastAPI()
        exec(source, {"KEY": VECTORS["config"]["keys"][0], "app": app})
        served = Served(app)
        self.addCleanup(served.close)
        status, _, text = served.send({"method": "POST", "target": "/refunds", "headers": [], "status": 403})
        self.assertEqual((status, json.loads(text)["code"]), (403, "grant_required"))

    def test_memory_is_bounded(self) -> None:
        tracemalloc.start()
        used = _Used()
        for number in range(MAX_USED):
            used.claim(f"{number:032x}", 1000 + number, 0)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertLess(size, 16 << 20)

        def claim(number: int, not_after: int, now: int) -> tuple[Any, ...]:
            try:
                used.claim(f"{number:032x}", not_after, now)
            except _Refusal as refusal:
                return refusal.status, refusal.code, refusal.retry_after
            return ()

        self.assertEqual(claim(MAX_USED, 300_000, 1), (503, "full", 1))
        self.assertEqual(claim(0, 1000, 999), (403, "used", None))
        self.assertEqual(claim(MAX_USED, 300_000, 1000), ())
        self.assertEqual(claim(0, 1000, 999), (403, "expired", None))  # the clock went back
        used.release(f"{1:032x}")
        self.assertEqual(claim(MAX_USED + 1, 300_000, 1000), ())
        self.assertEqual(len(used), MAX_USED)

    def test_body_is_bounded(self) -> None:
        vector = next(v for v in VECTORS["cases"] if "agent" in v and v["method"] == "POST")
        headers = [(name.lower().encode(), value.encode()) for name, value in vector["headers"]]
        target = {"method": "POST", "raw_path": vector["target"].encode(), "query_string": b""}
        scope = {"type": "http", **target, "headers": headers}
        read = 0
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            nonlocal read
            read += 1 << 16
            self.assertLess(read, 4 * MAX_BODY)
            return {"type": "http.request", "body": b" " * (1 << 16), "more_body": True}

        async def send(message: Any) -> None:
            sent.append(message)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            self.fail("reached")

        clock = Clock()
        middleware = GrantMiddleware(app, Grants(**VECTORS["config"], now=clock))
        clock.now = milliseconds(vector["now"])
        asyncio.run(middleware(scope, receive, send))
        self.assertEqual(sent[0]["status"], 413)
        self.assertGreater(read, MAX_BODY)

    def test_websockets_are_refused(self) -> None:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            self.fail("reached")

        asyncio.run(GrantMiddleware(app, Grants(**VECTORS["config"]))({"type": "websocket"}, receive, send))
        self.assertEqual(sent, [{"type": "websocket.close", "code": 1008}])


if __name__ == "__main__":
    unittest.main()
