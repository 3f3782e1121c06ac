// Synchronous SHA-256 (FIPS 180-4): proofs hash many short texts, and a promise for each would cost more.

import { concat, hex } from "../bytes.js";

const K = new Int32Array(64);
const H = new Int32Array(8);
for (let n = 2, i = 0; i < 64; n++) {
  if (isPrime(n)) {
    if (i < 8) H[i] = fraction(Math.sqrt(n));
    K[i++] = fraction(Math.cbrt(n));
  }
}

function isPrime(n) {
  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false;
  return true;
}

function fraction(root) {
  return ((root - Math.floor(root)) * 2 ** 32) | 0;
}

/** A hash of bytes that arrive in parts. */
export class Sha256 {
  #h = H.slice();
  #w = new Int32Array(64);
  #rest = new Uint8Array(64); // an incomplete block
  #length = 0; // of all parts, in bytes

  /** Appends bytes, which the caller may change afterwards. */
  update(data) {
    const had = this.#length % 64;
    this.#length += data.length;
    let at = 0;
    if (had > 0) {
      at = Math.min(64 - had, data.length);
      this.#rest.set(data.subarray(0, at), had);
      if (had + at < 64) return;
      block(this.#h, this.#w, viewOf(this.#rest), 0);
    }
    const view = viewOf(data);
    for (; at + 64 <= data.length; at += 64) block(this.#h, this.#w, view, at);
    this.#rest.set(data.subarray(at));
  }

  /** Returns the 32-byte hash. Nothing can be appended then. */
  digest() {
    const rest = this.#length % 64;
    const tail = new Uint8Array(rest < 56 ? 64 : 128);
    tail.set(this.#rest.subarray(0, rest));
    tail[rest] = 0x80;
    const end = viewOf(tail);
    end.setUint32(tail.length - 8, Math.floor(this.#length / 2 ** 29));
    end.setUint32(tail.length - 4, (this.#length << 3) >>> 0);
    for (let at = 0; at < tail.length; at += 64) block(this.#h, this.#w, end, at);
    const out = new DataView(new ArrayBuffer(32));
    for (let i = 0; i < 8; i++) out.setUint32(4 * i, this.#h[i]);
    return new Uint8Array(out.buffer);
  }
}

function viewOf(data) {
  return new DataView(data.buffer, data.byteOffset, data.byteLength);
}

/** Returns the 32-byte hash of the parts, joined. Texts are UTF-8. */
export function sha256(...parts) {
  const sum = new Sha256();
  sum.update(parts.length === 1 && typeof parts[0] !== "string" ? parts[0] : concat(...parts));
  return sum.digest();
}

/** Returns sha256 in lower-case hex. */
export function sha256hex(...parts) {
  return hex(sha256(...parts));
}

function block(h, w, view, at) {
  for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15];
    const y = w[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
  }
  let a = h[0];
  let b = h[1];
  let c = h[2];
  let d = h[3];
  let e = h[4];
  let f = h[5];
  let g = h[6];
  let k = h[7]; // eight variables, because an iterator for each block takes longer than its rounds
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (k + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    k = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  h[0] += a;
  h[1] += b;
  h[2] += c;
  h[3] += d;
  h[4] += e;
  h[5] += f;
  h[6] += g;
  h[7] += k;
}
