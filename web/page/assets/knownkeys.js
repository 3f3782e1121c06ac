// The log keys that this browser knows, and how it accepts another one: the log itself states each change of its key, in
// an entry of a tree that the key before it signed too.

import { LedgerError, Mismatch } from "./verifier/errors.js";
import { hex } from "./verifier/bytes.js";
import { parseLogKey, parseNote, readCheckpoint } from "./verifier/log/note.js";
import { parseBundle } from "./verifier/verify/bundle.js";
import { parseEnvelope, parseRecord } from "./verifier/verify/documents.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { checkConsistency } from "./consistency.js";

const maxStatements = 16; // changes of the key between two visits

/** Returns the key ID of a vkey: 8 hex digits. */
export function keyID(vkey) {
  return hex(parseLogKey(vkey).id);
}

/** Reports whether a note has a line of a key. */
export function signs({ vkey }, note) {
  const key = parseLogKey(vkey);
  return note.lines.some((l) => key.owns(l));
}

/** Returns the index of the known key that counts for the size of a note and has a line in it, -1 for none. */
export function findSigner(keys, note) {
  const { size } = readCheckpoint(note);
  return keys.findIndex(
    (k) =>
      BigInt(k.from_size) <= size &&
      (k.to_size === null || size < BigInt(k.to_size)) &&
      signs(k, note),
  );
}

/**
 * Resolves to the known keys and one that signed the note. It throws a LedgerError if neither a known key signed it nor
 * an entry of the log states the key, under a checkpoint that a known key signed. `read` reads transparency/ paths.
 */
export async function acceptSigner(origin, keys, note, read) {
  if (findSigner(keys, note) >= 0) return keys;
  const asked = new Set();
  const accept = async (known, shown) => {
    for (const line of shown.lines.filter((l) => l.name === origin)) {
      const id = hex(line.id);
      if (asked.has(id) || asked.size === maxStatements) continue;
      asked.add(id);
      const text = await read(`keys/${id}?origin=${encodeURIComponent(origin)}`).catch(() => undefined);
      if (text === undefined) continue; // no entry states this key
      const under = parseNote(parseBundle(text).checkpoint);
      const more = findSigner(known, under) >= 0 ? known : await accept(known, under);
      if (more === undefined) continue;
      return [...more, await readStatement(origin, more[findSigner(more, under)], id, text, read)];
    }
    return undefined;
  };
  const found = await accept(keys, note);
  if (found === undefined || findSigner(found, note) < 0) {
    throw new LedgerError("no entry of the log under a known key states this key");
  }
  return found;
}

/** Resolves to the key that an event states, after the event was proved under a known key. */
async function readStatement(origin, signer, id, text, read) {
  const { outcome, reason } = await verifyBundle(text, { key: signer.vkey, require: "full" });
  if (outcome !== "proved") throw new LedgerError(`the statement of the key ${id}: ${reason}`);
  const bundle = parseBundle(text);
  const { members } = parseEnvelope(bundle.envelope);
  const { transition, vkey } = members.payload;
  const states = parseRecord(bundle.record).signer === "system" && members.action_kind === "ledger_log_key";
  if (!states || transition !== "log_key_created" || typeof vkey !== "string") {
    throw new Mismatch(`the event does not state the key ${id}`);
  }
  const key = parseLogKey(vkey);
  if (key.name !== origin || hex(key.id) !== id) throw new Mismatch(`the event states another key than ${id}`);
  const verdict = await checkConsistency(origin, bundle.checkpoint, read, false);
  if (verdict.state === "fail") throw new LedgerError(`the statement of the key ${id}: ${verdict.words}`);
  return { vkey, from_size: bundle.log_index + 1, to_size: null, source: "stated", by: keyID(signer.vkey) };
}
