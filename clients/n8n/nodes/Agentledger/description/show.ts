import type { IDisplayOptions, INodeProperties } from 'n8n-workflow';

/**
 * The operations of the node. `sendAndWait` is n8n's own name, for which n8n checks the signature of the resume URL.
 */
export type Operation =
	'check' | 'sendAndWait' | 'readApproval' | 'report' | 'startRun' | 'step' | 'completeRun' | 'useApproval';

/** Shows a parameter for these operations. */
export function showFor(...operations: Operation[]): IDisplayOptions {
	return { show: { operation: operations } };
}

/** A text parameter. `more` contains the differences from an optional, empty one. */
export function text(displayName: string, name: string, description: string, more: Partial<INodeProperties>): INodeProperties {
	return { displayName, name, type: 'string', default: '', description, ...more } as INodeProperties;
}
