import type { INodeProperties } from 'n8n-workflow';

import { showFor, text } from './show';

export const run: INodeProperties[] = [
	text('Workflow Name', 'workflowName', 'The name of the run in the ledger. Empty: the name of the workflow', {
		displayOptions: showFor('startRun'),
	}),
	text('External Run ID', 'externalRunId', 'The same ID is the same run. Empty: a name made of execution, node and item', {
		displayOptions: showFor('startRun'),
	}),
	{
		displayName: 'Planned Steps',
		name: 'plannedSteps',
		type: 'number',
		typeOptions: { minValue: 0, maxValue: 10000 },
		default: 0,
		description: 'How many steps there will be, so that missing ones are found. 0: not told',
		displayOptions: showFor('startRun'),
	},
	text('Run ID', 'runId', 'The run: by default that of a node Start Run', {
		default: '={{ $json.agentledger?.run?.run_id ?? "" }}',
		required: true,
		displayOptions: showFor('step', 'completeRun'),
	}),
	text('Step Key', 'stepKey', 'Names the step in its run. The same key and attempt is the same step', {
		required: true,
		placeholder: 'pay',
		displayOptions: showFor('step'),
	}),
	{
		displayName: 'Attempt',
		name: 'attempt',
		type: 'number',
		typeOptions: { minValue: 1, maxValue: 1000000 },
		default: 1,
		description: 'Counts the tries of one step',
		displayOptions: showFor('step'),
	},
	text('Status', 'stepStatus', 'A word such as started, succeeded, failed or skipped', {
		default: 'started',
		required: true,
		displayOptions: showFor('step'),
	}),
	text('Kind', 'kind', 'The action kind of the event. Empty: tool_call', { displayOptions: showFor('step') }),
	text('Approval ID', 'stepApprovalId', 'The approval that this step uses up. Default: that of Ask and Wait, in the first step after it', {
		default: '={{ $json.agentledger?.step ? "" : $json.agentledger?.approval?.approval_id ?? "" }}',
		displayOptions: showFor('step'),
	}),
	{
		displayName: 'Status',
		name: 'runStatus',
		type: 'options',
		default: 'succeeded',
		options: [
			{ name: 'Aborted', value: 'aborted' },
			{ name: 'Failed', value: 'failed' },
			{ name: 'Succeeded', value: 'succeeded' },
		],
		description: 'How the run ended',
		displayOptions: showFor('completeRun'),
	},
	text('Error', 'runError', 'What went wrong, at most 1,024 characters', {
		displayOptions: { show: { operation: ['completeRun'], runStatus: ['failed', 'aborted'] } },
	}),
];
