// The statements of a log about its next key: events ledger_log_key, each in a tree that the previous key signed too.

import { hex } from "../bytes.js";
import { LedgerError, Mismatch, Unproved } from "../errors.js";
import { openCheckpoint, parseLogKey, parseNote, readCheckpoint } from "../log/note.js";
import { parseBundle } from "./bundle.js";
import { check } from "./check.js";
import { parseEnvelope, parseRecord } from "./documents.js";
import { addAccepted, signedSize } from "./knownkeys.js";

/** The maximum number of statements that findKeyStatements fetches. */
export const maxStatements = 16;

/** Describes an accepted key in a sentence. */
export function describeAccepted({ vkey, by, from_size: size }) {
  const [next, before] = [parseLogKey(vkey).signer, parseLogKey(by).signer];
  return `the key ${next} replaces ${before} from size ${size} on: an entry of the log states it, in a tree that ${before} signed`;
}

/**
 * Checks the bundle of an event by which a log states its next key. The tree must end with the event. The stated key
 * and a known key must have signed it. The known key must sign trees of this size and have no end, because a replaced
 * key cannot state another one. Resolves to the accepted key and its `checkpoint`. The caller must check that this tree
 * and every tree that it knows are of one history. Throws a LedgerError.
 */
export async function checkKeyStatement(source, known) {
  const b = parseBundle(source);
  const note = parseNote(b.checkpoint);
  const by = await currentSigner(known, note);
  if (!by) throw new Unproved("check key statement: no line of a known key that still signs: wrong signature", true);
  const { size } = readCheckpoint(note);
  if (size !== BigInt(b.log_index) + 1n) throw new Mismatch("check key statement: log_index and the end of the tree");
  const { report } = await check(b, { key: by });
  if (!report.ok) throw new Mismatch(`check key statement: ${report.errors[0]}`);
  if (![report.record_ok, report.signature_ok, report.envelope_ok].every((ok) => ok === true)) {
    throw new Mismatch("check key statement: the event: not disclosed");
  }
  const key = readStatedKey(b);
  if (known.some((k) => k.key.text === key.text)) throw new Mismatch("check key statement: the stated key is known already");
  await openCheckpoint(note, key); // checks the key's name too
  return { vkey: key.text, by: by.text, from_size: Number(size), checkpoint: b.checkpoint };
}

/** Resolves to the known key without an end that signed a note, or undefined. */
async function currentSigner(known, note) {
  const { size } = readCheckpoint(note);
  for (const k of known) {
    if (k.to !== undefined || !signedSize(k, size)) continue;
    try {
      await openCheckpoint(note, k.key);
      return k.key;
    } catch (why) {
      if (!(why instanceof LedgerError)) throw why;
    }
  }
  return undefined;
}

function readStatedKey(b) {
  const { members } = parseEnvelope(b.envelope);
  if (parseRecord(b.record).signer !== "system" || members.action_kind !== "ledger_log_key") {
    throw new Mismatch("check key statement: not the service's event about a log key");
  }
  const { transition, vkey } = members.payload ?? {};
  if (transition !== "log_key_created" || typeof vkey !== "string") {
    throw new Mismatch("check key statement: the event states no new key");
  }
  return parseLogKey(vkey);
}

/**
 * Follows the rotations of a log from the known keys to the keys that signed a note. `read` resolves to the statement
 * of a key ID, as text. Resolves to the statements of checkKeyStatement in the order of the rotations, and to the
 * errors of the others, with `unread` if the statement could not be fetched.
 */
export async function findKeyStatements(note, known, read) {
  const [tried, found, errors] = [new Set(), [], []];
  let keys = known;
  const fail = (id, why, unread) => errors.push(Object.assign(new LedgerError(`the statement of the key ${id}: ${why.message}`), { unread }));
  const add = async (id, text) => {
    const under = parseNote(parseBundle(text).checkpoint);
    if (!(await currentSigner(keys, under))) await follow(under);
    const statement = await checkKeyStatement(text, keys);
    if (hex(parseLogKey(statement.vkey).id) !== id) throw new Mismatch("it states another key");
    keys = addAccepted(keys, statement);
    found.push(statement);
  };
  const follow = async (shown) => {
    for (const line of shown.lines) {
      const id = hex(line.id);
      if (line.name !== known[0]?.key.name || tried.has(id) || tried.size === maxStatements) continue;
      if (keys.some((k) => hex(k.key.id) === id)) continue;
      tried.add(id);
      let text;
      try {
        text = await read(id);
      } catch (why) {
        fail(id, why, true);
        continue;
      }
      try {
        await add(id, text);
      } catch (why) {
        if (!(why instanceof LedgerError)) throw why;
        fail(id, why, false);
      }
    }
  };
  await follow(note);
  return { found, errors };
}
