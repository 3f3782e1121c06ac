// The editor of a policy: line numbers, colours, names to insert, and the service's check of the text while it is typed.

import { addLocalTimes } from "./times.js";
import { findPlace, lineAt, placeOf } from "./jsonplace.js";

const pause = 500; // milliseconds without a key before a text is checked
const most = 200_000; // characters of a text that is checked while it is typed
const coloured = 60_000; // characters of a text that is coloured

const form = document.getElementById("editor");
const text = form.elements.namedItem("document");
const numbers = document.getElementById("numbers");
const ink = document.createElement("pre");
const token = /("(?:[^"\\\n]|\\.)*")(\s*:)?/g;

let timer = 0;
let running = null;

function element(name, className, content) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = content;
  return made;
}

// draw numbers and colours the lines. wrong is the line of an error, or 0.
function draw(wrong) {
  const content = text.value;
  const count = content.split("\n").length;
  text.rows = Math.max(28, count + 1);
  numbers.replaceChildren();
  for (let n = 1; n <= count; n += 1) numbers.append(n === wrong ? element("b", "bad", String(n)) : String(n), "\n");
  if (content.length > coloured) {
    ink.remove();
    return;
  }
  const parts = [];
  let at = 0;
  for (const found of content.matchAll(token)) {
    parts.push(content.slice(at, found.index), element(found[2] ? "i" : "span", found[2] ? "" : "good", found[1]));
    at = found.index + found[1].length;
  }
  ink.replaceChildren(...parts, content.slice(at), "\n");
  if (!ink.isConnected) text.before(ink);
  ink.scrollLeft = text.scrollLeft;
}

function show(slip, findings) {
  document.getElementById("slip").replaceChildren(...slip);
  if (findings) document.getElementById("findings").replaceWith(findings);
  const cause = document.getElementById("cause");
  if (cause) text.setAttribute("aria-invalid", "true");
  else text.removeAttribute("aria-invalid");
  const place = cause && placeOfCause(cause.textContent);
  draw(place ? lineAt(text.value, place.begin) : 0);
  const button = document.getElementById("place");
  if (!button || !place) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    text.focus();
    text.setSelectionRange(place.begin, place.end);
  });
}

function placeOfCause(cause) {
  const wrong = findPlace(text.value, []);
  return wrong?.wrong ? wrong : findPlace(text.value, placeOf(cause));
}

function say(message) {
  show([element("p", "note", message)]);
}

function check() {
  running?.abort();
  if (text.value.length > most) {
    say("The text is too large to be checked while you type: press Check.");
    return;
  }
  const sent = new URLSearchParams(new FormData(form));
  sent.set("do", "glance");
  const ask = new XMLHttpRequest();
  running = ask;
  ask.open("POST", location.href);
  ask.responseType = "document";
  ask.onload = () => {
    const slip = ask.response?.getElementById("slip");
    const problem = ask.response?.getElementById("problem");
    if (!slip) say("You are signed out. Sign in in another window, then continue here.");
    else if (problem) say("The text can't be checked now: " + problem.textContent);
    else {
      const findings = document.importNode(ask.response.getElementById("findings"), true);
      addLocalTimes(findings);
      show([...document.importNode(slip, true).childNodes], slip.firstChild ? null : findings);
    }
  };
  ask.onerror = () => say("The text can't be checked now.");
  ask.send(sent);
}

/** Inserts the chosen name where the text has its cursor. */
function addNames() {
  const names = document.getElementById("names");
  if (names === null) return;
  const [name, insert] = [names.querySelector("input"), names.querySelector("button")];
  insert.addEventListener("click", () => {
    text.setRangeText(name.value.trim(), text.selectionStart, text.selectionEnd, "end");
    name.value = "";
    text.focus();
    text.dispatchEvent(new Event("input"));
  });
  name.addEventListener("keydown", (press) => {
    if (press.key !== "Enter") return;
    press.preventDefault(); // it would send the form
    insert.click();
  });
  names.hidden = false;
}

text.addEventListener("input", () => {
  draw(0);
  clearTimeout(timer);
  if (form.querySelector('[value="check"]')) timer = setTimeout(check, pause);
});
text.addEventListener("scroll", () => (ink.scrollLeft = text.scrollLeft));

ink.className = "ink";
ink.setAttribute("aria-hidden", "true");
show([...document.getElementById("slip").childNodes]);
addNames();
addLocalTimes(document);
document.documentElement.dataset.done = "yes";
