// The badge of a log on another website: checks the head here, and shows no check that this browser did not make.

import { parseNote } from "./verifier/log/note.js";
import { Policy } from "./verifier/log/policy.js";
import { verifyHead } from "./verifier/verify/index.js";
import { checkConsistency } from "./consistency.js";
import { fetchHead, judgeQuorum } from "./heads.js";
import { canCheck, showOutcome } from "./marks.js";
import { describeAge } from "./times.js";
import { fetchText, readTrust } from "./trust.js";

const { transparency, origin } = document.getElementById("checked").dataset;
const again = 30_000; // milliseconds between two checks
const outcome = document.getElementById("outcome");
const age = document.getElementById("age"); // outside the status, which is read aloud when it changes
let last; // when the last check held

/** Resolves to what the badge says, and whether the tree may be old, after all checks hold. */
async function check() {
  const [text, head] = await fetchHead(transparency, origin);
  const trust = await readTrust(origin, transparency, head.checkpoint);
  const result = await verifyHead(text, { key: trust.given.key });
  if (result.outcome !== "proved" || head.origin !== origin) throw wrong(trust.explain(result) || "the head of another log");
  const policy = new Policy(trust.policy);
  const quorum = judgeQuorum(policy, await policy.cosignatures(parseNote(head.checkpoint)));
  if (quorum.state === "fail") throw wrong(quorum.words);
  const verdict = await checkConsistency(origin, head.checkpoint, (path) => fetchText(`${transparency}/${path}`), true);
  if (verdict.state === "fail") throw wrong(verdict.words);
  trust.keep();
  const entries = `${head.tree_size.toLocaleString("en")} ${head.tree_size === 1 ? "entry" : "entries"}`;
  const words = `${entries}, verified by your browser${quorum.old ? ", but this view may be out of date" : ""}`;
  return [words, quorum.old];
}

function wrong(words) {
  return Object.assign(new Error(words), { wrong: true });
}

async function run() {
  try {
    const [words, old] = await check();
    last = new Date();
    if (outcome.textContent !== words) showOutcome("ok", words);
    for (const part of [outcome, outcome.closest("header")]) part.toggleAttribute("data-limited", old === true);
  } catch (why) {
    last = undefined;
    outcome.closest("header").removeAttribute("data-limited");
    if (why.wrong) showOutcome("fail", `Not verified: ${why.message.replace(/^not proved: /, "")}`);
    else showOutcome("none", "Your browser could not check it just now.");
  }
  showAge();
}

function showAge() {
  age.textContent = last ? `, ${describeAge(last)}` : "";
}

if (canCheck()) {
  await run();
  setInterval(() => document.visibilityState === "visible" && run(), again);
  setInterval(showAge, 1000);
}
document.getElementById("checked").dataset.done = "yes";
