import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import type { IDataObject, INodeExecutionData, INodeParameters } from 'n8n-workflow';

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

/** Runs one operation without an agent's key and returns its outputs. */
async function operate(parameters: INodeParameters, more: Partial<Setting> = {}): Promise<INodeExecutionData[][]> {
	const credentials = { ...agentCredentials(server, acme), agentId: '', keyId: '', privateKey: '' };
	return await new Execution({ credentials, parameters, ...more }).run();
}

function answersOf(item: INodeExecutionData): Record<string, IDataObject> {
	return item.json.agentledger as Record<string, IDataObject>;
}

async function start(executionId: string): Promise<IDataObject> {
	const [[item]] = (await operate({ operation: 'startRun', plannedSteps: 2 }, { executionId })) as [[INodeExecutionData]];
	return item.json;
}

test('a run is started, its steps are decided, and it is completed', async () => {
	const started = await start('whole');
	const steps = [
		{ stepKey: 'read', toolName: 'acme.orders.read', want: 0 },
		{ stepKey: 'delete', toolName: 'acme.customers.delete', want: 1 },
		{ stepKey: 'refund', toolName: 'acme.payments.refund', want: 1 },
	];
	for (const { want, ...parameters } of steps) {
		const got = await operate({ operation: 'step', ...parameters }, { items: [started] });
		assert.equal(got[want]!.length, 1, parameters.stepKey);
		assert.equal(answersOf(got[want]![0]!).step!.may_go_on, want === 0);
		assert.equal(got[1 - want]!.length, 0);
	}
	const [[item]] = (await operate({ operation: 'completeRun' }, { items: [started] })) as [[INodeExecutionData]];
	const { status, steps_recorded, steps_planned } = answersOf(item).completed!;
	assert.deepEqual([status, steps_recorded, steps_planned], ['succeeded', 3, 2]);
});

test('a repetition by n8n is the same run and the same step', async () => {
	const [one, again, other] = [await start('e1'), await start('e1'), await start('e2')];
	const id = (json: IDataObject) => (json.agentledger as { run: IDataObject }).run.run_id;
	assert.equal(id(one), id(again));
	assert.notEqual(id(one), id(other));
	const step = { operation: 'step', stepKey: 'read', toolName: 'acme.orders.read', payload: '{"n": 1}' };
	const events: IDataObject[] = [];
	for (let times = 0; times < 2; times++) {
		const [[item]] = (await operate(step, { items: [one] })) as [[INodeExecutionData]];
		events.push(answersOf(item).step!.event as IDataObject);
	}
	assert.deepEqual(events.map(({ status }) => status), ['created', 'replayed']);
	assert.equal(events[0]!.event_id, events[1]!.event_id);
	await assert.rejects(operate({ ...step, payload: '{"n": 2}' }, { items: [one] }), /422: step_key and attempt were used/);
});

test('a step uses an approval up, once, and no other act goes through with it', async () => {
	const started = await start('approved');
	const [[asked]] = (await operate(
		{ operation: 'sendAndWait', toolName: 'acme.payments.refund', payload: '{"order":"A-1"}' },
		{ items: [started], executionId: 'approved' },
	)) as [[INodeExecutionData]];
	assert.equal(asked.json.agentledger, started.agentledger, 'the items of a waiting node are its input');
	const open = ((await acme.call('GET', '/approvals?status=pending')).approvals as IDataObject[])[0]!;
	await acme.vote(String(open.approval_id), 'approve', '');
	const answers = started.agentledger as IDataObject;
	const items = [{ agentledger: { ...answers, approval: { approval_id: open.approval_id } } }];
	const step = { operation: 'step', stepKey: 'refund', toolName: 'acme.payments.refund', payload: '{"order":"A-1"}' };
	await assert.rejects(operate({ ...step, payload: '{"order":"B-2"}' }, { items }), /409: The approval is for another/);
	const got = await operate(step, { items });
	assert.equal((answersOf(got[0]![0]!).step!.approval as IDataObject).status, 'consumed');
	await assert.rejects(operate({ ...step, stepKey: 'again' }, { items }), /410: The approval was already consumed/);
	const result = await operate(
		{ operation: 'step', stepKey: 'refund.result', kind: 'result', stepStatus: 'succeeded' },
		{ items: [got[0]![0]!.json] },
	);
	assert.equal(result[0]!.length, 1, 'a later step does not send the used approval again');
});

test("another organization's key finds no run", async () => {
	const started = await start('mine');
	const credentials = agentCredentials(server, globex);
	const step = { operation: 'step', stepKey: 'read', toolName: 'acme.orders.read' };
	await assert.rejects(operate(step, { items: [started], credentials }), /404: Not found/);
	const got = await operate(step, { items: [started], credentials, continueOnFail: true });
	assert.deepEqual([got[0]!.length, got[1]!.length], [0, 1]);
});

test('a run id is checked before it becomes part of a path', async () => {
	for (const runId of ['', '../approvals', 'apr_1']) {
		await assert.rejects(operate({ operation: 'completeRun', runId }), /Run ID (is missing|must begin with run_)/);
	}
});
