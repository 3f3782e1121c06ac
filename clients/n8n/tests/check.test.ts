import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import type { IDataObject } from 'n8n-workflow';

import { RULES, type Console } from './harness/console';
import { Execution } from './harness/execution';
import { agentCredentials } from './harness/credentials';
import { Server } from './harness/server';

let server: Server;
let acme: Console;
let globex: Console;

before(async () => {
	server = await Server.start();
	acme = await server.provision('acme');
	globex = await server.provision('globex');
	await acme.activate(RULES);
});
after(async () => await server.stop());

const outputs = ['allow', 'allow_with_obligation', 'deny'];

test('an item goes to the output of its decision, with the decision and its own members', async () => {
	const cases = [
		{ tool: 'acme.orders.read', want: 'allow' },
		{ tool: 'acme.payments.refund', want: 'allow_with_obligation' },
		{ tool: 'acme.customers.delete', want: 'deny' },
	];
	const parameters = { operation: 'check', toolName: '={{ $json.tool }}', payload: '={{ { "amount": $json.amount } }}' };
	const items = cases.map(({ tool }, index) => ({ tool, amount: index }));
	const got = await new Execution({ credentials: agentCredentials(server, acme), parameters, items }).run();
	assert.equal(got.length, 3);
	for (const [index, { tool, want }] of cases.entries()) {
		const [item] = got[outputs.indexOf(want)]!;
		assert.equal(item!.json.tool, tool);
		assert.deepEqual(item!.pairedItem, { item: index });
		const { check } = item!.json.agentledger as { check: IDataObject };
		assert.equal(check.decision, want);
	}
});

test("another organization's policy decides its own items", async () => {
	const parameters = { operation: 'check', toolName: 'acme.customers.delete' };
	const got = await new Execution({ credentials: agentCredentials(server, globex), parameters }).run();
	assert.deepEqual(got.map((items) => items.length), [1, 0, 0]);
});

test('a denial stops the workflow where the node says so', async () => {
	const parameters = { operation: 'check', toolName: 'acme.customers.delete', onDenial: 'stop' };
	const credentials = agentCredentials(server, acme);
	await assert.rejects(new Execution({ credentials, parameters }).run(), { message: 'The policy denies this: No deletions' });
	const got = await new Execution({ credentials, parameters, continueOnFail: true }).run();
	assert.deepEqual(got[2]!.map(({ json }) => json), [{ error: 'The policy denies this: No deletions' }]);
	assert.deepEqual(got.slice(0, 2), [[], []]);
});

test('a check asks with the very numbers of the payload, or not at all', async () => {
	const cases: Array<{ payload: unknown; want: RegExp }> = [
		{ payload: '{"id": 9007199254740993}', want: /Payload is not valid JSON.*id/s },
		{ payload: '{"a": 1, "a": 2}', want: /Payload is not valid JSON/ },
		{ payload: '[1]', want: /Payload must be a JSON object/ },
		{ payload: '={{ { "n": 0 / 0 } }}', want: /cannot be written as JSON.*n/s },
		{ payload: '={{ { "at": $now } }}', want: /cannot be written as JSON.*at/s },
	];
	for (const { payload, want } of cases) {
		const parameters = { operation: 'check', toolName: 'acme.orders.read', payload: payload as string };
		await assert.rejects(new Execution({ credentials: agentCredentials(server, acme), parameters }).run(), want);
	}
});
