// The keys that a reader trusts: remembered or entered ones before the service's own word.

import { LedgerError } from "./verifier/errors.js";
import { parseLogKey } from "./verifier/log/note.js";
import { canCheck, showOutcome } from "./marks.js";
import { forget, recall, remember } from "./memory.js";

/** Resolves to the text at an address of this service. */
export async function fetchText(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json, text/plain" }, cache: "no-cache" });
  if (!answer.ok) throw new LedgerError(`status ${answer.status}`);
  return answer.text();
}

/** Resolves to the trust in the log of an origin, as the verifier takes it. */
export async function readTrust(origin, transparency) {
  const [policy, keys] = await Promise.all([fetchText(transparency + "/policy"), fetchText(transparency + "/keys")]);
  const { key } = recall(origin);
  return key === undefined ? { policy } : { policy, key, keys };
}

/**
 * Makes the checks, and again whenever the reader changes the key. Resolves after the first time, to a function that
 * makes them again.
 */
export async function runChecks(origin, check) {
  const run = () => check().catch((why) => showOutcome("fail", `The checks could not be made: ${why.message}`));
  if (!canCheck()) return async () => {};
  await run();
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
  return run;
}

/** Remembers the key of a log that was proved for the first time. Returns words about the key. */
export function rememberKey(origin, key) {
  if (recall(origin).key !== undefined) return "the key that this browser knows";
  remember(origin, { key });
  return "the key that this service shows; it is remembered from now on";
}
