import type { IDataObject, IExecuteFunctions } from 'n8n-workflow';

import { fault } from './faults';
import { isObject, parseJson } from './json';
import { TIMEOUT_MS, type Account } from './service';

/** Returns a text parameter without surrounding white space, or undefined if it is empty. */
export function readText(context: IExecuteFunctions, name: string, item: number): string | undefined {
	const value: unknown = context.getNodeParameter(name, item, '');
	const text = typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '';
	return text === '' ? undefined : text;
}

export function requireText(context: IExecuteFunctions, name: string, label: string, item: number): string {
	const text = readText(context, name, item);
	if (text === undefined) {
		throw fault(context, item, `${label} is missing`);
	}
	return text;
}

/** Returns the agent in the parameter, or else in the credential. */
export function requireAgent(context: IExecuteFunctions, account: Account, item: number): string {
	const agent = readText(context, 'agentId', item) ?? account.agentId?.trim();
	if (!agent) {
		throw fault(context, item, 'Agent ID is missing: set it in the node or in the credential');
	}
	return agent;
}

/**
 * Returns a JSON parameter as an object. A text is parsed by strict rules, so that no number is changed: JSON.parse
 * would silently round a long integer.
 */
export function readPayload(context: IExecuteFunctions, name: string, label: string, item: number): IDataObject {
	let value: unknown = context.getNodeParameter(name, item, '{}');
	if (typeof value === 'string') {
		try {
			value = parseJson(value.trim() === '' ? '{}' : value);
		} catch (error) {
			throw fault(context, item, `${label} is not valid JSON: ${(error as Error).message}`);
		}
	}
	if (!isObject(value)) {
		throw fault(context, item, `${label} must be a JSON object`);
	}
	return value;
}

/** Returns the ID in a parameter. IDs become part of a path, so only letters and digits are allowed. */
export function requireId(context: IExecuteFunctions, name: string, label: string, prefix: string, item: number): string {
	const value = requireText(context, name, label, item);
	if (!new RegExp(`^${prefix}_[A-Za-z0-9]{1,64}$`).test(value)) {
		throw fault(context, item, `${label} must begin with ${prefix}_ and hold only letters and digits`);
	}
	return value;
}

export function readTimeout(context: IExecuteFunctions, item: number): number {
	const seconds: unknown = context.getNodeParameter('options.timeout', item, TIMEOUT_MS / 1000);
	return typeof seconds === 'number' && seconds > 0 ? Math.min(seconds, 300) * 1000 : TIMEOUT_MS;
}
