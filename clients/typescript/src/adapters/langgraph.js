// Tools of LangGraph.js under a client's guard. The graph is interrupted while an approval is pending.

import { ApprovalRequired } from "../errors.js";
import { callRunner } from "./call.js";
import { guardWith } from "./langchain.js";

/** Returns a tool like this one whose calls interrupt the graph while they wait for approval. */
export function guardTool(client, tool, { interrupt, ...options }) {
  const runCall = callRunner(client, { waitMs: 0, ...options });
  const askAgain = async (call, act) => {
    try {
      return await runCall(call, act);
    } catch (why) {
      if (!(why instanceof ApprovalRequired)) throw why;
      // interrupt throws to stop the graph. In a resumed graph it returns, and approvers may have decided since.
      interrupt({ approval_id: why.approvalId, tool: call.tool, message: why.message });
      return runCall(call, act);
    }
  };
  return guardWith(askAgain, tool);
}
