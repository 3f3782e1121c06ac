// An agent that is killed at random: no act runs twice, each has its intent and one result, and an interrupted act is
// recorded as unknown.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Server } from "./harness.js";

const acts = 150;
const kills = 8;

function start(folder, { client }) {
  writeFileSync(join(folder, "key"), client.key, { mode: 0o600 });
  const env = { ...process.env, APS_URL: client.url, APS_TOKEN: client.token, APS_ORG: client.org, APS_AGENT: client.agent };
  Object.assign(env, { APS_KEY_ID: client.keyId, APS_KEY_FILE: join(folder, "key") });
  const program = fileURLToPath(new URL("agent.js", import.meta.url));
  const agent = spawn(process.execPath, [program, folder, String(acts)], { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  agent.stderr.on("data", (text) => (said += text));
  const ended = new Promise((resolve) => agent.once("exit", (code) => resolve({ code, said })));
  return { agent, ended };
}

const linesOf = (folder) => (existsSync(join(folder, "done")) ? readFileSync(join(folder, "done"), "utf8").split("\n").filter(Boolean) : []);

/** Resolves when the agent has run some more acts, at a random moment of the next one, or when it has exited. */
async function waitForActs(folder, ended) {
  const target = linesOf(folder).length + 5 + Math.floor(Math.random() * 10);
  let over = false;
  ended.then(() => (over = true));
  while (!over && linesOf(folder).length < target) await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
}

/** Resolves to the payload of each event of the acts, with the status of a result. */
async function allPayloads(server, person) {
  const events = [];
  for (let after = ""; after !== undefined; ) {
    const page = await person.call("GET", "/events?tool=acme.mail.send&limit=100" + after);
    events.push(...page.events);
    after = page.next ? "&after=" + encodeURIComponent(page.next) : undefined;
  }
  return Promise.all(
    events.map(async ({ event_id }) => {
      const bundle = await fetch(`${server.url}/v1/public/orgs/acme/verify/${event_id}`);
      const { payload, status } = JSON.parse((await bundle.json()).envelope);
      return { ...payload, status: payload.status ?? status };
    }),
  );
}

test("a killed agent does nothing twice and omits nothing", async () => {
  const server = await Server.start();
  const folder = mkdtempSync(join(tmpdir(), "agentledger-kill-"));
  try {
    for (let i = 0; i < kills; i++) {
      const { agent, ended } = start(folder, server.acme);
      await waitForActs(folder, ended);
      agent.kill("SIGKILL");
      await ended;
    }
    const { code, said } = await start(folder, server.acme).ended;
    assert.equal(code, 0, said);
    const done = linesOf(folder);
    assert.equal(new Set(done).size, done.length, "an act was done twice");
    const payloads = await allPayloads(server, await server.signIn(server.acme));
    const of = (phase) => payloads.filter((p) => p.phase === phase);
    const intents = new Map(of("intent").map((p) => [p.call_id, p.n]));
    assert.equal(intents.size, of("intent").length, "an intent is there twice");
    const results = new Map(of("result").map((p) => [intents.get(p.call_id), p.status]));
    assert.equal(results.size, of("result").length, "an act has two results");
    assert.deepEqual([...results.keys()].sort((a, b) => a - b), Array.from({ length: acts }, (_, n) => n));
    for (const [n, status] of results) {
      assert.ok(["ok", "unknown"].includes(status), `${n}: ${status}`);
      if (status === "ok") assert.ok(done.includes(String(n)), `${n} was not done`);
    }
    assert.ok([...results.values()].filter((status) => status === "unknown").length <= 4 * kills);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await server.close();
  }
});
