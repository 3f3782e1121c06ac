// Passkeys of the browser (WebAuthn). The service's calls take and give the forms of JSON that browsers write.

/** Resolves to the answer of a call of the service. It rejects with the service's own words. */
export async function call(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  const value = text === "" ? {} : JSON.parse(text);
  if (!answer.ok) throw new Error(value.error ?? `status ${answer.status}`);
  return value;
}

/** Reports whether this browser has passkeys in the form that the service writes. */
export function hasPasskeys() {
  return typeof globalThis.PublicKeyCredential?.parseRequestOptionsFromJSON === "function";
}

const refusals = {
  InvalidStateError: "This device already has a passkey of your account.",
  NotAllowedError: "No passkey was used: you cancelled, it took too long, or this device has no matching passkey.",
  SecurityError: "Passkeys of this service cannot be used at this address.",
};

/** Resolves to what the browser's passkeys answer, in JSON. It rejects with plain words instead of the browser's. */
async function ask(method, publicKey) {
  try {
    return (await navigator.credentials[method]({ publicKey })).toJSON();
  } catch (why) {
    throw why instanceof DOMException ? new Error(refusals[why.name] ?? why.message) : why;
  }
}

/** Resolves to the answer of a passkey to options that the service gave. */
export function usePasskey(options) {
  return ask("get", PublicKeyCredential.parseRequestOptionsFromJSON(options));
}

/** Resolves to the answer of one of the person's passkeys to a fresh challenge. */
export async function askPasskey(base) {
  const { publicKey } = await call(base + "/v1/id/auth/passkey/begin");
  return usePasskey(publicKey);
}

/** Resolves to a new passkey. `begin` is the call that gives its options. */
export async function makePasskey(begin, body) {
  return makePrepared(await call(begin, body));
}

/** Resolves to a new passkey with options that the service gave before. */
export async function makePrepared({ publicKey }) {
  return ask("create", PublicKeyCredential.parseCreationOptionsFromJSON(publicKey));
}

/** The path before every path of the service, from the address of this script. */
export const base = new URL(import.meta.url).pathname.replace(/\/assets\/[^/]+\/passkey\.js$/, "");
