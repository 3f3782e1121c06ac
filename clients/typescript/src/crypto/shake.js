// SHAKE128 and SHAKE256 (FIPS 202), for ML-DSA.

const MASK = (1n << 64n) - 1n;
const ROTATIONS = [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14].map(BigInt);
const ROUNDS = roundConstants();

function roundConstants() {
  const out = [];
  let r = 1;
  for (let i = 0; i < 24; i++) {
    let word = 0n;
    for (let j = 0; j < 7; j++) {
      if (r & 1) word |= 1n << BigInt(2 ** j - 1);
      r = (r << 1) ^ (r >> 7 ? 0x171 : 0);
    }
    out.push(word);
  }
  return out;
}

function rotate(word, by) {
  return by === 0n ? word : ((word << by) | (word >> (64n - by))) & MASK;
}

function permute(a) {
  const b = new Array(25);
  for (const constant of ROUNDS) {
    const c = [0, 1, 2, 3, 4].map((x) => a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]);
    for (let x = 0; x < 5; x++) {
      const d = c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1n);
      for (let y = 0; y < 25; y += 5) a[x + y] ^= d;
    }
    for (let x = 0; x < 5; x++) {
      for (let y = 0; y < 5; y++) b[y + 5 * ((2 * x + 3 * y) % 5)] = rotate(a[x + 5 * y], ROTATIONS[x + 5 * y]);
    }
    for (let y = 0; y < 25; y += 5) {
      for (let x = 0; x < 5; x++) a[x + y] = b[x + y] ^ (~b[((x + 1) % 5) + y] & MASK & b[((x + 2) % 5) + y]);
    }
    a[0] ^= constant;
  }
}

function sponge(data, rate, size) {
  const padded = new Uint8Array(rate * (Math.floor(data.length / rate) + 1));
  padded.set(data);
  padded[data.length] = 0x1f;
  padded[padded.length - 1] |= 0x80;
  const view = new DataView(padded.buffer);
  const state = new Array(25).fill(0n);
  for (let at = 0; at < padded.length; at += rate) {
    for (let i = 0; i < rate / 8; i++) state[i] ^= view.getBigUint64(at + 8 * i, true);
    permute(state);
  }
  const out = new Uint8Array(Math.ceil(size / rate) * rate);
  const written = new DataView(out.buffer);
  for (let at = 0; at < out.length; at += rate) {
    if (at > 0) permute(state);
    for (let i = 0; i < rate / 8; i++) written.setBigUint64(at + 8 * i, state[i], true);
  }
  return out.slice(0, size);
}

/** Returns `size` bytes of SHAKE128. */
export function shake128(data, size) {
  return sponge(data, 168, size);
}

/** Returns `size` bytes of SHAKE256. */
export function shake256(data, size) {
  return sponge(data, 136, size);
}
