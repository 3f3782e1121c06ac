// Reads one JSON text per line; prints the hex SHA-256 of its canonical form, or `error`, one per line. With the argument
// `arguments` it takes each text for the arguments of a tool: the digest is of the exact form, LF and the payload.

import { canonicalizeExact, parseExact, payloadText, recordMembers } from "../src/canonical/exact.js";
import { canonicalizeText } from "../src/canonical/write.js";
import { sha256hex } from "../src/crypto/sha256.js";
import { LedgerError } from "../src/errors.js";

function digest(line) {
  try {
    if (process.argv[2] !== "arguments") return sha256hex(canonicalizeText(line));
    const exact = canonicalizeExact(parseExact(line));
    return exact.startsWith("{") ? sha256hex(exact + "\n" + payloadText(recordMembers(exact))) : "error";
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return "error";
  }
}

// Lines are bytes: a text that is not UTF-8 must arrive unchanged.
let rest = Buffer.alloc(0);
for await (const chunk of process.stdin) {
  const data = Buffer.concat([rest, chunk]);
  let begin = 0;
  let out = "";
  for (let end; (end = data.indexOf(10, begin)) >= 0; begin = end + 1) out += digest(data.subarray(begin, end)) + "\n";
  rest = data.subarray(begin);
  process.stdout.write(out);
}
