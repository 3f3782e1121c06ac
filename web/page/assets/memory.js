// What this browser remembers of each log: the keys and the witness policy that it trusts, and the checkpoint of the
// largest tree that was proved. A browser without storage remembers nothing, and every visit is a first visit.

const prefix = "agentledger:log:";

/**
 * Returns {keys, policy, checkpoint, name} of the log of an origin. `keys` is empty for a log that this browser has not seen;
 * the other members may be missing. `name` is the organization's, as the service showed it. A key is {vkey, from_size, to_size,
 * source, by, since}: `since` is the time when it was first remembered, and it counts for trees of the sizes [from_size, to_size), `to_size` is null while it has no end. `source` is "shown" (by the service, at the first visit),
 * "entered" (by the reader) or "stated" (by an entry of the log, under a checkpoint that the key `by` signed; `by` counts
 * for trees below from_size only).
 */
export function recall(origin) {
  const { key, ...stored } = read(origin);
  if (Array.isArray(stored.keys)) return stored;
  // Earlier versions of this page stored one key.
  return { ...stored, keys: typeof key === "string" ? [newKey(key, "shown")] : [] };
}

function read(origin) {
  try {
    const stored = JSON.parse(localStorage.getItem(prefix + origin));
    return typeof stored === "object" && stored !== null ? stored : {};
  } catch {
    return {};
  }
}

/** Returns a key that counts for trees of every size. */
export function newKey(vkey, source) {
  return { vkey, from_size: 0, to_size: null, source, since: new Date().toISOString() };
}

/** Adds members to what is remembered of a log. Returns whether the browser stores it. */
export function remember(origin, members) {
  try {
    localStorage.setItem(prefix + origin, JSON.stringify({ ...recall(origin), ...members }));
    return true;
  } catch {
    return false;
  }
}

/** Forgets all of a log. */
export function forget(origin) {
  try {
    localStorage.removeItem(prefix + origin);
  } catch {
    // There is no storage, so nothing is remembered.
  }
}
