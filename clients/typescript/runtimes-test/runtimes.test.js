// The package in Node.js, Deno and Bun, against the real server with two organizations.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { corpusFiles } from "../test/corpus.js";
import { Server } from "../test/harness.js";

const run = promisify(execFile);
const files = corpusFiles();
const signing = JSON.parse(readFileSync(new URL("../../../event/testdata/aps1-signing.json", import.meta.url), "utf8"));

let server;
let folder;
before(async () => {
  server = await Server.start();
  folder = mkdtempSync(join(tmpdir(), "agentledger-runtimes-"));
  const services = [server.acme, server.boole].map(({ slug, logKey, client }) => ({ slug, logKey, client }));
  writeFileSync(join(folder, "given.json"), JSON.stringify({ files, signing, services }));
  writeFileSync(join(folder, "services.json"), JSON.stringify({ files: [], signing, services }));
});
after(async () => {
  await server?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const done = {
  vectors: files.reduce((n, f) => n + f.vectors.length, 0),
  signatures: signing.vectors.length,
  services: ["proved", "cant_tell", "proved", "cant_tell"],
};
const program = new URL("main.js", import.meta.url).pathname;
const installed = (name) => new URL(`node_modules/.bin/${name}`, import.meta.url).pathname;

for (const [name, command, worker, given = "given.json", main = done] of [
  // Worker of Node.js is another interface. ../test/corpus.test.js judges the vectors in Node.js.
  ["node", [process.execPath], "none here", "services.json", { ...done, vectors: 0 }],
  ["deno", [installed("deno"), "run", "--no-prompt", "--no-remote", "--allow-read", "--allow-net=127.0.0.1", "--allow-env"], done],
  ["bun", [installed("bun")], done],
]) {
  test(name, async () => {
    const [runtime, ...more] = command;
    const { stdout } = await run(runtime, [...more, program, join(folder, given)], { timeout: 900_000, maxBuffer: 1 << 24 });
    assert.deepEqual(JSON.parse(stdout), { runtime: name, main, worker });
  });
}
