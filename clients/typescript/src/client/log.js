// Reads an organization's public log. Everything that a method returns was checked under the reader's key.

import { hex, unhex } from "../bytes.js";
import { parse } from "../canonical/parse.js";
import { LedgerError, Mismatch } from "../errors.js";
import { parseNote, readCheckpoint } from "../log/note.js";
import { checkInclusion, parseHashes } from "../log/tree.js";
import { checkConsistencyAnswer, checkHead, verifyBundle } from "../verify/index.js";
import { checkForm, is, listOf } from "../verify/forms.js";
import { describeAccepted, findKeyStatements } from "../verify/keystatement.js";
import { Trust } from "../verify/trust.js";

const inclusionForms = { log_index: is.natural, tree_size: is.natural, leaf_hash: is.hash, root_hash: is.hash, hashes: listOf(is.hash) };

/** Opens a note with a known key that signs trees of its size. */
function openKnown(trust, text) {
  const note = parseNote(text);
  return trust.open(note, readCheckpoint(note).size);
}

/** A reader of one log. */
export class Log {
  #transport;

  constructor(transport, slug, trust) {
    this.#transport = transport;
    this.slug = slug;
    this.given = trust;
    this.trust = new Trust(trust);
    if (this.trust.keys.length === 0) throw new LedgerError("no pinned key: give key or policy");
  }

  async #get(rest) {
    const path = `/v1/public/orgs/${encodeURIComponent(this.slug)}/${rest}`;
    return (await this.#transport.call({ path })).text;
  }

  /** Resolves to the latest checkpoint: origin, size (bigint), root (bytes), note. */
  async checkpoint() {
    const text = await this.#get("transparency/checkpoint");
    const note = parseNote(text);
    return { ...(await this.trust.open(note, readCheckpoint(note).size)), note: text };
  }

  /** Resolves to the head with its checkpoint. */
  async head() {
    const head = parse(await this.#get("transparency/head"));
    const note = parseNote(head.checkpoint);
    const opened = await this.trust.open(note, readCheckpoint(note).size);
    const key = this.trust.known.find((k) => k.name === opened.origin && note.lines.some((l) => k.owns(l)));
    return { head, checkpoint: await checkHead(head, key) };
  }

  /** Resolves when the leaf (hex) is proved to be at the index of the checkpoint's tree. */
  async inclusion(index, leaf, at) {
    const answer = parse(await this.#get(`transparency/inclusion?log_index=${index}&tree_size=${at.size}`));
    checkForm(answer, inclusionForms, { closed: false });
    if (answer.leaf_hash !== leaf) throw new Mismatch("leaf_hash and the entry");
    const same = BigInt(answer.log_index) === BigInt(index) && BigInt(answer.tree_size) === at.size;
    if (!same || answer.root_hash !== hex(at.root)) throw new Mismatch("tree_size, root_hash and checkpoint");
    checkInclusion(BigInt(index), at.size, unhex(leaf, 32), at.root, parseHashes(answer.hashes));
    return answer;
  }

  /** Resolves when the newer checkpoint is proved to extend the older one. */
  async consistency(from, to) {
    const answer = parse(await this.#get(`transparency/consistency?from=${from.size}&to=${to.size}`));
    checkConsistencyAnswer(answer, from, to);
    return answer;
  }

  /**
   * Fetches the head and resolves when it is proved to extend the tree of `memory`, to {memory, checkpoint, newKeys}.
   * It follows the log to another key if the log states that key under a known one: see index.d.ts.
   */
  async follow(memory = {}) {
    const { checkpoint: remembered, accepted_keys: accepted = [] } = memory;
    let given = { ...this.given, accepted };
    let trust = new Trust(given);
    const trees = [];
    if (remembered !== undefined) trees.push(await openKnown(trust, remembered));
    const head = parse(await this.#get("transparency/head"));
    const note = parseNote(head.checkpoint);
    const { origin } = readCheckpoint(note);
    const { found, errors } = await findKeyStatements(note, trust.keysOf(origin), (id) => this.#get(`transparency/keys/${id}`));
    const newKeys = found.map(({ vkey, by, from_size }) => ({ vkey, by, from_size }));
    given = { ...given, accepted: [...accepted, ...newKeys] };
    trust = new Trust(given);
    for (const statement of found) trees.push({ ...readCheckpoint(parseNote(statement.checkpoint)) });
    let opened;
    try {
      opened = await openKnown(trust, head.checkpoint);
      await checkHead(head, trust.known.find((k) => k.name === opened.origin && note.lines.some((l) => k.owns(l))));
    } catch (why) {
      if (why instanceof LedgerError && errors.length > 0) why.message += ` (${errors.map((e) => e.message).join("; ")})`;
      throw why;
    }
    await this.#checkOneHistory([...trees, opened]);
    [this.given, this.trust] = [given, trust];
    return {
      memory: { checkpoint: head.checkpoint, accepted_keys: given.accepted },
      checkpoint: { ...opened, note: head.checkpoint },
      newKeys: newKeys.map(describeAccepted),
    };
  }

  /** Resolves when each tree is proved to extend all smaller ones, and the last one is the largest. */
  async #checkOneHistory(trees) {
    const newest = trees.at(-1);
    const sorted = [...trees].sort((a, b) => (a.size < b.size ? -1 : Number(a.size > b.size)));
    const largest = sorted.at(-1).size;
    if (largest > newest.size) {
      throw new Mismatch(`rollback: the head has size ${newest.size}, and the log's key signed a tree of size ${largest}`);
    }
    for (const [i, to] of sorted.slice(1).entries()) {
      const from = sorted[i];
      if (from.origin !== to.origin) throw new Mismatch("origins of the checkpoints");
      if (from.size === to.size) {
        if (hex(from.root) !== hex(to.root)) throw new Mismatch(`fork: two trees of size ${to.size} have different roots`);
      } else if (from.size > 0n) await this.consistency(from, to);
    }
  }

  /** Resolves to the bundle of an event as text, and its verification. */
  async bundle(eventId, options = {}) {
    const text = await this.#get(`verify/${encodeURIComponent(eventId)}`);
    return { text, ...(await verifyBundle(text, { ...this.given, ...options, event: eventId })) };
  }
}
