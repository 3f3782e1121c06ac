// Approvals: ask, wait, consume, cancel.

import { questionText } from "../canonical/exact.js";
import { canonicalize } from "../canonical/write.js";
import { LedgerError, Refused, Unreachable, WrongAnswer } from "../errors.js";

const statuses = ["pending", "approved", "consumed", "denied", "expired", "cancelled", "revoked", "invalidated"];
const root = "/v1/ingest/approvals";

/** Checks an approval from the service, and returns it with this package's names. */
export function readApproval(a, name) {
  const good = typeof a?.approval_id === "string" && a.approval_id !== "" && statuses.includes(a.status);
  if (!good || !/^[0-9a-f]{64}$/.test(a.action_digest)) throw new WrongAnswer("no approval");
  if (name !== undefined && a.approval_id !== name) throw new WrongAnswer("names another approval");
  return {
    approvalId: a.approval_id,
    status: a.status,
    actionDigest: a.action_digest,
    expiresAt: a.expires_at,
    quorum: a.quorum,
    approvals: a.approvals,
    comment: a.comment ?? null,
    code: a.reason_code ?? null,
  };
}

/** The approvals of one client. */
export class Approvals {
  #client;

  constructor(client) {
    this.#client = client;
  }

  #call(method, path, text, signal) {
    return this.#client.transport.callJSON({ method, path, body: text, ingest: true, signal });
  }

  /** The address of the page where approvers vote. */
  pageUrl(approvalId) {
    return `${this.#client.transport.base}/console/approvals/${encodeURIComponent(approvalId)}`;
  }

  /** Requests approval, or finds the open request for the same action and trace. */
  async ask({ tool, payload = {}, trace, principal, onBehalfOf, signal }) {
    const question = { organization_id: this.#client.org, agent_id: this.#client.agent, tool_name: tool };
    if (trace !== undefined) question.trace_id = trace;
    if (principal !== undefined) question.actor_principal = principal;
    if (onBehalfOf !== undefined) question.on_behalf_of = onBehalfOf;
    return readApproval(await this.#call("POST", root, questionText(question, payload, this.#client.convert), signal));
  }

  /** Resolves to the state of an approval. */
  async get(approvalId, { waitSeconds = 0, signal } = {}) {
    const query = waitSeconds > 0 ? `?wait=${waitSeconds}` : "";
    return readApproval(await this.#call("GET", `${root}/${encodeURIComponent(approvalId)}${query}`, undefined, signal), approvalId);
  }

  /** Resolves when an approval is no longer pending. `deadlineMs` limits the wait; without it, only the signal does. */
  async wait(approvalId, { deadlineMs, signal } = {}) {
    const until = deadlineMs === undefined ? Infinity : Date.now() + deadlineMs;
    for (;;) {
      const left = (until - Date.now()) / 1000;
      if (left <= 0) throw new Unreachable("the approval is pending, and the deadline has passed");
      const longest = Math.floor(Math.max(this.#client.transport.timeoutMs - 5000, this.#client.transport.timeoutMs / 2) / 1000);
      const [a, rest] = await this.#poll(approvalId, Math.max(0, Math.min(25, longest, Math.ceil(left))), signal);
      if (a.status !== "pending") return a;
      await this.#client.transport.retry.sleep(Math.min(rest, Math.max(0, until - Date.now())), signal);
    }
  }

  async #poll(approvalId, waitSeconds, signal) {
    try {
      return [await this.get(approvalId, { waitSeconds, signal }), waitSeconds > 0 ? 100 : 1000];
    } catch (why) {
      const crowded = why instanceof Refused && why.status === 503 && why.code === "overloaded";
      if (!crowded || waitSeconds === 0) throw why;
      return [await this.get(approvalId, { signal }), 5000];
    }
  }

  /** Uses a granted approval once, with the agent's proof. Resolves to the grant, a signed note. */
  async consume(approval, { signal } = {}) {
    if (!this.#client.signer) throw new LedgerError(`approvals can't be used: set ${this.#client.missing}`);
    const { approvalId, actionDigest } = approval;
    const body = { action_digest: actionDigest, proof_b64: await this.#client.signer.proveConsumption(approvalId, actionDigest) };
    const answer = await this.#call("POST", `${root}/${encodeURIComponent(approvalId)}/consume`, canonicalize(body), signal);
    if (answer.status !== "consumed" || typeof answer.grant !== "string" || answer.grant === "") throw new WrongAnswer("no grant");
    return answer.grant;
  }

  /** Withdraws a request for approval. */
  async cancel(approvalId, { signal } = {}) {
    const answer = await this.#call("POST", `${root}/${encodeURIComponent(approvalId)}/cancel`, "{}", signal);
    if (answer.status !== "cancelled") throw new WrongAnswer("not cancelled");
  }
}
