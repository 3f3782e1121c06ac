// The log keys that this browser knows, and how it accepts another one: the log itself states each change of its key, in
// an entry of a tree that the key before it signed too.

import { LedgerError } from "./verifier/errors.js";
import { hex } from "./verifier/bytes.js";
import { parseLogKey } from "./verifier/log/note.js";
import * as statements from "./verifier/verify/keystatement.js";
import { checkConsistency } from "./consistency.js";

/** Returns the key ID of a vkey: 8 hex digits. */
export function keyID(vkey) {
  return hex(parseLogKey(vkey).id);
}

/** Reports whether a note has a line of a key. */
export function signs({ vkey }, note) {
  const key = parseLogKey(vkey);
  return note.lines.some((l) => key.owns(l));
}

/** Returns remembered keys in the form of the verifier. A key ends where the key that it vouched for begins. */
function known(keys) {
  return keys.map((k) => {
    const ends = keys.filter((next) => next.source === "stated" && next.by === keyID(k.vkey)).map((next) => next.from_size);
    const to = Math.min(k.to_size ?? Infinity, ...ends);
    return { key: parseLogKey(k.vkey), from: BigInt(k.from_size), to: to === Infinity ? undefined : BigInt(to) };
  });
}

/** Returns the index of the known key that counts for the size of a note and has a line in it, -1 for none. */
export function findSigner(keys, note) {
  return statements.findSigner(known(keys), note);
}

/**
 * Resolves to the known keys and those that signed the note too, if the log states them. It throws a LedgerError if
 * neither a known key signed the note nor an entry of the log states the key, under a checkpoint that a known key signed.
 * `read` reads transparency/ paths.
 */
export async function acceptSigner(origin, keys, note, read) {
  const readStatement = (id) => read(`keys/${id}?origin=${encodeURIComponent(origin)}`);
  const { found, errors } = await statements.findKeyStatements(note, known(keys), readStatement);
  let all = keys;
  for (const { vkey, by, from_size, checkpoint } of found) {
    const verdict = await checkConsistency(origin, checkpoint, read, false);
    if (verdict.state === "fail") throw new LedgerError(`the statement of the key ${keyID(vkey)}: ${verdict.words}`);
    all = [...all, { vkey, from_size, to_size: null, source: "stated", by: keyID(by) }];
  }
  if (findSigner(all, note) >= 0) return all;
  throw errors.find((why) => !why.unread) ?? new LedgerError("no entry of the log under a known key states this key");
}
