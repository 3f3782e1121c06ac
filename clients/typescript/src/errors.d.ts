// The errors of this package. Messages contain no token, no key and no value of a payload.

/** The base of all errors of this package. */
export class LedgerError extends Error {}
/** A value that cannot be written as canonical JSON. `path` is a JSON Pointer to it. */
export class InvalidValue extends LedgerError {
  readonly path: string;
  readonly reason: string;
}
/** A document or an argument that violates its format. */
export class Malformed extends LedgerError {}
/** Two parts of a document that contradict each other. */
export class Mismatch extends LedgerError {}
/** A signature or a proof that does not verify. */
export class Unproved extends LedgerError {}
/** The policy denies the act. */
export class Denied extends LedgerError {
  readonly reason: string;
  readonly ruleId?: string;
  readonly policyId?: string;
  readonly eventId: string;
}
/** The act needs approval, which was not waited for. */
export class ApprovalRequired extends LedgerError {
  readonly reason: string;
  readonly eventId: string;
  readonly approvalId?: string;
}
/** The act was not approved. */
export class ApprovalDenied extends LedgerError {
  readonly approvalId: string;
  readonly status: string;
  readonly comment: string | null;
  readonly code: string | null;
}
/**
 * No decision was obtained, so the act was not done. The same call can safely be repeated. The message contains advice.
 */
export class NotDecided extends LedgerError {}
/** The act began before, and its end is unknown. It is not repeated. */
export class Interrupted extends LedgerError {
  readonly key: string;
}
/** An act with this key ran before and failed. It is not repeated. */
export class FailedBefore extends LedgerError {
  readonly key: string;
}
/** A key that was used for another act. */
export class KeyReused extends LedgerError {
  readonly key: string;
}
/** The service refused the request. `retryAfter` is in seconds, 0 if absent. */
export class Refused extends LedgerError {
  readonly status: number;
  readonly code: string;
  readonly requestId: string;
  readonly retryAfter: number;
  /** Whether the answer is provably the service's, not that of a proxy. */
  readonly proved: boolean;
  /** Whether the service will never accept the event that it refused. Otherwise the event was not delivered. */
  readonly final: boolean;
}
/** The queue is full. The event was not accepted. */
export class Overflow extends LedgerError {
  readonly limit: number;
}
/** No usable answer. Sending the same signed event again is safe. */
export class Unreachable extends LedgerError {}
/** An answer that does not match the request. */
export class WrongAnswer extends Unreachable {}
