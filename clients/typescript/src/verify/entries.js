// The entries of an evidence pack's range: completeness (step 5), and the position of a record.

import { concat, equal, hex, unhex } from "../bytes.js";
import { sha256, sha256hex } from "../crypto/sha256.js";
import { Malformed, Mismatch } from "../errors.js";
import { checkConsistency, leafHash, nodeHash, parseHashes } from "../log/tree.js";
import { genesis } from "./documents.js";

/** Checks completeness by recomputing the entries of the range from the hashes of their records. Throws. */
export async function checkEntries(m, archive) {
  if (archive.files.get("entries.bin").size !== 32 * (m.end - m.begin)) throw new Malformed("entries.bin: size");
  if (m.end > m.begin && m.begin === 0 && m.prev !== genesis(m.origin)) throw new Mismatch("entries.bin: genesis");
  const subtrees = edgeOf(m);
  let { prev, begin: seq } = m;
  for await (const slice of wholeHashes(archive.slices("entries.bin"))) {
    for (let at = 0; at < slice.length; at += 32) {
      const leaf = leafHash(`{"prev":"${prev}","record":"${hex(slice.subarray(at, at + 32))}","seq":${++seq},"v":1}`);
      prev = hex(leaf);
      appendLeaf(subtrees, leaf);
    }
  }
  checkRoot(m, subtrees);
}

/** Yields slices that contain only whole hashes. */
async function* wholeHashes(parts) {
  let rest = new Uint8Array();
  for await (const part of parts) {
    const joined = rest.length === 0 ? part : concat(rest, part);
    const whole = joined.length - (joined.length % 32);
    yield joined.subarray(0, whole);
    rest = joined.subarray(whole);
  }
}

function edgeOf(m) {
  const sizes = [...m.begin.toString(2)].map((bit, i, all) => (bit === "1" ? 2 ** (all.length - 1 - i) : 0)).filter(Boolean);
  if (sizes.length !== m.edge.length) throw new Malformed("manifest.json: edge");
  return sizes.map((size, i) => [size, unhex(m.edge[i], 32)]);
}

function appendLeaf(subtrees, leaf) {
  subtrees.push([1, leaf]);
  while (subtrees.length > 1 && subtrees.at(-1)[0] === subtrees.at(-2)[0]) {
    const [[n, right], [, left]] = [subtrees.pop(), subtrees.pop()];
    subtrees.push([2 * n, nodeHash(left, right)]);
  }
}

function checkRoot(m, subtrees) {
  let root = subtrees.length > 0 ? subtrees.pop()[1] : sha256();
  while (subtrees.length > 0) root = nodeHash(subtrees.pop()[1], root);
  const whole = unhex(m.root_hash, 32);
  if (m.end !== 0 && m.end !== m.tree_size) {
    checkConsistency(BigInt(m.end), BigInt(m.tree_size), root, whole, parseHashes(m.consistency));
    return;
  }
  if (m.consistency.length > 0) throw new Malformed("manifest.json: consistency");
  if (m.end === m.tree_size && !equal(root, whole)) throw new Mismatch("entries.bin: root");
}

const windowHashes = 2048;

/** The hashes of entries.bin. It buffers 64 KiB of them, because records are checked in ascending order. */
export class EntryHashes {
  #window = new Uint8Array();
  #reader;
  #first = 0; // the index in the range of the window's first hash

  constructor(m, archive) {
    this.m = m;
    this.archive = archive;
  }

  /** Checks that a record of the range has its hash at its position. Throws Mismatch. */
  async checkPlace(r, text) {
    const at = r.sequence_num - 1 - this.m.begin;
    if (at < this.#first || at >= this.#first + this.#window.length / 32) await this.#read(at);
    const begin = 32 * (at - this.#first);
    if (sha256hex(text) !== hex(this.#window.subarray(begin, begin + 32))) throw new Mismatch("record and its hash in entries.bin");
  }

  async #read(at) {
    this.#first = at - (at % windowHashes);
    const count = Math.min(windowHashes, this.m.end - this.m.begin - this.#first);
    this.#reader ??= await this.archive.reader("entries.bin");
    this.#window = await this.#reader(32 * this.#first, 32 * (this.#first + count));
  }
}
