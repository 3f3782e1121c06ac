// The files of an evidence pack, in any kind of container.

import { concat, fromUTF8, hex } from "../bytes.js";
import { Sha256 } from "../crypto/sha256.js";
import { Malformed, Mismatch } from "../errors.js";
import { openContainer } from "./container.js";

const before = ["checkpoint", "keys.json", "policy", "agents.json"];
const after = ["entries.bin", "records.ndjson", "envelopes.ndjson", "approvals.ndjson", "erasures.ndjson", "voters.ndjson", "acts.ndjson", "report.html", "manifest.json"];
const optional = ["voters.ndjson", "acts.ndjson"];
const policyFile = /^policies\/[0-9a-f]{64}\.json$/;
const maxPolicies = 1000;
const maxLine = 4 << 20; // with its end

/** The files of a pack: their names and positions, not their content. */
export class Archive {
  /** Lists the files. Throws Unreadable, and Mismatch if they are not the files of a pack. */
  static async open(pack) {
    return new Archive(ordered(await openContainer(pack)));
  }

  constructor(files) {
    this.files = files; // by name, in the order of the manifest
  }

  /** Yields the content of a file in slices. */
  slices(name) {
    return this.files.get(name).slices();
  }

  /** Resolves to the content of a file of at most `most` bytes. Throws Malformed for a larger one. */
  async content(name, most) {
    if (this.files.get(name).size > most) throw new Malformed(name + ": size");
    const parts = [];
    for await (const part of this.slices(name)) parts.push(part);
    return parts.length === 1 ? parts[0] : concat(...parts);
  }

  /**
   * Resolves to the function that reads [begin, end) of a file. A file that can only be read sequentially is kept in
   * memory.
   */
  async reader(name) {
    const { read, size } = this.files.get(name);
    if (read) return read;
    const whole = await this.content(name, size);
    return async (begin, end) => whole.subarray(begin, end);
  }

  /** Resolves to the SHA-256 of a file in hex. */
  async digest(name) {
    const sum = new Sha256();
    for await (const part of this.slices(name)) sum.update(part);
    return hex(sum.digest());
  }

  /** Yields the lines of an .ndjson file as texts, keeping one line and one slice in memory. Throws Malformed. */
  async *lines(name, most = Infinity) {
    let parts = [];
    let length = 0;
    for await (const slice of this.slices(name)) {
      for (let from = 0; from < slice.length; ) {
        const at = slice.indexOf(10, from);
        const part = slice.subarray(from, at < 0 ? slice.length : at);
        parts.push(part);
        length += part.length;
        if (length >= maxLine || (at >= 0 && length === 0) || most < 1) throw new Malformed("lines");
        if (at < 0) break;
        yield fromUTF8(parts.length === 1 ? part : concat(...parts));
        [parts, length, from] = [[], 0, at + 1];
        most--;
      }
    }
    if (length > 0) throw new Malformed("line end");
  }
}

function ordered(found) {
  const policies = [...found.keys()].filter((n) => policyFile.test(n)).sort();
  const names = [...before, ...policies, ...after.filter((n) => !optional.includes(n) || found.has(n))];
  if (policies.length > maxPolicies || names.length !== found.size || names.some((n) => !found.has(n))) {
    throw new Mismatch("names of the files");
  }
  return new Map(names.map((n) => [n, found.get(n)]));
}
