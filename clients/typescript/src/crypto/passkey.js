// Passkeys by the rules of docs/spec/signed-votes.md: public keys of three kinds, and WebAuthn assertions over a text.

import { base64, concat, equal, fromUTF8, hex, unbase64 } from "../bytes.js";
import { parse } from "../canonical/parse.js";
import { rewrite } from "../canonical/write.js";
import { Malformed, Mismatch } from "../errors.js";
import { checkForm, is, isObject } from "../verify/forms.js";
import { PublicKey } from "./ed25519.js";
import { sha256 } from "./sha256.js";

const minute = 60_000;

/** Returns base64url without padding. */
export function base64url(bytes) {
  return base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Decodes base64url without padding, in its one spelling. Throws Malformed. */
export function unbase64url(text) {
  if (typeof text !== "string" || !/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) throw new Malformed("base64url");
  const padded = text.replaceAll("-", "+").replaceAll("_", "/") + "=".repeat((4 - (text.length % 4)) % 4);
  return unbase64(padded);
}

/** Reports whether a text is a time bucket. */
export function isBucket(text) {
  return typeof text === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d[05]:00Z$/.test(text) && is.time(text.replace("Z", ".000Z"));
}

function fits(bucket, receivedAt) {
  const [start, at] = [Date.parse(bucket), Date.parse(receivedAt)];
  return start - 5 * minute <= at && at < start + 15 * minute;
}

/** Returns the text that a vote signs. `reason` and `reasonCode` are null if absent. Throws Malformed. */
export function voteText(origin, { approval, action, vote, reason, reasonCode }, bucket) {
  const remark = hex(sha256(rewrite({ reason: reason || null, reason_code: reasonCode || null })));
  return linesOf(["agentledger/vote/v1", origin, approval, action, vote, remark], bucket);
}

/** Returns the text that the registration of a voter key signs. Throws Malformed. */
export function keyText(origin, account, credential, key, bucket) {
  return linesOf(["agentledger/voter-key/v1", origin, account, credential, key.thumbprint], bucket);
}

function linesOf(lines, bucket) {
  if (!isBucket(bucket)) throw new Malformed("time");
  if (lines.some((l) => l === "" || l.includes("\n"))) throw new Malformed("line of the signed text");
  return [...lines, bucket, ""].join("\n");
}

const curve = {
  p: 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n,
  n: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  b: 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn,
};

const numberOf = (bytes) => BigInt("0x" + (hex(bytes) || "0"));

/** A public key of a passkey: ES256, EdDSA or RS256. */
export class PasskeyKey {
  #verify; // of the message's bytes and the signature

  /** Checks a JWK. Throws Malformed. */
  constructor(jwk) {
    if (!isObject(jwk)) throw new Malformed("public_key");
    const make = kinds.get(jwk.kty);
    if (make === undefined) throw new Malformed("public_key: kty");
    this.#verify = make(jwk);
    this.thumbprint = base64url(sha256(rewrite(jwk)));
  }

  /** Resolves to whether the signature counts for the message. */
  verify(signature, message) {
    return this.#verify(signature, message);
  }
}

function ecKey(jwk) {
  checkForm(jwk, { crv: is.oneOf("P-256"), kty: is.text, x: is.text, y: is.text });
  const [x, y] = [unbase64url(jwk.x), unbase64url(jwk.y)];
  if (x.length !== 32 || y.length !== 32) throw new Malformed("public_key: length");
  const [px, py] = [numberOf(x), numberOf(y)];
  const { p, b, n } = curve;
  if (px >= p || py >= p || (py * py - (px * px * px - 3n * px + b)) % p !== 0n) throw new Malformed("public_key: not on the curve");
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  let imported;
  return async (signature, message) => {
    const rs = unDER(signature);
    if (rs === undefined || rs.some((v) => v < 1n || v >= n)) return false;
    imported ??= crypto.subtle.importKey("raw", concat(Uint8Array.of(4), x, y), algorithm, false, ["verify"]);
    const raw = Uint8Array.from(rs.map((v) => v.toString(16).padStart(64, "0")).join("").match(/../g), (d) => parseInt(d, 16));
    return crypto.subtle.verify(algorithm, await imported, raw, message);
  };
}

/** Returns r and s of a SEQUENCE of two positive INTEGERs in DER, or undefined for other bytes. */
function unDER(bytes) {
  if (bytes.length < 2 || bytes[0] !== 0x30 || bytes[1] >= 0x80 || bytes[1] !== bytes.length - 2) return undefined;
  const numbers = [];
  let at = 2;
  for (let i = 0; i < 2; i++) {
    const size = bytes[at + 1];
    const value = bytes.subarray(at + 2, at + 2 + size);
    if (bytes[at] !== 2 || !(size >= 1 && size <= 33) || value.length !== size || value[0] >= 0x80) return undefined;
    if (value[0] === 0 && (size === 1 || value[1] < 0x80)) return undefined;
    numbers.push(numberOf(value));
    at += 2 + size;
  }
  return at === bytes.length ? numbers : undefined;
}

function edKey(jwk) {
  checkForm(jwk, { crv: is.oneOf("Ed25519"), kty: is.text, x: is.text });
  const key = new PublicKey(unbase64url(jwk.x));
  return (signature, message) => key.verify(signature, message);
}

function rsaKey(jwk) {
  checkForm(jwk, { e: is.oneOf("AQAB"), kty: is.text, n: is.text });
  const raw = unbase64url(jwk.n);
  const n = numberOf(raw.subarray(0, 513));
  const bits = n.toString(2).length;
  if (raw[0] === 0 || raw.length > 512 || bits < 2048 || bits > 4096 || n % 2n === 0n) throw new Malformed("public_key: n");
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const { e, kty } = jwk;
  let imported;
  return async (signature, message) => {
    if (signature.length !== raw.length || numberOf(signature) >= n) return false;
    imported ??= crypto.subtle.importKey("jwk", { e, kty, n: jwk.n }, algorithm, false, ["verify"]);
    return crypto.subtle.verify(algorithm, await imported, signature, message);
  };
}

const kinds = new Map([
  ["EC", ecKey],
  ["OKP", edKey],
  ["RSA", rsaKey],
]);

const assertionForms = {
  authenticator_data: is.text,
  client_data_json: is.text,
  credential_id: is.text,
  signature: is.text,
  time: isBucket,
};

/** Parses an assertion. Throws Malformed. */
export function readAssertion(value) {
  checkForm(value, assertionForms);
  const a = {
    data: unbase64url(value.authenticator_data),
    client: unbase64url(value.client_data_json),
    credential: value.credential_id,
    signature: unbase64url(value.signature),
    time: value.time,
  };
  const within = (bytes, most) => bytes.length > 0 && bytes.length <= most;
  if (a.data.length !== 37 || !within(a.client, 2048) || !within(unbase64url(a.credential), 1023) || !within(a.signature, 512)) {
    throw new Malformed("assertion: length");
  }
  return a;
}

/**
 * Checks that a credential made an assertion over a text, and that an event with it may have been received at a time.
 * The credential has id, key (PasskeyKey), rpId and webOrigin. Throws Malformed or Mismatch.
 */
export async function checkAssertion(credential, text, a, receivedAt) {
  if (a.credential !== credential.id) throw new Mismatch("credential_id");
  if (!fits(a.time, receivedAt)) throw new Mismatch("time and received_at");
  checkClientData(a.client, base64url(sha256(text)), credential.webOrigin);
  if (!equal(a.data.subarray(0, 32), sha256(credential.rpId))) throw new Mismatch("authenticator_data: rp_id");
  const flags = a.data[32];
  const known = (flags & 0xe2) === 0 && (flags & 0x05) === 0x05;
  if (!known || ((flags & 0x10) !== 0 && (flags & 0x08) === 0)) throw new Mismatch("authenticator_data: flags");
  if (!(await credential.key.verify(a.signature, concat(a.data, sha256(a.client))))) throw new Mismatch("signature");
}

function checkClientData(bytes, challenge, origin) {
  const client = parse(fromUTF8(bytes));
  if (!isObject(client)) throw new Malformed("client_data_json");
  if (client.type !== "webauthn.get") throw new Mismatch("client_data_json: type");
  if (client.challenge !== challenge) throw new Mismatch("client_data_json: challenge");
  if (client.origin !== origin) throw new Mismatch("client_data_json: origin");
  if ((client.crossOrigin !== undefined && client.crossOrigin !== false) || client.topOrigin !== undefined) {
    throw new Mismatch("client_data_json: crossOrigin, topOrigin");
  }
}

