// The first steps of an organization: secrets to save, programs and links to copy, and the first event with its proof.

import { addLocalTimes } from "./times.js";

const first = document.getElementById("first");
const waiting = document.getElementById("waiting"); // null once an event is in the log
const continues = document.getElementById("continues");
const longestWait = 30 * 60_000; // milliseconds
const pause = 5_000; // after an answer that says nothing

/** The settings become a file of the reader's browser. They go nowhere. */
function addDownloads() {
  for (const text of document.querySelectorAll("[data-file]")) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text.textContent], { type: "application/octet-stream" }));
    link.download = text.dataset.file;
    link.textContent = "Download the file";
    link.className = "btn primary";
    text.parentElement.after(link);
    document.getElementById("next").classList.remove("primary"); // a page has one
  }
}

function addCopies() {
  if (navigator.clipboard === undefined) return; // a page without https
  for (const text of document.querySelectorAll("pre.snippet, code.secret")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn s";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text.textContent.trimEnd() + (text.tagName === "PRE" ? "\n" : ""));
      button.textContent = "Copied";
    });
    if (text.title !== "") button.title = `Copy: ${text.title}`;
    (text.parentElement.querySelector("figcaption") ?? text.parentElement).append(" ", button);
  }
}

/** Ticks a step. */
function tick(step) {
  step.className = "step ok";
  step.querySelector(".n").textContent = "✓";
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
  const found = await awaitEvent();
  if (found === undefined) {
    if (continues !== null) continues.textContent = "No event arrived within 30 minutes. Reload the page to keep waiting.";
    return;
  }
  const event = found.event_id;
  const page = `${first.dataset.public}/verify/${encodeURIComponent(event)}`;
  const link = document.getElementById("event");
  link.textContent = event;
  link.href = page;
  waiting?.parentElement.remove();
  for (const done of ["secrets", "send"]) tick(document.getElementById(done)); // an event is sent by a key that was kept
  first.className = "step now";
  document.getElementById("unproved").hidden = true;
  document.getElementById("arrived").hidden = false;
  const { origin } = first.dataset;
  // The verifier is loaded here, because many visits of the page wait for no event.
  const [{ checkEvent }, { runChecks }] = await Promise.all([import("./eventcheck.js"), import("./trust.js")]);
  const transparency = `${first.dataset.public}/transparency`;
  await runChecks(origin, () => checkEvent({ url: `${page}?format=json`, transparency, origin, event }));
  if (document.getElementById("outcome").dataset.state === "ok") tick(first);
  first.dataset.done = "yes";
}

addLocalTimes(document);
addDownloads();
addCopies();
document.documentElement.dataset.done = "yes";
if (continues !== null) continues.textContent = "This page continues automatically.";
if (first !== null) await showFirst();
