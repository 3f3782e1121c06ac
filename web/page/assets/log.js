// The home of a log: reads its head and checks it here, and again after each change of the page.

import { hex } from "./verifier/bytes.js";
import { LedgerError } from "./verifier/errors.js";
import { parseNote } from "./verifier/log/note.js";
import { Policy } from "./verifier/log/policy.js";
import { verifyHead } from "./verifier/verify/index.js";
import { checkConsistency } from "./consistency.js";
import { keepLive } from "./live.js";
import { showOutcome, showVerdict } from "./marks.js";
import { addLocalTimes } from "./times.js";
import { fetchText, readTrust, rememberKey, runChecks } from "./trust.js";

const page = document.getElementById("checked");
const { transparency, origin } = page.dataset;

/** Checks a head without the quorum, which has a mark of its own. */
async function checkHead(text, { policy, ...pinned }, key) {
  try {
    return await verifyHead(text, { key, ...pinned });
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return verifyHead(text, { key: pinned.key }); // the list of keys lacks the remembered key
  }
}

async function check() {
  showOutcome("waiting", "Checking …");
  const [text, trust] = await Promise.all([fetchText(transparency + "/head"), readTrust(origin, transparency)]);
  const policy = new Policy(trust.policy);
  const head = JSON.parse(text);
  const key = trust.key ?? policy.logs.find((k) => parseNote(head.checkpoint).lines.some((l) => k.owns(l)))?.text;
  const result = await checkHead(text, trust, key);
  if (result.outcome !== "proved" || head.origin !== origin) {
    showVerdict("checkpoint", { state: "fail", words: result.reason || "the head of another log" });
    showVerdict("consistency", { state: "none", words: "not compared, because the checkpoint is not proved" });
    return showOutcome("fail", `Not proved: ${result.reason || "the head of another log"}`);
  }
  showVerdict("checkpoint", { state: "ok", words: "proved", numbers: describe(head, key, result.report.checkpoint) });
  const seen = await policy.cosignatures(parseNote(head.checkpoint));
  const quorum = judgeQuorum(policy, seen);
  showVerdict("witnesses", quorum);
  const read = (path) => fetchText(`${transparency}/${path}`);
  const verdict = await checkConsistency(origin, head.checkpoint, { ...trust, key }, read);
  showVerdict("consistency", verdict);
  const wrong = [quorum, verdict].find((v) => v.state === "fail");
  if (wrong) return showOutcome("fail", `Not proved: ${wrong.words}`);
  showOutcome("ok", `Proved, as far as the marks below say, under ${rememberKey(origin, key)}.`);
}

function describe(head, key, tree) {
  return [
    ["Key", key],
    ["Size", String(tree.size)],
    ["Root", hex(tree.root)],
    ["Checkpoint", head.checkpoint],
  ];
}

function judgeQuorum(policy, seen) {
  const numbers = seen.map((c) => [c.witness, new Date(Number(c.time) * 1000).toISOString()]);
  if (!policy.isReached(seen)) {
    return { state: "fail", words: "too few witnesses of the policy have cosigned the checkpoint", numbers };
  }
  if (seen.length === 0) return { state: "none", words: "the log's policy asks for none", numbers };
  return { state: "ok", words: `${seen.length} cosigned`, numbers };
}

addLocalTimes(page);
const checkAgain = await runChecks(origin, check);
page.dataset.done = "yes";
keepLive(checkAgain);
