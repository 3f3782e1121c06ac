import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { isObject } from './json';
import { readAccount, type Account } from './service';

/** Where an item goes, and what an operation adds to it. */
export interface Outcome {
	output: number;
	answer: IDataObject;
}

/** The member of each item that holds the answers of this package's nodes, by operation. */
export const MEMBER = 'agentledger';

/**
 * Returns the item with the answer under `agentledger.<name>`. The answers of other operations are kept, because later
 * nodes need them: a step needs the run.
 */
export function withAnswer(item: INodeExecutionData, index: number, name: string, answer: IDataObject): INodeExecutionData {
	const before = item.json[MEMBER];
	const answers = { ...(isObject(before) ? before : {}), [name]: answer };
	return { ...item, json: { ...item.json, [MEMBER]: answers }, pairedItem: { item: index } };
}

/** The item of a failure: only the error, which n8n passes to the error output if there is one. */
export function errorItem(index: number, error: unknown): INodeExecutionData {
	return { json: { error: (error as Error).message }, pairedItem: { item: index } };
}

/**
 * Calls `work` for each item in turn. With "continue on fail" a failed item goes to the last output, which is never the
 * one for permitted items. Everything that can fail must be in `work`, because n8n passes the input of a node that
 * fails with this setting to the node's first output.
 */
export async function forEachItem(
	context: IExecuteFunctions,
	name: string,
	outputs: number,
	work: (account: Account, item: number) => Promise<Outcome>,
): Promise<INodeExecutionData[][]> {
	const sorted: INodeExecutionData[][] = Array.from({ length: outputs }, () => []);
	for (const [index, item] of context.getInputData().entries()) {
		try {
			const { output, answer } = await work(await readAccount(context), index);
			sorted[output]!.push(withAnswer(item, index, name, answer));
		} catch (error) {
			if (!context.continueOnFail()) {
				throw error;
			}
			sorted[outputs - 1]!.push(errorItem(index, error));
		}
	}
	return sorted;
}
