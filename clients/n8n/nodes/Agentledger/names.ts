import type { IExecuteFunctions } from 'n8n-workflow';

/**
 * A name for what this node does with one item in one round of one execution. It is the same if n8n repeats the node
 * ("Retry On Fail"), so the service recognizes the repetition. Another execution, and another n8n with the same
 * execution numbers, has another name. Form: n8n.<execution>.<32 hex digits>.
 */
export async function nameOfWork(context: IExecuteFunctions, item: number): Promise<string> {
	const execution = context.getExecutionId();
	const round = String(context.getWorkflowDataProxy(item).$runIndex ?? 0);
	const parts = [context.getInstanceId(), execution, context.getNode().id, round, String(item)];
	const bytes = new TextEncoder().encode(JSON.stringify(parts));
	const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
	const hex = Array.from(digest.slice(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
	return `n8n.${execution.replace(/[^A-Za-z0-9_-]/g, '').slice(0, 40)}.${hex}`;
}
