import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { WAIT_INDEFINITELY, type IDataObject, type INodeExecutionData } from 'n8n-workflow';

import { RULES, type Console } from './harness/console';
import { agentCredentials } from './harness/credentials';
import { Execution, type Setting } from './harness/execution';
import { Resumer } from './harness/n8n';
import { Server } from './harness/server';

let server: Server;
let acme: Console;
let globex: Console;
let resumer: Resumer;

before(async () => {
	server = await Server.start();
	acme = await server.provision('acme');
	globex = await server.provision('globex');
	await acme.activate(RULES);
	await globex.activate(RULES);
});
after(async () => await server.stop());

/** Starts an execution that requests approval, with a route for resume URLs of its own. */
async function asking(more: Partial<Setting>, body: (execution: Execution) => Promise<void>): Promise<void> {
	resumer = await Resumer.start();
	try {
		const parameters = {
			operation: 'sendAndWait',
			toolName: '={{ $json.tool ?? "acme.payments.refund" }}',
			payload: '={{ { "order": $json.order } }}',
			...more.parameters,
		};
		const items = more.items ?? [{ order: 'A-1' }];
		await body(new Execution({ credentials: agentCredentials(server, acme), resumer, ...more, parameters, items }));
	} finally {
		await resumer.stop();
	}
}

function approvalsOf(execution: Execution): string[] {
	const context = execution.data.executionData!.contextData['node:Ledger'] as { asked: Array<{ approval?: IDataObject }> };
	return context.asked.map(({ approval }) => String(approval?.approval_id));
}

function approvalIn(item: INodeExecutionData): IDataObject {
	return (item.json.agentledger as { approval: IDataObject }).approval;
}

test('an approved item goes on, with its own members and the comment', async () => {
	await asking({}, async (execution) => {
		await execution.run();
		assert.deepEqual(execution.waitTill, WAIT_INDEFINITELY, 'n8n must not wake it by the clock');
		assert.equal(execution.signatureRequired, true);
		const [id] = approvalsOf(execution);
		await acme.vote(id!, 'approve', 'fine');
		await resumer.answered(200);
		const [item] = execution.resumed!;
		assert.equal(item!.json.order, 'A-1');
		const got = approvalIn(item!);
		assert.deepEqual([got.approval_id, got.status, got.approved, got.comment], [id, 'approved', true, 'fine']);
	});
});

test('a denied item does not go on, or goes on with the comment where the node says so', async () => {
	for (const onRefusal of ['drop', 'pass']) {
		await asking({ parameters: { onRefusal } }, async (execution) => {
			await execution.run();
			await acme.vote(approvalsOf(execution)[0]!, 'deny', 'ask finance');
			await resumer.answered(200);
			const got = execution.resumed!.map((item) => approvalIn(item));
			const denied = { status: 'denied', approved: false, comment: 'ask finance', reason_code: 'too_much' };
			const want = onRefusal === 'pass' ? [denied] : [];
			const shown = got.map(({ status, approved, comment, reason_code }) => ({ status, approved, comment, reason_code }));
			assert.deepEqual(shown, want);
		});
	}
});

test('several items wait for all their decisions', async () => {
	const items = [{ order: 'A-1' }, { order: 'A-2' }, { order: 'A-3', tool: 'acme.orders.read' }];
	await asking({ items }, async (execution) => {
		await execution.run();
		const [first, second] = approvalsOf(execution);
		await acme.vote(first!, 'approve', '');
		await resumer.answered(202);
		assert.equal(execution.resumed, undefined);
		await acme.vote(second!, 'deny', 'no');
		await resumer.answered(200);
		assert.deepEqual(execution.resumed!.map(({ json }) => json.order), ['A-1', 'A-3']);
		assert.equal(approvalIn(execution.resumed![1]!).status, 'not_asked');
	});
});

test('without an item for people the execution goes on at once', async () => {
	const items = [{ order: 1, tool: 'acme.orders.read' }, { order: 2, tool: 'acme.customers.delete' }];
	await asking({ items }, async (execution) => {
		const got = await execution.run();
		assert.equal(execution.waitTill, undefined);
		assert.deepEqual(got[0]!.map(({ json }) => json.tool), ['acme.orders.read']);
	});
	await asking({ items, parameters: { onRefusal: 'pass' } }, async (execution) => {
		const [got] = await execution.run();
		assert.deepEqual(got!.map((item) => approvalIn(item).approved), [true, false]);
	});
});

test('the same question of two items is refused, because an approval serves one act', async () => {
	const items = [{ order: 'A-1' }, { order: 'A-1' }];
	await asking({ items, parameters: { traceId: 'same-trace' } }, async (execution) => {
		await assert.rejects(execution.run(), { message: 'An earlier item asks for the same approval' });
		assert.equal(execution.waitTill, undefined);
	});
	await asking({ items }, async (execution) => {
		await execution.run();
		assert.equal(new Set(approvalsOf(execution)).size, 2);
	});
});

test('a repetition by n8n asks the same question', async () => {
	await asking({ executionId: 'again' }, async (execution) => {
		await execution.run();
		await execution.run();
		const [id] = approvalsOf(execution);
		const other = new Execution({ ...execution.setting, executionId: 'other' });
		await other.run();
		assert.notEqual(approvalsOf(other)[0], id);
		const third = new Execution(execution.setting);
		await third.run();
		assert.deepEqual(approvalsOf(third), [id]);
	});
});

async function callback(url: string, body: object): Promise<number> {
	const headers = { 'Content-Type': 'application/json' };
	return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status;
}

test('calls that are not the decision resume nothing', async () => {
	await asking({}, async (execution) => {
		await execution.run();
		const url = resumer.signedUrl(execution.id, 'node-1');
		const [id] = approvalsOf(execution);
		const said = (approval_id: string) => ({ type: 'approval.approved', data: { approval_id, status: 'approved' } });
		const other = new Execution({ ...execution.setting, resumer: undefined, items: [{ order: 'B-9' }] });
		await other.run();
		const [approved] = approvalsOf(other);
		await acme.vote(approved!, 'approve', '');
		const cases = {
			'resumed before the vote': [url, {}, 202],
			'forged: it says approved': [url, said(id!), 202],
			'for another approval, which is approved': [url, said(approved!), 202],
			'for an approval that does not exist': [url, said('apr_none'), 202],
			'with another signature': [url.replace(/signature=..../, 'signature=ffff'), said(id!), 401],
			'for another execution': [resumer.signedUrl('12345', 'node-1'), said(id!), 409],
		} as const;
		for (const [name, [address, body, want]] of Object.entries(cases)) {
			assert.equal(await callback(address, body), want, name);
			assert.equal(execution.resumed, undefined, name);
		}
	});
});

test('a replayed callback finds no execution that waits', async () => {
	await asking({}, async (execution) => {
		await execution.run();
		const url = resumer.signedUrl(execution.id, 'node-1');
		await acme.vote(approvalsOf(execution)[0]!, 'approve', '');
		await resumer.answered(200);
		const before = execution.resumed;
		assert.equal(await callback(url, { type: 'approval.approved' }), 409);
		assert.equal(execution.resumed, before);
	});
});

test('a forged callback to a denied question gives no approval', async () => {
	await asking({ parameters: { onRefusal: 'pass' } }, async (execution) => {
		await execution.run();
		await acme.vote(approvalsOf(execution)[0]!, 'deny', 'no');
		await resumer.answered(200);
		const body = JSON.stringify({ type: 'approval.approved', data: { status: 'approved' } });
		await execution.callWebhook(body);
		assert.equal(approvalIn(execution.resumed![0]!).approved, false);
	});
});

test('while the service cannot be read the execution stays, and the caller is told to come again', async () => {
	await asking({}, async (execution) => {
		await execution.run();
		await acme.vote(approvalsOf(execution)[0]!, 'approve', '');
		await resumer.answered(200);
		execution.resumed = undefined;
		const { credentials } = execution.setting;
		const token = credentials.token;
		const broken: Record<string, () => void> = {
			'the service is down': () => void (credentials.url = 'http://127.0.0.1:1'),
			'the key is another one': () => void (credentials.token = 'apl_live_wrong'),
			'the key is of another organization': () => Object.assign(credentials, agentCredentials(server, globex)),
			'the execution lost what was asked': () => void (execution.data.executionData!.contextData = {}),
		};
		for (const [name, damage] of Object.entries(broken)) {
			damage();
			assert.equal((await execution.callWebhook('{}')).status, 503, name);
			assert.equal(execution.resumed, undefined, name);
			Object.assign(credentials, agentCredentials(server, acme), { token });
		}
	});
});

test('Read Approval asks the service: approved to the first output, all else to the second', async () => {
	await asking({ items: [{ order: 1 }, { order: 2 }, { order: 3 }] }, async (execution) => {
		await execution.run();
		const ids = approvalsOf(execution);
		await acme.vote(ids[0]!, 'approve', '');
		await acme.vote(ids[1]!, 'deny', 'no');
		const items = ids.map((approval_id) => ({ agentledger: { approval: { approval_id, approved: true, status: 'approved' } } }));
		const parameters = { operation: 'readApproval' };
		const got = await new Execution({ credentials: execution.setting.credentials, parameters, items }).run();
		assert.deepEqual(got.map((output) => output.map((item) => approvalIn(item).status)), [['approved'], ['denied', 'pending']]);
		const strange = new Execution({ credentials: agentCredentials(server, globex), parameters, items, continueOnFail: true });
		const none = await strange.run();
		assert.deepEqual(none[0], []);
		assert.deepEqual(none[1]!.map(({ json }) => json.error), Array(3).fill('The service answered 404: Not found'));
	});
});

test('Read Approval takes only ids as ids', async () => {
	for (const approvalId of ['', 'apr_x/../../events', 'run_1', 'apr_1?wait=30']) {
		const parameters = { operation: 'readApproval', approvalId };
		const execution = new Execution({ credentials: agentCredentials(server, acme), parameters });
		await assert.rejects(execution.run(), /Approval ID (is missing|must begin with apr_)/);
	}
});
