// The adapter of LangChain.js, with the package's own fake model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AIMessage } from "@langchain/core/messages";
import { createAgent, createMiddleware, fakeModel, tool, toolRetryMiddleware } from "langchain";
import { z } from "zod";
import { NotDecided } from "@agentledger/client";
import { guardTool, wrapToolCall } from "@agentledger/client/langchain";
import { openDesk } from "./desk.js";

const desk = openDesk();
const schema = z.object({ to: z.string().optional(), amount_usd: z.number().optional() });

/** Runs an agent whose model makes one call, and returns what the tool did and what the model received. */
async function converse(client, name, args, { own, more = [], execute = () => "sent" } = {}) {
  const done = [];
  const plain = tool(async (given) => (done.push(given), execute()), { name, description: "A tool.", schema });
  const calls = [{ id: "call-1", name, args, type: "tool_call" }];
  const model = fakeModel().respond(new AIMessage({ content: "", tool_calls: calls })).respond(new AIMessage("done"));
  const options = { prefix: "acme.", ...own };
  const guarded = createMiddleware({ name: "agentledger", wrapToolCall: wrapToolCall(client, options) });
  const agent = createAgent({ model, tools: [plain], middleware: [...more, guarded] });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "go on" }] });
  const { content, status } = messages.find((m) => m.type === "tool");
  return { done, told: content, status };
}

test("an allowed call runs once, and both organizations have their own events only", async () => {
  for (const [organization, person] of [[desk.server.acme, desk.ann], [desk.server.boole, desk.bob]]) {
    const client = desk.clientOf(organization);
    const { done, told } = await converse(client, "mail", { to: organization.slug });
    assert.deepEqual([done, told], [[{ to: organization.slug }], "sent"]);
    await client.close();
    assert.deepEqual(await desk.calls(person, "acme.mail"), ["intent allow", "result ok allow"]);
  }
});

test("a denied call does not run, and the model reads why", async () => {
  const client = desk.clientOf(desk.server.acme);
  const { done, told } = await converse(client, "customers.delete", { to: "x" });
  assert.deepEqual(done, []);
  assert.match(told, /^Not done: denied: Not the agent's business/);
  await client.close();
});

test("a call that needs approval waits for an approver, and the model reads the comment", async () => {
  const client = desk.clientOf(desk.server.acme);
  const vote = desk.decide(desk.ann, "deny", { comment: "Too much" });
  const { done, told } = await converse(client, "payments.refund", { amount_usd: 900 });
  await vote;
  assert.deepEqual(done, []);
  assert.match(told, /^Not done: the approval is denied.*Too much/);
  const agreed = desk.decide(desk.ann, "approve");
  const second = await converse(client, "payments.refund", { amount_usd: 90 });
  await agreed;
  assert.deepEqual([second.done, second.told], [[{ amount_usd: 90 }], "sent"]);
  await client.close();
});

test("a retry by the framework runs nothing twice", async () => {
  const client = desk.clientOf(desk.server.acme);
  const retry = toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, onFailure: "continue" });
  const fails = () => {
    throw new Error("the mail server hung up");
  };
  const { done } = await converse(client, "mail", { to: "retry" }, { more: [retry], execute: fails });
  assert.equal(done.length, 1);
  await client.close();
  assert.deepEqual((await desk.calls(desk.ann, "acme.mail")).slice(-2), ["intent allow", "result error allow"]);
});

test("a guarded tool stays a tool of its class, and checks its schema before it asks", async () => {
  const client = desk.clientOf(desk.server.acme);
  const plain = tool(async () => "sent", { name: "note", description: "A tool.", schema });
  const guarded = guardTool(client, plain, { prefix: "acme." });
  assert.ok(guarded instanceof plain.constructor);
  await assert.rejects(guarded.invoke({ amount_usd: "many" }));
  assert.equal(await guarded.invoke({ amount_usd: 1 }), "sent");
  assert.throws(() => guardTool(client, { name: "remote" }), /runs in this process/);
  await client.close();
  assert.deepEqual(await desk.calls(desk.ann, "acme.note"), ["intent allow", "result ok allow"]);
});

test("without the service nothing runs", async () => {
  const client = desk.clientOf({ client: { ...desk.server.acme.client, url: "http://127.0.0.1:1" } }, { retry: { attempts: 1 } });
  const ran = [];
  const execute = () => ran.push("mail");
  await assert.rejects(converse(client, "mail", { to: "ann" }, { execute }), (why) => why instanceof NotDecided);
  assert.deepEqual(ran, []);
});
