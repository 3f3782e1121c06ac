// Code shared by the adapters of agent frameworks: a model's tool call as a guarded act.

import { randomHex } from "../client/random.js";
import { ApprovalDenied, Denied } from "../errors.js";

/** Returns the function that runs the tool calls of one conversation under a client's guard. */
export function callRunner(client, { prefix = "", conversation, denied = "tell", ...options } = {}) {
  const scope = conversation ?? randomHex();
  return async function runCall({ tool, id, input }, act) {
    const key = `${scope}/${tool}/${id ?? randomHex()}`;
    try {
      return (await client.run({ ...options, tool: prefix + tool, payload: payloadOf(input), key }, act)).output;
    } catch (why) {
      if (denied === "tell" && why instanceof Denied) return "Not done: " + why.message;
      if (denied === "tell" && why instanceof ApprovalDenied) return "Not done: " + describeRefusal(why);
      throw why;
    }
  };
}

function describeRefusal({ message, comment }) {
  return comment ? `${message}: ${comment}` : message;
}

/** Policies read the members of an object. Any other input becomes the member `input`. */
export function payloadOf(input) {
  const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
  return isObject ? input : { input: input ?? null };
}
