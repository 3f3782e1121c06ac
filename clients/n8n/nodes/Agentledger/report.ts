import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';

import { fault } from './faults';
import { forEachItem, type Outcome } from './items';
import { parseObject } from './json';
import { nameOfWork } from './names';
import { readPayload, readText, readTimeout, requireAgent, requireText } from './parameters';
import { ask, type Account } from './service';
import { withSigner } from './signer';

/**
 * Signs and sends an event for each item. The private key stays in this process. Events before an act have two outputs:
 * items that the ledger allows go to the first one.
 */
export async function reportEvents(context: IExecuteFunctions): Promise<INodeExecutionData[][]> {
	const outputs = context.getNodeParameter('phase', 0, 'none') === 'intent' ? 2 : 1;
	return await forEachItem(context, 'event', outputs, async (account, item) => await reportItem(context, account, item));
}

async function reportItem(context: IExecuteFunctions, account: Account, item: number): Promise<Outcome> {
	const event = await completeEvent(context, account, item);
	const body = await signItem(context, account, event, item);
	const answer = await ask(context, account, {
		method: 'POST',
		path: '/v1/ingest/events',
		body,
		timeoutMs: readTimeout(context, item),
		item,
	});
	if (answer.event_id !== event.event_id) {
		throw fault(context, item, 'The answer of the service is about another event');
	}
	const shown = { ...answer, trace_id: event.trace_id, declared: event.policy_decision };
	if (context.getNodeParameter('phase', 0, 'none') !== 'intent') {
		return { output: 0, answer: shown };
	}
	const mayGoOn = isAllowed(event, answer);
	return { output: mayGoOn ? 0 : 1, answer: { ...shown, may_go_on: mayGoOn } };
}

/**
 * A new event keeps its declared decision unless the answer contains another. A replay permits only what the answer
 * states.
 */
function isAllowed(event: IDataObject, answer: IDataObject): boolean {
	const unchanged = answer.status === 'created' ? event.policy_decision : undefined;
	return (answer.policy_decision ?? unchanged) === 'allow';
}

async function signItem(context: IExecuteFunctions, account: Account, event: IDataObject, item: number): Promise<IDataObject> {
	return await withSigner(context, account, String(event.agent_id), item, async (signer) => {
		return parseObject((await signer.sign(event)).text)!;
	});
}

/** Returns the event before it is signed. A repetition by n8n creates the same event, byte for byte. */
async function completeEvent(context: IExecuteFunctions, account: Account, item: number): Promise<IDataObject> {
	const eventId = readText(context, 'options.eventId', item) ?? (await nameOfWork(context, item));
	const kept = keptMembers(context, eventId);
	const event: IDataObject = {
		schema_version: 1,
		event_id: eventId,
		organization_id: account.organization,
		trace_id: readText(context, 'traceId', item) ?? `n8n.${context.getExecutionId()}`,
		agent_id: requireAgent(context, account, item),
		emitted_at: readText(context, 'options.emittedAt', item) ?? kept.emittedAt,
		actor_type: 'agent',
		actor_principal: readText(context, 'actorPrincipal', item) ?? context.getWorkflow().name ?? 'n8n',
		action_kind: requireText(context, 'actionKind', 'Action Kind', item),
		policy_decision: requireText(context, 'policyDecision', 'Policy Decision', item),
		payload: completePayload(context, kept.salt, item),
		salt: kept.salt,
	};
	for (const [member, parameter] of [['tool_name', 'toolName'], ['parent_event_id', 'parentEventId']] as const) {
		const value = readText(context, parameter, item);
		if (value !== undefined) {
			event[member] = value;
		}
	}
	return event;
}

/**
 * Returns the payload to be signed. The payload of an intent has a salt, because its record contains a digest of the
 * payload alone.
 */
function completePayload(context: IExecuteFunctions, salt: string, item: number): IDataObject {
	const payload = readPayload(context, 'payload', 'Payload', item);
	const phase = context.getNodeParameter('phase', 0, 'none') as string;
	if (phase === 'none') {
		return payload;
	}
	requireText(context, 'toolName', 'Tool Name', item);
	return phase === 'intent' ? { salt, ...payload, phase } : { ...payload, phase };
}

interface Kept {
	emittedAt: string;
	salt: string;
}

/** The time and the salt of an event are chosen once and stored in the execution's data, by event ID. */
function keptMembers(context: IExecuteFunctions, eventId: string): Kept {
	const kept = context.getContext('node');
	const events = (kept.events ?? {}) as Record<string, Kept>;
	events[eventId] ??= { emittedAt: new Date().toISOString(), salt: randomHex(16) };
	kept.events = events as unknown as IDataObject;
	return events[eventId];
}

function randomHex(bytes: number): string {
	return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
