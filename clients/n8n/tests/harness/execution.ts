import {
	NodeHelpers,
	Workflow,
	type ICredentialDataDecryptedObject,
	type IDataObject,
	type IExecuteFunctions,
	type IHttpRequestOptions,
	type INode,
	type INodeExecutionData,
	type INodeParameters,
	type INodeType,
	type INodeTypes,
	type IRunExecutionData,
	type IWebhookFunctions,
	type NodeParameterValueType,
} from 'n8n-workflow';

import { request } from './http';
import type { Resumer } from './n8n';

const DIST = '../../../dist/nodes/Agentledger/Agentledger.node.js';

/** The node of this package as it is shipped. */
export const { Agentledger } = require(DIST) as { Agentledger: new () => INodeType };

export const nodeTypes = {
	getByName: () => new Agentledger(),
	getByNameAndVersion: () => new Agentledger(),
	getKnownTypes: () => ({}),
} as unknown as INodeTypes;

/** What a test sets for one execution of a workflow with this node alone. */
export interface Setting {
	credentials: ICredentialDataDecryptedObject;
	parameters: INodeParameters;
	items?: IDataObject[];
	executionId?: string;
	runIndex?: number;
	continueOnFail?: boolean;
	resumer?: Resumer;
}

let executions = 0;

/** One execution: parameters and expressions are resolved by n8n's own Workflow. */
export class Execution {
	readonly workflow: Workflow;
	readonly node: INode;
	readonly items: INodeExecutionData[];
	readonly id: string;
	/** Until when n8n lets the execution wait. */
	waitTill?: Date;
	signatureRequired = false;
	/** The items with which the execution resumed. */
	resumed?: INodeExecutionData[];
	readonly data: IRunExecutionData;

	constructor(readonly setting: Setting) {
		this.id = setting.executionId ?? String(++executions);
		this.items = (setting.items ?? [{}]).map((json) => ({ json }));
		this.workflow = new Workflow({
			id: 'wf1',
			name: 'Refunds',
			nodes: [{ id: 'node-1', name: 'Ledger', type: 'agentledger', typeVersion: 1, position: [0, 0], parameters: setting.parameters }],
			connections: {},
			active: false,
			nodeTypes,
		});
		this.node = this.workflow.getNode('Ledger')!;
		this.data = {
			resultData: { runData: {} },
			executionData: {
				contextData: {},
				nodeExecutionStack: [{ node: this.node, data: { main: [this.items] }, source: null }],
				metadata: {},
				waitingExecution: {},
				waitingExecutionSource: {},
			},
		} as unknown as IRunExecutionData;
	}

	/** Runs the node's execute. Returns its outputs through JSON, as n8n's database stores them. */
	async run(): Promise<INodeExecutionData[][]> {
		const outputs = await new Agentledger().execute!.call(this.executeContext());
		if (this.waitTill !== undefined) {
			this.setting.resumer?.wait(this.id, this);
		}
		return outputs as INodeExecutionData[][];
	}

	/** Runs the node's webhook as n8n does: an exception would resume the execution. */
	async callWebhook(text: string): Promise<{ status: number; body: unknown }> {
		const answered: Array<{ status: number; body: unknown }> = [];
		const reply = (status: number) => ({ json: (body: unknown) => void answered.push({ status, body }) });
		const body = parse(text);
		const result = await new Agentledger().webhook!.call(this.webhookContext(body, { status: reply }));
		if (result.workflowData !== undefined) {
			this.resumed = result.workflowData[0]!;
		}
		return answered[0] ?? { status: 200, body: result.webhookResponse };
	}

	resolve(value: NodeParameterValueType, item: number): NodeParameterValueType {
		const keys = { $execution: { id: this.id, mode: 'test' as const, resumeUrl: '', resumeFormUrl: '' } };
		const executeData = this.data.executionData!.nodeExecutionStack[0]!;
		const round = this.setting.runIndex ?? 0;
		return this.workflow.expression.getParameterValue(
			value as never, this.data, round, item, 'Ledger', this.items, 'manual', keys, executeData,
		) as NodeParameterValueType;
	}

	private parameter(name: string, item: number, fallback?: unknown): unknown {
		let value: unknown = this.node.parameters;
		for (const part of name.split('.')) {
			value = (value as IDataObject | undefined)?.[part];
		}
		if (value === undefined && fallback === undefined) {
			throw new Error(`Could not get parameter ${name}`);
		}
		return value === undefined ? fallback : this.resolve(value as NodeParameterValueType, item);
	}

	private shared() {
		const { setting } = this;
		return {
			getNode: () => structuredClone(this.node),
			getCredentials: async () => structuredClone(setting.credentials),
			evaluateExpression: (expression: string, item = 0) => this.resolve(`=${expression}`, item),
			helpers: {
				httpRequestWithAuthentication: async (_type: string, options: IHttpRequestOptions) =>
					await request(options, String(setting.credentials.token)),
			},
		};
	}

	private executeContext(): IExecuteFunctions {
		return {
			...this.shared(),
			getNodeParameter: (name: string, item: number, fallback?: unknown) => this.parameter(name, item, fallback),
			getInputData: () => this.items,
			getContext: (type: 'node') => NodeHelpers.getContext(this.data, type, this.node),
			getExecutionId: () => this.id,
			getInstanceId: () => 'instance-1',
			getWorkflow: () => ({ id: 'wf1', name: 'Refunds', active: false }),
			getWorkflowDataProxy: () => ({ $runIndex: this.setting.runIndex ?? 0 }),
			continueOnFail: () => this.setting.continueOnFail ?? false,
			getSignedResumeUrl: () => this.setting.resumer?.signedUrl(this.id, this.node.id) ?? 'http://127.0.0.1:1/',
			setSignatureValidationRequired: () => void (this.signatureRequired = true),
			putExecutionToWait: async (till: Date) => void (this.waitTill = till),
		} as unknown as IExecuteFunctions;
	}

	private webhookContext(body: IDataObject, response: object): IWebhookFunctions {
		return {
			...this.shared(),
			getNodeParameter: (name: string, fallback?: unknown) => this.parameter(name, 0, fallback),
			getBodyData: () => body,
			getResponseObject: () => response,
		} as unknown as IWebhookFunctions;
	}
}

function parse(text: string): IDataObject {
	try {
		return JSON.parse(text) as IDataObject;
	} catch {
		return {};
	}
}
