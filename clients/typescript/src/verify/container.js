// ZIP files and folders that contain an evidence pack. They decide nothing: only the content of the files counts.

import { utf8 } from "../bytes.js";
import { Unreadable } from "../errors.js";
import { inflate } from "./inflate.js";
import { slices, sourceOf } from "./source.js";

const maxBytes = 2 ** 32 - 1; // of a ZIP file, and of the files in any container together
const maxFiles = 4096; // including folders and ignored files
const maxDirectory = 1 << 20;
const maxComment = 65535;
const [stored, deflated] = [0, 8];

function need(holds, what) {
  if (!holds) throw new Unreadable(what);
}

/** Reports whether a name refers to a file below its folder on every operating system. */
function isPath(name) {
  // eslint-disable-next-line no-control-regex
  return !/[\u0000-\u001f\u007f\\]/.test(name) && name.split("/").every((step) => step !== "" && step !== "." && step !== "..");
}

/** Reports whether a file is not part of the pack: operating systems and archivers add such files. */
export function isIgnored(name) {
  const folders = name.split("/");
  const last = folders.pop();
  return last.startsWith(".") || last === "Thumbs.db" || last === "desktop.ini" || folders.includes("__MACOSX");
}

/** A file: `size`, `slices()`, and `read(begin, end)` if it supports random access. */
function fileOf(source, begin, end) {
  return { size: end - begin, slices: () => slices(source, begin, end), read: (from, to) => source.read(begin + from, begin + to) };
}

/**
 * Resolves to the files of a pack by their names in the folder of the manifest. `pack` is a ZIP file (bytes, a Blob or
 * a File), or the files of a folder: Files, or pairs of a path and bytes or a Blob. Throws Unreadable, and TypeError.
 */
export async function openContainer(pack) {
  const list = isList(pack) ? readFolder(pack) : await readZip(sourceOf(pack));
  const manifests = [...list.keys()].filter((name) => name.split("/").at(-1) === "manifest.json");
  need(manifests.length > 0, "no file manifest.json");
  need(manifests.length === 1, "two files manifest.json");
  const folder = manifests[0].slice(0, -"manifest.json".length);
  const named = new Map();
  for (const [name, file] of list) named.set(name.startsWith(folder) ? name.slice(folder.length) : name, file);
  return named.size === list.size ? named : new Map();
}

function isList(pack) {
  return typeof pack !== "string" && !(pack instanceof Uint8Array) && typeof pack?.[Symbol.iterator] === "function";
}

function readFolder(list) {
  const found = new Map();
  let [count, total] = [0, 0];
  for (const item of list) {
    const [path, content] = Array.isArray(item) ? item : [item?.webkitRelativePath || item?.name, item];
    if (typeof path !== "string") throw new TypeError("a folder is Files, or pairs of a path and its content");
    const source = sourceOf(content);
    need(++count <= maxFiles, "number of files");
    const name = latin1(utf8(path));
    need(isPath(name), "name of a file");
    if (isIgnored(name)) continue;
    need(!found.has(name), "a name twice");
    total += source.size;
    need(total <= maxBytes, "size of a file");
    found.set(name, fileOf(source, 0, source.size));
  }
  return found;
}

async function readZip(source) {
  const { directory, count, offset } = await readDirectory(source);
  const view = new DataView(directory.buffer, directory.byteOffset, directory.length);
  const found = new Map();
  let [at, used, total] = [0, 0, 0];
  for (let i = 0; i < count; i++) {
    need(at + 46 <= directory.length && view.getUint32(at, true) === 0x02014b50, "directory");
    const part = {
      flags: view.getUint16(at + 8, true),
      method: view.getUint16(at + 10, true),
      packed: view.getUint32(at + 20, true),
      size: view.getUint32(at + 24, true),
      header: view.getUint32(at + 42, true),
    };
    const [length, extra, comment, disk] = [28, 30, 32, 34].map((n) => view.getUint16(at + n, true));
    const end = at + 46 + length + extra + comment;
    need(end <= directory.length && disk === 0, "directory");
    const name = latin1(directory.subarray(at + 46, at + 46 + length));
    at = end;
    used += 30 + length + part.packed;
    need(used <= offset, "size of a file");
    const path = name.endsWith("/") ? name.slice(0, -1) : name;
    need(isPath(path), "name of a file");
    if (path !== name || isIgnored(name)) continue;
    need(!found.has(name), "a name twice");
    found.set(name, await readPart(source, name, part, offset));
    total += part.size;
    need(total <= maxBytes, "size of a file");
  }
  need(at === directory.length, "directory");
  return found;
}

async function readDirectory(source) {
  need(source.size >= 22 && source.size <= maxBytes, "size");
  const tail = await source.read(Math.max(0, source.size - 22 - maxComment), source.size);
  const view = new DataView(tail.buffer, tail.byteOffset, tail.length);
  let end = tail.length - 22;
  const isEnd = () => view.getUint32(end, true) === 0x06054b50 && view.getUint16(end + 20, true) === tail.length - end - 22;
  while (end >= 0 && !isEnd()) end--;
  need(end >= 0, "end of a ZIP file");
  const [first, count] = [view.getUint16(end + 8, true), view.getUint16(end + 10, true)];
  const [length, offset] = [view.getUint32(end + 12, true), view.getUint32(end + 16, true)];
  need(view.getUint32(end + 4, true) === 0 && first === count, "end of a ZIP file");
  need(count <= maxFiles && length <= maxDirectory, "number of files");
  need(offset + length === source.size - (tail.length - end), "place of the directory");
  return { directory: await source.read(offset, offset + length), count, offset };
}

async function readPart(source, name, { flags, method, packed, size, header }, directory) {
  need((flags & 1) === 0, "an encrypted file");
  need((method === stored && packed === size) || method === deflated, "compression of a file");
  need(header + 30 <= directory, "header of a file");
  const local = await source.read(header, Math.min(directory, header + 30 + name.length));
  const view = new DataView(local.buffer, local.byteOffset, local.length);
  const begin = header + 30 + name.length + view.getUint16(28, true);
  const right = view.getUint32(0, true) === 0x04034b50 && view.getUint16(26, true) === name.length && latin1(local.subarray(30)) === name;
  need(right && begin + packed <= directory, "header of a file");
  if (method === stored) return fileOf(source, begin, begin + size);
  return { size, slices: () => inflate(slices(source, begin, begin + packed), size) };
}

/** Names are compared byte by byte. */
function latin1(bytes) {
  let text = "";
  for (const b of bytes) text += String.fromCharCode(b);
  return text;
}
