// Types of the parts that need Node's file system.

import { Client, ClientOptions, Journal, Queue, Refused, SignedEvent } from "./index.js";

/**
 * A durable queue in a folder, synced before add resolves. Only one process at a time can use it. Events that the
 * service has refused are in refused.ndjson in the folder, with the reason.
 */
export class FileQueue implements Queue {
  /** `limit` is the maximum number of events; default 10,000. */
  static open(folder: string, options?: { limit?: number }): Promise<FileQueue>;
  readonly folder: string;
  readonly limit: number;
  readonly size: number;
  readonly durable: boolean;
  add(event: SignedEvent): Promise<number>;
  remove(numbers: readonly number[]): Promise<void>;
  refuse(refused: readonly (readonly [SignedEvent, Refused])[]): Promise<void>;
  load(): Promise<readonly (readonly [number, SignedEvent])[]>;
  close(): Promise<void>;
}

/** A durable journal in a folder of mode 0700. Ended acts are forgotten after `keepDays` (default 7). */
export class FileJournal implements Journal {
  static open(folder: string, options?: { keepDays?: number }): Promise<FileJournal>;
  load(key: string): Promise<any>;
  store(act: { key: string; [member: string]: any }): Promise<void>;
  remove(key: string): Promise<void>;
  keys(): Promise<string[]>;
  close(): Promise<void>;
}

/**
 * Resolves to the files in the folder of an unpacked evidence pack, for `verify.pack`. Follows no symbolic link.
 * Rejects with a LedgerError for a link, a special file and too many files.
 */
export function folderFiles(folder: string): Promise<[string, Blob][]>;

/**
 * Reads a private key file: base64 of the 32-byte seed. Throws a LedgerError that does not contain the file's content.
 */
export function readKeyFile(path: string): Uint8Array;
/**
 * Creates a client from APS_URL, APS_TOKEN, APS_ORG, APS_AGENT, APS_KEY_ID, APS_KEY_FILE or APS_KEY. Arguments take precedence.
 */
export function clientFromEnvironment(options?: Partial<ClientOptions>, env?: Record<string, string | undefined>): Client;
