// Tools of LangChain.js (package @langchain/core) under a client's guard, alone or in a middleware of createAgent.

import { LedgerError } from "../errors.js";
import { callRunner } from "./call.js";

/** Returns a tool like this one whose calls are guarded acts. */
export function guardTool(client, tool, options) {
  return guardWith(callRunner(client, options), tool);
}

/** Returns a hook `wrapToolCall` for createMiddleware, which guards each tool that the agent calls. */
export function wrapToolCall(client, options) {
  const runCall = callRunner(client, options);
  return (request, handler) => handler({ ...request, tool: guardWith(runCall, request.tool) });
}

/** Returns a tool that inherits everything from another one, so that it remains an instance of the same class. */
export function guardWith(runCall, tool) {
  if (typeof tool?._call !== "function") {
    throw new LedgerError("only a tool of LangChain that runs in this process can be guarded");
  }
  const _call = (input, runManager, config) =>
    runCall({ tool: tool.name, id: config?.toolCall?.id, input }, () => tool._call(input, runManager, config));
  return Object.create(tool, { _call: { value: _call } });
}
