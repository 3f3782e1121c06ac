// Compares a checkpoint with the largest tree that this browser has seen of the log.

import { parse } from "./verifier/canonical/parse.js";
import { hex } from "./verifier/bytes.js";
import { LedgerError } from "./verifier/errors.js";
import { parseNote, readCheckpoint } from "./verifier/log/note.js";
import { checkForm, is, listOf } from "./verifier/verify/forms.js";
import { checkConsistencyAnswer } from "./verifier/verify/index.js";
import { recall, remember } from "./memory.js";

const treeOf = (note) => readCheckpoint(parseNote(note));

/** Returns the size of the largest tree that this browser has seen of a log, 0n for none. */
export function seenSize(origin) {
  const { checkpoint } = recall(origin);
  return typeof checkpoint === "string" ? treeOf(checkpoint).size : 0n;
}

/**
 * Resolves to the verdict on a checkpoint whose signature was checked. `read` reads transparency/ paths. A tree that
 * was proved is remembered if it is the largest. A smaller tree is wrong for the head of a log (`isHead`), which never
 * shrinks. The checkpoint of a bundle may be older: it must be in the history of the larger tree.
 */
export async function checkConsistency(origin, checkpoint, read, isHead) {
  const now = treeOf(checkpoint);
  const seen = recall(origin).checkpoint;
  if (typeof seen !== "string") {
    const kept = remember(origin, { checkpoint });
    const words = kept ? "first visit: this tree is remembered from now on" : "this browser does not keep what it saw";
    return { state: "none", words, numbers: [["Size seen now", String(now.size)]] };
  }
  const before = treeOf(seen);
  const numbers = [
    ["Size seen before", String(before.size)],
    ["Root seen before", hex(before.root)],
    ["Size seen now", String(now.size)],
    ["Root seen now", hex(now.root)],
    ["Checkpoint seen before", seen],
  ];
  const fail = (words) => ({ state: "fail", words, numbers });
  if (isHead && now.size < before.size) {
    return fail(
      `rollback: the service shows a tree of ${now.size} entries, and this browser has seen one of ${before.size} that the log's key signed`,
    );
  }
  const [older, newer] = before.size <= now.size ? [before, now] : [now, before];
  const why = await findFault(origin, older, newer, read);
  if (why) return fail(why);
  if (now.size > before.size) remember(origin, { checkpoint });
  const words =
    now.size < before.size
      ? "in the history of the larger tree that this browser saw"
      : "extends the tree that this browser saw last";
  return { state: "ok", words, numbers };
}

const forms = { from: is.natural, to: is.natural, from_root: is.hash, to_root: is.hash, hashes: listOf(is.hash) };

/** Resolves to why there is no proof that the tree `to` extends the tree `from`, undefined if there is one. */
async function findFault(origin, from, to, read) {
  if (from.origin !== to.origin) return "fork: the checkpoint is of another log";
  if (from.size === to.size) {
    return hex(from.root) === hex(to.root) ? undefined : "fork: two trees of one size have different roots";
  }
  const query = `from=${from.size}&to=${to.size}&origin=${encodeURIComponent(origin)}`;
  let answer;
  try {
    answer = await read("consistency?" + query);
  } catch (why) {
    return `can't tell: the service gives no proof between sizes ${from.size} and ${to.size} (${why.message})`;
  }
  try {
    const proof = parse(answer);
    checkForm(proof, forms, { closed: false });
    const other = [[from, proof.from_root], [to, proof.to_root]].find(([tree, root]) => hex(tree.root) !== root);
    if (other) return `fork: the service has another tree of ${other[0].size} entries than the one that the log's key signed`;
    checkConsistencyAnswer(proof, from, to);
    return undefined;
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return `no valid proof between sizes ${from.size} and ${to.size}: ${why.message}`;
  }
}
