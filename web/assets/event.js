// The page of an event: reads its bundle and checks it here.

import { parseBundle } from "./verifier/verify/bundle.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { parseLogKey } from "./verifier/log/note.js";
import { LedgerError } from "./verifier/errors.js";
import { checkConsistency } from "./consistency.js";
import { showOutcome, showVerdict } from "./marks.js";
import { forget, recall, remember } from "./memory.js";
import { addLocalTimes } from "./times.js";
import { bundleVerdicts } from "./verdicts.js";

const page = document.getElementById("event");
const { url, transparency, origin } = page.dataset;

async function fetchText(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json, text/plain" }, cache: "no-cache" });
  if (!answer.ok) throw new LedgerError(`status ${answer.status}`);
  return answer.text();
}

/** Resolves to the reader's trust: the remembered key before the service's own word. */
async function readTrust() {
  const [policy, keys] = await Promise.all([fetchText(transparency + "/policy"), fetchText(transparency + "/keys")]);
  const { key } = recall(origin);
  return key === undefined ? { policy } : { policy, key, keys };
}

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
  const [text, trust] = await Promise.all([fetchText(url), readTrust()]);
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
  const first = recall(origin).key === undefined;
  if (first) remember(origin, { key: bundle.log_key });
  const whose = first ? "the key that this service shows; it is remembered from now on" : "the key that this browser knows";
  showOutcome("ok", `Proved, as far as the marks below say, under ${whose}.`);
}

function offerPin() {
  const form = document.getElementById("pin");
  form.hidden = false;
  form.elements.key.value = recall(origin).key ?? "";
  form.addEventListener("submit", (submitted) => {
    submitted.preventDefault();
    try {
      remember(origin, { key: parseLogKey(form.elements.key.value.trim()).text });
      run();
    } catch (why) {
      showOutcome("fail", `The key can't be read: ${why.message}`);
    }
  });
  document.getElementById("forget").addEventListener("click", () => {
    forget(origin);
    form.elements.key.value = "";
    run();
  });
}

function run() {
  return check().catch((why) => showOutcome("fail", `The checks could not be made: ${why.message}`));
}

addLocalTimes(page);
await run();
offerPin();
page.dataset.done = "yes";
