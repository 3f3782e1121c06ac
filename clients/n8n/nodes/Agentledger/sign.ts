import type { IDataObject } from 'n8n-workflow';

import { canonicalJson } from './json';

/** What stands before a 32-byte seed in the PKCS #8 form of an Ed25519 key (RFC 8410). */
const PKCS8 = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/**
 * Returns the event with the key's id and its signature, which is over SHA-256(`APS1` LF key_id LF
 * canonical JSON). No error repeats the key.
 */
export async function signEvent(event: IDataObject, keyId: string, privateKey: string): Promise<IDataObject> {
	const signed: IDataObject = { ...event, key_id: keyId };
	const message = new TextEncoder().encode(`APS1\n${keyId}\n${canonicalJson(signed)}`);
	const digest = await crypto.subtle.digest('SHA-256', message);
	const signature = await crypto.subtle.sign('Ed25519', await importKey(privateKey), digest);
	return { ...signed, sig_alg: 'ed25519', sig_value_b64: btoa(String.fromCharCode(...new Uint8Array(signature))) };
}

async function importKey(privateKey: string): Promise<CryptoKey> {
	if (!/^[A-Za-z0-9+/]{43}=$/.test(privateKey)) {
		throw new Error('the signing key must be the base64 of 32 bytes');
	}
	const seed = Array.from(atob(privateKey), (character) => character.charCodeAt(0));
	return await crypto.subtle.importKey('pkcs8', new Uint8Array([...PKCS8, ...seed]), 'Ed25519', false, ['sign']);
}
