/** A new organization: the answer to the operator's call. */
export interface Member {
	organization_id: string;
	agent: { agent_id: string; key_id: string; private_key_b64: string };
	ingest_key: { key_id: string; secret: string };
}

/** The console of one organization, as its owner. */
export class Console {
	private constructor(
		private readonly url: string,
		private readonly cookie: string,
		readonly slug: string,
		readonly member: Member,
	) {}

	static async signIn(url: string, slug: string, member: Member): Promise<Console> {
		const answer = await fetch(`${url}/v1/id/auth/login`, {
			method: 'POST',
			headers: { 'Content-Type': 'application/json' },
			body: JSON.stringify({ email: `owner@${slug}.example`, password: `a password of ${slug}` }),
		});
		const cookie = (answer.headers.get('set-cookie') ?? '').split(';')[0]!;
		return new Console(url, cookie, slug, member);
	}

	async call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
		const answer = await fetch(`${this.url}/v1/console${path}`, {
			method,
			headers: { Cookie: this.cookie, 'Content-Type': 'application/json' },
			body: body && JSON.stringify(body),
		});
		const text = await answer.text();
		if (!answer.ok) {
			throw new Error(`${method} ${path}: ${answer.status} ${text}`);
		}
		return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
	}

	/** Creates and activates a policy with these rules. */
	async activate(rules: object[]): Promise<void> {
		await this.call('POST', '/policies', { policy_id: 'desk', name: 'Desk', rules });
		await this.call('POST', '/policies/desk/activate', {});
	}

	async makeKey(scopes: string[]): Promise<string> {
		return (await this.call('POST', '/ingest-keys', { name: 'n8n', scopes })).secret as string;
	}

	async vote(approvalId: string, vote: 'approve' | 'deny', comment: string): Promise<void> {
		const { action_digest } = await this.call('GET', `/approvals/${approvalId}`);
		const reason_code = vote === 'deny' ? 'too_much' : undefined;
		await this.call('POST', `/approvals/${approvalId}/votes`, { vote, action_digest, comment, reason_code });
	}

	async events(query: string): Promise<Record<string, unknown>[]> {
		return (await this.call('GET', `/events?${query}`)).events as Record<string, unknown>[];
	}
}

/** The rules of the tests: refunds need a person, deletions are denied, everything else is allowed. */
export const RULES = [
	{
		rule_id: 'refunds',
		tool: 'acme.payments.refund',
		decision: 'allow_with_obligation',
		reason: 'A person looks',
		obligations: [{ type: 'human_approval', approvals: 1, ttl_seconds: 600 }],
	},
	{ rule_id: 'deletions', tool: 'acme.customers.delete', decision: 'deny', reason: 'No deletions' },
];
