/// <reference lib="esnext.disposable" />
// Public types. Members with underscores are wire names of the HTTP API; all others are names of this package.

import { Refused } from "./errors.js";

export * from "./errors.js";
export * from "./verify.js";

/** A value that canonical JSON can represent. Integers are at most 2^53 - 1 in magnitude; numbers are finite. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
/** A JSON object. */
export type JsonObject = { readonly [name: string]: Json };
/** The decision of a policy. */
export type Decision = "allow" | "deny" | "allow_with_obligation";

/**
 * Returns a replacement for a rejected value, or undefined to reject it. OMIT omits an object's member. `path` is a
 * JSON Pointer.
 */
export type Convert = (value: unknown, path: string) => unknown;
/** A converter returns this to omit an object's member. */
export const OMIT: unique symbol;

/**
 * Returns the canonical JSON (RFC 8785) of a value. Throws InvalidValue with the path of the first rejected value:
 * integers beyond 2^53 - 1, NaN, infinities, lone surrogates, undefined, functions, bigints, Date, Map, Set, bytes,
 * other instances of classes, cycles, more than 64 levels. `convert` is called for each of them first.
 */
export function canonicalize(value: unknown, options?: { convert?: Convert }): string;
/** Returns the canonical JSON of a JSON text (UTF-8 bytes or a string). Throws InvalidValue. */
export function canonicalizeText(source: string | Uint8Array): string;
/**
 * Parses one JSON value strictly: no duplicate member, no lone surrogate, no number that would change. Throws
 * InvalidValue.
 */
export function parse(source: string | Uint8Array): Json;
/**
 * Parses one JSON value as `parse` does, but keeps the values of all numbers: integers beyond 2^53 - 1 are bigints, other
 * numbers that a double cannot hold are ExactNumbers. Throws InvalidValue beyond 128 significant digits.
 */
export function parseExact(source: string | Uint8Array): any;
/** A number that neither a double nor a bigint holds, such as 0.12345678901234567. Payloads of acts may contain it. */
export class ExactNumber {
  /** A JSON number of at most 128 significant digits. */
  constructor(literal: string);
  /** The canonical literal. */
  toString(): string;
}

/**
 * An event before it is signed, by wire names. Only `action_kind` is required; unknown members are signed unchanged.
 */
export interface Event {
  action_kind: string;
  event_id?: string;
  /** Default: the trace of `traceparent`, or a new one. */
  trace_id?: string;
  /** The span under which the event was made, in the form of W3C Trace Context. */
  traceparent?: string;
  /** UTC, `YYYY-MM-DDThh:mm:ss.sssZ`; default: now. */
  emitted_at?: string;
  actor_type?: string;
  /** 1 to 256 characters; default: the agent. */
  actor_principal?: string;
  tool_name?: string;
  policy_decision?: Decision;
  payload?: object;
  [member: string]: unknown;
}

/** A signed event. `text` is the canonical envelope; every retry sends the same bytes. */
export interface SignedEvent {
  readonly eventId: string;
  readonly traceId: string;
  readonly text: string;
}

/** The service's answer for a stored event. Only a `created` event has a sequence number. */
export interface Stored {
  readonly eventId: string;
  readonly status: "created" | "replayed";
  readonly sequenceNum?: number;
  readonly eventHash?: string;
  readonly chainValid?: boolean;
  /** The effective decision, if the service tightened the declared one, or for a replayed intent. */
  readonly decision?: Decision;
  readonly policyId?: string;
  readonly ruleId?: string;
  readonly reason?: string;
}

/** The decision of the active policy. `policyId` is `none` if no policy is active. */
export interface PolicyDecision {
  readonly decision: Decision;
  readonly policyId: string;
  readonly ruleId: string;
  readonly reason: string;
  readonly engine: string;
  readonly policyVersion?: number;
  readonly policyDigest?: string;
  readonly inputDigest?: string;
  readonly obligations: readonly JsonObject[];
}

/** Completes and signs events of one agent. */
export class Signer {
  /** `key` is the 32-byte seed, or its base64. Throws a LedgerError that does not contain the key. */
  constructor(who: { organization: string; agent: string; keyId: string }, key: string | Uint8Array);
  readonly organization: string;
  readonly agent: string;
  readonly keyId: string;
  /** Rejects with InvalidValue (a path) or Malformed (a member's name). */
  sign(event: Event | string, options?: { convert?: Convert }): Promise<SignedEvent>;
}

/** The queue of unsent events. MemoryQueue and FileQueue have this interface. */
export interface Queue {
  /** The number of events. */
  readonly size: number;
  /** Whether events outlive the process. */
  readonly durable: boolean;
  /** Resolves to the event's number when it is in the queue. Rejects with Overflow. */
  add(event: SignedEvent): Promise<number>;
  remove(numbers: readonly number[]): Promise<void>;
  /** Keeps events that the service has refused, before they are removed. Without it they are only given to onRefused. */
  refuse?(refused: readonly (readonly [SignedEvent, Refused])[]): Promise<void>;
  load(): Promise<readonly (readonly [number, SignedEvent])[]>;
  close(): Promise<void>;
  /** Where a durable queue keeps its events: named if some are left at the end of the process. */
  readonly folder?: string;
}

/** A bounded queue in memory. `limit` is the maximum number of events; default 10,000. */
export class MemoryQueue implements Queue {
  constructor(options?: { limit?: number });
  readonly limit: number;
  readonly size: number;
  readonly durable: boolean;
  add(event: SignedEvent): Promise<number>;
  remove(numbers: readonly number[]): Promise<void>;
  load(): Promise<readonly (readonly [number, SignedEvent])[]>;
  close(): Promise<void>;
}

/** How requests are retried. */
export interface Retry {
  /** Maximum number of tries; default 8. */
  attempts?: number;
  /** First back-off in ms, doubled after each further try; default 200. */
  baseMs?: number;
  /** Maximum back-off in ms; default 10,000. Retry-After may be longer. */
  maxMs?: number;
  /** Waits; rejects when the signal aborts. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Options of a client. For the public log, `url` alone is enough. */
export interface ClientOptions {
  url: string;
  /** The ingest key. */
  token?: string;
  /**
   * Returns the token by which the service verifies `on_behalf_of` of events: a JWT of at most 8 KiB whose issuer is that of the
   * ingest key. Called for each request with events, of which it proves those of its subject. If it returns nothing, none is
   * sent; if it throws, the events are sent later.
   */
  subjectToken?: () => string | undefined | Promise<string | undefined>;
  /** The organization's UUID. */
  org?: string;
  agent?: string;
  keyId?: string;
  /** The agent's private key: the 32-byte seed, or its base64. */
  key?: string | Uint8Array;
  queue?: Queue;
  /**
   * Called with events that the service will never accept, even if nobody waits for them. Its own errors become
   * warnings.
   */
  onRefused?: (event: SignedEvent, why: Error) => void;
  /** Converts values of payloads that JSON does not have. It is asked about bigints before they are recorded exactly. */
  convert?: Convert;
  retry?: Retry;
  /** Time limit of one try in ms; default 30,000. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
  guard?: GuardOptions;
}

/** The state of an approval. */
export interface Approval {
  readonly approvalId: string;
  readonly status: "pending" | "approved" | "consumed" | "denied" | "expired" | "cancelled" | "revoked" | "invalidated";
  readonly actionDigest: string;
  readonly expiresAt: string;
  readonly quorum: number;
  readonly approvals: number;
  readonly comment: string | null;
  readonly code: string | null;
}

/** The approvals of one client. */
export interface Approvals {
  ask(question: { tool: string; payload?: object; trace?: string; principal?: string; signal?: AbortSignal }): Promise<Approval>;
  get(approvalId: string, options?: { waitSeconds?: number; signal?: AbortSignal }): Promise<Approval>;
  /** Resolves when it is no longer pending; rejects with Unreachable if the deadline (ms) passes first. */
  wait(approvalId: string, options?: { deadlineMs?: number; signal?: AbortSignal }): Promise<Approval>;
  /** Resolves to the grant, a signed note. */
  consume(approval: Approval, options?: { signal?: AbortSignal }): Promise<string>;
  cancel(approvalId: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** The address of the page where approvers vote, if the client's `url` is the service's public address. */
  pageUrl(approvalId: string): string;
}

/** Runs of tools without a key. Bodies and answers are those of the HTTP API (docs/guides/runs.md). */
export interface Runs {
  start(run: { workflow: { name: string; version?: string; tool?: string }; external_run_id?: string; [member: string]: unknown }): Promise<RunStarted>;
  step(runId: string, ...steps: RunStep[]): Promise<RunStepAnswer[]>;
  /** Whether the tool may execute the step. */
  mayGoOn(answer: RunStepAnswer): boolean;
  complete(runId: string, ending: { status: "succeeded" | "failed" | "aborted"; error?: string; output_digest?: string }): Promise<JsonObject>;
}
/** A run that was started or found. */
export interface RunStarted {
  readonly run_id: string;
  readonly trace_id: string;
  readonly agent_id: string;
  readonly status: string;
}
/** One attempt at one step. */
export interface RunStep {
  step_key: string;
  status: string;
  attempt?: number;
  kind?: string;
  tool_name?: string;
  payload?: object;
  approval_id?: string;
}
/** The answer to a step that is in the ledger. */
export interface RunStepAnswer {
  readonly decision: Decision;
  readonly reason: string;
  readonly approval?: { readonly approval_id: string; readonly status: string; readonly grant: string } | null;
}

/** The permission of an act. `grant` is a signed note if the act was approved. */
export interface Permit {
  readonly eventId: string;
  readonly callId: string;
  readonly decision: Decision;
  readonly grant?: string;
  /** The payload that the grant is for, as canonical JSON: the act's payload with the guard's members. */
  readonly approved?: string;
  /** With the option `receipt` and without an approval: organization, agent and event of the intent, for a tool that signs receipts. */
  readonly intent?: string;
  /** With `intent`: the payload of the intent, as canonical JSON. */
  readonly payload?: string;
}

/** How acts are guarded. Options of an act override those of the client. */
export interface GuardOptions {
  /** Default: in memory, which is lost when the process ends. */
  journal?: Journal;
  /** The person or system that the agent acts for. */
  principal?: string;
  /** Default `tool_call`. */
  actionKind?: string;
  /** Whether the intent requests approval (key scope `approvals`); default true. */
  approval?: boolean;
  /** Maximum wait for approval in ms; 0: do not wait; default: no maximum. */
  waitMs?: number;
  /** The intent contains the digest of the payload and the members named in `shown`, instead of the payload. */
  digestInput?: boolean;
  shown?: readonly string[];
  /** The result event contains the output in addition to its digest. */
  recordOutput?: boolean;
  /** An interrupted act may run again. */
  idempotent?: boolean;
  /** The permit has what a tool needs to sign a receipt without a grant. guardFetch sends it. */
  receipt?: boolean;
  /** Called with an approval that the act waits for. Without it, the address of its page is written to the console. */
  onAsk?: (approval: Approval) => void;
  /**
   * Returns the caller's span in the form of W3C Trace Context; called at each act. Both events have it as a signed
   * member, and one that is malformed is left out.
   */
  traceparent?: () => string | undefined;
  /**
   * Returns for whom the agent acts; called at each act. Both events have it as a signed member. A key must not be used
   * again for another subject.
   */
  onBehalfOf?: () => OnBehalfOf | undefined;
  /** Called with errors after an act, which change no outcome. Its own errors become warnings. */
  onTrouble?: (why: unknown) => void;
  signal?: AbortSignal;
}

/** For whom an agent acts, as the claims `iss`, `sub` and `act` of a token. The last actor is the current one. */
export interface OnBehalfOf {
  issuer: string;
  subject: string;
  actors?: { issuer?: string; subject: string }[];
}

/** An act of a tool. */
export interface Act extends GuardOptions {
  tool: string;
  payload?: object;
  /** Identifies the act, which runs once per key. Default: a new act each time. */
  key?: string;
  trace?: string;
  /** Returns the part of the output that is digested and stored for repetitions. */
  describe?: (output: any) => unknown;
}

/** The journal of guarded acts. MemoryJournal and FileJournal have this interface. */
export interface Journal {
  load(key: string): Promise<any>;
  store(act: { key: string; [member: string]: any }): Promise<void>;
  remove(key: string): Promise<void>;
  keys(): Promise<string[]>;
}
/** A journal in memory. */
export class MemoryJournal implements Journal {
  load(key: string): Promise<any>;
  store(act: { key: string; [member: string]: any }): Promise<void>;
  remove(key: string): Promise<void>;
  keys(): Promise<string[]>;
}

/** Options of Client.guard. Functions are called with the caller's arguments. */
export interface WrapOptions<A extends unknown[]> extends GuardOptions {
  /** Returns the payload; default: the first argument, or {}. */
  payload?: (...args: A) => object | Promise<object>;
  key?: string | ((...args: A) => string | undefined);
  trace?: string | ((...args: A) => string | undefined);
  describe?: (output: any) => unknown;
}

/** Options of Client.guardFetch. */
export interface FetchOptions extends GuardOptions {
  /** Returns the act of a request; default describeRequest. */
  describe?: (request: Request, body: Uint8Array) => Act | Promise<Act>;
  fetch?: typeof globalThis.fetch;
}
/** Tool http.<method>; payload with method, host, path, query and body_sha256; key from Idempotency-Key. */
export function describeRequest(request: Request, body: Uint8Array): Act;
/** The header in which a server receives the grant of an approved request. */
export const grantHeader: "Agentledger-Grant";
/** The header with the payload that the grant or the intent is for, in base64. */
export const callHeader: "Agentledger-Call";
/** The header with organization, agent and event of an intent, by which a request without a grant asks for a receipt. */
export const intentHeader: "Agentledger-Intent";

/** The guard of a client. */
export interface Guard {
  /** Runs `fn` once. Rejects with Denied, ApprovalRequired, ApprovalDenied, NotDecided, Interrupted, FailedBefore or KeyReused, or with the error of `fn`. */
  run<R>(act: Act, fn: (permit: Permit) => R | Promise<R>): Promise<{ output: R; permit?: Permit; repeated: boolean }>;
  /**
   * After a restart: queues results that the service may not have, and states `unknown` for interrupted acts; resolves
   * to their keys.
   */
  resume(options?: { idempotent?: (key: string) => boolean }): Promise<string[]>;
}

/**
 * A client of one service for one agent. It does no network I/O at import, and nothing in the background except
 * sending.
 */
export class Client {
  constructor(options: ClientOptions);
  readonly approvals: Approvals;
  readonly runs: Runs;
  readonly guards: Guard;
  /**
   * The number of events that the service has neither stored nor refused yet. If it is not 0 when the process ends, a
   * line on standard error states it.
   */
  readonly pending: number;
  /**
   * Completes and signs an event. A text is the JSON of an event, whose numbers follow the rule for texts, so 1e21 is
   * accepted.
   */
  sign(event: Event | string): Promise<SignedEvent>;
  /**
   * Resolves when the service has stored the event, after the events of its trace that were given before. Rejects with
   * Refused, Unreachable, Overflow or InvalidValue. An event that a queue in memory could not deliver is not in it any
   * longer then.
   */
  send(event: Event | string | SignedEvent): Promise<Stored>;
  /**
   * Resolves when the event is in the queue. `stored` settles as `send` does. If it rejects and the service has not
   * refused the event (`why.final`), the event stays in the queue and is sent again.
   */
  enqueue(event: Event | string | SignedEvent): Promise<{ eventId: string; traceId: string; stored: Promise<Stored> }>;
  /** Sends events, those of one trace in order. Resolves to a result or an error for each. */
  sendAll(events: readonly (Event | string | SignedEvent)[]): Promise<(Stored | { error: Error })[]>;
  /** Asks the policy. Nothing is executed, stored or counted. */
  evaluate(question: {
    tool: string;
    payload?: object;
    actorType?: string;
    actionKind?: string;
    /** For whom the agent would act. The client's `subjectToken` proves it. */
    onBehalfOf?: OnBehalfOf;
    signal?: AbortSignal;
  }): Promise<PolicyDecision>;
  /** Returns a function that runs `fn` as a guarded act of the tool. */
  guard<A extends unknown[], R>(tool: string, fn: (this: Permit, ...args: A) => R, options?: WrapOptions<A>): (...args: A) => Promise<Awaited<R>>;
  /** Runs `fn` as a guarded act: see Guard.run. */
  run<R>(act: Act, fn: (permit: Permit) => R | Promise<R>): Promise<{ output: R; permit?: Permit; repeated: boolean }>;
  /** Returns a fetch whose requests are guarded acts. */
  guardFetch(options?: FetchOptions): typeof globalThis.fetch;
  /** Returns a reader of a public log under a pinned key or a policy. */
  log(slug: string, trust: import("./verify.js").Trust): Log;
  /**
   * Resolves when nothing is pending and the journal of acts has recorded that; rejects with Unreachable after the
   * deadline in ms (default 30,000).
   */
  flush(deadlineMs?: number): Promise<void>;
  /** Like flush, and then accepts no more events. */
  close(deadlineMs?: number): Promise<void>;
  /** close, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A checkpoint whose signature was checked. */
export interface Checkpoint {
  readonly origin: string;
  /** Number of entries. */
  readonly size: bigint;
  readonly root: Uint8Array;
  /** The signed note. */
  readonly note: string;
}

/** A log key that the log stated under an earlier known key. */
export interface AcceptedKey {
  readonly vkey: string;
  /** The vkey of the key that signed the statement. It signs only trees smaller than `from_size`. */
  readonly by: string;
  readonly from_size: number;
}

/** What a reader of a log remembers between two visits. It is plain JSON: store it where nobody else can write. */
export interface LogMemory {
  /** The signed note of the largest checked tree. */
  readonly checkpoint?: string;
  readonly accepted_keys?: readonly AcceptedKey[];
}

/** A reader of one public log. Everything that a method resolves to was checked under the reader's key. */
export interface Log {
  /**
   * Resolves to the head and the new memory if the head extends the tree of `memory`; without a memory it is a first
   * visit. If an unknown key signed the head, it is accepted if an entry of the log states it under a known key, in a
   * tree of the same history. `newKeys` contains a sentence for each. The other methods accept these keys from then on,
   * and the previous keys only for smaller trees. After a rejection keep the old memory.
   */
  follow(memory?: LogMemory): Promise<{ memory: LogMemory; checkpoint: Checkpoint; newKeys: readonly string[] }>;
  checkpoint(): Promise<Checkpoint>;
  head(): Promise<{ head: JsonObject; checkpoint: Checkpoint }>;
  /** Rejects unless the leaf (hex) is at the index (from 0) of the checkpoint's tree. */
  inclusion(index: number, leaf: string, at: Checkpoint): Promise<JsonObject>;
  /** Rejects unless the tree of `to` extends the tree of `from`. */
  consistency(from: Checkpoint, to: Checkpoint): Promise<JsonObject>;
  bundle(eventId: string, options?: import("./verify.js").BundleOptions): Promise<import("./verify.js").Verification & { text: string }>;
}
