// This package's verdict on each vector of testdata/vectors, in the form of the file's `expect`. It runs wherever the
// package runs, browsers and workers included.

import { hex, unbase64, unhex, utf8, fromUTF8 } from "../src/bytes.js";
import { canonicalizeExact, parseExact, payloadText, recordMembers } from "../src/canonical/exact.js";
import { canonicalizeText, rewrite } from "../src/canonical/write.js";
import { PublicKey } from "../src/crypto/ed25519.js";
import { sha256hex } from "../src/crypto/sha256.js";
import { LedgerError } from "../src/errors.js";
import { checkCosigned, checkSigned, openCheckpoint, parseDecimal, parseLogKey, parseNote, parseWitnessKey } from "../src/log/note.js";
import { Policy } from "../src/log/policy.js";
import { checkConsistency, checkInclusion, checkTlogProof, leafHash, parseHashes, parseTlogProof, unknownSigners } from "../src/log/tree.js";
import { parseBundle, parseKeys } from "../src/verify/bundle.js";
import { parseEntry, parseEnvelope } from "../src/verify/documents.js";
import { verifyBundle } from "../src/verify/index.js";
import { checkKeyStatement } from "../src/verify/keystatement.js";
import { verifyPack } from "../src/verify/pack.js";
import { confirmAct, receiptActionOf } from "../src/verify/receipt.js";
import { Voters } from "../src/verify/voters.js";
import { parse } from "../src/canonical/parse.js";

function inputs(given) {
  const has = (name) => name in given || name + "_b64" in given;
  const raw = (name) => (name in given ? utf8(given[name]) : unbase64(given[name + "_b64"]));
  return { has, raw, text: (name) => (name in given ? given[name] : fromUTF8(raw(name))), hashes: () => parseHashes(given.hashes), list: (name) => given[name] ?? [] };
}

function keyMembers(key) {
  return { name: key.name, key_id: hex(key.id), public_key: hex(key.raw) };
}

const kinds = {
  "public-key": ({ text }) => void new PublicKey(unhexAny(text("public_key"))),
  signature: async ({ text }) => {
    const key = new PublicKey(unhexAny(text("public_key")));
    if (!(await key.verify(unhexAny(text("signature")), unhexAny(text("message"))))) throw new LedgerError("signature");
  },
  "log-key": ({ text }) => keyMembers(parseLogKey(text("vkey"))),
  "witness-key": ({ text }) => keyMembers(parseWitnessKey(text("vkey"))),
  "mldsa-witness-key": ({ text }) => keyMembers(parseWitnessKey(text("vkey"))),
  note: async ({ text }) => {
    const note = parseNote(text("note"));
    await checkSigned(note, parseLogKey(text("key")));
    return { text: note.text };
  },
  checkpoint: async ({ text }) => {
    const tree = await openCheckpoint(parseNote(text("note")), parseLogKey(text("key")));
    return { origin: tree.origin, size: String(tree.size), root: hex(tree.root) };
  },
  cosignature: async ({ text }) => ({ time: String(await checkCosigned(parseNote(text("note")), parseWitnessKey(text("witness")))) }),
  inclusion: ({ text, hashes }) =>
    void checkInclusion(parseDecimal(text("index")), parseDecimal(text("size")), unhex(text("leaf"), 32), unhex(text("root"), 32), hashes()),
  consistency: ({ text, hashes }) =>
    void checkConsistency(parseDecimal(text("from")), parseDecimal(text("to")), unhex(text("from_root"), 32), unhex(text("to_root"), 32), hashes()),
  "tlog-proof": async ({ text }) => {
    const key = parseLogKey(text("key"));
    const proof = parseTlogProof(text("proof"));
    await checkTlogProof(proof, text("entry"));
    const unknown = unknownSigners(proof.note, [key]);
    if (unknown.length > 0) return { ok: false, unknown_keys: unknown };
    const { index, size } = await checkTlogProof(proof, text("entry"), key);
    return { index: String(index), size: String(size) };
  },
  policy: ({ raw }) => void new Policy(raw("policy")),
  quorum: async ({ raw, text }) => {
    const policy = new Policy(raw("policy"));
    const note = parseNote(text("note"));
    await Promise.any(policy.logs.map((key) => openCheckpoint(note, key))).catch(() => {
      throw new LedgerError("no log of the policy");
    });
    const by = await policy.cosignatures(note);
    if (!policy.isReached(by)) throw new LedgerError("quorum");
    return { witnessed_by: by.map((c) => c.witness) };
  },
  "quorum-time": async ({ raw, text }) => {
    const policy = new Policy(raw("policy"));
    const { by, since, ahead } = policy.times(await policy.cosignatures(parseNote(text("note"))), Number(text("now")) * 1000);
    if (by === undefined) throw new LedgerError("no time");
    return { by: String(by), since: String(since), in_future: ahead.map((c) => c.witness) };
  },
  keys: ({ raw }) => ({ log_keys: parseKeys(raw("keys")).map((k) => k.key.text) }),
  "key-statement": async ({ raw }) => {
    const { vkey, by, from_size } = await checkKeyStatement(raw("bundle"), parseKeys(raw("keys")));
    return { vkey, by, from_size: String(from_size) };
  },
  "signed-vote": async ({ text }) => {
    const voters = new Voters({ origin: text("origin") });
    const registration = parse(text("registration"));
    await voters.add(registration, text("registered_at"), 0);
    const record = { sequence_num: 2, received_at: text("voted_at") };
    await voters.checkVote(record, { payload: parse(text("vote")), actor_principal: registration.account_id });
    return { thumbprint: voters.votes[0].signed.thumbprint };
  },
  "tool-receipt": async ({ text, list }) => {
    const [intent, result] = ["intent", "result"].map((name) => parseEnvelope(text(name)).members);
    const found = await confirmAct(result, intent.event_id, receiptActionOf(intent), list("tool_keys").map(parseLogKey));
    return { by: found.by, status: String(found.status), at: found.at, approval_id: found.approval_id ?? "" };
  },
  "policy-input": ({ text }) => {
    const { action_kind, actor_type, agent_id, payload, tool_name, on_behalf_of } = parseEnvelope(text("envelope")).members;
    const before = { action_kind, actor_type, agent_id, payload, tool_name };
    const subject = on_behalf_of && { on_behalf_of, on_behalf_of_verified: text("record_on_behalf_of") === "verified" };
    const [short, long] = [before, { ...before, ...subject }].map((input) => sha256hex(rewrite(input)));
    const got = text("input_digest");
    if (got !== long && (got !== short || text("policy_v") === "2")) throw new LedgerError("input_digest");
    return { input_digest: long };
  },
  "canonical-json": ({ raw }) => ({ canonical: canonicalizeText(raw("json")) }),
  arguments: ({ raw }) => {
    const exact = canonicalizeExact(parseExact(raw("arguments")));
    if (!exact.startsWith("{")) throw new LedgerError("no object");
    return { exact, payload: payloadText(recordMembers(exact)) };
  },
  entry: ({ text }) => ({ seq: String(parseEntry(text("entry")).seq), event_hash: hex(leafHash(text("entry"))) }),
  bundle: judgeBundle,
  "second-proof": judgeBundle,
  "evidence-pack": async ({ raw, text, list }) => {
    const { outcome, reason, report, lines } = await verifyPack(raw("pack"), { key: text("key"), toolKeys: list("tool_keys") });
    if (reason.startsWith("can't tell: the files")) return { ok: false, cant_tell: true };
    if (outcome !== "proved") throw new LedgerError(reason);
    const { begin, end, shown, withheld, erased } = report;
    const votes = report.votes_signed > 0 ? { vote_lines: lines.filter((l) => l.startsWith("vote of ")) } : {};
    votes.act_lines = lines.filter((l) => /^(acts|receipts|approver) /.test(l));
    const compared = lines.filter((l) => l.startsWith("compared "));
    if (report.coverage) votes.coverage_lines = compared;
    return Object.assign(votes, Object.fromEntries(Object.entries({ begin, end, shown, withheld, erased }).map(([n, v]) => [n, String(v)])));
  },
};
kinds["mldsa-cosignature"] = kinds.cosignature;

function unhexAny(text) {
  return unhex(text, text.length / 2);
}

const verdicts = ["inclusion_ok", "checkpoint_ok", "chain_ok", "record_ok", "signature_ok", "envelope_ok"];

async function judgeBundle({ has, raw, text }) {
  const given = { key: text("key") };
  if (has("keys")) given.keys = text("keys");
  const names = ["key", "keys", "policy"].filter((n) => has("directory_" + n));
  const directory = Object.fromEntries(names.map((n) => [n, raw("directory_" + n)]));
  if (directory.key) directory.key = fromUTF8(directory.key);
  if (names.length > 0) given.directory = directory;
  parseBundle(raw("bundle"));
  const { outcome, report: r } = await verifyBundle(raw("bundle"), given);
  const said = Object.fromEntries(verdicts.map((v) => [v, r[v]]));
  if (r.unknown_keys) said.unknown_keys = r.unknown_keys;
  said.directory_ok = r.directory_ok ?? null;
  if (directory.policy && r.directory_ok !== undefined) {
    said.directory_witnessed_by = await witnesses(raw("directory_policy"), raw("bundle"));
  }
  return { ...said, ok: outcome === "proved" };
}

async function witnesses(policy, bundle) {
  const p = new Policy(policy);
  return (await p.cosignatures(parseNote(parseBundle(bundle).directory.bundle.checkpoint))).map((c) => c.witness);
}

/** Resolves to the verdict on a vector and the values that were read. */
export async function judge(kind, input) {
  try {
    const said = await kinds[kind](inputs(input));
    if (said && kind === "bundle") delete said.directory_ok;
    const verdict = said && said.ok === false ? "refuse" : "accept";
    if (said) delete said.ok;
    return { verdict, said };
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return { verdict: "refuse", said: undefined, why };
  }
}
