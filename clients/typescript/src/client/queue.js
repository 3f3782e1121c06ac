// A queue of signed events in memory. A queue has this shape; FileQueue of the node sub-export is a durable one.

import { Overflow } from "../errors.js";

/** Keeps events until the service has them, in their order. Lost with the process. */
export class MemoryQueue {
  #events = new Map();
  #next = 1;

  /** `limit` is the largest number of events. */
  constructor({ limit = 10_000 } = {}) {
    this.limit = limit;
    this.durable = false;
  }

  get size() {
    return this.#events.size;
  }

  /** Adds a signed event. Resolves to its number when it is kept. Throws Overflow. */
  async add(event) {
    if (this.#events.size >= this.limit) throw new Overflow(this.limit);
    const number = this.#next++;
    this.#events.set(number, event);
    return number;
  }

  /** Forgets events by number. */
  async remove(numbers) {
    for (const n of numbers) this.#events.delete(n);
  }

  /** Resolves to what was kept before this process: pairs of number and event. */
  async load() {
    return [];
  }

  async close() {}
}
