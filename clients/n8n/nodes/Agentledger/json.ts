import type { IDataObject } from 'n8n-workflow';

import { canonicalize, parse } from './ledger.cjs';

/** Writes a value as canonical JSON. Throws where JSON would change the value, with its place. */
export function canonicalJson(value: unknown): string {
	return canonicalize(value);
}

/** Parses a JSON text by the service's rules: no number changes, and no member comes twice. */
export function parseJson(text: string): unknown {
	return plain(parse(text));
}

/** Objects of the parser have no prototype, and expressions of n8n expect one. */
function plain(value: unknown): unknown {
	if (Array.isArray(value)) {
		return value.map(plain);
	}
	return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)])) : value;
}

/** Returns the object that a body is or holds as text, undefined for everything else. */
export function parseObject(body: unknown): IDataObject | undefined {
	let value = body;
	if (typeof body === 'string') {
		try {
			value = parseJson(body);
		} catch {
			return undefined;
		}
	}
	return isObject(value) ? value : undefined;
}

export function isObject(value: unknown): value is IDataObject {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}
