// DEFLATE compared with Node's own.

import assert from "node:assert/strict";
import { createHash, randomInt } from "node:crypto";
import { test } from "node:test";
import { constants, deflateRawSync } from "node:zlib";
import { inflate } from "../src/verify/inflate.js";

const digest = (data) => createHash("sha256").update(data).digest("hex");

/** Inflates slices of random lengths. Resolves to the digest of the output. */
async function inflated(packed, size) {
  async function* slices() {
    for (let at = 0; at < packed.length; ) {
      const end = Math.min(packed.length, at + 1 + randomInt(5000));
      yield new Uint8Array(packed.subarray(at, end));
      at = end;
    }
  }
  const sum = createHash("sha256");
  for await (const part of inflate(slices(), size)) {
    assert.ok(part.length < 200_000, String(part.length));
    sum.update(part);
  }
  return sum.digest("hex");
}

test("each kind of block gives the bytes that were compressed", async () => {
  const { Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE } = constants;
  for (let round = 0; round < 150; round++) {
    const size = round === 0 ? 3_000_000 : randomInt(4000);
    const data = Buffer.alloc(size, "some text that repeats ");
    for (let i = 0; i < size; i += 1 + randomInt(60)) data[i] = randomInt(256);
    for (const options of [{ level: round % 10 }, { windowBits: 9 }, { strategy: Z_FIXED }, { strategy: Z_HUFFMAN_ONLY }, { strategy: Z_RLE }]) {
      assert.equal(await inflated(deflateRawSync(data, options), size), digest(data), JSON.stringify({ size, ...options }));
    }
  }
});

test("another size, bytes after the stream and a truncated stream are rejected", async () => {
  const data = Buffer.alloc(1000, "abc");
  const packed = deflateRawSync(data);
  const unreadable = { name: "Unreadable" };
  for (const size of [0, 999, 1001, 2 ** 31]) await assert.rejects(inflated(packed, size), unreadable);
  await assert.rejects(inflated(Buffer.concat([packed, Buffer.alloc(1)]), 1000), unreadable);
  for (let n = 0; n < packed.length; n++) await assert.rejects(inflated(packed.subarray(0, n), 1000), unreadable);
  await assert.rejects(inflated(deflateRawSync(Buffer.alloc(50_000_000)), 1000), unreadable); // it stops after 1,000 bytes
});

test("random bytes are decompressed or rejected", async () => {
  for (let round = 0; round < 2000; round++) {
    const noise = Buffer.from(Array.from({ length: randomInt(300) }, () => randomInt(256)));
    await inflated(noise, 100_000).catch((why) => assert.equal(why.name, "Unreadable", why.stack));
  }
});
