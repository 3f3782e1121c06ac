import { WAIT_INDEFINITELY, type IDataObject, type IExecuteFunctions, type INodeExecutionData } from 'n8n-workflow';

import { isDecided, shownApproval } from './approval';
import { decidedItems, keepAsked, type Asked, type Passing } from './asked';
import { evaluate } from './check';
import { fault } from './faults';
import { nameOfWork } from './names';
import { readText } from './parameters';
import { readAccount } from './service';

/**
 * Requests approval for each item if the policy requires it, and makes the execution wait until all requests are
 * decided. Without such an item the execution continues at once.
 *
 * n8n passes the input through a node that it resumes by a timer. So there is no time limit here: the service's own
 * limit ends the request, and its callback resumes the execution.
 */
export async function askAndWait(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const items = context.getInputData();
	const asked: Asked[] = [];
	for (const index of items.keys()) {
		asked.push(await askItem(context, index, asked));
	}
	if (asked.every(({ approval }) => approval === undefined || isDecided(approval))) {
		return [decidedItems(items, asked, context.getNodeParameter('onRefusal', 0, 'drop') as Passing)];
	}
	keepAsked(context, asked);
	requireSignature(context);
	await context.putExecutionToWait(WAIT_INDEFINITELY);
	return [items];
}

/** n8n 1 checks the signature of a resume URL if a node requests it. n8n 2 always checks it and has no such call. */
function requireSignature(context: object): void {
	(context as { setSignatureValidationRequired?: () => void }).setSignatureValidationRequired?.();
}

/** With "continue on fail", an item whose approval could not be requested counts as refused. */
async function askItem(context: IExecuteFunctions, item: number, before: Asked[]): Promise<Asked> {
	try {
		return await askPeople(context, item, before);
	} catch (error) {
		if (!context.continueOnFail()) {
			throw error;
		}
		return { ended: { approved: false, status: 'failed', error: (error as Error).message } };
	}
}

async function askPeople(context: IExecuteFunctions, item: number, before: Asked[]): Promise<Asked> {
	const more: IDataObject = {
		request_approval: true,
		trace_id: readText(context, 'traceId', item) ?? (await nameOfWork(context, item)),
		callback_url: context.getSignedResumeUrl(),
	};
	const answer = await evaluate(context, await readAccount(context), item, more);
	if (answer.decision !== 'allow_with_obligation') {
		return { ended: { ...answer, approved: answer.decision === 'allow', status: 'not_asked' } };
	}
	const approval = shownApproval(answer.approval);
	if (approval === undefined) {
		throw fault(context, item, 'The answer of the service holds no approval, so it permits nothing');
	}
	if (before.some((other) => other.approval?.approval_id === approval.approval_id)) {
		const advice = 'Give each item a trace of its own, because an approval serves one act.';
		throw fault(context, item, 'An earlier item asks for the same approval', advice);
	}
	return { approval };
}
