import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { fault } from './faults';
import { forEachItem, type Outcome } from './items';
import { isObject } from './json';
import { nameOfWork } from './names';
import { readPayload, readText, readTimeout, requireId, requireText } from './parameters';
import { ask, type Account } from './service';

const RUNS = '/v1/ingest/workflows/runs';

/** Starts a run for each item, or finds the run if n8n repeats a start. */
export async function startRuns(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	return await forEachItem(context, 'run', 1, async (account, item) => {
		const workflow: IDataObject = { name: readText(context, 'workflowName', item) ?? context.getWorkflow().name, tool: 'n8n' };
		const body: IDataObject = {
			workflow,
			external_run_id: readText(context, 'externalRunId', item) ?? (await nameOfWork(context, item)),
			...optional('agent_id', readText(context, 'agentId', item)),
			...optional('planned_steps', readCount(context, 'plannedSteps', item)),
		};
		const answer = await post(context, account, RUNS, body, item);
		if (typeof answer.run_id !== 'string') {
			throw fault(context, item, 'The answer of the service holds no run');
		}
		return { output: 0, answer };
	});
}

/** Reports a step of a run for each item. Steps that the tool may execute go to the first output. */
export async function reportSteps(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	return await forEachItem(context, 'step', 2, async (account, item) => {
		const run = requireId(context, 'runId', 'Run ID', 'run', item);
		const answer = await post(context, account, `${RUNS}/${run}/steps`, stepBody(context, item), item);
		if (typeof answer.decision !== 'string') {
			throw fault(context, item, 'The answer of the service holds no decision, so it permits nothing');
		}
		return stepOutcome({ run_id: run, ...answer });
	});
}

function stepBody(context: IExecuteFunctions, item: number): IDataObject {
	return {
		step_key: requireText(context, 'stepKey', 'Step Key', item),
		status: requireText(context, 'stepStatus', 'Status', item),
		payload: readPayload(context, 'payload', 'Payload', item),
		...optional('attempt', readCount(context, 'attempt', item)),
		...optional('kind', readText(context, 'kind', item)),
		...optional('tool_name', readText(context, 'toolName', item)),
		...optional('approval_id', readText(context, 'stepApprovalId', item)),
	};
}

/**
 * The tool may proceed if the decision is allow, or if this very step has consumed the approval that the obligation
 * requires.
 */
function stepOutcome(answer: IDataObject): Outcome {
	const consumed = isObject(answer.approval) && answer.approval.status === 'consumed';
	const mayGoOn = answer.decision === 'allow' || (answer.decision === 'allow_with_obligation' && consumed);
	return { output: mayGoOn ? 0 : 1, answer: { ...answer, may_go_on: mayGoOn } };
}

export async function completeRuns(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	return await forEachItem(context, 'completed', 1, async (account, item) => {
		const run = requireId(context, 'runId', 'Run ID', 'run', item);
		const body: IDataObject = {
			status: requireText(context, 'runStatus', 'Status', item),
			...optional('error', readText(context, 'runError', item)?.slice(0, 1024)),
		};
		return { output: 0, answer: await post(context, account, `${RUNS}/${run}/complete`, body, item) };
	});
}

async function post(context: IExecuteFunctions, account: Account, path: string, body: IDataObject, item: number): Promise<IDataObject> {
	return await ask(context, account, { method: 'POST', path, body, timeoutMs: readTimeout(context, item), item });
}

/** Returns a whole number in a parameter, or undefined if it is 0 or missing: 0 means "not given". */
function readCount(context: IExecuteFunctions, name: string, item: number): number | undefined {
	const value: unknown = context.getNodeParameter(name, item, 0);
	return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

function optional(name: string, value: IDataObject[string]): IDataObject {
	return value === undefined ? {} : { [name]: value };
}
