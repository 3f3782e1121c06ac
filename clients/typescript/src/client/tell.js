// Callbacks of the caller. Their errors stop nothing and change no outcome.

/**
 * Calls a listener, if there is one. Its error, whose message may contain anything, becomes a warning that contains
 * only its name.
 */
export async function tell(name, listener, ...args) {
  try {
    await listener?.(...args);
  } catch (why) {
    warn(`${name} failed: ${why?.name ?? typeof why}`);
  }
}

/** Prints a warning. */
export function warn(text) {
  console.warn("agentledger: " + text);
}
