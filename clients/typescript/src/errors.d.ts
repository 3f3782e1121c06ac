// The errors of this package. Messages hold no token, no key and no value of a payload.

/** The parent of all errors of this package. */
export class LedgerError extends Error {}
/** A value that can't be written as canonical JSON. `path` is a JSON Pointer to it. */
export class InvalidValue extends LedgerError {
  readonly path: string;
  readonly reason: string;
}
/** A document or an argument that breaks the rules of its format. */
export class Malformed extends LedgerError {}
/** Two parts of a document that disagree. */
export class Mismatch extends LedgerError {}
/** A signature or a proof that does not hold. */
export class Unproved extends LedgerError {}
/** The policy denies the act. */
export class Denied extends LedgerError {
  readonly reason: string;
  readonly ruleId?: string;
  readonly policyId?: string;
  readonly eventId: string;
}
/** The act needs people's approval, and it was not waited for. */
export class ApprovalRequired extends LedgerError {
  readonly reason: string;
  readonly eventId: string;
  readonly approvalId?: string;
}
/** People did not approve the act. */
export class ApprovalDenied extends LedgerError {
  readonly approvalId: string;
  readonly status: string;
  readonly comment: string | null;
  readonly code: string | null;
}
/** No decision was obtained, so the act was not done. The same call is safe to repeat. The message says what to do. */
export class NotDecided extends LedgerError {}
/** The act was begun before, and its end is not known. It is not repeated. */
export class Interrupted extends LedgerError {
  readonly key: string;
}
/** An act of this key ran before and failed. It is not repeated. */
export class FailedBefore extends LedgerError {
  readonly key: string;
}
/** A key that was used for another act. */
export class KeyReused extends LedgerError {
  readonly key: string;
}
/** The service answered and refused. `retryAfter` is in seconds, 0 for none. */
export class Refused extends LedgerError {
  readonly status: number;
  readonly code: string;
  readonly requestId: string;
  readonly retryAfter: number;
}
/** The queue is full. The event was not taken. */
export class Overflow extends LedgerError {
  readonly limit: number;
}
/** No usable answer. Sending the same signed event again is safe. */
export class Unreachable extends LedgerError {}
/** An answer that does not fit the request. */
export class WrongAnswer extends Unreachable {}
