// The client against the real server, with two organizations.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ApprovalDenied, ApprovalRequired, Denied, LedgerError, Refused, verify } from "../src/index.js";
import { Server, clientOf } from "./harness.js";

let server;
let person;
before(async () => {
  server = await Server.start();
  person = await server.signIn(server.acme);
});
after(() => server?.close());

test("an event is stored once and proved under its own log's key only", async () => {
  for (const own of [server.acme, server.boole]) {
    const client = clientOf(own);
    const signed = await client.sign({ action_kind: "llm_invocation", payload: { purpose: "check", n: 10.0 } });
    assert.equal((await client.send(signed)).status, "created");
    assert.equal((await client.send(signed)).status, "replayed");
    const other = own === server.acme ? server.boole : server.acme;
    const log = client.log(own.slug, { key: own.logKey });
    const { outcome, text, lines } = await log.bundle(signed.eventId, { require: "full" });
    assert.equal(outcome, "proved", lines.join("\n"));
    assert.equal((await verify.bundle(text, { key: other.logKey })).outcome, "cant_tell");
    await client.close();
  }
});

test("an event of another organization is rejected", async () => {
  const { org, agent, keyId, key } = server.boole.client;
  const stranger = clientOf(server.acme, { org, agent, keyId, key });
  await assert.rejects(stranger.send({ action_kind: "note" }), (why) => why instanceof Refused && why.status === 403);
  await stranger.close();
});

test("waiting events are sent as one batch, in order", async () => {
  const paths = [];
  const client = clientOf(server.acme, { fetch: (url, init) => (paths.push(new URL(url).pathname), fetch(url, init)) });
  const events = Array.from({ length: 40 }, (_, i) => ({ action_kind: "step", trace_id: "trc-order", payload: { i } }));
  const results = await client.sendAll(events);
  const numbers = results.map((r) => r.sequenceNum);
  assert.deepEqual(numbers, [...numbers].sort((a, b) => a - b));
  assert.equal(new Set(numbers).size, 40);
  assert.ok(paths.length <= 6, String(paths.length));
  assert.ok(paths.includes("/v1/ingest/events/batch"));
  await client.close();
});

test("the policy is evaluated without an event", async () => {
  const client = clientOf(server.acme);
  const table = { "acme.mail.send": "allow", "acme.customers.delete": "deny", "acme.payments.refund": "allow_with_obligation" };
  for (const [tool, want] of Object.entries(table)) assert.equal((await client.evaluate({ tool })).decision, want);
  await client.close();
});

test("head, checkpoint, inclusion and consistency are checked", async () => {
  const client = clientOf(server.acme);
  const log = client.log("acme", { key: server.acme.logKey });
  const older = await log.checkpoint();
  const { eventHash, sequenceNum } = await client.send({ action_kind: "note" });
  const { checkpoint } = await log.head();
  await log.consistency(older, checkpoint);
  await log.inclusion(sequenceNum - 1, eventHash, checkpoint);
  await assert.rejects(log.inclusion(sequenceNum - 2, eventHash, checkpoint));
  const foreign = client.log("boole", { key: server.acme.logKey });
  await assert.rejects(foreign.checkpoint());
  await client.close();
});

test("a reader that returns follows the log", async () => {
  const client = clientOf(server.acme);
  const first = await client.log("acme", { key: server.acme.logKey }).follow();
  await client.send({ action_kind: "note" });
  const memory = JSON.parse(JSON.stringify(first.memory));
  const log = client.log("acme", { key: server.acme.logKey });
  const second = await log.follow(memory);
  assert.ok(second.checkpoint.size > first.checkpoint.size);
  assert.deepEqual([second.newKeys, second.memory.accepted_keys], [[], []]);
  assert.equal((await log.head()).checkpoint.size, second.checkpoint.size);
  for (const wrong of [{ checkpoint: "x" }, { accepted_keys: [{}] }]) {
    await assert.rejects(client.log("acme", { key: server.acme.logKey }).follow({ ...memory, ...wrong }), LedgerError);
  }
  await assert.rejects(client.log("boole", { key: server.acme.logKey }).follow(), LedgerError);
  await client.close();
});

test("an allowed act runs, and its result names the intent", async () => {
  const client = clientOf(server.acme);
  const send = client.guard("acme.mail.send", async ({ to }) => ({ sent: to }), { recordOutput: true });
  assert.deepEqual(await send({ to: "bob" }), { sent: "bob" });
  await client.flush();
  const events = (await person.call("GET", "/events?tool=acme.mail.send")).events;
  assert.deepEqual(events.map((e) => e.effective).sort(), ["allow", "allow"]);
  await client.close();
});

test("a denied act does not run", async () => {
  const client = clientOf(server.acme);
  let ran = 0;
  const drop = client.guard("acme.customers.delete", () => ran++);
  await assert.rejects(drop({ id: 1 }), (why) => why instanceof Denied && why.ruleId === "customers");
  assert.equal(ran, 0);
  await client.close();
});

test("an act waits for approval, and runs with the grant or not at all", async () => {
  for (const [vote, want] of [["approve", undefined], ["deny", ApprovalDenied]]) {
    const client = clientOf(server.acme);
    let grant;
    const onAsk = (approval) => void person.vote(approval, vote, { comment: "checked", reason_code: "ok_1" });
    const ran = client.run({ tool: "acme.payments.refund", payload: { amount_usd: 84.5 }, onAsk }, (permit) => (grant = permit.grant));
    if (want) await assert.rejects(ran, (why) => why instanceof want && why.comment === "checked" && why.code === "ok_1");
    else await ran;
    assert.equal(grant?.startsWith("agentledger/grant/v1\n") ?? false, !want);
    await client.close();
  }
});

test("an act that waits for approval names the page where people vote", async (t) => {
  const client = clientOf(server.acme);
  t.mock.method(console, "warn", (line) => {
    const [, page] = /^agentledger: an act waits for an approver: (.*)$/.exec(line);
    const approvalId = page.slice(page.lastIndexOf("/") + 1);
    assert.equal(page, client.approvals.pageUrl(approvalId));
    void client.approvals.get(approvalId).then((approval) => person.vote(approval, "approve"));
  });
  const ran = await client.run({ tool: "acme.payments.refund", payload: { amount_usd: 84.25 } }, () => "refunded");
  assert.equal(ran.output, "refunded");
  await client.close();
});

test("an act that does not wait for approval continues later with the same question", async () => {
  const client = clientOf(server.acme);
  const act = { tool: "acme.payments.refund", payload: { amount_usd: 7 }, key: "refund-7" };
  let approvalId;
  await assert.rejects(client.run({ ...act, waitMs: 0 }, () => assert.fail()), (why) => {
    approvalId = why.approvalId;
    return why instanceof ApprovalRequired;
  });
  await person.vote(await client.approvals.get(approvalId), "approve");
  const ran = await client.run(act, () => "refunded");
  assert.deepEqual([ran.output, ran.repeated], ["refunded", false]);
  const again = await client.run(act, () => assert.fail());
  assert.deepEqual([again.output, again.repeated], ["refunded", true]);
  await client.close();
});

test("an approval is requested and cancelled", async () => {
  const client = clientOf(server.acme);
  const asked = await client.approvals.ask({ tool: "acme.payments.refund", payload: { amount_usd: 1 } });
  assert.equal(asked.status, "pending");
  await client.approvals.cancel(asked.approvalId);
  assert.equal((await client.approvals.wait(asked.approvalId)).status, "cancelled");
  await client.close();
});

test("a run is reported without an agent's key", async () => {
  const { url, token, org } = server.acme.client;
  const client = clientOf({ client: { url, token, org } });
  const run = await client.runs.start({ workflow: { name: "nightly" } });
  const steps = [{ step_key: "a", status: "succeeded" }, { step_key: "b", status: "succeeded", tool_name: "acme.customers.list" }];
  const answers = await client.runs.step(run.run_id, ...steps);
  assert.deepEqual(answers.map((a) => client.runs.mayGoOn(a)), [true, false]);
  assert.equal((await client.runs.complete(run.run_id, { status: "succeeded" })).steps_recorded, 2);
  await client.close();
});
