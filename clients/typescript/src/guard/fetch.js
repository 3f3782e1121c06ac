// A fetch whose requests are guarded acts.

import { base64, fromUTF8, unbase64, utf8 } from "../bytes.js";
import { sha256hex } from "../crypto/sha256.js";
import { LedgerError } from "../errors.js";

/** The header in which a server receives the grant of an approved request: base64 of the signed note. */
export const grantHeader = "Agentledger-Grant";
/** The header with the payload that the grant or the intent is for, in base64: the request's act with the guard's members. */
export const callHeader = "Agentledger-Call";
/** The header with organization, agent and event of an intent, by which a request without a grant asks for a receipt. */
export const intentHeader = "Agentledger-Intent";

/**
 * Returns the act of a request: tool http.<method>; payload with method, host, path, query and the SHA-256 of the body;
 * the key is the Idempotency-Key with method and address, so a request without that header is a new act each time.
 */
export function describeRequest(request, body) {
  const url = new URL(request.url);
  const act = {
    tool: "http." + request.method.toLowerCase(),
    payload: {
      method: request.method,
      host: url.host,
      path: url.pathname,
      query: url.search.replace(/^\?/, ""),
      body_sha256: sha256hex(body),
    },
  };
  const key = request.headers.get("Idempotency-Key");
  if (key !== null) act.key = `${request.method} ${url.origin}${url.pathname} ${key}`;
  return act;
}

/**
 * Returns the members of the result that an answer adds: the tool's receipt, if it has one. It is not checked here:
 * whoever knows the tool's key can do that with openReceipt.
 */
function receiptOf(answer) {
  const header = answer.headers?.get("Agentledger-Receipt") ?? "";
  if (header === "" || header.length > 4096) return {};
  try {
    return { receipt: fromUTF8(unbase64(header)) };
  } catch {
    return {};
  }
}

/** See Guard.fetch. `options.describe(request, body)` returns another act; `options.fetch` sends. */
export function guardedFetch(guard, { describe = describeRequest, fetch: send = globalThis.fetch, ...options } = {}) {
  return async (input, init) => {
    const request = new Request(input, init);
    const body = new Uint8Array(await request.clone().arrayBuffer());
    const act = { signal: request.signal, ...options, ...(await describe(request, body)) };
    const told = { describe: (answer) => ({ status_code: answer.status }), members: receiptOf };
    const ran = await guard.run({ ...act, ...told }, (permit) => {
      const headers = new Headers(request.headers);
      if (permit.grant !== undefined) {
        headers.set(grantHeader, base64(utf8(permit.grant)));
        headers.set(callHeader, base64(utf8(permit.approved)));
      } else if (permit.intent !== undefined) {
        headers.set(intentHeader, permit.intent);
        headers.set(callHeader, base64(utf8(permit.payload)));
      }
      return send(new Request(request, { headers, body: body.length > 0 ? body : undefined }));
    });
    if (ran.repeated) throw new LedgerError("the request was made before, and its answer is not kept");
    return ran.output;
  };
}
