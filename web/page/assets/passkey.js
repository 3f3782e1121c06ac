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

/** Resolves to the answer of one of the person's passkeys to a fresh challenge. */
export async function askPasskey(base) {
  const { publicKey } = await call(base + "/v1/id/auth/passkey/begin");
  const options = PublicKeyCredential.parseRequestOptionsFromJSON(publicKey);
  return (await navigator.credentials.get({ publicKey: options })).toJSON();
}

/** Resolves to a new passkey. `begin` is the call that gives its options. */
export async function makePasskey(begin, body) {
  return makePrepared(await call(begin, body));
}

/** Resolves to a new passkey with options that the service gave before. */
export async function makePrepared({ publicKey }) {
  const options = PublicKeyCredential.parseCreationOptionsFromJSON(publicKey);
  return (await navigator.credentials.create({ publicKey: options })).toJSON();
}

/** The path before every path of the service, from the address of this script. */
export const base = new URL(import.meta.url).pathname.replace(/\/assets\/[^/]+\/passkey\.js$/, "");
