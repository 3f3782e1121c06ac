// Tokens and keys as editors, password managers and Kubernetes write them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
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
  const all = "token (APS_TOKEN), org (APS_ORG), agent (APS_AGENT), keyId (APS_KEY_ID), key (APS_KEY_FILE or APS_KEY)";
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

test("the key itself may be in the environment", () => {
  const env = { APS_URL: "http://localhost", APS_TOKEN: "t", APS_ORG: "018f3c1e-7a52-7cc3-8f7e-0123456789ab", APS_AGENT: "agt_a", APS_KEY_ID: "key_a" };
  assert.ok(clientFromEnvironment({}, { ...env, APS_KEY: seed.toString("base64") }));
  assert.throws(() => clientFromEnvironment({}, { ...env, APS_KEY: "BwcH" }), (why) => /private key/.test(why.message) && !why.message.includes("BwcH"));
  assert.throws(() => clientFromEnvironment({}, { ...env, APS_KEY: seed.toString("base64"), APS_KEY_FILE: "/no/such/file" }), /key file/);
});

test("the key of a file that a shell runs signs, is missing or is refused by its name", () => {
  const { cases } = JSON.parse(readFileSync(new URL("../../../testdata/settings.json", import.meta.url), "utf8"));
  const file = join(mkdtempSync(join(tmpdir(), "settings-")), "agent.env");
  const own = { APS_URL: "http://localhost", APS_TOKEN: "t", APS_ORG: "018f3c1e-7a52-7cc3-8f7e-0123456789ab", APS_AGENT: "agt_a", APS_KEY_ID: "key_a" };
  for (const { name, text, value, client: want } of cases.filter((c) => c.value !== undefined)) {
    writeFileSync(file, text);
    const key = execFileSync("sh", ["-euc", '. "$0"; printf %s "${APS_KEY-}"', file], { encoding: "utf8", env: { PATH: process.env.PATH } });
    assert.equal(key, value, name);
    let got = "refused";
    try {
      got = clientFromEnvironment({}, { ...own, APS_KEY: key }).signer === undefined ? "none" : "signs";
    } catch (why) {
      assert.match(why.message, /^private key \(APS_KEY\): /, name);
      assert.ok(!why.message.includes(value), name);
    }
    assert.equal(got, want, name);
  }
  writeFileSync(file, "no key");
  assert.throws(() => clientFromEnvironment({}, { ...own, APS_KEY_FILE: file }), { message: "private key file: must be 32 bytes, or base64 of 32 bytes" });
});
