// The middleware that checks grants, without a framework: configurations, and the bounds of its memory. The requests are
// in ../adapters-test/grants.test.js.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Grants, openReceipt } from "../src/grants.js";
import { Refusal, Used, maxUsed } from "../src/grants/check.js";

const vectors = JSON.parse(readFileSync(new URL("../../../testdata/grants.json", import.meta.url), "utf8"));

test("configurations are refused", () => {
  new Grants(vectors.config);
  for (const { name, config } of vectors.bad_configs) assert.throws(() => new Grants(config), undefined, name);
  assert.throws(() => new Grants(null));
});

test("receipts are judged as the vectors say", async () => {
  const { key, receipts } = JSON.parse(readFileSync(new URL("../../../testdata/receipts.json", import.meta.url), "utf8"));
  for (const { name, note_b64: note, verdict, expect } of receipts) {
    const opened = await openReceipt(Buffer.from(note, "base64").toString(), key).catch(() => undefined);
    assert.equal(opened ? "accept" : "refuse", verdict, name);
    if (!opened) continue;
    const { organization, agent, tool, actionDigest, approvalId = null, nonce = null, intentEventId = null, status, at } = opened;
    const names = { organization_id: organization, agent_id: agent, tool_name: tool, action_digest: actionDigest, approval_id: approvalId };
    assert.deepEqual({ ...names, nonce, intent_event_id: intentEventId, status, at: new Date(at).toISOString() }, expect, name);
  }
  const { name, seed_b64: seed, vkey } = vectors.receipt_key;
  assert.equal(new Grants(vectors.config, { receipts: { name, key: seed } }).receiptKey, vkey);
  assert.throws(() => new Grants(vectors.config, { receipts: { name: "two words", key: seed } }));
});

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
const nonce = (n) => n.toString(16).padStart(32, "0");
const codeOf = (claim) => {
  try {
    claim();
    return "";
  } catch (why) {
    assert(why instanceof Refusal);
    return [why.status, why.code, why.retryAfter].filter((v) => v !== undefined).join(" ");
  }
};

test("the memory of used grants is bounded in number and in bytes", () => {
  collect();
  const before = process.memoryUsage().heapUsed;
  const used = new Used();
  for (let i = 0; i < maxUsed; i++) used.claim({ nonce: nonce(i), notAfter: 1000 + i }, 0);
  collect();
  const grown = process.memoryUsage().heapUsed - before;
  assert(grown < 16 << 20, `${grown} bytes`);
  const claim = (n, notAfter, now) => codeOf(() => used.claim({ nonce: nonce(n), notAfter }, now));
  assert.equal(claim(maxUsed, 300_000, 1), "503 full 1");
  assert.equal(claim(0, 1000, 999), "403 used");
  assert.equal(claim(maxUsed, 300_000, 1000), "");
  assert.equal(claim(0, 1000, 999), "403 expired"); // the clock went back
  used.release({ nonce: nonce(1) });
  assert.equal(claim(maxUsed + 1, 300_000, 1000), "");
  assert.equal(used.size, maxUsed);
});
