// A durable journal of guarded acts with one file per act.

import { mkdir, readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { sha256hex } from "../crypto/sha256.js";
import { lockFolder, removeFile, replaceFile } from "./files.js";

/**
 * Stores acts in a folder of mode 0700, because acts contain payloads and outputs. Only one process at a time can use
 * it.
 */
export class FileJournal {
  #folder;
  #unlock;

  constructor(folder, unlock) {
    this.#folder = folder;
    this.#unlock = unlock;
  }

  /** Opens the journal in a folder, which is created if missing. Ended acts are forgotten after `keepDays`. */
  static async open(folder, { keepDays = 7 } = {}) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const journal = new FileJournal(folder, await lockFolder(join(folder, "lock")));
    await journal.#forgetEnded(Date.now() - keepDays * 86_400_000);
    return journal;
  }

  /**
   * Removes acts that ended before a given time. An interrupted act stays, because without its file it would run again.
   */
  async #forgetEnded(before) {
    for (const key of await this.keys()) {
      const { mtimeMs } = await stat(this.#path(key));
      const act = await this.load(key);
      if (act.stage === "done" && act.told && act.status !== "unknown" && mtimeMs < before) await this.remove(key);
    }
  }

  #path(key) {
    return join(this.#folder, sha256hex(key) + ".json");
  }

  async load(key) {
    return read(this.#path(key));
  }

  async store(act) {
    await replaceFile(this.#path(act.key), JSON.stringify(act));
  }

  async remove(key) {
    await removeFile(this.#path(key));
  }

  async keys() {
    const names = (await readdir(this.#folder)).filter((n) => n.endsWith(".json"));
    const acts = await Promise.all(names.map((n) => read(join(this.#folder, n))));
    return acts.filter(Boolean).map((act) => act.key);
  }

  async close() {
    await this.#unlock();
  }
}

async function read(path) {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch (why) {
    if (why.code === "ENOENT") return undefined;
    throw why;
  }
}
