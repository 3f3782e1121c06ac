// Compares this package's reports with those of `aps verify`, on every bundle of the corpus.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { verify } from "../src/index.js";
import { corpusFiles } from "./corpus.js";
import { program } from "./harness.js";

test("outcomes, verdicts and texts match aps verify", async () => {
  const folder = mkdtempSync(join(tmpdir(), "agentledger-aps-"));
  try {
    const aps = program("aps", folder);
    const { vectors } = corpusFiles().find((f) => f.kind === "bundle");
    const plain = vectors.filter((v) => v.input.bundle !== undefined && v.input.keys === undefined);
    assert.ok(plain.length > 100);
    for (const v of plain.filter((w, i) => w.expect && i % 5 === 0)) {
      writeFileSync(join(folder, "bundle"), v.input.bundle);
      const run = (...more) => spawnSync(aps, ["verify", join(folder, "bundle"), "--key", v.input.key, ...more], { encoding: "utf8" });
      const { status, report, lines } = await verify.bundle(v.input.bundle, { key: v.input.key });
      const words = run();
      assert.equal(status, words.status, v.name);
      const [got, want] = [withoutReasons(lines), withoutReasons(words.stdout.trim().split("\n"))];
      assert.deepEqual(got, want, v.name);
      const { errors: ours, checked_at: _a, ...said } = report;
      const { errors: theirs, checked_at: _b, ...known } = JSON.parse(run("--json").stdout);
      assert.deepEqual(said, known, v.name);
      assert.deepEqual(ours.map(step), theirs.map(step), v.name);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Returns the name of the failed step, without the reason, whose wording differs between programs. */
function step(error) {
  return error.split(":")[0];
}

function withoutReasons(lines) {
  return lines.map((line) => line.replace(/^(wrong|can't tell): (\w+):.*$/, "$1: $2"));
}
