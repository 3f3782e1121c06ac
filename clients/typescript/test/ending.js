// Tests of the end of a process, for each runtime.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("endchild.js", import.meta.url));
const line = (events, fate) => `agentledger: ${events} not delivered before the process ended; ${fate}\n`;

/** A service that answers the first `broken` requests with 503, and then stores events. */
async function service({ broken = 0 } = {}) {
  const stored = [];
  let requests = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    if (requests++ < broken) return void response.writeHead(503).end("{}");
    const events = text.split("\n").filter(Boolean).map((one) => JSON.parse(one));
    stored.push(...events.map((e) => e.payload.i));
    const lines = events.map((e) => JSON.stringify({ status_code: 201, event_id: e.event_id, sequence_num: 1, chain_valid: true, status: "created" }));
    response.writeHead(request.url.endsWith("/batch") ? 200 : 201).end(lines.join("\n"));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${server.address().port}`, stored, close: () => (server.close(), server.closeAllConnections()) };
}

/** Defines the tests for the runtime that a command starts. */
export function testEnding(name, [command, ...args]) {
  async function run(...given) {
    const child = spawn(command, [...args, program, ...given.map(String)], { stdio: ["ignore", "pipe", "pipe"] });
    const said = { out: "", err: "" };
    child.stdout.on("data", (part) => (said.out += part));
    child.stderr.on("data", (part) => (said.err += part));
    const [code, signal] = await once(child, "close");
    const err = said.err.split("\n").filter((one) => one.includes("not delivered before the process ended")).map((one) => one + "\n").join("");
    return { code, signal, out: said.out, err };
  }

  test(`${name}: a program that ends delivers what it queued`, async () => {
    const up = await service({ broken: 2 });
    const { code, err } = await run(up.url, 20, "end");
    up.close();
    assert.deepEqual([code, err], [0, ""]);
    assert.deepEqual(up.stored.sort((a, b) => a - b), Array.from({ length: 20 }, (_, i) => i));
  });

  test(`${name}: what is left at the end of a program is counted, after a deadline`, async () => {
    const down = await service({ broken: Infinity });
    const runs = ["end", "exit", "throw"].map((how) => run(down.url, 20, how));
    const [ended, exited, failed] = await Promise.all(runs);
    const one = await run(down.url, 1, "exit");
    const closed = await run(down.url, 3, "close");
    const counted = await run(down.url, 3, "count");
    const signalled = await run(down.url, 3, "signal");
    down.close();
    const lost = line("20 queued events were", "they are lost");
    assert.deepEqual([ended.code, ended.err, exited.code, exited.err, failed.code, failed.err], [0, lost, 0, lost, 1, lost]);
    assert.equal(one.err, line("1 queued event was", "it is lost"));
    assert.deepEqual([closed.out, closed.err], ["unreachable: the deadline has passed, 3 events are left\n", ""]);
    assert.deepEqual([JSON.parse(counted.out), counted.err], [{ pending: [4, 1], listeners: [1, 1, 0, 0] }, line("4 queued events were", "they are lost") + line("1 queued event was", "it is lost")]);
    assert.deepEqual([signalled.signal, signalled.err], ["SIGTERM", ""]);
  });

  test(`${name}: a caller that waits gets all tries`, async () => {
    const up = await service({ broken: 5 });
    const { code, err } = await run(up.url, 0, "wait");
    up.close();
    assert.deepEqual([code, err, up.stored], [0, "", [-1]]);
  });

  test(`${name}: a durable queue keeps what is left, and the next client sends it`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "agentledger-ending-"));
    const down = await service({ broken: Infinity });
    const left = await Promise.all(["end", "exit"].map((how) => run(down.url, 20, how, join(folder, how))));
    down.close();
    const up = await service();
    const next = await run(up.url, 0, "end", join(folder, "exit"));
    up.close();
    for (const [i, how] of ["end", "exit"].entries()) {
      const kept = line("20 queued events were", `the next client with the queue in ${join(folder, how)} sends them`);
      assert.deepEqual([left[i].code, left[i].err], [0, kept]);
    }
    assert.deepEqual([next.code, next.err, up.stored], [0, "", Array.from({ length: 20 }, (_, i) => i)]);
    rmSync(folder, { recursive: true, force: true });
  });
}
