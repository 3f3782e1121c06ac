// Public types. Members with underscores are the wire names of the HTTP API; all others are this package's.

export * from "./errors.js";
export * from "./verify.js";

/** A value that canonical JSON can carry. Integers are at most 2^53 - 1 in size; numbers are finite. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
/** A JSON object. */
export type JsonObject = { readonly [name: string]: Json };
/** The decision of a policy. */
export type Decision = "allow" | "deny" | "allow_with_obligation";

/** Stands for a refused value, or refuses it: undefined. OMIT leaves out an object's member. `path` is a JSON Pointer. */
export type Convert = (value: unknown, path: string) => unknown;
/** A converter returns this to leave out an object's member. */
export const OMIT: unique symbol;

/**
 * Returns the canonical JSON (RFC 8785) of a value. Throws InvalidValue with the path of the first refused value:
 * integers beyond 2^53 - 1, NaN, infinities, lone surrogates, undefined, functions, bigints, Date, Map, Set, bytes,
 * other instances of classes, cycles, more than 64 levels. `convert` is asked about each of them first.
 */
export function canonicalize(value: unknown, options?: { convert?: Convert }): string;
/** Returns the canonical JSON of a JSON text (UTF-8 bytes or a string). Throws InvalidValue. */
export function canonicalizeText(source: string | Uint8Array): string;
/** Parses one JSON value strictly: no member twice, no lone surrogate, no number that would change. Throws InvalidValue. */
export function parse(source: string | Uint8Array): Json;

/** An event before it is signed, by wire names. `action_kind` alone is required; other members are signed as they are. */
export interface Event {
  action_kind: string;
  event_id?: string;
  trace_id?: string;
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

/** A signed event. `text` is the canonical envelope, the bytes that are sent however often. */
export interface SignedEvent {
  readonly eventId: string;
  readonly traceId: string;
  readonly text: string;
}

/** The service's answer for a stored event. Only `created` has a number. */
export interface Stored {
  readonly eventId: string;
  readonly status: "created" | "replayed";
  readonly sequenceNum?: number;
  readonly eventHash?: string;
  readonly chainValid?: boolean;
  /** The effective decision, when the service tightened the declared one, or for a replayed intent. */
  readonly decision?: Decision;
  readonly policyId?: string;
  readonly ruleId?: string;
  readonly reason?: string;
}

/** The decision of the active policy. `policyId` is `none` when no policy is active. */
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
  /** `key` is the 32-byte seed, or base64 of it. Throws LedgerError without the key in it. */
  constructor(who: { organization: string; agent: string; keyId: string }, key: string | Uint8Array);
  readonly organization: string;
  readonly agent: string;
  readonly keyId: string;
  /** Rejects with InvalidValue (a path) or Malformed (a member's name). */
  sign(event: Event | string, options?: { convert?: Convert }): Promise<SignedEvent>;
}

/** Where events wait. MemoryQueue and FileQueue have this shape. */
export interface Queue {
  /** The number of events. */
  readonly size: number;
  /** Whether events outlive the process. They are then tried again without end. */
  readonly durable: boolean;
  /** Resolves to the event's number when it is kept. Rejects with Overflow. */
  add(event: SignedEvent): Promise<number>;
  remove(numbers: readonly number[]): Promise<void>;
  load(): Promise<readonly (readonly [number, SignedEvent])[]>;
  close(): Promise<void>;
}

/** A bounded queue in memory. `limit` is a number of events; default 10,000. */
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

/** When requests are tried again. */
export interface Retry {
  /** Number of tries; default 8. */
  attempts?: number;
  /** First back-off in ms, doubled by each further try; default 200. */
  baseMs?: number;
  /** Longest back-off in ms; default 10,000. Retry-After may be longer. */
  maxMs?: number;
  /** Waits; rejects when the signal aborts. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** What a client needs. `url` alone is enough for the public log. */
export interface ClientOptions {
  url: string;
  /** The ingest key. */
  token?: string;
  /** The organization's UUID. */
  org?: string;
  agent?: string;
  keyId?: string;
  /** The agent's private key: the 32-byte seed, or base64 of it. */
  key?: string | Uint8Array;
  queue?: Queue;
  /** Told of events that the service refused for good, also when nobody waits for them. Its own errors become warnings. */
  onRefused?: (event: SignedEvent, why: Error) => void;
  /** Converts values of payloads that JSON does not have. */
  convert?: Convert;
  retry?: Retry;
  /** Bound of one try in ms; default 30,000. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
  guard?: GuardOptions;
}

/** The state of an approval of people. */
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

/** Approvals of people. */
export interface Approvals {
  ask(question: { tool: string; payload?: object; trace?: string; principal?: string; signal?: AbortSignal }): Promise<Approval>;
  get(approvalId: string, options?: { waitSeconds?: number; signal?: AbortSignal }): Promise<Approval>;
  /** Resolves when it is no longer pending; rejects with Unreachable when the deadline (ms) is over. */
  wait(approvalId: string, options?: { deadlineMs?: number; signal?: AbortSignal }): Promise<Approval>;
  /** Resolves to the grant, a signed note. */
  consume(approval: Approval, options?: { signal?: AbortSignal }): Promise<string>;
  cancel(approvalId: string, options?: { signal?: AbortSignal }): Promise<void>;
}

/** Runs of a tool that holds no key. Bodies and answers are those of the HTTP API (docs/workflows.md). */
export interface Runs {
  start(run: { workflow: { name: string; version?: string; tool?: string }; external_run_id?: string; [member: string]: unknown }): Promise<RunStarted>;
  step(runId: string, ...steps: RunStep[]): Promise<RunStepAnswer[]>;
  /** Whether the tool may do the step. */
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

/** The permission of an act. `grant` is a signed note when people approved it. */
export interface Permit {
  readonly eventId: string;
  readonly callId: string;
  readonly decision: Decision;
  readonly grant?: string;
}

/** How acts are guarded. Options of an act win over those of the client. */
export interface GuardOptions {
  /** Default: in memory, which is lost with the process. */
  journal?: Journal;
  /** The person or system that the agent acts for. */
  principal?: string;
  /** Default `tool_call`. */
  actionKind?: string;
  /** Whether the intent asks for people's approval (key scope `approvals`); default true. */
  approval?: boolean;
  /** How long to wait for people in ms; 0: not at all; default: as long as it takes. */
  waitMs?: number;
  /** The intent has the digest of the payload and the members named in `shown`, and not the payload. */
  digestInput?: boolean;
  shown?: readonly string[];
  /** The result event has the output beside its digest. */
  recordOutput?: boolean;
  /** An act that was cut off may run again. */
  idempotent?: boolean;
  /** Told of an approval that is waited for. */
  onAsk?: (approval: Approval) => void;
  /** Told of errors after an act, which change no outcome. Its own errors become warnings. */
  onTrouble?: (why: unknown) => void;
  signal?: AbortSignal;
}

/** An act of a tool. */
export interface Act extends GuardOptions {
  tool: string;
  payload?: object;
  /** Names the act: it runs once for a key. Default: a new act each time. */
  key?: string;
  trace?: string;
  /** Returns what of the output is digested and kept for repetitions. */
  describe?: (output: any) => unknown;
}

/** The journal of guarded acts. MemoryJournal and FileJournal have this shape. */
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

/** Options of Client.guard: functions are asked with the caller's arguments. */
export interface WrapOptions<A extends unknown[]> extends GuardOptions {
  /** Makes the payload; default: the first argument, or {}. */
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

/** The guard of a client. */
export interface Guard {
  /** Runs `fn` once. Rejects with Denied, ApprovalRequired, ApprovalDenied, NotDecided, Interrupted, FailedBefore or KeyReused, or with the error of `fn`. */
  run<R>(act: Act, fn: (permit: Permit) => R | Promise<R>): Promise<{ output: R; permit?: Permit; repeated: boolean }>;
  /** After a restart: tells results that the service may not have, and `unknown` for acts that were cut off; resolves to their keys. */
  resume(options?: { idempotent?: (key: string) => boolean }): Promise<string[]>;
}

/** A client of one service for one agent. It does no network at import, and nothing in the background but sending. */
export class Client {
  constructor(options: ClientOptions);
  readonly approvals: Approvals;
  readonly runs: Runs;
  readonly guards: Guard;
  /** The number of events that the service does not have yet. */
  readonly pending: number;
  /** Completes and signs an event. A text is JSON of an event: its numbers keep the rule for texts, so 1e21 is taken. */
  sign(event: Event | string): Promise<SignedEvent>;
  /** Resolves when the service has stored the event, behind those of its trace that were given before. Rejects with Refused, Unreachable, Overflow or InvalidValue. */
  send(event: Event | string | SignedEvent): Promise<Stored>;
  /** Resolves when the queue keeps the event. `stored` settles as `send` does. */
  enqueue(event: Event | string | SignedEvent): Promise<{ eventId: string; traceId: string; stored: Promise<Stored> }>;
  /** Sends events, those of one trace in their order. Resolves to a result or an error for each. */
  sendAll(events: readonly (Event | string | SignedEvent)[]): Promise<(Stored | { error: Error })[]>;
  /** Asks the policy. Nothing is run, stored or counted. */
  evaluate(question: { tool: string; payload?: object; actorType?: string; actionKind?: string; signal?: AbortSignal }): Promise<PolicyDecision>;
  /** Returns a function that runs `fn` as a guarded act of the tool. */
  guard<A extends unknown[], R>(tool: string, fn: (this: Permit, ...args: A) => R, options?: WrapOptions<A>): (...args: A) => Promise<Awaited<R>>;
  /** Runs `fn` as a guarded act: see Guard.run. */
  run<R>(act: Act, fn: (permit: Permit) => R | Promise<R>): Promise<{ output: R; permit?: Permit; repeated: boolean }>;
  /** Returns a fetch whose requests are guarded acts. */
  guardFetch(options?: FetchOptions): typeof globalThis.fetch;
  /** Returns a reader of a public log under a pinned key or a policy. */
  log(slug: string, trust: import("./verify.js").Trust): Log;
  /** Resolves when nothing waits and the journal of acts knows it; rejects with Unreachable after the deadline in ms (default 30,000). */
  flush(deadlineMs?: number): Promise<void>;
  /** flush, and takes no more events. */
  close(deadlineMs?: number): Promise<void>;
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

/** A log key that the log stated under a key that was known before. */
export interface AcceptedKey {
  readonly vkey: string;
  /** The vkey of the key that signed the statement. It signs trees below `from_size` only. */
  readonly by: string;
  readonly from_size: number;
}

/** What a reader of a log remembers between two visits. It is plain JSON: store it where nobody else can write. */
export interface LogMemory {
  /** The signed note of the largest tree that was checked. */
  readonly checkpoint?: string;
  readonly accepted_keys?: readonly AcceptedKey[];
}

/** A reader of one public log. What a method resolves to was checked under the reader's key. */
export interface Log {
  /**
   * Resolves to the head and the new memory if the head extends the tree of `memory`; without one it is a first visit.
   * If a key that is not known signed the head, it is accepted if an entry of the log states it under a known key, in a
   * tree of the same history. `newKeys` has a sentence for each. The other methods accept these keys from then on, and
   * the key before each for smaller trees only. After a rejection keep the old memory.
   */
  follow(memory?: LogMemory): Promise<{ memory: LogMemory; checkpoint: Checkpoint; newKeys: readonly string[] }>;
  checkpoint(): Promise<Checkpoint>;
  head(): Promise<{ head: JsonObject; checkpoint: Checkpoint }>;
  /** Rejects unless the leaf (hex) is at the index (from 0) of the checkpoint's tree. */
  inclusion(index: number, leaf: string, at: Checkpoint): Promise<JsonObject>;
  /** Rejects unless the tree of `to` extends that of `from`. */
  consistency(from: Checkpoint, to: Checkpoint): Promise<JsonObject>;
  bundle(eventId: string, options?: import("./verify.js").BundleOptions): Promise<import("./verify.js").Verification & { text: string }>;
}
