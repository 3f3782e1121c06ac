// Checks a pack file as a Blob, and prints the outcome and the peak memory of the process.

import { openAsBlob } from "node:fs";
import { verify } from "../src/index.js";

const [file, key] = process.argv.slice(2);
const { outcome, reason, report } = await verify.pack(await openAsBlob(file), { key });
const { maxRSS } = process.resourceUsage(); // KiB
process.stdout.write(JSON.stringify({ outcome, reason, shown: report?.shown, peak: maxRSS * 1024 }));
