// A queue of signed events in memory. Queues have this interface; FileQueue of the node sub-export is a durable one.

import { Overflow } from "../errors.js";

/** Keeps events in order until the service has stored them. They are lost if the process ends. */
export class MemoryQueue {
  #events = new Map();
  #next = 1;

  /** `limit` is the maximum number of events. */
  constructor({ limit = 10_000 } = {}) {
    this.limit = limit;
    this.durable = false;
  }

  get size() {
    return this.#events.size;
  }

  /** Adds a signed event. Resolves to its number when it is in the queue. Throws Overflow. */
  async add(event) {
    if (this.#events.size >= this.limit) throw new Overflow(this.limit);
    const number = this.#next++;
    this.#events.set(number, event);
    return number;
  }

  /** Removes events by number. */
  async remove(numbers) {
    for (const n of numbers) this.#events.delete(n);
  }

  /** Resolves to the events of earlier processes: pairs of number and event. */
  async load() {
    return [];
  }

  async close() {}
}
