import type { IAuthenticateGeneric, ICredentialTestRequest, ICredentialType, INodeProperties } from 'n8n-workflow';

/** An ingest key of one organization and, for the operation Report Event, an agent's signing key. */
export class AgentledgerApi implements ICredentialType {
	name = 'agentledgerApi';

	displayName = 'agentledger API';

	documentationUrl = 'https://github.com/agentledger/agentledger/tree/main/clients/n8n';

	properties: INodeProperties[] = [
		{
			displayName: 'Service URL',
			name: 'url',
			type: 'string',
			default: '',
			required: true,
			placeholder: 'https://log.example',
			description: 'The address of the service, without a path',
		},
		{
			displayName: 'Organization ID',
			name: 'organization',
			type: 'string',
			default: '',
			required: true,
			description: 'The UUID of the organization that the ingest key belongs to',
		},
		{
			displayName: 'Ingest Key',
			name: 'token',
			type: 'string',
			typeOptions: { password: true },
			default: '',
			required: true,
			description: 'Needs the scopes of the operations: evaluate, approvals, workflows, events',
		},
		{
			displayName: 'Agent ID',
			name: 'agentId',
			type: 'string',
			default: '',
			description: 'The agent for which the policy is asked and that signs events',
		},
		{
			displayName: 'Signing Key ID',
			name: 'keyId',
			type: 'string',
			default: '',
			description: 'The key_id under which the agent has registered its public key. Only for Report Event',
		},
		{
			displayName: 'Signing Key',
			name: 'privateKey',
			type: 'string',
			typeOptions: { password: true },
			default: '',
			description: 'The private Ed25519 key: base64 of its 32 bytes. Only for Report Event',
		},
	];

	authenticate: IAuthenticateGeneric = {
		type: 'generic',
		properties: { headers: { Authorization: '=Bearer {{$credentials.token}}' } },
	};

	/** Evaluating stores nothing, so the test leaves no event. It needs the scope evaluate. */
	test: ICredentialTestRequest = {
		request: {
			baseURL: '={{$credentials.url.replace(/\\/+$/, "")}}',
			url: '/v1/ingest/policy/evaluate',
			method: 'POST',
			body: {
				organization_id: '={{$credentials.organization}}',
				agent_id: '={{$credentials.agentId || "n8n"}}',
				tool_name: 'agentledger.credential.test',
			},
		},
	};
}
