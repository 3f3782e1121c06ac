// DEFLATE (RFC 1951), read in parts. The platforms' implementations differ in what they accept after the last block,
// and verifiers of one pack must agree.

import { Unreadable } from "../errors.js";

const windowBytes = 32768;
const chunkBytes = 1 << 16;
const lengthBase = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const lengthBits = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const distanceBase = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
const distanceBits = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
const codeOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

function fail() {
  throw new Unreadable("compressed bytes of a file");
}

const tableBits = 9;

/** A prefix code: a table of its short codes, and for all the number of codes of each length and the symbols in their order. */
class Code {
  constructor(lengths) {
    this.counts = new Uint16Array(16);
    for (const n of lengths) this.counts[n]++;
    const used = lengths.length - this.counts[0];
    this.counts[0] = 0;
    const longest = this.counts.findLastIndex((n) => n > 0);
    const next = new Uint16Array(16); // code of the next symbol of a length
    const offsets = new Uint16Array(16);
    let left = 1;
    for (let n = 1; n < 16; n++) {
      left = 2 * left - this.counts[n];
      if (left < 0) fail();
      next[n] = (next[n - 1] + this.counts[n - 1]) << 1;
      offsets[n] = offsets[n - 1] + this.counts[n - 1];
    }
    if (left > 0 && longest > 1) fail(); // incomplete, but for a single code of one bit
    this.symbols = new Uint16Array(used);
    this.table = new Uint16Array(1 << tableBits);
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      const n = lengths[symbol];
      if (n === 0) continue;
      this.symbols[offsets[n]++] = symbol;
      const code = next[n]++;
      if (n > tableBits) continue;
      let reversed = 0;
      for (let i = 0; i < n; i++) reversed |= ((code >> i) & 1) << (n - 1 - i);
      for (; reversed < 1 << tableBits; reversed += 1 << n) this.table[reversed] = (symbol << 4) | n;
    }
  }
}

const fixedLengths = Uint8Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));

/** The bits of compressed bytes, which come in slices. Reading past the current slice requires `load` first. */
class Bits {
  #slice = new Uint8Array();
  #at = 0;
  #bits = 0;
  #count = 0;

  constructor(slices) {
    this.slices = slices;
  }

  /** Loads bytes until at least `bytes` are at hand or the input ends. */
  async load(bytes) {
    while (this.#slice.length - this.#at < bytes) {
      const { done, value } = await this.slices.next();
      if (done) return;
      const rest = this.#slice.subarray(this.#at);
      const joined = new Uint8Array(rest.length + value.length);
      joined.set(rest);
      joined.set(value, rest.length);
      [this.#slice, this.#at] = [joined, 0];
    }
  }

  take(n) {
    while (this.#count < n) {
      if (this.#at === this.#slice.length) fail();
      this.#bits |= this.#slice[this.#at++] << this.#count;
      this.#count += 8;
    }
    const value = this.#bits & ((1 << n) - 1);
    this.#bits >>>= n;
    this.#count -= n;
    return value;
  }

  symbol(code) {
    while (this.#count < tableBits && this.#at < this.#slice.length) {
      this.#bits |= this.#slice[this.#at++] << this.#count;
      this.#count += 8;
    }
    const found = code.table[this.#bits & ((1 << tableBits) - 1)];
    const n = found & 15;
    if (n > 0 && n <= this.#count) {
      this.#bits >>>= n;
      this.#count -= n;
      return found >> 4;
    }
    return this.#longSymbol(code);
  }

  #longSymbol(code) {
    let [value, first, index] = [0, 0, 0];
    for (let n = 1; n < 16; n++) {
      value |= this.take(1);
      const count = code.counts[n];
      if (value - first < count) return code.symbols[index + value - first];
      index += count;
      first = (first + count) << 1;
      value <<= 1;
    }
    return fail();
  }

  /** Drops the rest of the current byte. */
  align() {
    this.#bits >>>= this.#count & 7;
    this.#count &= ~7;
  }

  /** Reports whether there are no bytes after the current one. */
  async ends() {
    await this.load(1);
    return this.#count < 8 && this.#at === this.#slice.length;
  }
}

/** The inflated bytes: a window, and the bytes that were not yielded yet. */
class Output {
  bytes = new Uint8Array(windowBytes + chunkBytes + 512);
  begin = 0; // of the bytes that were not yielded yet
  end = 0;
  total = 0;

  constructor(most) {
    this.most = most;
  }

  push(byte) {
    if (++this.total > this.most) fail();
    this.bytes[this.end++] = byte;
  }

  copy(distance, length) {
    if (distance > this.total || (this.total += length) > this.most) fail();
    for (let i = 0; i < length; i++, this.end++) this.bytes[this.end] = this.bytes[this.end - distance];
  }

  get isFull() {
    return this.end >= windowBytes + chunkBytes;
  }

  /** Returns the new bytes and keeps the window. */
  flush() {
    const part = this.bytes.slice(this.begin, this.end);
    const from = Math.max(0, this.end - windowBytes);
    this.bytes.copyWithin(0, from, this.end);
    this.begin = this.end -= from;
    return part;
  }
}

function readCodes(bits) {
  const [literals, distances, codes] = [bits.take(5) + 257, bits.take(5) + 1, bits.take(4) + 4];
  if (literals > 286 || distances > 30) fail();
  const lengths = new Uint8Array(19);
  for (let i = 0; i < codes; i++) lengths[codeOrder[i]] = bits.take(3);
  const code = new Code(lengths);
  const all = new Uint8Array(literals + distances);
  for (let i = 0; i < all.length; ) {
    const symbol = bits.symbol(code);
    if (symbol < 16) {
      all[i++] = symbol;
      continue;
    }
    if (symbol === 16 && i === 0) fail();
    const value = symbol === 16 ? all[i - 1] : 0;
    const repeat = symbol === 16 ? 3 + bits.take(2) : symbol === 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    if (i + repeat > all.length) fail();
    all.fill(value, i, i + repeat);
    i += repeat;
  }
  return [new Code(all.subarray(0, literals)), new Code(all.subarray(literals))];
}

/** Reads one symbol of a block, of at most 48 bits. Reports whether it ended the block. */
function readSymbol(bits, out, [literals, distances]) {
  const symbol = bits.symbol(literals);
  if (symbol < 256) out.push(symbol);
  if (symbol <= 256) return symbol === 256;
  if (symbol > 285) fail();
  const length = lengthBase[symbol - 257] + bits.take(lengthBits[symbol - 257]);
  const far = bits.symbol(distances);
  if (far > 29) fail();
  out.copy(distanceBase[far] + bits.take(distanceBits[far]), length);
  return false;
}

async function* storedBlock(bits, out) {
  bits.align();
  await bits.load(4);
  const [length, inverse] = [bits.take(16), bits.take(16)];
  if ((length ^ inverse) !== 0xffff) fail();
  for (let i = 0; i < length; i++) {
    if (i % 4096 === 0) await bits.load(4096);
    out.push(bits.take(8));
    if (out.isFull) yield out.flush();
  }
}

/** Yields the bytes that slices give, which must be exactly `size`. Throws Unreadable. */
export async function* inflate(slices, size) {
  const bits = new Bits(slices);
  const out = new Output(size);
  for (let last = 0; last === 0; ) {
    await bits.load(1024); // more than the codes of a block take
    last = bits.take(1);
    const kind = bits.take(2);
    if (kind === 3) fail();
    if (kind === 0) {
      yield* storedBlock(bits, out);
      continue;
    }
    const codes = kind === 2 ? readCodes(bits) : [new Code(fixedLengths), new Code(new Uint8Array(32).fill(5))];
    for (let n = 1; !readSymbol(bits, out, codes); n++) {
      if (n % 512 === 1) await bits.load(4096); // 512 symbols take at most 3 KiB
      if (out.isFull) yield out.flush();
    }
  }
  if (out.total !== size || !(await bits.ends())) fail();
  yield out.flush();
}
