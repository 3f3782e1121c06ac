// Parts that need Node's file system. The core does not, so it runs in browsers and workers.

import { readFileSync } from "node:fs";
import { Client, missingSettings } from "./client/client.js";
import { parseSeed } from "./client/signer.js";
import { LedgerError } from "./errors.js";

export { folderFiles } from "./node/folder.js";
export { FileQueue } from "./node/filequeue.js";
export { FileJournal } from "./node/filejournal.js";

/** Reads a private key file: base64 of the 32-byte seed, as `aps keygen` writes it. */
export function readKeyFile(path) {
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch (why) {
    throw new LedgerError(`the key file can't be read (${why.code})`);
  }
  return parseSeed(text, "private key file");
}

/**
 * Creates a client from APS_URL, APS_TOKEN, APS_ORG, APS_AGENT, APS_KEY_ID and APS_KEY_FILE or APS_KEY. Arguments take precedence.
 */
export function clientFromEnvironment(options = {}, env = process.env) {
  const given = { url: env.APS_URL, token: env.APS_TOKEN, org: env.APS_ORG, agent: env.APS_AGENT, keyId: env.APS_KEY_ID, ...options };
  if (given.key === undefined && env.APS_KEY_FILE) given.key = readKeyFile(env.APS_KEY_FILE);
  else if (given.key === undefined && env.APS_KEY) given.key = parseSeed(env.APS_KEY, "private key (APS_KEY)");
  if (!given.url) {
    const more = missingSettings(given);
    throw new LedgerError("no address of the service: set url (APS_URL)" + (more && `, and to send events ${more}`));
  }
  return new Client(given);
}
