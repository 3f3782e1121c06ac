// The form of a bundle, a saved list of keys, and the listing of a directory.

import { parse } from "../canonical/parse.js";
import { LedgerError, Malformed, UnknownVersion } from "../errors.js";
import { parseLogKey } from "../log/note.js";
import { checkForm, is, isObject, listOf, orNull } from "./forms.js";

const proofForms = { log_index: is.natural, tree_size: is.natural, root_hash: is.hash, hashes: listOf(is.hash) };

const bundleForms = {
  version: is.one,
  organization_id: is.uuid,
  organization_slug: is.text,
  origin: is.text,
  event_id: is.text,
  sequence_num: is.natural,
  log_index: is.natural,
  event_hash: is.hash,
  entry: is.text,
  inclusion: isObject,
  previous_entry: orNull(is.text),
  previous_inclusion: orNull(isObject),
  checkpoint: is.text,
  log_key: is.text,
  log_keys: orNull(listOf(is.text)),
  disclosure: is.oneOf("commitment", "record", "full"),
  record: orNull(is.text),
  envelope: orNull(is.text),
  erased_at: orNull(is.time),
  directory: orNull(isObject),
  verification: is.any,
  operator_statement: is.any,
};
const optional = ["log_keys", "record", "envelope", "erased_at", "directory", "verification", "operator_statement"];

/** Parses a bundle from a text or bytes. Throws Malformed, InvalidValue or UnknownVersion. */
export function parseBundle(source) {
  const b = parse(source);
  if (!isObject(b)) throw new Malformed("parse bundle: object");
  checkBundleForm(b, true);
  return b;
}

function checkBundleForm(b, outer) {
  if (Object.hasOwn(b, "version") && b.version !== null && b.version !== 1) throw new UnknownVersion();
  try {
    checkForm(b, bundleForms, { closed: false, optional });
    checkForm(b.inclusion, proofForms);
    if (b.previous_inclusion !== null) checkForm(b.previous_inclusion, proofForms);
  } catch (cause) {
    throw cause instanceof LedgerError ? new Malformed("parse bundle: " + cause.message) : cause;
  }
  if (b.directory === undefined || b.directory === null) return;
  if (!outer) throw new Malformed("parse bundle: directory: in a directory");
  checkForm(b.directory, { bundle: isObject, inclusion: isObject });
  checkForm(b.directory.inclusion, proofForms);
  checkBundleForm(b.directory.bundle, false);
}

/** Returns the sorted names of members that this version does not define. */
export function unknownMembers(b) {
  return Object.keys(b).filter((name) => !Object.hasOwn(bundleForms, name)).sort();
}

const keyForms = { vkey: is.text, use: is.text, from_size: is.natural, to_size: orNull(is.natural) };

/**
 * Parses a saved answer of transparency/keys: the keys of use log, each with the sizes [from, to) of the trees that it
 * signed. `to` is undefined for the current key. Throws Malformed or InvalidValue.
 */
export function parseKeys(source) {
  const list = parse(source);
  if (!isObject(list) || !Array.isArray(list.keys)) throw new Malformed("parse keys: keys");
  const keys = [];
  for (const k of list.keys) {
    checkForm(k, keyForms, { closed: false });
    if (k.to_size !== null && k.from_size > k.to_size) throw new Malformed("parse keys: sizes");
    if (k.use !== "log") continue;
    keys.push({ key: parseLogKey(k.vkey), from: BigInt(k.from_size), to: k.to_size === null ? undefined : BigInt(k.to_size) });
  }
  if (keys.length === 0) throw new Malformed("parse keys: no key of a log");
  return keys;
}

const listedForms = { origin: is.text, tree_size: is.positive, root_hash: is.hash, log_key: is.text };

/** Parses the payload of a directory's event. Throws Malformed. */
export function parseListing(payload) {
  checkForm(payload, { checkpoints: is.list });
  if (payload.checkpoints.length < 1 || payload.checkpoints.length > 256) throw new Malformed("listing: number of logs");
  let last = "";
  for (const c of payload.checkpoints) {
    checkForm(c, listedForms);
    if (parseLogKey(c.log_key).name !== c.origin || !isBefore(last, c.origin)) {
      throw new Malformed("listing: a log's origin, tree_size or log_key");
    }
    last = c.origin;
  }
  return payload.checkpoints;
}

/** Compares by code points, which is the order of the UTF-8 bytes. */
export function isBefore(a, b) {
  const [x, y] = [[...a], [...b]];
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    if (x[i] !== y[i]) return x[i].codePointAt(0) < y[i].codePointAt(0);
  }
  return x.length < y.length;
}
