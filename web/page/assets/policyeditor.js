// The editor of a policy: the service checks the text while it is typed.

import { addLocalTimes } from "./times.js";
import { findPlace, lineAt, placeOf } from "./jsonplace.js";

const pause = 400; // milliseconds without a key before a text is checked

const form = document.getElementById("editor");
const text = form.elements.namedItem("document");
const verdict = document.getElementById("verdict");
const place = document.getElementById("place");
const results = document.getElementById("results");

let timer = 0;
let running = new AbortController();
let found = null;

function element(name, content, ...children) {
  const made = document.createElement(name);
  if (content !== "") made.textContent = content;
  made.append(...children);
  return made;
}

function cell(label, ...children) {
  const made = element("td", "", ...children);
  made.dataset.label = label;
  return made;
}

function isolated(content) {
  return element("bdi", content);
}

function tell(state, message, at) {
  verdict.className = "outcome";
  verdict.dataset.state = state;
  verdict.textContent = message;
  text.setAttribute("aria-invalid", state === "fail" && at !== undefined ? "true" : "false");
  found = at ?? null;
  place.hidden = found === null;
}

// showRefusal tells why a text is no policy, and where.
function showRefusal(content, message) {
  const at = findPlace(content, placeOf(message));
  if (at?.wrong) {
    tell("fail", "Line " + lineAt(content, at.begin) + ": the text is not JSON from here on", at);
  } else if (at) {
    tell("fail", "Line " + lineAt(content, at.begin) + ": " + message, at);
  } else {
    tell("fail", message);
  }
  results.replaceChildren();
}

function row(test, number, why) {
  const result = cell("Result");
  result.dataset.state = why === undefined ? "ok" : "fail";
  const mark = element("span", "");
  mark.className = "mark";
  mark.setAttribute("aria-hidden", "true");
  result.append(mark, ...(why === undefined ? ["passes"] : ["fails: ", isolated(why)]));
  const expected = cell("Expected", String(test.expect?.decision ?? "").replaceAll("_", " "));
  if (test.expect?.rule_id) expected.append(" by ", element("code", "", isolated(test.expect.rule_id)));
  return element("tr", "", cell("Test", number + ". ", isolated(String(test.name ?? ""))),
    cell("Tool", element("code", "", isolated(String(test.input?.tool_name ?? "")))), expected, result);
}

// showChecked tells what the service says to a policy, and the result of each of its tests.
function showChecked(content, checked) {
  const failed = new Map(checked.failures.map((f) => [f.test, f.why]));
  const tests = JSON.parse(content).tests ?? [];
  let message = "It is a policy. ";
  if (failed.size > 0) message += failed.size + " of its " + checked.tests + (checked.tests === 1 ? " test " : " tests ") + (failed.size === 1 ? "fails" : "fail") + ", so it can't be activated.";
  else if (checked.tests > 0) message += "All of its tests pass (" + checked.tests + ").";
  else message += "It has no tests.";
  if (checked.quorum_unreachable) message += " It can't be activated now: " + checked.quorum_unreachable + ".";
  tell(failed.size > 0 ? "fail" : "ok", message);
  const head = element("tr", "");
  for (const title of ["Test", "Tool", "Expected", "Result"]) {
    const made = element("th", title);
    made.scope = "col";
    head.append(made);
  }
  const body = element("tbody", "");
  tests.forEach((test, i) => body.append(row(test, i + 1, failed.get(i))));
  results.replaceChildren(...(tests.length > 0 ? [element("table", "", element("thead", "", head), body)] : []));
}

async function check() {
  running.abort();
  running = new AbortController();
  const content = text.value;
  const local = findPlace(content, []);
  if (local?.wrong) {
    showRefusal(content, "");
    return;
  }
  try {
    const answer = await fetch(form.dataset.check, {
      method: "POST", body: content, headers: { "Content-Type": "application/json" }, signal: running.signal,
    });
    const said = await answer.json();
    if (answer.ok) showChecked(content, said);
    else if (answer.status === 401) tell("fail", "You are signed out. Sign in in another window, then continue here.");
    else if (answer.status === 422) showRefusal(content, said.error);
    else if (answer.status === 413) tell("none", "The text is too large to be checked while you type: press Check.");
    else tell("none", "The text can't be checked now: " + said.error);
  } catch (error) {
    if (error.name !== "AbortError") tell("none", "The text can't be checked now.");
  }
}

text.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, pause);
});

place.firstElementChild.addEventListener("click", () => {
  text.focus();
  text.setSelectionRange(found.begin, found.end);
  const height = parseFloat(getComputedStyle(text).lineHeight);
  text.scrollTop = Math.max(0, (lineAt(text.value, found.begin) - 4) * height);
});

addLocalTimes(document);
document.documentElement.dataset.done = "yes";
