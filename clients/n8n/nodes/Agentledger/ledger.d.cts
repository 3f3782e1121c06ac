/**
 * Writes canonical JSON (RFC 8785). Throws an error with the place of the first value that JSON or an
 * IEEE double would change: long integers, NaN, dates, bytes, undefined, lone surrogates, cycles.
 */
export function canonicalize(value: unknown): string;

/** Parses a JSON text by the same rules. Throws an error with the place of the first fault. */
export function parse(text: string): unknown;

/** Signs the events of one agent. Printing it shows no key. */
export class Signer {
	/** `key` is base64 of the 32-byte seed. The error about another key does not repeat it. */
	constructor(who: { organization: string; agent: string; keyId: string }, key: string);

	/** Resolves to the signed envelope as canonical JSON. Members of the event stay as they are. */
	sign(event: object): Promise<{ text: string }>;

	/** Resolves to the proof with which the agent uses an approval up. */
	proveConsumption(approvalId: string, actionDigest: string): Promise<string>;
}
