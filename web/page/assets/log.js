// The home of a log: reads its head and checks it here, and again after each change of the page.

import { hex } from "./verifier/bytes.js";
import { parseNote } from "./verifier/log/note.js";
import { Policy, named } from "./verifier/log/policy.js";
import { verifyHead } from "./verifier/verify/index.js";
import { timeWords } from "./verifier/verify/words.js";
import { checkConsistency, seenSize } from "./consistency.js";
import { keepLive } from "./live.js";
import { showOutcome, showProved, showUnproved, showVerdict } from "./marks.js";
import { addLocalTimes, describeAge } from "./times.js";
import { fetchText, readTrust, runChecks } from "./trust.js";

const page = document.getElementById("checked");
const { transparency, origin } = page.dataset;

const looks = 3; // at a head that is smaller than the tree that was seen: nodes and caches may be a moment apart
const pause = 2000; // milliseconds between two looks

/** Resolves to the head that the service shows, as text and parsed. */
async function fetchHead() {
  for (let look = 1; ; look += 1) {
    const text = await fetchText(transparency + "/head");
    const head = JSON.parse(text);
    if (!(head.tree_size < seenSize(origin)) || look === looks) return [text, head];
    showOutcome("waiting", `The service shows ${head.tree_size} entries, fewer than before. Asking again …`);
    await new Promise((next) => setTimeout(next, pause));
  }
}

async function check() {
  showOutcome("waiting", "Checking …");
  const [text, head] = await fetchHead();
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

/** Judges the quorum of the policy, and how old the head is by the clocks of a quorum. */
function judgeQuorum(policy, seen) {
  const { since, ahead } = policy.times(seen, Date.now());
  const numbers = seen.map((c) => [c.witness, timeWords(named(c.witness, c.time, Date.now()))]);
  if (!policy.isReached(seen)) {
    return { state: "fail", words: "too few witnesses of the policy that this browser remembers have cosigned the checkpoint", numbers };
  }
  if (seen.length === 0) return { state: "none", words: "the log's policy asks for none", numbers };
  if (policy.quorum === "none") return { state: "ok", words: `${seen.length} cosigned`, numbers };
  const age = ageOf(since, ahead);
  return { state: age.old ? "none" : "ok", words: `${seen.length} cosigned, ${age.words}`, numbers, old: age.old };
}

const maxAge = 3 * 3600; // seconds; a service asks the witnesses of a log that does not grow once an hour

/** Describes the age of a head. */
function ageOf(since, ahead) {
  const future = ahead.length > 0 ? `; the cosignature of ${ahead.map((c) => c.witness).join(", ")} is in the future, which proves no time` : "";
  if (since === undefined) return { old: true, words: `but that proves no time, so this view may be out of date${future}` };
  const at = new Date(Number(since) * 1000);
  const old = (Date.now() - at.getTime()) / 1000 > maxAge;
  const words = `a quorum of them ${describeAge(at)} or later${old ? ", so this view may be out of date" : ""}`;
  return { old, words: words + future };
}

addLocalTimes(page);
const checkAgain = await runChecks(origin, check);
page.dataset.done = "yes";
keepLive(checkAgain);
