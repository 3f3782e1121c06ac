// The three documents of an event: entry (public leaf), record (server), envelope (agent).

import { fromMultikey, hex, unbase64, unhex, utf8 } from "../bytes.js";
import { parse } from "../canonical/parse.js";
import { rewrite } from "../canonical/write.js";
import { KeyCache } from "../crypto/ed25519.js";
import { sha256 } from "../crypto/sha256.js";
import { Malformed, Mismatch } from "../errors.js";
import { checkForm, is, isObject, orNull } from "./forms.js";

const entryForm = /^\{"prev":"([0-9a-f]{64})","record":"([0-9a-f]{64})","seq":([1-9][0-9]{0,15}),"v":1\}$/;

/** Parses an entry: prev and record as hex, seq as a number. Throws Malformed. */
export function parseEntry(text) {
  const m = entryForm.exec(text);
  if (!m || !Number.isSafeInteger(Number(m[3]))) throw new Malformed("entry");
  return { prev: m[1], record: m[2], seq: Number(m[3]) };
}

/** Returns `prev` of the first entry of a log, in hex. */
export function genesis(origin) {
  return hex(sha256(`agentledger/genesis/v1\n${origin}\n`));
}

const policyForms = {
  evaluated: is.bool,
  declared: is.decision,
  effective: is.decision,
  policy_id: orNull(is.someText),
  policy_version: orNull(is.positive),
  policy_digest: orNull(is.someHash),
  rule_id: orNull(is.someText),
  engine: orNull(is.someText),
  input_digest: orNull(is.someHash),
  evaluated_at: orNull(is.someTime),
  limits: orNull((v) => Array.isArray(v) && levels(v) <= 8),
  approval_id: orNull(is.someText),
  intent: is.someText,
};

function levels(v) {
  if (typeof v !== "object" || v === null) return 0;
  return 1 + Object.values(v).reduce((n, e) => Math.max(n, levels(e)), 0);
}

const recordForms = {
  v: is.one,
  origin: is.text,
  organization_id: is.lowerUUID,
  sequence_num: is.positive,
  event_id: is.text,
  agent_id: is.text,
  key_id: is.text,
  public_key: is.text,
  signer: is.oneOf("agent", "bridge", "system"),
  custody: is.oneOf("agent", "server"),
  event_digest: is.hash,
  sig_form: is.oneOf("digest", "canonical"),
  sig_value_b64: is.text,
  ingest_key_id: orNull(is.someText),
  received_at: is.time,
  policy: isObject,
  on_behalf_of: is.oneOf("verified"),
  traceparent: is.traceparent,
};

/** Parses a canonical text. Throws Malformed if it is not the canonical form of its value. */
function parseCanonical(text) {
  const value = parse(text);
  if (rewrite(value) !== text) throw new Malformed("not the exact canonical form");
  return value;
}

/** Parses a record. Throws Malformed or InvalidValue. */
export function parseRecord(text) {
  const r = parseCanonical(text);
  checkForm(r, recordForms, { optional: ["on_behalf_of", "traceparent"] });
  checkForm(r.policy, policyForms, { optional: ["intent"] });
  if (r.policy.evaluated && r.policy.limits === null) throw new Malformed("limits");
  return r;
}

/** Forms of an envelope's members; others are allowed. */
export const envelopeForms = {
  schema_version: is.one,
  organization_id: is.uuid,
  event_id: is.id,
  trace_id: is.id,
  agent_id: is.agentId,
  key_id: is.keyId,
  emitted_at: is.moment,
  actor_type: is.token,
  actor_principal: is.principal,
  action_kind: is.token,
  tool_name: is.tool,
  policy_decision: is.decision,
  payload: isObject,
};

/** Parses an envelope. Returns its members, the signed content as text, and the content's digest as bytes. */
export function parseEnvelope(text) {
  const e = parseCanonical(text);
  checkForm(e, { ...envelopeForms, sig_alg: is.oneOf("ed25519"), sig_value_b64: is.text }, { closed: false, optional: ["tool_name"] });
  unbase64(e.sig_value_b64, 64);
  const { sig_alg: _alg, sig_value_b64: _value, ...content } = e;
  const signed = rewrite(content);
  return { members: e, signed, digest: eventDigest(e.key_id, signed) };
}

/** Returns the digest that an agent signs: SHA-256 of APS1, the key id and the signed content. */
export function eventDigest(keyId, signed) {
  return sha256(`APS1\n${keyId}\n`, signed);
}

/** Checks that a record names this envelope. Throws Mismatch. */
export function checkEnvelopeOf(r, { members: e, digest }) {
  if (hex(digest) !== r.event_digest) throw new Mismatch("envelope and event_digest");
  const same = e.event_id === r.event_id && e.agent_id === r.agent_id && e.key_id === r.key_id;
  if (!same || e.organization_id.toLowerCase() !== r.organization_id) {
    throw new Mismatch("envelope and the record's organization_id, event_id, agent_id, key_id");
  }
  if (e.policy_decision !== r.policy.declared) throw new Mismatch("policy_decision and policy.declared");
  if (r.policy.intent !== undefined && !isResultOf(e, r.policy.intent)) {
    throw new Mismatch("payload.phase, parent_event_id and policy.intent");
  }
}

function isResultOf(e, intent) {
  const own = typeof e.parent_event_id === "string" ? e.parent_event_id : "";
  const parent = own !== "" ? own : e.payload.parent_event_id;
  return e.tool_name !== undefined && e.payload.phase === "result" && is.id(parent) && parent === intent;
}

/** A cache of the records' public keys, because checking a key costs more than checking a signature. */
export const agentKeys = new KeyCache(1024);

/** Checks that the record's key signed the event. `envelope` may be undefined for the form digest. Throws. */
export async function checkSignatureOf(r, envelope) {
  let key;
  try {
    key = agentKeys.get(fromMultikey(r.public_key));
  } catch (cause) {
    throw new Malformed("public_key: " + cause.message);
  }
  const message = r.sig_form === "canonical" ? utf8(envelope.signed) : unhex(r.event_digest, 32);
  let signature;
  try {
    signature = unbase64(r.sig_value_b64);
  } catch {
    throw new Malformed("sig_value_b64");
  }
  if (!(await key.verify(signature, message))) throw new Mismatch("not the public key's");
}
