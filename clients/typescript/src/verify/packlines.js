// The .ndjson files of an evidence pack: records, envelopes, approvals, erasures.

import { unhex } from "../bytes.js";
import { sha256hex } from "../crypto/sha256.js";
import { Malformed, Mismatch } from "../errors.js";
import { checkInclusion, leafHash, parseHashes } from "../log/tree.js";
import { checkEnvelopeOf, checkSignatureOf, parseEntry, parseEnvelope, parseRecord } from "./documents.js";
import { checkForm, is, isObject, listOf } from "./forms.js";
import { canonicalObject, fitsTool } from "./manifest.js";
import { linesOf } from "./zip.js";

/** Step 6. Resolves to the shown records. */
export async function readRecords({ m, files, hashes, known }) {
  const shown = [];
  let last = m.begin;
  for (const text of linesOf(files.get("records.ndjson"))) {
    const r = parseRecord(text);
    if (r.origin !== m.origin || r.organization_id !== m.organization_id) throw new Mismatch("records.ndjson: log");
    if (r.sequence_num <= last || r.sequence_num > m.end) throw new Mismatch("records.ndjson: order or range");
    last = r.sequence_num;
    checkPlace(m, hashes, r, text);
    if (m.request.agent_id !== null && r.agent_id !== m.request.agent_id) throw new Mismatch("records.ndjson: agent");
    if (r.sig_form === "digest") await checkSignatureOf(r);
    if (r.signer === "agent" && !known.get(r.agent_id)?.has(r.key_id + "\n" + r.public_key)) {
      throw new Mismatch("records.ndjson: key of the agent");
    }
    shown.push(r);
  }
  checkShown(m, hashes, known, shown);
  return shown;
}

function checkPlace(m, hashes, r, text) {
  if (sha256hex(text) !== hashes[r.sequence_num - 1 - m.begin]) throw new Mismatch("record and its hash in entries.bin");
}

function checkShown(m, hashes, known, shown) {
  const { agent_id: agent, tool, trace_id: trace } = m.request;
  if (agent === null && tool === null && trace === null && shown.length !== hashes.length) {
    throw new Mismatch("records.ndjson: not all events of the range");
  }
  const agents = new Set(shown.filter((r) => r.signer !== "system").map((r) => r.agent_id));
  if (agents.size !== known.size || [...agents].some((a) => !known.has(a))) throw new Mismatch("agents.json and the records");
}

/** Reads an envelope that belongs to a record, and checks the signature where the form needs it. */
async function belonging(text, r) {
  const e = parseEnvelope(text);
  checkEnvelopeOf(r, e);
  if (e.members.sig_value_b64 !== r.sig_value_b64) throw new Mismatch("sig_value_b64 of envelope and record");
  if (r.sig_form === "canonical") await checkSignatureOf(r, e);
  return e.members;
}

/** Step 8. Resolves to the number of envelopes. */
export async function readEnvelopes({ m, files }, shown, erased) {
  const lines = linesOf(files.get("envelopes.ndjson"));
  if (!m.request.envelopes) {
    if (lines.length > 0) throw new Mismatch("envelopes.ndjson: not asked for");
    return 0;
  }
  const wanted = shown.filter((r) => !erased.has(r.sequence_num));
  if (lines.length !== wanted.length) throw new Mismatch("envelopes.ndjson: number");
  const { tool, trace_id: trace } = m.request;
  for (const [i, text] of lines.entries()) {
    const e = await belonging(text, wanted[i]);
    if (trace !== null && e.trace_id !== trace) throw new Mismatch("envelopes.ndjson: trace");
    if (tool !== null && !fitsTool(tool, e.tool_name)) throw new Mismatch("envelopes.ndjson: tool");
  }
  return lines.length;
}

/** Checks a statement of the service: its record and its envelope. Resolves to the envelope's members. */
async function statement(m, r, text, kind) {
  if (r.signer !== "system" || r.origin !== m.origin || r.organization_id !== m.organization_id) {
    throw new Mismatch("statement: signer or log");
  }
  if (r.sig_form !== "digest") throw new Mismatch("statement: form of the signature");
  await checkSignatureOf(r);
  const e = await belonging(text, r);
  if (e.action_kind !== kind) throw new Mismatch("statement: action_kind");
  return e;
}

/** Step 9. Resolves to the number of approvals. */
export async function readApprovals({ m, files, hashes }) {
  const names = new Set();
  let before = 0;
  for (const line of linesOf(files.get("approvals.ndjson"), 20_000)) {
    const a = canonicalObject(line, { approval_id: is.someText, events: listOf(isObject) }, { closed: false });
    if (names.has(a.approval_id) || a.events.length === 0) throw new Mismatch("approvals.ndjson: approval_id or events");
    names.add(a.approval_id);
    before = await readApproval(m, hashes, a, before);
  }
  return names.size;
}

async function readApproval(m, hashes, a, before) {
  let last = 0;
  let first = 0;
  for (const x of a.events) {
    checkForm(x, { envelope: is.text, record: is.text });
    const r = parseRecord(x.record);
    if (r.sequence_num <= Math.max(last, m.begin) || r.sequence_num > m.end) throw new Mismatch("approvals.ndjson: order or range");
    last = r.sequence_num;
    first ||= last;
    checkPlace(m, hashes, r, x.record);
    const e = await statement(m, r, x.envelope, "ledger_approval");
    if (e.payload.approval_id !== a.approval_id) throw new Mismatch("approvals.ndjson: another approval");
  }
  if (first <= before) throw new Mismatch("approvals.ndjson: order");
  return first;
}

/** Step 10. Resolves to the erased events (by sequence_num) and the number of statements. */
export async function readErasures({ m, files }, shown) {
  const erased = new Set();
  const lines = linesOf(files.get("erasures.ndjson"), 20_000);
  let last = 0;
  for (const line of lines) {
    const x = canonicalObject(line, { entry: is.text, envelope: is.text, proof: listOf(is.hash), record: is.text });
    const r = parseRecord(x.record);
    const { record, seq } = parseEntry(x.entry);
    if (sha256hex(x.record) !== record || seq !== r.sequence_num || seq <= last) throw new Mismatch("erasures.ndjson: entry or order");
    last = seq;
    checkInclusion(BigInt(seq - 1), BigInt(m.tree_size), leafHash(x.entry), unhex(m.root_hash, 32), parseHashes(x.proof));
    const e = await statement(m, r, x.envelope, "ledger_envelope_erased");
    const covered = coveredBy(e.payload, seq, shown);
    if (covered.length === 0) throw new Mismatch("erasures.ndjson: of no shown event");
    for (const n of covered) erased.add(n);
  }
  return { erased, statements: lines.length };
}

/** Returns the sequence numbers of shown events whose envelope a statement erased. */
function coveredBy(payload, seq, shown) {
  checkForm(payload, { ranges: is.list, reason: is.matches(/^[a-z0-9_]{1,32}$/) });
  const { ranges } = payload;
  if (ranges.length < 1 || ranges.length > 1024) throw new Malformed("erasures.ndjson: ranges");
  let end = 0;
  for (const pair of ranges) {
    const good = Array.isArray(pair) && pair.length === 2 && pair.every(is.natural);
    if (!good || pair[0] < end || pair[0] >= pair[1] || pair[1] > seq - 1) throw new Malformed("erasures.ndjson: a range");
    end = pair[1];
  }
  const inRanges = (n) => ranges.some(([a, b]) => a < n && n <= b);
  return shown.filter((r) => r.signer !== "system" && inRanges(r.sequence_num)).map((r) => r.sequence_num);
}
