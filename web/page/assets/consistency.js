// Compares a checkpoint with the largest tree that this browser has seen of the log.

import { hex } from "./verifier/bytes.js";
import { parseNote, readCheckpoint } from "./verifier/log/note.js";
import { verifyConsistency } from "./verifier/verify/index.js";
import { recall, remember } from "./memory.js";

/**
 * Resolves to the verdict on a proved checkpoint of a log. `fetchText` reads transparency/ paths, `trust` is what
 * the checkpoint was proved under. A tree that was proved is remembered when it is the largest.
 */
export async function checkConsistency(origin, checkpoint, trust, fetchText) {
  const now = readCheckpoint(parseNote(checkpoint));
  const seen = recall(origin);
  if (typeof seen.checkpoint !== "string") {
    const kept = remember(origin, { checkpoint });
    const words = kept ? "first visit: this tree is remembered from now on" : "this browser does not keep what it saw";
    return { state: "none", words, numbers: [["Size seen now", String(now.size)]] };
  }
  const before = readCheckpoint(parseNote(seen.checkpoint));
  const numbers = [
    ["Size seen before", String(before.size)],
    ["Root seen before", hex(before.root)],
    ["Size seen now", String(now.size)],
    ["Root seen now", hex(now.root)],
  ];
  const ordered = before.size <= now.size ? [seen.checkpoint, checkpoint] : [checkpoint, seen.checkpoint];
  const result = await prove(origin, ordered, trust, fetchText);
  if (result.outcome !== "proved") {
    const words = result.outcome === "proved_wrong" ? `fork: ${result.reason}` : `can't tell: ${result.reason}`;
    return { state: "fail", words, numbers };
  }
  if (now.size > before.size) remember(origin, { checkpoint });
  return { state: "ok", words: "extends the tree that this browser saw last", numbers };
}

async function prove(origin, [older, newer], trust, fetchText) {
  const [from, to] = [older, newer].map((note) => readCheckpoint(parseNote(note)));
  if (from.size === to.size && hex(from.root) !== hex(to.root)) {
    return { outcome: "proved_wrong", reason: "two trees of one size have different roots" };
  }
  const query = `from=${from.size}&to=${to.size}&origin=${encodeURIComponent(origin)}`;
  let answer;
  try {
    answer = await fetchText("consistency?" + query);
  } catch (why) {
    return { outcome: "cant_tell", reason: `the service gives no proof between sizes ${from.size} and ${to.size} (${why.message})` };
  }
  return verifyConsistency(answer, older, newer, { ...trust, policy: undefined });
}
