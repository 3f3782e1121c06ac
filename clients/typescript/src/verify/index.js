// Offline verification with the three outcomes of `aps verify`.

import { LedgerError, Malformed, Mismatch, UnknownVersion, printable } from "../errors.js";
import { hex, unhex } from "../bytes.js";
import { openCheckpoint, parseLogKey, parseNote } from "../log/note.js";
import { checkConsistency, checkTlogProof, parseHashes, parseTlogProof } from "../log/tree.js";
import { named } from "../log/policy.js";
import { parse } from "../canonical/parse.js";
import { parseBundle } from "./bundle.js";
import { check } from "./check.js";
import { checkForm, is, isObject, listOf } from "./forms.js";
import { Trust } from "./trust.js";
import { reportLines } from "./words.js";

/** The outcomes. `status` is the exit status of `aps verify`. */
export const proved = { outcome: "proved", status: 0 };
export const provedWrong = { outcome: "proved_wrong", status: 1 };
export const cantTell = { outcome: "cant_tell", status: 2 };

/** Returns an outcome with its reason. */
export function result(outcome, reason, more = {}) {
  return { ...outcome, reason, lines: [], report: undefined, ...more };
}

/**
 * Verifies a bundle (text or bytes). `given`: key, policy, keys, now; directory with the same; require (commitment,
 * record, full); event, the requested event_id; toolKeys, the verifier keys of tools whose receipts confirm acts; intent, the bundle
 * of the intent, which shows the act that the event is the result of. Throws only for unusable options.
 */
export async function verifyBundle(source, given = {}) {
  const trust = new Trust(given);
  const directory = new Trust({ now: trust.now, ...given.directory });
  let b;
  try {
    b = parseBundle(source);
  } catch (why) {
    return unreadable(source, why);
  }
  if (given.event !== undefined && given.event !== b.event_id) {
    return result(provedWrong, "the service sent the bundle of another event");
  }
  const options = withDirectory(trust.options(b), directory, b.directory);
  const { report: r } = await check(b, options);
  const unknown = r.ok ? [] : await (await import("./unknown.js")).unknownKeys(b, options); // loaded if something is wrong
  if (r.checkpoint_ok && trust.policy) await addQuorum(r, "", trust, parseNote(b.checkpoint));
  if (r.directory_ok && directory.policy) {
    await addQuorum(r, "directory_", directory, parseNote(b.directory.bundle.checkpoint));
  }
  if (unknown.length > 0) r.unknown_keys = unknown;
  const receipt = await toolReceipt(b, r, trust, given.intent);
  if (receipt.verdict) r.tool_receipt = receipt.verdict;
  const [outcome, reason] = judge(r, b, trust, directory, given.require ?? "commitment", receipt);
  return result(outcome, reason, { report: r, lines: reportLines(b, r, receipt.line) });
}

/**
 * Resolves to what the receipt of a tool adds to the report of a proved bundle (see describeReceipt). The check is loaded only if the
 * bundle shows a receipt or keys of tools are given: most pages of events do without it.
 */
async function toolReceipt(b, r, trust, intent) {
  const shown = b.envelope?.includes('"receipt":"agentledger/receipt/v1\\n');
  if (!r.ok || !(shown || trust.toolKeys.length > 0)) return {};
  const { describeReceipt } = await import("./toolreceipt.js");
  return describeReceipt(b, r, trust, intent);
}

/** Adds to a report whether the policy's quorum is reached, and the time by which it was. */
async function addQuorum(r, prefix, trust, note) {
  r[prefix + "quorum_ok"] = await trust.quorum(note);
  const time = await trust.quorumTime(note);
  if (time !== undefined) r[prefix + "quorum_time"] = time;
}

function withDirectory(options, directory, second) {
  if (!second || (directory.keys.length === 0 && !directory.policy)) return options;
  const inner = directory.options(second.bundle);
  for (const w of options.witnesses) {
    if (!inner.witnesses.some((own) => own.text === w.text)) inner.witnesses.push(w);
  }
  return { ...options, directory: inner };
}

function judge(r, b, trust, directory, require, receipt) {
  if (r.unknown_keys) return [cantTell, unknownReason(r.unknown_keys)];
  if (!r.ok) return [provedWrong, "not proved: " + printable(r.errors[0])];
  if (receipt.wrong) return [provedWrong, "not confirmed: " + receipt.wrong];
  if (trust.keys.length === 0) return [cantTell, "can't tell whose log this is: neither key nor policy names it"];
  if (r.quorum_ok === false) return [cantTell, "can't tell: too few witnesses of the policy have cosigned the checkpoint"];
  if (directory.specified && !b.directory) return [cantTell, "can't tell: the bundle has no second proof by the directory"];
  if (r.directory_quorum_ok === false) {
    return [cantTell, "can't tell: too few witnesses of the directory's policy have cosigned its checkpoint"];
  }
  const missing = missingPart(r, require);
  if (missing) return [cantTell, `can't tell: the ${missing} is not disclosed`];
  return receipt.unconfirmed ? [cantTell, "can't tell whether the tool did it: " + receipt.unconfirmed] : [proved, ""];
}

/** Returns the reason for a document that was signed by other keys than the given ones. */
export function unknownReason(signers) {
  return `can't tell: signed by the key ${printable(signers.join(" and "))}, which is not among those that you trust`;
}

const unknownReport = (signers) => ({ report: { ok: false, unknown_keys: signers } });

function missingPart(r, require) {
  if (require === "full" && r.envelope_ok === null) return "envelope";
  if (require === "commitment") return undefined;
  if (r.record_ok === null) return "record";
  return r.signature_ok === null ? "envelope, without which the signature can't be checked," : undefined;
}

/** Distinguishes a bundle that violates the rules from a text that is not a bundle or of a later version. */
function unreadable(source, why) {
  if (!(why instanceof LedgerError)) throw why;
  const text = typeof source === "string" ? source : new TextDecoder("utf-8", { ignoreBOM: true }).decode(source);
  let looksLikeOne = false;
  try {
    looksLikeOne = isObject(JSON.parse(text)) && text.includes('"inclusion"');
  } catch {
    // Not JSON.
  }
  if (why instanceof UnknownVersion || !looksLikeOne) {
    return result(cantTell, "not a bundle that this program reads: " + printable(why.message));
  }
  return result(provedWrong, "not proved: " + printable(why.message));
}

/** Verifies a C2SP tlog-proof for an entry's text. `given`: key, policy, keys. */
export async function verifyTlogProof(text, entry, given = {}) {
  const trust = new Trust(given);
  try {
    const proof = parseTlogProof(text);
    if (trust.keys.length === 0) return result(cantTell, "can't tell whose log this is: neither key nor policy names it");
    const { size } = await checkTlogProof(proof, entry);
    try {
      await trust.open(proof.note, size);
    } catch (why) {
      if (why.unknown?.length > 0) return result(cantTell, unknownReason(why.unknown), unknownReport(why.unknown));
      throw why;
    }
    const report = { ok: true, log_index: proof.index, tree_size: size };
    if (trust.policy) {
      const seen = await trust.policy.cosignatures(proof.note);
      report.cosignatures = seen.map((c) => named(c.key.name, c.time, trust.now));
      await addQuorum(report, "", trust, proof.note);
    }
    if (report.quorum_ok === false) {
      return result(cantTell, "can't tell: too few witnesses of the policy have cosigned the checkpoint", { report });
    }
    return result(proved, "", { report });
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return result(provedWrong, "not proved: " + printable(why.message));
  }
}

/** Checks a head (an answer of transparency/head) under a log's key. Returns its checkpoint. Throws. */
export async function checkHead(head, key) {
  if (key.name !== head.origin) throw new Mismatch("check head: origin and name of the log key");
  const tree = await openCheckpoint(parseNote(head.checkpoint), key);
  if (BigInt(head.tree_size) !== tree.size || head.root_hash !== hex(tree.root)) {
    throw new Mismatch("check head: tree_size, root_hash and checkpoint");
  }
  checkLatest(head, tree);
  return { ...tree, note: head.checkpoint };
}

function checkLatest(head, { size, root }) {
  const latest = [head.latest_log_index, head.latest_leaf_hash, head.latest_published_at].map((v) => v ?? null);
  if (size === 0n) {
    if (latest.some((v) => v !== null)) throw new Mismatch("check head: a latest entry of an empty log");
    return;
  }
  if (latest[0] === null || BigInt(latest[0]) !== size - 1n) throw new Mismatch("check head: latest_log_index and tree_size");
  if (head.fault && latest[1] === null && latest[2] === null) return;
  if (latest[1] === null || latest[2] === null) throw new Mismatch("check head: no latest entry");
  if (size === 1n && latest[1] !== hex(root)) throw new Mismatch("check head: latest_leaf_hash and the root over it alone");
}

const headForms = { origin: is.text, tree_size: is.natural, root_hash: is.hash, checkpoint: is.text };

/** Verifies a head (text or object) with a pinned key or policy. */
export async function verifyHead(source, given = {}) {
  return proveUnder(given, async (trust) => {
    const head = isObject(source) ? source : parse(source);
    checkForm(head, headForms, { closed: false });
    const note = parseNote(head.checkpoint);
    const tree = await trust.open(note, BigInt(head.tree_size));
    const key = trust.known.find((k) => k.name === tree.origin && note.lines.some((l) => k.owns(l)));
    return { note, report: { checkpoint: await checkHead(head, key) } };
  });
}

/** Runs a check under a reader's trust and returns its outcome. */
export async function proveUnder(given, ask) {
  const trust = new Trust(given);
  if (trust.keys.length === 0) return result(cantTell, "can't tell whose log this is: neither key nor policy names it");
  try {
    const { note, report } = await ask(trust);
    if (note && trust.policy) await addQuorum(report, "", trust, note);
    if (report.quorum_ok === false) {
      return result(cantTell, "can't tell: too few witnesses of the policy have cosigned the checkpoint", { report });
    }
    return result(proved, "", { report });
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    if (why.unknown?.length > 0) return result(cantTell, unknownReason(why.unknown), unknownReport(why.unknown));
    return result(provedWrong, "not proved: " + printable(why.message));
  }
}

const consistencyForms = { from: is.natural, to: is.natural, from_root: is.hash, to_root: is.hash, hashes: listOf(is.hash) };

/** Verifies that the newer checkpoint (note) extends the older one, by an answer of transparency/consistency. */
export async function verifyConsistency(source, older, newer, given = {}) {
  return proveUnder(given, async (trust) => {
    const answer = isObject(source) ? source : parse(source);
    checkForm(answer, consistencyForms, { closed: false });
    const [first, second] = [parseNote(older), parseNote(newer)];
    const from = await trust.open(first, BigInt(answer.from));
    const to = await trust.open(second, BigInt(answer.to));
    checkConsistencyAnswer(answer, from, to);
    return { note: second, report: { from, to } };
  });
}

/** Checks an answer of transparency/consistency between two opened checkpoints. Throws. */
export function checkConsistencyAnswer(answer, from, to) {
  if (from.origin !== to.origin) throw new Mismatch("origins of the checkpoints");
  if (BigInt(answer.from) !== from.size || BigInt(answer.to) !== to.size) throw new Mismatch("from, to and the checkpoints' sizes");
  if (answer.from_root !== hex(from.root) || answer.to_root !== hex(to.root)) {
    throw new Mismatch("from_root, to_root and the checkpoints' roots");
  }
  checkConsistency(from.size, to.size, unhex(answer.from_root, 32), unhex(answer.to_root, 32), parseHashes(answer.hashes));
}

export { parseLogKey, Malformed };
