// Signatures of votes by passkeys. The service says what is signed, and the passkey signs its digest.

import { base, call, usePasskey } from "./passkey.js";

/** Resolves to an assertion, as the service takes it, over options that it gave. */
async function sign(options, time) {
  const { rawId, response } = await usePasskey(options);
  return {
    credential_id: rawId,
    time,
    authenticator_data: response.authenticatorData,
    client_data_json: response.clientDataJSON,
    signature: response.signature,
  };
}

/** Resolves to an assertion for a vote. */
export async function signVote(approval, ballot) {
  const path = `${base}/v1/console/approvals/${encodeURIComponent(approval)}/votes/options`;
  const { public_key: options, time } = await call(path, ballot);
  return sign(options, time);
}

/** Registers a passkey to sign votes. A passkey that signs votes already has to consent, if there is one. */
export async function registerVoter(credential) {
  const begun = await call(base + "/v1/console/voter-keys/options", { credential_id: credential });
  const body = { credential_id: credential, possession: await sign(begun.possession, begun.time) };
  if (begun.consent) body.consent = await sign(begun.consent, begun.time);
  await call(base + "/v1/console/voter-keys", body);
}
