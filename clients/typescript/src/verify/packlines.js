// The .ndjson files of an evidence pack, line by line: records and envelopes in parallel, and approvals.

import { fresh } from "../bytes.js";
import { sha256hex } from "../crypto/sha256.js";
import { parse } from "../canonical/parse.js";
import { rewrite } from "../canonical/write.js";
import { Malformed, Mismatch } from "../errors.js";
import { isComparison } from "./comparisons.js";
import { checkEnvelopeOf, checkSignatureOf, parseEnvelope, parseRecord } from "./documents.js";
import { checkForm, is, isObject, listOf } from "./forms.js";
import { canonicalObject, filters, fitsSubject, fitsTool } from "./manifest.js";

/**
 * Steps 6 to 8. Resolves to the numbers of records, envelopes, erased events, agents and policies, and of signatures
 * that cannot be checked.
 */
export async function readShown(pack, coverage) {
  const { m, archive } = pack;
  const { envelopes: requested } = m.request;
  const named = new Named(pack);
  const counts = { records: 0, envelopes: 0, erased: 0, unchecked: 0 };
  pack.unlisted = new Uint8Array(m.end - m.begin); // 1 for each statement about an approval, until approvals.ndjson has it
  const envelopes = archive.lines("envelopes.ndjson");
  let last = m.begin;
  for await (const text of archive.lines("records.ndjson")) {
    const r = await readRecord(pack, text, last);
    last = r.sequence_num;
    counts.records++;
    named.check(r);
    const canBeErased = r.signer !== "system";
    if (canBeErased) coverage?.show(last - 1);
    const erased = canBeErased && coverage !== undefined && coverage.covers(last - 1);
    if (erased) counts.erased++;
    if (requested && !erased) {
      const e = await checkEnvelope(m, r, await envelopes.next());
      if (r.signer === "system") pack.voters.checkListed(e, last - 1);
      if (r.signer === "system" && e.action_kind === "ledger_approval") pack.unlisted[last - 1 - m.begin] = 1;
      pack.comparisons.add(r, e);
      pack.acts?.addEvent(r, e);
      counts.envelopes++;
    } else {
      pack.acts?.addEvent(r, undefined);
      if (r.sig_form === "canonical") counts.unchecked++;
    }
  }
  const more = await envelopes.next();
  if (!more.done) throw new Mismatch("envelopes.ndjson: " + (requested ? "number" : "not requested for"));
  if (!filters(m.request) && counts.records !== m.end - m.begin) {
    throw new Mismatch("records.ndjson: not all events of the range");
  }
  return { ...counts, ...named.counts() };
}

/** Yields the records of shown events with their envelopes, undefined without one. They were checked before. */
export async function* shownAgain({ m, archive }, coverage) {
  const envelopes = archive.lines("envelopes.ndjson");
  coverage?.restart();
  for await (const text of archive.lines("records.ndjson")) {
    const r = parse(text);
    const erased = r.signer !== "system" && coverage !== undefined && coverage.covers(r.sequence_num - 1);
    yield [r, m.request.envelopes && !erased ? parse((await envelopes.next()).value) : undefined];
  }
}

/** Parses and checks a record (step 6). */
async function readRecord({ m, hashes }, text, last) {
  const r = parseRecord(text);
  if (r.origin !== m.origin || r.organization_id !== m.organization_id) throw new Mismatch("records.ndjson: log");
  if (r.sequence_num <= last || r.sequence_num > m.end) throw new Mismatch("records.ndjson: order or range");
  const { intent, approval_id: approval } = r.policy;
  if (![r.event_id, intent ?? "a", approval ?? "a"].every(is.id)) throw new Malformed("records.ndjson: event_id, intent, approval_id");
  await hashes.checkPlace(r, text);
  const envelopeDecides = m.request.coverage && r.signer === "system";
  if (m.request.agent_id !== null && r.agent_id !== m.request.agent_id && !envelopeDecides) throw new Mismatch("records.ndjson: agent");
  if (r.sig_form === "digest") await checkSignatureOf(r);
  return r;
}

/** The agents and policies that shown records name: the pack must contain exactly these. */
class Named {
  constructor({ m, known }) {
    this.known = known;
    this.agents = new Set();
    const files = m.files.filter((f) => f.name.startsWith("policies/"));
    this.policies = new Map(files.map((f) => [f.sha256, false]));
  }

  check(r) {
    const { policy_digest: digest } = r.policy;
    if (digest !== null && !this.policies.has(digest)) throw new Mismatch("policies: number");
    if (digest !== null) this.policies.set(digest, true);
    if (r.signer === "system") return;
    const keys = this.known.get(r.agent_id);
    if (!keys) throw new Mismatch("agents.json and the records");
    if (r.signer === "agent" && !keys.has(r.key_id + "\n" + r.public_key)) throw new Mismatch("records.ndjson: key of the agent");
    this.agents.add(fresh(r.agent_id));
  }

  /** Returns their numbers. Throws Mismatch if no record names one of them. */
  counts() {
    if (this.agents.size !== this.known.size) throw new Mismatch("agents.json and the records");
    if ([...this.policies.values()].includes(false)) throw new Mismatch("policies: number");
    return { agents: this.agents.size, policies: this.policies.size };
  }
}

/** Parses an envelope that belongs to a record, and checks the signature if the form requires the envelope. */
async function belonging(text, r) {
  const e = parseEnvelope(text);
  checkEnvelopeOf(r, e);
  if (e.members.sig_value_b64 !== r.sig_value_b64) throw new Mismatch("sig_value_b64 of envelope and record");
  if (r.sig_form === "canonical") await checkSignatureOf(r, e);
  return e.members;
}

/** Checks the line with a record's envelope (step 8). */
async function checkEnvelope(m, r, { done, value: text }) {
  if (done) throw new Mismatch("envelopes.ndjson: number");
  const { agent_id: agent, tool, trace_id: trace, coverage } = m.request;
  const e = await belonging(text, r);
  if (coverage && isComparison(r, e)) return e;
  if (agent !== null && e.agent_id !== agent) throw new Mismatch("envelopes.ndjson: agent");
  if (trace !== null && e.trace_id !== trace) throw new Mismatch("envelopes.ndjson: trace");
  if (tool !== null && !fitsTool(tool, e.tool_name)) throw new Mismatch("envelopes.ndjson: tool");
  if (m.request.on_behalf_of !== undefined && !fitsSubject(m.request, e.on_behalf_of)) throw new Mismatch("envelopes.ndjson: subject");
  return e;
}

/** Checks a statement of the service: its record and its envelope. Resolves to the envelope's members. */
export async function checkStatement(m, r, text, kind) {
  if (r.signer !== "system" || r.origin !== m.origin || r.organization_id !== m.organization_id) {
    throw new Mismatch("statement: signer or log");
  }
  if (r.sig_form !== "digest") throw new Mismatch("statement: form of the signature");
  await checkSignatureOf(r);
  const e = await belonging(text, r);
  if (e.action_kind !== kind) throw new Mismatch("statement: action_kind");
  return e;
}

const optionalText = (v) => v === undefined || is.text(v);
const personForms = { account_id: is.someText, email: is.text, name: is.text };

/** Step 9. Resolves to the number of approvals, and the number of those without payload. */
export async function readApprovals(pack, coverage) {
  const names = new Set(); // hashes, because an ID may be as long as a line
  let [before, actionsUnchecked] = [0, 0];
  for await (const line of pack.archive.lines("approvals.ndjson", 20_000)) {
    const a = canonicalObject(line, { approval_id: is.someText, events: listOf(isObject) }, { closed: false });
    const name = sha256hex(a.approval_id);
    if (names.has(name) || a.events.length === 0) throw new Mismatch("approvals.ndjson: approval_id or events");
    names.add(name);
    const first = await readApproval(pack, a);
    if (first <= before) throw new Mismatch("approvals.ndjson: order");
    before = first;
    if (a.payload === undefined || a.payload === null) actionsUnchecked++;
  }
  await checkUnlisted(pack, coverage, names);
  return { approvals: names.size, actionsUnchecked };
}

/**
 * Checks that approvals.ndjson has the shown statements about approvals. With a filter, these may be about approvals that
 * the filter excludes, so only those about the listed ones count. `names` are hashes of their IDs.
 */
async function checkUnlisted(pack, coverage, names) {
  const { m, unlisted } = pack;
  if (!unlisted.includes(1)) return;
  const missing = new Mismatch("approvals.ndjson: a shown event that is not in it");
  if (!filters(m.request)) throw missing;
  for await (const [r, e] of shownAgain(pack, coverage)) {
    if (unlisted[r.sequence_num - 1 - m.begin] === 0) continue;
    const { approval_id: name } = e.payload;
    if (is.text(name) && names.has(sha256hex(name))) throw missing;
  }
}

/** Compares the action and the voters in a line with its events. */
function checkAction({ m, acts }, a, { action, actors }) {
  for (const name of ["action_digest", "agent_id", "tool_name"]) {
    if (!optionalText(a[name])) throw new Malformed("approvals.ndjson: " + name);
  }
  if (a.action_digest !== undefined && a.action_digest !== action) throw new Mismatch("approvals.ndjson: action_digest");
  const people = a.people === undefined ? [] : a.people;
  if (!Array.isArray(people)) throw new Malformed("approvals.ndjson: people");
  const accounts = new Set();
  for (const p of people) {
    checkForm(p, personForms, { optional: ["name"] });
    if (accounts.has(p.account_id) || !actors.has(p.account_id)) throw new Mismatch("approvals.ndjson: people and the events");
    accounts.add(p.account_id);
    acts?.addPerson(p);
  }
  const absent = a.payload === undefined || a.payload === null;
  const subject = a.on_behalf_of;
  if (subject !== undefined && (absent || !isObject(subject))) throw new Malformed("approvals.ndjson: on_behalf_of");
  if (absent) return;
  if (!is.text(a.payload) || a.agent_id === undefined || a.tool_name === undefined) throw new Malformed("approvals.ndjson: payload");
  const payload = parse(a.payload);
  if (!isObject(payload) || rewrite(payload) !== a.payload) throw new Malformed("approvals.ndjson: payload");
  const [agent, tool] = [rewrite(a.agent_id), rewrite(a.tool_name)];
  const [behalf, version] = subject === undefined ? ["", 1] : [`"on_behalf_of":${rewrite(subject)},`, 2];
  const text = `{"agent_id":${agent},${behalf}"organization_id":"${m.organization_id}","payload":${a.payload},"tool_name":${tool},"v":${version}}`;
  if (sha256hex(text) !== action) throw new Mismatch("approvals.ndjson: agent_id, tool_name, payload, on_behalf_of and action_digest");
}

/** Resolves to the sequence_num of an approval's first event. */
async function readApproval(pack, a) {
  const { m, hashes, voters, acts, unlisted } = pack;
  const numbers = [];
  const seen = { action: undefined, actors: new Set() };
  for (const x of a.events) {
    checkForm(x, { envelope: is.text, record: is.text });
    const r = parseRecord(x.record);
    if (r.sequence_num <= (numbers.at(-1) ?? m.begin) || r.sequence_num > m.end) throw new Mismatch("approvals.ndjson: order or range");
    numbers.push(r.sequence_num);
    await hashes.checkPlace(r, x.record);
    const e = await checkStatement(m, r, x.envelope, "ledger_approval");
    if (e.payload.approval_id !== a.approval_id) throw new Mismatch("approvals.ndjson: another approval");
    const { action_digest: action } = e.payload;
    if (action !== undefined && !is.someHash(action)) throw new Malformed("approvals.ndjson: action_digest of an event");
    if (numbers.length > 1 && action !== seen.action) throw new Mismatch("approvals.ndjson: action_digest of the events");
    await voters.checkVote(r, e);
    acts?.addStatement(a.approval_id, r.sequence_num - 1, e);
    unlisted[r.sequence_num - 1 - m.begin] = 0;
    seen.action = action;
    seen.actors.add(e.actor_principal.split("/", 1)[0]);
  }
  checkAction(pack, a, seen);
  return numbers[0];
}
