"""The file agents.json of a pack: agents of the shown events and their keys."""

from __future__ import annotations

from typing import Any

from ... import _ed25519 as ed25519
from ..._grammar import INSTANT, is_time
from ..._shapes import is_list, is_object
from .._documents import is_natural
from .._encoding import multikey_bytes
from .._flaw import MALFORMED, need
from .archive import Member
from .manifest import read_canonical

_MAX_BYTES = 16 << 20
_MAX_AGENTS = 10_000
_AGENT = frozenset(("agent_id", "display_name", "keys"))
_KEY = frozenset("key_id public_key did custody status registered_at ended_at compromised_from".split())


def read_agents(file: Member) -> dict[str, set[tuple[str, str]]]:
    """Return key id and public key of each key of each agent. Errors are Flaw."""
    need(file.size <= _MAX_BYTES, "agents: size", MALFORMED)
    lines = read_canonical(file.read(), frozenset(("agents",)), "agents")["agents"]
    need(is_list(lines) and len(lines) <= _MAX_AGENTS, "agents: number", MALFORMED)
    found: dict[str, set[tuple[str, str]]] = {}
    last = b""
    for a in lines:
        form = is_object(a) and a.keys() == _AGENT and isinstance(a["agent_id"], str)
        form = form and isinstance(a["display_name"], str | None) and is_list(a["keys"])
        need(form, "agents: a member", MALFORMED)
        name = a["agent_id"].encode()
        need(name > last, "agents: order", MALFORMED)
        last = name
        found[a["agent_id"]] = _read_keys(a["keys"])
    return found


def _read_keys(keys: list[Any]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    last = b""
    for k in keys:
        need(is_object(k) and k.keys() == _KEY and _is_key(k), "agents: a key", MALFORMED)
        name = k["key_id"].encode()
        need(name > last and k["did"] == "did:key:" + k["public_key"], "agents: order of keys, or did", MALFORMED)
        last = name
        found.add((k["key_id"], k["public_key"]))
    return found


def _is_key(k: dict[str, Any]) -> bool:
    return (
        isinstance(k["key_id"], str)
        and isinstance(k["public_key"], str)
        and _counts(k["public_key"])
        and k["custody"] in ("agent", "server")
        and k["status"] in ("active", "retired", "revoked")
        and is_time(k["registered_at"], INSTANT)
        and (k["ended_at"] is None or is_time(k["ended_at"], INSTANT))
        and (k["compromised_from"] is None or is_natural(k["compromised_from"]))
    )


def _counts(multikey: str) -> bool:
    """Return whether a Multikey has a public key that counts."""
    raw = multikey_bytes(multikey)
    if raw is None:
        return False
    try:
        ed25519.public_key(raw)
    except ed25519.BadKey:
        return False
    return True
