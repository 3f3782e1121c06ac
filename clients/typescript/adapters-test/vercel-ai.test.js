// The adapter of the Vercel AI SDK, with the SDK's own mock model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";
import { guardTools } from "@agentledger/client/vercel-ai";
import { openDesk } from "./desk.js";

const desk = openDesk();
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

/** A model that calls a tool, and then says "done". */
function modelThatCalls(toolName, input, toolCallId = "call-1") {
  const content = [{ type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) }];
  const said = [{ type: "text", text: "done" }];
  return new MockLanguageModelV3({
    doGenerate: [
      { content, finishReason: { unified: "tool-calls" }, usage, warnings: [] },
      { content: said, finishReason: { unified: "stop" }, usage, warnings: [] },
    ],
  });
}

/** Runs a conversation of one call and returns what the tool did and what the model received. */
async function converse(client, name, input, { execute = () => ({ sent: true }), ...options } = {}) {
  const done = [];
  const plain = tool({
    inputSchema: z.object({ to: z.string().optional(), amount_usd: z.number().optional() }),
    execute: async (given) => (done.push(given), execute()),
  });
  const tools = guardTools(client, { [name]: plain }, { prefix: "acme.", ...options });
  const model = modelThatCalls(name, input);
  await generateText({ model, tools, prompt: "go on", stopWhen: stepCountIs(3) });
  const [{ output }] = model.doGenerateCalls[1].prompt.at(-1).content;
  return { done, told: output };
}

test("an allowed call runs once, and both organizations have their own events only", async () => {
  for (const [organization, person] of [[desk.server.acme, desk.ann], [desk.server.boole, desk.bob]]) {
    const client = desk.clientOf(organization);
    const { done, told } = await converse(client, "mail", { to: organization.slug });
    assert.deepEqual(done, [{ to: organization.slug }]);
    assert.deepEqual(told, { type: "json", value: { sent: true } });
    await client.close();
    assert.deepEqual(await desk.calls(person, "acme.mail"), ["intent allow", "result ok allow"]);
  }
});

test("a denied call does not run, and the model reads why", async () => {
  const client = desk.clientOf(desk.server.acme);
  const { done, told } = await converse(client, "customers.delete", { to: "x" });
  assert.deepEqual(done, []);
  assert.match(told.value, /^Not done: denied: Not the agent's business/);
  const thrown = await converse(client, "customers.delete", { to: "x" }, { denied: "throw" });
  assert.deepEqual([thrown.done, thrown.told.type], [[], "error-text"]);
  await client.close();
});

test("a call that needs approval waits for an approver, and the model reads the comment", async () => {
  const client = desk.clientOf(desk.server.acme);
  const vote = desk.decide(desk.ann, "deny", { comment: "Too much" });
  const { done, told } = await converse(client, "payments.refund", { amount_usd: 900 });
  await vote;
  assert.deepEqual(done, []);
  assert.match(told.value, /^Not done: the approval is denied.*Too much/);
  const agreed = desk.decide(desk.ann, "approve");
  assert.deepEqual((await converse(client, "payments.refund", { amount_usd: 90 })).done, [{ amount_usd: 90 }]);
  await agreed;
  await client.close();
});

test("a tool that fails is recorded as failed, and the model reads its error", async () => {
  const client = desk.clientOf(desk.server.acme);
  const fails = () => {
    throw new Error("out of paper");
  };
  const { done, told } = await converse(client, "print", { to: "ann" }, { execute: fails });
  assert.deepEqual([done.length, told], [1, { type: "error-text", value: "out of paper" }]);
  await client.close();
  assert.deepEqual(await desk.calls(desk.ann, "acme.print"), ["intent allow", "result error allow"]);
});

test("a call of this conversation is made only once", async () => {
  const client = desk.clientOf(desk.server.acme);
  const first = await converse(client, "mail", { to: "ann" }, { conversation: "c-1" });
  const again = await converse(client, "mail", { to: "ann" }, { conversation: "c-1" });
  const other = await converse(client, "mail", { to: "ann" }, { conversation: "c-2" });
  assert.deepEqual([first.done.length, again.done.length, other.done.length], [1, 0, 1]);
  assert.deepEqual(again.told, first.told);
  await client.close();
});

test("without the service nothing runs", async () => {
  const client = desk.clientOf({ client: { ...desk.server.acme.client, url: "http://127.0.0.1:1" } }, { retry: { attempts: 1 } });
  const { done, told } = await converse(client, "mail", { to: "ann" });
  assert.deepEqual(done, []);
  assert.match(told.value, /not decided/);
});
