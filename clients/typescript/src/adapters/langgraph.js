// Tools of LangGraph.js under a client's guard. The graph is interrupted while an approval is pending.

import { ApprovalRequired } from "../errors.js";
import { callRunner } from "./call.js";
import { guardWith } from "./langchain.js";

/** Returns a tool like this one whose calls interrupt the graph while they wait for approval. */
export function guardTool(client, tool, { interrupt, ...options }) {
  const runCall = callRunner(client, { waitMs: 0, ...options });
  const prefix = options.prefix ?? "";
  const askAgain = async (call, act) => {
    for (;;) {
      try {
        return await runCall(call, act);
      } catch (why) {
        if (!(why instanceof ApprovalRequired) || why.approvalId === undefined) throw why;
        // interrupt throws to stop the graph. In a resumed graph it returns once for each time that the graph was
        // resumed, and approvers may have decided since.
        const { approvalId: approval_id, message } = why;
        interrupt({ approval_id, url: client.approvals.pageUrl(approval_id), tool: prefix + call.tool, message });
      }
    }
  };
  return guardWith(askAgain, tool);
}
