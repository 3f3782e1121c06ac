import type { ICredentialDataDecryptedObject } from 'n8n-workflow';

import type { Console } from './console';
import type { Server } from './server';

/** The credential of an organization's first agent and ingest key. */
export function agentCredentials(server: Server, { member }: Console): ICredentialDataDecryptedObject {
	return {
		url: `${server.url}/`,
		organization: member.organization_id,
		token: member.ingest_key.secret,
		agentId: member.agent.agent_id,
		keyId: member.agent.key_id,
		privateKey: member.agent.private_key_b64,
	};
}
