import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'node:test';

import {
	NodeHelpers,
	Workflow,
	type ICredentialType,
	type INode,
	type INodeParameters,
	type INodeProperties,
	type INodePropertyOptions,
	type INodeTypeDescription,
} from 'n8n-workflow';

import { Agentledger, nodeTypes } from './harness/execution';

const PACKAGE = resolve(__dirname, '../..');
const NODE = resolve(PACKAGE, 'dist/nodes/Agentledger');
const description = new Agentledger().description as INodeTypeDescription;
const operation = description.properties.find(({ name }) => name === 'operation')!;
const operations = (operation.options as INodePropertyOptions[]).map(({ value }) => String(value));

interface Manifest {
	name: string;
	keywords: string[];
	dependencies?: object;
	peerDependencies: Record<string, string>;
	files: string[];
	n8n: { nodes: string[]; credentials: string[] };
}

const manifest = JSON.parse(readFileSync(resolve(PACKAGE, 'package.json'), 'utf8')) as Manifest;

function workflowOf(parameters: INodeParameters): { workflow: Workflow; node: INode } {
	const node = { id: '1', name: 'Ledger', type: 'agentledger', typeVersion: 1, position: [0, 0] as [number, number], parameters };
	const workflow = new Workflow({ nodes: [node], connections: {}, active: false, nodeTypes });
	return { workflow, node: workflow.getNode('Ledger')! };
}

test('n8n-workflow is of the version that the tests are for', () => {
	const found = require.resolve('n8n-workflow');
	const folder = found.slice(0, found.indexOf('/n8n-workflow/') + '/n8n-workflow/'.length);
	const { version } = JSON.parse(readFileSync(resolve(folder, 'package.json'), 'utf8')) as { version: string };
	assert.equal(version.split('.')[0], process.env.N8N_MAJOR ?? '1');
	assert.ok(Object.keys(require.cache).some((path) => path.startsWith(folder)));
});

test("the package is a community node by n8n's rules", () => {
	assert.match(manifest.name, /^n8n-nodes-/);
	assert.ok(manifest.keywords.includes('n8n-community-node-package'));
	assert.equal(manifest.dependencies, undefined);
	assert.deepEqual(Object.keys(manifest.peerDependencies), ['n8n-workflow']);
	for (const file of [...manifest.n8n.nodes, ...manifest.n8n.credentials]) {
		assert.ok(existsSync(resolve(PACKAGE, file)), file);
	}
	assert.ok(existsSync(resolve(PACKAGE, 'dist/nodes/Agentledger/agentledger.svg')));
});

test('what is shipped needs n8n-workflow alone', () => {
	for (const file of readdirSync(NODE).filter((name) => /\.c?js$/.test(name))) {
		const text = readFileSync(resolve(NODE, file), 'utf8');
		const foreign = [...text.matchAll(/require\("([^"]+)"\)/g)].map(([, name]) => name!).filter((name) => !name.startsWith('./'));
		assert.deepEqual(foreign.filter((name) => name !== 'n8n-workflow'), [], file);
	}
});

/** All properties, including those inside collections, with the names that their conditions may use. */
function allProperties(properties: INodeProperties[], inside: boolean): Array<{ property: INodeProperties; inside: boolean }> {
	return properties.flatMap((property) => {
		const inner = property.type === 'collection' ? allProperties(property.options as INodeProperties[], true) : [];
		return [{ property, inside }, ...inner];
	});
}

test('each condition of a parameter names a parameter and values that this has', () => {
	const known = new Map(description.properties.map((property) => [property.name, property]));
	for (const { property, inside } of allProperties(description.properties, false)) {
		for (const [name, values] of Object.entries(property.displayOptions?.show ?? {})) {
			assert.equal(name.startsWith('/'), inside, `${property.name} shows for ${name}`);
			const asked = known.get(name.replace('/', ''));
			assert.ok(asked, `${property.name} shows for ${name}`);
			const choices = (asked.options as INodePropertyOptions[]).map(({ value }) => value);
			for (const value of values!) {
				assert.ok(choices.includes(value as string), `${property.name} shows for ${name} ${String(value)}`);
			}
		}
	}
});

test('each operation has defaults for its parameters, and no parameter twice', () => {
	for (const value of operations) {
		const { node } = workflowOf({ operation: value });
		const shown = description.properties.filter((property) => NodeHelpers.displayParameter(node.parameters, property, node, description));
		const names = shown.map(({ name }) => name);
		assert.equal(new Set(names).size, names.length, `${value}: ${names.join(' ')}`);
		const got = NodeHelpers.getNodeParameters(description.properties, { operation: value }, true, false, node, description);
		assert.deepEqual(Object.keys(got!).sort(), [...names].sort(), value);
	}
});

test('n8n tells of each required parameter that is missing', () => {
	const wants: Record<string, string[]> = { check: ['toolName'], sendAndWait: ['toolName'], step: ['stepKey'], startRun: [], report: [] };
	for (const [value, want] of Object.entries(wants)) {
		const { node } = workflowOf({ operation: value });
		const issues = NodeHelpers.getNodeParametersIssues(description.properties, node, description);
		assert.deepEqual(Object.keys(issues?.parameters ?? {}), want, value);
	}
});

test('each operation has the outputs that it fills', () => {
	const wants: Record<string, string[]> = {
		check: ['Allowed', 'Needs approval', 'Denied'],
		readApproval: ['Approved', 'Not approved'],
		step: ['May go on', 'Must stop'],
		useApproval: ['May go on', 'Must stop'],
	};
	for (const value of operations) {
		const { workflow, node } = workflowOf({ operation: value });
		const outputs = NodeHelpers.getNodeOutputs(workflow, node, description);
		const names = outputs.map((output) => (output as { displayName?: string }).displayName);
		assert.deepEqual(names, wants[value] ?? [undefined], value);
	}
	const { workflow, node } = workflowOf({ operation: 'report', phase: 'intent' });
	assert.equal(NodeHelpers.getNodeOutputs(workflow, node, description).length, 2);
});

test('the resume URL is that of the node, and n8n checks its signature', () => {
	const { workflow, node } = workflowOf({ operation: 'sendAndWait' });
	const [webhook] = description.webhooks!;
	assert.equal(webhook!.restartWebhook, true);
	const keys = { $nodeId: node.id } as object;
	assert.equal(workflow.expression.getSimpleParameterValue(node, webhook!.path, 'manual', { ...keys }), '1');
	assert.ok(operations.includes('sendAndWait'), 'n8n checks signatures for this name alone');
});

test('secrets of the credential are password fields', () => {
	const file = resolve(PACKAGE, manifest.n8n.credentials[0]!);
	const { AgentledgerApi } = require(file) as { AgentledgerApi: new () => ICredentialType };
	const credential = new AgentledgerApi();
	const secret = credential.properties.filter(({ typeOptions }) => typeOptions?.password).map(({ name }) => name);
	assert.deepEqual(secret, ['token', 'privateKey']);
	assert.equal(description.credentials![0]!.name, credential.name);
	assert.equal(credential.test?.request.url, '/v1/ingest/policy/evaluate');
});
