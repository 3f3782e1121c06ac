// The vectors of testdata/answers.json: which answers end an event, and which leave it in the queue.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Transport } from "../src/client/http.js";
import { postBatch, postEvent } from "../src/client/post.js";
import { Client } from "../src/index.js";
import { FileQueue } from "../src/node.js";

const corpus = JSON.parse(readFileSync(new URL("../../../testdata/answers.json", import.meta.url), "utf8"));
const own = {
  url: "http://log.test",
  token: "apl_test_secret",
  org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
  agent: "agt_a",
  keyId: "key_a",
  key: "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=",
  retry: { attempts: 2, sleep: () => new Promise((resolve) => setImmediate(resolve)) },
};
const eventsOf = (init) => String(init.body).split("\n").filter(Boolean).map((line) => JSON.parse(line));
const created = (e) => ({ event_id: e.event_id, sequence_num: 1, event_hash: "00", chain_valid: true, status: "created" });
const note = (i) => ({ action_kind: "note", payload: { i } });

async function accept(url, init) {
  const lines = eventsOf(init).map((e) => JSON.stringify({ status_code: 201, ...created(e) }));
  return new Response(lines.join("\n"), { status: url.endsWith("/batch") ? 200 : 201 });
}

/** Runs fn and resolves to the lines that were printed as warnings. */
async function warningsOf(fn) {
  const warned = [];
  const { warn } = console;
  console.warn = (...words) => warned.push(words.join(" "));
  try {
    await fn();
  } finally {
    console.warn = warn;
  }
  return warned;
}

test("vectors", async () => {
  const event = { eventId: corpus.event_id, text: "{}" };
  for (const { name, sent, status, headers, body, verdict } of corpus.vectors) {
    const transport = new Transport({ ...own, fetch: async () => new Response(body || null, { status, headers }) });
    const outcome = await (sent === "alone" ? postEvent(transport, event) : postBatch(transport, [event]).then(([first]) => first)).catch((why) => why);
    const got = outcome instanceof Error ? (outcome.final ? "refused" : "kept") : "stored";
    assert.equal(got, verdict, `${sent}: ${name}`);
  }
});

test("an undelivered event stays in the queue, with one warning", async () => {
  const folder = mkdtempSync(join(tmpdir(), "agentledger-ts-"));
  try {
    for (const queue of [undefined, await FileQueue.open(folder)]) {
      let status = 404;
      const stored = [];
      const fetch = async (url, init) => {
        if (status !== 200) return new Response("<html>default backend</html>", { status });
        stored.push(...eventsOf(init).map((e) => e.payload.i));
        return accept(url, init);
      };
      const warned = await warningsOf(async () => {
        const client = new Client({ ...own, fetch, queue, onRefused: () => assert.fail("refused") });
        const promises = [];
        for (let i = 0; i < 3; i++) promises.push((await client.enqueue(note(i))).stored);
        for (const promise of promises) await assert.rejects(promise, /refused with status 404/);
        assert.equal(client.pending, 3);
        status = 200;
        await client.close();
      });
      assert.deepEqual(stored.sort(), [0, 1, 2]);
      assert.deepEqual(warned, ["agentledger: events were not delivered, and are sent again later: refused with status 404"]);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("an event that the service refused is in the file of refused events, with the reason", async () => {
  const folder = mkdtempSync(join(tmpdir(), "agentledger-ts-"));
  try {
    const fetch = async () => new Response('{"error":"Invalid signature"}', { status: 422, headers: { "X-Request-Id": "req-1" } });
    const refused = [];
    const client = new Client({ ...own, fetch, queue: await FileQueue.open(folder), onRefused: (event) => refused.push(event) });
    await client.enqueue(note(1));
    await client.close();
    const line = `{"status":422,"code":"","message":"Invalid signature","event":${refused[0].text}}\n`;
    assert.equal(readFileSync(join(folder, "refused.ndjson"), "utf8"), line);
    const again = await FileQueue.open(folder);
    assert.equal(again.size, 0);
    await again.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a line that does not fit on the disk leaves nothing in the file of refused events", () => {
  const folder = mkdtempSync(join(tmpdir(), "agentledger-full-"));
  try {
    const line = `ulimit -f 4 && exec "$0" "$1" "$2"`; // blocks of 512 bytes
    execFileSync("sh", ["-c", line, process.execPath, new URL("fullrefused.js", import.meta.url).pathname, folder]);
    assert.equal(readFileSync(join(folder, "refused.ndjson"), "utf8"), "first\nsecond\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a request that is too large for a proxy is sent in parts", async () => {
  const sizes = [];
  const fetch = async (url, init) => {
    sizes.push(eventsOf(init).length);
    return sizes.at(-1) < 4 ? accept(url, init) : new Response("<html>", { status: 413 });
  };
  const client = new Client({ ...own, fetch });
  const outcomes = await client.sendAll(Array.from({ length: 8 }, (_, i) => note(i)));
  assert.deepEqual(outcomes.map((o) => o.status), Array(8).fill("created"));
  assert.equal(sizes[0], 8);
  await client.close();
});
