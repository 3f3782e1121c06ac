// The errors of this package. Messages contain no token, no key and no value of a payload.

/** The base of all errors of this package. */
export class LedgerError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A value that cannot be written as canonical JSON. `path` is a JSON Pointer to it, "" for the whole value. */
export class InvalidValue extends LedgerError {
  constructor(path, reason) {
    super((path === "" ? "the value" : "the value at " + path) + " " + reason);
    this.path = path;
    this.reason = reason;
  }
}

/** A document that violates its format. */
export class Malformed extends LedgerError {
  constructor(what) {
    super(what.endsWith("malformed") ? what : what + ": malformed");
  }
}

/** Two parts of a document that contradict each other. */
export class Mismatch extends LedgerError {
  constructor(what) {
    super(what + ": mismatch");
  }
}

/** A bundle of a version that this package does not support. */
export class UnknownVersion extends LedgerError {
  constructor() {
    super("unknown version");
  }
}

/** A container whose files cannot be read, so nothing is known about the evidence pack in it. */
export class Unreadable extends LedgerError {
  constructor(what) {
    super("the files of the pack can't be read: " + what);
  }
}

/** A signature or a proof that does not verify. `signature` distinguishes the two. */
export class Unproved extends LedgerError {
  constructor(what, signature = false) {
    super(what);
    this.signature = signature;
  }
}

/** The policy denies the act. The act MUST NOT be done. */
export class Denied extends LedgerError {
  constructor({ reason, ruleId, policyId, eventId }) {
    super("denied" + (reason ? ": " + printable(reason) : ""));
    Object.assign(this, { reason: reason ?? "", ruleId, policyId, eventId });
  }
}

/** The act needs approval, and the answer contains no approval to wait for. */
export class ApprovalRequired extends LedgerError {
  constructor({ eventId, approvalId, reason }) {
    super("approval is required" + (reason ? ": " + printable(reason) : ""));
    Object.assign(this, { eventId, approvalId, reason: reason ?? "" });
  }
}

/** The act was not approved. `status` is the state of the approval. */
export class ApprovalDenied extends LedgerError {
  constructor({ approvalId, status, comment, code }) {
    super(`the approval is ${printable(status)}` + (code ? ` [${printable(code)}]` : ""));
    Object.assign(this, { approvalId, status, comment: comment ?? null, code: code ?? null });
  }
}

/**
 * No decision was obtained, so the act was not done. The same call can safely be repeated. `cause` is the reason,
 * `advice` what to do.
 */
export class NotDecided extends LedgerError {
  constructor(why, { advice = "", ...options } = {}) {
    const sentences = [`not decided: ${why}`, "The act was not done: the same call is safe to repeat", advice];
    super(sentences.filter(Boolean).join(". "), options);
  }
}

/** The act began before, and its end is unknown. It is not repeated. */
export class Interrupted extends LedgerError {
  constructor(key) {
    super("the act was begun before, and how it ended is not known");
    this.key = key;
  }
}

/** An act with this key ran before and failed. It is not repeated. */
export class FailedBefore extends LedgerError {
  constructor(key) {
    super("the act ran before and failed");
    this.key = key;
  }
}

/** A key that was used for another act. */
export class KeyReused extends LedgerError {
  constructor(key) {
    super("the key was used for another act");
    this.key = key;
  }
}

/**
 * The service refused the request. `status` is the HTTP status, `code` the service's code or "". `proved` means that the
 * answer is provably the service's, not that of a proxy.
 */
export class Refused extends LedgerError {
  constructor({ status, code, message, requestId, retryAfter, body, proved = false }) {
    super(`refused with status ${status}` + (code ? ` (${printable(code)})` : "") + (message ? ": " + printable(message) : ""));
    this.status = status;
    this.code = code ?? "";
    this.requestId = requestId ?? "";
    this.retryAfter = retryAfter ?? 0;
    this.proved = proved;
    Object.defineProperty(this, "body", { value: body, enumerable: false });
  }

  /** Whether the service will never accept the event that it refused. Otherwise the event was not delivered. */
  get final() {
    const mismatch = this.status === 403 && String(this.body?.error).startsWith("Organization mismatch");
    return this.proved && (this.status === 413 || this.status === 422 || mismatch);
  }
}

/** The queue is full. The event was not accepted, and nothing else was lost. */
export class Overflow extends LedgerError {
  constructor(limit) {
    super(`the queue holds ${limit} events, as many as it may`);
    this.limit = limit;
  }
}

/** No usable answer: no connection, a timeout, or an answer of another form. `cause` is the reason. */
export class Unreachable extends LedgerError {
  constructor(why, options) {
    super("unreachable: " + why, options);
  }
}

/** An answer that does not match the request. It decides nothing. */
export class WrongAnswer extends Unreachable {
  constructor(why) {
    super("wrong answer: " + why);
  }
}

/**
 * Makes a foreign text safe to print: replaces each unprintable character by a question mark and truncates to 512
 * characters.
 */
export function printable(text) {
  return String(text).slice(0, 512).replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "?");
}
