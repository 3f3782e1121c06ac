// The receipt of a tool in a proved bundle.

import { LedgerError, printable } from "../errors.js";
import { parseBundle } from "./bundle.js";
import { check } from "./check.js";
import { parseEnvelope, parseRecord } from "./documents.js";
import { Unconfirmed, receiptActionOf, confirmAct, findReceipt } from "./receipt.js";

/**
 * Resolves to what the receipt of a tool adds to the report `r` of a proved bundle: verdict and line, if the bundle shows a receipt;
 * wrong, if that is proved wrong; and unconfirmed, the reason why none of the tools' keys that were given confirms the act. `source`
 * is the bundle of the intent, or undefined.
 */
export async function describeReceipt(b, r, trust, source) {
  const given = trust.toolKeys.length > 0;
  const verdict = await judge(b, trust, source);
  if (!verdict) return { unconfirmed: given ? missing(r) : undefined };
  const { ok, error } = verdict;
  return {
    verdict,
    line: lineOf(verdict),
    wrong: ok === false ? printable(error) : undefined,
    unconfirmed: given && !ok ? "the receipt: " + printable(error) : undefined,
  };
}

const missing = (r) => (r.envelope_ok === null ? "the envelope is not disclosed" : "the event has no receipt of a tool");

/** Describes a verdict. Everything else in the event is what the agent says. */
function lineOf({ ok, confirmed, error }) {
  if (ok === false) return "FAIL  receipt     of the tool: " + printable(error);
  if (!confirmed) return "--    receipt     the tool's own statement about the act, unchecked: " + printable(error);
  const unchecked = confirmed.approval_id === undefined ? ", and checked no grant" : "";
  return `ok    receipt     confirmed by ${printable(confirmed.by)}: it answered with status ${confirmed.status} at ${confirmed.at}${unchecked}`;
}

/** Resolves to the verdict on the receipt in a bundle, or undefined if the bundle shows none. */
async function judge(b, trust, source) {
  if (!b.record || !b.envelope) return undefined;
  const { members: e } = parseEnvelope(b.envelope);
  if (findReceipt(e) === undefined) return undefined;
  if (trust.toolKeys.length === 0) return { error: "no key of the tool is given" };
  const { policy } = parseRecord(b.record);
  try {
    const action = policy.intent === undefined || source === undefined ? undefined : await intentOf(source, b, policy.intent, trust);
    return { ok: true, confirmed: await confirmAct(e, policy.intent, action, trust.toolKeys) };
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    if (!(why instanceof Unconfirmed)) return { ok: false, error: why.message };
    return { error: why.confirmed ? unknownAct(why.confirmed, policy.intent) : why.message };
  }
}

function unknownAct({ by, status }, intent) {
  if (intent === undefined) return "the event is not the result of an intent, so nothing shows which act the receipt is for";
  return `signed by ${by} with status ${status}, and which act it is for is not known without the envelope of the intent ${intent}`;
}

/** Resolves to the digest of the act in the bundle of an intent, or undefined if it does not show the act. Throws Unconfirmed. */
async function intentOf(source, result, intent, trust) {
  const b = parseBundle(source);
  const { report } = await check(b, trust.options(b));
  if (!report.ok) throw new Unconfirmed("the bundle of the intent is not proved: " + report.errors[0]);
  if (b.origin !== result.origin || b.event_id !== intent) throw new Unconfirmed("expected the bundle of the event " + intent);
  return b.record && b.envelope ? receiptActionOf(parseEnvelope(b.envelope).members) : undefined;
}
