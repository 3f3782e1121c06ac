// Tokens and keys as editors, password managers and Kubernetes write them.

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Transport } from "../src/client/http.js";
import { Client } from "../src/index.js";
import { clientFromEnvironment, readKeyFile } from "../src/node.js";

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

test("all missing settings are named at once", async () => {
  const all = "token (APS_TOKEN), org (APS_ORG), agent (APS_AGENT), keyId (APS_KEY_ID), key (APS_KEY_FILE)";
  assert.throws(() => clientFromEnvironment({}, {}), { message: `no address of the service: set url (APS_URL), and to send events ${all}` });
  const reader = clientFromEnvironment({}, { APS_URL: "http://localhost" });
  await assert.rejects(reader.send({ action_kind: "note" }), { message: `events can't be signed: set ${all}` });
  await reader.close();
  const some = { url: "http://localhost", token: "apl_live_x", agent: "agt_a", key: seed.toString("base64") };
  assert.throws(() => new Client(some), { message: "a private key alone signs nothing: set org (APS_ORG), keyId (APS_KEY_ID)" });
});

test("await using closes a client", async () => {
  const client = new Client({ url: "http://localhost" });
  await client[Symbol.asyncDispose]();
  await assert.rejects(client.enqueue({ text: "{}", eventId: "x" }), /the client is closed/);
});
