"""Settings of a client, from arguments or the environment.

The variables are APS_URL, APS_TOKEN, APS_ORG, APS_AGENT, APS_KEY_ID and APS_KEY_FILE or APS_KEY, and those of proxies.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ._canonical import Convert
from ._errors import NotAsked
from ._proxies import Proxy, find_proxy
from ._signer import Signer, parse_seed

SERVICE_VERSION = "2026-05-18"
"""The API version that this package implements."""


@dataclass(frozen=True)
class Retry:
    """How requests are retried. Pauses are random, between half of the back-off and the whole back-off.

    A longer Retry-After of the service takes precedence. base and most are seconds.
    """

    attempts: int = 8
    base: float = 0.2
    most: float = 10.0


@dataclass(frozen=True)
class Address:
    """The address of the service, and the proxy to it if there is one."""

    scheme: str
    host: str
    port: int
    prefix: str
    proxy: Proxy | None = None

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == standard else f"{host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """Host and port, as a proxy gets them to open a connection."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def tunnel(self) -> Proxy | None:
        """The proxy that opens a connection to the service, for https."""
        return self.proxy if self.scheme == "https" else None

    def target(self, path: str) -> str:
        """Return the target of a request: a path, or for a proxy that makes the request itself, the whole address."""
        whole = "" if self.proxy is None or self.tunnel else f"http://{self.authority}"
        return f"{whole}{self.prefix}{path}"

    def page(self, path: str) -> str:
        """Return the address of a page of the service."""
        return f"{self.scheme}://{self.authority}{self.prefix}{path}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request for a proxy that makes it itself."""
        return {} if self.proxy is None or self.tunnel else self.proxy.headers


@dataclass(frozen=True)
class Settings:
    """Checked settings. No text form contains the token."""

    address: Address
    token: str | None = field(repr=False)
    org: str | None
    agent: str | None
    signer: Signer | None
    timeout: float
    retry: Retry
    subject_token: Callable[[], str | None] | None = field(default=None, repr=False)

    def require_signer(self) -> Signer:
        """Return the signer. The error is NotAsked if there is none."""
        if self.signer is None:
            raise NotAsked("no signing key: set agent, key_id and key (APS_AGENT, APS_KEY_ID, APS_KEY_FILE or APS_KEY)")
        return self.signer

    @property
    def names(self) -> dict[str, str]:
        """The members of questions that name the organization and the agent. The error is NotAsked without them."""
        if self.org is None or self.agent is None:
            raise NotAsked("no agent: set org and agent (APS_ORG, APS_AGENT)")
        return {"organization_id": self.org, "agent_id": self.agent}


def read_settings(
    url: str | None,
    token: str | None,
    org: str | None,
    agent: str | None,
    key_id: str | None,
    key: str | bytes | None,
    *,
    timeout: float,
    retry: Retry,
    convert: Convert | None,
    subject_token: Callable[[], str | None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings from arguments, and from the environment for those that are None. Errors are NotAsked."""
    env = os.environ if environment is None else environment
    token = _trim_line_end((token if token is not None else env.get("APS_TOKEN")) or "") or None
    org = (org if org is not None else env.get("APS_ORG")) or None
    agent = (agent if agent is not None else env.get("APS_AGENT")) or None
    key_id = (key_id if key_id is not None else env.get("APS_KEY_ID")) or None
    if any(not "!" <= c <= "~" for c in token or ""):
        raise NotAsked("token (APS_TOKEN) must be visible ASCII without spaces and line ends")
    if key is None and env.get("APS_KEY_FILE"):
        key = parse_seed(_read_key_file(env["APS_KEY_FILE"]), "key file (APS_KEY_FILE)")
    elif key is None and env.get("APS_KEY"):
        key = parse_seed(env["APS_KEY"], "key (APS_KEY)")
    signer = None if key is None else Signer(org or "", agent or "", key_id or "", key, convert)
    address = parse_address(url if url is not None else env.get("APS_URL", ""), env)
    return Settings(address, token, org, agent, signer, timeout, retry, subject_token)


def parse_address(url: str, environment: Mapping[str, str]) -> Address:
    """Parse the address of a service, and find its proxy. Errors are NotAsked."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        raise NotAsked("url (APS_URL) must be http or https with a host") from None
    if not port or not parts.hostname or any(not "!" <= c <= "~" for c in url):
        raise NotAsked("url (APS_URL) must be http or https with a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise NotAsked("url (APS_URL) must not have user, query or fragment")
    proxy = find_proxy(parts.scheme, parts.hostname, port, environment)
    return Address(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), proxy)


def _trim_line_end(text: str) -> str:
    """Return text without one trailing LF or CRLF, which files, and variables filled from files, often have."""
    return text[:-1].removesuffix("\r") if text.endswith("\n") else text


def _read_key_file(name: str) -> str:
    try:
        return pathlib.Path(name).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as why:
        raise NotAsked(f"key file (APS_KEY_FILE): {type(why).__name__}") from None
