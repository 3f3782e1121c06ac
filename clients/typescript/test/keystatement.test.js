// Rotations of a log key, from the published vectors.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseNote } from "../src/log/note.js";
import { parseKeys } from "../src/verify/bundle.js";
import { findKeyStatements } from "../src/verify/keystatement.js";
import { maxKnownKeys } from "../src/verify/knownkeys.js";
import { corpusFiles } from "./corpus.js";

test("a reader with the maximum number of keys rejects the next rotation", async () => {
  const { input } = corpusFiles().find((f) => f.kind === "key-statement").vectors[0];
  const note = parseNote(JSON.parse(input.bundle).checkpoint);
  const [pinned] = parseKeys(input.keys);
  for (const [number, want] of [[maxKnownKeys - 1, 1], [maxKnownKeys, 0]]) {
    const known = [pinned, ...Array(number - 1).fill({ ...pinned, from: 0n, to: 1n })];
    const { found, errors } = await findKeyStatements(note, known, async () => input.bundle);
    assert.equal(found.length, want, `${number} known keys: ${errors}`);
    if (want === 0) assert.match(errors[0].message, /at most 256 keys of a log/);
  }
});
