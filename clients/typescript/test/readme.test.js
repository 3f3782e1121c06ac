// The README's own text: its commands and its program, in an empty folder with the package of the real server.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Server } from "./harness.js";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

function block(language) {
  return new RegExp("```" + language + "\n([^`]*)```").exec(readme)[1].trim();
}

/**
 * The program is also TypeScript: the compiler accepts it with the installed package, under all strict rules, and
 * reports a wrong member. npm run types checks the declarations of the package themselves.
 */
function checkTypes(folder, source) {
  const modules = fileURLToPath(new URL("../node_modules/", import.meta.url));
  const options = { module: "nodenext", target: "es2023", strict: true, noEmit: true, skipLibCheck: true, types: ["node"], typeRoots: [join(modules, "@types")] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["first.mts", "wrong.mts"] }));
  writeFileSync(join(folder, "first.mts"), source);
  writeFileSync(join(folder, "wrong.mts"), source.replace("action_kind:", "action:"));
  const compile = (...more) => spawnSync(process.execPath, [join(modules, "typescript/bin/tsc"), "-p", folder, ...more], { cwd: folder, encoding: "utf8" }).stdout;
  for (const said of [compile(), compile("--module", "es2022", "--moduleResolution", "bundler"), compile("--module", "es2022", "--moduleResolution", "node10")]) {
    assert.match(said, /^wrong\.mts.*action_kind/s);
    assert.doesNotMatch(said, /^(?!wrong\.mts|\s)./m);
  }
}

test("the first event is proved by two commands and twelve lines", async () => {
  const server = await Server.start({ activate: false });
  const folder = mkdtempSync(join(tmpdir(), "agentledger-readme-"));
  try {
    const [commands, source] = [block("sh").split("\n"), block("js")];
    assert.ok(commands.length <= 2 && source.split("\n").length <= 12);
    const { url, token, org, agent, keyId, key } = server.acme.client;
    writeFileSync(join(folder, "first.mjs"), source);
    writeFileSync(join(folder, "agent.key"), key + "\n");
    const own = { APS_URL: url, APS_TOKEN: token, APS_ORG: org, APS_AGENT: agent, APS_KEY_ID: keyId, APS_KEY_FILE: "agent.key" };
    const env = { ...process.env, ...own, APS_SLUG: "acme", APS_LOG_KEY: server.acme.logKey, npm_config_audit: "false" };
    delete env.NODE_TEST_CONTEXT;
    let output = "";
    for (const c of commands) output = execFileSync("sh", ["-c", c], { cwd: folder, env, stdio: ["ignore", "pipe", "ignore"] }).toString();
    assert.equal(output.trim().split("\n").at(-1), "proved", output);
    checkTypes(folder, source);
    const packed = readdirSync(join(folder, "node_modules/@agentledger/client"));
    assert.deepEqual(packed.sort(), ["LICENSE", "README.md", "package.json", "src"]);
    assert.equal(readFileSync(join(folder, "node_modules/@agentledger/client/README.md"), "utf8"), readme);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await server.close();
  }
});
