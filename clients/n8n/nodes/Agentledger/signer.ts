import type { IExecuteFunctions } from 'n8n-workflow';

import { fault } from './faults';
import { Signer } from './ledger.cjs';
import type { Account } from './service';

/** Lets `work` sign with the credential's key, as the agent. No error contains the key. */
export async function withSigner<T>(
	context: IExecuteFunctions,
	account: Account,
	agent: string,
	item: number,
	work: (signer: Signer) => Promise<T>,
): Promise<T> {
	const keyId = account.keyId?.trim();
	const privateKey = account.privateKey?.trim();
	if (!keyId || !privateKey) {
		throw fault(context, item, 'Signing Key ID and Signing Key are missing in the credential');
	}
	try {
		return await work(new Signer({ organization: account.organization.trim(), agent, keyId }, privateKey));
	} catch (error) {
		throw fault(context, item, `This cannot be signed: ${(error as Error).message}`);
	}
}
