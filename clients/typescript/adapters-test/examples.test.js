// The examples of docs/guides/frameworks.md, run as written: a model calls a tool that an approver must approve.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { AIMessage } from "@langchain/core/messages";
import { tool as langchainTool } from "@langchain/core/tools";
import { Command, END, MemorySaver, MessagesAnnotation, START, StateGraph, interrupt } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { Agent, run, setTracingDisabled, tool as openaiTool } from "@openai/agents";
import { ScriptedModel, assistantMessage, functionCall } from "@openai/agents/testing";
import { generateText, tool as vercelTool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { createAgent, createMiddleware, fakeModel } from "langchain";
import { z } from "zod";
import { wrapToolCall } from "@agentledger/client/langchain";
import { guardTool } from "@agentledger/client/langgraph";
import { guardOptions } from "@agentledger/client/openai-agents";
import { guardTools } from "@agentledger/client/vercel-ai";
import { openDesk } from "./desk.js";

setTracingDisabled(true);
const desk = openDesk();
const document = readFileSync(new URL("../../../docs/guides/frameworks.md", import.meta.url), "utf8");
const [, source] = /```js\n([^`]*)```/.exec(document);
const [, ...parts] = source.split(/^\/\/ (.+)\n/m);
const examples = new Map(parts.flatMap((name, i) => (i % 2 === 0 ? [[name, parts[i + 1]]] : [])));
const AsyncFunction = (async () => {}).constructor;

/** Runs the text of an example with these names, and resolves to what it calls `wanted`. */
async function runExample(name, scope, wanted) {
  const body = `"use strict";\n${examples.get(name)}\nreturn ${wanted};`;
  return new AsyncFunction(...Object.keys(scope), body)(...Object.values(scope));
}

const amount = { amount_usd: 90 };
const schema = z.object({ amount_usd: z.number() });
const description = "Refunds.";

/** What each framework does with its example. `act` is the tool, `approve` votes in the meantime. */
const frameworks = {
  async "Vercel AI SDK"({ client, act, approve }) {
    const content = [{ type: "tool-call", toolCallId: "call-1", toolName: "refund", input: JSON.stringify(amount) }];
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const model = new MockLanguageModelV3({ doGenerate: [{ content, finishReason: { unified: "tool-calls" }, usage, warnings: [] }] });
    const scope = { guardTools, client, tool: vercelTool, inputSchema: schema, execute: act, generateText, model, prompt: "go on" };
    const voted = approve();
    await runExample("Vercel AI SDK", scope, "tools");
    await voted;
  },
  async "LangChain.js"({ client, act, approve }) {
    const calls = [{ id: "call-1", name: "payments.refund", args: amount, type: "tool_call" }];
    const model = fakeModel().respond(new AIMessage({ content: "", tool_calls: calls })).respond(new AIMessage("done"));
    const tools = [langchainTool(act, { name: "payments.refund", description, schema })];
    const agent = await runExample("LangChain.js", { createMiddleware, wrapToolCall, client, createAgent, model, tools }, "agent");
    const voted = approve();
    await agent.invoke({ messages: [{ role: "user", content: "go on" }] });
    await voted;
  },
  async "LangGraph.js"({ client, act, approve }) {
    const refund = langchainTool(act, { name: "acme.payments.refund", description, schema });
    const node = await runExample("LangGraph.js", { ToolNode, guardTool, client, refund, interrupt, thread_id: "thread-1" }, "node");
    const graph = new StateGraph(MessagesAnnotation).addNode("tools", node).addEdge(START, "tools").addEdge("tools", END);
    const program = graph.compile({ checkpointer: new MemorySaver() });
    const thread = { configurable: { thread_id: "thread-1" } };
    const calls = [{ id: "call-1", name: "acme.payments.refund", args: amount, type: "tool_call" }];
    const { __interrupt__ } = await program.invoke({ messages: [new AIMessage({ content: "", tool_calls: calls })] }, thread);
    assert.equal(__interrupt__.length, 1);
    await approve();
    await program.invoke(new Command({ resume: true }), thread);
  },
  async "OpenAI Agents"({ client, act, approve }) {
    const scope = { tool: openaiTool, guardOptions, client, description, parameters: schema, execute: act };
    const refund = await runExample("OpenAI Agents", scope, "refund");
    const model = new ScriptedModel([[functionCall("refund", amount, { callId: "call-1" })], [assistantMessage("bye")]]);
    const voted = approve();
    await run(new Agent({ name: "desk", model, tools: [refund] }), "go on");
    await voted;
  },
};

test("each framework of the document has its example, and no other", () => {
  assert.deepEqual([...examples.keys()], Object.keys(frameworks));
});

for (const [name, use] of Object.entries(frameworks)) {
  test(`the example of ${name} runs as written in the document`, async () => {
    const client = desk.clientOf(desk.server.acme);
    const before = await desk.calls(desk.ann, "acme.payments.refund");
    const done = [];
    await use({ client, act: async (given) => (done.push(given), "refunded"), approve: () => desk.decide(desk.ann, "approve") });
    assert.deepEqual(done, [amount]);
    await client.close();
    const calls = (await desk.calls(desk.ann, "acme.payments.refund")).slice(before.length);
    assert.deepEqual(calls, ["intent allow_with_obligation", "result ok allow_with_obligation"]);
  });
}
