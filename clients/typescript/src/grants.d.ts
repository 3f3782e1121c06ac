// Types of the middleware that checks grants. It needs Node.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";

import type { OnBehalfOf } from "./index.js";

/** The signed permission that a request runs under. Times are in milliseconds since 1970. */
export interface Grant {
  readonly origin: string;
  readonly approvalId: string;
  readonly agent: string;
  readonly actionDigest: string;
  readonly policyDigest: string;
  readonly nonce: string;
  readonly notBefore: number;
  readonly notAfter: number;
}

/**
 * What a tool states about an act. `at` is in milliseconds since 1970. If the tool checked no grant, approvalId and nonce are absent,
 * and organization, agent and intentEventId are what the request stated; otherwise intentEventId is absent.
 */
export interface Receipt {
  readonly organization: string;
  readonly agent: string;
  readonly tool: string;
  readonly actionDigest: string;
  readonly approvalId?: string;
  readonly nonce?: string;
  readonly intentEventId?: string;
  /** The HTTP status of the answer, 200 to 599. */
  readonly status: number;
  readonly at: number;
}

/** Resolves to the receipt in a note that a tool signed, by the tool's verifier key. Throws Malformed or Unproved. */
export function openReceipt(note: string, key: string): Promise<Receipt>;

/** Declares the tool of requests. Exactly one of `tool` and `host` is set. */
export interface GrantRoute {
  /** "<METHOD> <path>", in which a segment {name} is a parameter. The path * is each path, only with `host` or `describe`. */
  route: string;
  /** The tool_name. The arguments are the members of the JSON body and the parameters of the path; a query is refused. */
  tool?: string;
  /** Makes the request itself the action: http.<method> with method, host, path, query and the SHA-256 of the body. */
  host?: string;
  /**
   * Returns the arguments of `tool` in place of the description above. It must cover everything in the request that the
   * action depends on. `request` is the framework's.
   */
  describe?: (request: any, body: Uint8Array) => object | Promise<object>;
  /** Passes requests without a grant on too. A grant that is sent is checked all the same. */
  optional?: boolean;
}

export interface GrantsConfig {
  /** Verifier keys of the grants, as transparency/keys lists them with the use grant; at most 16, and none only if all routes are optional. */
  keys: readonly string[];
  /** The requests that need a grant. The first that matches counts. */
  routes: readonly GrantRoute[];
  /** The requests that need none: "<METHOD> *" for a method without tools, "<METHOD> <path>" for a path without parameters. */
  open?: readonly string[];
}

/** Checks the grants of a server's requests offline. Requests that are neither declared nor open are refused. */
export class Grants {
  /**
   * Throws a LedgerError about the configuration. `now` returns the time in milliseconds. With `receipts`, the server's
   * own name and seed (bytes or base64), answers to requests with a grant have a receipt, and on optional routes those with
   * an intent. `onBehalfOf` returns on whose behalf a request is made, according to the server itself: a grant for a subject is
   * accepted for exactly this subject, and only grants without a subject if it returns nothing. `request` is the framework's.
   */
  constructor(
    config: GrantsConfig,
    options?: {
      now?: () => number;
      receipts?: { name: string; key: string | Uint8Array };
      onBehalfOf?: (request: any) => OnBehalfOf | undefined | null | Promise<OnBehalfOf | undefined | null>;
    },
  );
  /** The verifier key of the receipts. */
  readonly receiptKey: string | undefined;
  /**
   * Returns Express middleware, to be used before body parsers. A request with a grant has `grant`. If it was read, its `body` is
   * the object of the arguments, or a Buffer where the route has a host or a description.
   */
  express(): (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void;
  /** Returns Fastify's preParsing hook. A request with a grant has `grant`, and its body is parsed as usual. */
  fastify(): (request: any, reply: any, payload: Readable) => Promise<any>;
}
