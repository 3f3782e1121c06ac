// The acts of an evidence pack (docs/spec/evidence-pack.md, The acts): derived from its events and approvals, and compared with
// acts.ndjson.

import { rewrite } from "../canonical/write.js";
import { fresh, utf8 } from "../bytes.js";
import { sha256hex } from "../crypto/sha256.js";
import { LedgerError, Malformed, Mismatch, printable } from "../errors.js";
import { is, isObject } from "./forms.js";
import { Unconfirmed, receiptActionOf, confirmAct, findReceipt } from "./receipt.js";

const maxVotes = 100_000;
const maxApprovers = 1000; // in a report
const maxClaim = 512; // bytes of each text about an approver
const maxText = 128; // bytes of a text in a column
const maxWrong = 10; // receipts that a report describes

const outcomes = ["done", "failed", "refused", "denied", "expired", "cancelled", "unknown", "waiting", "open"];

const results = new Map([
  ["", "ok"],
  ["ok", "ok"],
  ["error", "error"],
  ["denied", "denied"],
]);
const steps = new Map([
  ["ok", "ok"],
  ["done", "ok"],
  ["completed", "ok"],
  ["succeeded", "ok"],
  ["success", "ok"],
  ["error", "error"],
  ["failed", "error"],
  ["denied", "denied"],
  ["skipped", "skipped"],
  ["unknown", "unknown"],
]);
const statuses = new Map([
  ["requested", "waiting"],
  ["voted", "waiting"],
  ["pending", "waiting"],
  ["approved", "approved"],
  ["consumed", "approved"],
  ["denied", "refused"],
  ["revoked", "refused"],
  ["expired", "expired"],
  ["cancelled", "cancelled"],
  ["invalidated", "cancelled"],
]);

/** Returns a member of an object if it is a text, and otherwise "". */
const textOf = (object, name) => (Object.hasOwn(object, name) && is.text(object[name]) ? object[name] : "");

const maxSteps = 16; // of a column

/** Returns the names and places of a column. */
const stepsOf = (name) => name.match(/[^.[\]]+|\[[0-9]+/g);

const columnForm = /^[A-Za-z0-9_-]+(?:\[(?:0|[1-9][0-9]{0,4})\])*(?:\.[A-Za-z0-9_-]+(?:\[(?:0|[1-9][0-9]{0,4})\])*)*$/;

/** Reports whether a value is the name of a column. */
export function isColumn(v) {
  if (!is.text(v) || v.length > maxText || !columnForm.test(v) || stepsOf(v).length > maxSteps) return false;
  return [...v.matchAll(/\[([0-9]+)/g)].every(([, place]) => Number(place) < 1 << 16);
}

function columnValue(e, name) {
  let value = e?.payload;
  for (const step of stepsOf(name)) {
    if (step.startsWith("[")) value = Array.isArray(value) ? value[Number(step.slice(1))] : undefined;
    else value = isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }
  if (typeof value === "number") return value;
  return is.text(value) && utf8(value).length <= maxText ? value : null;
}

/** Returns the name of the step that an envelope names with a suffix of its key, or undefined. */
function stepName(e, suffix) {
  const [run, key] = [textOf(e, "run_id"), textOf(e, "step_key")];
  if (!key.endsWith(suffix) || run === "" || key.length === suffix.length) return undefined;
  if (!Object.hasOwn(e, "attempt") || !is.natural(e.attempt)) return undefined;
  return sha256hex(JSON.stringify([run, e.attempt, key.slice(0, key.length - suffix.length)])); // of bounded size
}

/** The acts of a pack. Add all events and statements, and then call `check`. */
export class Acts {
  #columns;
  #lines; // of the manifest
  #acts = new Map(); // by event_id, in the order of the log
  #results = new Map(); // by event_id of the act: the first one
  #steps = new Map(); // acts of steps without a status of their own, by the name of the step
  #ends = []; // of these steps
  #approvals = new Map(); // by approval_id
  #people = new Map(); // by account_id
  #votes = 0;
  #twice = false;
  #joined = false;
  /** Whether a result has the receipt of a tool. */
  hasReceipts = false;

  constructor({ columns, lines }) {
    this.#columns = columns;
    this.#lines = lines;
  }

  /** Adds a shown event, in the order of the log. `e` is undefined if the envelope is not in the pack. */
  addEvent(r, e) {
    const index = r.sequence_num - 1;
    const bridge = r.signer === "bridge";
    if (r.signer === "system") return;
    if (bridge && e && e.tool_name === undefined && e.action_kind === "result") {
      const step = stepName(e, ".result");
      if (step !== undefined) this.#ends.push({ step, index, report: steps.get(textOf(e, "step_status")) ?? "unknown" });
    } else if (r.policy.intent !== undefined) {
      if (this.#results.has(r.policy.intent)) return;
      let report = "unknown";
      if (e && bridge) report = steps.get(textOf(e, "step_status")) ?? "unknown";
      else if (e) report = results.get(textOf(e.payload, "status")) ?? "unknown";
      const receipt = e !== undefined && findReceipt(e) !== undefined;
      this.hasReceipts ||= receipt;
      this.#results.set(fresh(r.policy.intent), { index, report, receipt });
    } else if (r.policy.evaluated) {
      this.#addAct(r, e, index, bridge);
    }
  }

  #addAct(r, e, index, bridge) {
    const phase = e ? textOf(e.payload, "phase") : "";
    if (e && (e.tool_name === undefined || phase === "result")) return;
    const used = r.policy.approval_id && fresh(r.policy.approval_id);
    const act = { index, unseen: !e, decision: fresh(r.policy.effective), used, announces: phase === "intent" };
    if (e && bridge && phase !== "intent") {
      const status = textOf(e, "step_status");
      act.report = steps.get(status);
      act.announces = status === "started";
      const step = act.report === undefined ? stepName(e, "") : undefined;
      if (step !== undefined) this.#steps.set(step, act);
    }
    this.#twice ||= this.#acts.has(r.event_id);
    this.#acts.set(fresh(r.event_id), act);
  }

  /** Adds a statement about an approval; those about one approval in the order of the log. Throws Malformed. */
  addStatement(approvalId, index, e) {
    if (!is.id(approvalId)) return;
    let a = this.#approvals.get(approvalId);
    if (!a) {
      a = { id: fresh(approvalId), intent: "", votes: [] };
      this.#approvals.set(a.id, a);
    }
    const intent = textOf(e.payload, "intent_event_id");
    a.intent ||= intent === "" || is.id(intent) ? fresh(intent) : " "; // no event has another one
    const transition = textOf(e.payload, "transition");
    const status = statuses.get(transition);
    if (status === undefined) return;
    a.status = status;
    a.last = index;
    const vote = textOf(e.payload, "vote");
    const account = e.actor_principal.split("/", 1)[0];
    if ((vote === "" && transition !== "revoked") || !is.id(account)) return;
    if (++this.#votes > maxVotes) throw new Malformed("approvals.ndjson: number of votes");
    const represented = textOf(e.payload, "deputy_for");
    const deputy = is.id(represented) ? { deputy_for: fresh(represented) } : {};
    a.votes.push({ account_id: fresh(account), ...deputy, vote: vote === "approve" ? "approve" : "deny" });
  }

  /** Adds a voter, as the operator states. */
  addPerson(p) {
    if (this.#people.size >= maxApprovers || this.#people.has(p.account_id)) return;
    if ([p.account_id, p.email, p.name ?? ""].every((text) => utf8(text).length <= maxClaim)) {
      const account = fresh(p.account_id);
      this.#people.set(account, { account_id: account, email: fresh(p.email), name: fresh(p.name ?? "") });
    }
  }

  #join() {
    if (this.#joined) return;
    this.#joined = true;
    if (this.#twice) throw new Mismatch("acts: event_id of two acts");
    for (const [name, result] of this.#results) {
      const act = this.#acts.get(name);
      if (act) Object.assign(act, { result: result.index, report: result.report, receipt: result.receipt });
    }
    for (const { step, index, report } of this.#ends) {
      const act = this.#steps.get(step);
      if (act && act.result === undefined && act.index < index) Object.assign(act, { result: index, report });
    }
    const link = (act, a) => {
      if (act && a?.status && (!act.approval || act.approval.last < a.last)) act.approval = a;
    };
    for (const a of this.#approvals.values()) if (a.intent !== "") link(this.#acts.get(a.intent), a);
    for (const act of this.#acts.values()) {
      if (act.used === null) continue;
      link(act, this.#approvals.get(act.used));
      act.approval ??= { id: act.used, status: "approved", votes: [] };
    }
  }

  /** Checks the receipts of tools under their keys. `shown` yields the records and envelopes that were added. */
  async confirm(shown, keys) {
    this.#join();
    const used = new Set(); // texts of the receipts
    for await (const [r, e] of shown) {
      const act = this.#acts.get(r.event_id);
      if (e && act?.index === r.sequence_num - 1 && act.receipt) act.action = receiptActionOf(e);
      const of = this.#acts.get(r.policy.intent);
      if (!of?.receipt || of.result !== r.sequence_num - 1) continue;
      try {
        of.confirmed = await confirmAct(e, r.policy.intent, of.action, keys);
        const text = sha256hex(findReceipt(e).split("\n\n", 1)[0]);
        if (used.has(text)) throw new Mismatch("the receipt is for another act, which has it too");
        used.add(text);
      } catch (why) {
        if (!(why instanceof LedgerError)) throw why;
        of.confirmed = undefined;
        if (!(why instanceof Unconfirmed)) of.wrong = why.message;
      }
    }
  }

  /**
   * Compares the lines of acts.ndjson with the acts. `shown` yields the records and envelopes that were added. Resolves
   * to the counts of a report. `keys` are those of confirm. Throws Mismatch.
   */
  async check(archive, shown, keys) {
    this.#join();
    const receipts = newReceipts(keys);
    const report = { count: 0, outcomes: {}, approved_done: 0, refused_done: 0, approvers: [] };
    const approvers = new Map();
    const lines = archive.lines("acts.ndjson");
    for await (const [r, e] of shown) {
      const act = this.#acts.get(r.event_id);
      if (act?.index !== r.sequence_num - 1) continue;
      const line = this.#line(act, r, e);
      const { done, value: text } = await lines.next();
      report.count++;
      if (done || text !== rewrite(line)) throw new Mismatch(`acts: line ${report.count} and the act that follows from the pack`);
      count(report, approvers, line);
      countReceipt(receipts, act, line);
    }
    if (this.hasReceipts || keys.length > 0) report.receipts = receipts;
    if (!(await lines.next()).done) throw new Mismatch("acts: a line without an act");
    if (report.count !== this.#lines) throw new Mismatch("acts: lines of the manifest");
    report.approvers = [...approvers.values()].sort((a, b) => (a.account_id < b.account_id ? -1 : 1));
    for (const p of report.approvers) {
      const { email = "", name = "" } = this.#people.get(p.account_id) ?? {};
      Object.assign(p, { email, name });
    }
    return report;
  }

  #line(act, r, e) {
    return {
      actor_principal: e?.actor_principal ?? null,
      agent_id: r.agent_id,
      approval_id: act.approval?.id ?? null,
      approval_status: act.approval?.status ?? null,
      columns: Object.fromEntries(this.#columns.map((name) => [name, columnValue(e, name)])),
      decision: act.decision,
      event_id: r.event_id,
      log_index: act.index,
      outcome: outcomeOf(act),
      policy_id: r.policy.policy_id,
      policy_version: r.policy.policy_version,
      received_at: r.received_at,
      result_log_index: act.result ?? null,
      rule_id: r.policy.rule_id,
      tool_name: e?.tool_name ?? null,
      votes: act.approval?.votes ?? [],
    };
  }
}

function outcomeOf(act) {
  const [report, status] = [act.report, act.approval?.status];
  if (report === "ok") return "done";
  if (report === "error") return "failed";
  if (status === "refused") return "refused";
  if (act.decision === "deny") return "denied";
  if (status === "expired") return "expired";
  if (status === "cancelled" || report === "skipped") return "cancelled";
  if (report === "denied" || report === "unknown") return report;
  if (status === "waiting") return "waiting";
  if (act.unseen) return "unknown";
  return act.announces || (act.decision === "allow_with_obligation" && status !== "approved") ? "open" : "done";
}

function newReceipts(keys) {
  const tools = [...new Set(keys.map((k) => k.name))].map((name) => ({ name, confirmed: 0 }));
  return { confirmed: 0, failed: 0, without_grant: 0, claimed: 0, unchecked: 0, wrong: 0, tools, errors: [] };
}

function countReceipt(r, { receipt, confirmed, wrong, index }, { outcome }) {
  if (confirmed) {
    r.confirmed++;
    if (confirmed.status >= 400) r.failed++;
    if (confirmed.approval_id === undefined) r.without_grant++;
    r.tools.find((t) => t.name === confirmed.by).confirmed++;
    return;
  }
  if (outcome === "done" || outcome === "failed") r.claimed++;
  if (!receipt) return;
  if (wrong === undefined) r.unchecked++;
  else if (++r.wrong <= maxWrong) r.errors.push(`act ${index}: ${wrong}`);
}

function count(report, approvers, { outcome, approval_status: status, votes }) {
  report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1;
  const approved = status === "approved" && votes.some((v) => v.vote === "approve");
  if (outcome === "done" && approved) report.approved_done++;
  if (outcome === "done" && ["refused", "expired", "cancelled"].includes(status)) report.refused_done++;
  if (status !== "approved" && status !== "refused") return;
  const [vote, member] = status === "approved" ? ["approve", "approved"] : ["deny", "refused"];
  for (const account of new Set(votes.filter((v) => v.vote === vote).map((v) => v.account_id))) {
    if (!approvers.has(account)) {
      if (approvers.size >= maxApprovers) continue;
      approvers.set(account, { account_id: account, approved: 0, refused: 0 });
    }
    approvers.get(account)[member]++;
  }
}

/** What a pack without acts.ndjson leaves open. */
export const noActs = "this pack has no table of acts, so no number in report.html is checked";

/** Returns the printed lines about acts, in the words of `aps verify`. */
export function actLines(acts) {
  if (!acts) return ["acts        none: " + noActs];
  const parts = outcomes.filter((o) => acts.outcomes[o] > 0).map((o) => `${acts.outcomes[o]} ${o}`);
  let line = `acts        ${acts.count} ${acts.count === 1 ? "act" : "acts"}`;
  if (parts.length > 0) line += ": " + parts.join(", ");
  if (acts.approved_done > 0) line += `; ${acts.approved_done} approved and done`;
  if (acts.refused_done > 0) line += `; ${acts.refused_done} done without the approval`;
  const receipts = receiptLines(acts.receipts);
  const approvers = acts.approvers.map((p) => {
    const claims = [p.name, p.email].filter((claim) => claim !== "").map(printable);
    const who = claims.length > 0 ? `${p.account_id} (${claims.join(", ")}, as the operator states)` : p.account_id;
    return `approver    ${who}: ${p.approved} approved, ${p.refused} refused`;
  });
  return [line, ...receipts, ...approvers];
}

function receiptLines(r) {
  if (!r || (r.tools.length === 0 && r.unchecked === 0)) return [];
  const acts = (n, many) => `${n} ${n === 1 ? "act" : "acts"}` + (many ? (n === 1 ? " has" : " have") : "");
  if (r.tools.length === 0) return [`receipts    ${acts(r.unchecked, true)} the receipt of a tool, unchecked: no tool's key is given`];
  const by = r.tools.filter((t) => t.confirmed > 0).map((t) => `${t.confirmed} by ${printable(t.name)}`);
  let line = `receipts    ${acts(r.confirmed)} confirmed`;
  if (by.length > 0) line += ": " + by.join(", ");
  if (r.without_grant > 0) line += `; ${r.without_grant} of them without a grant`;
  if (r.failed > 0) line += `; ${r.failed} of them failed at the tool`;
  line += `; ${r.claimed} only claimed by the agent`;
  if (r.unchecked > 0) line += `; ${r.unchecked} with a receipt that can't be checked`;
  if (r.wrong > 0) line += `; ${r.wrong} with a wrong receipt`;
  return [line];
}
