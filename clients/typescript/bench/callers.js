// Sends events for the measure clients of bench, with the client's settings in APS_*. For each line "callers events" it
// signs the events and prints a line. For the next line it sends them through one client and prints a line.

import { createInterface } from "node:readline";
import { clientFromEnvironment } from "../src/node.js";

const client = clientFromEnvironment();
let callers;
let signed;

async function send() {
  let next = 0;
  const caller = async () => {
    while (next < signed.length) await client.send(signed[next++]);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  signed = undefined;
}

async function sign(line) {
  const [n, count] = line.split(" ").map(Number);
  const event = (i) => ({ action_kind: "tool_call", tool_name: "acme.orders.read", trace_id: `trc-${i % n}`, payload: { i, text: "x".repeat(600) } });
  callers = n;
  signed = await Promise.all(Array.from({ length: count }, (_, i) => client.sign(event(i))));
}

for await (const line of createInterface({ input: process.stdin })) {
  await (line === "" ? send() : sign(line));
  console.log("done");
}
await client.close();
