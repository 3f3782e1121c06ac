// Proofs of RFC 6962 trees. Sizes and indexes are bigints, because they may be up to 2^63 - 1.

import { equal, hex, unhex } from "../bytes.js";
import { sha256 } from "../crypto/sha256.js";
import { Malformed, Unproved } from "../errors.js";
import { parseDecimal, parseNote, readCheckpoint, openCheckpoint } from "./note.js";
import { unbase64, utf8 } from "../bytes.js";

const maxSize = 2n ** 63n - 1n;

/** Returns the leaf hash of an entry's text. */
export function leafHash(entry) {
  return sha256(Uint8Array.of(0), utf8(entry));
}

/** Returns the hash of a node with two subtrees. */
export function nodeHash(left, right) {
  return sha256(Uint8Array.of(1), left, right);
}

/** Returns the largest power of two below n. */
function split(n) {
  return 1n << BigInt((n - 1n).toString(2).length - 1);
}

function badProof(kind, why) {
  return new Unproved(`check ${kind}: ${why}: wrong proof`);
}

/** Checks that the leaf is at the index of the tree. Hashes begin with the leaf's sibling. Throws Unproved. */
export function checkInclusion(index, size, leaf, root, hashes) {
  if (index < 0n || index >= size || size > maxSize) throw badProof("inclusion", "index or size out of range");
  const left = [...hashes];
  const pop = () => {
    if (left.length === 0) throw badProof("inclusion", "number of hashes");
    return left.pop();
  };
  const rootOf = (at, n) => {
    if (n === 1n) return leaf;
    const k = split(n);
    const sibling = pop();
    return at < k ? nodeHash(rootOf(at, k), sibling) : nodeHash(sibling, rootOf(at - k, n - k));
  };
  const got = rootOf(index, size);
  if (left.length > 0) throw badProof("inclusion", "number of hashes");
  if (!equal(got, root)) throw badProof("inclusion", "another root");
}

/** Checks that the tree of `to` leaves extends the tree of `from` leaves. Throws Unproved. */
export function checkConsistency(from, to, fromRoot, toRoot, hashes) {
  if (from < 0n || from > to || to > maxSize) throw badProof("consistency", "sizes out of range");
  if (from === 0n && !equal(fromRoot, sha256())) throw badProof("consistency", "another root");
  if (to === 0n && !equal(toRoot, sha256())) throw badProof("consistency", "another root");
  const left = [...hashes];
  if (from > 0n && from < to) {
    const [first, second] = rootsOf(left, fromRoot, from, to, true);
    if (!equal(first, fromRoot) || !equal(second, toRoot)) throw badProof("consistency", "another root");
  } else if (from === to && !equal(fromRoot, toRoot)) {
    throw badProof("consistency", "another root");
  }
  if (left.length > 0) throw badProof("consistency", "number of hashes");
}

/** Returns the roots of the first m leaves of n, and of all n. */
function rootsOf(left, fromRoot, m, n, whole) {
  const pop = () => {
    if (left.length === 0) throw badProof("consistency", "number of hashes");
    return left.pop();
  };
  if (m === n) {
    const root = whole ? fromRoot : pop();
    return [root, root];
  }
  const k = split(n);
  const sibling = pop();
  if (m <= k) {
    const [first, second] = rootsOf(left, fromRoot, m, k, whole);
    return [first, nodeHash(second, sibling)];
  }
  const [first, second] = rootsOf(left, fromRoot, m - k, n - k, false);
  return [nodeHash(sibling, first), nodeHash(sibling, second)];
}

/** Parses a list of hashes in lower-case hex. */
export function parseHashes(hashes) {
  if (!Array.isArray(hashes)) throw new Malformed("hashes");
  return hashes.map((h) => unhex(h, 32));
}

/** Parses a C2SP tlog-proof. Throws Malformed. */
export function parseTlogProof(text) {
  const at = text.indexOf("\n\n");
  const [title, ...lines] = text.slice(0, Math.max(at, 0)).split("\n");
  if (at < 0 || title !== "c2sp.org/tlog-proof@v1") throw new Malformed("parse proof: header");
  if (lines[0]?.startsWith("extra ") && unbase64(lines.shift().slice(6)).length === 0) {
    throw new Malformed("parse proof: extra line");
  }
  if (!lines[0]?.startsWith("index ") || lines.length > 64) throw new Malformed("parse proof: index or hash lines");
  const index = parseDecimal(lines[0].slice(6));
  const hashes = lines.slice(1).map((line) => unbase64(line, 32));
  return { index, hashes, note: parseNote(text.slice(at + 2)) };
}

/** Checks a tlog-proof for an entry. Without a key the checkpoint is trusted. Returns index and size. */
export async function checkTlogProof(proof, entry, key) {
  const tree = key ? await openCheckpoint(proof.note, key) : readCheckpoint(proof.note);
  checkInclusion(proof.index, tree.size, leafHash(entry), tree.root, proof.hashes);
  return { index: proof.index, size: tree.size, origin: tree.origin };
}

/** Returns name and key ID of the lines with the log's name, if none is of a known key. They are unverified. */
export function unknownSigners(note, known) {
  const { origin } = readCheckpoint(note);
  if (note.lines.some((l) => known.some((k) => k.owns(l)))) return [];
  return note.lines.filter((l) => l.name === origin).map((l) => l.name + "+" + hex(l.id));
}
