// Compiled but not run: the public types accept correct uses and refuse wrong ones.

import { ApprovalDenied, Client, Denied, ExactNumber, OMIT, canonicalize, parseExact, verify } from "@agentledger/client";
import { FileJournal, FileQueue, clientFromEnvironment } from "@agentledger/client/node";
import { Grants } from "@agentledger/client/grants";
import { guardTool } from "@agentledger/client/langchain";
import { guardTool as guardNode } from "@agentledger/client/langgraph";
import { guardOptions, needsApproval } from "@agentledger/client/openai-agents";
import { guardTools } from "@agentledger/client/vercel-ai";

export function guards(client: Client) {
  const refund = { name: "refund", execute: async ({ amount }: { amount: number }) => amount };
  const { execute } = guardOptions(client, { ...refund, needsApproval: needsApproval(client, refund) }, { denied: "throw" });
  const tools = guardTools(client, { refund }, { prefix: "acme.", conversation: "c-1", digestInput: true, shown: ["amount"] });
  const interrupt = ({ approval_id }: { approval_id: string }) => approval_id;
  guardNode(client, guardTool(client, refund), { interrupt, conversation: "thread-1" });
  // @ts-expect-error: a graph's thread is required
  guardNode(client, refund, { interrupt });
  // @ts-expect-error: no such answer to a denial
  guardTools(client, tools, { denied: "ignore" });
  return [execute, tools.refund.name];
}

export function grants(key: string) {
  const describe = (request: { body: unknown }, body: Uint8Array) => ({ size: body.length });
  const checked = new Grants({ keys: [key], routes: [{ route: "POST /refunds", tool: "shop.refund", describe }], open: ["GET *"] });
  // @ts-expect-error: a list of keys
  new Grants({ keys: key, routes: [] });
  return [checked.express(), checked.fastify()];
}

export async function exactNumbers(client: Client) {
  await client.run({ tool: "acme.ads.get", payload: { id: 2n ** 63n, part: new ExactNumber("0.12345678901234567") } }, () => 1);
  // @ts-expect-error: a literal is a text
  new ExactNumber(0.5);
  return client.evaluate({ tool: "acme.ads.get", payload: parseExact("{}") });
}

export async function disposes() {
  await using client = clientFromEnvironment();
  return client.pending;
}

export async function uses(): Promise<string> {
  const queue = await FileQueue.open("queue", { limit: 10 });
  const client: Client = clientFromEnvironment({ queue, guard: { journal: await FileJournal.open("journal") } });
  const { sequenceNum = 0 } = await client.send({ action_kind: "note", payload: { purpose: "check" } });
  const add = client.guard("math.add", (a: number, b: number) => a + b, { payload: (a, b) => ({ a, b }) });
  const sum: number = await add(1, 2);
  // @ts-expect-error: an argument of another type
  await add("1", 2);
  // @ts-expect-error: action_kind is required
  await client.send({ payload: {} });
  const { outcome } = await verify.bundle("{}", { key: "log+00000000+AQ==" });
  // @ts-expect-error: no such outcome
  if (outcome === "perhaps") return "";
  const packed = await verify.pack(new Blob(["PK"]), { key: "log+00000000+AQ==", require: "full" });
  // @ts-expect-error: a path is no pack
  await verify.pack("november.zip");
  if (packed.status > 0) return packed.reason;
  const { memory, newKeys } = await client.log("acme", { key: "log+00000000+AQ==" }).follow();
  // @ts-expect-error: a memory is no text
  await client.log("acme", { key: "log+00000000+AQ==" }).follow(newKeys[0]);
  if (memory.accepted_keys?.length) return memory.accepted_keys[0].by;
  canonicalize({ at: new Date() }, { convert: (v) => (v instanceof Date ? v.toISOString() : OMIT) });
  try {
    await client.guardFetch({ waitMs: 0 })("https://shop.example");
  } catch (why) {
    if (why instanceof Denied) return why.reason;
    if (why instanceof ApprovalDenied) return why.comment ?? "";
  }
  return `${sequenceNum} ${sum}`;
}
