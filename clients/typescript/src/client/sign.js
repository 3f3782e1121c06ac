// Signs with Ed25519. Node, Deno and Bun hash and sign synchronously, which takes less processor time than SHA-256 in
// JavaScript and the hand-over to the threads of WebCrypto. Browsers and their workers only have WebCrypto. Both give
// the same bytes.

import { base64, concat } from "../bytes.js";
import { eventDigest } from "../verify/documents.js";

const pkcs8 = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20);

/** Returns the runtime's own cryptography, or undefined if there is none. */
export function findNative() {
  const found = globalThis.process?.getBuiltinModule?.("node:crypto");
  return typeof found?.createPrivateKey === "function" && typeof found.sign === "function" ? found : undefined;
}

/**
 * Returns how the key of a 32-byte seed signs: `bytes` resolves to the base64 signature of a message, `event` to the
 * signature of the digest of a signed text under a key ID.
 */
export function signerOf(seed, native = findNative()) {
  const material = concat(pkcs8, seed);
  return native ? signAtOnce(native, material) : signByWebCrypto(material);
}

function signAtOnce(native, material) {
  const key = native.createPrivateKey({ key: globalThis.Buffer.from(material), format: "der", type: "pkcs8" });
  const bytes = async (message) => native.sign(null, message, key).toString("base64");
  const event = (keyId, signed) => bytes(native.createHash("sha256").update(`APS1\n${keyId}\n${signed}`).digest());
  return { bytes, event };
}

function signByWebCrypto(material) {
  const imported = crypto.subtle.importKey("pkcs8", material, { name: "Ed25519" }, false, ["sign"]);
  imported.catch(() => {}); // the signing function reports it
  const bytes = async (message) => base64(new Uint8Array(await crypto.subtle.sign({ name: "Ed25519" }, await imported, message)));
  return { bytes, event: (keyId, signed) => bytes(eventDigest(keyId, signed)) };
}
