// Receipts: what a tool states about an act, signed by its own key. docs/guides/tool-receipts.md has the contract.

import { rewrite } from "../canonical/write.js";
import { sha256hex } from "../crypto/sha256.js";
import { LedgerError, Malformed, Mismatch } from "../errors.js";
import { checkSigned, parseLogKey, parseNote } from "../log/note.js";
import { is } from "./forms.js";

const form = new RegExp(
  "^agentledger/receipt/v1\n([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\n([A-Za-z0-9._-]{1,128})\n" +
    "([A-Za-z0-9_:/-]+(?:\\.[A-Za-z0-9_:/-]+)*)\n([0-9a-f]{64})\n(?:-\n(?!\\.\\.?\n)([A-Za-z0-9_.:-]{1,128})|([a-z0-9_]{1,64})\n([0-9a-f]{32}))\n([2-5][0-9]{2})\n" +
    "(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)\n$",
);

/** Returns the text of a receipt. */
export function receiptText(r) {
  const approval = r.approvalId === undefined ? ["-", r.intentEventId] : [r.approvalId, r.nonce];
  const at = new Date(r.at).toISOString();
  return ["agentledger/receipt/v1", r.organization, r.agent, r.tool, r.actionDigest, ...approval, r.status, at, ""].join("\n");
}

/**
 * Resolves to the receipt in a note that a tool signed. `key` is the tool's verifier key. Throws Malformed or Unproved.
 */
export async function openReceipt(note, key) {
  return openParsed(parseNote(note), parseLogKey(key));
}

async function openParsed(parsed, key) {
  await checkSigned(parsed, key);
  const parts = form.exec(parsed.text);
  if (!parts) throw new Malformed("receipt: form");
  const [, organization, agent, tool, actionDigest, intentEventId, approvalId, nonce, status, at] = parts;
  const receipt = { organization, agent, tool, actionDigest, approvalId, nonce, intentEventId, status: Number(status), at: Date.parse(at) };
  if (tool.length > 256 || Number.isNaN(receipt.at) || receiptText(receipt) !== parsed.text) throw new Malformed("receipt: spelling");
  return receipt;
}

/** Returns the unverified receipt in the payload of a result, or undefined. Other texts are none: agents may record what they want. */
export function findReceipt({ payload }) {
  const note = Object.hasOwn(payload, "receipt") ? payload.receipt : undefined;
  return is.text(note) && note.startsWith("agentledger/receipt/v1\n") ? note : undefined;
}

/** A receipt that proves nothing and is no proof of a fault: no given key signed it, or the act is not known. */
export class Unconfirmed extends LedgerError {}

/** Returns the digest of the act that an envelope announces, as receipts name it: without on_behalf_of. */
export function receiptActionOf(envelope) {
  return actionOf({ ...envelope, on_behalf_of: undefined });
}

/** Returns the digest of the act that an envelope announces, as approvals name it. With on_behalf_of, the action has it too, and v is 2. */
export function actionOf({ agent_id, on_behalf_of: subject, organization_id: organization, payload, tool_name }) {
  const version = subject === undefined ? { v: 1 } : { on_behalf_of: subject, v: 2 };
  return sha256hex(rewrite({ agent_id, organization_id: organization.toLowerCase(), payload, tool_name, ...version }));
}

/**
 * Resolves to what a tool states about an act: by (the name of its key), status, at, and the approval_id whose grant it checked,
 * which is absent if it checked none. `result` is the envelope of the act's result, `intent` the intent that its record names,
 * `action` the digest of the act, or both undefined, and `keys` are verifier keys that the caller pinned. Throws Unconfirmed,
 * Mismatch, Malformed or Unproved.
 */
export async function confirmAct(result, intent, action, keys) {
  const note = parseNote(findReceipt(result) ?? "");
  const key = keys.find((k) => note.lines.some((l) => k.owns(l)));
  if (!key) throw new Unconfirmed("signed by none of the tools' keys that were given");
  const r = await openParsed(note, key);
  const { approval_id: approval, grant_nonce: nonce } = { __proto__: null, ...result.payload };
  if (r.organization !== result.organization_id.toLowerCase()) throw new Mismatch("the receipt is for another organization");
  if (r.agent !== result.agent_id) throw new Mismatch("the receipt is for another agent");
  if (r.tool !== result.tool_name) throw new Mismatch("the receipt is for another tool");
  if (r.approvalId !== (approval ?? undefined) || r.nonce !== (nonce ?? undefined)) throw new Mismatch("the receipt is for another approval");
  const granted = r.approvalId === undefined ? {} : { approval_id: r.approvalId };
  const confirmed = { by: key.name, status: r.status, at: new Date(r.at).toISOString(), ...granted };
  const other = r.approvalId === undefined && intent !== undefined && r.intentEventId !== intent;
  if (other) throw new Mismatch("the receipt is for another intent");
  if (intent === undefined || action === undefined) throw Object.assign(new Unconfirmed("the event of the intent is not known, so the act is not"), { confirmed });
  if (r.actionDigest !== action) throw new Mismatch("the receipt is for another act");
  return confirmed;
}
