// Reads an organization's public log. What a method returns was checked under the reader's key.

import { hex, unhex } from "../bytes.js";
import { parse } from "../canonical/parse.js";
import { LedgerError, Mismatch } from "../errors.js";
import { parseNote, readCheckpoint } from "../log/note.js";
import { checkInclusion, parseHashes } from "../log/tree.js";
import { checkConsistencyAnswer, checkHead, verifyBundle } from "../verify/index.js";
import { checkForm, is, listOf } from "../verify/forms.js";
import { Trust } from "../verify/trust.js";

const inclusionForms = { log_index: is.natural, tree_size: is.natural, leaf_hash: is.hash, root_hash: is.hash, hashes: listOf(is.hash) };

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

  /** Resolves to the newest checkpoint: origin, size (bigint), root (bytes), note. */
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

  /** Resolves to the bundle of an event as text, and its verification. */
  async bundle(eventId, options = {}) {
    const text = await this.#get(`verify/${encodeURIComponent(eventId)}`);
    return { text, ...(await verifyBundle(text, { ...this.given, ...options, event: eventId })) };
  }
}
