// Reads a public log as an auditor's program does, for the tests of dishonest servers (internal/test/readers):
// node reader.js URL SLUG KEY POLICY EVENT STATE. It keeps the checkpoint in the file STATE, proves that the head extends
// it, and verifies the bundle of an event. POLICY is a file or "".
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Client } from "../src/index.js";

const [url, slug, key, policyFile, event, state] = process.argv.slice(2);
const trust = policyFile === "" ? { key } : { key, policy: readFileSync(policyFile, "utf8") };
const client = new Client({ url, retry: { attempts: 1 } });
try {
  const log = client.log(slug, trust);
  const { checkpoint } = await log.head();
  if (existsSync(state)) {
    const kept = JSON.parse(readFileSync(state, "utf8"));
    const before = { origin: kept.origin, size: BigInt(kept.size), root: Uint8Array.from(kept.root) };
    await log.consistency(before, checkpoint);
  }
  const { origin, size, root } = checkpoint;
  const { outcome, reason, lines } = await log.bundle(event);
  if (outcome === "proved") {
    writeFileSync(state, JSON.stringify({ origin, size: String(size), root: [...root] }));
    console.log(`accepted: ${lines.join("\n")}`);
  } else console.log(reason);
} catch (why) {
  console.log(why.message);
} finally {
  await client.close();
}
