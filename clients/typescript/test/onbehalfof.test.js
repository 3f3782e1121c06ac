// The subject: both events of an act are signed with it, and a key is for one subject.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, KeyReused, LedgerError, Unreachable } from "../src/index.js";

function start(options) {
  const events = new Map();
  const tokens = [];
  const asked = [];
  const created = (e) => ({ event_id: e.event_id, sequence_num: 1, event_hash: "00", chain_valid: true, status: "created" });
  const fetch = async (url, { body, headers }) => {
    if (url.endsWith("/evaluate")) asked.push(JSON.parse(body).on_behalf_of);
    tokens.push(url.slice(url.lastIndexOf("/") + 1) + " " + (headers["Agentledger-Subject-Token"] ?? ""));
    if (url.endsWith("/evaluate")) return new Response(JSON.stringify({ decision: "allow", policy_id: "none", rule_id: "none", reason: "", engine: "rules" }));
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
    ...options,
  });
  return { client, events, tokens, asked };
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

test("requests with events and questions with a subject have the subject token, and no other request has it", async () => {
  let now = "jwt-1";
  const { client, tokens, asked } = start({ subjectToken: async () => now, retry: { attempts: 1 } });
  const event = { action_kind: "tool_call", payload: {}, on_behalf_of: subject("u1") };
  await client.send(event);
  now = "jwt-2";
  await client.sendAll([event, event]);
  await client.sendIntent(await client.sign(event));
  await client.evaluate({ tool: "acme.refund" });
  await client.evaluate({ tool: "acme.refund", onBehalfOf: subject("u1") });
  now = undefined;
  await client.send(event);
  assert.deepEqual(tokens, ["events jwt-1", "batch jwt-2", "events jwt-2", "evaluate ", "evaluate jwt-2", "events "]);
  assert.deepEqual(asked, [undefined, subject("u1")]);
});

test("without a subject token that can be read, nothing is sent", async () => {
  for (const subjectToken of [() => { throw new Error("no session"); }, () => "a b", async () => "a\n"]) {
    const { client, tokens } = start({ subjectToken, retry: { attempts: 1 } });
    await assert.rejects(client.send({ action_kind: "tool_call", payload: {} }), Unreachable);
    assert.deepEqual(tokens, []);
  }
  assert.throws(() => start({ subjectToken: "jwt" }), LedgerError);
});
