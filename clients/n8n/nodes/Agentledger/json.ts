import type { IDataObject } from 'n8n-workflow';

import { canonicalize, parse } from './ledger.cjs';

/** Returns a value as canonical JSON. If JSON would change the value, it throws an error with the place. */
export function canonicalJson(value: unknown): string {
	return canonicalize(value);
}

/** Parses a JSON text by the service's rules: no number changes, and no member is duplicated. */
export function parseJson(text: string): unknown {
	return plain(parse(text));
}

/** Copies objects of the parser, which have no prototype, because n8n's expressions expect one. */
function plain(value: unknown): unknown {
	if (Array.isArray(value)) {
		return value.map(plain);
	}
	return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)])) : value;
}

/** Returns the object that a body is or contains as text, or undefined for anything else. */
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
