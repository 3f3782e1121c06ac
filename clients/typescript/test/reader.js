// Reads a public log as an auditor's program does, for the tests of dishonest servers (internal/test/readers):
// node reader.js URL SLUG KEY POLICY EVENT STATE. It keeps its memory of the log in the file STATE, follows the log, and
// verifies the bundle of an event. POLICY is a file or "".
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Client } from "../src/index.js";

const [url, slug, key, policyFile, event, state] = process.argv.slice(2);
const trust = policyFile === "" ? { key } : { key, policy: readFileSync(policyFile, "utf8") };
const client = new Client({ url, retry: { attempts: 1 } });
try {
  const log = client.log(slug, trust);
  const { memory, newKeys } = await log.follow(existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : undefined);
  const { outcome, reason, lines } = await log.bundle(event);
  if (outcome === "proved") {
    writeFileSync(state, JSON.stringify(memory));
    console.log(`accepted: ${[...newKeys, ...lines].join("\n")}`);
  } else console.log(reason);
} catch (why) {
  console.log(why.message);
} finally {
  await client.close();
}
