// The number rule of the service. A number is an IEEE double, and a text must not change silently: an integer literal
// has the same value as its canonical form, any other literal has at most 17 significant digits, nothing becomes
// infinite, and only zero becomes zero.

const literal = /(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?/y;

/** Parses the number literal at `at`. Returns its value and length, or the reason for rejecting it. */
export function readNumber(text, at) {
  literal.lastIndex = at;
  const m = literal.exec(text);
  if (!m) return { length: 0 };
  const [all, , whole, fraction, exponent] = m;
  const value = Number(all);
  const length = all.length;
  if (fraction === undefined && exponent === undefined && whole.length <= 15) return { value: value + 0, length };
  const digits = significant(whole + (fraction ?? ""));
  if (digits === "") return { value: 0, length };
  const integer = fraction === undefined && exponent === undefined;
  if (!Number.isFinite(value)) return { length, why: "is too large for a JSON number" };
  if (value === 0) return { length, why: "is too close to zero for a JSON number" };
  if (integer && !isKept(whole, value)) {
    return { length, why: "is an integer that canonical JSON (RFC 8785) would change: send it as a string" };
  }
  if (!integer && digits.length > 17) return { length, why: "has more than 17 significant digits: round it" };
  return { value, length };
}

const maxDigits = 128;
const maxExponent = 9999;

/**
 * Parses the number literal at `at` without rounding it. Returns its length (0 if there is none); `plain`, the double
 * whose shortest text has the same value, if there is one; and `text`, the canonical literal, which is undefined beyond
 * 128 significant digits or an exponent of 9999.
 */
export function readExact(text, at) {
  literal.lastIndex = at;
  const m = literal.exec(text);
  if (!m) return { length: 0 };
  const [all, sign, , fraction] = m;
  const length = all.length;
  if (all.length <= 15 && fraction === undefined && m[4] === undefined) return { length, plain: Number(all) + 0, text: String(Number(all)) };
  const value = valueOf(m);
  if (value.digits === "") return { length, plain: 0, text: "0" };
  if (value.digits.length > maxDigits || Math.abs(value.exponent) > maxExponent) return { length };
  const plain = Number(all);
  const shortest = Number.isFinite(plain) && plain !== 0 ? valueOf(literalParts(String(plain))) : {};
  const same = shortest.digits === value.digits && shortest.exponent === value.exponent;
  return { length, plain: same ? plain : undefined, text: sign + fixedOrScientific(value) };
}

function literalParts(text) {
  literal.lastIndex = 0;
  return literal.exec(text);
}

/** Returns the digits without leading and trailing zeros, and the exponent of the first one. */
function valueOf([, , whole, fraction = "", exponent = "0"]) {
  const all = whole + fraction;
  const first = all.search(/[1-9]/);
  return { digits: significant(all), exponent: first < 0 ? 0 : whole.length - 1 - first + Number(exponent) };
}

function fixedOrScientific({ digits, exponent: e }) {
  if (e < -6 || e >= 128) return `${digits[0]}${digits.length > 1 ? "." + digits.slice(1) : ""}e${e > 0 ? "+" : ""}${e}`;
  if (e < 0) return "0." + "0".repeat(-e - 1) + digits;
  if (e >= digits.length - 1) return digits.padEnd(e + 1, "0");
  return `${digits.slice(0, e + 1)}.${digits.slice(e + 1)}`;
}

function significant(digits) {
  return digits.replace(/^0+/, "").replace(/0+$/, "");
}

/** Reports whether the canonical form of value has the digits of the integer `whole`. */
function isKept(whole, value) {
  const [mantissa, exponent] = String(Math.abs(value)).split("e+");
  const [head, tail = ""] = mantissa.split(".");
  const size = exponent === undefined ? head.length : Number(exponent) + head.length;
  return size === whole.length && significant(head + tail) === significant(whole);
}
