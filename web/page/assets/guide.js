// The first steps of an organization: keys to save, programs to copy, and the first event with its proof.

import { addLocalTimes } from "./times.js";

const first = document.getElementById("first");
const waiting = document.getElementById("waiting");
const longestWait = 30 * 60_000; // milliseconds
const pause = 5_000; // after an answer that says nothing

function addButton(after, label, press) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", () => press(button));
  after.after(button);
}

/** A key to save becomes a file of the reader's browser. It goes nowhere. */
function addDownloads() {
  for (const key of document.querySelectorAll("[data-file]")) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([key.textContent + "\n"], { type: "text/plain" }));
    link.download = key.dataset.file;
    link.textContent = `Save as ${key.dataset.file}`;
    key.after(" ", link);
  }
}

function addCopies() {
  if (navigator.clipboard === undefined) return; // a page without https
  for (const text of document.querySelectorAll("pre.snippet")) {
    addButton(text, "Copy", async (button) => {
      await navigator.clipboard.writeText(text.textContent + "\n");
      button.textContent = "Copied";
    });
  }
}

/** Resolves to the first event of an agent, undefined when there is none for a long time. */
async function awaitEvent() {
  for (const end = Date.now() + longestWait; Date.now() < end; ) {
    const events = await askEvents().catch(() => undefined); // a network that fails is asked again
    if (events?.length > 0) return events[0];
    if (events === undefined) await new Promise((next) => setTimeout(next, pause));
  }
  return undefined;
}

async function askEvents() {
  const answer = await fetch(`${first.dataset.events}&wait=20`, { headers: { Accept: "application/json" } });
  return answer.ok ? (await answer.json()).events : undefined;
}

async function showFirst() {
  waiting.textContent = "Waiting for the first event …";
  const found = await awaitEvent();
  if (found === undefined) {
    waiting.textContent = "No event came for half an hour: load the overview to wait again.";
    return;
  }
  const event = found.event_id;
  const page = `${first.dataset.public}/verify/${encodeURIComponent(event)}`;
  const link = document.getElementById("event");
  link.textContent = event;
  link.href = page;
  waiting.textContent = "The first event is here.";
  document.getElementById("arrived").hidden = false;
  const { origin } = first.dataset;
  // The verifier is loaded here, because most visits of the overview wait for no event.
  const [{ checkEvent }, { runChecks }] = await Promise.all([import("./eventcheck.js"), import("./trust.js")]);
  const transparency = `${first.dataset.public}/transparency`;
  await runChecks(origin, () => checkEvent({ url: `${page}?format=json`, transparency, origin, event }));
  first.dataset.done = "yes";
}

addLocalTimes(document);
addDownloads();
addCopies();
document.documentElement.dataset.done = "yes";
if (first !== null) await showFirst();
