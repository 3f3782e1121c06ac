// Keeps parts of a page up to date: the elements with an id and data-live. When the interface has news, the page is read
// again, and these parts are put in the place of the old ones. Other parts stay, with all that a person has typed.
//
// The element "rules" says when: data-follow names a list of events of the interface, and data-after the last one that the
// page knows, so that a new event there is news. data-every is a number of seconds after which the page is read again,
// whatever happened. data-news is what a screen reader says after a change.

import { addLocalTimes } from "./times.js";

const wait = 25; // seconds of one question for events
const pace = 2000; // milliseconds between two readings of the page, at least
const slowest = 60_000; // milliseconds until the next try, when the service does not answer

const control = document.querySelector("div.live");
const button = document.getElementById("live");
const news = document.getElementById("news");

let paused = false;
let asking = new AbortController(); // ends a question when the page is left or paused
let wake = () => {};

/** Follows the page's news until the page is closed. After a change of the page it calls changed, and waits for it. */
export function keepLive(changed = () => {}) {
  if (!control || !rules()) return;
  control.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume updates" : "Pause updates";
    turn();
  });
  document.addEventListener("visibilitychange", turn);
  run(changed);
}

function turn() {
  if (isResting()) asking.abort();
  else wake();
}

function isResting() {
  return paused || document.visibilityState === "hidden";
}

function rules() {
  return document.querySelector("#rules:is([data-follow], [data-every])");
}

async function run(changed) {
  let failures = 0;
  while (rules()) {
    if (isResting()) await new Promise((resolve) => (wake = resolve));
    asking = new AbortController();
    try {
      if ((await awaitNews(rules().dataset)) && (await renew())) await changed();
      failures = 0;
      await sleep(pace);
    } catch (why) {
      if (why.name === "AbortError") continue;
      if (why.signedOut) return say("You are signed out: reload the page.");
      failures += 1;
      await new Promise((resolve) => setTimeout(resolve, Math.min(slowest, pace * 2 ** failures)));
    }
  }
}

/** Resolves to true when there is news, or when it is time to read the page again. */
async function awaitNews({ follow, after, every }) {
  const until = performance.now() + (every ?? 3600) * 1000;
  if (!follow) {
    await sleep(until - performance.now());
    return true;
  }
  const seconds = Math.max(1, Math.min(wait, Math.floor((until - performance.now()) / 1000)));
  const address = `${follow}&order=oldest&limit=1&wait=${seconds}${after === "" ? "" : `&after=${after}`}`;
  const { events } = JSON.parse(await read(address, "text"));
  return events.length > 0 || every !== undefined;
}

/**
 * Reads an address. A document without the element whose id is part is the sign-in page: the reader is signed out. signal
 * ends the request.
 */
export function read(address, type, part = "live", signal = asking.signal) {
  return new Promise((resolve, reject) => {
    const ask = new XMLHttpRequest();
    ask.open("GET", address);
    ask.responseType = type;
    ask.onload = () => {
      if (ask.status === 401 || (type === "document" && !ask.response?.getElementById(part))) {
        reject(Object.assign(new Error("signed out"), { signedOut: ask.status === 401 || ask.status === 200 }));
      } else if (ask.status >= 400) reject(new Error(`status ${ask.status}`));
      else resolve(ask.response);
    };
    ask.onerror = () => reject(new Error("no answer"));
    ask.onabort = () => reject(new DOMException("aborted", "AbortError"));
    signal.addEventListener("abort", () => ask.abort());
    ask.send();
  });
}

/** Puts the parts of the page as it is now in the place of the old ones. Resolves to true when there was a change. */
async function renew() {
  const fresh = await read(location.href, "document");
  let kept = false;
  let changed = false;
  for (const part of document.querySelectorAll("[data-live]")) {
    const found = fresh.getElementById(part.id);
    const other = found && document.importNode(found, true);
    if (other) [part, other].forEach(addLocalTimes); // both by the same clock
    if (other?.isEqualNode(part)) continue;
    changed = true;
    if (isInUse(part)) kept = true;
    else if (other) replace(part, other);
    else part.remove();
  }
  const words = kept
    ? "This page has changed. The parts that you are using stay unchanged until you reload the page."
    : (rules()?.dataset.news ?? "");
  if (words !== "" || news.textContent !== "") say(words);
  return changed;
}

function replace(part, other) {
  const focus = part.contains(document.activeElement) ? document.activeElement : null;
  part.replaceWith(other);
  if (!focus) return;
  const same = [...other.querySelectorAll(focus.localName)].find((e) => (focus.id ? e.id === focus.id : e.href === focus.href));
  same?.focus({ preventScroll: true });
}

/** Reports whether a person has typed or chosen something in a part, has selected text there, or reads its middle. */
function isInUse(part) {
  const fields = [...part.querySelectorAll("input, textarea, select")];
  if (fields.some((f) => f === document.activeElement || isChanged(f))) return true;
  const selection = getSelection();
  if (selection && !selection.isCollapsed && selection.containsNode(part, true)) return true;
  return part.dataset.live === "top" && part.getBoundingClientRect().top < 0;
}

function isChanged(field) {
  if (field.type === "hidden") return false;
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (field.localName === "select") {
    const first = [...field.options].find((option) => option.defaultSelected) ?? field.options[0];
    return first?.selected === false;
  }
  return field.value !== field.defaultValue;
}

function say(words) {
  if (news.textContent !== words) news.textContent = words;
}

function sleep(milliseconds) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, Math.max(0, milliseconds));
    asking.signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}
