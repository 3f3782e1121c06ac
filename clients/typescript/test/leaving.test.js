// A page that is left, in a simulated browser: the last request.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../src/index.js";

const own = {
  url: "http://log.test",
  token: "apl_test_secret",
  org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
  agent: "agt_a",
  keyId: "key_a",
  key: "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=",
};

test("a page that is left makes one request of at most 64 KiB, in the order of the calls", async () => {
  const page = new EventTarget();
  const added = [];
  globalThis.document = {};
  globalThis.addEventListener = (name, listener) => (added.push(name), page.addEventListener(name, listener));
  const requests = [];
  const fetch = (url, init) => {
    requests.push({ url, init });
    return new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  };
  const clients = [1, 2, 3].map(() => new Client({ ...own, fetch }));
  const [few, many, idle] = clients;
  for (let i = 0; i < 3; i++) await few.enqueue({ action_kind: "note", trace_id: "trc-" + (i % 2), payload: { i } });
  for (let i = 0; i < 100; i++) await many.enqueue({ action_kind: "note", payload: { i, text: "é".repeat(500) } });
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  assert.ok(requests.every(({ init }) => !init.keepalive));
  requests.length = 0;
  page.dispatchEvent(new Event("pagehide"));
  assert.deepEqual(added, ["pagehide"]);
  const bodies = requests.map(({ init }) => init.body);
  const numbers = bodies.map((body) => body.trim().split("\n").map((line) => JSON.parse(line).payload.i));
  assert.deepEqual(requests.map(({ init }) => init.keepalive), [true, true]);
  assert.deepEqual(numbers[0], [0, 1, 2]);
  assert.deepEqual(numbers[1], Array.from({ length: numbers[1].length }, (_, i) => i));
  const size = Buffer.byteLength(bodies[1]);
  assert.ok(size <= 64 << 10 && size > 50 << 10, String(size));
  assert.deepEqual(clients.map((client) => client.pending), [3, 100, 0]);
  for (const client of [few, many]) await client.close(1).catch(() => {});
  requests.length = 0;
  page.dispatchEvent(new Event("pagehide"));
  assert.deepEqual(requests, []);
  await idle.close();
});
