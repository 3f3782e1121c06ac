import type { IDataObject, IExecuteFunctions, INodeExecutionData, IWebhookFunctions } from 'n8n-workflow';

import type { Approval } from './approval';
import { withAnswer } from './items';
import { isObject } from './json';

/** What came of one item: the question to people, or an end without them (the policy's answer, a failure). */
export interface Asked {
	approval?: Approval;
	ended?: IDataObject & { approved: boolean };
}

/** Which items go on: the approved ones, or all, so that a later node can tell them apart. */
export type Passing = 'drop' | 'pass';

/**
 * Keeps what was asked in the execution's own data. A call that resumes the execution cannot change it,
 * so such a call never names the approval that is looked at.
 */
export function keepAsked(context: IExecuteFunctions, asked: Asked[]): void {
	context.getContext('node').asked = asked as unknown as IDataObject[];
}

/** Reads what was asked, and the items that it was asked for, in the call that resumes the execution. */
export function readAsked(context: IWebhookFunctions): { asked: Asked[]; items: INodeExecutionData[] } {
	const name = JSON.stringify(context.getNode().name);
	const asked: unknown = context.evaluateExpression(`{{ $node[${name}].context.asked }}`);
	const items: unknown = context.evaluateExpression('{{ $input.all() }}');
	if (!Array.isArray(asked) || !Array.isArray(items) || asked.length !== items.length || !asked.every(isObject)) {
		throw new Error('the execution does not hold what was asked');
	}
	return { asked: asked as Asked[], items: items as INodeExecutionData[] };
}

/** The items that go on, each with what came of it under `agentledger.approval`. */
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
