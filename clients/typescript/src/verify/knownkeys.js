// The keys of a log that a reader knows, and the sizes of the trees that each of them signs.

import { LedgerError, Malformed, Mismatch } from "../errors.js";
import { parseLogKey, readCheckpoint } from "../log/note.js";

// A known key is {key, from, to}: `key` from parseLogKey signs trees of the sizes [from, to). `to` is undefined if it
// has no end. An accepted key is {vkey, by, from_size}: the key `vkey` signs trees of that size and larger ones, and
// the key `by`, which vouched for it, only smaller ones.

/** The maximum number of keys of one log that a reader remembers. */
export const maxKnownKeys = 256;

/** Reports whether a listed key signed trees of a size. */
export function signedSize({ from, to }, size) {
  return from <= size && (to === undefined || size < to);
}

/**
 * Returns the known keys with an accepted one, which does not count if the key that vouched for it is not known. Throws a
 * LedgerError if maxKnownKeys keys are known already.
 */
export function addAccepted(known, accepted) {
  const { vkey, by, from_size: size } = accepted ?? {};
  if (typeof vkey !== "string") throw new Malformed("accepted key: vkey");
  const key = parseLogKey(vkey);
  const at = known.findIndex((k) => k.key.text === by);
  if (at < 0) return known;
  if (key.name !== known[at].key.name || key.text === by || !(size > 0)) throw new Mismatch("accepted key: name or size");
  const end = BigInt(size);
  const all = known.map((k, i) => (i === at && (k.to === undefined || end < k.to) ? { ...k, to: end } : k));
  if (all.some((k) => k.key.text === vkey)) return all;
  if (all.length >= maxKnownKeys) {
    throw new LedgerError(`accepted key: too many keys: a reader remembers at most ${maxKnownKeys} keys of a log; pin its current key`);
  }
  return [...all, { key, from: end, to: undefined }];
}

/** Returns the index of the known key that signs trees of the size of a note and has a line in it, or -1. */
export function findSigner(known, note) {
  const { size } = readCheckpoint(note);
  return known.findIndex((k) => signedSize(k, size) && note.lines.some((l) => k.key.owns(l)));
}
