// The strict Ed25519 rule. WebCrypto verifies; the checks here decide which keys and signatures may count. A public key
// is the canonical encoding of a point of the prime-order subgroup other than the identity. The R of a signature is not
// of small order, and its S is below the order of the group.

import { equal, hex } from "../bytes.js";
import { Malformed } from "../errors.js";

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const D = mod(-121665n * power(121666n, P - 2n));
const rootOfMinusOne = power(2n, (P - 1n) / 4n);
const y8 = little(Uint8Array.from("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a".match(/../g), (d) => parseInt(d, 16)));
const smallOrder = new Set([0n, 1n, P - 1n, y8, P - y8]);

function mod(n) {
  const r = n % P;
  return r < 0n ? r + P : r;
}

function power(base, exponent) {
  let out = 1n;
  for (let b = mod(base), e = exponent; e > 0n; e >>= 1n) {
    if (e & 1n) out = (out * b) % P;
    b = (b * b) % P;
  }
  return out;
}

function little(bytes) {
  return BigInt("0x" + hex(Uint8Array.from(bytes).reverse()));
}

/** Adds points in extended coordinates (RFC 8032 section 5.1.4). */
function add([x1, y1, z1, t1], [x2, y2, z2, t2]) {
  const a = ((y1 - x1) * (y2 - x2)) % P;
  const b = ((y1 + x1) * (y2 + x2)) % P;
  const c = (2n * t1 * t2 * D) % P;
  const d = (2n * z1 * z2) % P;
  const [e, f, g, h] = [b - a, d - c, d + c, b + a];
  return [(e * f) % P, (g * h) % P, (f * g) % P, (e * h) % P];
}

/** Returns the point of a canonical encoding. */
function decompress(raw) {
  const n = little(raw);
  const sign = n >> 255n;
  const y = n & (2n ** 255n - 1n);
  if (y >= P) throw new Malformed("public key: not the canonical encoding of a curve point");
  if (smallOrder.has(y)) throw new Malformed("public key: point of small order");
  const square = mod((y * y - 1n) * power(D * y * y + 1n, P - 2n));
  let x = power(square, (P + 3n) / 8n);
  if ((x * x - square) % P !== 0n) x = (x * rootOfMinusOne) % P;
  if ((x * x - square) % P !== 0n) throw new Malformed("public key: not the canonical encoding of a curve point");
  if ((x & 1n) !== sign) x = P - x;
  return [x, y, 1n, (x * y) % P];
}

function isTorsionFree(point) {
  let sum = [0n, 1n, 1n, 0n];
  for (const bit of L.toString(2)) {
    sum = add(sum, sum);
    if (bit === "1") sum = add(sum, point);
  }
  return mod(sum[0]) === 0n && mod(sum[1] - sum[2]) === 0n;
}

/** A public key that counts. */
export class PublicKey {
  #imported;

  /** Checks the 32 bytes of a key. Throws Malformed. */
  constructor(raw) {
    if (raw.length !== 32) throw new Malformed("public key: wrong length");
    if (!isTorsionFree(decompress(raw))) throw new Malformed("public key: point outside of the prime-order subgroup");
    this.raw = raw;
  }

  /** Resolves to whether the signature counts for the message. */
  async verify(signature, message) {
    if (!mayCount(signature)) return false;
    this.#imported ??= crypto.subtle.importKey("raw", this.raw, { name: "Ed25519" }, false, ["verify"]);
    return crypto.subtle.verify({ name: "Ed25519" }, await this.#imported, signature, message);
  }
}

/** Reports whether R is not of small order and S is below the order of the group. */
function mayCount(signature) {
  if (signature.length !== 64) return false;
  const y = little(signature.slice(0, 32)) & (2n ** 255n - 1n);
  return !smallOrder.has(y % P) && little(signature.slice(32)) < L;
}

/** A bounded cache of checked keys, because checking a key costs more than verifying a signature. */
export class KeyCache {
  #keys = new Map();

  constructor(limit = 256) {
    this.limit = limit;
  }

  /** Returns the key of 32 bytes. Throws Malformed. */
  get(raw) {
    const name = hex(raw);
    const known = this.#keys.get(name);
    if (known && equal(known.raw, raw)) return known;
    const key = new PublicKey(raw);
    if (this.#keys.size >= this.limit) this.#keys.delete(this.#keys.keys().next().value);
    this.#keys.set(name, key);
    return key;
  }
}
