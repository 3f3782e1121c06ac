// The erasures of an evidence pack (step 10).

import { unhex } from "../bytes.js";
import { parse } from "../canonical/parse.js";
import { sha256hex } from "../crypto/sha256.js";
import { Malformed, Mismatch } from "../errors.js";
import { checkInclusion, leafHash, parseHashes } from "../log/tree.js";
import { Coverage } from "./coverage.js";
import { parseEntry, parseRecord } from "./documents.js";
import { checkForm, is, listOf } from "./forms.js";
import { canonicalObject } from "./manifest.js";
import { checkStatement } from "./packlines.js";

const erasureForms = { entry: is.text, envelope: is.text, proof: listOf(is.hash), record: is.text };

/** Resolves to the coverage of the statements, undefined where there are none, and to their number. */
export async function readErasures({ m, archive }) {
  let coverage;
  let [last, ranges, statements] = [0, 0, 0];
  for await (const line of archive.lines("erasures.ndjson", 20_000)) {
    const x = canonicalObject(line, erasureForms);
    const r = parseRecord(x.record);
    const { record, seq } = parseEntry(x.entry);
    if (sha256hex(x.record) !== record || seq !== r.sequence_num || seq <= last) throw new Mismatch("erasures.ndjson: entry or order");
    last = seq;
    checkInclusion(BigInt(seq - 1), BigInt(m.tree_size), leafHash(x.entry), unhex(m.root_hash, 32), parseHashes(x.proof));
    const { payload } = await checkStatement(m, r, x.envelope, "ledger_envelope_erased");
    checkRanges(payload, seq);
    ranges += payload.ranges.length;
    if (ranges > 1 << 20) throw new Malformed("erasures.ndjson: number of ranges");
    coverage ??= new Coverage(m);
    for (const range of payload.ranges) coverage.cover(range);
    statements++;
  }
  return { coverage, statements };
}

function checkRanges(payload, seq) {
  checkForm(payload, { ranges: is.list, reason: is.matches(/^[a-z0-9_]{1,32}$/) });
  const { ranges } = payload;
  if (ranges.length < 1 || ranges.length > 1024) throw new Malformed("erasures.ndjson: ranges");
  let end = 0;
  for (const pair of ranges) {
    const good = Array.isArray(pair) && pair.length === 2 && pair.every(is.natural);
    if (!good || pair[0] < end || pair[0] >= pair[1] || pair[1] > seq - 1) throw new Malformed("erasures.ndjson: a range");
    end = pair[1];
  }
}

/** Checks that each statement covers a shown event, when all of those were read. The lines were checked before. */
export async function checkErasuresUsed({ archive }, coverage) {
  coverage?.sum();
  for await (const line of archive.lines("erasures.ndjson")) {
    const { ranges } = parse(parse(line).envelope).payload;
    if (!ranges.some((range) => coverage.isUsed(range))) throw new Mismatch("erasures.ndjson: of no shown event");
  }
}
