// Values with numbers that canonical JSON (RFC 8785) cannot carry, such as 64-bit integers: the exact form that a tool
// receives, and the recorded form that a payload contains. The rules are in docs/spec/signing.md, section Exact numbers.

import { InvalidValue } from "../errors.js";
import { readExact } from "./number.js";
import { maxDepth, parseWith, pointer } from "./parse.js";
import { canonicalize, rewrite, writeExact } from "./write.js";

/** The member that marks a payload in recorded form. */
export const taggedMember = "$tagged";

const tooLong = "has more than 128 significant digits or an exponent beyond 9999: send it as a string";

/** A number that neither a double nor a bigint holds, such as 0.12345678901234567. */
export class ExactNumber {
  #literal;

  /** `literal` is a JSON number of at most 128 significant digits. */
  constructor(literal) {
    const given = String(literal);
    const { text, length } = readExact(given, 0);
    if (length === 0 || length !== given.length) throw new InvalidValue("", "is not a JSON number");
    if (text === undefined) throw new InvalidValue("", tooLong);
    this.#literal = text;
  }

  /** The canonical literal. */
  toString() {
    return this.#literal;
  }

  toJSON() {
    throw new InvalidValue("", "is an exact number, which JSON.stringify would change: use toString()");
  }
}

/** Reads the number at `at` for parseExact. */
function readValue(source, at) {
  const { text, plain, length } = readExact(source, at);
  if (length === 0) return { length };
  if (text === undefined) return { length, why: tooLong };
  if (plain !== undefined && (Number.isSafeInteger(plain) || !Number.isInteger(plain))) return { value: plain, length };
  return { value: /^-?[0-9]+$/.test(text) ? BigInt(text) : new ExactNumber(text), length };
}

/**
 * Parses one JSON value like `parse`, but keeps the exact values of numbers: integers beyond 2^53 - 1 are bigints, other
 * numbers that a double cannot hold are ExactNumbers. Throws InvalidValue.
 */
export function parseExact(source) {
  return parseWith(source, readValue);
}

/** Returns the exact form of a value with bigints and ExactNumbers. Options and errors are those of canonicalize. */
export function canonicalizeExact(value, { convert } = {}) {
  return writeExact(value, convert, exactText);
}

/** Returns the text of a bigint or an ExactNumber in exact form, undefined for any other value. */
function exactText(value, path) {
  if (typeof value !== "bigint" && !(value instanceof ExactNumber)) return undefined;
  const { text, plain } = readExact(String(value), 0);
  if (text === undefined) throw new InvalidValue(pointer(path), tooLong);
  return plain === undefined ? text : rewrite(plain);
}

/**
 * Returns the members of an object in exact form, by name, as texts in recorded form, with the marker if one of them
 * differs from its exact form. `only` lists the names that count; all without it. Throws InvalidValue if an event can't
 * contain the members.
 */
export function recordMembers(exact, only) {
  const value = parseExact(exact);
  if (Object.hasOwn(value, taggedMember)) throw new InvalidValue(pointer([taggedMember]), "is a member of the guard's own: give it another name");
  const members = {};
  let tagged = false;
  for (const name of Object.keys(value).filter((n) => only?.includes(n) ?? true)) {
    const recorder = new Recorder([name]);
    Object.defineProperty(members, name, { value: recorder.write(value[name], 3), enumerable: true });
    tagged ||= recorder.tagged;
  }
  return tagged ? Object.assign(members, { [taggedMember]: "true" }) : members;
}

class Recorder {
  tagged = false;

  constructor(path) {
    this.path = path;
  }

  /** Returns the recorded form of a value of parseExact. An object or a list would be at level `depth` of the event. */
  write(value, depth) {
    if (typeof value !== "object" && typeof value !== "bigint") return rewrite(value);
    if (value === null) return "null";
    const number = exactText(value, this.path);
    if (number !== undefined && readExact(number, 0).plain !== undefined) return number;
    if (depth > maxDepth) throw new InvalidValue(pointer(this.path), "is nested deeper than 64 levels");
    if (number !== undefined) return this.#tag("$number", JSON.stringify(number));
    if (Array.isArray(value)) return `[${value.map((v) => this.write(v, depth + 1)).join()}]`;
    const names = Object.keys(value).sort();
    const escaped = names.length === 1 && (names[0] === "$number" || names[0] === "$object");
    const inner = depth + (escaped ? 1 : 0);
    if (inner > maxDepth) throw new InvalidValue(pointer(this.path), "is nested deeper than 64 levels");
    const text = `{${names.map((n) => `${JSON.stringify(n)}:${this.write(value[n], inner + 1)}`).join()}}`;
    return escaped ? this.#tag("$object", text) : text;
  }

  #tag(name, text) {
    this.tagged = true;
    return `{"${name}":${text}}`;
  }
}

/** Returns the text of a question: members in canonical JSON, and its payload in recorded form. */
export function questionText(members, payload, convert) {
  const exact = canonicalizeExact(payload, { convert });
  if (!exact.startsWith("{")) throw new InvalidValue("/payload", "is not an object");
  const texts = Object.entries(members).map(([name, value]) => [name, canonicalize(value)]);
  return payloadText({ ...Object.fromEntries(texts), payload: payloadText(recordMembers(exact)) });
}

/** Returns the object with members that are texts of JSON, in canonical order. */
export function payloadText(members) {
  const names = Object.keys(members).sort();
  return `{${names.map((n) => `${JSON.stringify(n)}:${members[n]}`).join()}}`;
}
