import type { INodeProperties } from 'n8n-workflow';

import { showFor, text } from './show';

export const event: INodeProperties[] = [
	{
		displayName: 'Phase',
		name: 'phase',
		type: 'options',
		default: 'none',
		description: 'Whether the event comes before an act, after it, or tells of none',
		options: [
			{ name: 'After the Act (Result)', value: 'result', description: 'Needs the event ID of the intent' },
			{ name: 'Before the Act (Intent)', value: 'intent', description: 'The answer says whether to act, so there are two outputs' },
			{ name: 'None', value: 'none' },
		],
		displayOptions: showFor('report'),
	},
	text('Parent Event ID', 'parentEventId', 'The event ID of the intent: by default that of a node before this one', {
		default: '={{ $json.agentledger?.event?.event_id ?? "" }}',
		required: true,
		displayOptions: { show: { operation: ['report'], phase: ['result'] } },
	}),
	text('Action Kind', 'actionKind', 'A word of a-z, 0-9 and _, such as tool_call, llm_invocation or result', {
		default: 'tool_call',
		required: true,
		displayOptions: showFor('report'),
	}),
	{
		displayName: 'Policy Decision',
		name: 'policyDecision',
		type: 'options',
		default: 'allow',
		description: 'The decision that the agent declares. The service may only make it stricter',
		options: [
			{ name: 'Allow', value: 'allow' },
			{ name: 'Allow with Obligation', value: 'allow_with_obligation' },
			{ name: 'Deny', value: 'deny' },
		],
		displayOptions: showFor('report'),
	},
	text('Actor Principal', 'actorPrincipal', 'For whom the agent acts. Empty: the name of the workflow', {
		displayOptions: showFor('report'),
	}),
];

/** Members that few events need. `timeout` applies to all operations. */
export const options: INodeProperties = {
	displayName: 'Options',
	name: 'options',
	type: 'collection',
	placeholder: 'Add option',
	default: {},
	options: [
		text('Emitted At', 'emittedAt', 'UTC time such as 2026-01-31T12:00:00.000Z. Empty: now', {
			displayOptions: { show: { '/operation': ['report'] } },
		}),
		text('Event ID', 'eventId', 'Empty: a name made of execution, node and item, so that a repetition is known', {
			displayOptions: { show: { '/operation': ['report'] } },
		}),
		{
			displayName: 'Timeout',
			name: 'timeout',
			type: 'number',
			typeOptions: { minValue: 1, maxValue: 300 },
			default: 15,
			description: 'For how many seconds to wait for the answer of the service',
		},
	],
};
