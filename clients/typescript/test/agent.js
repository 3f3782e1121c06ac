// An agent for the kill drill: node agent.js FOLDER ACTS, with the client's settings in APS_*. It runs acts in turn, four
// at a time, each of which appends a line to FOLDER/done, and exits when all are done and recorded.

import { openSync, writeSync, fsyncSync } from "node:fs";
import { join } from "node:path";
import { Interrupted } from "../src/index.js";
import { FileJournal, FileQueue, clientFromEnvironment } from "../src/node.js";

const [folder, acts] = [process.argv[2], Number(process.argv[3])];
const done = openSync(join(folder, "done"), "a");
const journal = await FileJournal.open(join(folder, "journal"));
const queue = await FileQueue.open(join(folder, "queue"));
const client = clientFromEnvironment({ queue, guard: { journal } });
await client.guards.resume();

let next = 0;
async function work() {
  while (next < acts) {
    const n = next++;
    const act = { tool: "acme.mail.send", payload: { n }, key: `act-${n}` };
    await client
      .run(act, async () => {
        writeSync(done, `${n}\n`);
        fsyncSync(done);
        await new Promise((resolve) => setTimeout(resolve, n % 5));
      })
      .catch((why) => {
        if (!(why instanceof Interrupted)) throw why;
      });
  }
}
await Promise.all([work(), work(), work(), work()]);
await client.flush();
await client.close();
await journal.close();
