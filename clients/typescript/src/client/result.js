// The service's answer for one event.

import { WrongAnswer } from "../errors.js";

const decisions = ["allow", "deny", "allow_with_obligation"];

/** Checks that an answer is for this event, and returns it with this package's names. */
export function readResult(answer, eventId) {
  if (answer.event_id !== eventId) throw new WrongAnswer("names another event");
  if (answer.status !== "created" && answer.status !== "replayed") throw new WrongAnswer("neither created nor replayed");
  const created = answer.status === "created";
  const numbered = Number.isSafeInteger(answer.sequence_num) && answer.sequence_num > 0;
  if (created && (!numbered || typeof answer.chain_valid !== "boolean")) {
    throw new WrongAnswer("created without sequence_num or chain_valid");
  }
  const decision = answer.policy_decision;
  if (decision !== undefined && !decisions.includes(decision)) throw new WrongAnswer("an unknown policy_decision");
  const out = { eventId, status: answer.status };
  const members = {
    sequenceNum: answer.sequence_num,
    eventHash: answer.event_hash,
    chainValid: answer.chain_valid,
    decision,
    policyId: answer.policy_id,
    ruleId: answer.rule_id,
    reason: answer.reason,
  };
  for (const [name, v] of Object.entries(members)) if (v !== undefined) out[name] = v;
  return out;
}

/** Checks a decision record and returns it with this package's names. */
export function readDecision(answer) {
  const texts = [answer.policy_id, answer.rule_id, answer.engine].every((v) => typeof v === "string" && v !== "");
  if (!decisions.includes(answer.decision) || !texts || typeof answer.reason !== "string") throw new WrongAnswer("no decision");
  return {
    decision: answer.decision,
    policyId: answer.policy_id,
    ruleId: answer.rule_id,
    reason: answer.reason,
    engine: answer.engine,
    policyVersion: answer.policy_version,
    policyDigest: answer.policy_digest,
    inputDigest: answer.input_digest,
    obligations: answer.obligations ?? [],
  };
}
