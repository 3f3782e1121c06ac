import type { Client } from "../index.js";
import type { AdapterOptions } from "./call.js";
export type { AdapterOptions };

/**
 * Returns a tool like this one (StructuredTool, `tool()`) whose calls ask first and run at most once per tool call. The
 * input that is asked about has passed the tool's schema. Throws LedgerError for a tool that runs elsewhere.
 */
export function guardTool<T extends object>(client: Client, tool: T, options?: AdapterOptions): T;

/**
 * Returns the hook `wrapToolCall` for `createMiddleware` of LangChain.js 1. It guards each tool that the agent calls. A
 * call of a tool that is unknown to the agent, or that runs elsewhere, rejects with LedgerError.
 */
export function wrapToolCall(client: Client, options?: AdapterOptions): <R extends { tool: any }, A>(request: R, handler: (request: R) => A) => A;
