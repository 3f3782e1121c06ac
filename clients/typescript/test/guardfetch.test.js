// A guarded fetch with the log's real server and a real server for the tool.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Denied, LedgerError, NotDecided, callHeader, grantHeader } from "../src/index.js";
import { Grants, openReceipt } from "../src/grants.js";
import { Server, clientOf } from "./harness.js";

const policy = {
  policy_id: "web",
  name: "Web",
  rules: [
    { rule_id: "no-deletion", tool: "http.delete", decision: "deny", reason: "Nothing is deleted" },
    { rule_id: "large", tool: "http.put", decision: "allow_with_obligation", obligations: [{ type: "human_approval" }] },
  ],
};

let server;
let person;
let tool;
const seen = [];

before(async () => {
  server = await Server.start({ activate: false });
  person = await server.signIn(server.acme);
  await person.activate(policy);
  tool = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    seen.push({ method: request.method, url: request.url, body: Buffer.concat(parts).toString(), headers: request.headers });
    response.writeHead(request.url === "/missing" ? 404 : 200).end("answer");
  });
  await new Promise((resolve) => tool.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  tool?.close();
  await server?.close();
});

const address = (path) => `http://127.0.0.1:${tool.address().port}${path}`;
const seenOf = (path) => seen.filter((s) => s.url === path);

test("an allowed request is made once, and its answer recorded", async () => {
  const client = clientOf(server.acme);
  const send = client.guardFetch();
  const answer = await send(address("/pay?x=1"), { method: "POST", body: "seven", headers: { "Idempotency-Key": "k1", "X-Own": "kept" } });
  assert.deepEqual([answer.status, await answer.text()], [200, "answer"]);
  const repeated = send(address("/pay?x=1"), { method: "POST", body: "seven", headers: { "Idempotency-Key": "k1" } });
  await assert.rejects(repeated, (why) => why instanceof LedgerError && /made before/.test(why.message));
  assert.equal(seenOf("/pay?x=1").length, 1);
  assert.deepEqual([seen[0].body, seen[0].headers["x-own"]], ["seven", "kept"]);
  assert.equal((await send(address("/missing"))).status, 404);
  await client.flush();
  const { events } = await person.call("GET", "/events?tool=http.post");
  assert.equal(events.length, 2); // intent and result
  await client.close();
});

test("a denied request is not made", async () => {
  const client = clientOf(server.acme);
  await assert.rejects(client.guardFetch()(address("/gone"), { method: "DELETE" }), Denied);
  assert.equal(seenOf("/gone").length, 0);
  await client.close();
});

/** Approves the next question. */
async function vote() {
  for (;;) {
    const { approvals } = await person.call("GET", "/approvals?status=pending");
    if (approvals.length === 0) continue;
    const [{ approval_id: approvalId, action_digest: actionDigest }] = approvals;
    return person.vote({ approvalId, actionDigest }, "approve");
  }
}

test("an approved request carries the grant", async () => {
  const client = clientOf(server.acme);
  const voted = vote();
  const answer = await client.guardFetch()(address("/large"), { method: "PUT", body: "much" });
  await voted;
  assert.equal(answer.status, 200);
  const [{ headers }] = seenOf("/large");
  const grant = Buffer.from(headers[grantHeader.toLowerCase()], "base64").toString();
  assert.match(grant, /\n\n— /);
  const call = JSON.parse(Buffer.from(headers[callHeader.toLowerCase()], "base64"));
  assert.deepEqual([call.method, call.path, call.phase], ["PUT", "/large", "intent"]);
  await client.close();
});

test("the tool checks the grant of the log's server offline, and once", async () => {
  const client = clientOf(server.acme);
  const answer = await fetch(`${server.acme.client.url}/v1/public/orgs/acme/transparency/keys`);
  const { vkey } = (await answer.json()).keys.find((k) => k.use === "grant");
  let earlier = 10_000; // the check begins before the approval
  const config = { keys: [vkey], routes: [{ route: "PUT *", host: `127.0.0.1:${tool.address().port}` }] };
  const grants = new Grants(config, { now: () => Date.now() - earlier, receipts: { name: "did:web:shop.example", key: Buffer.alloc(32, 9) } });
  const check = grants.express();
  earlier = 0;
  const parse = tool.listeners("request")[0];
  const answers = [];
  tool.removeAllListeners("request").on("request", (request, response) =>
    check(request, response, (why) => {
      answers.push(why ?? request.grant.agent);
      response.end("checked");
    }),
  );
  let sent;
  const send = (request) => fetch((sent = request.clone()) && request);
  const voted = vote();
  const first = await client.guardFetch({ fetch: send })(address("/large/%2e%2e%20x?y=1&z"), { method: "PUT", body: "much" });
  await voted;
  assert.deepEqual([first.status, await first.text(), answers], [200, "checked", [server.acme.client.agent]]);
  const again = await fetch(sent);
  assert.deepEqual([again.status, (await again.json()).code], [403, "used"]);
  // The log has the tool's receipt, which is of this act.
  await client.flush();
  const { events } = await person.call("GET", "/events?tool=http.put");
  const details = await Promise.all(events.map((e) => person.call("GET", `/events/${e.event_id}`)));
  const [result] = details.map((d) => JSON.parse(d.envelope).payload).filter((p) => p.receipt !== undefined);
  const receipt = await openReceipt(result.receipt, grants.receiptKey);
  assert.deepEqual([receipt.status, receipt.tool, receipt.agent, receipt.approvalId], [200, "http.put", server.acme.client.agent, result.approval_id]);
  assert.equal(receipt.nonce, result.grant_nonce);
  tool.removeAllListeners("request").on("request", parse);
  await client.close();
});

test("a request without an approval gets a receipt if it asks for one", async () => {
  const client = clientOf(server.acme);
  const routes = [{ route: "POST *", host: `127.0.0.1:${tool.address().port}`, optional: true }];
  const grants = new Grants({ keys: [], routes }, { receipts: { name: "did:web:shop.example", key: Buffer.alloc(32, 9) } });
  const check = grants.express();
  const parse = tool.listeners("request")[0];
  const asked = [];
  tool.removeAllListeners("request").on("request", (request, response) =>
    check(request, response, (why) => {
      asked.push([why, request.grant, request.headers["agentledger-intent"] !== undefined]);
      response.end("checked");
    }),
  );
  for (const receipt of [undefined, true]) {
    const answer = await client.guardFetch({ receipt })(address("/receipts?y=1"), { method: "POST", body: "much" });
    assert.deepEqual([answer.status, await answer.text()], [200, "checked"]);
  }
  assert.deepEqual(asked, [
    [undefined, undefined, false],
    [undefined, undefined, true],
  ]);
  await client.flush();
  const { events } = await person.call("GET", "/events?tool=http.post");
  const details = await Promise.all(events.map((e) => person.call("GET", `/events/${e.event_id}`)));
  const results = details.map((d) => JSON.parse(d.envelope)).filter((e) => e.payload.receipt !== undefined);
  assert.equal(results.length, 1);
  const receipt = await openReceipt(results[0].payload.receipt, grants.receiptKey);
  const wanted = [undefined, undefined, results[0].parent_event_id, server.acme.client.agent, 200];
  assert.deepEqual([receipt.approvalId, receipt.nonce, receipt.intentEventId, receipt.agent, receipt.status], wanted);
  tool.removeAllListeners("request").on("request", parse);
  await client.close();
});

test("without a response of the log, no request is made", async () => {
  const nobody = { url: "http://127.0.0.1:1", retry: { attempts: 1 } };
  const silent = createServer(() => {}); // accepts requests and never answers
  await new Promise((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const hanging = { url: `http://127.0.0.1:${silent.address().port}`, timeoutMs: 50, retry: { attempts: 1 } };
  for (const more of [nobody, hanging]) {
    const client = clientOf(server.acme, more);
    await assert.rejects(client.guardFetch()(address("/closed"), { method: "POST" }), NotDecided);
    await client.close(0).catch(() => {});
  }
  silent.closeAllConnections();
  silent.close();
  assert.equal(seenOf("/closed").length, 0);
});
