// Tokens and keys as editors, password managers and Kubernetes write them.

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Transport } from "../src/client/http.js";
import { readKeyFile } from "../src/node.js";

const seed = Buffer.alloc(32, 7);

test("a token and a key may end with one line end", async () => {
  const folder = mkdtempSync(join(tmpdir(), "settings-"));
  for (const end of ["", "\n", "\r\n"]) {
    const sent = [];
    const fetch = async (_, { headers }) => (sent.push(headers.Authorization), new Response("{}"));
    const transport = new Transport({ url: "http://localhost", token: "apl_live_x" + end, fetch });
    await transport.call({ method: "POST", path: "/x", body: "{}", ingest: true });
    assert.deepEqual(sent, ["Bearer apl_live_x"], JSON.stringify(end));
    const file = join(folder, "key");
    writeFileSync(file, seed.toString("base64") + end);
    assert.deepEqual(Buffer.from(readKeyFile(file)), seed, JSON.stringify(end));
  }
  for (const token of ["s3cret\n\n", "s3cret\nx", "\ns3cret", "s3 cret"]) {
    assert.throws(() => new Transport({ url: "http://localhost", token }), (why) => /line ends/.test(why.message) && !why.message.includes("s3"));
  }
});
