// The events that wait to be sent, by trace. A trace of which events are out gives none, so that a later event of a
// trace never overtakes an earlier one, however many requests are out.

/** Items have `trace` and `size`, the bytes that they take in a request at most. */
export class Waiting {
  #traces = new Map(); // trace to {trace, items, out}; without items and nothing out it is not here
  #ready = []; // traces with items and nothing out, the one that is ready for longest first
  #count = 0;
  #free = 0;
  #next = 1;

  /** The number of items that wait. */
  get size() {
    return this.#count;
  }

  /** The number of items that the next request may take, apart from its bounds. */
  get free() {
    return this.#free;
  }

  /** Adds an item behind the others. */
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
   * Takes items whose traces have nothing out, in the order of push: at most `lines`, and at most `bytes` if they are
   * more than one. Their traces are out until they are given back.
   */
  take(lines, bytes) {
    const taken = [];
    let used = 0;
    let full = false;
    let n = 0;
    for (; n < this.#ready.length && !full && taken.length < lines; n++) {
      const { items } = this.#ready[n];
      let k = 0;
      for (; k < items.length && taken.length < lines; k++) {
        full = taken.length > 0 && used + items[k].size > bytes;
        if (full) break;
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

  /** Ends a request. Items of it that have to be sent again wait in front of the later ones of their traces. */
  giveBack(taken, again) {
    for (const item of again.toReversed()) this.#traces.get(item.trace).items.unshift(item);
    this.#count += again.length;
    for (const trace of new Set(taken.map((item) => item.trace))) {
      const queue = this.#traces.get(trace);
      queue.out = false;
      this.#free += queue.items.length;
      if (queue.items.length > 0) this.#ready.push(queue);
      else this.#traces.delete(trace);
    }
  }

  /** Removes all items that wait, and returns them. */
  clear() {
    const all = [...this.#traces.values()].flatMap((queue) => queue.items.splice(0));
    this.#ready = [];
    this.#count = this.#free = 0;
    return all.sort((a, b) => a.place - b.place);
  }
}
