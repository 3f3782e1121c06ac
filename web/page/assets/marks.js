// Shows verdicts in the list of checks. root is the part of the page that has the list, which may have been removed in the
// meantime.

/**
 * Shows one verdict: its state (ok, fail, gone, none), words for people, and numbers as pairs of label and text.
 */
export function showVerdict(name, { state, words, numbers = [] }, root = document) {
  const item = root.querySelector("#check-" + name);
  item.dataset.state = state;
  item.querySelector(".verdict").textContent = words;
  const list = item.querySelector(".numbers");
  list.replaceChildren(...numbers.flatMap(([label, text]) => [make("dt", label), make("dd", text)]));
  if (state === "fail" || state === "gone") item.querySelector("details").open = true;
  if (performance.getEntriesByName("first-check").length === 0) performance.mark("first-check");
}

/** Shows the outcome of all checks. */
export function showOutcome(state, words, root = document) {
  const line = root.querySelector("#outcome");
  line.dataset.state = state;
  line.closest(".proof > header")?.setAttribute("data-state", state);
  line.removeAttribute("data-limited");
  line.textContent = words;
}

/** Shows that all checks hold under the trusted key. `limit` is what a reader should know in addition, "" for nothing. */
export function showProved(trust, limit = "", root = document) {
  showOutcome("ok", `Proved, as far as the checks below state, under ${trust.words}${limit}.`, root);
  const line = root.querySelector("#outcome");
  for (const part of [line, line.closest(".proof > header")]) part?.toggleAttribute("data-limited", limit !== "");
}

/** Shows that the checks are no proof, and why. */
export function showUnproved(why, root = document) {
  showOutcome("fail", `Not proved: ${why.replace(/^not proved: /, "")}`, root);
}

/**
 * Reports whether this page can make checks, and shows why it cannot. Browsers provide cryptography only to pages over
 * https and to pages of this machine.
 */
export function canCheck(root = document) {
  if (globalThis.isSecureContext) return true;
  showOutcome("none", "Not checked: browsers make these checks only on pages over https. Open this page over https, " +
    "or check the bundle with aps verify.", root);
  return false;
}

function make(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}
