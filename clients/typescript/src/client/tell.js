// Functions of callers that are told of something. Their faults are their own: they stop nothing and change no outcome.

/** Calls a listener, if there is one. Its error, whose message may have anything in it, becomes a warning with its name alone. */
export async function tell(name, listener, ...args) {
  try {
    await listener?.(...args);
  } catch (why) {
    console.warn(`agentledger: ${name} failed: ${why?.name ?? typeof why}`);
  }
}
