// A durable queue: one file with a line for each added and each removed event.

import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { LedgerError, Overflow, printable } from "../errors.js";
import { appendDurably, lockFolder, replaceFile } from "./files.js";

/**
 * Keeps events in a folder until the service has stored them, even after a crash. Only one process at a time can use
 * it. Events that the service has refused are in refused.ndjson in the folder, with the reason.
 */
export class FileQueue {
  durable = true;
  #path;
  #refused;
  #file;
  #unlock;
  #events = new Map();
  #next = 1;
  #last = Promise.resolve();
  #lastRefused = Promise.resolve();
  #batch;
  #torn = false;
  #unwritten = "";
  #garbage = 0;

  constructor(folder, unlock, limit) {
    this.folder = folder;
    this.#path = join(folder, "events.ndjson");
    this.#refused = join(folder, "refused.ndjson");
    this.#unlock = unlock;
    this.limit = limit;
  }

  /** Opens the queue in a folder, which is created if missing. `limit` is the maximum number of events. */
  static async open(folder, { limit = 10_000 } = {}) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const unlock = await lockFolder(join(folder, "lock"));
    const queue = new FileQueue(folder, unlock, limit);
    try {
      await queue.#read();
      await queue.#rewrite();
    } catch (why) {
      await unlock();
      throw why;
    }
    return queue;
  }

  get size() {
    return this.#events.size;
  }

  async #read() {
    const text = await readFile(this.#path, "utf8").catch((why) => {
      if (why.code === "ENOENT") return "";
      throw why;
    });
    const lines = text.split("\n").slice(0, -1); // an incomplete line was never acknowledged
    for (const line of lines) {
      let entry;
      try {
        entry = JSON.parse(line);
      } catch {
        throw new LedgerError("the queue's file is damaged");
      }
      if (entry.removed) for (const n of entry.removed) this.#events.delete(n);
      else this.#events.set(entry.n, entry.event);
      this.#next = Math.max(this.#next, (entry.n ?? 0) + 1);
    }
  }

  async #rewrite() {
    await this.#file?.close();
    const lines = [...this.#events].map(([n, event]) => JSON.stringify({ n, event }) + "\n");
    await replaceFile(this.#path, lines.join(""));
    this.#file = await open(this.#path, "a");
    this.#garbage = 0;
    this.#torn = false;
  }

  /** Adds a signed event. Resolves to its number when it is on disk. Throws Overflow. */
  async add(event) {
    if (this.#events.size >= this.limit) throw new Overflow(this.limit);
    const n = this.#next++;
    this.#events.set(n, event);
    try {
      await this.#append({ n, event });
    } catch (why) {
      this.#events.delete(n);
      throw why;
    }
    return n;
  }

  /** Removes events by number. */
  async remove(removed) {
    if (removed.length === 0) return;
    for (const n of removed) this.#events.delete(n);
    this.#garbage += removed.length;
    await this.#append({ removed });
  }

  /** Writes refused events to the file of refused events: pairs of event and Refused. `aps send` reads this file. */
  async refuse(refused) {
    const lines = refused.map(([event, { status, code, body }]) => {
      const reason = JSON.stringify({ status, code, message: printable(body.error) });
      return `${reason.slice(0, -1)},"event":${event.text}}\n`;
    });
    const append = () => appendDurably(this.#refused, lines.join(""));
    this.#lastRefused = this.#lastRefused.then(append, append);
    await this.#lastRefused;
  }

  /** Writes pending lines with one sync. Writers that arrive during a sync share the next one. */
  #append(entry) {
    this.#unwritten += JSON.stringify(entry) + "\n";
    this.#batch ??= this.#last
      .catch(() => {})
      .then(() => {
        this.#batch = undefined;
        return this.#flush();
      });
    this.#last = this.#batch;
    return this.#batch;
  }

  async #flush() {
    const text = this.#unwritten;
    this.#unwritten = "";
    if (this.#torn || (this.#garbage > 1000 && this.#garbage > 4 * this.#events.size)) return this.#rewrite();
    try {
      await this.#file.appendFile(text);
      await this.#file.datasync();
    } catch (why) {
      this.#torn = true; // part of the text may have been written: the next write replaces the file
      throw why;
    }
  }

  /** Resolves to the events that the folder contained when it was opened. */
  async load() {
    return [...this.#events];
  }

  async close() {
    await this.#last.catch(() => {});
    await this.#file.close();
    await this.#unlock();
  }
}
