// Offline verification of evidence packs: the eleven steps of docs/evidence.md.

import { equal, fromUTF8, hex, unhex } from "../bytes.js";
import { sha256, sha256hex } from "../crypto/sha256.js";
import { LedgerError, Malformed, Mismatch, Unproved, printable } from "../errors.js";
import { openCheckpoint, parseNote, readCheckpoint } from "../log/note.js";
import { checkConsistency, leafHash, nodeHash, parseHashes, unknownSigners } from "../log/tree.js";
import { Policy } from "../log/policy.js";
import { signedSize } from "./bundle.js";
import { genesis } from "./documents.js";
import { cantTell, proved, provedWrong, result, unknownReason } from "./index.js";
import { readAgents, readManifest, readPackKeys } from "./manifest.js";
import { readApprovals, readEnvelopes, readErasures, readRecords } from "./packlines.js";
import { Trust } from "./trust.js";
import { unzip } from "./zip.js";

/**
 * Verifies an evidence pack (bytes). `given`: key, policy, keys as for bundles; manifest, the hex digest that the
 * log's event of the export says; require "full" asks for envelopes.
 */
export async function verifyPack(raw, given = {}) {
  const trust = new Trust(given);
  let report;
  try {
    report = await checkPack(raw, trust);
  } catch (why) {
    return refusedPack(raw, trust, why);
  }
  const note = parseNote(report.checkpoint);
  const quorum = await trust.quorum(note);
  if (quorum !== undefined) report.quorum_ok = quorum;
  report.cosignatures = await namedCosignatures(trust, note);
  const [outcome, reason] = judge(report, trust, given);
  return result(outcome, reason, { report, lines: packLines(report) });
}

async function refusedPack(raw, trust, why) {
  if (!(why instanceof LedgerError)) throw why;
  if (why.signature && trust.keys.length > 0) {
    const whole = await checkPack(raw, new Trust()).catch(() => undefined);
    const unknown = whole ? unknownSigners(parseNote(whole.checkpoint), trust.known) : [];
    if (unknown.length > 0) return result(cantTell, unknownReason(unknown), { report: { ok: false, unknown_keys: unknown } });
  }
  return result(provedWrong, "not proved: " + printable(why.message));
}

function judge(r, trust, given) {
  if (given.manifest !== undefined && given.manifest !== r.manifest_sha256) {
    return [provedWrong, "not proved: the pack has another manifest than was asked for"];
  }
  if (trust.keys.length === 0) return [cantTell, "can't tell whose log this is: neither key nor policy names it"];
  if (r.quorum_ok === false) return [cantTell, "can't tell: too few witnesses of the policy have cosigned the checkpoint"];
  if (given.require === "full" && !r.request.envelopes) return [cantTell, "can't tell: the pack was made without envelopes"];
  return [proved, ""];
}

async function namedCosignatures(trust, note) {
  const all = trust.policy ? await trust.policy.cosignatures(note) : [];
  return all.map((c) => ({ name: c.key.name, time: new Date(Number(c.time) * 1000).toISOString() }));
}

/** Resolves to the report of a pack in which all is right. */
async function checkPack(raw, trust) {
  const files = unzip(raw);
  const m = readManifest(files);
  const sizes = { checkpoint: 128 << 10, policy: 128 << 10 };
  for (const [name, most] of Object.entries(sizes)) {
    if (files.get(name).length > most) throw new Malformed(name + ": size");
  }
  const keys = readPackKeys(files.get("keys.json"));
  new Policy(files.get("policy"));
  const checkpoint = fromUTF8(files.get("checkpoint"));
  const tree = await openPackCheckpoint(parseNote(checkpoint), trust, keys);
  if (tree.origin !== m.origin || tree.size !== BigInt(m.tree_size) || hex(tree.root) !== m.root_hash) {
    throw new Mismatch("checkpoint and manifest");
  }
  const hashes = readEntries(m, files.get("entries.bin"));
  const pack = { m, files, hashes, known: readAgents(files.get("agents.json")) };
  const shown = await readRecords(pack);
  const policies = checkPolicies(files, shown);
  const { erased, statements } = await readErasures(pack, shown);
  const envelopes = await readEnvelopes(pack, shown, erased);
  const approvals = await readApprovals(pack);
  const counts = { entries: hashes.length, records: shown.length, envelopes, approvals, erasures: statements };
  Object.assign(counts, { erased: erased.size, agents: pack.known.size, policies });
  for (const [name, n] of Object.entries(counts)) {
    if (m.counts[name] !== n) throw new Mismatch("counts of the manifest");
  }
  return reportOf(pack, trust, { shown, erased, counts, checkpoint });
}

function reportOf({ m, files }, trust, { shown, erased, counts, checkpoint }) {
  const { envelopes: asked } = m.request;
  const unchecked = shown.filter((r) => r.sig_form === "canonical" && (!asked || erased.has(r.sequence_num))).length;
  return {
    log_key_source: trust.keys.length > 0 ? "argument" : "bundle",
    origin: m.origin,
    organization_id: m.organization_id,
    request: m.request,
    begin: m.begin,
    end: m.end,
    tree_size: m.tree_size,
    root_hash: m.root_hash,
    shown: counts.records,
    withheld: counts.entries - counts.records,
    erased: counts.erased,
    envelopes: counts.envelopes,
    approvals: counts.approvals,
    signatures_unchecked: unchecked,
    manifest_sha256: sha256hex(files.get("manifest.json")),
    checkpoint,
    ok: true,
  };
}

/** Opens the checkpoint under the reader's trust, or under the pack's own keys where nothing is trusted. */
async function openPackCheckpoint(note, trust, keys) {
  const { size } = readCheckpoint(note);
  if (trust.keys.length > 0) return trust.open(note, size);
  for (const k of keys.filter((listed) => signedSize(listed, size))) {
    const tree = await openCheckpoint(note, k.key).catch(() => undefined);
    if (tree) return tree;
  }
  throw new Unproved("keys of the pack: wrong signature", true);
}

/** Checks completeness: makes the entries of the range anew. Returns the hashes of their records, in hex. */
function readEntries(m, raw) {
  const count = m.end - m.begin;
  if (raw.length !== 32 * count) throw new Malformed("entries.bin: size");
  if (count > 0 && m.begin === 0 && m.prev !== genesis(m.origin)) throw new Mismatch("entries.bin: genesis");
  const subtrees = edgeOf(m);
  const hashes = [];
  let prev = m.prev;
  for (let i = 0; i < count; i++) {
    const record = hex(raw.subarray(32 * i, 32 * i + 32));
    hashes.push(record);
    const leaf = leafHash(`{"prev":"${prev}","record":"${record}","seq":${m.begin + i + 1},"v":1}`);
    prev = hex(leaf);
    subtrees.push([1, leaf]);
    while (subtrees.length > 1 && subtrees.at(-1)[0] === subtrees.at(-2)[0]) {
      const [[n, right], [, left]] = [subtrees.pop(), subtrees.pop()];
      subtrees.push([2 * n, nodeHash(left, right)]);
    }
  }
  checkRoot(m, subtrees);
  return hashes;
}

function edgeOf(m) {
  const sizes = [...m.begin.toString(2)].map((bit, i, all) => (bit === "1" ? 2 ** (all.length - 1 - i) : 0)).filter(Boolean);
  if (sizes.length !== m.edge.length) throw new Malformed("manifest.json: edge");
  return sizes.map((size, i) => [size, unhex(m.edge[i], 32)]);
}

function checkRoot(m, subtrees) {
  let root = subtrees.length > 0 ? subtrees.pop()[1] : sha256();
  while (subtrees.length > 0) root = nodeHash(subtrees.pop()[1], root);
  const whole = unhex(m.root_hash, 32);
  if (m.end !== 0 && m.end !== m.tree_size) {
    checkConsistency(BigInt(m.end), BigInt(m.tree_size), root, whole, parseHashes(m.consistency));
    return;
  }
  if (m.consistency.length > 0) throw new Malformed("manifest.json: consistency");
  if (m.end === m.tree_size && !equal(root, whole)) throw new Mismatch("entries.bin: root");
}

function checkPolicies(files, shown) {
  const digests = new Set(shown.map((r) => r.policy.policy_digest).filter((d) => d !== null));
  const names = [...files.keys()].filter((n) => n.startsWith("policies/"));
  if (names.length > 1000 || names.length !== digests.size) throw new Mismatch("policies: number");
  for (const name of names) {
    const digest = name.slice("policies/".length, -".json".length);
    const content = files.get(name);
    if (!digests.has(digest) || content.length > 1 << 20 || sha256hex(content) !== digest) throw new Mismatch("policies: digest");
  }
  return names.length;
}

function packLines(r) {
  const key = r.log_key_source === "argument" ? "the key given" : "a key that the pack names itself";
  const lines = [
    `log         ${printable(r.origin)}`,
    `ok          complete for [${r.begin}, ${r.end}): ${r.shown} events shown, ${r.withheld} withheld, ${r.erased} erased`,
    `ok          under the checkpoint of ${r.tree_size} events, signed by ${key}`,
    `ok          ${r.envelopes} envelopes, ${r.approvals} approvals`,
    `manifest    ${r.manifest_sha256}`,
    ...r.cosignatures.map((c) => `cosigned    by ${printable(c.name)} at ${c.time}`),
  ];
  if (r.signatures_unchecked > 0) {
    lines.push(`--          ${r.signatures_unchecked} signatures need envelopes that are not in the pack`);
  }
  const { agent_id: agent, tool, trace_id: trace } = r.request;
  if (agent !== null || tool !== null || trace !== null) {
    lines.push("not covered: that no withheld event fits the request (docs/evidence.md)");
  }
  lines.push("not covered: times, the owners of keys, names and addresses, report.html", "proved, as far as checked above");
  return lines;
}
