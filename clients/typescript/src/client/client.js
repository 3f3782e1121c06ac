// The client of one service for one agent.

import { questionText } from "../canonical/exact.js";
import { LedgerError } from "../errors.js";
import { Approvals } from "./approvals.js";
import { Guard } from "../guard/guard.js";
import { Transport } from "./http.js";
import { Log } from "./log.js";
import { MemoryQueue } from "./queue.js";
import { readDecision, readResult } from "./result.js";
import { Runs } from "./runs.js";
import { Sender } from "./sender.js";
import { Signer } from "./signer.js";

const settings = { token: "APS_TOKEN", org: "APS_ORG", agent: "APS_AGENT", keyId: "APS_KEY_ID", key: "APS_KEY_FILE or APS_KEY" };

/** Names the settings that are missing to sign and send events, with their variables, or "". */
export function missingSettings(options) {
  const missing = Object.entries(settings).filter(([name]) => !options[name]);
  return missing.map(([name, variable]) => `${name} (${variable})`).join(", ");
}

/** A client. See index.d.ts for its options. */
export class Client {
  #sender;

  constructor(options) {
    const { org, agent, keyId, key, queue, onRefused, convert } = options;
    this.transport = new Transport(options);
    this.missing = missingSettings(options);
    if (key !== undefined && !(org && agent && keyId)) throw new LedgerError(`a private key alone signs nothing: set ${this.missing}`);
    this.convert = convert;
    this.org = org;
    this.agent = agent;
    if (key !== undefined) this.signer = new Signer({ organization: org, agent, keyId }, key);
    this.#sender = new Sender(this.transport, queue ?? new MemoryQueue(), onRefused);
    this.approvals = new Approvals(this);
    this.runs = new Runs(this.transport);
    this.guards = new Guard(this, options.guard ?? {});
  }

  /** The number of events that the service has not stored yet. */
  get pending() {
    return this.#sender.pending;
  }

  /** Completes and signs an event. */
  async sign(event) {
    if (!this.signer) throw new LedgerError(`events can't be signed: set ${this.missing}`);
    return this.signer.sign(event, { convert: this.convert });
  }

  /** Signs an event, unless it is signed already, and resolves when the service has stored it. */
  async send(event) {
    return (await this.#add(event, { waited: true })).stored;
  }

  /** Signs an event and resolves when it is in the queue; `stored` is the promise of the service's answer. */
  async enqueue(event) {
    const added = await this.#add(event);
    const { eventId, traceId } = added.event;
    return { eventId, traceId, get stored() { return added.stored; } }; // a caller that reads it waits: see Sender.add
  }

  #add(event, options) {
    return this.#sender.add(isSigned(event) ? event : this.sign(event), options);
  }

  /** Sends events, those of one trace in order. Resolves to a result or an error for each. */
  async sendAll(events) {
    const outcomes = [];
    for (let i = 0; i < events.length; i += 1000) {
      const part = events.slice(i, i + 1000).map((event) => this.send(event).catch((error) => ({ error })));
      outcomes.push(...(await Promise.all(part)));
    }
    return outcomes;
  }

  /** Sends one signed event immediately, bypassing the queue, and requests approval if the policy requires it. */
  async sendIntent(signed, { approval = true, signal } = {}) {
    const headers = { "Idempotency-Key": signed.eventId };
    if (approval) headers["X-Request-Approval"] = "1";
    const request = { method: "POST", path: "/v1/ingest/events", body: signed.text, headers, ingest: true, proves: true, signal };
    const answer = await this.transport.callJSON(request);
    return { ...readResult(answer, signed.eventId), approval: answer.approval };
  }

  /** Asks the policy about a tool call. Nothing is executed, stored or counted. */
  async evaluate({ tool, payload = {}, actorType, actionKind, onBehalfOf, signal }) {
    const question = { organization_id: this.org, agent_id: this.agent, tool_name: tool };
    if (actorType !== undefined) question.actor_type = actorType;
    if (actionKind !== undefined) question.action_kind = actionKind;
    if (onBehalfOf !== undefined) question.on_behalf_of = onBehalfOf;
    const body = questionText(question, payload, this.convert);
    const proves = onBehalfOf !== undefined;
    return readDecision(await this.transport.callJSON({ method: "POST", path: "/v1/ingest/policy/evaluate", body, ingest: true, proves, signal }));
  }

  /** Returns a function that runs `fn` if policy and approvers allow it: see Guard. */
  guard(tool, fn, options) {
    return this.guards.wrap(tool, fn, options);
  }

  /** Runs `fn` once as a guarded act: see Guard. */
  run(action, fn) {
    return this.guards.run(action, fn);
  }

  /** Returns a fetch whose requests are guarded acts. */
  guardFetch(options) {
    return this.guards.fetch(options);
  }

  /** Returns a reader of an organization's public log under a pinned key. */
  log(slug, trust) {
    return new Log(this.transport, slug, trust);
  }

  /**
   * Resolves when the service has stored every queued event and the journal of guarded acts has recorded that; rejects
   * if the deadline passes first.
   */
  async flush(deadlineMs) {
    await this.#sender.flush(deadlineMs);
    await this.guards.settle();
  }

  /**
   * Like flush, and then accepts no more events. Afterwards nothing is written into the journal for acts that have
   * ended.
   */
  async close(deadlineMs) {
    try {
      await this.#sender.close(deadlineMs);
    } finally {
      await this.guards.settle();
    }
  }

  /** close, for `await using`. */
  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }
}

function isSigned(event) {
  return typeof event?.text === "string" && typeof event?.eventId === "string";
}
