// A strict JSON parser: one value in UTF-8 without a byte order mark, no duplicate member, no lone surrogate, at most
// 64 levels, and the number rule of number.js. JSON.parse accepts more.

import { InvalidValue } from "../errors.js";
import { fromUTF8 } from "../bytes.js";
import { readNumber } from "./number.js";

/** The maximum nesting. The outermost object or list is level 1. */
export const maxDepth = 64;

const plain = /[^"\\\u0000-\u001f]*/y;
const space = /[ \t\n\r]*/y;
const escapes = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Reports whether a text has half of a surrogate pair. */
export function hasLoneSurrogate(text) {
  return !text.isWellFormed();
}

/** Returns a JSON Pointer (RFC 6901). */
export function pointer(path) {
  return path.map((p) => "/" + String(p).replaceAll("~", "~0").replaceAll("/", "~1")).join("");
}

/**
 * Parses one JSON value from a text or from UTF-8 bytes. Objects have no prototype, so no member name is special.
 * Throws InvalidValue with the path of the nearest member.
 */
export function parse(source) {
  return parseWith(source, readNumber);
}

/** Parses as `parse` does, but reads numbers by `read(text, at)`, which returns {value, length, why} as readNumber. */
export function parseWith(source, read) {
  const p = new Parser(typeof source === "string" ? source : fromUTF8(source), read);
  const value = p.value(1);
  p.skip();
  if (p.at < p.text.length) p.fail("is followed by more data");
  return value;
}

class Parser {
  constructor(text, read) {
    this.text = text;
    this.read = read;
    this.at = 0;
    this.path = [];
  }

  fail(why) {
    throw new InvalidValue(pointer(this.path), why);
  }

  skip() {
    space.lastIndex = this.at;
    space.exec(this.text);
    this.at = space.lastIndex;
    return this.text[this.at];
  }

  value(depth) {
    const c = this.skip();
    switch (c) {
      case '"':
        return this.string();
      case "{":
        return this.object(depth);
      case "[":
        return this.list(depth);
      case "t":
        return this.word("true", true);
      case "f":
        return this.word("false", false);
      case "n":
        return this.word("null", null);
    }
    return this.number();
  }

  word(word, value) {
    if (!this.text.startsWith(word, this.at)) this.fail("is not valid JSON");
    this.at += word.length;
    return value;
  }

  number() {
    const { value, length, why } = this.read(this.text, this.at);
    if (length === 0) this.fail("is not valid JSON");
    if (why) this.fail(why);
    this.at += length;
    return value;
  }

  string() {
    let out = "";
    for (this.at++; ; ) {
      plain.lastIndex = this.at;
      out += plain.exec(this.text)[0];
      this.at = plain.lastIndex;
      const c = this.text[this.at];
      if (c === '"') break;
      if (c !== "\\") this.fail("is not valid JSON");
      out += this.escape();
    }
    this.at++;
    if (!out.isWellFormed()) this.fail("has half of a surrogate pair: send whole characters");
    return out;
  }

  escape() {
    const c = this.text[this.at + 1];
    if (c === "u") {
      const digits = this.text.slice(this.at + 2, this.at + 6);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.fail("is not valid JSON");
      this.at += 6;
      return this.pair(parseInt(digits, 16));
    }
    if (c === undefined || !Object.hasOwn(escapes, c)) this.fail("is not valid JSON");
    this.at += 2;
    return escapes[c];
  }

  /** An escaped surrogate is accepted only with an escaped partner. */
  pair(unit) {
    if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit);
    const low = /^\\u([dD][c-fC-F][0-9a-fA-F]{2})/.exec(this.text.slice(this.at, this.at + 6));
    if (unit > 0xdbff || !low) this.fail("has half of a surrogate pair: send whole characters");
    this.at += 6;
    return String.fromCharCode(unit, parseInt(low[1], 16));
  }

  list(depth) {
    if (depth > maxDepth) this.fail("is nested deeper than 64 levels");
    const out = [];
    this.at++;
    if (this.skip() === "]") {
      this.at++;
      return out;
    }
    for (;;) {
      this.path.push(out.length);
      out.push(this.value(depth + 1));
      this.path.pop();
      if (this.end("]")) return out;
    }
  }

  object(depth) {
    if (depth > maxDepth) this.fail("is nested deeper than 64 levels");
    const out = Object.create(null);
    this.at++;
    if (this.skip() === "}") {
      this.at++;
      return out;
    }
    for (;;) {
      this.member(out, depth);
      if (this.end("}")) return out;
    }
  }

  member(out, depth) {
    if (this.skip() !== '"') this.fail("is not valid JSON");
    const name = this.string();
    this.path.push(name);
    if (name in out) this.fail("is there twice");
    if (this.skip() !== ":") this.fail("is not valid JSON");
    this.at++;
    out[name] = this.value(depth + 1);
    this.path.pop();
  }

  end(close) {
    const c = this.skip();
    if (c !== "," && c !== close) this.fail("is not valid JSON");
    this.at++;
    return c === close;
  }
}
