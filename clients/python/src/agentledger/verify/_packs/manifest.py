"""The manifest of a pack, and forms of canonical JSON."""

from __future__ import annotations

import re
from typing import Any

from ..._canonical import canonical_text
from ..._errors import Malformed
from ..._grammar import AGENT, ID, INSTANT, UUID, is_time
from ..._shapes import is_list, is_object
from ..._strictjson import parse_object
from .._documents import is_hash, is_natural
from .._encoding import MAX_NATURAL, decimal
from .._flaw import MALFORMED, need
from .acts import MAX_COLUMNS, is_column
from .archive import ACTS, VOTERS, Member

MAX_EVENTS = 1_000_000
MAX_DOCUMENT = 1 << 20

_MEMBERS = frozenset(
    "v origin organization_id request begin end tree_size root_hash edge prev consistency counts files".split()
)
_REQUEST = frozenset(("from", "to", "agent_id", "tool", "trace_id", "envelopes"))
COUNTS = ("entries", "records", "envelopes", "approvals", "erasures", "erased", "agents", "policies")
_GLOB = re.compile(r"(?=.{1,256}\Z)(([A-Za-z0-9_:/-]+|\*)(\.([A-Za-z0-9_:/-]+|\*))*(\.\*\*)?|\*\*)", re.ASCII)


def read_canonical(raw: bytes | str, names: frozenset[str], what: str, optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Parse an object with exactly these members, some of which may be optional, in canonical form. Errors are Flaw."""
    value = read_any_canonical(raw, what)
    need(frozenset(value) - optional == names, f"{what}: members", MALFORMED)
    return value


def read_any_canonical(raw: bytes | str, what: str) -> dict[str, Any]:
    """Parse an object in canonical form. Errors are Flaw."""
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
    value: dict[str, Any] = {}
    good = True
    try:
        value = parse_object(raw)
        good = canonical_text(value) == text
    except Malformed:
        good = False
    need(good, f"{what}: not the exact canonical form", MALFORMED)
    return value


def read_manifest(files: dict[str, Member]) -> dict[str, Any]:
    """Parse the manifest, and compare the files with it. Errors are Flaw."""
    need(files["manifest.json"].size <= MAX_DOCUMENT, "manifest: size", MALFORMED)
    m = read_canonical(files["manifest.json"].read(), _MEMBERS, "manifest", frozenset(("acts",)))
    need(_is_manifest(m) and _is_request(m["request"]), "manifest: a member", MALFORMED)
    need(m["begin"] <= m["end"] <= m["tree_size"], "manifest: range", MALFORMED)
    need(m["end"] - m["begin"] <= MAX_EVENTS, "manifest: number of events", MALFORMED)
    need((m["prev"] is None) == (m["begin"] == m["end"]), "manifest: prev", MALFORMED)
    need(("voter_keys" in m["counts"]) == (VOTERS in files), "counts: voter_keys")
    need(("acts" in m) == (ACTS in files), "manifest: acts and the files")
    need("acts" not in m or _is_acts(m["acts"], m["request"]["envelopes"]), "manifest: acts", MALFORMED)
    _check_files(m["files"], files)
    _check_range(m)
    return m


def _is_manifest(m: dict[str, Any]) -> bool:
    org, counts = m["organization_id"], m["counts"]
    return (
        is_natural(m["v"])
        and m["v"] == 1
        and isinstance(m["origin"], str)
        and isinstance(org, str)
        and UUID.fullmatch(org) is not None
        and org == org.lower()
        and all(is_natural(m[n]) for n in ("begin", "end", "tree_size"))
        and is_hash(m["root_hash"])
        and (m["prev"] is None or is_hash(m["prev"]))
        and all(is_list(m[n]) and all(is_hash(h) for h in m[n]) for n in ("edge", "consistency"))
        and is_object(counts)
        and counts.keys() - {"voter_keys"} == set(COUNTS)
        and all(is_natural(n) for n in counts.values())
        and counts.get("voter_keys") != 0
        and is_list(m["files"])
    )


def _is_acts(acts: Any, envelopes: bool) -> bool:
    if not is_object(acts) or acts.keys() != {"columns", "lines"} or not is_natural(acts["lines"]):
        return False
    columns = acts["columns"]
    if not is_list(columns) or len(columns) > (MAX_COLUMNS if envelopes else 0):
        return False
    return all(is_column(name) for name in columns) and len(set(columns)) == len(columns)


def _is_request(r: Any) -> bool:
    if not is_object(r) or frozenset(r) - {"coverage", "on_behalf_of", "issuer"} != _REQUEST or not isinstance(r["envelopes"], bool):
        return False
    if "coverage" in r and (r["coverage"] is not True or not r["envelopes"]):
        return False
    if not all(isinstance(r.get(n, "x"), str) and r.get(n) != "" for n in ("on_behalf_of", "issuer")):
        return False
    if "issuer" in r and "on_behalf_of" not in r:
        return False
    forms = (("agent_id", AGENT), ("tool", _GLOB), ("trace_id", ID))
    texts = all(r[n] is None or isinstance(r[n], str) and form.fullmatch(r[n]) for n, form in forms)
    return texts and all(r[n] is None or _is_bound(r[n]) for n in ("from", "to"))


def _is_bound(value: Any) -> bool:
    return isinstance(value, str) and (decimal(value, MAX_NATURAL) is not None or is_time(value, INSTANT))


def _check_files(listed: list[Any], files: dict[str, Member]) -> None:
    names = [name for name in files if name != "manifest.json"]
    need(len(listed) == len(names), "files and the manifest")
    for f, name in zip(listed, names, strict=True):
        form = is_object(f) and f.keys() == {"name", "sha256", "size"} and is_hash(f["sha256"])
        need(form and is_natural(f["size"]), "manifest: a file", MALFORMED)
        digest = files[name].sha256  # fails if the container states another size than the content has
        need(f["name"] == name and f["size"] == files[name].size, f"name and size of {name}")
        need(f["sha256"] == digest, f"digest of {name}")


def _check_range(m: dict[str, Any]) -> None:
    begin, end = m["request"]["from"], m["request"]["to"]
    wanted = 0 if begin is None else decimal(begin, MAX_NATURAL)
    need(wanted is None or m["begin"] == wanted, "request: begin and from")
    last = m["tree_size"] if end is None else decimal(end, MAX_NATURAL)
    need(last is None or m["end"] == min(last, m["tree_size"]), "request: end and to")


def filters(request: dict[str, Any]) -> bool:
    """Return whether a request may withhold events of the range."""
    return "on_behalf_of" in request or any(request[n] is not None for n in ("agent_id", "tool", "trace_id"))


def fits_subject(request: dict[str, Any], of: Any) -> bool:
    """Return whether on_behalf_of of an envelope is of the subject that a request names, and of its issuer, if it names one."""
    if "on_behalf_of" not in request:
        return True
    names = [("on_behalf_of", "subject")] + ([("issuer", "issuer")] if "issuer" in request else [])
    return is_object(of) and all(of.get(member) == request[name] for name, member in names)


def fits_tool(glob: str, tool: str | None) -> bool:
    """Return whether a tool name matches a glob: * is one segment, ** at the end one or more."""
    if tool is None:
        return False
    wanted, given = glob.split("."), tool.split(".")
    if wanted[-1] == "**":
        wanted[-1:] = ["*"] * max(1, len(given) - len(wanted) + 1)
    return len(wanted) == len(given) and all(w in ("*", g) for w, g in zip(wanted, given, strict=True))
