// A program that ends with queued events: node endchild.js URL EVENTS HOW [FOLDER], with a durable queue in FOLDER. HOW is what
// it does last: "end", "exit", "throw", "wait", "close" or "signal", or "count" to print client.pending and exit.

import process from "node:process";
import { Client } from "../src/index.js";
import { FileQueue } from "../src/node.js";

const [url, events, how, folder] = process.argv.slice(2);
const counts = () => ["exit", "beforeExit", "SIGTERM", "SIGINT"].map((name) => process.listenerCount(name));
const before = counts();
const queue = folder ? await FileQueue.open(folder) : undefined;
const own = { url, token: "apl_test_secret", org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", agent: "agt_a", keyId: "key_a" };
const key = "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=";
const client = new Client({ ...own, key, queue });
for (let i = 0; i < Number(events); i++) await client.enqueue({ action_kind: "note", payload: { i } });
if (how === "exit") process.exit(0);
if (how === "throw") throw new Error("a mistake");
if (how === "wait") await client.send({ action_kind: "note", payload: { i: -1 } });
if (how === "close") await client.close(50).catch((why) => console.log(why.message));
if (how === "signal") process.kill(process.pid, "SIGTERM");
if (how === "count") {
  client.enqueue({ action_kind: "note" }).catch(() => {}); // is not signed yet
  const other = new Client({ ...own, key });
  other.enqueue({ action_kind: "note" }).catch(() => {});
  console.log(JSON.stringify({ pending: [client.pending, other.pending], listeners: counts().map((count, i) => count - before[i]) }));
  process.exit(0);
}
