// A text search of a list. It takes a short time per page of the service, so the script reads the next pages and adds their
// rows to this one, until it has as many as fit, the search is complete, or the reader stops it.

import { read } from "./live.js";
import { addLocalTimes } from "./times.js";

const button = document.getElementById("search-button");
const news = document.getElementById("search-news");
const limit = new URL(location.href).searchParams.get("limit"); // as the reader chose it, or null

let word = "";
let running = null; // ends the search, null while there is none

const part = (name) => document.getElementById(name);
const rows = () => part("found").querySelectorAll("tbody > tr:not(.day)").length;
const isUnfinished = () => part("search").dataset.limit !== undefined;

/** Searches until the page is full, the search is complete, or the reader stops it. */
async function search() {
  running = new AbortController();
  show("Stop", "");
  const { signal } = running;
  const full = Number(part("search").dataset.limit);
  try {
    while (isUnfinished()) {
      const address = withLimit(part("further").href, full - rows());
      take(await read(address, "document", "search", signal));
    }
    say();
  } catch (why) {
    if (why.name === "AbortError") say("Stopped.");
    else if (why.signedOut) say("You are signed out: reload the page.");
    else say("The search stopped, because the service does not answer.");
  }
  running = null;
  show("Continue");
}

/** Adds the events of a later page, which also states how far the search is. */
function take(fresh) {
  addLocalTimes(fresh);
  const found = document.importNode(fresh.getElementById("found"), true);
  const added = found.querySelectorAll("tbody > tr");
  if (rows() === 0) part("found").replaceWith(found);
  else part("found").querySelector("tbody").append(...withoutShown(added));
  const state = document.importNode(fresh.getElementById("search"), true);
  // A page that was asked for fewer events has a next one with as few.
  const next = state.querySelector("#further");
  if (next) next.href = withLimit(next.href, limit);
  if (state.dataset.limit !== undefined) state.dataset.limit = part("search").dataset.limit;
  part("search").replaceWith(state);
  show();
}

/** Returns rows without the heading of a day that the last rows of the page have. */
function withoutShown(added) {
  const days = part("found").querySelectorAll("tr.day");
  return [...added].filter((row, n) => n > 0 || !row.matches(".day") || row.textContent !== days[days.length - 1]?.textContent);
}

function withLimit(href, value) {
  const address = new URL(href, location.href);
  if (value === null) address.searchParams.delete("limit");
  else address.searchParams.set("limit", value);
  return address.href;
}

/** Shows the button in place of the link while the search is not at its end. */
function show(label = button.textContent) {
  button.textContent = label;
  button.hidden = !isUnfinished();
  if (isUnfinished()) part("further").hidden = true;
}

function say(words = "") {
  const n = rows();
  news.textContent = `${words} ${n === 1 ? `1 ${word}` : `${n} ${word}s`} found.`.trim();
}

/** Continues the search of the page, if it is one and not complete. Its rows are called `words`, such as "event". */
export function continueSearch(words) {
  word = words;
  if (part("search") === null || !isUnfinished()) return;
  button.addEventListener("click", () => (running ? running.abort() : search()));
  search();
}
