"""Performs effects with asyncio. A Transport belongs to one event loop at a time."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import inspect
import io
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from .._errors import Unreachable
from .._settings import Address
from .effects import MAX_ANSWER, MAX_INTERIM, Act, Answer, Disk, Operation, Pause, Request, Turn, reason_of
from .tunnel import check_connected, connect_request

T = TypeVar("T")
_MAX_HEADERS = 64 << 10
_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_of_parents: list[_Connection] = []
"""In a forked child, the connections of its parents. Without a reference they would be closed."""
_FAILURES = (OSError, EOFError, http.client.HTTPException, ssl.SSLError, ValueError, asyncio.LimitOverrunError)


class _Stale(Exception):
    """The service closed a reused connection before it answered."""


class Transport:
    """Connections to one service, each used by one request at a time."""

    def __init__(self, address: Address, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._address = address
        self._sleep = sleep
        self._idle: list[_Connection] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tls = ssl.create_default_context() if address.scheme == "https" else None

    async def run(self, operation: Operation[T]) -> T:
        """Run a call to its end and return its result."""
        send: Callable[[], Any] = lambda: next(operation)
        while True:
            try:
                effect = send()
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            send = await self._perform(operation, effect)

    async def _perform(self, operation: Operation[T], effect: Any) -> Callable[[], Any]:
        try:
            result = await self._result(effect)
        except BaseException as why:
            failure = why
            return lambda: operation.throw(failure)
        return lambda: operation.send(result)

    async def _result(self, effect: Any) -> Any:
        if isinstance(effect, Request):
            return await self.fetch(effect)
        if isinstance(effect, Pause):
            return await self._sleep(effect.seconds)
        if isinstance(effect, Disk):
            return await asyncio.to_thread(effect.do)
        if isinstance(effect, Turn):
            loop, turn = asyncio.get_running_loop(), asyncio.Event()
            effect.ask(lambda: _call_in(loop, turn.set), asyncio.current_task())
            return await turn.wait()
        assert isinstance(effect, Act)
        result = effect.do()
        return await result if inspect.isawaitable(result) else result

    async def fetch(self, request: Request) -> Answer:
        """Make one request. Errors are Unreachable. A closed idle connection is replaced once."""
        if self._loop is not asyncio.get_running_loop():
            self._loop, self._idle = asyncio.get_running_loop(), []  # the others belong to a loop that has ended
        try:
            async with asyncio.timeout(request.timeout):
                if self._idle:
                    try:
                        return await self._exchange(self._idle.pop(), request)
                    except _Stale:
                        pass
                return await self._exchange(await self._connect(), request)
        except TimeoutError:
            raise Unreachable("the service can't be reached: timed out") from None
        except _FAILURES as why:
            raise Unreachable(f"the service can't be reached: {reason_of(why)}") from None
        except _Stale:
            raise Unreachable("the service can't be reached: the connection was closed") from None

    async def _connect(self) -> _Connection:
        a = self._address
        if a.proxy is None:
            return await asyncio.open_connection(a.host, a.port, ssl=self._tls, limit=_MAX_HEADERS)
        try:
            reader, writer = await asyncio.open_connection(a.proxy.host, a.proxy.port, limit=_MAX_HEADERS)
        except OSError as why:
            raise Unreachable(f"the proxy {a.proxy} can't be reached: {reason_of(why)}") from None
        if self._tls is None:
            return reader, writer
        try:
            writer.write(connect_request(a, a.proxy))
            _, status, _ = await _read_head(reader)
            check_connected(a.proxy, status)
            await writer.start_tls(self._tls, server_hostname=a.host)
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def _exchange(self, connection: _Connection, request: Request) -> Answer:
        reader, writer = connection
        kept = False
        try:
            writer.write(self._encode(request))
            await writer.drain()
            answer, kept = await _read_answer(reader)
            return answer
        except (asyncio.IncompleteReadError, ConnectionError) as why:
            if isinstance(why, asyncio.IncompleteReadError) and why.partial:
                raise
            raise _Stale from None
        finally:
            if kept:
                self._idle.append(connection)
            else:
                writer.close()

    def _encode(self, request: Request) -> bytes:
        headers = {"Host": self._address.authority, **request.headers, **self._address.headers}
        if request.body is not None or request.method == "POST":
            headers["Content-Length"] = str(len(request.body or b""))
        lines = [f"{request.method} {self._address.target(request.path)} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + (request.body or b"")

    def after_fork(self) -> None:
        """Leave the connections to the parent. Closing them here would change the parent's event loop."""
        _of_parents.extend(self._idle)
        self._idle = []

    async def close(self) -> None:
        """Close the idle connections."""
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits in it
        loop.call_soon_threadsafe(function)


async def _read_answer(reader: asyncio.StreamReader) -> tuple[Answer, bool]:
    """Return an answer, and whether its connection can be reused."""
    version, status, headers = await _read_head(reader)
    whole, body = await _read_body(reader, status, headers)
    kept = whole and version == b"HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return Answer(status, headers, body), kept


async def _read_head(reader: asyncio.StreamReader) -> tuple[bytes, int, dict[str, str]]:
    """Return version, status and headers of an answer. Interim answers (RFC 9110, 15.2) are skipped."""
    for _ in range(MAX_INTERIM + 1):
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        version, status, *_ = line.split(b" ", 2)
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit():
            raise http.client.BadStatusLine("no HTTP")
        if int(status) // 100 != 1:
            message = http.client.parse_headers(io.BytesIO(rest))
            return version, int(status), {name.lower(): value for name, value in message.items()}
    raise http.client.BadStatusLine("too many interim answers")


async def _read_body(reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> tuple[bool, bytes]:
    if status in (204, 304):
        return True, b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return True, await _read_chunks(reader)
    length = headers.get("content-length")
    if length is not None:
        _check_size(int(length))
        return True, await reader.readexactly(int(length))
    body = await reader.read(MAX_ANSWER + 1)
    _check_size(len(body))
    return False, body


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        _check_size(len(body) + size)
        if size == 0:
            break
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":  # trailers
        pass
    return bytes(body)


def _check_size(size: int) -> None:
    if not 0 <= size <= MAX_ANSWER:
        raise Unreachable(f"the answer is longer than {MAX_ANSWER} bytes")
