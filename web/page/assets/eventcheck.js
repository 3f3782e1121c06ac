// Checks an event here, and shows the verdicts in the list of checks.

import { parseBundle } from "./verifier/verify/bundle.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { LedgerError } from "./verifier/errors.js";
import { checkConsistency } from "./consistency.js";
import { showOutcome, showProved, showUnproved, showVerdict } from "./marks.js";
import { fetchText, readTrust } from "./trust.js";
import { bundleVerdicts } from "./verdicts.js";

/** Returns the checkpoint of a bundle, undefined for a text that is no bundle. */
function checkpointOf(text) {
  try {
    return parseBundle(text).checkpoint;
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return undefined;
  }
}

/**
 * Checks the event of an id in the log of an origin. `url` is the address of its bundle, `transparency` the path of the
 * log's calls.
 */
export async function checkEvent({ url, transparency, origin, event }) {
  showOutcome("waiting", "Checking …");
  const text = await fetchText(url);
  const checkpoint = checkpointOf(text);
  if (checkpoint === undefined) return showOutcome("fail", (await verifyBundle(text)).reason);
  const trust = await readTrust(origin, transparency, checkpoint);
  const result = await verifyBundle(text, trust.given);
  const bundle = parseBundle(text);
  for (const [name, verdict] of bundleVerdicts(bundle, result, trust)) showVerdict(name, verdict);
  if (bundle.event_id !== event || bundle.origin !== origin) {
    return showOutcome("fail", "The service sent the bundle of another event.");
  }
  const wrong = trust.explain(result);
  if (result.report.unknown_keys || !result.report.ok) {
    showVerdict("consistency", { state: "none", words: "not compared, because the checkpoint is not proved" });
    return showUnproved(wrong);
  }
  const read = (path) => fetchText(`${transparency}/${path}`);
  const verdict = await checkConsistency(origin, checkpoint, read, false);
  showVerdict("consistency", verdict);
  if (verdict.state === "fail") return showUnproved(verdict.words);
  if (result.outcome !== "proved") return showUnproved(wrong);
  showProved(trust);
  trust.keep();
}
