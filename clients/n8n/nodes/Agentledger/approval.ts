import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { fault } from './faults';
import { forEachItem, type Outcome } from './items';
import { readTimeout, requireId } from './parameters';
import { ask, type Account, type Context } from './service';

/** The state in which approvers can still decide. */
const OPEN = 'pending';

/** The members of the service's answer that a workflow sees. */
const SHOWN = ['approval_id', 'status', 'action_digest', 'expires_at', 'quorum', 'approvals', 'comment', 'reason_code'];

/** An approval as returned by the service: `approved` is true only for the status `approved`. */
export interface Approval extends IDataObject {
	approval_id: string;
	status: string;
	action_digest: string;
	approved: boolean;
}

/** Reads the state of approvals from the service: approved ones to the first output, all others to the second. */
export async function readApprovals(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	return await forEachItem(context, 'approval', 2, async (account, item) => await readItem(context, account, item));
}

async function readItem(context: IExecuteFunctions, account: Account, item: number): Promise<Outcome> {
	const approvalId = requireId(context, 'approvalId', 'Approval ID', 'apr', item);
	const wait: unknown = context.getNodeParameter('waitSeconds', item, 0);
	const waitSeconds = typeof wait === 'number' ? Math.min(30, Math.max(0, Math.floor(wait))) : 0;
	const answer = await readApproval(context, account, approvalId, { waitSeconds, timeoutMs: readTimeout(context, item), item });
	return { output: answer.approved ? 0 : 1, answer };
}

/** Fetches one approval. The service waits up to `waitSeconds` while it is pending. */
export async function readApproval(
	context: Context,
	account: Account,
	approvalId: string,
	limits: { waitSeconds: number; timeoutMs: number; item: number },
): Promise<Approval> {
	const query = limits.waitSeconds > 0 ? `?wait=${limits.waitSeconds}` : '';
	const path = `/v1/ingest/approvals/${encodeURIComponent(approvalId)}${query}`;
	const approval = shownApproval(await ask(context, account, { method: 'GET', path, ...limits }));
	if (approval?.approval_id !== approvalId) {
		throw fault(context, limits.item, 'The answer of the service is about another approval, so it permits nothing');
	}
	return approval;
}

/** Returns the members of the service's answer that a workflow sees, or undefined if it is not an approval. */
export function shownApproval(answer: unknown): Approval | undefined {
	const members = (answer ?? {}) as IDataObject;
	const { approval_id, status, action_digest } = members;
	if (typeof approval_id !== 'string' || typeof status !== 'string' || typeof action_digest !== 'string') {
		return undefined;
	}
	const shown: IDataObject = {};
	for (const name of SHOWN) {
		shown[name] = members[name] ?? null;
	}
	return { ...shown, approval_id, status, action_digest, approved: status === 'approved' };
}

export function isDecided(approval: { status: string }): boolean {
	return approval.status !== OPEN;
}
