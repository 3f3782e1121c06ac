import type { INodeProperties } from 'n8n-workflow';

export const operation: INodeProperties = {
	displayName: 'Operation',
	name: 'operation',
	type: 'options',
	noDataExpression: true,
	default: 'check',
	options: [
		{
			name: 'Ask and Wait',
			value: 'sendAndWait',
			action: 'Ask people and wait',
			description: 'Ask people where the policy wants them, and wait for their decision',
		},
		{
			name: 'Check Policy',
			value: 'check',
			action: 'Check the policy',
			description: 'Ask the policy before an act. Nothing is recorded',
		},
		{
			name: 'Complete Run',
			value: 'completeRun',
			action: 'Complete a run',
			description: 'End a run',
		},
		{
			name: 'Read Approval',
			value: 'readApproval',
			action: 'Read an approval',
			description: 'Read from the service what people decided: approved, or not',
		},
		{
			name: 'Report Event',
			value: 'report',
			action: 'Sign and report an event',
			description: "Sign an event with the agent's key and store it in the ledger",
		},
		{
			name: 'Report Step',
			value: 'step',
			action: 'Report a step of a run',
			description: 'Record a step and have it decided. With an approval, use that up',
		},
		{
			name: 'Start Run',
			value: 'startRun',
			action: 'Start a run',
			description: 'Start a run of this workflow. The service signs its steps, so no agent key is needed',
		},
		{
			name: 'Use Approval',
			value: 'useApproval',
			action: 'Use an approval up',
			description: "Use an approval up for one act, with the agent's key. In a run, Report Step does that",
		},
	],
};

/**
 * The outputs by operation. If there are several, the first one is for permitted items, and failed items go to the last
 * one.
 */
export const outputs = `={{ ({
	check: [{ type: "main", displayName: "Allowed" }, { type: "main", displayName: "Needs approval" }, { type: "main", displayName: "Denied" }],
	readApproval: [{ type: "main", displayName: "Approved" }, { type: "main", displayName: "Not approved" }],
	step: [{ type: "main", displayName: "May go on" }, { type: "main", displayName: "Must stop" }],
	useApproval: [{ type: "main", displayName: "May go on" }, { type: "main", displayName: "Must stop" }],
	intent: [{ type: "main", displayName: "May go on" }, { type: "main", displayName: "Must stop" }],
})[$parameter["phase"] === "intent" && $parameter["operation"] === "report" ? "intent" : $parameter["operation"]] || [{ type: "main" }] }}`;
