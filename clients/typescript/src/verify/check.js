// The six verdicts on a bundle, and the seventh on a second proof: the rules of docs/spec/bundle.md.

import { hex, unhex } from "../bytes.js";
import { sha256hex } from "../crypto/sha256.js";
import { LedgerError, Malformed, Mismatch, printable } from "../errors.js";
import { checkCosigned, openCheckpoint, parseLogKey, parseNote, readCheckpoint } from "../log/note.js";
import { named } from "../log/policy.js";
import { checkInclusion, leafHash, parseHashes } from "../log/tree.js";
import { parseListing, unknownMembers } from "./bundle.js";
import { checkEnvelopeOf, checkSignatureOf, genesis, parseEntry, parseEnvelope, parseRecord } from "./documents.js";
import { signedSize } from "./knownkeys.js";

/** A verdict that needs a part which is not disclosed. */
const undisclosed = Symbol("undisclosed");

/**
 * Checks a bundle from parseBundle. Options: `key` is the pinned key (if undefined, the bundle's key), `retired` are
 * listed keys, `witnesses` keys of witnesses, `directory` the same options for the second proof. Never throws for a
 * wrong bundle: the report contains the errors.
 */
export async function check(bundle, options) {
  const c = new Checker(bundle, options);
  await c.run();
  return c;
}

class Checker {
  errors = [];
  cosignatures = [];
  vouched = [];

  constructor(bundle, options) {
    this.bundle = bundle;
    this.options = { retired: [], witnesses: [], ...options };
    this.entry = attempt(() => parseEntry(bundle.entry));
    this.note = attempt(() => parseNote(bundle.checkpoint));
    this.tree = attempt(() => readCheckpoint(value(this.note)));
    this.record = part(bundle.record, parseRecord);
    this.envelope = part(bundle.envelope, parseEnvelope);
  }

  async run() {
    await this.#findCosignatures();
    const r = {};
    r.inclusion_ok = await this.#verdict("inclusion", () => this.#inclusion());
    r.checkpoint_ok = await this.#verdict("checkpoint", () => this.#checkpoint());
    r.chain_ok = await this.#verdict("chain", () => this.#chain());
    r.record_ok = await this.#verdict("record", () => this.#record());
    r.signature_ok = await this.#verdict("signature", () => this.#signature());
    r.envelope_ok = await this.#verdict("envelope", () => this.#envelope());
    const second = await this.#verdict("directory", () => this.#directory());
    if (second !== null) r.directory_ok = second;
    r.ok = this.errors.length === 0;
    this.report = r;
    r.log_key_source = this.options.key ? "argument" : "bundle";
    r.unchecked = this.#unchecked();
    r.cosignatures = this.cosignatures;
    if (this.inner) r.directory_cosignatures = this.inner.report.cosignatures;
    r.tree_size = this.tree.value ? Number(this.tree.value.size) : 0;
    r.checked_at = new Date().toISOString();
    r.errors = this.errors;
  }

  async #verdict(step, ask) {
    try {
      await ask();
      return true;
    } catch (why) {
      if (why === undisclosed) return null;
      if (!(why instanceof LedgerError)) throw why;
      this.errors.push(step + ": " + why.message);
      return false;
    }
  }

  async #findCosignatures() {
    if (!this.tree.value) return;
    for (const key of this.options.witnesses) {
      try {
        const time = await checkCosigned(this.note.value, key);
        this.cosignatures.push(named(key.name, time, this.options.now));
        this.vouched.push(key);
      } catch {
        // Lines that do not verify count as absent.
      }
    }
  }

  #inclusion() {
    const b = this.bundle;
    const entry = value(this.entry);
    if (hex(leafHash(b.entry)) !== b.event_hash) throw new Mismatch("entry and event_hash");
    if (entry.seq !== b.sequence_num || entry.seq !== b.log_index + 1) throw new Mismatch("entry, sequence_num and log_index");
    this.#proves(b.inclusion, b.log_index, b.event_hash, this.tree);
  }

  #proves(proof, index, leaf, tree) {
    const { size, root } = value(tree);
    if (proof.log_index !== index) throw new Mismatch("log_index and the proof's");
    if (BigInt(proof.tree_size) !== size || proof.root_hash !== hex(root)) throw new Mismatch("tree_size, root_hash and checkpoint");
    checkInclusion(BigInt(index), size, unhex(leaf, 32), root, parseHashes(proof.hashes));
  }

  async #checkpoint() {
    const b = this.bundle;
    this.key = this.#selectKey();
    await this.#signedBy(this.key);
    const signers = b.log_keys ?? [];
    if (signers.length === 0) return;
    if (!signers.includes(b.log_key)) throw new Mismatch("log_keys without log_key");
    for (const text of signers) await this.#signedBy(parseLogKey(text));
    if (new Set(signers).size !== signers.length) throw new Mismatch("log_keys: a key twice");
  }

  async #signedBy(key) {
    if (key.name !== this.bundle.origin) throw new Mismatch("origin and name of the log key");
    await openCheckpoint(value(this.note), key);
  }

  /** Returns the key that counts. */
  #selectKey() {
    const { key, retired } = this.options;
    const b = this.bundle;
    if (!key) return parseLogKey(b.log_key);
    if (namesKey(b, key)) return key;
    let why = "log_key and the key given";
    for (const k of retired) {
      if (k.key.text !== b.log_key || k.key.name !== key.name) continue;
      if (!this.tree.value || signedSize(k, this.tree.value.size)) return k.key;
      why = "log_key and the size of the tree";
    }
    throw new Mismatch(why);
  }

  #chain() {
    const b = this.bundle;
    const entry = value(this.entry);
    if (b.log_index === 0) return this.#genesis(entry);
    if (b.previous_entry === null || b.previous_inclusion === null) throw new Malformed("no previous entry");
    const previous = value(attempt(() => parseEntry(b.previous_entry)));
    if (hex(leafHash(b.previous_entry)) !== entry.prev) throw new Mismatch("previous_entry and what the entry names");
    if (previous.seq !== entry.seq - 1) throw new Mismatch("sequence numbers of entry and previous_entry");
    this.#proves(b.previous_inclusion, b.log_index - 1, entry.prev, this.tree);
  }

  #genesis(entry) {
    const b = this.bundle;
    if (entry.seq !== 1 || b.previous_entry !== null || b.previous_inclusion !== null) {
      throw new Mismatch("first entry with one before it");
    }
    if (entry.prev !== genesis(b.origin)) throw new Mismatch("first entry and genesis value");
  }

  #record() {
    const b = this.bundle;
    if (!this.record && b.disclosure !== "commitment") throw new Mismatch("missing, though disclosure promises it");
    if (!this.record) throw undisclosed;
    if (!this.record.value) throw new Malformed("not the exact canonical form");
    const r = this.record.value;
    if (sha256hex(b.record) !== value(this.entry).record) throw new Mismatch("record and what the entry commits to");
    const same = r.origin === b.origin && r.sequence_num === b.sequence_num && r.event_id === b.event_id;
    if (!same || r.organization_id !== b.organization_id.toLowerCase()) {
      throw new Mismatch("record and the bundle's origin, organization_id, sequence_num, event_id");
    }
  }

  async #signature() {
    const r = this.record?.value;
    if (!r || (r.sig_form === "canonical" && !this.envelope?.value)) throw undisclosed;
    await checkSignatureOf(r, this.envelope?.value);
  }

  #envelope() {
    const b = this.bundle;
    if (!this.envelope && b.disclosure === "full" && (b.erased_at ?? null) === null) {
      throw new Mismatch("missing, though disclosure promises it");
    }
    if (!this.envelope) throw undisclosed;
    const e = value(this.envelope);
    if (!this.record?.value) throw undisclosed;
    checkEnvelopeOf(this.record.value, e);
  }

  async #directory() {
    const second = this.bundle.directory ?? null;
    if (second === null) throw undisclosed;
    this.inner = await check(second.bundle, this.options.directory ?? { witnesses: this.options.witnesses, now: this.options.now });
    const r = this.inner.report;
    if (!r.ok) throw new Mismatch(`bundle: ${r.errors[0]}`);
    const { record, envelope } = this.inner;
    if (!r.record_ok || !r.signature_ok || !r.envelope_ok || record.value.signer !== "system") {
      throw new Mismatch("bundle: not shown in full, or not the service's own");
    }
    if (envelope.value.members.action_kind !== "ledger_directory") throw new Mismatch("listing: not an event of a directory");
    const listed = parseListing(envelope.value.members.payload).find((c) => c.origin === this.bundle.origin);
    if (!listed) throw new Mismatch("the log is not listed");
    const tree = { value: { size: BigInt(listed.tree_size), root: unhex(listed.root_hash, 32) } };
    this.#proves(second.inclusion, this.bundle.log_index, this.bundle.event_hash, tree);
  }

  /** Lists the members that no verdict covers. */
  #unchecked() {
    const b = this.bundle;
    const { key, retired } = this.options;
    const given = (text) => key !== undefined && (key.text === text || retired.some((k) => k.key.text === text));
    const covered = this.report.record_ok === true;
    const signers = b.log_keys ?? [];
    const names = ["organization_slug", "disclosure"];
    const add = (name, when) => when && names.push(name);
    add("organization_id", !covered);
    add("event_id", !covered);
    add("log_key", !key || (signers.length > 0 && !given(b.log_key)));
    add("log_keys", signers.some((k) => !given(k)));
    for (const line of this.note.value?.lines ?? []) {
      add("checkpoint: " + plainName(line.name), !this.key?.owns(line) && !this.vouched.some((k) => k.owns(line)));
    }
    for (const name of ["public_key", "custody", "received_at", "policy"]) add("record." + name, covered);
    const e = this.envelope?.value;
    add("envelope.sig_value_b64", e && e.members.sig_value_b64 !== this.record?.value?.sig_value_b64);
    add("erased_at", (b.erased_at ?? null) !== null);
    for (const name of this.inner?.report.unchecked ?? []) add("directory.bundle." + name, true);
    add("verification", (b.verification ?? null) !== null);
    add("operator_statement", (b.operator_statement ?? null) !== null);
    for (const name of unknownMembers(b)) add(plainName(name), true);
    return names;
  }
}

/** Reports whether a bundle claims that a key signed its checkpoint. */
export function namesKey(b, key) {
  return b.log_key === key.text || (b.log_keys ?? []).includes(key.text);
}

/** Makes a name safe to print: ASCII, at most 64 characters. */
function plainName(name) {
  const ascii = printable(name).replace(/[^ -~]/gu, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
  return ascii.slice(0, 64);
}

function attempt(read) {
  try {
    return { value: read() };
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return { why };
  }
}

function part(text, read) {
  return text === undefined || text === null ? undefined : attempt(() => read(text));
}

function value(attempted) {
  if (attempted.value === undefined) throw attempted.why;
  return attempted.value;
}
