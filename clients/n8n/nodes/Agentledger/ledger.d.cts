/**
 * Writes canonical JSON (RFC 8785). Throws an error with the place of the first value that JSON or an
 * IEEE double would change: long integers, NaN, dates, bytes, undefined, lone surrogates, cycles.
 */
export function canonicalize(value: unknown): string;

/** Parses a JSON text by the same rules. Throws an error with the place of the first fault. */
export function parse(text: string): unknown;
