// The log keys that this browser knows, and how it accepts another one: the log itself states each change of its key, in
// an entry of a tree that the key before it signed too.

import { LedgerError } from "./verifier/errors.js";
import { hex } from "./verifier/bytes.js";
import { parseLogKey } from "./verifier/log/note.js";
import * as sizes from "./verifier/verify/knownkeys.js";
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

/** Returns remembered keys in the form of the verifier. */
function known(keys) {
  return keys.map(({ vkey, from_size: from, to_size: to }) => ({
    key: parseLogKey(vkey),
    from: BigInt(from),
    to: to === null ? undefined : BigInt(to),
  }));
}

/** Returns remembered keys with a stated one. The key that vouched for it ends where it begins. */
function addStated(keys, { vkey, by, from_size: size }) {
  const ended = keys.map((k) => (k.vkey === by ? { ...k, to_size: Math.min(k.to_size ?? Infinity, size) } : k));
  return [...ended, { vkey, from_size: size, to_size: null, source: "stated", by: keyID(by), since: new Date().toISOString() }];
}

/** Returns the index of the known key that counts for the size of a note and has a line in it, -1 for none. */
export function findSigner(keys, note) {
  return sizes.findSigner(known(keys), note);
}

/**
 * Resolves to the known keys and those that signed the note too, if the log states them. It throws a LedgerError if
 * neither a known key signed the note nor an entry of the log states the key, under a checkpoint that a known key signed.
 * `read` reads transparency/ paths.
 */
export async function acceptSigner(origin, keys, note, read) {
  const unknown = note.lines.some((l) => l.name === origin && !keys.some((k) => keyID(k.vkey) === hex(l.id)));
  if (!unknown && findSigner(keys, note) >= 0) return keys;
  const statements = await import("./verifier/verify/keystatement.js"); // few visitors need it
  const readStatement = (id) => read(`keys/${id}?origin=${encodeURIComponent(origin)}`);
  const { found, errors } = await statements.findKeyStatements(note, known(keys), readStatement);
  let all = keys;
  for (const statement of found) {
    const verdict = await checkConsistency(origin, statement.checkpoint, read, false);
    if (verdict.state === "fail") throw new LedgerError(`the statement of the key ${keyID(statement.vkey)}: ${verdict.words}`);
    all = addStated(all, statement);
  }
  if (findSigner(all, note) >= 0) return all;
  throw errors.find((why) => !why.unread) ?? new LedgerError("no entry of the log under a known key states this key");
}
