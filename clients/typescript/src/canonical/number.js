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
