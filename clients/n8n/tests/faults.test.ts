import assert from 'node:assert/strict';
import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { inspect } from 'node:util';

import type { INodeParameters } from 'n8n-workflow';

import type { Console } from './harness/console';
import { agentCredentials } from './harness/credentials';
import { Execution, type Setting } from './harness/execution';
import { Server } from './harness/server';

let server: Server;
let acme: Console;
let globex: Console;

before(async () => {
	server = await Server.start();
	acme = await server.provision('acme');
	globex = await server.provision('globex');
});
after(async () => await server.stop());

/** Every operation that calls the service, and its number of outputs. */
const OPERATIONS: Array<{ parameters: INodeParameters; outputs: number }> = [
	{ parameters: { operation: 'check', toolName: 'acme.orders.read' }, outputs: 3 },
	{ parameters: { operation: 'sendAndWait', toolName: 'acme.orders.read' }, outputs: 1 },
	{ parameters: { operation: 'readApproval', approvalId: 'apr_1' }, outputs: 2 },
	{ parameters: { operation: 'useApproval', approvalId: 'apr_1', toolName: 'acme.orders.read' }, outputs: 2 },
	{ parameters: { operation: 'report' }, outputs: 1 },
	{ parameters: { operation: 'report', phase: 'intent', toolName: 'acme.orders.read' }, outputs: 2 },
	{ parameters: { operation: 'startRun' }, outputs: 1 },
	{ parameters: { operation: 'step', runId: 'run_1', stepKey: 's', stepStatus: 'started' }, outputs: 2 },
	{ parameters: { operation: 'completeRun', runId: 'run_1' }, outputs: 1 },
];

/** Checks that every operation stops with a matching error, or sends the item to no output that permits. */
async function failsClosed(credentials: Setting['credentials'], want: RegExp, options: INodeParameters = {}): Promise<void> {
	for (const { parameters, outputs } of OPERATIONS) {
		const setting = { credentials, parameters: { ...parameters, options } };
		const error = await new Execution(setting).run().then(() => undefined, (reason: Error) => reason);
		assert.match(error?.message ?? 'no error', want, String(parameters.operation));
		const shown = inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error);
		for (const secret of [credentials.token, credentials.privateKey]) {
			assert.equal(shown.includes(String(secret)), false, `${parameters.operation} shows a secret`);
		}
		const got = await new Execution({ ...setting, continueOnFail: true }).run();
		assert.equal(got.length, outputs);
		const last = parameters.operation === 'sendAndWait' ? [] : [{ error: error!.message }];
		assert.deepEqual(got.flat().map(({ json }) => json), last, String(parameters.operation));
		assert.equal(outputs > 1 && got[0]!.length > 0, false, 'a failed item is on the output of the permission');
	}
}

test('401: a wrong key', async () => {
	await failsClosed({ ...agentCredentials(server, acme), token: 'apl_live_wrong' }, /answered 401: Invalid (ingest )?API key/);
});

test('403: a key without the scope', async () => {
	const token = await acme.makeKey(['evaluate']);
	const credentials = { ...agentCredentials(server, acme), token };
	const { parameters } = { parameters: { operation: 'startRun' } };
	await assert.rejects(new Execution({ credentials, parameters }).run(), /answered 403: .*scope workflows/);
});

test("403: another organization's key", async () => {
	const credentials = { ...agentCredentials(server, acme), token: globex.member.ingest_key.secret };
	for (const { parameters } of OPERATIONS.filter(({ parameters: { operation } }) => operation === 'check' || operation === 'report')) {
		await assert.rejects(new Execution({ credentials, parameters }).run(), /answered 403: Organization mismatch/);
	}
});

test('422: a tool name that is none', async () => {
	const parameters = { operation: 'check', toolName: 'no tool' };
	const credentials = agentCredentials(server, acme);
	await assert.rejects(new Execution({ credentials, parameters }).run(), /answered 422: tool_name must be/);
});

test('429: the cap of the month', async () => {
	const { organization_id } = globex.member;
	await server.platform('PATCH', `/${organization_id}`, { limits: { events_per_month: 1 } });
	const setting = { credentials: agentCredentials(server, globex), parameters: { operation: 'report' } };
	await new Execution(setting).run();
	await assert.rejects(new Execution(setting).run(), /answered 429: Monthly event limit reached \(plan_limit\)/);
	await new Execution({ ...setting, credentials: agentCredentials(server, acme) }).run();
});

test('a service that is down', async () => {
	await failsClosed({ ...agentCredentials(server, acme), url: 'http://127.0.0.1:1' }, /cannot be reached/);
});

/** Answers each request with this status and text; a status of 0 is no answer at all. */
async function withStub(status: number, text: string, body: (url: string) => Promise<void>): Promise<void> {
	const stub: HttpServer = createServer((_request, response) => {
		if (status !== 0) {
			response.writeHead(status, { 'Content-Type': 'application/json', Location: 'http://127.0.0.1:1/' }).end(text);
		}
	});
	await new Promise<void>((done) => stub.listen(0, '127.0.0.1', done));
	try {
		await body(`http://127.0.0.1:${(stub.address() as AddressInfo).port}`);
	} finally {
		stub.closeAllConnections();
		stub.close();
	}
}

const ANSWERS: Array<{ name: string; status: number; text: string; want: RegExp }> = [
	{ name: '500', status: 500, text: '{"error":"Internal error"}', want: /answered 500: Internal error/ },
	{ name: '503', status: 503, text: '{"error":"Busy","code":"overloaded"}', want: /answered 503: Busy \(overloaded\)/ },
	{ name: '429', status: 429, text: '{"error":"Too many","code":"rate_limited"}', want: /answered 429: Too many/ },
	{ name: 'a redirect', status: 307, text: '', want: /answered 307/ },
	{ name: 'a page of another server', status: 502, text: '<html>Bearer</html>', want: /answered 502: no explanation/ },
	{ name: 'no JSON', status: 200, text: 'allow', want: /cannot be read/ },
	{ name: 'a list', status: 200, text: '[]', want: /cannot be read/ },
	{ name: 'a member twice', status: 200, text: '{"decision":"deny","decision":"allow"}', want: /cannot be read/ },
];

for (const { name, status, text, want } of ANSWERS) {
	test(`a service that answers ${name}`, async () => {
		await withStub(status, text, async (url) => await failsClosed({ ...agentCredentials(server, acme), url }, want));
	});
}

test('an answer that does not fit the request permits nothing', async () => {
	const wrong = ['{}', '{"decision":"permit"}', '{"decision":"toString"}', '{"approval_id":"apr_2","status":"approved","action_digest":""}'];
	const gates = OPERATIONS.filter(({ parameters }) => parameters.operation !== 'completeRun');
	for (const text of wrong) {
		await withStub(200, text, async (url) => {
			for (const { parameters } of gates) {
				const execution = new Execution({ credentials: { ...agentCredentials(server, acme), url }, parameters });
				const got = await execution.run().catch(() => []);
				assert.deepEqual(got[0] ?? [], [], `${parameters.operation}: ${text}`);
			}
		});
	}
});

test('a service that does not answer', async () => {
	await withStub(0, '', async (url) => {
		await failsClosed({ ...agentCredentials(server, acme), url }, /did not answer in time/, { timeout: 0.05 });
	});
});
