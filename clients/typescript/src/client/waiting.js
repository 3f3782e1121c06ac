// The events that wait to be sent, by trace. While events of a trace are in flight, no others of that trace are sent,
// so that a later event never overtakes an earlier one, however many requests are in flight.

/**
 * Items have `trace`, `size`, the maximum number of bytes that they take in a request, and optionally `lines`, the maximum
 * number of items in their request.
 */
export class Waiting {
  #traces = new Map(); // trace to {trace, items, out}; a trace without items and with nothing in flight is absent
  #ready = []; // traces with items and nothing in flight: first those with items that go first again, then the longest ready
  #count = 0;
  #free = 0;
  #next = 1;

  /** The number of waiting items. */
  get size() {
    return this.#count;
  }

  /** The number of items that the next request may take, regardless of its limits. */
  get free() {
    return this.#free;
  }

  /** Adds an item at the end. */
  push(item) {
    item.place = this.#next++;
    this.#count++;
    let queue = this.#traces.get(item.trace);
    if (!queue) {
      queue = { items: [], out: false };
      this.#traces.set(item.trace, queue);
      this.#ready.push(queue);
    }
    queue.items.push(item);
    if (!queue.out) this.#free++;
  }

  /**
   * Takes items whose traces have nothing in flight, in the order of push: at most `lines`, and at most `bytes` if
   * there is more than one. Their traces are in flight until giveBack.
   */
  take(lines, bytes) {
    const taken = [];
    let used = 0;
    let full = false;
    let n = 0;
    let most = lines;
    for (; n < this.#ready.length && !full && taken.length < most; n++) {
      const { items } = this.#ready[n];
      let k = 0;
      for (; k < items.length && taken.length < most; k++) {
        full = taken.length > 0 && (used + items[k].size > bytes || taken.length >= items[k].lines);
        if (full) break;
        most = Math.min(most, items[k].lines ?? most);
        used += items[k].size;
        taken.push(items[k]);
      }
      if (k === 0) break;
      this.#free -= items.length;
      items.splice(0, k);
      this.#ready[n].out = true;
    }
    this.#ready.splice(0, n);
    this.#count -= taken.length;
    return taken.sort((a, b) => a.place - b.place);
  }

  /** Ends a request. Its items that must be retried wait before all others, or after them if `last` is set. */
  giveBack(taken, again, { last = false } = {}) {
    for (const item of again.toReversed()) this.#traces.get(item.trace).items.unshift(item);
    this.#count += again.length;
    const retried = new Set(again.map((item) => item.trace));
    const first = [];
    for (const trace of new Set(taken.map((item) => item.trace))) {
      const queue = this.#traces.get(trace);
      queue.out = false;
      this.#free += queue.items.length;
      if (queue.items.length === 0) this.#traces.delete(trace);
      else if (retried.has(trace) && !last) first.push(queue);
      else this.#ready.push(queue);
    }
    if (first.length > 0) this.#ready = first.concat(this.#ready);
  }

  /** All waiting items, in the order of push. */
  get all() {
    return [...this.#traces.values()].flatMap((queue) => queue.items).sort((a, b) => a.place - b.place);
  }

  /** Removes all waiting items and returns them. */
  clear() {
    const { all } = this;
    for (const queue of this.#traces.values()) queue.items = [];
    this.#ready = [];
    this.#count = this.#free = 0;
    return all;
  }
}
