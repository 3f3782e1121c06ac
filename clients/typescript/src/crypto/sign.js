// Signs with Ed25519. Node, Deno and Bun sign at once, which takes less of a processor than the hand-over to the
// threads of WebCrypto. Browsers and workers have WebCrypto alone. Both give the same bytes.

import { base64, concat } from "../bytes.js";

const pkcs8 = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20);

/** Returns the runtime's own cryptography, or undefined where there is none. */
export function findNative() {
  const found = globalThis.process?.getBuiltinModule?.("node:crypto");
  return typeof found?.createPrivateKey === "function" && typeof found.sign === "function" ? found : undefined;
}

/** Returns a function that resolves to the base64 signature of bytes by the key of a 32-byte seed. */
export function signerOf(seed, native = findNative()) {
  const material = concat(pkcs8, seed);
  return native ? signAtOnce(native, material) : signByWebCrypto(material);
}

function signAtOnce(native, material) {
  const key = native.createPrivateKey({ key: globalThis.Buffer.from(material), format: "der", type: "pkcs8" });
  return async (message) => base64(native.sign(null, message, key));
}

function signByWebCrypto(material) {
  const imported = crypto.subtle.importKey("pkcs8", material, { name: "Ed25519" }, false, ["sign"]);
  imported.catch(() => {}); // the signing function reports it
  return async (message) => base64(new Uint8Array(await crypto.subtle.sign({ name: "Ed25519" }, await imported, message)));
}
