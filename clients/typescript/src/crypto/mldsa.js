// ML-DSA-44 verification (FIPS 204) with the empty context, written for checks of cosignatures and not for speed.

import { concat, equal } from "../bytes.js";
import { shake128, shake256 } from "./shake.js";

const Q = 8380417;
const [DROPPED, K, COLUMNS, TAU, GAMMA1, GAMMA2, BETA, OMEGA] = [13, 4, 4, 39, 2 ** 17, 95232, 78, 80];

/** Sizes in bytes. */
const keySize = 32 + K * 320;
export const signatureSize = 32 + COLUMNS * 576 + OMEGA + K;

/** The product is below 2^46, which a double holds. */
function times(a, b) {
  return (a * b) % Q;
}

const ZETAS = Array.from({ length: 256 }, (_, i) => {
  let exponent = 0;
  for (let b = 0; b < 8; b++) exponent |= ((i >> b) & 1) << (7 - b);
  let out = 1;
  for (let e = 0; e < exponent; e++) out = times(out, 1753);
  return out;
});

function unpack(data, bits) {
  const out = [];
  let word = 0;
  let held = 0;
  for (const byte of data) {
    word += byte * 2 ** held;
    held += 8;
    for (; held >= bits; held -= bits) {
      out.push(word % 2 ** bits);
      word = Math.floor(word / 2 ** bits);
    }
  }
  return out;
}

function matrixEntry(seed) {
  const stream = shake128(seed, 2048); // 682 candidates for 256: nearly all are below Q
  const found = [];
  for (let i = 0; i < 2046 && found.length < 256; i += 3) {
    const n = stream[i] | (stream[i + 1] << 8) | ((stream[i + 2] & 127) << 16);
    if (n < Q) found.push(n);
  }
  return found;
}

function challengeOf(seed) {
  const stream = shake256(seed, 1024);
  const c = new Array(256).fill(0);
  let at = 8;
  for (let i = 256 - TAU; i < 256; i++) {
    while (stream[at] > i) at++;
    const bit = i + TAU - 256;
    c[i] = c[stream[at]];
    c[stream[at++]] = (stream[bit >> 3] >> (bit & 7)) & 1 ? Q - 1 : 1;
  }
  return c;
}

/** Returns the positions of hints by row, or undefined if they are malformed. */
function hintsOf(data) {
  const rows = [];
  let begin = 0;
  for (const end of data.subarray(OMEGA)) {
    if (end < begin || end > OMEGA) return undefined;
    const row = data.subarray(begin, end);
    if (row.some((p, i) => i > 0 && p <= row[i - 1])) return undefined;
    rows.push(new Set(row));
    begin = end;
  }
  return data.subarray(begin, OMEGA).some((p) => p !== 0) ? undefined : rows;
}

function ntt(given) {
  const w = given.map((n) => ((n % Q) + Q) % Q);
  let m = 0;
  for (let length = 128; length > 0; length >>= 1) {
    for (let start = 0; start < 256; start += 2 * length) {
      const zeta = ZETAS[++m];
      for (let j = start; j < start + length; j++) {
        const t = times(zeta, w[j + length]);
        w[j + length] = (w[j] - t + Q) % Q;
        w[j] = (w[j] + t) % Q;
      }
    }
  }
  return w;
}

function inverse(w) {
  let m = 256;
  for (let length = 1; length < 256; length <<= 1) {
    for (let start = 0; start < 256; start += 2 * length) {
      const zeta = Q - ZETAS[--m];
      for (let j = start; j < start + length; j++) {
        const t = w[j];
        w[j] = (t + w[j + length]) % Q;
        w[j + length] = times(zeta, (t - w[j + length] + Q) % Q);
      }
    }
  }
  return w.map((n) => times(n, 8347681)); // 256^-1
}

function highBits(r, hint) {
  let low = r % (2 * GAMMA2);
  if (low > GAMMA2) low -= 2 * GAMMA2;
  let high = (r - low) / (2 * GAMMA2);
  if (r - low === Q - 1) {
    high = 0;
    low -= 1;
  }
  return (hint ? high + (low > 0 ? 1 : -1) + 44 : high) % 44;
}

function packHigh(values) {
  const out = new Uint8Array((values.length * 6) / 8);
  values.forEach((v, i) => {
    const at = 6 * i;
    out[at >> 3] |= v << (at & 7);
    if ((at & 7) > 2) out[(at >> 3) + 1] |= v >> (8 - (at & 7));
  });
  return out;
}

function commitment(key, c, z, ones) {
  const t1 = unpack(key.subarray(32), 10);
  const high = [];
  for (let r = 0; r < K; r++) {
    const t = ntt(t1.slice(256 * r, 256 * r + 256).map((n) => n * 2 ** DROPPED));
    const row = z.map((_, s) => matrixEntry(concat(key.subarray(0, 32), Uint8Array.of(s, r))));
    const w = inverse(t.map((n, i) => row.reduce((sum, a, s) => (sum + times(a[i], z[s][i])) % Q, Q - times(c[i], n)) % Q));
    w.forEach((n, i) => high.push(highBits(n, ones[r].has(i))));
  }
  return packHigh(high);
}

/** Reports whether the signature is the key's over the message (algorithms 3 and 8). */
export function verifyMLDSA44(key, message, signature) {
  if (key.length !== keySize || signature.length !== signatureSize) return false;
  const z = unpack(signature.subarray(32, signatureSize - OMEGA - K), 18).map((n) => GAMMA1 - n);
  const ones = hintsOf(signature.subarray(signatureSize - OMEGA - K));
  if (!ones || z.some((n) => Math.abs(n) >= GAMMA1 - BETA)) return false;
  const columns = [0, 1, 2, 3].map((s) => ntt(z.slice(256 * s, 256 * s + 256)));
  const packed = commitment(key, ntt(challengeOf(signature.subarray(0, 32))), columns, ones);
  const mu = shake256(concat(shake256(key, 64), Uint8Array.of(0, 0), message), 64);
  return equal(shake256(concat(mu, packed), 32), signature.subarray(0, 32));
}
