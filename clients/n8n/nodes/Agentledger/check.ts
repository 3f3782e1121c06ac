import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { fault } from './faults';
import { forEachItem, type Outcome } from './items';
import { readPayload, readTimeout, requireAgent, requireText } from './parameters';
import { ask, type Account } from './service';

/** The outputs of Check Policy, by the service's decision. The last one is for failures. */
const OUTPUTS: Record<string, number> = { allow: 0, allow_with_obligation: 1, deny: 2 };

/** Asks the policy about each item. The service stores nothing and reserves nothing. */
export async function checkPolicy(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	return await forEachItem(context, 'check', 3, async (account, item) => await checkItem(context, account, item));
}

async function checkItem(context: IExecuteFunctions, account: Account, item: number): Promise<Outcome> {
	const answer = await evaluate(context, account, item, {});
	const decision = String(answer.decision);
	if (decision === 'deny' && context.getNodeParameter('onDenial', item, 'output') === 'stop') {
		throw denied(context, item, answer);
	}
	return { output: OUTPUTS[decision]!, answer };
}

/**
 * Asks for a decision on the tool and payload in the node's parameters. `more` are further members of the request. An
 * answer without one of the three decisions permits nothing and is an error.
 */
export async function evaluate(
	context: IExecuteFunctions,
	account: Account,
	item: number,
	more: IDataObject,
): Promise<IDataObject> {
	const body = {
		organization_id: account.organization,
		agent_id: requireAgent(context, account, item),
		tool_name: requireText(context, 'toolName', 'Tool Name', item),
		payload: readPayload(context, 'payload', 'Payload', item),
		...more,
	};
	const timeoutMs = readTimeout(context, item);
	const answer = await ask(context, account, { method: 'POST', path: '/v1/ingest/policy/evaluate', body, timeoutMs, item });
	if (!Object.hasOwn(OUTPUTS, String(answer.decision))) {
		throw fault(context, item, 'The answer of the service holds no decision, so it permits nothing');
	}
	return answer;
}

function denied(context: IExecuteFunctions, item: number, answer: IDataObject): Error {
	const rule = `rule ${String(answer.rule_id)} of policy ${String(answer.policy_id)}`;
	return fault(context, item, `The policy denies this: ${String(answer.reason)}`, `Decided by ${rule}.`);
}
