import type { IWebhookFunctions, IWebhookResponseData } from 'n8n-workflow';

import { isDecided, readApproval } from './approval';
import { decidedItems, readAsked, type Asked, type Passing } from './asked';
import { readAccount, TIMEOUT_MS, type Account } from './service';

/**
 * Handles the call that may resume the execution. The call is a hint and its body is ignored: the service is asked
 * about the approvals that are stored in the execution itself.
 *
 * It must not throw, because n8n resumes an execution whose webhook fails.
 */
export async function resume(context: IWebhookFunctions): Promise<IWebhookResponseData> {
	try {
		const { asked, items } = readAsked(context);
		const now = await readAll(context, await readAccount(context), asked);
		if (!now.every(({ approval }) => approval === undefined || isDecided(approval))) {
			return stay(context, 202, 'People have not decided yet');
		}
		const passing = context.getNodeParameter('onRefusal', 'drop') as Passing;
		return { webhookResponse: { message: 'Decided' }, workflowData: [decidedItems(items, now, passing)] };
	} catch {
		return stay(context, 503, 'The approvals cannot be read now');
	}
}

async function readAll(context: IWebhookFunctions, account: Account, asked: Asked[]): Promise<Asked[]> {
	const now: Asked[] = [];
	for (const [item, one] of asked.entries()) {
		const limits = { waitSeconds: 0, timeoutMs: TIMEOUT_MS, item };
		const id = one.approval?.approval_id;
		now.push(id === undefined ? one : { approval: await readApproval(context, account, id, limits) });
	}
	return now;
}

/** Answers the call and leaves the execution waiting. After a 503 the service calls again. */
function stay(context: IWebhookFunctions, status: number, message: string): IWebhookResponseData {
	context.getResponseObject().status(status).json({ message });
	return { noWebhookResponse: true };
}
