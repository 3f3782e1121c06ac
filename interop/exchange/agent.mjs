// Reads one line a request; prints one line an answer. `send` takes events as JSON texts and prints the digest of the
// signed text and the service's status. `verify` takes event ids and prints the outcome of the event's bundle.

import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import { clientFromEnvironment } from "../../clients/typescript/src/node.js";

const client = clientFromEnvironment();
const log = client.log(process.env.LOG_SLUG, { key: process.env.LOG_KEY });

async function send(line) {
  const signed = await client.sign(line);
  const { status } = await client.send(signed);
  return `${createHash("sha256").update(signed.text).digest("hex")} ${status}`;
}

async function verify(line) {
  const { outcome } = await log.bundle(line, { require: "full" });
  return outcome;
}

const answer = { send, verify }[process.argv[2]];
const lines = (await text(process.stdin)).replace(/\n$/, "").split("\n"); // CR is white space of JSON
for (const line of lines) console.log(await answer(line));
await client.close();
