// C2SP tlog-policy: the logs and witnesses that a reader relies on, and the quorum.

import { Malformed } from "../errors.js";
import { checkCosigned, parseLogKey, parseWitnessKey } from "./note.js";
import { hex, utf8 } from "../bytes.js";

const maxText = 128 << 10; // bytes
const maxItems = 100; // logs, witnesses, groups, each

/**
 * How far the time of a cosignature may be ahead of the reader's clock, in seconds. A later time proves nothing about
 * when.
 */
const maxAhead = 300n;

/** Reports whether the time of a cosignature (seconds, bigint) is too far ahead of `now` (milliseconds) to be used. */
export function isAhead(time, now) {
  return time * 1000n > BigInt(Math.floor(now)) + maxAhead * 1000n;
}

/** Formats a time in seconds for reports. */
export function instant(seconds) {
  return new Date(Number(seconds) * 1000).toISOString();
}

/** Formats a cosignature for reports. `in_future` is present only if true; without `now` it is not determined. */
export function named(name, time, now) {
  const cosignature = { name, time: instant(time) };
  if (now !== undefined && isAhead(time, now)) cosignature.in_future = true;
  return cosignature;
}

/** A reader's policy. `logs` and `witnesses` are keys, witnesses by name. */
export class Policy {
  logs = [];
  witnesses = new Map(); // name to key
  groups = new Map(); // name to {k, members}
  quorum = "";
  #free = new Map(); // defined names; the value is whether the name is in no group yet

  /** Parses the text of a policy, or its bytes: only ASCII is significant. Throws Malformed. */
  constructor(source) {
    const bytes = typeof source === "string" ? utf8(source) : source;
    let text = "";
    for (const b of bytes) text += String.fromCharCode(b);
    // eslint-disable-next-line no-control-regex
    if (bytes.length > maxText || /[\u0000-\u0008\u000b-\u001f\u007f]/.test(text) || !text.endsWith("\n")) {
      throw new Malformed("parse policy: size, characters or line end");
    }
    text.split("\n").forEach((line, i) => this.#line(line.split(/[ \t]+/).filter((item) => item !== ""), i + 1));
    if (this.quorum === "") throw new Malformed("parse policy: no quorum");
  }

  #line(items, number) {
    if (items.length === 0 || items[0].startsWith("#")) return;
    const [keyword, ...rest] = items;
    const bad = new Malformed(`parse policy: line ${number}`);
    if (keyword === "log" && (rest.length === 1 || rest.length === 2)) this.#log(rest[0], bad);
    else if (keyword === "witness" && (rest.length === 2 || rest.length === 3)) this.#witness(rest[0], rest[1], bad);
    else if (keyword === "group" && rest.length >= 3) this.#group(rest, bad);
    else if (keyword === "quorum" && rest.length === 1 && this.quorum === "") this.#quorum(rest[0], bad);
    else throw bad;
  }

  #log(vkey, bad) {
    const key = parseLogKey(fromLatin1(vkey));
    const twice = this.logs.some((l) => hex(l.raw) === hex(key.raw));
    if (twice || this.logs.length === maxItems) throw bad;
    this.logs.push(key);
  }

  #witness(name, vkey, bad) {
    const key = parseWitnessKey(fromLatin1(vkey));
    const twice = [...this.witnesses.values()].some((w) => hex(w.raw) === hex(key.raw));
    if (twice || this.witnesses.size === maxItems) throw bad;
    this.#define(name, bad);
    this.witnesses.set(name, key);
  }

  #group([name, threshold, ...members], bad) {
    const k = { any: 1, all: members.length }[threshold] ?? (/^[1-9][0-9]{0,3}$/.test(threshold) ? Number(threshold) : 0);
    if (k < 1 || k > members.length || this.groups.size === maxItems) throw bad;
    for (const member of members) {
      if (!this.#free.get(member)) throw bad;
      this.#free.set(member, false);
    }
    this.#define(name, bad);
    this.groups.set(name, { k, members });
  }

  #define(name, bad) {
    if (name === "none" || this.#free.has(name)) throw bad;
    this.#free.set(name, true);
  }

  #quorum(name, bad) {
    if (name !== "none" && !this.#free.has(name)) throw bad;
    this.quorum = name;
  }

  /** Resolves to the valid cosignatures of the policy's witnesses: key, name in the policy, time in seconds. */
  async cosignatures(note) {
    const all = [];
    for (const [name, key] of this.witnesses) {
      try {
        all.push({ witness: name, key, time: await checkCosigned(note, key) });
      } catch {
        // A line that is not the witness's counts as absent.
      }
    }
    return all;
  }

  /** Whether the quorum requires any cosignature. */
  get asksForWitnesses() {
    return this.quorum !== "none";
  }

  /** Reports whether cosignatures reach the quorum. */
  isReached(cosignatures) {
    const by = new Set(cosignatures.map((c) => c.witness));
    const reached = (name) => {
      const group = this.groups.get(name);
      return group ? group.members.filter(reached).length >= group.k : by.has(name);
    };
    return !this.asksForWitnesses || reached(this.quorum);
  }

  /**
   * Returns the times, in seconds, that cosignatures prove at the time `now` (milliseconds), even if a minority of
   * witnesses has wrong clocks: `by`, the earliest time by which a quorum had cosigned, and `since`, the latest time
   * since which a quorum has. Both are undefined if the cosignatures that are not from the future reach no quorum; the
   * others are `ahead`.
   */
  times(cosignatures, now) {
    const ahead = cosignatures.filter((c) => isAhead(c.time, now));
    const usable = cosignatures.filter((c) => !isAhead(c.time, now)).sort((a, b) => (a.time < b.time ? -1 : 1));
    if (!this.asksForWitnesses || !this.isReached(usable)) return { by: undefined, since: undefined, ahead };
    const by = this.#completing(usable);
    return { by, since: this.#completing(usable.reverse()), ahead };
  }

  /** Returns the time of the cosignature that completes the quorum. */
  #completing(ordered) {
    return ordered.find((_, i) => this.isReached(ordered.slice(0, i + 1))).time;
  }
}

function fromLatin1(text) {
  const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Malformed("parse policy: key");
  }
}
