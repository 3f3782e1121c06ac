// Canonical JSON of values: which values are rejected, at which path, and what converters may do.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { InvalidValue, OMIT, Signer, canonicalize, canonicalizeText } from "../src/index.js";
import { hex } from "../src/bytes.js";
import { eventDigest } from "../src/verify/documents.js";

function deep(levels) {
  return levels === 0 ? 1 : { a: deep(levels - 1) };
}

const cycle = { a: {} };
cycle.a.b = cycle;

test("values that JSON would change or drop are rejected with their path", () => {
  const refused = [
    ["integer beyond 2^53", { a: [1, { b: 9007199254740993 }] }, "/a/1/b"],
    ["2^53, which may be a rounded 2^53 + 1", 2 ** 53, ""],
    ["negative integer", { n: -(2 ** 60) }, "/n"],
    ["NaN", { n: NaN }, "/n"],
    ["infinity", { n: [Infinity] }, "/n/0"],
    ["minus infinity", -Infinity, ""],
    ["high surrogate", { "a/b": "\ud800" }, "/a~1b"],
    ["low surrogate", { "~": "\udc00x" }, "/~0"],
    ["surrogate in a name", { "\ud83d": 1 }, "/\ud83d"],
    ["Date", { at: new Date(0) }, "/at"],
    ["bytes", { b: new Uint8Array(1) }, "/b"],
    ["buffer", { b: new ArrayBuffer(1) }, "/b"],
    ["Map", { m: new Map() }, "/m"],
    ["Set", { s: new Set() }, "/s"],
    ["bigint", { n: 1n }, "/n"],
    ["undefined member", { a: { b: undefined } }, "/a/b"],
    ["hole", { a: [, 1] }, "/a/0"],
    ["function", { f() {} }, "/f"],
    ["symbol", { s: Symbol("x") }, "/s"],
    ["name that is a symbol", { a: { [Symbol("x")]: 1 } }, "/a"],
    ["instance of a class", { c: new (class Money {})() }, "/c"],
    ["boxed number", { n: new Number(1) }, "/n"],
    ["regular expression", { r: /x/ }, "/r"],
    ["promise", { p: Promise.resolve() }, "/p"],
    ["cycle", cycle, "/a/b"],
    ["65 levels", deep(65), "/a".repeat(64)],
  ];
  for (const [name, value, path] of refused) {
    assert.throws(() => canonicalize(value), (why) => why instanceof InvalidValue && why.path === path, name);
  }
});

test("valid values have one form", () => {
  const table = [
    [{ b: 10.0, a: [1e-7, -0, 1.5e20 / 1e10] }, '{"a":[1e-7,0,15000000000],"b":10}'],
    [{ "\u20ac": 1, "\r": 2, "\ud83d\ude00": 3, "\ufb33": 4, 1: 5 }, '{"\\r":2,"1":5,"€":1,"😀":3,"\ufb33":4}'],
    ['\u0000\b\t\n\f\r"\\/\u007f\u2028é', '"\\u0000\\b\\t\\n\\f\\r\\"\\\\/\u007f\u2028é"'],
    [Object.assign(Object.create(null), { x: null }), '{"x":null}'],
    [JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
    [deep(64), '{"a":'.repeat(64) + "1" + "}".repeat(64)],
    [Number.MAX_SAFE_INTEGER, "9007199254740991"],
    [1.7976931348623157e308 / 1e300, "179769313.48623157"],
  ];
  for (const [value, want] of table) assert.equal(canonicalize(value), want);
  const twice = { shared: 1 };
  assert.equal(canonicalize([twice, twice]), '[{"shared":1},{"shared":1}]');
});

/** The rules in their simplest form: [text] for a valid value, or [undefined, path] of the first refused one. */
function naive(value, path = [], open = []) {
  const refused = [undefined, path.map((p) => "/" + String(p).replaceAll("~", "~0").replaceAll("/", "~1")).join("")];
  if (value === null || typeof value === "boolean") return [`${value}`];
  if (typeof value === "string") return /\p{Surrogate}/u.test(value) ? refused : [JSON.stringify(value)];
  if (typeof value === "number") {
    const kept = Number.isFinite(value) && (!Number.isInteger(value) || Math.abs(value) <= Number.MAX_SAFE_INTEGER);
    return kept ? [JSON.stringify(value)] : refused;
  }
  if (typeof value !== "object" || open.includes(value) || open.length >= 64) return refused;
  const plain = Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value));
  if (!plain || (!Array.isArray(value) && Object.getOwnPropertySymbols(value).length > 0)) return refused;
  const parts = [];
  const names = Array.isArray(value) ? [...value.keys()] : Object.keys(value).sort();
  for (const name of names) {
    if (/\p{Surrogate}/u.test(String(name))) return naive(undefined, [...path, name]);
    const [text, bad] = naive(value[name], [...path, name], [...open, value]);
    if (text === undefined) return [undefined, bad];
    parts.push(Array.isArray(value) ? text : JSON.stringify(name) + ":" + text);
  }
  return [Array.isArray(value) ? `[${parts}]` : `{${parts}}`];
}

/** A random value, which is sometimes one that is refused. */
function randomValue(depth, outer) {
  const pick = (list) => list[Math.floor(Math.random() * list.length)];
  const names = ["b", "a", "", "é", "\u{1F600}", "\ufb33", "10", "9", "~/", '"', "__proto__", "constructor"];
  const odd = [undefined, NaN, -Infinity, 2 ** 53, 1n, Symbol("s"), () => 1, new Date(0), new Map(), new Uint8Array(1), "\ud800", /x/, outer];
  if (Math.random() < 0.015) return pick(odd);
  if (depth === 0 || Math.random() < 0.4) {
    const number = (Math.random() - 0.5) * 10 ** Math.floor(Math.random() * 30 - 12);
    return pick([null, true, false, 0, -0, 1, number, Math.trunc(number % 2 ** 52), "x".repeat(number & 7), "\u2028\u0007\\", pick(names)]);
  }
  const size = Math.floor(Math.random() * 5);
  if (Math.random() < 0.4) {
    const list = [];
    for (let i = 0; i < size; i++) list.push(randomValue(depth - 1, list));
    return list;
  }
  const object = Math.random() < 0.2 ? Object.create(null) : {};
  for (let i = 0; i < size; i++) {
    const name = Math.random() < 0.01 ? pick(["\udc00", Symbol("n")]) : pick(names);
    Object.defineProperty(object, name, { value: randomValue(depth - 1, object), enumerable: true, configurable: true, writable: true });
  }
  return object;
}

test("random values have the text, or are rejected at the path, of the plain rules", () => {
  const seen = { good: 0, refused: 0 };
  for (let i = 0; i < 20_000; i++) {
    const value = randomValue(4);
    const [text, path] = naive(value);
    let got;
    try {
      got = [canonicalize(value)];
    } catch (why) {
      assert.ok(why instanceof InvalidValue, why);
      got = [undefined, why.path];
    }
    assert.deepEqual(got, text === undefined ? [undefined, path] : [text]);
    seen[text === undefined ? "refused" : "good"]++;
    if (text !== undefined) assert.equal(canonicalizeText(text), text);
  }
  assert.ok(seen.good > 1000 && seen.refused > 1000, JSON.stringify(seen));
});

test("a converter replaces a value", () => {
  const convert = (v) => (v instanceof Date ? v.toISOString() : typeof v === "bigint" ? String(v) : v === undefined ? OMIT : undefined);
  assert.equal(canonicalize({ at: new Date(0), n: 2n ** 70n, u: undefined }, { convert }), '{"at":"1970-01-01T00:00:00.000Z","n":"1180591620717411303424"}');
  assert.throws(() => canonicalize({ m: new Map() }, { convert }), InvalidValue);
  assert.throws(() => canonicalize([undefined], { convert }), InvalidValue);
  assert.throws(() => canonicalize({ m: new Map() }, { convert: (v) => v }), InvalidValue);
});

test("texts follow the rule of the service", () => {
  const refused = ["", "{", "[1,]", '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', "9007199254740993", "18446744073709551616", "1e400", "1e-400",
    "0.123456789012345678", '"\\ud800"', '"\\ude00\\ud83d"', "\ufeff1", "01", "1.", "+1", "nul", "1 2", "'a'", '"\u0001"', "[".repeat(65) + "]".repeat(65)];
  for (const text of refused) assert.throws(() => canonicalizeText(text), InvalidValue, text);
  const table = { "1.0": "1", "-0": "0", "1E2": "100", "9007199254740992": "9007199254740992", "100000000000000000000": "100000000000000000000",
    "0e999999999999": "0", "1e21": "1e+21", '"\\u0041\\/"': '"A/"', ' {"b":1 ,\n"a":[ ]} ': '{"a":[],"b":1}' };
  for (const [text, want] of Object.entries(table)) assert.equal(canonicalizeText(text), want);
});

test("events are signed like the vectors of the contract", async () => {
  const file = JSON.parse(readFileSync(new URL("../../../event/testdata/aps1-signing.json", import.meta.url), "utf8"));
  for (const v of file.vectors) {
    const { organization_id: organization, agent_id: agent, key_id: keyId } = v.envelope;
    const signer = new Signer({ organization, agent, keyId }, file.private_key_b64);
    assert.equal(canonicalizeText(JSON.stringify(v.envelope)), v.jcs, v.name); // a vector has 1e21
    const digest = eventDigest(keyId, v.jcs);
    assert.equal(hex(digest), v.event_digest, v.name);
    assert.equal(await signer.signBytes(digest), v.sig_value_b64.digest, v.name);
  }
  assert.ok(file.vectors.length > 1);
});

test("a member named __proto__ is signed as it is", async () => {
  const signer = new Signer({ organization: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", agent: "agt_a", keyId: "key_a" }, new Uint8Array(32));
  for (const event of ['{"action_kind":"note","__proto__":{"payload":1}}', JSON.parse('{"action_kind":"note","__proto__":{"payload":1}}')]) {
    const { text } = await signer.sign(event);
    assert.ok(text.startsWith('{"__proto__":{"payload":1},"action_kind":"note",'), text);
    assert.match(text, /"payload":\{\}/);
  }
});

test("an event that the service would reject is not signed", async () => {
  const organization = "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11";
  const signer = new Signer({ organization, agent: "agt_a", keyId: "key_a" }, new Uint8Array(32));
  const good = { action_kind: "note" };
  const table = [
    [{}, /action_kind/],
    [{ action_kind: "Note" }, /action_kind/],
    [{ ...good, event_id: "ledger_1" }, /reserved/],
    [{ ...good, agent_id: "agt_b" }, /signer's/],
    [{ ...good, organization_id: "9d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11" }, /signer's/],
    [{ ...good, sig_alg: "none" }, /sig_alg/],
    [{ ...good, payload: [] }, /payload/],
    [{ ...good, tool_name: "a..b" }, /tool_name/],
    [{ ...good, emitted_at: "2026-02-30T00:00:00.000Z" }, /emitted_at/],
    [{ ...good, payload: { n: 2 ** 53 } }, /\/payload\/n/],
  ];
  for (const [event, want] of table) await assert.rejects(signer.sign(event), want);
  assert.throws(() => new Signer({ organization, agent: "agt_a", keyId: "key_a" }, "c2VjcmV0"), (why) => !why.message.includes("c2VjcmV0"));
});
