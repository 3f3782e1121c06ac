import type { IDataObject, IExecuteFunctions, IHttpRequestOptions, IWebhookFunctions } from 'n8n-workflow';

import { fault, refused } from './faults';
import { canonicalJson, parseObject } from './json';

/** The contexts in which the service is called: a node's execution and the call that resumes it. */
export type Context = IExecuteFunctions | IWebhookFunctions;

/** The members of the decrypted credential. */
export interface Account {
	url: string;
	organization: string;
	token: string;
	agentId?: string;
	keyId?: string;
	privateKey?: string;
}

/** One request to the service. `waitSeconds` is how long the service may wait before it answers. */
export interface Question {
	method: 'GET' | 'POST';
	path: string;
	body?: unknown;
	headers?: IDataObject;
	waitSeconds?: number;
	timeoutMs: number;
	item: number;
}

export const CREDENTIAL = 'agentledgerApi';

/** The default timeout of a request in milliseconds. */
export const TIMEOUT_MS = 15_000;

export async function readAccount(context: Context): Promise<Account> {
	const account = await context.getCredentials<Account & IDataObject>(CREDENTIAL);
	return { ...account, url: account.url.replace(/\/+$/, '') };
}

/**
 * Sends one request and returns the members of a 2xx answer. Everything else is an error: no answer, another status, a
 * redirect (the key belongs to one address), an answer that is not a JSON object. No error contains the request or the
 * cause, because both contain the ingest key.
 */
export async function ask(context: Context, account: Account, question: Question): Promise<IDataObject> {
	const { statusCode, body } = await send(context, httpOptions(context, account, question), question.item);
	if (statusCode < 200 || statusCode > 299) {
		throw refused(context, question.item, statusCode, body);
	}
	const members = parseObject(body);
	if (members === undefined) {
		throw fault(context, question.item, 'The answer of the service cannot be read, so it permits nothing');
	}
	return members;
}

function httpOptions(context: Context, account: Account, question: Question): IHttpRequestOptions {
	return {
		method: question.method,
		url: account.url + question.path,
		headers: { 'Content-Type': 'application/json', Accept: 'application/json', ...question.headers },
		body: question.body === undefined ? undefined : bodyText(context, question),
		encoding: 'text',
		json: false,
		returnFullResponse: true,
		ignoreHttpStatusErrors: true,
		disableFollowRedirect: true,
		timeout: question.timeoutMs + (question.waitSeconds ?? 0) * 1000,
	};
}

function bodyText(context: Context, question: Question): string {
	try {
		return canonicalJson(question.body);
	} catch (error) {
		throw fault(context, question.item, `The request cannot be written as JSON: ${(error as Error).message}`);
	}
}

interface Reply {
	statusCode: number;
	body: unknown;
}

async function send(context: Context, options: IHttpRequestOptions, item: number): Promise<Reply> {
	try {
		return await context.helpers.httpRequestWithAuthentication.call(context, CREDENTIAL, options);
	} catch (error) {
		throw fault(context, item, `${unreachable(error)}. Nothing is permitted without its answer`);
	}
}

const LATE = new Set(['ECONNABORTED', 'ETIMEDOUT', 'ESOCKETTIMEDOUT']);

/** Explains why there is no answer by the error's code alone: texts and members may contain the request. */
function unreachable(error: unknown): string {
	const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
	const named = [code, cause?.code].find((name) => typeof name === 'string' && /^[A-Z_]{3,40}$/.test(name));
	if (named === undefined) {
		return 'The service cannot be reached';
	}
	return LATE.has(String(named)) ? 'The service did not answer in time' : `The service cannot be reached (${named})`;
}
