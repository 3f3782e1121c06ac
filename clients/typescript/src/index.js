// The public names of this package. index.d.ts documents them.

export { Client } from "./client/client.js";
export { Signer } from "./client/signer.js";
export { Log } from "./client/log.js";
export { MemoryQueue } from "./client/queue.js";
export { MemoryJournal } from "./guard/journal.js";
export { callHeader, describeRequest, grantHeader, intentHeader } from "./guard/fetch.js";
export { canonicalize, canonicalizeText, OMIT } from "./canonical/write.js";
export { ExactNumber, parseExact } from "./canonical/exact.js";
export { parse } from "./canonical/parse.js";
export {
  ApprovalDenied,
  ApprovalRequired,
  Denied,
  FailedBefore,
  Interrupted,
  InvalidValue,
  KeyReused,
  LedgerError,
  Malformed,
  Mismatch,
  NotDecided,
  Overflow,
  Refused,
  Unproved,
  Unreachable,
  WrongAnswer,
} from "./errors.js";

import { verifyBundle, verifyConsistency, verifyHead, verifyTlogProof } from "./verify/index.js";
import { verifyPack } from "./verify/pack.js";

/** Offline verification: each function resolves to an outcome, in the words of `aps verify`. */
export const verify = Object.freeze({
  bundle: verifyBundle,
  head: verifyHead,
  consistency: verifyConsistency,
  tlogProof: verifyTlogProof,
  pack: verifyPack,
});
