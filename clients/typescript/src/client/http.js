// One request with its retries. Lost connections, timeouts, 408, 502 to 504, and 429 with Retry-After are retried; any
// other answer is final.

import { LedgerError, Refused, Unreachable, WrongAnswer } from "../errors.js";

const stopped = ["frozen", "read_only", "held", "importing", "moved"]; // until an operator intervenes
const maxAnswer = 64 << 20; // bytes
const maxRetryAfter = 3600; // seconds: a longer Retry-After is reduced to this

/** The API version that this package implements. */
export const serviceVersion = "2026-05-18";

/** Parses Retry-After in seconds: a number or a date. */
export function readRetryAfter(text, now = Date.now()) {
  if (text === null || text === undefined) return 0;
  if (/^[0-9]+$/.test(text)) return Math.min(Number(text), maxRetryAfter);
  const at = Date.parse(text);
  return Number.isNaN(at) ? 0 : Math.min(Math.max(0, (at - now) / 1000), maxRetryAfter);
}

/** Reports whether a request that failed with this error may be retried. */
export function isRetryable(why) {
  if (why instanceof Refused) {
    if (stopped.includes(why.code)) return false;
    if (why.status === 429) return why.code !== "plan_limit" && why.retryAfter > 0;
    return [408, 502, 503, 504].includes(why.status);
  }
  return why instanceof Unreachable && !(why instanceof WrongAnswer);
}

/**
 * Reports whether the answer to a request with several events may be about one of them: it is too large, or a proxy does
 * not let it through. Any other answer that is provably the service's is about the sender.
 */
export function mayConcernOne(why) {
  if (why instanceof WrongAnswer) return true;
  return why instanceof Refused && !why.proved && why.status >= 400 && why.status < 500 && ![401, 408, 429].includes(why.status);
}

/** Resolves after `ms`; rejects when the signal aborts. The timer keeps the process alive if `keepsAlive` is set. */
export function sleep(ms, signal, { keepsAlive = true } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new Unreachable("the deadline has passed"));
    const timer = setTimeout(done, ms);
    if (!keepsAlive) letEnd(timer);
    function done() {
      signal?.removeEventListener("abort", stop);
      resolve();
    }
    function stop() {
      clearTimeout(timer);
      reject(new Unreachable("the deadline has passed"));
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Lets the process end before the timer. Timers are numbers in browsers and in Deno. */
export function letEnd(timer) {
  if (typeof timer === "object") timer.unref?.();
  else globalThis.Deno?.unrefTimer(timer);
}

/** Sends requests to one service. */
export class Transport {
  #token;
  #subjectToken;

  constructor({ url, token, subjectToken, fetch: send = globalThis.fetch, timeoutMs = 30_000, retry = {} }) {
    const base = new URL(url);
    const odd = base.username !== "" || base.search !== "" || base.hash !== "";
    if (!["http:", "https:"].includes(base.protocol) || odd) {
      throw new LedgerError("url: must be http or https with a host, without user, query or fragment");
    }
    token = token?.replace(/\r?\n$/, ""); // files, and variables filled from files, often end in a line end
    if (token !== undefined && !/^[!-~]+$/.test(token)) throw new LedgerError("token: must be visible ASCII without spaces and line ends");
    this.base = base.href.replace(/\/+$/, "");
    this.send = send;
    this.timeoutMs = timeoutMs;
    this.retry = { attempts: 8, baseMs: 200, maxMs: 10_000, sleep, ...retry };
    this.#token = token;
    if (subjectToken !== undefined && typeof subjectToken !== "function") throw new LedgerError("subjectToken: must be a function");
    this.#subjectToken = subjectToken;
  }

  /** The pause in ms after the given try, from 1: random in the upper half of the back-off, or Retry-After. */
  pause(attempt, why) {
    const backoff = Math.min(this.retry.maxMs, this.retry.baseMs * 2 ** Math.min(attempt - 1, 30));
    return Math.max((why?.retryAfter ?? 0) * 1000, backoff / 2 + (Math.random() * backoff) / 2);
  }

  /** Resolves to the text of a 2xx answer, after as many tries as `retry` allows. */
  async call(request) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.once(request);
      } catch (why) {
        if (attempt >= this.retry.attempts || !isRetryable(why) || request.signal?.aborted) throw why;
        await this.retry.sleep(this.pause(attempt, why), request.signal);
      }
    }
  }

  /** call, with the answer parsed as a JSON object. */
  async callJSON(request) {
    return parseAnswer((await this.call(request)).text);
  }

  /** Sends one request, with the subject token if it `proves` on whose behalf its events are. Resolves to text, status and request ID of a 2xx answer. */
  async once({ method = "GET", path, body, media = "application/json", headers = {}, ingest = false, proves = false, keepalive = false, signal, timeoutMs }) {
    const sent = { Accept: media, ...headers };
    if (body !== undefined) sent["Content-Type"] = media;
    if (ingest) {
      if (this.#token === undefined) throw new LedgerError("no ingest key: set token");
      sent.Authorization = "Bearer " + this.#token;
      sent["Service-Version"] = serviceVersion;
    }
    if (proves && this.#subjectToken) {
      const subjectToken = await readSubjectToken(this.#subjectToken);
      if (subjectToken) sent["Agentledger-Subject-Token"] = subjectToken;
    }
    const limit = new Limit(timeoutMs ?? this.timeoutMs, signal);
    let answer;
    let bytes;
    try {
      const send = this.send;
      answer = await send(this.base + path, { method, headers: sent, body, redirect: "manual", keepalive, signal: limit.signal });
      bytes = new Uint8Array(await answer.arrayBuffer());
    } catch (cause) {
      throw new Unreachable(limit.isOver ? "no answer in time" : "no connection, or it was lost", { cause: withoutDetail(cause) });
    } finally {
      limit.end();
    }
    if (bytes.length > maxAnswer) throw new WrongAnswer("longer than 64 MiB");
    const text = new TextDecoder().decode(bytes);
    if (!answer.ok) throw refusal(answer, text);
    return { status: answer.status, text, bytes, requestId: answer.headers.get("X-Request-Id") };
  }
}

/** Calls the function that returns the token of a subject. Its failure is a failed try. */
async function readSubjectToken(read) {
  let token;
  try {
    token = await read();
  } catch (cause) {
    throw new Unreachable("no subject token", { cause: withoutDetail(cause) });
  }
  if (token && !/^[!-~]+$/.test(token)) throw new Unreachable("the subject token is not visible ASCII without spaces and line ends");
  return token;
}

/**
 * The time limit of one try. AbortSignal.any and AbortSignal.timeout take four times as long, and outlive the request.
 */
class Limit {
  #control = new AbortController();
  #outer;
  #timer;
  isOver = false;

  constructor(ms, outer) {
    this.#outer = outer;
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#control.abort(new DOMException("The time limit has passed", "TimeoutError"));
    }, ms);
    if (outer?.aborted) this.#stop();
    else outer?.addEventListener("abort", this.#stop);
  }

  get signal() {
    return this.#control.signal;
  }

  #stop = () => this.#control.abort(this.#outer.reason);

  end() {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#stop);
  }
}

/** Keeps the name and code of a cause. Its message may contain the address with a path. */
function withoutDetail(cause) {
  const inner = cause?.cause ?? cause;
  return { name: inner?.name ?? "Error", code: inner?.code };
}

function refusal(answer, text) {
  let body = {};
  try {
    body = JSON.parse(text) ?? {};
  } catch {
    // A proxy's page, for example.
  }
  return refused(answer.status, body, {
    retryAfter: readRetryAfter(answer.headers.get("Retry-After")),
    requestId: answer.headers.get("X-Request-Id"),
  });
}

/** Returns the error for the status and members of an answer, or of a line of it. `requestId` is the answer's header. */
export function refused(status, body, { requestId, retryAfter }) {
  const { error, code, request_id: stated = requestId } = body;
  const message = textOf(error);
  const proved = Boolean(message && requestId) && stated === requestId;
  return new Refused({ status, code: textOf(code), message, requestId: textOf(stated), retryAfter, body, proved });
}

function textOf(v) {
  return typeof v === "string" ? v : undefined;
}

/** Parses an answer that must be a JSON object. */
export function parseAnswer(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new WrongAnswer("not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new WrongAnswer("not a JSON object");
  return value;
}
