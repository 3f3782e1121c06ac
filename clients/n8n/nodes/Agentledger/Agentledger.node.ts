import {
	NodeConnectionTypes,
	type IExecuteFunctions,
	type INodeExecutionData,
	type INodeType,
	type INodeTypeDescription,
	type IWebhookFunctions,
	type IWebhookResponseData,
} from 'n8n-workflow';

import { askAndWait } from './ask';
import { readApprovals } from './approval';
import { checkPolicy } from './check';
import { act } from './description/act';
import { approval } from './description/approval';
import { event, options } from './description/event';
import { operation, outputs } from './description/operations';
import { run } from './description/run';
import type { Operation } from './description/show';
import { reportEvents } from './report';
import { resume } from './resume';
import { completeRuns, reportSteps, startRuns } from './run';
import { CREDENTIAL } from './service';
import { useApprovals } from './use';

const OPERATIONS: Record<Operation, (context: IExecuteFunctions) => Promise<INodeExecutionData[][]>> = {
	check: checkPolicy,
	sendAndWait: askAndWait,
	readApproval: readApprovals,
	report: reportEvents,
	startRun: startRuns,
	step: reportSteps,
	completeRun: completeRuns,
	useApproval: useApprovals,
};

/** The node of this package. Each operation has its own file. */
export class Agentledger implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'agentledger',
		name: 'agentledger',
		icon: 'file:agentledger.svg',
		group: ['transform'],
		version: 1,
		subtitle: '={{ $parameter["operation"] }}',
		description: 'Ask the policy and people before an act, and record what was done',
		defaults: { name: 'agentledger' },
		inputs: [NodeConnectionTypes.Main],
		outputs,
		credentials: [{ name: CREDENTIAL, required: true }],
		webhooks: [
			{
				name: 'default',
				httpMethod: 'POST',
				responseMode: 'onReceived',
				responseData: '',
				path: '={{ $nodeId }}',
				restartWebhook: true,
				isFullPath: true,
			},
		],
		properties: [operation, ...run, ...act, ...approval, ...event, options],
	};

	/** Executes the chosen operation for all items. */
	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		return await OPERATIONS[this.getNodeParameter('operation', 0) as Operation](this);
	}

	/** Handles the service's callback to an execution that waits in Ask and Wait. */
	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		return await resume(this);
	}
}
