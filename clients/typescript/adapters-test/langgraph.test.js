// The adapter of LangGraph.js: a graph that is interrupted while an approval is pending.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AIMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, END, MemorySaver, MessagesAnnotation, START, StateGraph, interrupt } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { guardTool } from "@agentledger/client/langgraph";
import { openDesk } from "./desk.js";

const desk = openDesk();

/** Compiles a graph of one tool node, which calls refund once. */
function refunds(client, thread_id, done, { name = "payments.refund", execute = () => "refunded" } = {}) {
  const plain = tool(async ({ amount_usd }) => (done.push(amount_usd), execute()), {
    name,
    description: "Refunds.",
    schema: z.object({ amount_usd: z.number() }),
  });
  const guarded = guardTool(client, plain, { interrupt, conversation: thread_id, prefix: "acme." });
  const graph = new StateGraph(MessagesAnnotation).addNode("tools", new ToolNode([guarded]));
  return graph.addEdge(START, "tools").addEdge("tools", END).compile({ checkpointer: new MemorySaver() });
}

const call = (amount_usd, name = "payments.refund") => ({
  messages: [new AIMessage({ content: "", tool_calls: [{ id: "call-1", name, args: { amount_usd }, type: "tool_call" }] })],
});

test("a graph waits for approval, and continues with the same question", async () => {
  for (const [organization, person] of [[desk.server.acme, desk.ann], [desk.server.boole, desk.bob]]) {
    const client = desk.clientOf(organization);
    const done = [];
    const graph = refunds(client, "thread-1", done);
    const thread = { configurable: { thread_id: "thread-1" } };
    const stopped = await graph.invoke(call(90), thread);
    const [{ value }] = stopped.__interrupt__;
    assert.deepEqual([done, value.tool], [[], "acme.payments.refund"]);
    assert.equal(value.url, `${organization.client.url}/console/approvals/${value.approval_id}`);
    for (let times = 0; times < 2; times++) {
      const early = await graph.invoke(new Command({ resume: true }), thread);
      const { approval_id, url, tool } = early.__interrupt__?.[0].value ?? {};
      assert.deepEqual([approval_id, url, tool], [value.approval_id, value.url, value.tool], "approvers have not voted");
      assert.equal(early.messages.at(-1).tool_calls?.length, 1, "the model got an answer");
    }
    assert.deepEqual(done, []);
    const [first] = (await person.call("GET", "/approvals?status=pending")).approvals;
    await person.vote({ approvalId: first.approval_id, actionDigest: first.action_digest }, "approve");
    const late = await graph.invoke(new Command({ resume: true }), thread);
    assert.deepEqual([done.splice(0), late.messages.at(-1).content], [[90], "refunded"]);

    const again = refunds(client, "thread-2", done);
    const second = { configurable: { thread_id: "thread-2" } };
    const waits = await again.invoke(call(91), second);
    const asked = (await person.call("GET", "/approvals?status=pending")).approvals;
    const mine = asked.find((a) => a.approval_id === waits.__interrupt__[0].value.approval_id);
    assert.equal(asked.length, 1);
    await person.vote({ approvalId: mine.approval_id, actionDigest: mine.action_digest }, "approve");
    const { messages } = await again.invoke(new Command({ resume: "whatever" }), second);
    assert.deepEqual([done, messages.at(-1).content], [[91], "refunded"]);
    await client.close();
  }
});

test("a refusal reaches the model with its comment", async () => {
  const client = desk.clientOf(desk.server.acme);
  const done = [];
  const graph = refunds(client, "thread-3", done);
  const thread = { configurable: { thread_id: "thread-3" } };
  const { __interrupt__ } = await graph.invoke(call(5000), thread);
  const asked = (await desk.ann.call("GET", "/approvals?status=pending")).approvals;
  const mine = asked.find((a) => a.approval_id === __interrupt__[0].value.approval_id);
  await desk.ann.vote({ approvalId: mine.approval_id, actionDigest: mine.action_digest }, "deny", { comment: "Too much" });
  const { messages } = await graph.invoke(new Command({ resume: true }), thread);
  assert.match(messages.at(-1).content, /^Not done: the approval is denied.*Too much/);
  assert.deepEqual(done, []);
  await client.close();
});

/** Runs a graph of one call and returns what the tool did and the last message. */
async function converse(client, thread_id, name, execute) {
  const done = [];
  const graph = refunds(client, thread_id, done, { name, execute });
  const { messages } = await graph.invoke(call(7, name), { configurable: { thread_id } });
  return { done, told: messages.at(-1).content };
}

test("a denied call does not run, and the model reads why", async () => {
  const client = desk.clientOf(desk.server.acme);
  const { done, told } = await converse(client, "thread-4", "customers.delete");
  assert.deepEqual(done, []);
  assert.match(told, /^Not done: denied: Not the agent's business/);
  await client.close();
});

test("a tool that fails is recorded as failed", async () => {
  const client = desk.clientOf(desk.server.acme);
  const { done, told } = await converse(client, "thread-5", "print", () => {
    throw new Error("out of paper");
  });
  assert.equal(done.length, 1);
  assert.match(told, /out of paper/);
  await client.close();
  assert.deepEqual(await desk.calls(desk.ann, "acme.print"), ["intent allow", "result error allow"]);
});

test("without the service nothing runs", async () => {
  const client = desk.clientOf({ client: { ...desk.server.acme.client, url: "http://127.0.0.1:1" } }, { retry: { attempts: 1 } });
  const { done, told } = await converse(client, "thread-6", "note");
  assert.deepEqual(done, []);
  assert.match(told, /not decided.*The act was not done/);
});
