// Comparisons of a tool's own record of its calls with the log, as shown events of the service state them
// (docs/guides/coverage.md). That the service stated them is proved; the comparison itself is the operator's word.

import { is, isObject } from "./forms.js";

const numbers = ["calls", "outside", "matched", "unpermitted", "missing", "extra"];

/** The maximum number of comparisons in a report. */
const maxComparisons = 1000;

/** Reports whether an event with a record and an envelope is one. */
export function isComparison(r, e) {
  return r.signer === "system" && e.action_kind === "ledger_coverage_compared";
}

/** The comparisons of the shown events of a pack. */
export class Comparisons {
  #list = [];

  /** Adds the comparison of an event if it is one. A statement in another form, such as that of a later version, is not listed. */
  add(r, { action_kind, payload }) {
    if (!isComparison(r, { action_kind }) || this.#list.length >= maxComparisons) return;
    const { file_sha256, from, to, covered, counts } = payload;
    if (!is.someHash(file_sha256) || !is.time(from) || !is.time(to) || !is.bool(covered)) return;
    if (!isObject(counts) || !numbers.every((name) => is.natural(counts[name]))) return;
    const own = Object.fromEntries(numbers.map((name) => [name, counts[name]]));
    this.#list.push({ log_index: r.sequence_num - 1, file_sha256, from, to, covered, counts: own });
  }

  /** Returns the member of the report, if there are any. */
  report() {
    return this.#list.length > 0 ? { coverage: this.#list } : {};
  }
}

/** Returns the lines about comparisons, in the words of `aps verify`. */
export function comparisonLines(comparisons) {
  return comparisons.map(({ log_index, file_sha256, from, to, covered, counts: n }) => {
    const word = covered ? "covered" : "not covered";
    const found = `${n.matched} of ${n.calls - Math.min(n.outside, n.calls)} matched, ${n.unpermitted} unpermitted, ${n.missing} missing, ${n.extra} extra`;
    return `compared    ${log_index}: calls from ${from} until before ${to} ${word}, as the service states: ${found}; record ${file_sha256}`;
  });
}
