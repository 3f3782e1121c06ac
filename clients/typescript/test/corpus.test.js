// Every vector of testdata/vectors and testdata/packs, with the verdicts of `aps verify`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { corpusFiles } from "./corpus.js";
import { judge } from "./judge.js";

for (const file of corpusFiles()) {
  test(`vectors of kind ${file.kind}`, async () => {
    const verdicts = new Set();
    for (const v of file.vectors) {
      const { verdict, said, why } = await judge(file.kind, v.input);
      assert.equal(verdict, v.verdict, `${v.name}: ${why?.message ?? JSON.stringify(said)}`);
      if (v.expect) assert.deepEqual(said, v.expect, v.name);
      verdicts.add(verdict);
    }
    assert.deepEqual([...verdicts].sort(), ["accept", "refuse"]);
  });
}
