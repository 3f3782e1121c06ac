// Verifies documents for the comparison of verifiers: each line of standard input is a JSON object with kind, path, key and
// keys. It prints the status and the report of each.

import { readFileSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
import { LedgerError } from "../src/errors.js";
import { verify } from "../src/index.js";
import { folderFiles } from "../src/node.js";

async function judge({ kind, path, key, keys }) {
  const trust = keys === "" ? { key } : { key, keys: readFileSync(keys) };
  if (kind !== "pack") return verify.bundle(readFileSync(path), trust);
  if (statSync(path).isDirectory()) return verify.pack(await folderFiles(path), trust);
  return verify.pack(new Blob([readFileSync(path)]), trust);
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    const { status, lines, reason } = await judge(JSON.parse(line));
    said = { status, text: lines.join("\n"), reason };
  } catch (why) {
    said = { status: why instanceof LedgerError ? 2 : 99, text: "", reason: String(why.stack) };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
}
