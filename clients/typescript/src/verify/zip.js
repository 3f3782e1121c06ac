// The one spelling of an evidence pack's ZIP. Each byte is compared (docs/evidence.md).

import { concat, equal, fromUTF8, utf8 } from "../bytes.js";
import { Malformed, Mismatch } from "../errors.js";

const before = ["checkpoint", "keys.json", "policy", "agents.json"];
const behind = ["entries.bin", "records.ndjson", "envelopes.ndjson", "approvals.ndjson", "erasures.ndjson", "report.html", "manifest.json"];
const policyFile = /^policies\/[0-9a-f]{64}\.json$/;

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let i = 0; i < 8; i++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  return c;
});

function crc32(data) {
  let c = ~0;
  for (let i = 0; i < data.length; i++) c = crcTable[(c ^ data[i]) & 255] ^ (c >>> 8);
  return ~c >>> 0;
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

/** Returns the files of a pack by name, in their order. Throws Malformed or Mismatch. */
export function unzip(raw) {
  if (raw.length < 22 || raw.length > 0xffffffff) throw new Malformed("zip: size");
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const count = view.getUint16(raw.length - 12, true);
  const reader = { raw, view, place: 0, files: new Map(), directory: [] };
  let at = view.getUint32(raw.length - 6, true);
  for (let i = 0; i < count; i++) at = readFile(reader, at);
  const directory = concat(...reader.directory);
  const end = concat("PK\u0005\u0006", u32(0), u16(count), u16(count), u32(directory.length), u32(reader.place), u16(0));
  if (!equal(raw.subarray(reader.place), concat(directory, end))) throw new Malformed("zip: directory or end");
  checkNames([...reader.files.keys()]);
  return reader.files;
}

function readFile(r, at) {
  if (at + 46 > r.raw.length) throw new Malformed("zip: directory");
  const crc = r.view.getUint32(at + 16, true);
  const size = r.view.getUint32(at + 20, true);
  const length = r.view.getUint16(at + 28, true);
  const name = r.raw.subarray(at + 46, at + 46 + length);
  const text = fromUTF8(name);
  if (name.length !== length || r.files.has(text)) throw new Malformed("zip: name");
  const header = localHeader(name);
  const begin = r.place + header.length;
  const content = r.raw.subarray(begin, begin + size);
  const footer = concat("PK\u0007\u0008", u32(crc), u32(size), u32(size));
  const right =
    content.length === size &&
    crc32(content) === crc &&
    equal(r.raw.subarray(r.place, begin), header) &&
    equal(r.raw.subarray(begin + size, begin + size + footer.length), footer);
  if (!right) throw new Malformed("zip: a file's bytes");
  r.directory.push(directoryPart(name, crc, size, r.place));
  r.files.set(text, content);
  r.place = begin + size + footer.length;
  return at + 46 + length;
}

function checkNames(names) {
  const policies = names.filter((n) => policyFile.test(n)).sort();
  const wanted = [...before, ...policies, ...behind];
  if (names.length !== wanted.length || names.some((n, i) => n !== wanted[i])) throw new Mismatch("zip: files");
}

/** Returns the lines of an .ndjson file. */
export function linesOf(raw, most = Infinity) {
  const text = fromUTF8(raw);
  if (text !== "" && !text.endsWith("\n")) throw new Malformed("line end");
  const lines = text.split("\n").slice(0, -1);
  if (lines.length > most || lines.some((l) => l === "" || utf8(l).length > 4 << 20)) throw new Malformed("lines");
  return lines;
}
