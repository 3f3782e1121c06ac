// Signed votes in evidence packs (docs/spec/signed-votes.md): the passkeys registered as voter keys, and the votes that they
// signed.

import { fresh, unhex } from "../bytes.js";
import { PasskeyKey, checkAssertion, keyText, readAssertion, unbase64url, voteText } from "../crypto/passkey.js";
import { sha256hex } from "../crypto/sha256.js";
import { Malformed, Mismatch } from "../errors.js";
import { checkInclusion, leafHash, parseHashes } from "../log/tree.js";
import { parseEntry, parseRecord } from "./documents.js";
import { checkForm, is, isObject, listOf } from "./forms.js";
import { canonicalObject } from "./manifest.js";
import { checkStatement } from "./packlines.js";

const kind = "ledger_voter_key";
const file = "voters.ndjson";
const maxLines = 10_000;
const maxVotes = 1000; // in a report

const provenForms = { entry: is.text, envelope: is.text, proof: listOf(is.hash), record: is.text };

/**
 * Parses a statement of the service with its proof under the checkpoint. Resolves to its record and the envelope's
 * members.
 */
export async function readProven(m, line, action) {
  const x = canonicalObject(line, provenForms);
  const r = parseRecord(x.record);
  const { record, seq } = parseEntry(x.entry);
  if (sha256hex(x.record) !== record || seq !== r.sequence_num) throw new Mismatch("entry and record");
  checkInclusion(BigInt(seq - 1), BigInt(m.tree_size), leafHash(x.entry), unhex(m.root_hash, 32), parseHashes(x.proof));
  return { r, e: await checkStatement(m, r, x.envelope, action) };
}

const nameOf = (account, credential) => sha256hex(account + "\n" + credential);

/** The voter keys of a pack and the votes. */
export class Voters {
  #m;
  #keys = new Map(); // by nameOf: their events, the index of the last use, and of the first registration without a line
  #events = []; // in the order of the lines
  votes = [];
  signed = 0;
  unsigned = 0;

  constructor(m) {
    this.#m = m;
  }

  /** The number of lines. */
  get lines() {
    return this.#events.length;
  }

  /** The log index of the first event. */
  get begin() {
    return this.#events[0]?.at;
  }

  /** Reads voters.ndjson, if the pack contains it. */
  static async read({ m, archive }) {
    const voters = new Voters(m);
    if (!archive.files.has(file)) return voters;
    for await (const line of archive.lines(file, maxLines)) {
      const { r, e } = await readProven(m, line, kind);
      await voters.add(e.payload, r.received_at, r.sequence_num - 1);
    }
    if (voters.lines === 0) throw new Mismatch(file + ": no line");
    return voters;
  }

  /** Checks and adds the event at an index, which must be larger than the previous ones. */
  async add(payload, receivedAt, at) {
    const event = await this.#readEvent(payload, receivedAt, at);
    if (event.at <= (this.#events.at(-1)?.at ?? -1)) throw new Mismatch(file + ": order");
    this.#events.push(event);
    const key = this.#keys.get(event.of);
    if (key) key.events.push(event);
    else this.#keys.set(event.of, { events: [event], usedUntil: 0, unlisted: undefined });
  }

  async #readEvent(payload, receivedAt, at) {
    if (!is.id(payload.account_id)) throw new Malformed(file + ": account_id");
    const size = unbase64url(payload.credential_id).length;
    if (size === 0 || size > 1023) throw new Malformed(file + ": credential_id");
    const of = nameOf(payload.account_id, payload.credential_id);
    if (payload.transition === "retired") {
      checkForm(payload, { transition: is.text, account_id: is.id, credential_id: is.text });
      return { at, of };
    }
    return { at, of, ...(await this.#readRegistration(payload, receivedAt, at)) };
  }

  async #readRegistration(payload, receivedAt, at) {
    checkForm(payload, registrationForms);
    const { account_id: account, credential_id: id, rp_id: rpId, web_origin: webOrigin } = payload;
    if (!isParty(rpId, webOrigin)) throw new Malformed(file + ": rp_id, web_origin");
    const credential = { id, key: new PasskeyKey(payload.public_key), rpId, webOrigin };
    const check = (by, a) => checkAssertion(by, keyText(this.#m.origin, account, id, credential.key, a.time), a, receivedAt);
    await check(credential, readAssertion(payload.possession));
    const voterKey = { thumbprint: credential.key.thumbprint, registered_at: receivedAt, log_index: at, consent: null };
    if (payload.consent === null) return { credential, voterKey };
    const a = readAssertion(payload.consent);
    if (a.credential === id) throw new Malformed(file + ": consent by the same credential");
    const consent = nameOf(account, a.credential);
    const by = this.#registered(consent, at);
    await check(by.credential, a);
    return { credential, consent, voterKey: { ...voterKey, consent: { ...by.voterKey, consent: null } } };
  }

  /** Returns the registration that is in force before an index. */
  #registered(name, before) {
    const events = this.#keys.get(name)?.events ?? [];
    const last = events[firstAt(events, before) - 1];
    if (last === undefined) throw new Mismatch("no registration of the voter key");
    if (last.credential === undefined) throw new Mismatch("voter key was retired");
    return last;
  }

  /** Records a shown event of the service. One about a listed voter key must have a line if a vote needs it. */
  checkListed(e, at) {
    if (e.action_kind !== kind || this.lines === 0) return;
    const { transition, account_id: account, credential_id: credential } = e.payload;
    if (![transition, account, credential].every(is.text)) return;
    const key = this.#keys.get(nameOf(account, credential));
    if (key === undefined || key.events[firstAt(key.events, at)]?.at === at) return;
    if (transition === "retired") throw new Mismatch("a retirement that is not in " + file);
    if (transition === "registered") key.unlisted ??= at;
  }

  /** Checks the vote, if any, in an event about an approval. */
  async checkVote(r, e) {
    const { approval_id: approval, vote, signed, action_digest: action } = e.payload;
    const [account] = e.actor_principal.split("/", 1);
    const isVote = (vote === "approve" || vote === "deny") && is.id(approval) && is.id(account);
    let by = null;
    if (signed !== undefined) {
      if (!isVote || action === undefined) throw new Malformed("signed, but not a vote on an action");
      by = await this.#checkSigned(r, e.payload, account);
      this.signed++;
    } else if (!isVote) {
      return;
    } else {
      this.unsigned++;
    }
    const { deputy_for: represented } = e.payload;
    const deputy = is.id(represented) ? { deputy_for: fresh(represented) } : {};
    if (this.votes.length < maxVotes) this.votes.push({ approval_id: fresh(approval), account_id: fresh(account), vote, ...deputy, signed: by });
  }

  async #checkSigned(r, payload, account) {
    for (const name of ["reason", "reason_code"]) {
      if ((payload[name] ?? null) !== null && !is.text(payload[name])) throw new Malformed("signed: " + name);
    }
    const { approval_id: approval, action_digest: action, vote, reason, reason_code: reasonCode } = payload;
    const a = readAssertion(payload.signed);
    const text = voteText(this.#m.origin, { approval, action, vote, reason, reasonCode }, a.time);
    const at = r.sequence_num - 1;
    const name = nameOf(account, a.credential);
    const key = this.#registered(name, at);
    await checkAssertion(key.credential, text, a, r.received_at);
    const used = this.#keys.get(name);
    used.usedUntil = Math.max(used.usedUntil, at);
    return key.voterKey;
  }

  /** Checks that the pack contains exactly the events that its votes need. Call it after the last vote. */
  checkUsed() {
    for (const event of this.#events.toReversed()) {
      if (event.credential === undefined) continue;
      if (this.#keys.get(event.of).usedUntil <= event.at) throw new Mismatch(file + ": a voter key that no vote needs");
      const by = this.#keys.get(event.consent);
      if (by) by.usedUntil = Math.max(by.usedUntil, event.at);
    }
    for (const { usedUntil, unlisted } of this.#keys.values()) {
      if (usedUntil === 0) throw new Mismatch(file + ": a retirement that no vote needs");
      if (unlisted < usedUntil) throw new Mismatch(file + ": a registration that is not in the file");
    }
  }

  /** The members of a report. */
  report() {
    return { votes_signed: this.signed, votes_unsigned: this.unsigned, votes: this.votes };
  }
}

const registrationForms = {
  account_id: is.id,
  consent: (v) => v === null || isObject(v),
  credential_id: is.text,
  possession: isObject,
  public_key: isObject,
  rp_id: is.someText,
  transition: is.oneOf("registered"),
  web_origin: is.text,
};

/** Reports whether pages of an origin may use passkeys of a relying party. */
function isParty(rpId, origin) {
  const m = /^(https?):\/\/([a-z0-9._-]{1,253})(:[1-9][0-9]{0,4})?$/.exec(origin);
  if (!m || (m[1] === "http" && m[2] !== "localhost")) return false;
  return m[2] === rpId || m[2].endsWith("." + rpId);
}

/** Returns the position of the first event at or after an index. */
function firstAt(events, at) {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle].at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

const keyWords = (k) => `${k.thumbprint}, registered ${k.registered_at} (entry ${k.log_index})`;

function voteLine({ approval_id: approval, account_id: account, vote, deputy_for: represented, signed }) {
  const words = `vote of ${account} on ${approval}: ${vote}, ` + (represented === undefined ? "" : `in place of ${represented}, `);
  if (signed === null) return words + "unsigned: an unverified operator claim";
  const by = words + "signed by the passkey " + keyWords(signed);
  if (signed.consent !== null) return by + ", with the consent of the passkey " + keyWords(signed.consent);
  return by + " without the consent of another passkey: whose passkey it is, is an unverified operator claim";
}

/** Returns the lines about votes, in the words of `aps verify`. */
export function voteLines(r) {
  const lines = r.votes.map(voteLine);
  const more = r.votes_signed + r.votes_unsigned - r.votes.length;
  if (more > 0) lines.push(`and ${more} more votes; of all votes, ${r.votes_signed} are signed and ${r.votes_unsigned} are not`);
  return lines;
}

