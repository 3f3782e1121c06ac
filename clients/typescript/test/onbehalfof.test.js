// The subject: both events of an act are signed with it, and a key is for one subject.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, KeyReused } from "../src/index.js";

function start() {
  const events = new Map();
  const created = (e) => ({ event_id: e.event_id, sequence_num: 1, event_hash: "00", chain_valid: true, status: "created" });
  const fetch = async (url, { body }) => {
    const lines = String(body).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    for (const e of lines) events.set(e.event_id, e);
    if (!url.endsWith("/batch")) return new Response(JSON.stringify(created(lines[0])), { status: 201 });
    return new Response(lines.map((e) => JSON.stringify({ status_code: 201, ...created(e) })).join("\n"));
  };
  const client = new Client({
    url: "http://log.test",
    token: "apl_test",
    org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
    agent: "agt_a",
    keyId: "key_a",
    key: "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=",
    fetch,
  });
  return { client, events };
}

const subject = (name) => ({ issuer: "https://login.example", subject: name, actors: [{ subject: "planner" }] });

test("both events of an act have its subject, and its key is for no other one", async () => {
  for (const of of [subject("u1"), undefined]) {
    const { client, events } = start();
    const act = { tool: "acme.refund", payload: { n: 1 }, key: "k" };
    await client.run({ ...act, onBehalfOf: () => of }, () => "done");
    const again = await client.run({ ...act, onBehalfOf: () => of }, () => "done");
    assert.equal(again.repeated, true);
    await assert.rejects(client.run({ ...act, onBehalfOf: () => subject("u2") }, () => "done"), KeyReused);
    await client.flush();
    assert.deepEqual([...events.values()].map((e) => e.payload.phase), ["intent", "result"]);
    for (const e of events.values()) assert.deepEqual(e.on_behalf_of, of);
  }
});
