"""The proxy of the environment for one address, as Go's net/http and curl choose it.

- HTTPS_PROXY is for https, HTTP_PROXY for http, in lower case first. HTTP_PROXY is ignored in CGI programs, where a
  request sets it.
- NO_PROXY lists hosts without a proxy: names with all names below them (.name: only those), addresses, networks
  (10.0.0.0/8), each optionally with a port, or * for all.
- localhost and loopback addresses never have a proxy.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from ._errors import NotAsked


@dataclass(frozen=True)
class Proxy:
    """The proxy for one address. headers are for the proxy only, and no text form contains them."""

    host: str
    port: int
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def find_proxy(scheme: str, host: str, port: int, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for an address, or None. The error is NotAsked if the variable is malformed."""
    name = f"{scheme}_proxy"
    url = environment.get(name) or None
    if url is None and not (scheme == "http" and "REQUEST_METHOD" in environment):
        name = name.upper()
        url = environment.get(name) or None
    if url is None or _is_direct(host, port, environment.get("no_proxy") or environment.get("NO_PROXY") or ""):
        return None
    return _parse_proxy(name, url)


def _parse_proxy(name: str, url: str) -> Proxy:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError:
        raise NotAsked(f"{name} must be http://[user:password@]host[:port]") from None
    if parts.scheme != "http" or not parts.hostname or any(not "!" <= c <= "~" for c in url):
        raise NotAsked(f"{name} must be http://[user:password@]host[:port]")
    headers = dict[str, str]()
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    return Proxy(parts.hostname, port, headers)


def _is_direct(host: str, port: int, rules: str) -> bool:
    address = _address(host)
    if host == "localhost" or address is not None and address.is_loopback:
        return True
    return any(_matches(rule.strip().lower(), host, address, port) for rule in rules.split(","))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _matches(
    rule: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int
) -> bool:
    if rule == "*":
        return True
    if "/" in rule and address is not None:
        try:
            return address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
    name, colon, number = rule.rpartition(":")
    if colon and number.isdigit() and (":" not in name or name.startswith("[")):
        if int(number) != port:
            return False
        rule = name
    rule = rule.removeprefix("[").removesuffix("]")
    if not rule:
        return False
    if address is not None:
        return _address(rule) == address
    rule = rule.removeprefix("*")
    return host.endswith(rule) if rule.startswith(".") else host == rule or host.endswith(f".{rule}")
