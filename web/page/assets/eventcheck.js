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
 * log's calls, and `root` the part of the page that has the checks.
 */
export async function checkEvent({ url, transparency, origin, event, root = document }) {
  showOutcome("waiting", "Checking …", root);
  const text = await fetchText(url);
  const checkpoint = checkpointOf(text);
  if (checkpoint === undefined) return showOutcome("fail", (await verifyBundle(text)).reason, root);
  const trust = await readTrust(origin, transparency, checkpoint, root);
  const result = await verifyBundle(text, trust.given);
  const bundle = parseBundle(text);
  for (const [name, verdict] of bundleVerdicts(bundle, result, trust)) showVerdict(name, verdict, root);
  if (bundle.event_id !== event || bundle.origin !== origin) {
    return showOutcome("fail", "The service sent the bundle of another event.", root);
  }
  const wrong = trust.explain(result);
  if (result.report.unknown_keys || !result.report.ok) {
    showVerdict("consistency", { state: "none", words: "not compared, because the checkpoint is not proved" }, root);
    return showUnproved(wrong, root);
  }
  const read = (path) => fetchText(`${transparency}/${path}`);
  const verdict = await checkConsistency(origin, checkpoint, read, false);
  showVerdict("consistency", verdict, root);
  if (verdict.state === "fail") return showUnproved(verdict.words, root);
  if (result.outcome !== "proved") return showUnproved(wrong, root);
  showProved(trust, "", root);
  trust.keep();
}
