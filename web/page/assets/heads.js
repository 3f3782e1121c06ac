// The head of a log that the service shows, and the quorum of its witnesses: for the log's page and its badge.

import { named } from "./verifier/log/policy.js";
import { timeWords } from "./verifier/verify/words.js";
import { seenSize } from "./consistency.js";
import { showOutcome } from "./marks.js";
import { describeAge } from "./times.js";
import { fetchText } from "./trust.js";

const looks = 3; // at a head that is smaller than the tree that was seen: nodes and caches may be a moment apart
const pause = 2000; // milliseconds between two looks

/** Resolves to the head of a log that the service shows, as text and parsed. */
export async function fetchHead(transparency, origin) {
  for (let look = 1; ; look += 1) {
    const text = await fetchText(transparency + "/head");
    const head = JSON.parse(text);
    if (!(head.tree_size < seenSize(origin)) || look === looks) return [text, head];
    showOutcome("waiting", `The service shows ${head.tree_size} entries, fewer than before. Asking again …`);
    await new Promise((next) => setTimeout(next, pause));
  }
}

/** Judges the quorum of the policy, and how old the head is by the clocks of a quorum. */
export function judgeQuorum(policy, seen) {
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
