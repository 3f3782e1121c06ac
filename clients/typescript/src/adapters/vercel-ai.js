// Tools of the Vercel AI SDK (package ai) under a client's guard.

import { callRunner } from "./call.js";

/** Returns the same tools with each `execute` as a guarded act. */
export function guardTools(client, tools, options) {
  const runCall = callRunner(client, options);
  const guarded = Object.entries(tools).map(([name, tool]) => [name, tool.execute ? guardExecute(runCall, name, tool) : tool]);
  return Object.fromEntries(guarded);
}

function guardExecute(runCall, name, tool) {
  const execute = (input, call) =>
    runCall({ tool: name, id: call?.toolCallId, input }, () => lastValue(tool.execute(input, call)));
  return { ...tool, execute };
}

/** Returns the last value of an execute, which may yield preliminary values. */
async function lastValue(result) {
  if (typeof result?.[Symbol.asyncIterator] !== "function") return result;
  let last;
  for await (const value of result) last = value;
  return last;
}
