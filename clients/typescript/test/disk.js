// An agent whose disk is full: node disk.js FOLDER, under a limit on the size of files. It tries acts with a payload of
// 2 KiB and prints how many ran and why the others did not.

import { Client } from "../src/index.js";
import { FileJournal } from "../src/node.js";

const created = (e) => ({ event_id: e.event_id, sequence_num: 1, event_hash: "00", chain_valid: true, status: "created" });
const journal = await FileJournal.open(process.argv[2]);
const client = new Client({
  url: "http://log.test",
  token: "apl_test_secret",
  org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
  agent: "agt_a",
  keyId: "key_a",
  key: "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=",
  fetch: async (url, init) => {
    const answers = String(init.body).trim().split("\n").map((line) => created(JSON.parse(line)));
    if (!url.endsWith("/batch")) return new Response(JSON.stringify(answers[0]), { status: 201 });
    return new Response(answers.map((a) => JSON.stringify({ status_code: 201, ...a })).join("\n"));
  },
  guard: { journal },
});
let ran = 0;
const refusals = new Set();
for (const size of [10, 2000, 20]) {
  const act = { tool: "acme.mail.send", payload: { text: "x".repeat(size) } };
  await client.run(act, () => ran++).catch((why) => refusals.add(`${why.name}: ${why.message}`));
}
await client.close();
await journal.close();
process.stdout.write(JSON.stringify({ ran, refusals: [...refusals] }));
