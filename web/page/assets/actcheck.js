// Checks the event of the act that the document shows.

/**
 * Shows the verdicts in a part of the page, which may be removed in the meantime. The verifier is loaded here, because a list shows no
 * act at first.
 */
export async function checkAct(part) {
  const { url, transparency, origin, event } = part.dataset;
  const [{ checkEvent }, { runChecks }] = await Promise.all([import("./eventcheck.js"), import("./trust.js")]);
  if (!part.isConnected) return;
  await runChecks(origin, () => checkEvent({ url, transparency, origin, event, root: part }), part);
  part.dataset.done = "yes";
}
