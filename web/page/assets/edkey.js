// Ed25519 keys of agents, made by WebCrypto. A private key is returned to the caller and sent nowhere.

/** Resolves to whether this browser makes Ed25519 keys. Pages without TLS have no WebCrypto. */
export async function canMakeKeys() {
  try {
    await crypto.subtle.generateKey({ name: "Ed25519" }, false, ["sign"]);
    return true;
  } catch {
    return false;
  }
}

/** Resolves to a new key: its signer, its public part and its seed, the last two in base64. The seed is the text of aps'
 * key file. */
export async function makeKey() {
  const pair = await crypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign", "verify"]);
  const { d, x } = await crypto.subtle.exportKey("jwk", pair.privateKey);
  return { signer: pair.privateKey, publicKey: toStandard(x), seed: toStandard(d) };
}

/** Returns base64 with padding for the form that JWK has. Both are of 32 bytes. */
function toStandard(text) {
  return text.replaceAll("-", "+").replaceAll("_", "/") + "=";
}

/** Resolves to the proof that registers a key: "" stands for an agent id or a key id that the service makes. */
export async function prove(key, { organization, agent, keyId }) {
  const text = ["APS1-KEY", organization, agent, keyId, key.publicKey, ""].join("\n");
  const signature = await crypto.subtle.sign({ name: "Ed25519" }, key.signer, new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(signature)));
}
