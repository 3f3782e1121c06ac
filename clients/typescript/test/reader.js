// Reads public logs as an auditor's program does, for the tests of dishonest servers (internal/test/readers). Each line of
// standard input is a JSON array of URL, slug, key, policy, event and state. The reader keeps its memory of the log in the
// file state, follows the log, and verifies the bundle of the event. Policy is a file or "". For each line it prints what it
// reports about the log, as a JSON string.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Client } from "../src/index.js";

async function read(url, slug, key, policyFile, event, state) {
  const trust = policyFile === "" ? { key } : { key, policy: readFileSync(policyFile, "utf8") };
  const client = new Client({ url, retry: { attempts: 1 } });
  try {
    const log = client.log(slug, trust);
    const { memory, newKeys } = await log.follow(existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : undefined);
    const { outcome, reason, lines } = await log.bundle(event);
    if (outcome !== "proved") return reason;
    writeFileSync(state, JSON.stringify(memory));
    return `accepted: ${[...newKeys, ...lines].join("\n")}`;
  } catch (why) {
    return why.message;
  } finally {
    await client.close();
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await read(...JSON.parse(line))) + "\n");
}
