// Function tools of the OpenAI Agents SDK (package @openai/agents) under a client's guard.

import { callRunner, payloadOf } from "./call.js";

/** Returns options for `tool()` whose `execute` is a guarded act. */
export function guardOptions(client, options, adapterOptions) {
  const runCall = callRunner(client, adapterOptions);
  const execute = (input, context, details) =>
    runCall({ tool: options.name, id: details?.toolCall?.callId, input }, () => options.execute(input, context, details));
  return { ...options, execute };
}

/** Returns a `needsApproval` for the same options: true if the policy requires approval. */
export function needsApproval(client, { name }, { prefix = "" } = {}) {
  return async (context, input) => {
    const { decision } = await client.evaluate({ tool: prefix + name, payload: payloadOf(input) });
    return decision === "allow_with_obligation";
  };
}
