import type { Client } from "../index.js";
import type { AdapterOptions } from "./call.js";

/** The value of an interrupt of a graph. */
export interface WaitingCall {
  readonly approval_id: string;
  /** The page where approvers vote. */
  readonly url: string;
  /** The tool's name in the log, with the prefix. */
  readonly tool: string;
  readonly message: string;
}

/** Options of guardTool. */
export interface InterruptOptions extends AdapterOptions {
  /** The function `interrupt` of @langchain/langgraph. */
  interrupt: (waiting: WaitingCall) => unknown;
  /** The thread of the graph: a resumed graph makes the same call, with the same request for approval. */
  conversation: string;
}

/**
 * Returns a tool like this one for a ToolNode, whose calls ask first. A call that waits for approval interrupts the
 * graph with a WaitingCall. A resumed graph asks the service again, whatever value it is resumed with, because only the
 * service knows whether the call was approved. Until then it is interrupted again.
 */
export function guardTool<T extends object>(client: Client, tool: T, options: InterruptOptions): T;
