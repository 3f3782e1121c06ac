import type { INodeProperties } from 'n8n-workflow';

import { showFor, text } from './show';

/** The act to ask about or to report: the actor, the tool and the parameters. */
export const act: INodeProperties[] = [
	text('Agent ID', 'agentId', "The agent that acts. Empty: the one of the credential. In a run it is the run's agent", {
		displayOptions: showFor('check', 'report', 'startRun', 'useApproval'),
	}),
	text('Agent ID', 'agentId', "The agent that acts: by default the run's, else the one of the credential", {
		default: '={{ $json.agentledger?.run?.agent_id ?? "" }}',
		displayOptions: showFor('sendAndWait'),
	}),
	text('Tool Name', 'toolName', 'The name of the tool in the policy, such as acme.payments.refund', {
		required: true,
		placeholder: 'acme.payments.refund',
		displayOptions: showFor('check', 'sendAndWait', 'useApproval'),
	}),
	text('Tool Name', 'toolName', 'The name of the tool in the policy. Without one the policy is not asked', {
		placeholder: 'acme.payments.refund',
		displayOptions: showFor('report', 'step'),
	}),
	{
		displayName: 'Payload',
		name: 'payload',
		type: 'json',
		default: '{}',
		description: 'A JSON object: the parameters of the act, as policies and people see them',
		displayOptions: showFor('check', 'sendAndWait', 'report', 'step', 'useApproval'),
	},
];
