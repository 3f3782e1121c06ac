import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';

import { ExpressionParser, type IDataObject } from 'n8n-workflow';

import { RULES, type Console } from './harness/console';
import { Server } from './harness/server';
import { TemplateRun, type Template } from './harness/template';

const FOLDER = resolve(__dirname, '../../templates');
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

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

function read(file: string): Template {
	return JSON.parse(readFileSync(resolve(FOLDER, file), 'utf8')) as Template;
}

/** All strings in a value that are expressions. */
function expressionsIn(value: unknown): string[] {
	if (typeof value === 'string') {
		return value.startsWith('=') ? [value] : [];
	}
	return typeof value === 'object' && value !== null ? Object.values(value).flatMap(expressionsIn) : [];
}

test('the nodes and connections of each template fit together, and nothing in it is secret', () => {
	assert.ok(files.length > 0);
	for (const file of files) {
		const template = read(file);
		const names = template.nodes.map(({ name }) => name);
		assert.equal(new Set(names).size, names.length);
		assert.equal(new Set(template.nodes.map(({ id }) => id)).size, names.length);
		const targets = Object.values(template.connections).flatMap(({ main }) => main!.flat().map((to) => to!.node));
		for (const name of [...Object.keys(template.connections), ...targets]) {
			assert.ok(names.includes(name), `${file}: ${name}`);
		}
		const reached = new Set([...targets, 'Start']);
		assert.deepEqual(names.filter((name) => !reached.has(name)), [], 'every node is reached');
		assert.equal(/apl_|Bearer|credentials/.test(JSON.stringify(template)), false);
	}
});

test('each expression of a template parses, and names nodes that exist', () => {
	for (const file of files) {
		const template = read(file);
		const names = template.nodes.map(({ name }) => name);
		for (const expression of expressionsIn(template.nodes.map(({ parameters }) => parameters))) {
			const codes = ExpressionParser.splitExpression(expression.slice(1)).filter(({ type }) => type === 'code');
			assert.ok(codes.length > 0, expression);
			for (const { text } of codes) {
				assert.doesNotThrow(() => new Function(`return (${text})`), expression);
			}
			for (const [, name] of expression.matchAll(/\$\('([^']+)'\)/g)) {
				assert.ok(names.includes(name!), expression);
			}
		}
	}
});

let executions = 0;

/** A run of the template for one act of an organization. */
async function runFor(organization: Console, tool: string): Promise<TemplateRun> {
	const template = read('approval-by-http.json');
	const describe = template.nodes.find(({ name }) => name === 'Describe the act')!;
	const act = JSON.parse(String(describe.parameters.jsonOutput)) as IDataObject;
	const { organization_id } = organization.member;
	describe.parameters.jsonOutput = JSON.stringify({ ...act, service_url: server.url, organization_id, tool_name: tool });
	return new TemplateRun(template, organization.member.ingest_key.secret, String(++executions));
}

function answerOf(run: TemplateRun, node: string): IDataObject {
	return run.made.find((made) => made.node === node)!.answer;
}

async function neverWaits(): Promise<void> {
	throw new Error('the template waits');
}

const ACT = 'Put the act here';

test('an allowed act is done and reported', async () => {
	for (const organization of [acme, globex]) {
		const run = await runFor(organization, 'acme.orders.read');
		await run.run(neverWaits);
		assert.ok(run.visited.includes(ACT));
		const { status, steps_recorded } = answerOf(run, 'Complete the run');
		assert.deepEqual([status, steps_recorded], ['succeeded', 2]);
	}
});

test('a denied act is not done', async () => {
	const run = await runFor(acme, 'acme.customers.delete');
	await run.run(neverWaits);
	assert.equal(run.visited.includes(ACT), false);
	assert.equal(answerOf(run, 'Abort the run').status, 'aborted');
});

test('an act that needs people is done after their yes, with the approval used up', async () => {
	const run = await runFor(acme, 'acme.payments.refund');
	await run.run(async () => await acme.vote(String(answerOf(run, 'Ask people').approval_id), 'approve', 'fine'));
	assert.ok(run.visited.includes(ACT));
	assert.equal((answerOf(run, 'Report the step').approval as IDataObject).status, 'consumed');
	assert.equal(answerOf(run, 'Complete the run').status, 'succeeded');
});

test('an act that people deny is not done, whatever calls came before', async () => {
	const run = await runFor(acme, 'acme.payments.refund');
	let waits = 0;
	await run.run(async (resumeUrl) => {
		if (++waits <= 2) {
			const body = JSON.stringify({ type: 'approval.approved', data: { status: 'approved' } });
			await fetch(resumeUrl, { method: 'POST', body });
			return;
		}
		await acme.vote(String(answerOf(run, 'Ask people').approval_id), 'deny', 'no');
	});
	assert.equal(waits, 3, 'forged calls lead back to the wait');
	assert.equal(run.visited.includes(ACT), false);
	assert.equal(answerOf(run, 'Abort the run').status, 'aborted');
});
