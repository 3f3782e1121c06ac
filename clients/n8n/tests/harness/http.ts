import type { IHttpRequestOptions } from 'n8n-workflow';

/**
 * Sends a request as n8n's helper does with the credential's authentication. Errors are as wide as those
 * of n8n's HTTP library: they hold the whole request with the ingest key.
 */
export async function request(options: IHttpRequestOptions, token: string): Promise<object> {
	const headers = { ...(options.headers as Record<string, string>), Authorization: `Bearer ${token}` };
	try {
		const answer = await fetch(options.url, {
			method: options.method,
			headers,
			body: options.body as string | undefined,
			redirect: options.disableFollowRedirect ? 'manual' : 'follow',
			signal: AbortSignal.timeout(options.timeout ?? 300_000),
		});
		const text = await answer.text();
		if (!options.ignoreHttpStatusErrors && !answer.ok) {
			throw new Error(`Request failed with status code ${answer.status}`);
		}
		return { statusCode: answer.status, headers: {}, body: text };
	} catch (error) {
		throw Object.assign(new Error(`${String(error)} ${headers.Authorization}`), {
			code: codeOf(error),
			config: { ...options, headers },
		});
	}
}

function codeOf(error: unknown): string | undefined {
	const { name, cause } = error as { name: string; cause?: { code?: string } };
	return name === 'TimeoutError' ? 'ECONNABORTED' : cause?.code;
}
