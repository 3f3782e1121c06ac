import type { IDataObject, IExecuteFunctions, INodeExecutionData, IWebhookFunctions } from 'n8n-workflow';

import type { Approval } from './approval';
import { withAnswer } from './items';
import { isObject } from './json';

/** The result for one item: the request for approval, or an end without one (the policy's answer, a failure). */
export interface Asked {
	approval?: Approval;
	ended?: IDataObject & { approved: boolean };
}

/** Which items are passed on: the approved ones, or all, so that a later node can distinguish them. */
export type Passing = 'drop' | 'pass';

/**
 * Stores the requests in the execution's own data. A call that resumes the execution cannot change it, so such a call
 * never chooses the approval that is checked.
 */
export function keepAsked(context: IExecuteFunctions, asked: Asked[]): void {
	context.getContext('node').asked = asked as unknown as IDataObject[];
}

/** Reads the requests and their items in the call that resumes the execution. */
export function readAsked(context: IWebhookFunctions): { asked: Asked[]; items: INodeExecutionData[] } {
	const name = JSON.stringify(context.getNode().name);
	const asked: unknown = context.evaluateExpression(`{{ $node[${name}].context.asked }}`);
	const items: unknown = context.evaluateExpression('{{ $input.all() }}');
	if (!Array.isArray(asked) || !Array.isArray(items) || asked.length !== items.length || !asked.every(isObject)) {
		throw new Error('the execution does not hold what was asked');
	}
	return { asked: asked as Asked[], items: items as INodeExecutionData[] };
}

/** Returns the items that are passed on, each with its result under `agentledger.approval`. */
export function decidedItems(items: INodeExecutionData[], asked: Asked[], passing: Passing): INodeExecutionData[] {
	const sorted: INodeExecutionData[] = [];
	for (const [index, item] of items.entries()) {
		const answer = asked[index]!.approval ?? asked[index]!.ended ?? { approved: false };
		if (answer.approved === true || passing === 'pass') {
			sorted.push(withAnswer(item, index, 'approval', answer));
		}
	}
	return sorted;
}
