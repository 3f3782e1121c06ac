// The forms of values in documents: the terms of docs/spec/bundle.md, each as a predicate.

import { Malformed } from "../errors.js";

const text = (v) => typeof v === "string";
const matches = (pattern) => (v) => text(v) && pattern.test(v);
const oneOf = (...values) => (v) => values.includes(v);

/** null, or a value of the given form. */
export const orNull = (form) => (v) => v === null || form(v);

/** A list of values of the given form. */
export const listOf = (form) => (v) => Array.isArray(v) && v.every(form);

/** An object, neither a list nor null. */
export function isObject(v) {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

const natural = (v) => Number.isSafeInteger(v) && v >= 0;
const zeros = "0".repeat(64);
const uuid = /^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$/;
const hash = matches(/^[0-9a-f]{64}$/);

/** Reports whether a text's day and time exist in the Gregorian calendar; the seconds go up to 59. */
function isRealTime(v) {
  const [year, month, day, hour, minute, second] = v.split(/[-T:.Z]/).map(Number);
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] && hour < 24 && minute < 60 && second < 60;
}

const time = (v) => text(v) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(v) && isRealTime(v);
const moment = (v) => text(v) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(v) && isRealTime(v);
const id = (v) => matches(/^[A-Za-z0-9._:-]{1,128}$/)(v) && v !== "." && v !== "..";

function principal(v) {
  // eslint-disable-next-line no-control-regex
  if (!text(v) || v === "" || /[\u0000-\u001f\u007f-\u009f]/.test(v)) return false;
  return [...v].length <= 256;
}

/** The terms. */
export const is = {
  text,
  natural,
  hash,
  time,
  moment,
  id,
  principal,
  any: () => true,
  object: isObject,
  bool: (v) => typeof v === "boolean",
  list: Array.isArray,
  someText: (v) => text(v) && v !== "",
  positive: (v) => natural(v) && v > 0,
  one: (v) => v === 1,
  someHash: (v) => hash(v) && v !== zeros,
  someTime: (v) => time(v) && v !== "1970-01-01T00:00:00.000Z",
  uuid: matches(uuid),
  lowerUUID: (v) => matches(uuid)(v) && v === v.toLowerCase(),
  decision: oneOf("allow", "allow_with_obligation", "deny"),
  agentId: matches(/^[A-Za-z0-9._-]{1,128}$/),
  keyId: matches(/^[A-Za-z0-9._:#-]{1,256}$/),
  token: matches(/^[a-z][a-z0-9_]{0,63}$/),
  tool: (v) => matches(/^[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*$/)(v) && v.length <= 256,
  traceparent: matches(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/),
  oneOf,
  matches,
};

/**
 * Checks an object against forms by member name. `closed` refuses other members. Members in `optional` may be
 * absent. Throws Malformed with the member's name.
 */
export function checkForm(value, forms, { closed = true, optional = [] } = {}) {
  if (!isObject(value)) throw new Malformed("object");
  for (const name of Object.keys(forms)) {
    if (!Object.hasOwn(value, name)) {
      if (optional.includes(name)) continue;
      throw new Malformed(`missing member ${name}`);
    }
    if (!forms[name](value[name])) throw new Malformed(name);
  }
  if (closed && Object.keys(value).some((name) => !Object.hasOwn(forms, name))) throw new Malformed("unknown member");
}

const traceparent = /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/s;

/** Returns the trace of a traceparent, or undefined for one that W3C Trace Context says must be ignored. */
export function traceOf(value) {
  const m = text(value) && value.length <= 512 ? traceparent.exec(value) : null;
  return m === null || (m[1] === "00" && m[3] !== undefined) ? undefined : m[2];
}
