import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { fault } from './faults';
import { forEachItem, type Outcome } from './items';
import { canonicalJson } from './json';
import { readPayload, readTimeout, requireAgent, requireId, requireText } from './parameters';
import { ask, type Account } from './service';
import { withSigner } from './signer';

/**
 * Consumes approvals with the agent's key, one act for each. The service compares the act in the node's parameters with
 * the one that approvers saw. There are two outputs, so that a failed item is never on the first one.
 */
export async function useApprovals(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	return await forEachItem(context, 'used', 2, async (account, item) => await useItem(context, account, item));
}

async function useItem(context: IExecuteFunctions, account: Account, item: number): Promise<Outcome> {
	const approvalId = requireId(context, 'approvalId', 'Approval ID', 'apr', item);
	const agent = requireAgent(context, account, item);
	const actionDigest = await digestOfAct(context, account, agent, item);
	const proof = await withSigner(context, account, agent, item, async (signer) => {
		return await signer.proveConsumption(approvalId, actionDigest);
	});
	const answer = await ask(context, account, {
		method: 'POST',
		path: `/v1/ingest/approvals/${approvalId}/consume`,
		body: { action_digest: actionDigest, proof_b64: proof },
		timeoutMs: readTimeout(context, item),
		item,
	});
	if (answer.status !== 'consumed') {
		throw fault(context, item, 'The answer of the service does not say that the approval is used up, so it permits nothing');
	}
	return { output: 0, answer: { approval_id: approvalId, action_digest: actionDigest, ...answer } };
}

/** Returns the digest that approvers agreed to: the SHA-256 of the act as canonical JSON. */
async function digestOfAct(context: IExecuteFunctions, account: Account, agent: string, item: number): Promise<string> {
	const act: IDataObject = {
		agent_id: agent,
		organization_id: account.organization.trim().toLowerCase(),
		payload: readPayload(context, 'payload', 'Payload', item),
		tool_name: requireText(context, 'toolName', 'Tool Name', item),
		v: 1,
	};
	return await sha256Hex(canonicalText(context, act, item));
}

function canonicalText(context: IExecuteFunctions, act: IDataObject, item: number): string {
	try {
		return canonicalJson(act);
	} catch (error) {
		throw fault(context, item, `The act cannot be written as JSON: ${(error as Error).message}`);
	}
}

async function sha256Hex(text: string): Promise<string> {
	const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
	return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
