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

const ACT = { toolName: 'acme.payments.refund', payload: '{"order":"A-1","sum":10.5}' };

/** Asks for the act, has a person decide, and returns the approval. */
async function decided(vote: 'approve' | 'deny' | undefined): Promise<string> {
	const setting = { credentials: agentCredentials(server, acme), parameters: { operation: 'sendAndWait', ...ACT } };
	const execution = new Execution(setting);
	await execution.run();
	const { asked } = execution.data.executionData!.contextData['node:Ledger'] as { asked: Array<{ approval: IDataObject }> };
	const id = String(asked[0]!.approval.approval_id);
	if (vote !== undefined) {
		await acme.vote(id, vote, '');
	}
	return id;
}

async function use(approvalId: string, change: INodeParameters = {}, more: Partial<Setting> = {}): Promise<INodeExecutionData[][]> {
	const items = [{ agentledger: { approval: { approval_id: approvalId } } }];
	const parameters = { operation: 'useApproval', ...ACT, ...change };
	return await new Execution({ credentials: agentCredentials(server, acme), parameters, items, ...more }).run();
}

test('an approved act may go on with a grant, and its repetition has the same one', async () => {
	const id = await decided('approve');
	const grants: unknown[] = [];
	for (let times = 0; times < 2; times++) {
		const [[item], rest] = (await use(id)) as [[INodeExecutionData], INodeExecutionData[]];
		const { used } = item.json.agentledger as { used: IDataObject };
		assert.equal(used.status, 'consumed');
		assert.deepEqual(rest, []);
		grants.push(used.grant);
	}
	assert.match(String(grants[0]), /^agentledger\/grant\/v1/);
	assert.equal(grants[0], grants[1]);
});

test('nothing but the act that people agreed to may go on', async () => {
	const approved = await decided('approve');
	const cases: Array<{ id: string; change?: INodeParameters; more?: Partial<Setting>; want: RegExp }> = [
		{ id: await decided(undefined), want: /409: The approval is still pending/ },
		{ id: await decided('deny'), want: /409: The approval is denied/ },
		{ id: approved, change: { payload: '{"order":"A-1","sum":1000}' }, want: /409: The approval is for another agent, tool, payload or subject/ },
		{ id: approved, change: { toolName: 'acme.payments.payout' }, want: /409: The approval is for another agent, tool, payload or subject/ },
		{ id: approved, change: { payload: '{"n":9007199254740993}' }, want: /Payload is not valid JSON/ },
		{ id: approved, more: { credentials: agentCredentials(server, globex) }, want: /404: Not found/ },
		{
			id: approved,
			more: { credentials: { ...agentCredentials(server, acme), privateKey: globex.member.agent.private_key_b64 } },
			want: /422: proof_b64 is not the signature of an active key/,
		},
	];
	for (const { id, change, more, want } of cases) {
		await assert.rejects(use(id, change, more), want);
		const got = await use(id, change, { ...more, continueOnFail: true });
		assert.deepEqual(got.map((output) => output.length), [0, 1]);
	}
});
