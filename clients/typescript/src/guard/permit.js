// The permission of an act: the service's answer to its intent, and the approval if the answer requires one.

import { ApprovalDenied, ApprovalRequired, Denied, LedgerError, NotDecided, Refused, WrongAnswer, printable } from "../errors.js";
import { parse } from "../canonical/parse.js";
import { rewrite } from "../canonical/write.js";
import { readApproval } from "../client/approvals.js";
import { warn } from "../client/tell.js";
import { actionOf } from "../verify/receipt.js";
import { adviceFor } from "./advice.js";

const definite = [400, 403, 404, 405, 409, 413, 415, 422]; // by the service: the same event will never get a decision

/** Resolves to the permit. Every failure is Denied, ApprovalRequired, ApprovalDenied or NotDecided. */
export async function obtainPermit(guard, act, o) {
  try {
    return await ask(guard, act, o);
  } catch (why) {
    if (why instanceof Denied) await forget(guard, act);
    if (why instanceof Denied || why instanceof ApprovalDenied || why instanceof ApprovalRequired) throw why;
    if (why instanceof NotDecided) throw why;
    if (why instanceof Refused && why.proved && definite.includes(why.status)) await forget(guard, act);
    const reason = why instanceof LedgerError ? printable(why.message) : "an unexpected failure";
    throw new NotDecided(reason, { cause: why, advice: adviceFor(why) });
  }
}

async function forget(guard, act) {
  await guard.journal.remove(act.key).catch((why) => guard.trouble(why));
}

async function ask(guard, act, o) {
  const answer = await guard.client.sendIntent(act.intent, { approval: o.approval !== false, signal: o.signal });
  if (answer.status === "replayed" && answer.decision === undefined) {
    throw new NotDecided("the event was stored before, and the answer does not say how it was decided");
  }
  act.decision = answer.decision ?? "allow";
  const permit = { eventId: act.intent.eventId, callId: act.callId, decision: act.decision, grant: undefined };
  if (act.decision === "allow" && o.receipt) Object.assign(permit, intentOf(guard, act.intent));
  if (act.decision === "allow") return permit;
  const denial = { reason: answer.reason, ruleId: answer.ruleId, policyId: answer.policyId, eventId: act.intent.eventId };
  if (act.decision === "deny") throw new Denied(denial);
  if (answer.approval === undefined) throw new ApprovalRequired(denial);
  const approval = readApproval(answer.approval);
  if (approval.actionDigest !== actionOf(parse(act.intent.text))) throw new WrongAnswer("the approval is for another act");
  act.approvalId = approval.approvalId;
  await guard.journal.store(act);
  permit.grant = await obtainGrant(guard, act, o, approval, denial);
  permit.approved = rewrite(parse(act.intent.text).payload);
  return permit;
}

/** Returns what a tool needs to sign a receipt without a grant. */
function intentOf({ client }, { eventId, text }) {
  return { intent: `${client.org.toLowerCase()} ${client.agent} ${eventId}`, payload: rewrite(parse(text).payload) };
}

/** Waits for the approval and consumes it. */
async function obtainGrant(guard, act, o, requested, denial) {
  let approval = requested;
  if (approval.status === "pending") {
    if (o.onAsk) o.onAsk(approval);
    else if (o.waitMs !== 0) warn(`an act waits for an approver: ${guard.client.approvals.pageUrl(approval.approvalId)}`);
    approval = await waitFor(guard, o, approval, denial);
  }
  if (approval.status !== "approved" && approval.status !== "consumed") return deny(guard, act, o, approval);
  try {
    const grant = await guard.client.approvals.consume(approval, { signal: o.signal });
    act.nonce = grantNonce(grant);
    return grant;
  } catch (why) {
    if (why instanceof Refused && why.proved && why.status === 410) await forget(guard, act); // another intent asks again
    throw why;
  }
}

async function waitFor(guard, o, approval, denial) {
  if (o.waitMs === 0) throw new ApprovalRequired({ ...denial, approvalId: approval.approvalId });
  const until = o.waitMs === undefined ? undefined : Date.now() + o.waitMs;
  try {
    return await guard.client.approvals.wait(approval.approvalId, { deadlineMs: o.waitMs, signal: o.signal });
  } catch (why) {
    const late = until !== undefined && Date.now() >= until;
    throw late ? new ApprovalRequired({ ...denial, approvalId: approval.approvalId }) : why;
  }
}

async function deny(guard, act, o, approval) {
  act.status = "denied";
  await guard.state({ ...act, kept: false }, o, {});
  await forget(guard, act);
  throw new ApprovalDenied(approval);
}

/** Returns the nonce of a grant: the line of 32 hex digits in its text. */
function grantNonce(grant) {
  return grant.split("\n").find((line) => /^[0-9a-f]{32}$/.test(line));
}
