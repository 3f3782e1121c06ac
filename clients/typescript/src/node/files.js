// Durable files: file and folder are on disk when the promise of a write resolves.

import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { LedgerError } from "../errors.js";

/** Replaces a file atomically. */
export async function replaceFile(path, text) {
  const temporary = path + ".tmp";
  const file = await open(temporary, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/**
 * Appends to a file, which is created if missing. If it fails, it removes what it has appended. Only one caller at a time
 * may append to a file.
 */
export async function appendDurably(path, text) {
  const file = await open(path, "a", 0o600);
  try {
    const { size } = await file.stat();
    try {
      await file.writeFile(text);
      await file.sync();
    } catch (why) {
      await file.truncate(size);
      throw why;
    }
  } finally {
    await file.close();
  }
  await syncFolder(dirname(path));
}

/** Removes a file if it exists. */
export async function removeFile(path) {
  await rm(path, { force: true });
  await syncFolder(dirname(path));
}

async function syncFolder(path) {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Locks a folder for this process with a file that contains its PID. The lock of a process that has ended is taken
 * over.
 */
export async function lockFolder(path) {
  for (let tries = 0; tries < 2; tries++) {
    try {
      const file = await open(path, "wx", 0o600);
      await file.writeFile(String(process.pid));
      await file.close();
      return () => rm(path, { force: true });
    } catch (why) {
      if (why.code !== "EEXIST") throw why;
      const owner = Number(await readFile(path, "utf8").catch(() => ""));
      if (owner > 0 && isAlive(owner)) throw new LedgerError("the folder is in use by another process or client");
      await rm(path, { force: true });
    }
  }
  throw new LedgerError("the folder is in use by another process or client");
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (why) {
    return why.code === "EPERM";
  }
}
