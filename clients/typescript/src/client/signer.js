// Completes and signs the events of one agent with one Ed25519 key.

import { concat, unbase64, utf8 } from "../bytes.js";
import { parse } from "../canonical/parse.js";
import { canonicalize, canonicalizeText, rewrite } from "../canonical/write.js";
import { InvalidValue, LedgerError, Malformed } from "../errors.js";
import { checkForm, is, traceOf } from "../verify/forms.js";
import { envelopeForms } from "../verify/documents.js";
import { randomBase64url, randomHex } from "./random.js";
import { signerOf } from "./sign.js";

/**
 * Parses a 32-byte seed: bytes, or standard base64, optionally surrounded by white space. The error never contains the
 * text.
 */
export function parseSeed(seed, name = "private key") {
  try {
    const raw = typeof seed === "string" ? unbase64(seed.trim(), 32) : seed;
    if (raw instanceof Uint8Array && raw.length === 32) return raw;
  } catch {
    // One message for all forms.
  }
  throw new LedgerError(`${name}: must be 32 bytes, or base64 of 32 bytes`);
}

/** The signer of one agent. Printing it never prints the key. */
export class Signer {
  #sign;
  #secret;

  /** `who` has organization (UUID), agent and keyId. `key` is the seed: see parseSeed. */
  constructor(who, key) {
    for (const [name, form] of Object.entries({ organization: is.uuid, agent: is.agentId, keyId: is.keyId })) {
      if (!form(who[name])) throw new Malformed(name);
    }
    const seed = parseSeed(key);
    this.organization = who.organization;
    this.agent = who.agent;
    this.keyId = who.keyId;
    this.#sign = signerOf(seed);
    const hmac = { name: "HMAC", hash: "SHA-256" };
    this.#secret = crypto.subtle.importKey("raw", seed.slice(), hmac, false, ["sign"]);
  }

  /** Resolves to the base64 signature of bytes. */
  signBytes(message) {
    return this.#sign.bytes(message);
  }

  /** Resolves to 32 bytes that only a holder of the key can compute: HMAC-SHA256 of label, a zero byte and data. */
  async derive(label, data) {
    return new Uint8Array(await crypto.subtle.sign("HMAC", await this.#secret, concat(label, Uint8Array.of(0), utf8(data))));
  }

  /**
   * Completes an event (wire names, or a JSON text of them) and signs it. Missing members get defaults; unknown members
   * are signed unchanged. Without a trace_id, the event is of the trace of its traceparent. The number rule is the one for values or for texts. Throws InvalidValue with the member's
   * path, or Malformed with its name.
   */
  async sign(event, { convert } = {}) {
    const isText = typeof event === "string";
    const given = isText ? parse(event) : event;
    if (typeof given !== "object" || given === null || Array.isArray(given)) throw new Malformed("event");
    const defaults = this.#defaults();
    defaults.trace_id = traceOf(given.traceparent) ?? defaults.trace_id;
    const complete = addMembers(defaults, given);
    const signed = isText ? rewrite(complete) : canonicalize(complete, { convert });
    const parsed = JSON.parse(signed);
    this.#checkOwn(parsed);
    checkForm(parsed, envelopeForms, { closed: false, optional: ["tool_name"] });
    const value = await this.#sign.event(this.keyId, signed);
    return { eventId: parsed.event_id, traceId: parsed.trace_id, text: withSignature(parsed, signed, value) };
  }

  #defaults() {
    return {
      schema_version: 1,
      organization_id: this.organization,
      event_id: "evt_" + randomHex(),
      trace_id: "trc_" + randomHex(),
      agent_id: this.agent,
      key_id: this.keyId,
      emitted_at: new Date().toISOString(),
      actor_type: "agent",
      actor_principal: this.agent,
      policy_decision: "allow",
      payload: {},
      salt: randomBase64url(),
    };
  }

  #checkOwn(e) {
    for (const name of ["sig_alg", "sig_value_b64"]) {
      if (name in e) throw new InvalidValue("/" + name, "is made by signing: leave it out");
    }
    const own = String(e.organization_id).toLowerCase() === this.organization.toLowerCase();
    if (!own || e.agent_id !== this.agent || e.key_id !== this.keyId) {
      throw new LedgerError("organization_id, agent_id and key_id of an event must be the signer's");
    }
    if (/^(ledger_|stp_)/.test(e.event_id)) {
      throw new LedgerError("an event_id that begins with ledger_ or stp_ is reserved for the server");
    }
  }

  /** Resolves to proof_b64 for the consumption of an approval. */
  proveConsumption(approvalId, actionDigest) {
    return this.signBytes(utf8(`APS1-CONSUME\n${approvalId}\n${actionDigest}\n`));
  }
}

/**
 * Adds the members of an event to the defaults. A spread takes fifty times as long, but only a spread keeps a member
 * __proto__.
 */
function addMembers(defaults, given) {
  return Object.hasOwn(given, "__proto__") ? { ...defaults, ...given } : Object.assign(defaults, given);
}

/** Puts the two signature members into the canonical text of an envelope. */
function withSignature(members, signed, value) {
  const own = `"sig_alg":"ed25519","sig_value_b64":"${value}"`;
  const after = Object.keys(members).filter((name) => name > "sig_alg").sort();
  if (after[0] === undefined || after[0] < "sig_value_b64") {
    return canonicalizeText(JSON.stringify({ ...members, sig_alg: "ed25519", sig_value_b64: value }));
  }
  const tail = after.map((name) => `${JSON.stringify(name)}:${rewrite(members[name])}`).join(",");
  return signed.slice(0, signed.length - tail.length - 1) + own + "," + tail + "}";
}
