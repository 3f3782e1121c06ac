// The adapter of the OpenAI Agents SDK, with the SDK's own scripted model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, run, setTracingDisabled, tool } from "@openai/agents";
import { ScriptedModel, assistantMessage, functionCall } from "@openai/agents/testing";
import { z } from "zod";
import { guardOptions, needsApproval } from "@agentledger/client/openai-agents";
import { openDesk } from "./desk.js";

setTracingDisabled(true);
const desk = openDesk();
const parameters = z.object({ amount_usd: z.number() });

/** An agent whose model makes one call of a tool. */
function agentThatCalls(client, name, input, { own, asks = false, execute = () => "done" } = {}) {
  const done = [];
  const options = { name, description: "A tool.", parameters, execute: async (given) => (done.push(given), execute()) };
  const adapter = { prefix: "acme.", ...own };
  const guarded = guardOptions(client, asks ? { ...options, needsApproval: needsApproval(client, options, adapter) } : options, adapter);
  const model = new ScriptedModel([[functionCall(name, input, { callId: "call-1" })], [assistantMessage("bye")]]);
  return { agent: new Agent({ name: "desk", model, tools: [tool(guarded)] }), done, told: () => model.lastCall.request.input.at(-1).output.text };
}

test("an allowed call runs once, and both organizations have their own events only", async () => {
  for (const [organization, person] of [[desk.server.acme, desk.ann], [desk.server.boole, desk.bob]]) {
    const client = desk.clientOf(organization);
    const { agent, done, told } = agentThatCalls(client, "note", { amount_usd: 20 });
    assert.equal((await run(agent, "go on")).finalOutput, "bye");
    assert.deepEqual([done, told()], [[{ amount_usd: 20 }], "done"]);
    await client.close();
    assert.deepEqual(await desk.calls(person, "acme.note"), ["intent allow", "result ok allow"]);
  }
});

test("a denied call does not run, and the model reads why", async () => {
  const client = desk.clientOf(desk.server.acme, {});
  const { agent, done, told } = agentThatCalls(client, "erase", { amount_usd: 1 }, { own: { prefix: "acme.customers." } });
  await run(agent, "go on");
  assert.deepEqual(done, []);
  assert.match(told(), /^Not done: denied: Not the agent's business/);
  await client.close();
});

test("a tool that fails is recorded as failed", async () => {
  const client = desk.clientOf(desk.server.acme);
  const fails = () => {
    throw new Error("out of paper");
  };
  const { agent, done } = agentThatCalls(client, "print", { amount_usd: 1 }, { execute: fails });
  await run(agent, "go on");
  assert.equal(done.length, 1);
  await client.close();
  assert.deepEqual(await desk.calls(desk.ann, "acme.print"), ["intent allow", "result error allow"]);
});

test("a call that needs approval interrupts the run, and the approval decides after it continues", async () => {
  const client = desk.clientOf(desk.server.acme);
  const own = { prefix: "acme.payments." };
  for (const [vote, want, told_] of [["approve", 1, /^done$/], ["deny", 0, /^Not done: the approval is denied/]]) {
    const { agent, done, told } = agentThatCalls(client, "refund", { amount_usd: 90 }, { own, asks: true });
    const stopped = await run(agent, "go on");
    assert.deepEqual([stopped.interruptions.length, done.length], [1, 0]);
    assert.equal((await desk.ann.call("GET", "/approvals?status=pending")).approvals.length, 0, "nothing is asked yet");
    stopped.state.approve(stopped.interruptions[0]);
    const decided = desk.decide(desk.ann, vote);
    await run(agent, stopped.state);
    await decided;
    assert.equal(done.length, want);
    assert.match(told(), told_);
  }
  await client.close();
});

test("without the service nothing runs", async () => {
  const client = desk.clientOf({ client: { ...desk.server.acme.client, url: "http://127.0.0.1:1" } }, { retry: { attempts: 1 } });
  const { agent, done, told } = agentThatCalls(client, "note", { amount_usd: 20 });
  await run(agent, "go on");
  assert.deepEqual(done, []);
  assert.match(told(), /^An error occurred while running the tool/); // the SDK's words: it shows models no error
});
