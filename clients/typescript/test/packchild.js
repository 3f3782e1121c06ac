// Checks a pack of the file system as a Blob, and prints the outcome with the memory that the process took at most.

import { openAsBlob } from "node:fs";
import { verify } from "../src/index.js";

const [file, key] = process.argv.slice(2);
const { outcome, reason, report } = await verify.pack(await openAsBlob(file), { key });
const { maxRSS } = process.resourceUsage(); // KiB
process.stdout.write(JSON.stringify({ outcome, reason, shown: report?.shown, peak: maxRSS * 1024 }));
