// The files of a folder, for the verification of an unpacked evidence pack.

import { lstatSync, openAsBlob, readdirSync } from "node:fs";
import { join } from "node:path";
import { Unreadable } from "../errors.js";
import { isIgnored } from "../verify/container.js";

const maxFiles = 4096;

/**
 * Resolves to the files of a folder in the form that `verify.pack` accepts: pairs of a path and a Blob. It follows no
 * symbolic link. Rejects with a LedgerError for a link, a special file and too many files, and with the platform's
 * error.
 */
export async function folderFiles(folder) {
  const found = [];
  let count = 0;
  const waiting = [""];
  while (waiting.length > 0) {
    const below = waiting.pop();
    for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
      if (++count > maxFiles) throw new Unreadable("number of files");
      const path = below + entry.name;
      if (entry.isDirectory()) waiting.push(path + "/");
      else if (isIgnored(path)) continue;
      else if (!lstatSync(join(folder, path)).isFile()) throw new Unreadable("a symbolic link or a special file");
      else found.push([path, await openAsBlob(join(folder, path))]);
    }
  }
  return found;
}
