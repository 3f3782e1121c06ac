// Where the bytes of an evidence pack come from: bytes in memory, or a Blob (such as a File), which is read in slices.

import { Malformed } from "../errors.js";

/**
 * The maximum number of bytes that are read at once, except for documents, which have their own bounds. It is a
 * multiple of 32.
 */
export const sliceBytes = 1 << 18;

/**
 * Returns the size in bytes and the function that reads [begin, end) of them. A Blob is never read as a whole. If it
 * cannot be read, the function throws the platform's error, because that proves nothing about the pack.
 */
export function sourceOf(pack) {
  if (pack instanceof Uint8Array) return { size: pack.length, read: async (begin, end) => pack.subarray(begin, end) };
  if (typeof pack?.arrayBuffer !== "function" || typeof pack.slice !== "function") {
    throw new TypeError("an evidence pack is a Uint8Array, a Blob or a File, or the files of a folder");
  }
  const read = async (begin, end) => {
    const bytes = new Uint8Array(await pack.slice(begin, end).arrayBuffer());
    if (bytes.length !== end - begin) throw new Malformed("size of the pack");
    return bytes;
  };
  return { size: pack.size, read };
}

/** Yields [begin, end) of a source in slices. They stay valid. */
export async function* slices(source, begin, end) {
  for (let at = begin; at < end; at += sliceBytes) yield await source.read(at, Math.min(end, at + sliceBytes));
}
