import type { Client } from "../index.js";
import type { AdapterOptions } from "./call.js";
export type { AdapterOptions };

/**
 * Returns options for `tool()` of the OpenAI Agents SDK. `execute` asks first, and runs at most once for one tool call. A call
 * that needs people's approval waits for it, as long as `waitMs` says.
 */
export function guardOptions<O extends { name: string; execute: (...args: any[]) => any }>(client: Client, options: O, adapterOptions?: AdapterOptions): O;

/**
 * Returns a `needsApproval` for a tool: true where the policy asks for people's approval, by an evaluation that stores nothing.
 * The SDK then interrupts the run before people are asked. A run that is resumed with the call approved asks them and waits.
 */
export function needsApproval(client: Client, options: { name: string }, adapterOptions?: AdapterOptions): (context: any, input: any) => Promise<boolean>;
