// Canonical JSON (RFC 8785) of JavaScript values. Values that JSON.stringify would silently drop or change are rejected
// by name, because a signed text must mean what the caller meant.

import { InvalidValue } from "../errors.js";
import { maxDepth, parse, pointer } from "./parse.js";

/** A converter returns this to omit a member. */
export const OMIT = Symbol("omit");

/**
 * Returns the canonical JSON of a value. Throws InvalidValue with the path of the first rejected value: integers beyond
 * 2^53 - 1, NaN, infinities, lone surrogates, undefined, functions, symbols, bigints, instances of classes (Date, Map,
 * Set, bytes), cycles, and nesting beyond 64 levels.
 *
 * `convert(value, path)` is called for each value that would be rejected. It returns a replacement (which is checked
 * again), OMIT to omit an object's member, or undefined to reject the value.
 */
export function canonicalize(value, { convert } = {}) {
  return new Writer(convert, false).write(value);
}

/** Returns the canonical JSON of a JSON text, by the number rule for texts. Throws InvalidValue. */
export function canonicalizeText(source) {
  return rewrite(parse(source));
}

/** Writes a value from parse, which checked its numbers as texts. */
export function rewrite(value) {
  return new Writer(undefined, true).write(value);
}

/**
 * Writes a value as canonicalize does, except that `exact(value, path)` returns the text of values that are rejected and
 * not converted, or undefined.
 */
export function writeExact(value, convert, exact) {
  return new Writer(convert, false, exact).write(value);
}

/** Returns the path of a member of the innermost open object or list. */
function namesTo(open, name) {
  const path = [];
  for (let inner = open; inner; inner = inner.outer) {
    path.unshift(name);
    name = inner.name;
  }
  return path;
}

function pathOf(open, name) {
  return pointer(namesTo(open, name));
}

class Writer {
  constructor(convert, parsed, exact) {
    this.convert = convert;
    this.parsed = parsed;
    this.exact = exact;
  }

  /** Writes the member `name` of the innermost open object or list: {value, name, outer, depth}; none for the whole value. */
  write(value, open, name) {
    const written = this.scalar(value);
    if (written !== undefined) return written;
    const why = flawOf(value, open);
    if (why) return this.converted(value, open, name, why);
    const own = { value, name, outer: open, depth: open ? open.depth + 1 : 1 };
    return Array.isArray(value) ? this.list(value, own) : this.object(value, own);
  }

  /** Returns the text of a valid scalar, otherwise undefined. */
  scalar(value) {
    if (typeof value === "string") return value.isWellFormed() ? JSON.stringify(value) : undefined;
    if (value === null || typeof value === "boolean") return String(value);
    if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
    if (!this.parsed && Number.isInteger(value) && !Number.isSafeInteger(value)) return undefined;
    return value === 0 ? "0" : String(value);
  }

  converted(value, open, name, why) {
    const path = pathOf(open, name);
    const other = this.convert?.(value, path);
    if (other === undefined) {
      const text = this.exact?.(value, namesTo(open, name));
      if (text === undefined) throw new InvalidValue(path, why);
      return text;
    }
    if (other === OMIT) return OMIT;
    const { convert } = this;
    this.convert = undefined; // so that a converter that returns its argument cannot loop
    const out = this.write(other, open, name);
    this.convert = convert;
    return out;
  }

  list(value, own) {
    let out = "[";
    for (let i = 0; i < value.length; i++) {
      const part = this.write(value[i], own, i);
      if (part === OMIT) throw new InvalidValue(pathOf(own, i), "is in a list, which keeps its length");
      out += i === 0 ? part : "," + part;
    }
    return out + "]";
  }

  object(value, own) {
    let out = "{";
    for (const name of Object.keys(value).sort()) {
      if (!name.isWellFormed()) throw new InvalidValue(pathOf(own, name), "has a name with half of a surrogate pair");
      const part = this.write(value[name], own, name);
      if (part !== OMIT) out += (out === "{" ? "" : ",") + JSON.stringify(name) + ":" + part;
    }
    return out + "}";
  }
}

/** Returns why a value that is not a valid scalar is rejected, or undefined for a valid list or object. */
function flawOf(value, open) {
  if (typeof value !== "object") return scalarFlaw(value);
  for (let outer = open; outer; outer = outer.outer) {
    if (outer.value === value) return "is part of itself: cycles can't be written";
  }
  if (open?.depth >= maxDepth) return "is nested deeper than 64 levels";
  if (Array.isArray(value)) return undefined;
  const proto = Object.getPrototypeOf(value);
  if (proto !== null && Object.getPrototypeOf(proto) !== null) return instanceFlaw(value);
  if (Object.getOwnPropertySymbols(value).length > 0) return "has a member named by a symbol";
  return undefined;
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
