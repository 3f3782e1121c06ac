// What is known of each guarded act. A journal has this shape; FileJournal of the node sub-export is a durable one.

/** Keeps acts in memory. It is lost with the process, and so is the promise of at most once. */
export class MemoryJournal {
  #acts = new Map();

  /** Resolves to the stored act of a key, undefined for none. */
  async load(key) {
    const text = this.#acts.get(key);
    return text === undefined ? undefined : JSON.parse(text);
  }

  /** Stores an act. It is durable when the promise resolves, as far as the journal is. */
  async store(act) {
    this.#acts.set(act.key, JSON.stringify(act));
  }

  /** Forgets an act that has no effect any more. */
  async remove(key) {
    this.#acts.delete(key);
  }

  /** Resolves to all keys. */
  async keys() {
    return [...this.#acts.keys()];
  }
}
