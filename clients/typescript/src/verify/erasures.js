// The erasures of an evidence pack (step 10).

import { parse } from "../canonical/parse.js";
import { Malformed, Mismatch } from "../errors.js";
import { Coverage } from "./coverage.js";
import { checkForm, is } from "./forms.js";
import { readProven } from "./voters.js";

/** Resolves to the coverage of the statements (undefined if there are none) and to their number. */
export async function readErasures({ m, archive }) {
  let coverage;
  let [last, ranges, statements] = [0, 0, 0];
  for await (const line of archive.lines("erasures.ndjson", 20_000)) {
    const { r, e } = await readProven(m, line, "ledger_envelope_erased");
    const { payload } = e;
    const seq = r.sequence_num;
    if (seq <= last) throw new Mismatch("erasures.ndjson: order");
    last = seq;
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

/** Checks that each statement covers a shown event. Call it after all shown events were read; the lines were checked before. */
export async function checkErasuresUsed({ archive }, coverage) {
  coverage?.sum();
  for await (const line of archive.lines("erasures.ndjson")) {
    const { ranges } = parse(parse(line).envelope).payload;
    if (!ranges.some((range) => coverage.isUsed(range))) throw new Mismatch("erasures.ndjson: of no shown event");
  }
}
