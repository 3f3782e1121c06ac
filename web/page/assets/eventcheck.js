// Checks an event here, and shows the verdicts in the list of checks.

import { parseBundle } from "./verifier/verify/bundle.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { LedgerError } from "./verifier/errors.js";
import { checkConsistency } from "./consistency.js";
import { showOutcome, showVerdict } from "./marks.js";
import { fetchText, readTrust, rememberKey } from "./trust.js";
import { bundleVerdicts } from "./verdicts.js";

/** Checks a bundle. A list of keys without the remembered key is left out, so that the key is found wrong. */
async function checkBundle(text, trust) {
  const given = { ...trust, event: undefined };
  try {
    return [await verifyBundle(text, given), given];
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    const { keys: _keys, ...rest } = given;
    return [await verifyBundle(text, rest), rest];
  }
}

/**
 * Checks the event of an id in the log of an origin. `url` is the address of its bundle, `transparency` the path of the
 * log's calls.
 */
export async function checkEvent({ url, transparency, origin, event }) {
  showOutcome("waiting", "Checking …");
  const [text, trust] = await Promise.all([fetchText(url), readTrust(origin, transparency)]);
  const [result, given] = await checkBundle(text, trust);
  if (!result.report) return showOutcome("fail", result.reason);
  const bundle = parseBundle(text);
  for (const [name, verdict] of bundleVerdicts(bundle, result)) showVerdict(name, verdict);
  if (bundle.event_id !== event || bundle.origin !== origin) {
    return showOutcome("fail", "The service sent the bundle of another event.");
  }
  if (result.report.unknown_keys || !result.report.ok) {
    showVerdict("consistency", { state: "none", words: "not compared, because the checkpoint is not proved" });
    return showOutcome("fail", `Not proved: ${result.reason}`);
  }
  const verdict = await checkConsistency(origin, bundle.checkpoint, given, (path) => fetchText(`${transparency}/${path}`));
  showVerdict("consistency", verdict);
  conclude(origin, result, verdict, bundle);
}

function conclude(origin, result, consistency, bundle) {
  if (consistency.state === "fail") return showOutcome("fail", `Not proved: ${consistency.words}`);
  if (result.outcome !== "proved") return showOutcome("fail", `Not proved: ${result.reason}`);
  const whose = rememberKey(origin, bundle.log_key);
  showOutcome("ok", `Proved, as far as the marks below say, under ${whose}.`);
}
