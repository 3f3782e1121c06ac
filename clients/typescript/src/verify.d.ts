// Types of the offline verification.

/** What a reader trusts: a pinned verifier key, a C2SP tlog-policy, and a saved answer of transparency/keys. */
export interface Trust {
  key?: string;
  policy?: string | Uint8Array;
  keys?: string | Uint8Array;
  /** The time of the check in milliseconds, for cosignatures from the future; default: the current time. */
  now?: number;
}

/** The verifier keys of tools, whose receipts confirm acts (docs/guides/tool-receipts.md). */
export interface ToolTrust {
  toolKeys?: readonly string[];
}

/** Options for bundles. */
export interface BundleOptions extends Trust, ToolTrust {
  /** With toolKeys: the bundle of the intent, which shows the act that the event is the result of. */
  intent?: string | Uint8Array;
  /** Trust in the service's directory, which must have listed the log. */
  directory?: Trust;
  /** How much must be disclosed; default `commitment`. */
  require?: "commitment" | "record" | "full";
  /** The requested event_id. */
  event?: string;
}

/** The outcome of a check, with the status and the wording of `aps verify`. */
export interface Verification {
  /**
   * `cant_tell` means that nothing is proved wrong, but there is no key, another key, too few cosignatures or too
   * little disclosed.
   */
  readonly outcome: "proved" | "proved_wrong" | "cant_tell";
  /** 0, 1, 2. */
  readonly status: 0 | 1 | 2;
  /** The first check that fails, or "" if everything is proved. */
  readonly reason: string;
  /** The printed report. */
  readonly lines: readonly string[];
  /** The verdicts as printed by `aps verify --json`; undefined if the document cannot be parsed. */
  readonly report?: any;
}

/** Offline verification. The functions throw only for unusable keys, policies and lists. */
export const verify: {
  bundle(source: string | Uint8Array, options?: BundleOptions): Promise<Verification>;
  /** A head: an answer of transparency/head. */
  head(source: string | object, trust?: Trust): Promise<Verification>;
  /** An answer of transparency/consistency between two checkpoints (signed notes). */
  consistency(source: string | object, older: string, newer: string, trust?: Trust): Promise<Verification>;
  /** A C2SP tlog-proof for an entry's exact text. */
  tlogProof(text: string, entry: string, trust?: Trust): Promise<Verification>;
  /**
   * An evidence pack: bytes, or a Blob or File (in Node from `openAsBlob`), which is read in slices, so the memory does
   * not depend on the pack's size. An unpacked pack is the files of its folder: Files (of an input with
   * `webkitdirectory`), or pairs of a path and its content (in Node from `folderFiles`). `manifest` is the digest in
   * the log's event of the export. If a File cannot be read, it throws the platform's error.
   */
  pack(pack: Uint8Array | Blob | Iterable<File> | Iterable<[string, Uint8Array | Blob]>, options?: Trust & ToolTrust & { manifest?: string; require?: "full" }): Promise<Verification>;
};
