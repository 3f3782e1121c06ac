// Appends lines to a file of refused events whose disk has no space for one of them: node fullrefused.js FOLDER, under a
// limit on the size of files.

import assert from "node:assert/strict";
import { join } from "node:path";
import { appendDurably } from "../src/node/files.js";

const path = join(process.argv[2], "refused.ndjson");
await appendDurably(path, "first\n");
await assert.rejects(appendDurably(path, "x".repeat(5000) + "\n"));
await appendDurably(path, "second\n");
