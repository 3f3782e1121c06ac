"""Every vector of testdata/vectors and the signing vectors: verdicts, values and the reports of `aps verify`."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
import pathlib
import unittest
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import harness
from agentledger import _ed25519 as ed25519
from agentledger._canonical import canonical_text
from agentledger._errors import LedgerError
from agentledger._exact import exact_text, recorded_members
from agentledger._signer import Signer
from agentledger._strictjson import parse, parse_exact, parse_object
from agentledger.verify import Outcome, bundle, pack, read_trust, tlog_proof
from agentledger.verify._documents import event_digest, parse_entry, parse_envelope, signed_content
from agentledger.verify._encoding import decimal, hash_bytes
from agentledger.verify._flaw import Flaw, need
from agentledger.verify._keys import VerifierKey, parse_log_key, parse_witness_key
from agentledger.verify._keystatement import MAX_KNOWN_KEYS, check_key_statement, find_key_statements
from agentledger.verify._logkeys import LogKey, parse_log_keys
from agentledger.verify._note import check_signed, cosigned_at, open_checkpoint, parse_note
from agentledger.verify._packs.voters import Voters
from agentledger.verify._policy import parse_policy
from agentledger.verify._receipts import Unconfirmed, action_of, confirm_act
from agentledger.verify._tree import check_consistency, check_inclusion

VECTORS = harness.REPOSITORY / "testdata" / "vectors"
VERDICTS = ("inclusion_ok", "checkpoint_ok", "chain_ok", "record_ok", "signature_ok", "envelope_ok")


class Input:
    """The input of a vector: members as texts or as bytes."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members

    def __contains__(self, name: str) -> bool:
        return name in self.members or f"{name}_b64" in self.members

    def raw(self, name: str) -> bytes:
        if name in self.members:
            return str(self.members[name]).encode("utf-8", "surrogatepass")
        return base64.b64decode(self.members[f"{name}_b64"])

    def text(self, name: str) -> str:
        return self.raw(name).decode()

    def number(self, name: str) -> int:
        value = decimal(self.text(name))
        need(value is not None, name)
        return value or 0

    def hash(self, name: str) -> bytes:
        return read_hash(self.text(name))

    def hashes(self) -> list[bytes]:
        return [read_hash(text) for text in self.members["hashes"]]


def read_hash(text: str) -> bytes:
    value = hash_bytes(text)
    if value is None:
        raise Flaw("hash", "malformed")
    return value


def key_members(key: VerifierKey) -> dict[str, str]:
    return {"name": key.name, "key_id": key.key_id.hex(), "public_key": key.public.hex()}


def judge_signature(i: Input) -> None:
    key, signature, message = (bytes.fromhex(i.text(n)) for n in ("public_key", "signature", "message"))
    need(ed25519.is_signature(key, signature, message), "signature")


def judge_note(i: Input) -> dict[str, str]:
    note = parse_note(i.raw("note"))
    check_signed(note, parse_log_key(i.text("key")))
    return {"text": note.text}


def judge_checkpoint(i: Input) -> dict[str, str]:
    c = open_checkpoint(parse_note(i.raw("note")), parse_log_key(i.text("key")))
    return {"origin": c.origin, "size": str(c.size), "root": c.root.hex()}


def judge_cosignature(i: Input) -> dict[str, str]:
    return {"time": str(cosigned_at(parse_note(i.raw("note")), parse_witness_key(i.text("witness"))))}


def judge_inclusion(i: Input) -> None:
    check_inclusion(i.number("index"), i.number("size"), i.hash("leaf"), i.hashes(), i.hash("root"))


def judge_consistency(i: Input) -> None:
    check_consistency(i.number("from"), i.number("to"), i.hash("from_root"), i.hash("to_root"), i.hashes())


def judge_quorum(i: Input) -> dict[str, Any]:
    policy, note = parse_policy(i.raw("policy")), parse_note(i.raw("note"))
    read_trust(policy=i.raw("policy")).open(i.raw("note"))
    by = policy.cosignatures(note)
    need(policy.reached(by), "quorum")
    return {"witnessed_by": [c.name for c in by]}


def judge_quorum_time(i: Input) -> dict[str, Any]:
    policy = parse_policy(i.raw("policy"))
    times = policy.times(policy.cosignatures(parse_note(i.raw("note"))), int(i.text("now")))
    need(times.by is not None, "no time")
    return {"by": str(times.by), "since": str(times.since), "in_future": [c.name for c in times.ahead]}


def judge_entry(i: Input) -> dict[str, str]:
    entry = parse_entry(i.text("entry"))
    return {"seq": str(entry.seq), "event_hash": entry.hash.hex()}


def judge_proof(i: Input) -> dict[str, Any]:
    result = tlog_proof(i.raw("proof"), i.raw("entry"), key=i.text("key"))
    if result.unknown_keys:
        return {"unknown_keys": result.unknown_keys, "ok": False}
    need(result.outcome is Outcome.PROVED and result.checkpoint is not None, result.reason)
    return {"index": str(result.index), "size": str(result.checkpoint.size if result.checkpoint else 0)}


def judge_bundle(i: Input) -> dict[str, Any]:
    result = bundle(i.raw("bundle"), key=i.text("key"), keys=i.raw("keys") if "keys" in i else None)
    return verdicts(result, ())


def judge_second_proof(i: Input) -> dict[str, Any]:
    names = ("directory_key", "directory_policy", "directory_keys")
    trust = read_trust(i.text(names[0]) if names[0] in i else None, *(i.raw(n) if n in i else None for n in names[1:]))
    directory = trust if any(n in i for n in names) else None
    result = bundle(i.raw("bundle"), key=i.text("key"), directory=directory)
    got = verdicts(result, ("directory_ok",))
    if "directory_policy" in i and result.report is not None:
        names_by_key = {k.name: n for n, k in trust.policy.witnesses.items()} if trust.policy else {}
        got["directory_witnessed_by"] = [names_by_key[c.name] for c in result.report.directory_cosignatures]
    return got


def verdicts(result: Any, more: tuple[str, ...]) -> dict[str, Any]:
    if result.report is None:
        raise Flaw(result.reason, "malformed")
    got = {name: getattr(result.report, name) for name in (*VERDICTS, *more)}
    got["ok"] = result.proved
    return {**got, "unknown_keys": result.unknown_keys} if result.unknown_keys else got


def judge_key_statement(i: Input) -> dict[str, Any]:
    accepted = check_key_statement(i.raw("bundle"), parse_log_keys(i.raw("keys"))).accepted
    return {**accepted.members(), "from_size": str(accepted.from_size)}


def judge_signed_vote(i: Input) -> dict[str, Any]:
    voters = Voters({"origin": i.text("origin")})
    registration = parse_object(i.text("registration"))
    voters.add(registration, i.text("registered_at"), 0)
    members = {"payload": parse_object(i.text("vote")), "actor_principal": registration["account_id"]}
    voters.check_vote({"sequence_num": 2, "received_at": i.text("voted_at")}, members)
    signed = voters.votes[0].signed
    need(signed is not None, "signed")
    return {"thumbprint": signed.thumbprint if signed else None}


def judge_tool_receipt(i: Input) -> dict[str, Any]:
    act, result = (parse_envelope(i.text(name)).members for name in ("intent", "result"))
    try:
        c = confirm_act(result, act["event_id"], action_of(act), [parse_log_key(k) for k in i.members["tool_keys"]])
    except Unconfirmed as why:
        raise Flaw(str(why), "") from None
    return {**c.members(), "status": str(c.status), "approval_id": c.approval_id or ""}


def judge_policy_input(i: Input) -> dict[str, Any]:
    e = parse_envelope(i.text("envelope")).members
    members = {name: e.get(name, "") for name in ("action_kind", "actor_type", "agent_id", "payload", "tool_name")}
    before = sha256(canonical_text(members).encode()).hexdigest()
    if "on_behalf_of" in e:
        members["on_behalf_of"] = e["on_behalf_of"]
        members["on_behalf_of_verified"] = i.text("record_on_behalf_of") == "verified"
    now = sha256(canonical_text(members).encode()).hexdigest()
    got = i.text("input_digest")
    need(got == now or got == before and i.text("policy_v") != "2", "input_digest")
    return {"input_digest": now}


def judge_arguments(i: Input) -> dict[str, Any]:
    arguments = parse_exact(i.raw("arguments"))
    need(isinstance(arguments, dict), "no object")
    payload = recorded_members(arguments)
    canonical_text({"payload": payload})
    return {"exact": exact_text(arguments), "payload": canonical_text(payload)}


JUDGES: dict[str, Callable[[Input], Any]] = {
    "public-key": lambda i: ed25519.public_key(bytes.fromhex(i.text("public_key"))) and None,
    "signature": judge_signature,
    "log-key": lambda i: key_members(parse_log_key(i.text("vkey"))),
    "witness-key": lambda i: key_members(parse_witness_key(i.text("vkey"))),
    "mldsa-witness-key": lambda i: key_members(parse_witness_key(i.text("vkey"))),
    "note": judge_note,
    "checkpoint": judge_checkpoint,
    "cosignature": judge_cosignature,
    "mldsa-cosignature": judge_cosignature,
    "inclusion": judge_inclusion,
    "consistency": judge_consistency,
    "tlog-proof": judge_proof,
    "policy": lambda i: parse_policy(i.raw("policy")) and None,
    "quorum": judge_quorum,
    "quorum-time": judge_quorum_time,
    "keys": lambda i: {"log_keys": [str(k.key) for k in parse_log_keys(i.raw("keys"))]},
    "key-statement": judge_key_statement,
    "signed-vote": judge_signed_vote,
    "tool-receipt": judge_tool_receipt,
    "policy-input": judge_policy_input,
    "canonical-json": lambda i: {"canonical": canonical_text(parse(i.raw("json")))},
    "arguments": judge_arguments,
    "entry": judge_entry,
    "bundle": judge_bundle,
    "second-proof": judge_second_proof,
}


def load(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return value


class Vectors(unittest.TestCase):
    def test_every_kind_has_a_judge(self) -> None:
        self.assertEqual(set(JUDGES), {load(path.stem)["kind"] for path in VECTORS.glob("*.json")})

    def test_verdicts_and_values(self) -> None:
        for kind, judge in JUDGES.items():
            for v in load(kind)["vectors"]:
                with self.subTest(kind=kind, name=v["name"]):
                    self.check(judge, v)

    def check(self, judge: Callable[[Input], Any], v: dict[str, Any]) -> None:
        got: Any = None
        try:
            got, verdict = judge(Input(v["input"])), "accept"
        except (Flaw, LedgerError, ValueError) as why:
            verdict, reason = "refuse", why
        if got is not None and "ok" in got:
            verdict = "accept" if got.pop("ok") else "refuse"
        self.assertEqual(v["verdict"], verdict, got)
        if "expect" in v:
            self.assertEqual(v["expect"], got)


class KnownKeys(unittest.TestCase):
    def test_number_of_keys_is_bounded(self) -> None:
        v = Input(load("key-statement")["vectors"][0]["input"])
        pinned = parse_log_keys(v.raw("keys"))[0]
        checkpoint = parse_note(json.loads(v.raw("bundle"))["checkpoint"])
        for number, want in ((MAX_KNOWN_KEYS - 1, 1), (MAX_KNOWN_KEYS, 0)):
            known = (pinned, *[LogKey(pinned.key, 0, 1)] * (number - 1))
            finder = find_key_statements(checkpoint, known)
            next(finder)
            with self.assertRaises(StopIteration) as done:
                finder.send(v.raw("bundle"))
            found, why = done.exception.value
            self.assertEqual(want, len(found), why)
            if want == 0:
                self.assertIn("at most 256 keys of a log", why[0])


class Packs(unittest.TestCase):
    def test_evidence_packs(self) -> None:
        path = harness.REPOSITORY / "testdata" / "packs" / "evidence-pack.json"
        for v in json.loads(path.read_text("utf-8"))["vectors"]:
            with self.subTest(v["name"]):
                i = Input(v["input"])
                result = pack(i.raw("pack"), key=i.text("key"), tool_keys=i.members.get("tool_keys", ()))
                other = v["name"] == "another log's key" or "cant_tell" in v.get("expect", {})
                want = Outcome.PROVED if v["verdict"] == "accept" else Outcome.CANT_TELL if other else Outcome.WRONG
                self.assertEqual(want, result.outcome, result.reason)
                if result.proved:
                    lines = v["expect"].pop("vote_lines", None)
                    if lines is not None:
                        self.assertEqual(lines, [line for line in str(result).split("\n") if line.startswith("vote of ")])
                    lines = v["expect"].pop("act_lines", None)
                    if lines is not None:
                        printed = str(result).split("\n")
                        self.assertEqual(lines, [line for line in printed if line.startswith(("acts ", "receipts ", "approver "))])
                    lines = v["expect"].pop("coverage_lines", [])
                    self.assertEqual(lines, [line for line in str(result).split("\n") if line.startswith("compared ")])
                    for name, value in v["expect"].items():
                        self.assertEqual(value, str(getattr(result.facts, name)), name)

    def test_what_is_wanted_beside_a_right_pack(self) -> None:
        path = harness.REPOSITORY / "testdata" / "packs" / "evidence-pack.json"
        i = Input(json.loads(path.read_text("utf-8"))["vectors"][1]["input"])
        raw, key = i.raw("pack"), i.text("key")
        self.assertEqual(Outcome.CANT_TELL, pack(raw).outcome)
        self.assertEqual(Outcome.WRONG, pack(raw, key=key, manifest="0" * 64).outcome)
        self.assertEqual(Outcome.CANT_TELL, pack(raw, key=key, full=True).outcome)
        right = pack(raw, key=key)
        self.assertEqual(Outcome.PROVED, pack(raw, key=key, manifest=right.facts.manifest_sha256).outcome)
        self.assertIn("proved, as far as checked above", str(right))


class Signing(unittest.TestCase):
    def test_signing_vectors(self) -> None:
        vectors = json.loads((harness.REPOSITORY / "event" / "testdata" / "aps1-signing.json").read_text("utf-8"))
        key = base64.b64decode(vectors["private_key_b64"])
        for v in vectors["vectors"]:
            e = v["envelope"]
            with self.subTest(v["name"]):
                signer = Signer(e["organization_id"], e["agent_id"], e["key_id"], key)
                content = signed_content(e)
                self.assertEqual(v["jcs"], content.decode())
                digest = event_digest(e["key_id"], content)
                self.assertEqual(v["event_digest"], digest.hex())
                self.assertEqual(
                    v["sig_value_b64"], {"digest": signer.sign_bytes(digest), "canonical": signer.sign_bytes(content)}
                )


class SameWords(unittest.TestCase):
    """The reports are those of `aps verify`, word for word, and so are the outcomes."""

    def test_bundles(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            aps = harness.program("aps", folder)
            for v in load("bundle")["vectors"]:
                with self.subTest(v["name"]):
                    self.compare(aps, folder, Input(v["input"]))

    def compare(self, aps: str, folder: pathlib.Path, i: Input) -> None:
        command = [aps, "verify", "-", "--key", i.text("key")]
        if "keys" in i:
            (folder / "keys").write_bytes(i.raw("keys"))
            command += ["--keys", str(folder / "keys")]
        want = subprocess.run(command, input=i.raw("bundle"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        got = bundle(i.raw("bundle"), key=i.text("key"), keys=i.raw("keys") if "keys" in i else None)
        self.assertEqual(want.returncode, got.outcome.value, want.stderr)
        if got.report is not None:
            self.assertEqual(want.stdout.decode().rstrip("\n"), str(got))


if __name__ == "__main__":
    unittest.main()
