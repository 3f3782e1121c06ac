import type { INodeProperties } from 'n8n-workflow';

import { showFor, text } from './show';

export const approval: INodeProperties[] = [
	{
		displayName: 'On Denial',
		name: 'onDenial',
		type: 'options',
		default: 'output',
		description: 'What to do when the policy denies an item',
		options: [
			{ name: 'Use the Output Denied', value: 'output' },
			{ name: 'Stop the Workflow', value: 'stop' },
		],
		displayOptions: showFor('check'),
	},
	{
		displayName: 'On Refusal',
		name: 'onRefusal',
		type: 'options',
		default: 'drop',
		description: 'What to do with items that are not approved in the end',
		options: [
			{
				name: 'Pass On Only Approved Items',
				value: 'drop',
				description: 'The workflow ends for the others',
			},
			{
				name: 'Pass On All Items',
				value: 'pass',
				description: 'A node Read Approval has to follow: it has an output for what is not approved',
			},
		],
		displayOptions: showFor('sendAndWait'),
	},
	text('Trace ID', 'traceId', 'Groups what belongs together. Empty: a name made of execution, node and item', {
		displayOptions: showFor('sendAndWait'),
	}),
	text('Trace ID', 'traceId', 'Groups what belongs together. Empty: a name made of the execution', {
		displayOptions: showFor('report'),
	}),
	text('Approval ID', 'approvalId', 'The approval: by default that of a node Ask and Wait', {
		default: '={{ $json.agentledger?.approval?.approval_id ?? "" }}',
		required: true,
		displayOptions: showFor('readApproval', 'useApproval'),
	}),
	{
		displayName: 'Wait',
		name: 'waitSeconds',
		type: 'number',
		typeOptions: { minValue: 0, maxValue: 30 },
		default: 0,
		description: 'For how many seconds, at most 30, the service waits with its answer while nothing is decided',
		displayOptions: showFor('readApproval'),
	},
];
