// The home of a log: reads its head and checks it here, and again after each change of the page.

import { hex } from "./verifier/bytes.js";
import { parseNote } from "./verifier/log/note.js";
import { Policy } from "./verifier/log/policy.js";
import { verifyHead } from "./verifier/verify/index.js";
import { checkConsistency } from "./consistency.js";
import { fetchHead, judgeQuorum } from "./heads.js";
import { keepLive } from "./live.js";
import { showOutcome, showProved, showUnproved, showVerdict } from "./marks.js";
import { addLocalTimes, describeAge } from "./times.js";
import { fetchText, readTrust, runChecks } from "./trust.js";

const page = document.getElementById("checked");
const { transparency, origin } = page.dataset;

async function check() {
  checkedAt = undefined;
  claim.textContent = "";
  showAge();
  showOutcome("waiting", "Checking …");
  const [text, head] = await fetchHead(transparency, origin);
  const trust = await readTrust(origin, transparency, head.checkpoint);
  const result = await verifyHead(text, { key: trust.given.key }); // the quorum has a mark of its own
  if (result.outcome !== "proved" || head.origin !== origin) {
    const words = trust.explain(result) || "the head of another log";
    showVerdict("checkpoint", { state: "fail", words });
    showVerdict("witnesses", { state: "none", words: "not counted, because the checkpoint is not proved" });
    showVerdict("consistency", { state: "none", words: "not compared, because the checkpoint is not proved" });
    return showUnproved(words);
  }
  showVerdict("checkpoint", { state: "ok", words: "proved", numbers: describe(head, trust, result.report.checkpoint) });
  const policy = new Policy(trust.policy);
  const quorum = judgeQuorum(policy, await policy.cosignatures(parseNote(head.checkpoint)));
  showVerdict("witnesses", quorum);
  const read = (path) => fetchText(`${transparency}/${path}`);
  const verdict = await checkConsistency(origin, head.checkpoint, read, true);
  showVerdict("consistency", verdict);
  const wrong = [quorum, verdict].find((v) => v.state === "fail");
  if (wrong) return showUnproved(wrong.words);
  showProved(trust, quorum.old ? ", but this view may be out of date: see Witnesses" : "");
  trust.keep();
  checkedAt = new Date();
  claim.textContent = claims[verdict.state];
  showAge();
}

// What this browser has checked when all checks hold: a first visit compares with nothing.
const claims = {
  ok: "Your browser has just checked that nothing has changed that it saw before.",
  none: "Your browser has just checked the signature of this tree, and will notice if it changes later.",
};
const claim = document.getElementById("claim");
const age = document.getElementById("age");
let checkedAt; // undefined while the checks do not hold

function showAge() {
  age.textContent = checkedAt ? `Checked by this browser ${describeAge(checkedAt)}.` : "";
}

function describe(head, { signer, words }, tree) {
  return [
    ["Key", signer.vkey],
    ["Signed by", words],
    ["Size", String(tree.size)],
    ["Root", hex(tree.root)],
    ["Checkpoint", head.checkpoint],
  ];
}

addLocalTimes(page);
const checkAgain = await runChecks(origin, check);
page.dataset.done = "yes";
setInterval(showAge, 1000);
keepLive(checkAgain);
