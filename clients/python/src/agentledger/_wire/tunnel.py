"""The request that opens a connection through a proxy."""

from __future__ import annotations

import http

from .._errors import Unreachable
from .._proxies import Proxy
from .._settings import Address


def connect_request(address: Address, proxy: Proxy) -> bytes:
    """Return the request to a proxy for a connection to the service."""
    headers = {"Host": address.endpoint, **proxy.headers}
    lines = [f"CONNECT {address.endpoint} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n"


def check_connected(proxy: Proxy, status: int) -> None:
    """Check the status of a proxy's answer. The error is Unreachable."""
    if status != 200:
        words = {s.value: f" {s.phrase}" for s in http.HTTPStatus}.get(status, "")
        raise Unreachable(f"the service can't be reached: the proxy {proxy} answered CONNECT with {status}{words}")
