// The keys and the policy by which this browser checks a log: those of the first visit, those that the reader entered,
// and those that the log itself states under a known key. What the service shows later replaces none of them.

import { LedgerError } from "./verifier/errors.js";
import { parseLogKey, parseNote } from "./verifier/log/note.js";
import { Policy } from "./verifier/log/policy.js";
import { acceptSigner, findSigner, keyID, signs } from "./knownkeys.js";
import { canCheck, showOutcome } from "./marks.js";
import { forget, newKey, recall, remember } from "./memory.js";

/** Resolves to the text at an address of this service. */
export async function fetchText(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json, text/plain" }, cache: "no-cache" });
  if (!answer.ok) throw new LedgerError(`status ${answer.status}`);
  return answer.text();
}

/** What this browser trusts of a log when it checks one checkpoint. */
class Trust {
  constructor(origin, keys, policy, note, refusal) {
    Object.assign(this, { origin, keys, policy, note, refusal });
    this.signer = keys[findSigner(keys, note)];
    this.isFirst = recall(origin).keys.length === 0;
  }

  /** The options of the verifier: the key that has to have signed, which is the one that `words` name, and the policy. */
  get given() {
    return { policy: this.policy, key: (this.signer ?? this.keys.at(-1))?.vkey };
  }

  /** Words that name the key that signed. */
  get words() {
    if (!this.signer) return "no key that this browser knows";
    const { vkey, source, by } = this.signer;
    const from = {
      shown: this.isFirst ? "that this service shows; this browser remembers it from now on" : "that this browser remembers",
      entered: "that you entered",
      stated: `that an entry of the log states; the key ${by} signed that entry's tree`,
    };
    return `the key ${keyID(vkey)} ${from[source]}`;
  }

  /** Returns why a result of the verifier is no proof. */
  explain({ reason, report }) {
    const ended = this.signer ? undefined : this.keys.find((k) => signs(k, this.note));
    if (ended) {
      return `signed by the key ${keyID(ended.vkey)} alone, which no longer signs trees of this size: another key has replaced it`;
    }
    if (this.refusal === undefined || !report?.unknown_keys) return reason;
    const ids = report.unknown_keys.map((signer) => signer.slice(signer.lastIndexOf("+") + 1));
    return `signed by the key ${ids.join(" and ")}, which this browser does not know: ${this.refusal}`;
  }

  /** Remembers keys and policy after the checkpoint was proved. */
  keep() {
    const name = document.querySelector("[data-log-name]")?.dataset.logName;
    remember(this.origin, { keys: this.keys, policy: this.policy, ...(name ? { name } : {}) });
  }
}

/**
 * Resolves to the trust in the log of an origin, for a checkpoint that the service shows. root is the part of the page that
 * has the checks.
 */
export async function readTrust(origin, transparency, checkpoint, root = document) {
  const read = (path) => fetchText(`${transparency}/${path}`);
  const shown = await read(`policy?origin=${encodeURIComponent(origin)}`);
  const note = parseNote(checkpoint);
  const seen = recall(origin);
  showOtherPolicy(seen.policy, shown, root);
  const policy = seen.policy ?? witnessLines(shown);
  if (seen.keys.length === 0) {
    const key = new Policy(shown).logs.find((k) => k.name === origin && note.lines.some((l) => k.owns(l)));
    return new Trust(origin, key ? [newKey(key.text, "shown")] : [], policy, note);
  }
  try {
    return new Trust(origin, await acceptSigner(origin, seen.keys, note, read), policy, note);
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return new Trust(origin, seen.keys, policy, note, why.message);
  }
}

/** Returns the lines of a policy about witnesses. Its log lines change with the key of the log. */
function witnessLines(policy) {
  const lines = policy.split("\n").filter((line) => line !== "" && !/^(#|log[ \t])/.test(line));
  return lines.map((line) => line + "\n").join("");
}

/** Shows whether the service has another witness policy than the remembered one. */
function showOtherPolicy(remembered, shown, root) {
  const notice = root.querySelector("#otherpolicy");
  if (!notice) return; // a badge: its reader decides on the log's page
  notice.hidden = remembered === undefined || remembered === witnessLines(shown);
  notice.dataset.policy = witnessLines(shown);
}

/**
 * Makes the checks, and again whenever the reader changes the key. Resolves after the first time, to a function that
 * makes them again. root is the part of the page that has the checks.
 */
export async function runChecks(origin, check, root = document) {
  const run = () => check().catch((why) => showOutcome("fail", `The checks could not be made: ${why.message}`, root));
  if (!canCheck(root)) return async () => {};
  await run();
  const form = root.querySelector("#pin");
  form.hidden = false;
  form.elements.key.value = recall(origin).keys.at(-1)?.vkey ?? "";
  form.addEventListener("submit", (submitted) => {
    submitted.preventDefault();
    try {
      const { text } = parseLogKey(form.elements.key.value.trim());
      remember(origin, { keys: [newKey(text, "entered")] });
      run();
    } catch (why) {
      showOutcome("fail", `The key can't be read: ${why.message}`, root);
    }
  });
  root.querySelector("#forget").addEventListener("click", () => {
    forget(origin);
    form.elements.key.value = "";
    run();
  });
  root.querySelector("#usepolicy").addEventListener("click", () => {
    remember(origin, { policy: root.querySelector("#otherpolicy").dataset.policy });
    run();
  });
  return run;
}
