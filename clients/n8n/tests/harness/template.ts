import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import {
	Workflow,
	type IConnections,
	type IDataObject,
	type INode,
	type INodeExecutionData,
	type INodeParameters,
	type INodeTypes,
	type IRunExecutionData,
	type NodeParameterValueType,
} from 'n8n-workflow';

/** A template as n8n imports it. */
export interface Template {
	name: string;
	nodes: INode[];
	connections: IConnections;
}

/** One request that a template made, and its answer. */
export interface Made {
	node: string;
	status: number;
	answer: IDataObject;
}

const noTypes = { getByName: () => undefined, getByNameAndVersion: () => undefined, getKnownTypes: () => ({}) };

/** Runs a template node by node. Parameters and expressions are resolved by n8n's own Workflow. */
export class TemplateRun {
	readonly workflow: Workflow;
	readonly made: Made[] = [];
	readonly visited: string[] = [];
	private readonly data = { resultData: { runData: {} }, executionData: { contextData: {} } } as unknown as IRunExecutionData;
	private server?: Server;
	private called: () => void = () => undefined;

	constructor(template: Template, private readonly token: string, private readonly executionId: string) {
		this.workflow = new Workflow({ ...template, id: 'wf', active: false, nodeTypes: noTypes as unknown as INodeTypes });
	}

	/** Runs from the first node to the end. `waiting` is called each time the template waits for a call. */
	async run(waiting: (resumeUrl: string) => Promise<void>): Promise<void> {
		this.server = createServer((request, response) => {
			request.resume().on('end', () => void response.end('{}'));
			this.called();
		});
		await new Promise<void>((done) => this.server!.listen(0, '127.0.0.1', done));
		try {
			let name: string | undefined = 'Start';
			for (let items: INodeExecutionData[] = [{ json: {} }]; name !== undefined; ) {
				const { output, items: next }: { output: number; items: INodeExecutionData[] } = await this.step(name, items, waiting);
				items = next;
				name = this.workflow.connectionsBySourceNode[name]?.main?.[output]?.[0]?.node;
			}
		} finally {
			this.server.closeAllConnections();
			await new Promise((done) => this.server!.close(done));
		}
	}

	private async step(name: string, items: INodeExecutionData[], waiting: (url: string) => Promise<void>) {
		const node = this.workflow.getNode(name)!;
		this.visited.push(name);
		let output = 0;
		let next = items;
		switch (node.type.replace('n8n-nodes-base.', '')) {
			case 'set':
				next = [{ json: JSON.parse(String(this.resolve(node, 'jsonOutput', items))) as IDataObject }];
				break;
			case 'httpRequest':
				next = [{ json: await this.request(node, items) }];
				break;
			case 'if':
				output = this.holds(node, items) ? 0 : 1;
				break;
			case 'wait':
				next = await this.wait(waiting);
				break;
		}
		const runs = (this.data.resultData.runData[name] ??= []);
		runs.push({ data: { main: [next] }, startTime: 0, executionTime: 0, executionIndex: 0, source: [] });
		return { output, items: next };
	}

	private get resumeUrl(): string {
		return `http://127.0.0.1:${(this.server!.address() as AddressInfo).port}/webhook-waiting/${this.executionId}`;
	}

	private async wait(waiting: (url: string) => Promise<void>): Promise<INodeExecutionData[]> {
		const call = new Promise<void>((done) => (this.called = done));
		await waiting(this.resumeUrl);
		await call;
		return [{ json: { body: { data: { status: 'approved' } } } }];
	}

	private holds(node: INode, items: INodeExecutionData[]): boolean {
		const { conditions } = this.resolve(node, 'conditions', items) as { conditions: Array<{ leftValue: unknown }> };
		return conditions.every(({ leftValue }) => leftValue === true);
	}

	private async request(node: INode, items: INodeExecutionData[]): Promise<IDataObject> {
		const body = node.parameters.sendBody === true ? String(this.resolve(node, 'jsonBody', items)) : undefined;
		const answer = await fetch(String(this.resolve(node, 'url', items)), {
			method: String(node.parameters.method),
			headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' },
			body,
		});
		const members = (await answer.json()) as IDataObject;
		this.made.push({ node: node.name, status: answer.status, answer: members });
		if (!answer.ok) {
			throw new Error(`${node.name}: ${answer.status} ${JSON.stringify(members)}`);
		}
		return members;
	}

	/** Resolves a parameter of a node as n8n does before it runs the node. */
	resolve(node: INode, parameter: string, items: INodeExecutionData[]): NodeParameterValueType {
		const value = node.parameters[parameter] as INodeParameters;
		const resumeUrl = this.server === undefined ? '' : this.resumeUrl;
		const keys = { $execution: { id: this.executionId, mode: 'test' as const, resumeUrl, resumeFormUrl: '' } };
		return this.workflow.expression.getParameterValue(value, this.data, 0, 0, node.name, items, 'manual', keys) as NodeParameterValueType;
	}
}
