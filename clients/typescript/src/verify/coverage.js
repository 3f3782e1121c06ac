// Which events of a pack's range erasures cover, and which of them are shown. It takes 8 bytes for each event of the range.

/** The coverage of [begin, end). `covers` is asked in ascending order; `isUsed` is asked when all events were shown. */
export class Coverage {
  #steps; // steps[i] is how many more ranges cover event i than the one before
  #shown; // shown[i] is how many events before i are shown and can be erased
  #at = 0; // events before it were asked for
  #depth = 0; // ranges that cover the event before #at

  constructor({ begin, end }) {
    this.begin = begin;
    this.end = end;
    this.#steps = new Int32Array(end - begin + 1);
    this.#shown = new Uint32Array(end - begin + 1);
  }

  /** Returns the part of a range of log indices in this one, as offsets; [0, 0] for none. */
  #clip([from, to]) {
    const [first, last] = [Math.max(from, this.begin), Math.min(to, this.end)];
    return first < last ? [first - this.begin, last - this.begin] : [0, 0];
  }

  cover(range) {
    const [first, last] = this.#clip(range);
    this.#steps[first]++;
    this.#steps[last]--;
  }

  /** Reports whether a range covers the event at a log index. */
  covers(index) {
    for (const to = index - this.begin; this.#at <= to; this.#at++) this.#depth += this.#steps[this.#at];
    return this.#depth > 0;
  }

  /** Notes that an event, which can be erased, is shown. */
  show(index) {
    this.#shown[index - this.begin + 1] = 1;
  }

  /** Is called once, behind the last call of `show`. */
  sum() {
    for (let i = 1; i < this.#shown.length; i++) this.#shown[i] += this.#shown[i - 1];
  }

  /** Reports whether a range has a shown event. */
  isUsed(range) {
    const [first, last] = this.#clip(range);
    return this.#shown[last] > this.#shown[first];
  }
}
