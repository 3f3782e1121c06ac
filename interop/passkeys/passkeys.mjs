// A third-party authenticator in software and a third-party relying party. A line of standard input is a JSON object:
//   {"do":"create","origin","rp_id","alg"}                          registers a passkey; prints credential_id and the public key as a JWK
//   {"do":"sign","origin","rp_id","credential_id","challenge"}      prints the assertion of the authenticator
//   {"do":"verify","origin","rp_id","challenge","key","assertion"}  lets the relying party judge an assertion under a JWK

import { createInterface } from "node:readline";
import { verifyAuthenticationResponse, verifyRegistrationResponse } from "@simplewebauthn/server";
import { cose, decodeCredentialPublicKey, isoBase64URL, isoCBOR } from "@simplewebauthn/server/helpers";
import { AuthenticatorEmulator, WebAuthnEmulator } from "nid-webauthn-emulator";

const emulator = new WebAuthnEmulator(new AuthenticatorEmulator({ algorithmIdentifiers: ["ES256", "EdDSA", "RS256"] }));
const { COSEKEYS, COSEKTY } = cose;

function toJWK(bytes) {
  const key = decodeCredentialPublicKey(bytes);
  const text = (name) => isoBase64URL.fromBuffer(key.get(name));
  switch (key.get(COSEKEYS.kty)) {
    case COSEKTY.EC2:
      return { crv: "P-256", kty: "EC", x: text(COSEKEYS.x), y: text(COSEKEYS.y) };
    case COSEKTY.OKP:
      return { crv: "Ed25519", kty: "OKP", x: text(COSEKEYS.x) };
    default:
      return { e: text(COSEKEYS.e), kty: "RSA", n: text(COSEKEYS.n) };
  }
}

function toCOSE({ kty, x, y, n, e }) {
  const bytes = (text) => isoBase64URL.toBuffer(text);
  const members = {
    EC: () => [[1, 2], [3, -7], [-1, 1], [-2, bytes(x)], [-3, bytes(y)]],
    OKP: () => [[1, 1], [3, -8], [-1, 6], [-2, bytes(x)]],
    RSA: () => [[1, 3], [3, -257], [-1, bytes(n)], [-2, bytes(e)]],
  };
  return isoCBOR.encode(new Map(members[kty]()));
}

async function create({ origin, rp_id: id, alg }) {
  const challenge = isoBase64URL.fromUTF8String("registration");
  const response = emulator.createJSON(origin, {
    rp: { id, name: id },
    user: { id: isoBase64URL.fromUTF8String("ann"), name: "ann", displayName: "Ann" },
    challenge,
    pubKeyCredParams: [{ type: "public-key", alg }],
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
  });
  const { registrationInfo, verified } = await verifyRegistrationResponse({
    response, expectedChallenge: challenge, expectedOrigin: origin, expectedRPID: id, supportedAlgorithmIDs: [alg],
  });
  return { verified, credential_id: response.id, key: toJWK(registrationInfo.credential.publicKey) };
}

function sign({ origin, rp_id: rpId, credential_id: id, challenge }) {
  const { response } = emulator.getJSON(origin, { rpId, challenge, allowCredentials: [{ type: "public-key", id }], userVerification: "required" });
  return { authenticator_data: response.authenticatorData, client_data_json: response.clientDataJSON, credential_id: id, signature: response.signature };
}

async function verify({ origin, rp_id: rpId, challenge, key, assertion: a }) {
  const response = {
    id: a.credential_id, rawId: a.credential_id, type: "public-key", clientExtensionResults: {},
    response: { authenticatorData: a.authenticator_data, clientDataJSON: a.client_data_json, signature: a.signature },
  };
  try {
    const { verified } = await verifyAuthenticationResponse({
      response, expectedChallenge: challenge, expectedOrigin: origin, expectedRPID: rpId,
      credential: { id: a.credential_id, publicKey: toCOSE(key), counter: 0 }, requireUserVerification: true,
    });
    return { verified };
  } catch (why) {
    return { verified: false, why: why.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const said = await { create, sign, verify }[asked.do](asked);
  process.stdout.write(JSON.stringify(said) + "\n");
}
