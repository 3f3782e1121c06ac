// Offline verification of evidence packs: the steps of docs/spec/evidence-pack.md.

import { fromUTF8, hex } from "../bytes.js";
import { LedgerError, Mismatch, Unproved, Unreadable, printable } from "../errors.js";
import { openCheckpoint, parseNote, readCheckpoint } from "../log/note.js";
import { unknownSigners } from "../log/tree.js";
import { Policy, named } from "../log/policy.js";
import { Acts, actLines, noActs } from "./acts.js";
import { Archive } from "./archive.js";
import { Comparisons, comparisonLines } from "./comparisons.js";
import { EntryHashes, checkEntries } from "./entries.js";
import { checkErasuresUsed, readErasures } from "./erasures.js";
import { cantTell, proved, provedWrong, result, unknownReason } from "./index.js";
import { signedSize } from "./knownkeys.js";
import { filters, readAgents, readManifest, readPackKeys } from "./manifest.js";
import { readApprovals, readShown, shownAgain } from "./packlines.js";
import { Trust } from "./trust.js";
import { Voters, voteLines } from "./voters.js";
import { timeWords } from "./words.js";

/**
 * Verifies an evidence pack: a ZIP file as bytes, or as a Blob or File, which is read in slices; or the files of a
 * folder, as Files or as pairs of a path and bytes or a Blob. Its memory bound does not depend on the pack's size. If a
 * File cannot be read, it throws the platform's error. `given`: key, policy, keys as for bundles; manifest, the hex
 * digest in the log's event of the export; toolKeys as for bundles; require "full" requires envelopes.
 */
export async function verifyPack(pack, given = {}) {
  const trust = new Trust(given);
  const source = pack?.[Symbol.iterator] && !(pack instanceof Uint8Array) && typeof pack !== "string" ? [...pack] : pack;
  let report;
  try {
    report = await checkPack(source, trust);
  } catch (why) {
    return refusedPack(source, trust, why);
  }
  if (given.manifest === undefined) report.not_covered.push(repacked);
  else report.manifest_ok = given.manifest === report.manifest_sha256;
  const note = parseNote(report.checkpoint);
  const quorum = await trust.quorum(note);
  if (quorum !== undefined) report.quorum_ok = quorum;
  const time = await trust.quorumTime(note);
  if (time !== undefined) report.quorum_time = time;
  report.cosignatures = await namedCosignatures(trust, note);
  const [outcome, reason] = judge(report, trust, given);
  return result(outcome, reason, { report, lines: packLines(report) });
}

const repacked = "that this pack is as the service sent it: without the digest of its manifest, its carrier may have repacked it";

async function refusedPack(source, trust, why) {
  if (!(why instanceof LedgerError)) throw why;
  if (why instanceof Unreadable) return result(cantTell, "can't tell: " + printable(why.message));
  if (why.signature && trust.keys.length > 0) {
    const whole = await checkPack(source, new Trust()).catch(onlyLedgerErrors);
    const unknown = whole ? unknownSigners(parseNote(whole.checkpoint), trust.known) : [];
    if (unknown.length > 0) return result(cantTell, unknownReason(unknown), { report: { ok: false, unknown_keys: unknown } });
  }
  return result(provedWrong, "not proved: " + printable(why.message));
}

function onlyLedgerErrors(why) {
  if (!(why instanceof LedgerError)) throw why;
}

function judge(r, trust, given) {
  if (r.manifest_ok === false) {
    return [provedWrong, "not proved: the pack has another manifest than was asked for"];
  }
  if (r.acts?.receipts?.wrong > 0) return [provedWrong, "not confirmed: " + printable(r.acts.receipts.errors[0])];
  if (trust.keys.length === 0) return [cantTell, "can't tell whose log this is: neither key nor policy names it"];
  if (r.quorum_ok === false) return [cantTell, "can't tell: too few witnesses of the policy have cosigned the checkpoint"];
  if (given.require === "full" && !r.request.envelopes) return [cantTell, "can't tell: the pack was made without envelopes"];
  return [proved, ""];
}

async function namedCosignatures(trust, note) {
  const all = trust.policy ? await trust.policy.cosignatures(note) : [];
  return all.map((c) => named(c.key.name, c.time, trust.now));
}

/** Resolves to the report of a correct pack. */
async function checkPack(source, trust) {
  const archive = await Archive.open(source);
  const { manifest: m, digest } = await readManifest(archive);
  const keys = readPackKeys(await archive.content("keys.json", 1 << 20));
  new Policy(await archive.content("policy", 128 << 10));
  const checkpoint = fromUTF8(await archive.content("checkpoint", 128 << 10));
  const tree = await openPackCheckpoint(parseNote(checkpoint), trust, keys);
  if (tree.origin !== m.origin || tree.size !== BigInt(m.tree_size) || hex(tree.root) !== m.root_hash) {
    throw new Mismatch("checkpoint and manifest");
  }
  await checkEntries(m, archive);
  const known = readAgents(await archive.content("agents.json", 16 << 20));
  const pack = { m, archive, hashes: new EntryHashes(m, archive), known };
  checkPolicies(pack);
  const { coverage, statements } = await readErasures(pack);
  pack.voters = await Voters.read(pack);
  if (m.acts) pack.acts = new Acts(m.acts);
  pack.comparisons = new Comparisons();
  const { unchecked, ...found } = await readShown(pack, coverage);
  await checkErasuresUsed(pack, coverage);
  const { approvals, actionsUnchecked } = await readApprovals(pack, coverage);
  pack.voters.checkUsed();
  if (pack.acts?.hasReceipts && trust.toolKeys.length > 0) await pack.acts.confirm(shownAgain(pack, coverage), trust.toolKeys);
  const acts = await pack.acts?.check(archive, shownAgain(pack, coverage), trust.toolKeys);
  const counts = { ...found, entries: m.end - m.begin, erasures: statements, approvals, voter_keys: pack.voters.lines };
  for (const [name, n] of Object.entries(m.counts)) {
    if (counts[name] !== n) throw new Mismatch("counts of the manifest");
  }
  return reportOf(m, trust, { counts, acts, unchecked, actionsUnchecked, digest, checkpoint, voters: pack.voters, comparisons: pack.comparisons });
}

function reportOf(m, trust, { counts, acts, unchecked, actionsUnchecked, digest, checkpoint, voters, comparisons }) {
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
    ...(acts ? { acts } : {}),
    ...comparisons.report(),
    actions_unchecked: actionsUnchecked,
    ...voters.report(),
    signatures_unchecked: unchecked,
    manifest_sha256: digest,
    checkpoint,
    not_covered: notCovered(m, counts.approvals, actionsUnchecked, voters),
    ok: true,
  };
}

/** Lists what no check covers, in the words of `aps verify`. */
function notCovered({ begin, request, acts }, approvals, actionsUnchecked, voters) {
  const { envelopes } = request;
  const filtered = filters(request);
  const names = [];
  if (filtered) names.push("that no withheld event fits the request (docs/spec/evidence-pack.md)");
  names.push("records.ndjson: received_at, custody, policy, and whose key public_key is");
  names.push("agents.json: display_name, custody, status, registered_at, ended_at, compromised_from");
  if (approvals > 0) {
    names.push(
      "approvals.ndjson: trace_id, policy_id, policy_version, policy_digest, rule_id, quorum, created_at, expires_at, " +
        "email and name of people, members that docs/spec/evidence-pack.md does not list",
    );
  }
  if (actionsUnchecked > 0) {
    names.push(`approvals.ndjson: agent_id and tool_name of the ${actionsUnchecked} approvals without payload`);
  }
  if (voters.lines > 0 && (filtered || !envelopes || voters.begin < begin)) {
    names.push("voters.ndjson: that no retirement of a voter key before a vote is withheld");
  }
  if (filtered || !envelopes) names.push("approvals.ndjson: that no approval, and no event of one, is withheld");
  if (acts) names.push("acts.ndjson: that no approval, vote or result of an act is withheld or lies outside the range");
  else names.push("acts.ndjson: " + noActs);
  return [...names, "keys.json, policy, report.html"];
}

/** Opens the checkpoint under the reader's trust, or under the pack's own keys if nothing is trusted. */
async function openPackCheckpoint(note, trust, keys) {
  const { size } = readCheckpoint(note);
  if (trust.keys.length > 0) return trust.open(note, size);
  for (const k of keys.filter((listed) => signedSize(listed, size))) {
    const tree = await openCheckpoint(note, k.key).catch(() => undefined);
    if (tree) return tree;
  }
  throw new Unproved("keys of the pack: wrong signature", true);
}

/**
 * Checks sizes and names of the policy files. Their digests were already compared, and readShown compares names and
 * records.
 */
function checkPolicies({ m }) {
  for (const { name, sha256, size } of m.files.filter((f) => f.name.startsWith("policies/"))) {
    if (size > 1 << 20 || name !== `policies/${sha256}.json`) throw new Mismatch("policies: digest");
  }
}

/** Returns a number with its noun. */
function count(n, one, many = one + "s") {
  return `${n} ${Number(n) === 1 ? one : many}`;
}

function packLines(r) {
  const key = r.log_key_source === "argument" ? "the key given" : "a key that the pack names itself";
  const lines = [
    `log         ${printable(r.origin)}`,
    `ok          complete for [${r.begin}, ${r.end}): ${count(r.shown, "event")} shown, ${r.withheld} withheld, ${r.erased} erased`,
    `ok          under the checkpoint of ${count(r.tree_size, "event")}, signed by ${key}`,
    `ok          ${count(r.envelopes, "envelope")}, ${count(r.approvals, "approval")}, ` +
      `${r.approvals - r.actions_unchecked} of them with the payload that was decided on`,
    ...actLines(r.acts),
    ...(r.acts?.receipts?.errors ?? []).map((e) => "wrong       " + printable(e)),
    ...comparisonLines(r.coverage ?? []),
    `manifest    ${r.manifest_sha256}`,
    ...(r.manifest_ok ? ["ok          the manifest has the digest that was given"] : []),
    ...voteLines(r),
    ...r.cosignatures.map((c) => `cosigned    by ${printable(c.name)} at ${timeWords(c)}`),
    ...(r.quorum_time ? [`cosigned    by a quorum of the policy, by ${r.quorum_time}`] : []),
  ];
  if (r.signatures_unchecked > 0) {
    lines.push(`--          ${count(r.signatures_unchecked, "signature needs", "signatures need")} envelopes that are not in the pack`);
  }
  lines.push(...r.not_covered.map((what) => "not covered: " + what));
  if (r.manifest_ok !== false) lines.push("proved, as far as checked above");
  return lines;
}
