// The state of each guarded act. Journals have this interface; FileJournal of the node sub-export is a durable one.

/** Keeps acts in memory. They are lost when the process ends, and with them the promise of at most once. */
export class MemoryJournal {
  #acts = new Map();

  /** Resolves to the stored act of a key, or undefined. */
  async load(key) {
    const text = this.#acts.get(key);
    return text === undefined ? undefined : JSON.parse(text);
  }

  /** Stores an act. If the journal is durable, so is the act once the promise resolves. */
  async store(act) {
    this.#acts.set(act.key, JSON.stringify(act));
  }

  /** Forgets an act that no longer has an effect. */
  async remove(key) {
    this.#acts.delete(key);
  }

  /** Resolves to all keys. */
  async keys() {
    return [...this.#acts.keys()];
  }
}
