import { NodeApiError, NodeOperationError } from 'n8n-workflow';

import { parseObject } from './json';
import type { Context } from './service';

const MAX_TEXT = 500;

/** An error of the operation itself, with the number of the affected item. */
export function fault(context: Context, item: number, message: string, description?: string): NodeOperationError {
	return new NodeOperationError(context.getNode(), message, { itemIndex: item, description });
}

/** Advice on a refusal, by its status. */
const ADVICE: Record<number, string> = {
	401: 'The ingest key in the credential is wrong, revoked or over.',
	403: 'The ingest key lacks a scope or is not for this agent, or the organization in the credential is another one.',
	404: 'There is no such object for this ingest key. Only the key that made it can use it.',
	429: 'Wait, or ask for a larger plan if the code is plan_limit. The same request may be repeated.',
	503: 'The same request may be repeated: use the setting Retry On Fail.',
};

/**
 * An error for a status other than 2xx: the status, the service's text and code. The service's texts never repeat a
 * request. Bodies of other servers are not shown, because they might.
 */
export function refused(context: Context, item: number, status: number, body: unknown): NodeApiError {
	const members = parseObject(body) ?? {};
	const text = typeof members.error === 'string' ? members.error.slice(0, MAX_TEXT) : 'no explanation';
	const code = typeof members.code === 'string' ? ` (${members.code.slice(0, 64)})` : '';
	const message = `The service answered ${status}: ${text}${code}`;
	return new NodeApiError(context.getNode(), { message }, {
		message,
		description: ADVICE[status] ?? (status >= 500 ? ADVICE[503] : undefined),
		httpCode: String(status),
		itemIndex: item,
	});
}
