// Canonical JSON (RFC 8785) of JavaScript values. What JSON.stringify drops or changes silently is refused by
// name, because a signed text must say what the caller meant.

import { InvalidValue } from "../errors.js";
import { hasLoneSurrogate, maxDepth, parse, pointer } from "./parse.js";

/** A converter returns this to leave a member out. */
export const OMIT = Symbol("omit");

/**
 * Returns the canonical JSON of a value. Throws InvalidValue with the path of the first value that is refused:
 * integers beyond 2^53 - 1, NaN, infinities, lone surrogates, undefined, functions, symbols, bigints, instances
 * of classes (Date, Map, Set, bytes), cycles, and nesting beyond 64 levels.
 *
 * `convert(value, path)` is asked about each value that is refused. It returns what stands for it (which is
 * checked again), OMIT to leave out an object's member, or undefined to refuse it.
 */
export function canonicalize(value, { convert } = {}) {
  return new Writer(convert, false).write(value, 1);
}

/** Returns the canonical JSON of a JSON text, by the number rule for texts. Throws InvalidValue. */
export function canonicalizeText(source) {
  return rewrite(parse(source));
}

/** Writes a value of parse, whose numbers were checked by their text. */
export function rewrite(value) {
  return new Writer(undefined, true).write(value, 1);
}

class Writer {
  constructor(convert, parsed) {
    this.convert = convert;
    this.parsed = parsed;
    this.path = [];
    this.open = new Set();
  }

  write(value, depth) {
    const written = this.scalar(value);
    if (written !== undefined) return written;
    const why = this.flaw(value, depth);
    if (why) return this.converted(value, depth, why);
    this.open.add(value);
    const out = Array.isArray(value) ? this.list(value, depth) : this.object(value, depth);
    this.open.delete(value);
    return out;
  }

  /** Returns the text of a good scalar, else undefined. */
  scalar(value) {
    if (value === null || value === true || value === false) return String(value);
    if (typeof value === "string") return hasLoneSurrogate(value) ? undefined : JSON.stringify(value);
    if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
    if (!this.parsed && Number.isInteger(value) && !Number.isSafeInteger(value)) return undefined;
    return value === 0 ? "0" : String(value);
  }

  /** Returns why a value that is no good scalar is refused, undefined for a good list or object. */
  flaw(value, depth) {
    if (typeof value !== "object") return scalarFlaw(value);
    if (this.open.has(value)) return "is part of itself: cycles can't be written";
    if (depth > maxDepth) return "is nested deeper than 64 levels";
    if (Array.isArray(value)) return undefined;
    const proto = Object.getPrototypeOf(value);
    if (proto !== null && Object.getPrototypeOf(proto) !== null) return instanceFlaw(value);
    if (Object.getOwnPropertySymbols(value).length > 0) return "has a member named by a symbol";
    return undefined;
  }

  converted(value, depth, why) {
    const path = pointer(this.path);
    const other = this.convert?.(value, path);
    if (other === undefined) throw new InvalidValue(path, why);
    if (other === OMIT) return OMIT;
    const { convert } = this;
    this.convert = undefined; // so that a converter that returns its argument ends
    const out = this.write(other, depth);
    this.convert = convert;
    return out;
  }

  list(value, depth) {
    const parts = [];
    for (let i = 0; i < value.length; i++) {
      this.path.push(i);
      const part = this.write(value[i], depth + 1);
      if (part === OMIT) throw new InvalidValue(pointer(this.path), "is in a list, which keeps its length");
      parts.push(part);
      this.path.pop();
    }
    return "[" + parts.join(",") + "]";
  }

  object(value, depth) {
    const parts = [];
    for (const name of Object.keys(value).sort()) {
      this.path.push(name);
      if (hasLoneSurrogate(name)) throw new InvalidValue(pointer(this.path), "has a name with half of a surrogate pair");
      const part = this.write(value[name], depth + 1);
      if (part !== OMIT) parts.push(JSON.stringify(name) + ":" + part);
      this.path.pop();
    }
    return "{" + parts.join(",") + "}";
  }
}

function scalarFlaw(value) {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value)
        ? "is an integer beyond 2^53 - 1, which a double may have rounded: send it as a string"
        : `is ${value}, which JSON does not have`;
    case "string":
      return "has half of a surrogate pair: send whole characters";
    case "bigint":
      return "is a bigint: send it as a string";
    case "undefined":
      return "is undefined: leave the member out or send null";
  }
  return `is a ${typeof value}, which JSON does not have`;
}

function instanceFlaw(value) {
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  const name = tag !== "Object" ? tag : (value.constructor?.name ?? "a class");
  if (tag === "Date") return "is a Date: send its toISOString()";
  if (ArrayBuffer.isView(value) || tag === "ArrayBuffer") return `is bytes (${name}): send base64 or hex`;
  return `is an instance of ${name}: send a plain object, list or string`;
}
