// What this browser remembers of each log: its key, and the checkpoint of the largest tree that was proved.
// A browser without storage remembers nothing, and every visit is a first one.

const prefix = "agentledger:log:";

/** Returns {key, size, checkpoint} of the log of an origin; each may be missing. */
export function recall(origin) {
  try {
    const kept = JSON.parse(localStorage.getItem(prefix + origin));
    return typeof kept === "object" && kept !== null ? kept : {};
  } catch {
    return {};
  }
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
