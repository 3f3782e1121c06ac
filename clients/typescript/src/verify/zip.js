// The one spelling of an evidence pack's ZIP. Each byte is compared (docs/evidence.md).

import { concat, equal, fromUTF8, hex } from "../bytes.js";
import { Sha256 } from "../crypto/sha256.js";
import { Malformed, Mismatch } from "../errors.js";
import { slices } from "./source.js";

const before = ["checkpoint", "keys.json", "policy", "agents.json"];
const behind = ["entries.bin", "records.ndjson", "envelopes.ndjson", "approvals.ndjson", "erasures.ndjson", "report.html", "manifest.json"];
const policyFile = /^policies\/[0-9a-f]{64}\.json$/;
const maxFiles = before.length + 1000 + behind.length;
const maxName = 255;
const maxLine = 4 << 20; // with its end

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let i = 0; i < 8; i++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  return c;
});

/** Continues a CRC-32, which begins with ~0 and ends with its complement. */
function crcOver(c, data) {
  for (let i = 0; i < data.length; i++) c = crcTable[(c ^ data[i]) & 255] ^ (c >>> 8);
  return c;
}

function u16(n) {
  return Uint8Array.of(n & 255, (n >> 8) & 255);
}

function u32(n) {
  return Uint8Array.of(n & 255, (n >>> 8) & 255, (n >>> 16) & 255, n >>> 24);
}

const zeros = new Uint8Array(12);
const moment = Uint8Array.of(0, 0, 0, 0, 0x21, 0); // stored, 1980-01-01 00:00
const flags = Uint8Array.of(0x14, 0, 8, 0);

function localHeader(name) {
  return concat("PK\u0003\u0004", flags, moment, zeros, u16(name.length), u16(0), name);
}

function directoryPart(name, crc, size, place) {
  return concat("PK\u0001\u0002", u16(0x14), flags, moment, u32(crc), u32(size), u32(size), u16(name.length), zeros, u32(place), name);
}

/** The files of a pack. It holds their names and places, and no content. */
export class Archive {
  /** Reads the directory of a source, and compares all bytes that are no content. Throws Malformed or Mismatch. */
  static async open(source) {
    const archive = new Archive(source);
    await archive.#readDirectory();
    checkNames([...archive.files.keys()]);
    return archive;
  }

  constructor(source) {
    this.source = source;
    this.files = new Map(); // name to begin, end, size, crc; in their order
  }

  async #readDirectory() {
    const { size } = this.source;
    if (size < 22 || size > 0xffffffff) throw new Malformed("zip: size");
    const end = await this.source.read(size - 22, size);
    const view = new DataView(end.buffer, end.byteOffset, 22);
    const [count, length, offset] = [view.getUint16(10, true), view.getUint32(12, true), view.getUint32(16, true)];
    const wanted = concat("PK\u0005\u0006", u32(0), u16(count), u16(count), u32(length), u32(offset), u16(0));
    if (!equal(end, wanted) || offset + length + 22 !== size || count > maxFiles || length > maxFiles * (46 + maxName)) {
      throw new Malformed("zip: directory or end");
    }
    const directory = await this.source.read(offset, size - 22);
    const reader = { directory, at: 0, place: 0 };
    for (let i = 0; i < count; i++) await this.#readPart(reader, offset);
    if (reader.at !== length || reader.place !== offset) throw new Malformed("zip: directory or end");
  }

  /** Reads a file's part of the directory, and compares its header and descriptor. */
  async #readPart(r, most) {
    const { directory, at, place } = r;
    if (at + 46 > directory.length) throw new Malformed("zip: directory");
    const view = new DataView(directory.buffer, directory.byteOffset + at, 46);
    const [crc, size, length] = [view.getUint32(16, true), view.getUint32(20, true), view.getUint16(28, true)];
    const name = directory.subarray(at + 46, at + 46 + length);
    const text = fromUTF8(name);
    if (name.length !== length || this.files.has(text)) throw new Malformed("zip: name");
    const header = localHeader(name);
    const begin = place + header.length;
    const footer = concat("PK\u0007\u0008", u32(crc), u32(size), u32(size));
    const end = begin + size;
    const right =
      end + footer.length <= most &&
      equal(directory.subarray(at, at + 46 + length), directoryPart(name, crc, size, place)) &&
      equal(await this.source.read(place, begin), header) &&
      equal(await this.source.read(end, end + footer.length), footer);
    if (!right) throw new Malformed("zip: a file's bytes");
    this.files.set(text, { begin, end, size, crc });
    r.at += 46 + length;
    r.place = end + footer.length;
  }

  /** Yields the content of a file in slices. */
  slices(name) {
    const { begin, end } = this.files.get(name);
    return slices(this.source, begin, end);
  }

  /** Resolves to the content of a file of at most `most` bytes. Throws Malformed for a larger one. */
  async content(name, most) {
    const { begin, end, size } = this.files.get(name);
    if (size > most) throw new Malformed(name + ": size");
    return this.source.read(begin, end);
  }

  /** Resolves to the SHA-256 of a file in hex, after its CRC was compared. */
  async digest(name) {
    const sum = new Sha256();
    let crc = ~0;
    for await (const part of this.slices(name)) {
      sum.update(part);
      crc = crcOver(crc, part);
    }
    if (~crc >>> 0 !== this.files.get(name).crc) throw new Malformed("zip: a file's bytes");
    return hex(sum.digest());
  }

  /** Yields the lines of an .ndjson file as texts. It holds one line and one slice. Throws Malformed. */
  async *lines(name, most = Infinity) {
    let parts = [];
    let length = 0;
    for await (const slice of this.slices(name)) {
      for (let from = 0; from < slice.length; ) {
        const at = slice.indexOf(10, from);
        const part = slice.subarray(from, at < 0 ? slice.length : at);
        parts.push(part);
        length += part.length;
        if (length >= maxLine || (at >= 0 && length === 0) || most < 1) throw new Malformed("lines");
        if (at < 0) break;
        yield fromUTF8(parts.length === 1 ? part : concat(...parts));
        [parts, length, from] = [[], 0, at + 1];
        most--;
      }
    }
    if (length > 0) throw new Malformed("line end");
  }
}

function checkNames(names) {
  const policies = names.filter((n) => policyFile.test(n)).sort();
  const wanted = [...before, ...policies, ...behind];
  if (names.length !== wanted.length || names.some((n, i) => n !== wanted[i])) throw new Mismatch("zip: files");
}
