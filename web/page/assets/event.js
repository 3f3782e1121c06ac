// The page of an event: reads its bundle and checks it here.

import { parseBundle } from "./verifier/verify/bundle.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { LedgerError } from "./verifier/errors.js";
import { checkConsistency } from "./consistency.js";
import { showOutcome, showVerdict } from "./marks.js";
import { addLocalTimes } from "./times.js";
import { fetchText, readTrust, rememberKey, runChecks } from "./trust.js";
import { bundleVerdicts } from "./verdicts.js";

const page = document.getElementById("checked");
const { url, transparency, origin } = page.dataset;

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

async function check() {
  showOutcome("waiting", "Checking …");
  const [text, trust] = await Promise.all([fetchText(url), readTrust(origin, transparency)]);
  const [result, given] = await checkBundle(text, trust);
  if (!result.report) return showOutcome("fail", result.reason);
  const bundle = parseBundle(text);
  for (const [name, verdict] of bundleVerdicts(bundle, result)) showVerdict(name, verdict);
  if (bundle.event_id !== page.querySelector("h1 bdi").textContent || bundle.origin !== origin) {
    return showOutcome("fail", "The service sent the bundle of another event.");
  }
  if (result.report.unknown_keys || !result.report.ok) {
    showVerdict("consistency", { state: "none", words: "not compared, because the checkpoint is not proved" });
    return showOutcome("fail", `Not proved: ${result.reason}`);
  }
  const verdict = await checkConsistency(origin, bundle.checkpoint, given, (path) => fetchText(`${transparency}/${path}`));
  showVerdict("consistency", verdict);
  conclude(result, verdict, bundle);
}

function conclude(result, consistency, bundle) {
  if (consistency.state === "fail") return showOutcome("fail", `Not proved: ${consistency.words}`);
  if (result.outcome !== "proved") return showOutcome("fail", `Not proved: ${result.reason}`);
  const whose = rememberKey(origin, bundle.log_key);
  showOutcome("ok", `Proved, as far as the marks below say, under ${whose}.`);
}

addLocalTimes(page);
await runChecks(origin, check);
page.dataset.done = "yes";
