import type { Client } from "../index.js";
import type { AdapterOptions } from "./call.js";
export type { AdapterOptions };

/**
 * Returns options for `tool()` of the OpenAI Agents SDK. `execute` asks first and runs at most once per tool call. A
 * call that needs approval waits for it, for up to `waitMs`.
 */
export function guardOptions<O extends { name: string; execute: (...args: any[]) => any }>(client: Client, options: O, adapterOptions?: AdapterOptions): O;

/**
 * Returns a `needsApproval` for a tool: true if the policy requires approval, determined by an evaluation that stores
 * nothing. The SDK then interrupts the run before approval is requested. If the run is resumed with the call approved,
 * it requests approval and waits.
 */
export function needsApproval(client: Client, options: { name: string }, adapterOptions?: AdapterOptions): (context: any, input: any) => Promise<boolean>;
