import type { Client } from "../index.js";
import type { AdapterOptions } from "./call.js";
export type { AdapterOptions };

/**
 * Returns the same tools for `generateText` and `streamText` of the Vercel AI SDK (package `ai`, 5 and 6). Each
 * `execute` asks first and runs at most once per tool call. Tools without `execute` are returned unchanged, because
 * they run elsewhere. Preliminary values of an `execute` that yields are not passed on; the last one is the result.
 */
export function guardTools<T extends Record<string, object>>(client: Client, tools: T, options?: AdapterOptions): T;
