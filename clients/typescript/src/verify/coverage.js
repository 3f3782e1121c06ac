// Which events of a pack's range are covered by erasures, and which of them are shown. It takes 8 bytes for each event
// of the range.

/**
 * The coverage of [begin, end). `covers` must be called in ascending order, and `isUsed` after all events were shown.
 */
export class Coverage {
  #steps; // steps[i]: number of ranges that cover event i, minus the number that cover the event before
  #shown; // shown[i]: number of shown events before i that can be erased
  #at = 0; // events before it were queried
  #depth = 0; // number of ranges that cover the event before #at

  constructor({ begin, end }) {
    this.begin = begin;
    this.end = end;
    this.#steps = new Int32Array(end - begin + 1);
    this.#shown = new Uint32Array(end - begin + 1);
  }

  /** Returns the part of a range of log indices that is in this one, as offsets, or [0, 0]. */
  #clip([from, to]) {
    const [first, last] = [Math.max(from, this.begin), Math.min(to, this.end)];
    return first < last ? [first - this.begin, last - this.begin] : [0, 0];
  }

  cover(range) {
    const [first, last] = this.#clip(range);
    this.#steps[first]++;
    this.#steps[last]--;
  }

  /** Allows calls of `covers` for the first event again. */
  restart() {
    this.#at = 0;
    this.#depth = 0;
  }

  /** Reports whether a range covers the event at a log index. */
  covers(index) {
    for (const to = index - this.begin; this.#at <= to; this.#at++) this.#depth += this.#steps[this.#at];
    return this.#depth > 0;
  }

  /** Records that an event, which can be erased, is shown. */
  show(index) {
    this.#shown[index - this.begin + 1] = 1;
  }

  /** Must be called once, after the last call of `show`. */
  sum() {
    for (let i = 1; i < this.#shown.length; i++) this.#shown[i] += this.#shown[i - 1];
  }

  /** Reports whether a range contains a shown event. */
  isUsed(range) {
    const [first, last] = this.#clip(range);
    return this.#shown[last] > this.#shown[first];
  }
}
