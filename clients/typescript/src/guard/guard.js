// Guarded acts: intent, decision, act, result. After any failure before the act, the act is not done. An act that has
// begun without an end never begins again, unless it is declared idempotent.

import { canonicalizeExact, parseExact, payloadText, recordMembers } from "../canonical/exact.js";
import { canonicalize, canonicalizeText } from "../canonical/write.js";
import { randomHex } from "../client/random.js";
import { tell } from "../client/tell.js";
import { sha256hex } from "../crypto/sha256.js";
import { Interrupted, KeyReused, FailedBefore, LedgerError, NotDecided } from "../errors.js";
import { traceOf } from "../verify/forms.js";
import { guardedFetch } from "./fetch.js";
import { MemoryJournal } from "./journal.js";
import { obtainPermit } from "./permit.js";

const turns = new WeakMap(); // by journal: acts in progress, by key. Clients may share a journal

/** The guard of one client. */
export class Guard {
  #notes = new Set(); // promises of journal writes in progress

  constructor(client, options) {
    this.client = client;
    this.options = options;
    this.journal = options.journal ?? new MemoryJournal();
  }

  /**
   * Returns an async function that runs `fn` with the caller's arguments as a guarded act. `options.payload(...args)`
   * returns the payload; by default it is the first argument, which must be a plain object, or {} without arguments.
   */
  wrap(tool, fn, options = {}) {
    const { payload = (first = {}) => first, key, trace, ...rest } = options;
    return async (...args) => {
      const own = (v) => (typeof v === "function" ? v(...args) : v);
      const act = { ...rest, tool, payload: await payload(...args), key: own(key), trace: own(trace) };
      return (await this.run(act, (permit) => fn.call(permit, ...args))).output;
    };
  }

  /** Returns a fetch whose requests are guarded acts. */
  fetch(options) {
    return guardedFetch(this, options);
  }

  /**
   * Runs `fn(permit)` once. Resolves to its output, the permit, and whether it had already run. The calls of one key run
   * one after the other, so a later one gets the output of the first.
   */
  async run(action, fn) {
    const act = this.#prepare({ ...this.options, ...action });
    if (!turns.has(this.journal)) turns.set(this.journal, new Map());
    const busy = turns.get(this.journal);
    const before = busy.get(act.key) ?? Promise.resolve();
    const mine = before.then(() => this.#run(act, fn));
    const settled = mine.catch(() => {});
    busy.set(act.key, settled);
    try {
      return await mine;
    } finally {
      if (busy.get(act.key) === settled) busy.delete(act.key);
    }
  }

  #prepare(o) {
    const payload = canonicalizeExact(o.payload ?? {}, { convert: this.client.convert });
    if (!payload.startsWith("{")) throw new LedgerError("the payload of a guarded act must be an object");
    const subject = o.onBehalfOf?.();
    const parts = [o.tool, o.trace ?? "", payload, ...(subject === undefined ? [] : [canonicalize(subject)])];
    const digest = sha256hex(parts.join("\n"));
    return { ...o, subject, key: o.key ?? "act-" + randomHex(), kept: o.key !== undefined, payload, digest };
  }

  async #run(o, fn) {
    let act = await this.#journaled("read", () => this.journal.load(o.key));
    if (act && act.digest !== o.digest) throw new KeyReused(o.key);
    if (act && act.stage !== "deciding") {
      const again = await this.#again(act, o);
      if (again) return again;
    }
    act ??= await this.#newAct(o);
    const permit = await obtainPermit(this, act, o);
    act.stage = "started";
    await this.#journaled("written", () => this.journal.store(act));
    return this.#act(act, o, permit, fn);
  }

  async #journaled(verb, use) {
    try {
      return await use();
    } catch (cause) {
      const advice = "Check the journal's folder: its disk may be full, or this process may lack a permission";
      throw new NotDecided(`the journal can't be ${verb}`, { cause: { name: cause?.name, code: cause?.code }, advice });
    }
  }

  async #newAct(o) {
    const callId = "call_" + randomHex();
    let intent;
    try {
      const caller = o.traceparent?.();
      const members = canonicalize({
        ...(o.trace === undefined ? {} : { trace_id: o.trace }),
        ...(traceOf(caller) === undefined ? {} : { traceparent: caller }),
        ...(o.subject === undefined ? {} : { on_behalf_of: o.subject }),
        ...(o.principal === undefined ? {} : { actor_principal: o.principal }),
        action_kind: o.actionKind ?? "tool_call",
        tool_name: o.tool,
        policy_decision: "allow",
      });
      intent = await this.client.sign(withPayload(members, intentPayload(o, callId)));
    } catch (cause) {
      if (cause instanceof LedgerError) throw cause;
      throw new NotDecided("the intent can't be signed", { cause });
    }
    const act = { key: o.key, digest: o.digest, stage: "deciding", callId, intent, kept: o.kept };
    await this.#journaled("written", () => this.journal.store(act));
    return act;
  }

  /** Returns the answer for an act that began before; undefined lets an idempotent one run again. */
  async #again(act, o) {
    if (act.stage === "started") {
      if (o.idempotent) return undefined;
      Object.assign(act, { stage: "done", status: "unknown" });
      await this.state(act, o, {});
    } else if (!act.told) {
      await this.#tell(act);
    }
    if (act.status === "ok") return { output: act.output === undefined ? undefined : readOutput(act.output), repeated: true };
    throw act.status === "unknown" ? new Interrupted(act.key) : new FailedBefore(act.key);
  }

  async #act(act, o, permit, fn) {
    const began = Date.now();
    let output;
    let failure;
    try {
      output = await fn(permit);
    } catch (why) {
      failure = { why };
    }
    act.stage = "done";
    act.status = failure ? "error" : "ok";
    const details = { duration_ms: Date.now() - began };
    const described = failure ? {} : this.#describeOutput(act, o, output);
    await this.state(act, o, { ...details, ...described.members }, described.recorded);
    if (failure) throw failure.why;
    return { output, permit, repeated: false };
  }

  /**
   * Returns the members of the result that describe the output, and the texts of others in recorded form. The output is
   * stored for repetitions if it is JSON.
   */
  #describeOutput(act, o, output) {
    try {
      act.output = canonicalizeExact(o.describe ? o.describe(output) : (output ?? null), { convert: this.client.convert });
    } catch {
      return {}; // the act was done: an output that is not JSON is not stated
    }
    const members = { ...o.members?.(output), output_digest: sha256hex(act.output) };
    return o.recordOutput ? { members, recorded: recordMembers(`{"output":${act.output}}`) } : { members };
  }

  /** Signs the result of an act, stores it, and queues it. Failures are reported to onTrouble. */
  async state(act, o, details, recorded = {}) {
    try {
      const members = canonicalize({
        trace_id: act.intent.traceId,
        ...contextOf(act),
        ...(o.principal === undefined ? {} : { actor_principal: o.principal }),
        action_kind: o.actionKind ?? "tool_call",
        tool_name: o.tool,
        policy_decision: act.decision ?? "allow",
        parent_event_id: act.intent.eventId,
      });
      const payload = Object.entries(resultPayload(act, details)).map(([name, value]) => [name, canonicalize(value)]);
      act.result = await this.client.sign(withPayload(members, payloadText({ ...Object.fromEntries(payload), ...recorded })));
      await this.journal.store(act);
      await this.#tell(act);
    } catch (why) {
      this.trouble(why);
    }
  }

  async #tell(act) {
    const { stored } = await this.client.enqueue(act.result);
    stored.then(() => this.#noteTold(act)).catch((why) => this.trouble(why));
  }

  async #noteTold(act) {
    const note = act.kept ? this.journal.store({ ...act, told: true }) : this.journal.remove(act.key);
    this.#notes.add(note);
    try {
      await note;
    } finally {
      this.#notes.delete(note);
    }
  }

  /** Resolves when the journal has recorded all results that the service has stored so far. It never rejects. */
  async settle() {
    await Promise.allSettled(this.#notes);
  }

  /** Reports an error that changes no outcome to the caller. */
  trouble(why) {
    tell("onTrouble", this.options.onTrouble, why);
  }

  /**
   * After a restart: queues results that the service may not have, and states `unknown` for interrupted acts. Resolves
   * to the keys of the latter.
   */
  async resume({ idempotent = () => false } = {}) {
    const interrupted = [];
    for (const key of await this.journal.keys()) {
      const act = await this.journal.load(key);
      if (act.stage === "started" && !idempotent(key)) {
        Object.assign(act, { stage: "done", status: "unknown" });
        interrupted.push(key);
        await this.state(act, { tool: JSON.parse(act.intent.text).tool_name }, {});
      } else if (act.stage === "done" && !act.told && act.result) {
        await this.#tell(act).catch((why) => this.trouble(why));
      }
    }
    return interrupted;
  }
}

/** Returns the members of an act's intent that its result repeats, if there are any. */
function contextOf(act) {
  const { traceparent, on_behalf_of: subject } = JSON.parse(act.intent.text);
  return { ...(traceparent === undefined ? {} : { traceparent }), ...(subject === undefined ? {} : { on_behalf_of: subject }) };
}

/** Returns a stored output, with bigints and ExactNumbers if a double cannot hold its numbers. */
function readOutput(text) {
  try {
    if (canonicalizeText(text) === text) return JSON.parse(text);
  } catch {
    // It has a number that a double cannot hold.
  }
  return parseExact(text);
}

/** Returns the text of an event with the given members and payload, which are texts. */
function withPayload(members, payload) {
  return `${members.slice(0, -1)},"payload":${payload}}`;
}

/** Returns the text of the payload, whose numbers keep their exact values. */
function intentPayload(o, callId) {
  const own = { phase: "intent", call_id: callId, salt: randomHex() };
  if (o.digestInput) own.input_digest = sha256hex(o.payload);
  const members = recordMembers(o.payload, o.digestInput ? (o.shown ?? []) : undefined);
  for (const name of Object.keys(own)) {
    if (name in members) throw new LedgerError(`the payload of a guarded act must not have the member ${name}`);
    members[name] = JSON.stringify(own[name]);
  }
  return payloadText(members);
}

function resultPayload(act, details) {
  const payload = { ...details, phase: "result", call_id: act.callId, status: act.status, salt: randomHex() };
  if (act.approvalId !== undefined) payload.approval_id = act.approvalId;
  if (act.nonce !== undefined) payload.grant_nonce = act.nonce;
  return payload;
}
