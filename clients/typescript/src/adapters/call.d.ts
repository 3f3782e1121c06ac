import type { GuardOptions } from "../index.js";

/** Options of all adapters, in addition to those of a guarded act. */
export interface AdapterOptions extends Omit<GuardOptions, "signal"> {
  /** Prefix of the tool's name in the log, such as `support.`; default: none. */
  prefix?: string;
  /**
   * Names the conversation in the keys of acts: a call that was made before is then not made again, even after a
   * restart with a durable journal. Default: a random name, because call IDs repeat between conversations.
   */
  conversation?: string;
  /**
   * `tell` (the default) answers the model with the reason of a denial and the approvers' comment. `throw` rejects with
   * Denied or ApprovalDenied. All other failures reject in both cases, and the call is not made.
   */
  denied?: "tell" | "throw";
}
