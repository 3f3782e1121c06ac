// Compiled and not run: the public types accept right uses and refuse wrong ones.

import { ApprovalDenied, Client, Denied, OMIT, canonicalize, verify } from "@agentledger/client";
import { FileJournal, FileQueue, clientFromEnvironment } from "@agentledger/client/node";

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
  canonicalize({ at: new Date() }, { convert: (v) => (v instanceof Date ? v.toISOString() : OMIT) });
  try {
    await client.guardFetch({ waitMs: 0 })("https://shop.example");
  } catch (why) {
    if (why instanceof Denied) return why.reason;
    if (why instanceof ApprovalDenied) return why.comment ?? "";
  }
  return `${sequenceNum} ${sum}`;
}
