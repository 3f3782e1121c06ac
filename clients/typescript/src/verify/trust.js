// What a reader trusts: a pinned key, a policy, a saved list of keys.

import { Malformed } from "../errors.js";
import { openCheckpoint, parseLogKey } from "../log/note.js";
import { Policy, instant } from "../log/policy.js";
import { unknownSigners } from "../log/tree.js";
import { parseKeys } from "./bundle.js";
import { namesKey } from "./check.js";
import { addAccepted, signedSize } from "./knownkeys.js";

/**
 * A reader's keys and policy. `given` has key (vkey), policy (text or bytes), keys (text or bytes), now (ms), toolKeys (vkeys), and
 * accepted: the keys that a log stated under a known key (keystatement.js).
 */
export class Trust {
  constructor(given = {}) {
    this.now = given.now ?? Date.now();
    this.specified = given.key !== undefined || given.policy !== undefined || given.keys !== undefined;
    this.policy = given.policy === undefined ? undefined : new Policy(given.policy);
    this.keys = this.policy ? this.policy.logs : [];
    if (given.key !== undefined) this.keys = [parseLogKey(given.key.trim())];
    this.toolKeys = (given.toolKeys ?? []).map((text) => parseLogKey(text.trim()));
    this.starts = new Map(); // sizes from which accepted keys sign, by vkey
    this.others = given.keys === undefined ? [] : this.#others(parseKeys(given.keys));
    for (const accepted of given.accepted ?? []) this.#accept(accepted);
  }

  /** Adds an accepted key. From then on, the key that vouched for it counts only for smaller trees. */
  #accept(accepted) {
    const all = addAccepted(this.#pinned, accepted);
    const current = all.filter((k) => k.to === undefined);
    this.others = [...this.others, ...all.filter((k) => k.to !== undefined)];
    this.keys = current.map((k) => k.key);
    this.starts = new Map(current.map((k) => [k.key.text, k.from]));
  }

  get #pinned() {
    return this.keys.map((key) => ({ key, from: this.starts.get(key.text) ?? 0n, to: undefined }));
  }

  /** Returns the keys of a log with the sizes of the trees that each signs, in the form of knownkeys.js. */
  keysOf(origin) {
    return [...this.#pinned, ...this.others].filter((k) => k.key.name === origin);
  }

  #others(listed) {
    const trusted = listed.find((k) => this.keys.some((own) => own.text === k.key.text));
    if (!trusted) throw new Malformed("keys: the list does not hold the key that you trust");
    if (listed.some((k) => k.key.name !== trusted.key.name)) throw new Malformed("keys: the list has keys of several logs");
    return listed;
  }

  /** All given keys, for trees of any size. */
  get known() {
    return [...this.keys, ...this.others.map((k) => k.key)];
  }

  get witnesses() {
    return this.policy ? [...this.policy.witnesses.values()] : [];
  }

  /** Returns options of check with a trusted key that the bundle names, or else a trusted key of its log. */
  options(bundle) {
    const options = { retired: this.others, witnesses: this.witnesses, now: this.now, key: undefined };
    for (const key of this.keys) {
      if (namesKey(bundle, key)) return { ...options, key };
      if (!options.key || options.key.name !== bundle.origin) options.key = key;
    }
    return options;
  }

  /**
   * Resolves to the checkpoint, opened with the key of its log that signed it. If only other keys signed, the error
   * lists them as `unknown`.
   */
  async open(note, size) {
    const keys = [...this.keys];
    for (const k of this.others) {
      if (signedSize(k, size) && !keys.some((own) => own.text === k.key.text)) keys.push(k.key);
    }
    let why;
    for (const key of keys) {
      try {
        return await openCheckpoint(note, key);
      } catch (error) {
        if (!error.signature) throw error;
        why = error;
      }
    }
    throw Object.assign(why, { unknown: unknownSigners(note, this.known) });
  }

  /** Resolves to whether enough witnesses cosigned; undefined unless the policy asks for any. */
  async quorum(note) {
    if (!this.policy?.asksForWitnesses) return undefined;
    return this.policy.isReached(await this.policy.cosignatures(note));
  }

  /** Resolves to the time by which a quorum had cosigned; undefined if the cosignatures prove none. */
  async quorumTime(note) {
    const by = this.policy && this.policy.times(await this.policy.cosignatures(note), this.now).by;
    return by === undefined ? undefined : instant(by);
  }
}
