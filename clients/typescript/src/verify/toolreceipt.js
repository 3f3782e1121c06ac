// The receipt of a tool in a proved bundle.

import { LedgerError } from "../errors.js";
import { parseBundle } from "./bundle.js";
import { check } from "./check.js";
import { parseEnvelope, parseRecord } from "./documents.js";
import { Unconfirmed, actionOf, confirmAct } from "./receipt.js";

/** Resolves to the verdict on the receipt in the envelope `e` of a bundle. `source` is the bundle of the intent, or undefined. */
export async function judgeReceipt(e, b, trust, source) {
  const { policy } = parseRecord(b.record);
  try {
    const action = policy.intent === undefined || source === undefined ? undefined : await intentOf(source, b, policy.intent, trust);
    return { ok: true, confirmed: await confirmAct(e, action, trust.toolKeys) };
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
  return b.record && b.envelope ? actionOf(parseEnvelope(b.envelope).members) : undefined;
}
