"""Performs effects with blocking sockets. A Transport is thread-safe."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .._errors import Unreachable
from .._settings import Address
from .._proxies import Proxy
from .effects import MAX_ANSWER, MAX_INTERIM, Act, Answer, Disk, Operation, Pause, Request, Turn, reason_of
from .tunnel import check_connected, connect_request

T = TypeVar("T")
_FAILURES = (OSError, http.client.HTTPException, ssl.SSLError)


class Transport:
    """Connections to one service, each used by one request at a time."""

    def __init__(self, address: Address, sleep: Callable[[float], None] = time.sleep) -> None:
        self._address = address
        self._sleep = sleep
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._tls = ssl.create_default_context() if address.scheme == "https" else None

    def run(self, operation: Operation[T]) -> T:
        """Run a call to its end and return its result."""
        send: Callable[[], Any] = lambda: next(operation)
        while True:
            try:
                effect = send()
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            send = self._perform(operation, effect)

    def _perform(self, operation: Operation[T], effect: Any) -> Callable[[], Any]:
        try:
            result = self._result(effect)
        except BaseException as why:
            failure = why
            return lambda: operation.throw(failure)
        return lambda: operation.send(result)

    def _result(self, effect: Any) -> Any:
        if isinstance(effect, Request):
            return self.fetch(effect)
        if isinstance(effect, Pause):
            return self._sleep(effect.seconds)
        if isinstance(effect, Turn):
            turn = threading.Event()
            effect.ask(turn.set, threading.current_thread())
            return turn.wait()
        assert isinstance(effect, (Act, Disk))
        return effect.do()

    def fetch(self, request: Request) -> Answer:
        """Make one request. Errors are Unreachable. A closed idle connection is replaced once."""
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                return self._exchange(connection, request)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                connection.close()
            except _FAILURES as why:
                raise _unreachable(why) from None
        try:
            return self._exchange(self._connect(request.timeout), request)
        except _FAILURES as why:
            raise _unreachable(why) from None

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        a = self._address
        connection: http.client.HTTPConnection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(a.host, a.port, timeout=timeout, context=self._tls)
            if a.tunnel is not None:
                connection.sock = self._tls.wrap_socket(_open_tunnel(a, a.tunnel, timeout), server_hostname=a.host)
        elif a.proxy is not None:
            connection = http.client.HTTPConnection(a.proxy.host, a.proxy.port, timeout=timeout)
            connection.sock = _connect_proxy(a.proxy, timeout)
        else:
            connection = http.client.HTTPConnection(a.host, a.port, timeout=timeout)
        connection.response_class = _FinalResponse
        return connection

    def _exchange(self, connection: http.client.HTTPConnection, request: Request) -> Answer:
        kept = False
        try:
            if connection.sock is None:
                connection.connect()
            _prepare(connection, request.timeout)
            headers = {"Host": self._address.authority, **request.headers, **self._address.headers}
            connection.request(request.method, self._address.target(request.path), request.body, headers)
            answer = connection.getresponse()
            body = answer.read(MAX_ANSWER + 1)
            if len(body) > MAX_ANSWER:
                raise Unreachable(f"the answer is longer than {MAX_ANSWER} bytes")
            if answer.length:
                raise http.client.IncompleteRead(body, answer.length)
            kept = not answer.will_close and answer.isclosed()
            return Answer(answer.status, {n.lower(): v for n, v in answer.getheaders()}, body)
        finally:
            if kept:
                with self._lock:
                    self._idle.append(connection)
            else:
                connection.close()

    def after_fork(self) -> None:
        """Leave the connections to the parent."""
        self._lock = threading.Lock()
        self.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class _FinalResponse(http.client.HTTPResponse):
    """An answer without the interim ones before it (RFC 9110, 15.2). http.client itself skips 100 only."""

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(MAX_INTERIM + 1):
            line = cast("tuple[str, int, str]", super()._read_status())  # type: ignore[misc]
            if line[1] // 100 != 1:
                return line
            http.client.parse_headers(self.fp)
        raise http.client.BadStatusLine("too many interim answers")


def _connect_proxy(proxy: Proxy, timeout: float) -> socket.socket:
    try:
        return socket.create_connection((proxy.host, proxy.port), timeout)
    except OSError as why:
        raise Unreachable(f"the proxy {proxy} can't be reached: {reason_of(why)}") from None


def _open_tunnel(address: Address, proxy: Proxy, timeout: float) -> socket.socket:
    """Return a connection to the service through a proxy. Errors are Unreachable, and those of the connection."""
    sock = _connect_proxy(proxy, timeout)
    try:
        sock.sendall(connect_request(address, proxy))
        answer = _FinalResponse(sock, method="CONNECT")
        answer.begin()
        answer.close()
        check_connected(proxy, answer.status)
        return sock
    except BaseException:
        sock.close()
        raise


def _prepare(connection: http.client.HTTPConnection, timeout: float) -> None:
    sock: socket.socket = connection.sock
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(timeout)


def _unreachable(why: BaseException) -> Unreachable:
    return Unreachable(f"the service can't be reached: {reason_of(why)}")
