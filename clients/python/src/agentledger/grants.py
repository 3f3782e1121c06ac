"""Checks grants where the act happens: ASGI middleware for Starlette, FastAPI and others.

    grants = Grants(keys=[KEY], routes=[{"route": "POST /refunds", "tool": "shop.refund"}], open=["GET *"])
    app.add_middleware(GrantMiddleware, grants=grants)

A request for a declared tool reaches the application only with a grant for exactly this act, and only once. Requests
that are neither declared nor open are refused. The contract is docs/guides/grants-at-the-tool.md.

- No network and no file: the keys of the organization's grants are pinned.
- At most MAX_USED grants are remembered, and a body of at most MAX_BODY bytes is read for each unused grant.
- One event loop: several processes of one server each remember only their own grants.
"""

from __future__ import annotations

import json
import re
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypedDict

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ._canonical import MAX_DEPTH, canonical_text
from ._errors import LedgerError, Malformed
from ._exact import TAGGED, exact_text, recorded_members
from ._grammar import TOOL
from ._shapes import is_object
from ._signer import parse_seed
from ._strictjson import parse_exact, parse_object
from .verify._encoding import base64_bytes, base64_text
from .verify._flaw import Flaw
from .verify._keys import LOG_TYPE, VerifierKey, parse_log_key
from .verify._note import check_signed, parse_note
from .verify._receipts import TIME, Receipt, milliseconds
from .verify._receipts import open_receipt as open_receipt

MAX_BODY = 1 << 20
"""Maximum size of the body of a request with a grant, in bytes."""
MAX_USED = 1 << 16
"""Maximum number of grants that are remembered. Each is remembered for at most five minutes."""
_MAX_GRANT = 4096
_MAX_CALL = 64 << 10
_MAX_TARGET = 8 << 10
_MAX_ROUTES = 1000
_MAX_KEYS = 16
_LIFE = 300_000
_LEEWAY = 2000
"""By how much this machine's clock may be behind the service's, in milliseconds."""

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
SubjectOf = Callable[[Scope], Mapping[str, Any] | None]
"""Returns on whose behalf a request is made, according to the server."""
Describe = Callable[[Scope, bytes], Mapping[str, Any]]
"""Returns the arguments of a request with its body."""


class Route(TypedDict, total=False):
    """Declares the tool of requests. Exactly one of tool and host is set.

    route is "<METHOD> <path>", in which a segment {name} is a parameter; the path * is only for host and describe.
    tool is the tool_name: the arguments are the members of the JSON body and the parameters of the path, and a query
    is refused. host makes the request itself the act, as adapters.httpx describes it. describe returns the arguments
    of tool instead, and must cover everything in the request that the act depends on. optional passes requests without
    a grant on too; a grant that is sent is checked all the same.
    """

    route: str
    tool: str
    host: str
    describe: Describe
    optional: bool


@dataclass(frozen=True)
class Grant:
    """The signed permission that a request runs under. Times are in milliseconds since 1970."""

    origin: str
    approval_id: str
    agent: str
    action_digest: str
    policy_digest: str
    nonce: str
    not_before: int
    not_after: int


class _ReceiptKey:
    """Signs the receipts of a server."""

    def __init__(self, name: str, key: str | bytes) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(parse_seed(key, "key of receipts"))
        typed = bytes([LOG_TYPE]) + self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        key_id = sha256(name.encode() + b"\n" + typed).digest()[:4]
        try:
            self.verifier = parse_log_key(f"{name}+{key_id.hex()}+{base64_text(typed)}")
        except Flaw as why:
            raise LedgerError(f"grants: receipts: {why}") from None

    def note(self, receipt: Receipt) -> str:
        text = receipt.text()
        signature = base64_text(self.verifier.key_id + self._private.sign(text.encode()))
        return f"{text}\n\u2014 {self.verifier.name} {signature}\n"


class _Refusal(Exception):
    """The answer to a request that may not be made. Its text is the same in all languages."""

    def __init__(self, status: int, code: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after

    async def send(self, send: Send) -> None:
        body = json.dumps({"error": self.message, "code": self.code}, separators=(",", ":")).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"cache-control", b"no-store"),
            (b"content-length", str(len(body)).encode()),
        ]
        if self.retry_after is not None:
            headers.append((b"retry-after", str(self.retry_after).encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _other_action(of: str = "grant") -> _Refusal:
    return _Refusal(403, "other_action", f"The {of} is for another action")


def _no_object() -> _Refusal:
    return _Refusal(400, "bad_request", "The body must be a JSON object")


def _reserved_name() -> _Refusal:
    return _Refusal(400, "bad_request", "An argument has a reserved name or is there twice")


def _expired() -> _Refusal:
    return _Refusal(403, "expired", "The grant has expired")


def _too_large() -> _Refusal:
    return _Refusal(413, "too_large", "The body is too large")


_OWN = ("phase", "call_id", "salt", "input_digest")
_RESERVED = (*_OWN, TAGGED)
"""The members that a guard adds to a payload. No argument has such a name."""

_METHOD = re.compile(r"[A-Z]{1,32}", re.ASCII)
_LITERAL = re.compile(r"[A-Za-z0-9._~@-]+", re.ASCII)
_NAME = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]{0,63}\}", re.ASCII)
_VALUE = re.compile(r"(?:[A-Za-z0-9._~:@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+", re.ASCII)
_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]")
_MEDIA_TYPE = re.compile(r'application/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?', re.ASCII | re.IGNORECASE)
_ORGANIZATION = re.compile(
    r"/o/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:/(?:[2-9]|[1-9][0-9]{1,9}))?\Z", re.ASCII
)
_INTENT = re.compile(
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}) ([A-Za-z0-9._-]{1,128}) (?!\.\.?\Z)([A-Za-z0-9_.:-]{1,128})",
    re.ASCII,
)
_GRANT = re.compile(
    "agentledger/grant/v1\n([^\n]+)\n([a-z0-9_]{1,64})\n([A-Za-z0-9._-]{1,128})\n([0-9a-f]{64})\n([0-9a-f]{64})\n"
    "([0-9a-f]{32})\n" + TIME + TIME,
    re.ASCII,
)


@dataclass(frozen=True)
class _Compiled:
    """A route. segments is None for each path."""

    method: str
    segments: tuple[str, ...] | None
    tool: str = ""
    host: str = ""
    describe: Describe | None = None
    optional: bool = False

    def match(self, method: str, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the parameters of a path, or None if the request is another one."""
        if self.method != method:
            return None
        if self.segments is None:
            return {}
        if len(self.segments) != len(segments):
            return None
        parameters: dict[str, str] = {}
        for want, segment in zip(self.segments, segments):
            if want.startswith("{"):
                value = _segment_value(segment)
                if value is None:
                    return None
                parameters[want[1:-1]] = value
            elif want != segment:
                return None
        return parameters


def _segment_value(segment: str) -> str | None:
    """Decode a segment. Values that servers read in different ways are refused."""
    if not _VALUE.fullmatch(segment):
        return None
    try:
        value = urllib.parse.unquote(segment, errors="strict")
    except UnicodeDecodeError:
        return None
    return None if value in (".", "..") or _UNSAFE.search(value) else value


def _parse_route(text: str) -> _Compiled:
    def fail(why: str) -> LedgerError:
        return LedgerError(f"grants: route {text!r}: {why}")

    method, _, path = text.partition(" ")
    if not _METHOD.fullmatch(method):
        raise fail("must be a method, a space and a path")
    if path == "*":
        return _Compiled(method, None)
    if not path.startswith("/"):
        raise fail("the path must be * or begin with /")
    segments = path[1:].split("/")
    for number, segment in enumerate(segments if path != "/" else []):
        if _NAME.fullmatch(segment):
            if segment in segments[:number] or segment[1:-1] in _RESERVED:
                raise fail(f"the parameter {segment} is there twice or has a reserved name")
        elif not _LITERAL.fullmatch(segment) or segment in (".", ".."):
            raise fail("a segment must be {name} or of letters, digits and ._~@-")
    return _Compiled(method, tuple(segments))


def _compile(declared: Route) -> _Compiled:
    text = declared.get("route", "")
    unknown = sorted(declared.keys() - Route.__annotations__.keys())
    if unknown:
        raise LedgerError(f"grants: route {text!r}: the member {unknown[0]!r} is not known")
    plain = _parse_route(text)
    route = _Compiled(
        plain.method,
        plain.segments,
        declared.get("tool", ""),
        declared.get("host", ""),
        declared.get("describe"),
        declared.get("optional", False),
    )
    why = None
    if not isinstance(route.optional, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        why = "optional must be a boolean"
    elif bool(route.tool) == bool(route.host):
        why = "set either the tool or the host"
    elif route.tool and TOOL.fullmatch(route.tool) is None:
        why = "not the name of a tool"
    elif route.host and route.describe:
        why = "a host goes without a description"
    elif route.tool and route.segments is None and route.describe is None:
        why = "a tool without a description needs a path"
    if why:
        raise LedgerError(f"grants: route {text!r}: {why}")
    return route


def _as_get(method: str) -> str:
    """Servers answer HEAD by the handler of GET."""
    return "GET" if method == "HEAD" else method


def _compile_open(text: str, guarded: set[str]) -> _Compiled:
    """Compile an open route that reaches no declared one in another spelling."""
    route = _parse_route(text)
    parameters = any(segment.startswith("{") for segment in route.segments or ())
    if parameters or (route.segments is None and _as_get(route.method) in guarded):
        raise LedgerError(
            f"grants: open route {text!r}: must be a path without parameters, or * for a method without tools"
        )
    return route


@dataclass(frozen=True)
class _Key:
    key: VerifierKey
    origin: str
    organization: str


def _parse_key(text: str) -> _Key:
    try:
        key = parse_log_key(text)
    except Flaw as why:
        raise LedgerError(f"grants: keys: {why}") from None
    origin = key.name.removesuffix("/grant")
    found = _ORGANIZATION.search(origin)
    if origin == key.name or found is None:
        raise LedgerError("grants: keys: not a key of an organization's grants")
    return _Key(key, origin, found[1])


def _read_grant(text: str) -> Grant | None:
    """Parse exactly the text of a grant. A time that does not exist is a ValueError."""
    found = _GRANT.fullmatch(text)
    if found is None:
        return None
    origin, approval, agent, act, policy, nonce, begins, ends = found.groups()
    grant = Grant(origin, approval, agent, act, policy, nonce, milliseconds(begins), milliseconds(ends))
    return grant if 0 < grant.not_after - grant.not_before <= _LIFE else None


def _decode(text: str, most: int) -> bytes | None:
    """Decode base64 in its one spelling."""
    return base64_bytes(text) if len(text) <= most else None


class _Used:
    """Remembers the nonces of grants until they expire, in the order of use."""

    def __init__(self, most: int = MAX_USED) -> None:
        self._most = most
        self._entries: dict[str, int] = {}
        self._floor = 0  # the latest expiry of a grant that was forgotten

    def __len__(self) -> int:
        return len(self._entries)

    def claim(self, nonce: str, not_after: int, now: int) -> None:
        """Remember a grant, or raise a refusal. When the clock goes back, forgotten grants stay expired."""
        if nonce in self._entries:
            raise _Refusal(403, "used", "The grant was used before")
        earliest = now
        while self._entries:
            first = next(iter(self._entries))
            earliest = self._entries[first]
            if earliest > now:
                break
            self._floor = max(self._floor, earliest)
            del self._entries[first]
        if not_after <= self._floor:
            raise _expired()
        if len(self._entries) >= self._most:
            seconds = (earliest - now + 999) // 1000
            raise _Refusal(503, "full", "Too many grants are in use: repeat the request later", seconds)
        self._entries[nonce] = not_after

    def release(self, nonce: str) -> None:
        """Forget a grant whose act was not permitted, so that it can be used for its own act."""
        self._entries.pop(nonce, None)


@dataclass(frozen=True)
class _Request:
    """What the checks read of a request."""

    scope: Scope
    method: str
    path: str
    query: str

    @classmethod
    def of(cls, scope: Scope) -> _Request:
        raw: bytes | None = scope.get("raw_path")
        if raw is None:
            raise LedgerError("grants: the server gives no raw_path")
        return cls(scope, scope["method"], raw.decode("latin-1"), scope.get("query_string", b"").decode("latin-1"))

    def header(self, name: bytes) -> str:
        """Return all values of a header as one, so that a second one is never ignored."""
        return b", ".join(value for key, value in self.scope["headers"] if key.lower() == name).decode("latin-1")


@dataclass(frozen=True)
class Admitted:
    """A request that its grant permits, or one without a grant that states its intent."""

    grant: Grant | None
    organization: str
    agent: str
    intent: str | None
    tool: str
    action_digest: str
    body: bytes

    def receipt(self, status: int, at: int) -> Receipt:
        """Return what the tool states about the act."""
        approval, nonce = (self.grant.approval_id, self.grant.nonce) if self.grant else (None, None)
        act = (self.organization, self.agent, self.tool, self.action_digest)
        return Receipt(*act, approval, nonce, self.intent, status, at)


class Grants:
    """Checks the grants of a server's requests. Errors of the configuration are LedgerError.

    keys are the verifier keys of the grants, as transparency/keys lists them with the use grant; at most 16, and none
    only if all routes are optional. routes are the requests that need a grant; the first that matches counts. open
    are those that need none: "<METHOD> *" for a method without tools, "<METHOD> <path>" for a path without
    parameters. now returns the time in milliseconds. With receipts, the server's own name and seed (bytes or base64),
    answers to requests with a grant have a receipt, and on optional routes those with an intent. on_behalf_of returns
    on whose behalf a request is made (issuer, subject and actors) or None, according to the server itself: a grant
    for a subject is accepted for exactly this subject. Without it, only grants without a subject are accepted. A
    request for which it raises is refused.
    """

    def __init__(
        self,
        keys: Sequence[str],
        routes: Sequence[Route],
        open: Sequence[str] = (),
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        receipts: tuple[str, str | bytes] | None = None,
        on_behalf_of: SubjectOf | None = None,
    ) -> None:
        needed = any(route.get("optional") is not True for route in routes)
        if needed > len(keys) or len(keys) > _MAX_KEYS:
            raise LedgerError(f"grants: keys: 1 to {_MAX_KEYS} are needed")
        if not 0 < len(routes) <= _MAX_ROUTES or len(open) > _MAX_ROUTES:
            raise LedgerError(f"grants: routes: 1 to {_MAX_ROUTES} are needed, and at most as many open ones")
        self._keys = [_parse_key(text) for text in keys]
        self._routes = [_compile(route) for route in routes]
        guarded = {_as_get(route.method) for route in self._routes}
        self._open = [_compile_open(text, guarded) for text in open]
        self._now = now
        self._start = now()
        self._used = _Used()
        self._receipts = None if receipts is None else _ReceiptKey(*receipts)
        self._subject_of = on_behalf_of

    @property
    def receipt_key(self) -> str | None:
        """The verifier key of the receipts."""
        return None if self._receipts is None else str(self._receipts.verifier)

    async def admit(self, scope: Scope, receive: Receive) -> Admitted | None:
        """Return a request that is permitted, None for one that passes as it is, or raise a refusal."""
        request = _Request.of(scope)
        size = len(request.path) + len(request.query) + bool(request.query)
        if not request.path.startswith("/") or size > _MAX_TARGET:
            raise _Refusal(400, "bad_request", "The request target must be a path")
        segments = request.path[1:].split("/")
        matches = ((route, route.match(request.method, segments)) for route in self._routes)
        found = next(((route, given) for route, given in matches if given is not None), None)
        if found is None:
            if any(route.match(request.method, segments) is not None for route in self._open):
                return None
            raise _Refusal(403, "not_declared", "No tool is declared for this method and path")
        header = request.header(b"agentledger-grant")
        if found[0].optional and not header:
            intent = request.header(b"agentledger-intent")
            return await _admit_intent(request, *found, intent, receive) if intent and self._receipts else None
        grant, organization = self._open_grant(header)
        self._used.claim(grant.nonce, grant.not_after, self._now())
        try:
            tool, payload, body = await _read_act(request, *found, "grant", receive)
            act = organization, grant.agent, tool, payload
            if _digest(*act, self._subject(scope)) != grant.action_digest:
                raise _other_action()
            return Admitted(grant, organization, grant.agent, None, tool, _digest(*act), body)
        except BaseException:
            self._used.release(grant.nonce)
            raise

    def certified(self, admitted: Admitted, send: Send) -> Send:
        """Return a send that adds the receipt to an answer."""
        if self._receipts is None:
            return send
        note = self._receipts.note

        async def send_certified(message: Message) -> None:
            if message["type"] == "http.response.start" and 200 <= message["status"] <= 599:
                receipt = admitted.receipt(message["status"], self._now())
                header = (b"agentledger-receipt", base64_text(note(receipt).encode()).encode())
                message = {**message, "headers": [*message.get("headers", ()), header]}
            await send(message)

        return send_certified

    def _subject(self, scope: Scope) -> str | None:
        """Return the canonical text of the subject on whose behalf a request is made."""
        try:
            subject = None if self._subject_of is None else self._subject_of(scope)
            return None if subject is None else canonical_text(dict(subject))
        except Exception:
            raise _other_action() from None

    def _open_grant(self, text: str) -> tuple[Grant, str]:
        if not text:
            raise _Refusal(403, "grant_required", "This action needs a grant")
        try:
            opened = self._open_signed(text)
        except (Flaw, ValueError):
            opened = None
        if opened is None:
            raise _Refusal(403, "bad_grant", "The grant is malformed or is not signed by a known key")
        now, grant = self._now(), opened[0]
        if now >= grant.not_after:
            raise _expired()
        if now + _LEEWAY < grant.not_before:
            raise _Refusal(403, "not_yet", "The grant is not valid yet: compare the clocks")
        if grant.not_before <= self._start + _LEEWAY:
            text = "The grant is older than this process, which can't know whether it was used"
            raise _Refusal(403, "before_start", text)
        return opened

    def _open_signed(self, text: str) -> tuple[Grant, str] | None:
        raw = _decode(text, _MAX_GRANT)
        if raw is None:
            return None
        note = parse_note(raw)
        known = next((key for key in self._keys if note.line_of(key.key)), None)
        if known is None:
            return None
        check_signed(note, known.key)
        grant = _read_grant(note.text)
        return None if grant is None or grant.origin != known.origin else (grant, known.organization)


async def _admit_intent(
    request: _Request, route: _Compiled, parameters: Mapping[str, str], intent: str, receive: Receive
) -> Admitted:
    """Return a request without a grant. Organization, agent and intent are what it states."""
    stated = _INTENT.fullmatch(intent)
    if stated is None:
        raise _Refusal(400, "bad_request", "Agentledger-Intent must be an organization, an agent and an event")
    organization, agent, event = stated.groups()
    tool, payload, body = await _read_act(request, route, parameters, "intent", receive)
    return Admitted(None, organization, agent, event, tool, _digest(organization, agent, tool, payload), body)


async def _read_act(
    request: _Request,
    route: _Compiled,
    parameters: Mapping[str, str],
    of: str,
    receive: Receive,
) -> tuple[str, str, bytes]:
    """Return tool, payload and body of a request's act. of has the payload."""
    if request.header(b"content-encoding").lower() not in ("", "identity"):
        raise _Refusal(415, "unsupported_body", "Content-Encoding must be identity")
    body = await _read_body(request, receive)
    tool, arguments = _describe(request, route, parameters, body)
    try:
        payload = _event_text(recorded_members(arguments))
    except Malformed:
        raise _no_object() from None
    call = request.header(b"agentledger-call")
    if call:
        try:
            payload = _check_call(call, arguments)
        except (Malformed, ValueError):
            raise _other_action(of) from None
    return tool, payload, body


def _digest(organization: str, agent: str, tool: str, payload: str, subject: str | None = None) -> str:
    """Return the digest of an action. payload and subject are canonical texts."""
    behalf = "" if subject is None else f'"on_behalf_of":{subject},'
    organization, agent, tool = (canonical_text(text) for text in (organization, agent, tool))
    action = (
        f'{{"agent_id":{agent},{behalf}"organization_id":{organization},"payload":{payload},"tool_name":{tool},'
        f'"v":{2 if behalf else 1}}}'
    )
    return sha256(action.encode()).hexdigest()


async def _read_body(request: _Request, receive: Receive) -> bytes:
    length = request.header(b"content-length")
    if length.isdecimal() and int(length[:20]) > MAX_BODY:
        raise _too_large()
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Refusal(400, "bad_request", "The body could not be read")
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise _too_large()
        if not message.get("more_body", False):
            return bytes(body)


def _describe(
    request: _Request, route: _Compiled, parameters: Mapping[str, str], body: bytes
) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments of a request."""
    if route.host:
        return f"http.{request.method.lower()}", {
            "method": request.method,
            "host": route.host,
            "path": request.path,
            "query": request.query,
            "body_sha256": sha256(body).hexdigest(),
        }
    if route.describe:
        try:
            text = exact_text(dict(route.describe(request.scope, body)))
        except Exception:
            raise _Refusal(400, "bad_request", "The request does not describe an action") from None
        return route.tool, _read_arguments(text)
    if request.query:
        raise _Refusal(400, "bad_request", "A query is not part of this action")
    media_type = request.header(b"content-type")
    if body and media_type and not _MEDIA_TYPE.fullmatch(media_type):
        raise _Refusal(415, "unsupported_body", "Content-Type must be application/json")
    arguments = _read_arguments(body or b"{}")
    if arguments.keys() & parameters.keys():
        raise _reserved_name()
    return route.tool, {**arguments, **parameters}


def _read_arguments(text: str | bytes) -> dict[str, Any]:
    try:
        arguments = parse_exact(text)
    except Malformed:
        raise _no_object() from None
    if not is_object(arguments):
        raise _no_object()
    if any(name in arguments for name in _RESERVED):
        raise _reserved_name()
    return arguments


def _event_text(payload: dict[str, Any]) -> str:
    """Return the canonical form of a payload that fits into an event. Errors are Malformed."""
    return canonical_text({"": payload})[len('{"":') : -1]


def _check_call(call: str, arguments: dict[str, Any]) -> str:
    """Return the payload of a guarded call, if it is of a call with these arguments.

    It records them, or it has their digest and records some of them.
    """
    raw = _decode(call, _MAX_CALL)
    if raw is None:
        raise Malformed("not base64")
    payload = parse_object(raw, MAX_DEPTH - 1)
    members = {name: value for name, value in payload.items() if name not in _OWN}
    if "input_digest" in payload:
        if payload["input_digest"] != sha256(exact_text(arguments).encode()).hexdigest():
            raise Malformed("other digest")
        arguments = {name: value for name, value in arguments.items() if name in members}
    if canonical_text(members) != canonical_text(recorded_members(arguments)):
        raise Malformed("other arguments")
    return canonical_text(payload)


class GrantMiddleware:
    """ASGI middleware. A permitted request with a grant has it in scope["agentledger.grant"]."""

    def __init__(self, app: App, grants: Grants) -> None:
        self._app = app
        self._grants = grants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it. WebSockets are refused."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            permitted = await self._grants.admit(scope, receive)
        except _Refusal as refusal:
            await refusal.send(send)
            return
        if permitted is None:
            await self._app(scope, receive, send)
            return
        again: list[Message] = [{"type": "http.request", "body": permitted.body, "more_body": False}]

        async def receive_again() -> Message:
            return again.pop() if again else await receive()

        certified = self._grants.certified(permitted, send)
        granted = {"agentledger.grant": permitted.grant} if permitted.grant else {}
        await self._app({**scope, **granted}, receive_again, certified)
