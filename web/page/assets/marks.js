// Shows verdicts in the list of checks.

/**
 * Shows one verdict: its state (ok, fail, gone, none), words for people, numbers as pairs of label and text, and
 * a picture, which may be missing.
 */
export function showVerdict(name, { state, words, numbers = [], picture }) {
  const item = document.getElementById("check-" + name);
  item.dataset.state = state;
  item.querySelector(".verdict").textContent = words;
  const list = item.querySelector(".numbers");
  list.replaceChildren(...numbers.flatMap(([label, text]) => [make("dt", label), make("dd", text)]));
  item.querySelector(".path")?.remove();
  if (picture) list.after(picture);
  if (state === "fail" || state === "gone") item.querySelector("details").open = true;
  if (performance.getEntriesByName("first-check").length === 0) performance.mark("first-check");
}

/** Shows the outcome of all checks. */
export function showOutcome(state, words) {
  const line = document.getElementById("outcome");
  line.dataset.state = state;
  line.textContent = words;
}

function make(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}
