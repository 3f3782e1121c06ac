"""httpx: transports that guard each request of an httpx client, which is sent only if it is allowed.

    with httpx.Client(transport=GuardedTransport(ledger)) as web:
        web.post("https://bank.example/refunds", json={"order": "A-1009"}, headers={"Idempotency-Key": "refund-A-1009"})

A request is an act of the tool http.<method>, whose payload has method, host, path, query and the SHA-256 of the body.
A request with an Idempotency-Key is made once; it is not repeated, and its answer is not stored. An approved request
has the grant in the header Agentledger-Grant and the approved payload in Agentledger-Call, both in base64. With
Options(receipt=True) every other request has its intent in Agentledger-Intent, and its payload in Agentledger-Call.
Redirects are separate requests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any, cast

import httpx

from .._aio import AsyncClient
from .._client import Client
from .._errors import LedgerError, Malformed
from .._intents import Disclosed, Options, Permit
from ..verify._encoding import base64_bytes

MAX_BODY = 8 << 20
"""Maximum size of a body in bytes. The body is read into memory, because the decision covers all of it."""
GRANT_HEADER = "Agentledger-Grant"
CALL_HEADER = "Agentledger-Call"
INTENT_HEADER = "Agentledger-Intent"
RECEIPT_HEADER = "Agentledger-Receipt"
_MAX_RECEIPT = 4096

Describe = Callable[[httpx.Request, bytes], tuple[str, dict[str, Any]]]
"""Returns tool and payload of a request with its body."""


class Repeated(LedgerError):
    """The request was already made, and its answer is not stored."""


def describe_request(request: httpx.Request, body: bytes) -> tuple[str, dict[str, Any]]:
    """Return tool and payload of a request. The payload contains no headers, because headers contain secrets."""
    path, _, query = request.url.raw_path.decode("ascii").partition("?")
    payload = {
        "method": request.method,
        "host": request.url.netloc.decode("ascii"),
        "path": path,
        "query": query,
        "body_sha256": hashlib.sha256(body).hexdigest(),
    }
    return f"http.{request.method.lower()}", payload


def _act_of(request: httpx.Request, body: bytes, describe: Describe) -> tuple[str, dict[str, Any], str | None]:
    if len(body) > MAX_BODY:
        raise Malformed(f"the body is longer than {MAX_BODY} bytes")
    tool, payload = describe(request, body)
    once = request.headers.get("Idempotency-Key")
    key = None if once is None else f"{request.method} {request.url.copy_with(query=None, fragment=None)} {once}"
    return tool, payload, key


def _permitted(request: httpx.Request, body: bytes, permit: Permit) -> httpx.Request:
    headers = request.headers.copy()
    if permit.grant and permit.approved:
        headers[GRANT_HEADER] = base64.b64encode(permit.grant.encode()).decode()
        headers[CALL_HEADER] = base64.b64encode(permit.approved.encode()).decode()
    elif permit.intent and permit.payload:
        headers[INTENT_HEADER] = permit.intent
        headers[CALL_HEADER] = base64.b64encode(permit.payload.encode()).decode()
    extensions = cast("dict[str, Any]", request.extensions)  # pyright: ignore[reportUnknownMemberType]
    return httpx.Request(request.method, request.url, headers=headers, content=body, extensions=extensions)


def _described(answer: httpx.Response) -> object:
    """Return the output of an act. Its result has the tool's receipt, which whoever knows the tool's key can check."""
    output = {"status_code": answer.status_code}
    header = answer.headers.get(RECEIPT_HEADER, "")
    raw = base64_bytes(header) if 0 < len(header) <= _MAX_RECEIPT else None
    try:
        return output if raw is None else Disclosed(output, {"receipt": raw.decode()})
    except UnicodeDecodeError:
        return output


class GuardedTransport(httpx.BaseTransport):
    """A transport of httpx.Client. Errors are those of Client.act, Repeated, and those of the underlying transport."""

    def __init__(
        self,
        ledger: Client,
        below: httpx.BaseTransport | None = None,
        describe: Describe = describe_request,
        options: Options = Options(),
    ) -> None:
        self._ledger = ledger
        self._below = below or httpx.HTTPTransport()
        self._describe = describe
        self._options = options

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Make a request if it is allowed."""
        body = request.read()
        answers: list[httpx.Response] = []

        def do(permit: Permit) -> object:
            answers.append(self._below.handle_request(_permitted(request, body, permit)))
            return _described(answers[0])

        tool, payload, key = _act_of(request, body, self._describe)
        self._ledger.act(tool, payload, do, key=key, options=self._options)
        if not answers:
            raise Repeated("the request was made before")
        return answers[0]

    def close(self) -> None:
        """Close the underlying transport. The ledger's client stays open."""
        self._below.close()


class AsyncGuardedTransport(httpx.AsyncBaseTransport):
    """The same for httpx.AsyncClient."""

    def __init__(
        self,
        ledger: AsyncClient,
        below: httpx.AsyncBaseTransport | None = None,
        describe: Describe = describe_request,
        options: Options = Options(),
    ) -> None:
        self._ledger = ledger
        self._below = below or httpx.AsyncHTTPTransport()
        self._describe = describe
        self._options = options

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Make a request if it is allowed."""
        body = await request.aread()
        answers: list[httpx.Response] = []

        async def do(permit: Permit) -> object:
            answers.append(await self._below.handle_async_request(_permitted(request, body, permit)))
            return _described(answers[0])

        tool, payload, key = _act_of(request, body, self._describe)
        await self._ledger.act(tool, payload, do, key=key, options=self._options)
        if not answers:
            raise Repeated("the request was made before")
        return answers[0]

    async def aclose(self) -> None:
        """Close the underlying transport. The ledger's client stays open."""
        await self._below.aclose()
