// Sends events for the drills of internal/test/clientdrill, with the client's settings in APS_*:
//
//   node drill.js send FOLDER COUNT CALLERS   sends nine tenths of the events, and queues the others in FOLDER
//   node drill.js queue FOLDER COUNT CALLERS  queues events in FOLDER, and notes each in FOLDER/offered
//   node drill.js end FOLDER COUNT CALLERS    queues events in memory and ends
//
// In the end it prints what became of the events of this process.

import { existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { FileQueue, clientFromEnvironment } from "../src/node.js";

const [mode, folder] = process.argv.slice(2, 4);
const [count, callers] = process.argv.slice(4).map(Number);
const options = { timeoutMs: 1500, retry: { baseMs: 1, maxMs: 20 } };
console.warn = () => {}; // about events that are sent again

const isRefused = (n) => n % 50 === 49;
const numbered = (n) => ({
  event_id: isRefused(n) ? `evt-typescript-taken-${n}` : `evt-typescript-${n}`,
  trace_id: `trc-${n % 97}`,
  action_kind: "note",
  payload: { n },
});

/** Calls a function with each number from first to below end, as many at a time as there are callers. */
async function each(first, end, call) {
  let next = first;
  const caller = async () => {
    while (next < end) await call(next++);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

const linesOf = (name) => (existsSync(name) ? readFileSync(name, "utf8").split("\n").filter(Boolean) : []);
const nextTurn = () => new Promise((resolve) => setTimeout(resolve, 1));

async function flush(client) {
  while (client.pending > 0) await client.flush(10_000).catch(() => {});
}

const refused = join(folder, "queue", "refused.ndjson");
const openDurable = async () => clientFromEnvironment({ ...options, queue: await FileQueue.open(join(folder, "queue")) });

if (mode === "end") {
  const client = clientFromEnvironment(options);
  await each(0, count, (n) => client.enqueue(numbered(n)));
  console.log(JSON.stringify({ offered: count }));
} else if (mode === "send") {
  const durable = await openDurable();
  const client = clientFromEnvironment(options);
  const total = { offered: 0, stored: 0, refused: 0, queued: 0 };
  const sent = Math.floor((count * 9) / 10);
  await each(0, sent, async (n) => {
    const signed = await client.sign(numbered(n));
    total.offered++;
    for (;;) {
      try {
        await client.send(signed);
        total.stored++;
        return;
      } catch (why) {
        if (why.final) {
          total.refused++;
          return;
        }
      }
    }
  });
  await client.close();
  const queued = [];
  await each(sent, count, async (n) => {
    total.offered++;
    const { stored } = await durable.enqueue(numbered(n));
    queued.push(stored.then(() => true, () => false));
  });
  await flush(durable);
  await Promise.all(queued);
  const dead = linesOf(refused).length;
  total.refused += dead;
  total.queued = durable.pending;
  total.stored += count - sent - dead - durable.pending;
  await durable.close();
  console.log(JSON.stringify(total));
} else {
  const durable = await openDurable();
  const offered = openSync(join(folder, "offered"), "a");
  const begun = openSync(join(folder, "begun"), "a");
  const first = linesOf(join(folder, "begun")).length;
  await each(first, count === 0 ? first : first + count, async (n) => {
    writeSync(begun, "begun\n");
    await durable.enqueue(numbered(n));
    writeSync(offered, `${n}\n`);
    while (durable.pending > 4 * callers) await nextTurn();
  });
  await durable.flush(1).catch(() => {}); // loads what an earlier process left
  await flush(durable);
  console.log(JSON.stringify({ refused: linesOf(refused).length, queued: durable.pending }));
  await durable.close();
}
