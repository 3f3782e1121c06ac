// Encodings with exactly one spelling. Other spellings of the same bytes are rejected.

import { Malformed } from "./errors.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns the UTF-8 bytes of a text. */
export function utf8(text) {
  return encoder.encode(text);
}

/** Returns a copy of a text. A part of a text may otherwise keep the whole of it in memory. */
export function fresh(text) {
  return decoder.decode(encoder.encode(text));
}

/** Decodes UTF-8. It keeps a byte order mark, because callers reject it. */
export function fromUTF8(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new Malformed("text is not valid UTF-8");
  }
}

/** Joins byte arrays and texts. */
export function concat(...parts) {
  const arrays = parts.map((p) => (typeof p === "string" ? utf8(p) : p));
  const out = new Uint8Array(arrays.reduce((n, a) => n + a.length, 0));
  let at = 0;
  for (const a of arrays) {
    out.set(a, at);
    at += a.length;
  }
  return out;
}

/** Reports whether two byte arrays are equal. Only for public data: it is not constant-time. */
export function equal(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

const hexDigits = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));

/** Returns lower-case hex. */
export function hex(bytes) {
  let out = "";
  for (let i = 0; i < bytes.length; i++) out += hexDigits[bytes[i]];
  return out;
}

/** Parses lower-case hex of `size` bytes. */
export function unhex(text, size) {
  if (typeof text !== "string" || text.length !== 2 * size || !/^[0-9a-f]*$/.test(text)) {
    throw new Malformed("hex");
  }
  const out = new Uint8Array(size);
  for (let i = 0; i < size; i++) out[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return out;
}

/** Returns standard base64 with padding. */
export function base64(bytes) {
  let binary = "";
  for (let i = 0; i < bytes.length; i++) binary += String.fromCharCode(bytes[i]);
  return btoa(binary);
}

/** Decodes standard base64 with padding, of `size` bytes if given. */
export function unbase64(text, size) {
  if (typeof text !== "string" || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
    throw new Malformed("base64");
  }
  let binary;
  try {
    binary = atob(text);
  } catch {
    throw new Malformed("base64");
  }
  const out = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  if (base64(out) !== text || (size !== undefined && out.length !== size)) throw new Malformed("base64");
  return out;
}

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** Parses a Multikey of an Ed25519 key: `z` and the base58btc of ed 01 and 32 bytes. */
export function fromMultikey(text) {
  if (!/^z[1-9A-HJ-NP-Za-km-z]{47}$/.test(text)) throw new Malformed("public_key");
  let n = 0n;
  for (const c of text.slice(1)) n = n * 58n + BigInt(alphabet.indexOf(c));
  if (n >> 272n !== 0n) throw new Malformed("public_key");
  const raw = unhex(n.toString(16).padStart(68, "0"), 34);
  if (raw[0] !== 0xed || raw[1] !== 1 || toMultikey(raw.slice(2)) !== text) throw new Malformed("public_key");
  return raw.slice(2);
}

/** Returns the Multikey of a 32-byte Ed25519 public key. */
export function toMultikey(key) {
  let n = BigInt("0xed01" + hex(key));
  let text = "";
  for (; n > 0n; n /= 58n) text = alphabet[Number(n % 58n)] + text;
  return "z" + text;
}
