import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import type { IDataObject, INodeExecutionData } from 'n8n-workflow';

import { RULES, type Console } from './harness/console';
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
	await acme.activate(RULES);
});
after(async () => await server.stop());

function reporting(more: Partial<Setting>): Execution {
	const parameters = { operation: 'report', toolName: 'acme.orders.read', payload: '{"order":"A-1","sum":10.0}', ...more.parameters };
	return new Execution({ credentials: agentCredentials(server, acme), ...more, parameters });
}

function eventOf(item: INodeExecutionData): IDataObject {
	return (item.json.agentledger as { event: IDataObject }).event;
}

async function verified(slug: string, eventId: string): Promise<IDataObject> {
	const answer = await fetch(`${server.url}/v1/public/orgs/${slug}/verify/${eventId}?verify=1`);
	return (await answer.json()) as IDataObject;
}

test("an event is signed by the agent, and anybody can check it", async () => {
	for (const organization of [acme, globex]) {
		const [[item]] = (await reporting({ credentials: agentCredentials(server, organization) }).run()) as [[INodeExecutionData]];
		const { event_id, status } = eventOf(item);
		assert.equal(status, 'created');
		const bundle = await verified(organization.slug, String(event_id));
		const { chain_ok, inclusion_ok } = bundle.verification as IDataObject;
		assert.deepEqual([chain_ok, inclusion_ok], [true, true]);
		const envelope = JSON.parse(String(bundle.envelope)) as IDataObject;
		const payload = envelope.payload as IDataObject;
		assert.deepEqual([payload.order, payload.sum, envelope.actor_principal], ['A-1', 10, 'Refunds']);
		assert.match(String(envelope.salt), /^[0-9a-f]{32}$/);
	}
});

test('a repetition by n8n is one event; items, rounds and executions have events of their own', async () => {
	const items = [{ n: 1 }, { n: 2 }];
	const execution = reporting({ items, executionId: 'r1' });
	const [first] = await execution.run();
	const [again] = await execution.run();
	assert.deepEqual(again!.map((item) => eventOf(item).status), ['replayed', 'replayed']);
	const ids = (got: INodeExecutionData[]) => got.map((item) => eventOf(item).event_id);
	assert.deepEqual(ids(again!), ids(first!));
	const [round] = await reporting({ items, executionId: 'r1', runIndex: 1 }).run();
	const [other] = await reporting({ items, executionId: 'r2' }).run();
	assert.equal(new Set([...ids(first!), ...ids(round!), ...ids(other!)]).size, 6);
});

test('a stricter policy is told', async () => {
	const [[item]] = (await reporting({ parameters: { toolName: 'acme.customers.delete' } }).run()) as [[INodeExecutionData]];
	const { declared, policy_decision, rule_id } = eventOf(item);
	assert.deepEqual([declared, policy_decision, rule_id], ['allow', 'deny', 'deletions']);
});

test('an intent goes on where the ledger allows it, also in its repetition, and its result is not judged', async () => {
	const wants = { 'acme.orders.read': 0, 'acme.payments.refund': 1, 'acme.customers.delete': 1 };
	for (const [toolName, want] of Object.entries(wants)) {
		const execution = reporting({ parameters: { toolName, phase: 'intent' } });
		for (const status of ['created', 'replayed']) {
			const got = await execution.run();
			assert.deepEqual(got.map((output) => output.length), [1 - want, want], toolName);
			const { may_go_on, status: answered } = eventOf(got[want]![0]!);
			assert.deepEqual([may_go_on, answered], [want === 0, status]);
		}
	}
	const intent = (await reporting({ parameters: { phase: 'intent' } }).run())[0]![0]!;
	const [[result]] = (await reporting({ parameters: { phase: 'result' }, items: [intent.json] }).run()) as [[INodeExecutionData]];
	const record = JSON.parse(String((await verified('acme', String(eventOf(result).event_id))).record)) as { policy: IDataObject };
	assert.equal(record.policy.intent, eventOf(intent).event_id);
});

test('an intent names a tool, because the policy judges tools', async () => {
	await assert.rejects(reporting({ parameters: { toolName: '', phase: 'intent' } }).run(), { message: 'Tool Name is missing' });
});

test('numbers that canonical JSON would change are refused with their place, and nothing is sent', async () => {
	const head = async () => (await (await fetch(`${server.url}/v1/public/orgs/acme/transparency/head`)).json()) as IDataObject;
	const before = (await head()).tree_size;
	const payloads: Record<string, RegExp> = {
		'{"order":{"id":9007199254740993}}': /order.*id/s,
		'{"sum":0.123456789012345678}': /sum/,
		'{"sum":1e400}': /sum/,
		'={{ { "sum": 1 / 0 } }}': /sum/,
		'={{ { "at": new Date() } }}': /at/,
		'={{ { "text": "\\ud800" } }}': /text/,
	};
	for (const [payload, want] of Object.entries(payloads)) {
		await assert.rejects(reporting({ parameters: { payload } }).run(), want, payload);
	}
	assert.equal((await head()).tree_size, before);
});

test('without a key, with a malformed key and with a key of another agent nothing is stored, and no error shows the key', async () => {
	const cases: Array<{ change: IDataObject; want: RegExp }> = [
		{ change: { privateKey: '' }, want: /Signing Key ID and Signing Key are missing/ },
		{ change: { privateKey: 'c2VjcmV0' }, want: /This cannot be signed/ },
		{ change: { privateKey: 'not base64 of a secret' }, want: /This cannot be signed/ },
		{ change: { privateKey: globex.member.agent.private_key_b64 }, want: /422: Invalid signature/ },
		{ change: { keyId: globex.member.agent.key_id }, want: /422: Unknown signing key/ },
	];
	for (const { change, want } of cases) {
		const credentials = { ...agentCredentials(server, acme), ...change } as Setting['credentials'];
		const error = await reporting({ credentials }).run().then(() => undefined, (reason: Error) => reason);
		assert.match(error?.message ?? 'no error', want);
		const secret = String(credentials.privateKey);
		assert.equal(secret !== '' && JSON.stringify([error, error?.stack]).includes(secret), false);
	}
});
