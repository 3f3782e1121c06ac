// A bundle that is correct except that an unknown key signed it proves nothing wrong.

import { Malformed } from "../errors.js";
import { parseLogKey } from "../log/note.js";
import { check, namesKey } from "./check.js";

/** Resolves to name and key ID of the unknown keys that signed, if nothing else is wrong; otherwise to []. */
export async function unknownKeys(bundle, options) {
  const unknown = [];
  const believed = believe(bundle, options, unknown);
  if (options.directory && bundle.directory) {
    believed.directory = believe(bundle.directory.bundle, options.directory, unknown);
  }
  if (unknown.length === 0) return [];
  const { report } = await check(bundle, believed);
  return report.ok ? unknown : [];
}

function believe(bundle, options, unknown) {
  const named = namedKey(bundle);
  const { key, retired = [] } = options;
  if (!named || !key || namesKey(bundle, key) || retired.some((k) => k.key.text === named.text)) return { ...options };
  unknown.push(named.signer);
  return { ...options, key: named };
}

function namedKey(bundle) {
  try {
    return parseLogKey(bundle.log_key);
  } catch (why) {
    if (why instanceof Malformed) return undefined;
    throw why;
  }
}
