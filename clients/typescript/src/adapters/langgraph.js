// Tools of LangGraph.js under a client's guard. The graph is interrupted while people have not answered.

import { ApprovalRequired } from "../errors.js";
import { callRunner } from "./call.js";
import { guardWith } from "./langchain.js";

/** Returns a tool like this one, whose calls interrupt the graph while they wait for people. */
export function guardTool(client, tool, { interrupt, ...options }) {
  const runCall = callRunner(client, { waitMs: 0, ...options });
  const askAgain = async (call, act) => {
    try {
      return await runCall(call, act);
    } catch (why) {
      if (!(why instanceof ApprovalRequired)) throw why;
      // It throws to stop the graph. In a resumed graph it returns, and people may have answered since.
      interrupt({ approval_id: why.approvalId, tool: call.tool, message: why.message });
      return runCall(call, act);
    }
  };
  return guardWith(askAgain, tool);
}
