// Checks the grant of a request offline and remembers it. docs/guides/grants-at-the-tool.md has the contract.

import { fromUTF8, unbase64 } from "../bytes.js";
import { canonicalizeExact, parseExact, payloadText, recordMembers } from "../canonical/exact.js";
import { parse } from "../canonical/parse.js";
import { canonicalize, rewrite } from "../canonical/write.js";
import { sha256hex } from "../crypto/sha256.js";
import { LedgerError, Malformed } from "../errors.js";
import { checkSigned, parseLogKey, parseNote } from "../log/note.js";
import { compileRoutes, matchRoute, reserved } from "./routes.js";

export const maxBody = 1 << 20;
export const maxUsed = 1 << 16;
const maxGrant = 4096;
const maxCall = 64 << 10;
const maxTarget = 8 << 10;
const maxKeys = 16;
const life = 300_000;
/** By how much this machine's clock may be behind the service's, in milliseconds. */
const leeway = 2000;

/** The answer to a request that may not be made. Its text is the same in all languages. */
export class Refusal extends Error {
  constructor(status, code, message, retryAfter) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }

  get headers() {
    const retry = this.retryAfter === undefined ? {} : { "Retry-After": String(this.retryAfter) };
    return { "Content-Type": "application/json", "Cache-Control": "no-store", ...retry };
  }

  get body() {
    return JSON.stringify({ error: this.message, code: this.code });
  }
}

const otherAction = (of = "grant") => new Refusal(403, "other_action", `The ${of} is for another action`);
const noObject = () => new Refusal(400, "bad_request", "The body must be a JSON object");
const reservedName = () => new Refusal(400, "bad_request", "An argument has a reserved name or is there twice");
const expired = () => new Refusal(403, "expired", "The grant has expired");
export const tooLarge = () => new Refusal(413, "too_large", "The body is too large");
export const unread = () => new Refusal(400, "bad_request", "The body could not be read");

const intentForm =
  /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}) ([A-Za-z0-9._-]{1,128}) (?!\.\.?$)([A-Za-z0-9_.:-]{1,128})$/;
const grantForm = new RegExp(
  "^agentledger/grant/v1\n([^\n]+)\n([a-z0-9_]{1,64})\n([A-Za-z0-9._-]{1,128})\n([0-9a-f]{64})\n([0-9a-f]{64})\n([0-9a-f]{32})\n" +
    "(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)\n(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)\n$",
);

function readTime(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime()) || at.toISOString() !== text) throw new Malformed("grant: times");
  return at.getTime();
}

/** Parses exactly the text of a grant. Throws Malformed. */
function readGrant(text) {
  const parts = grantForm.exec(text);
  if (!parts) throw new Malformed("grant: form");
  const [, origin, approvalId, agent, actionDigest, policyDigest, nonce, from, to] = parts;
  const grant = { origin, approvalId, agent, actionDigest, policyDigest, nonce, notBefore: readTime(from), notAfter: readTime(to) };
  if (grant.notAfter <= grant.notBefore || grant.notAfter - grant.notBefore > life) throw new Malformed("grant: life");
  return grant;
}

/** Returns the organization of an origin: the UUID after /o/, without the number of a later log. */
function organizationOf(origin) {
  return /\/o\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(\/([2-9]|[1-9][0-9]{1,9}))?$/.exec(origin)?.[1];
}

function parseKeys(keys, needed) {
  if (!Array.isArray(keys) || (needed && keys.length === 0) || keys.length > maxKeys) throw new LedgerError(`grants: keys: 1 to ${maxKeys} are needed`);
  return keys.map((text) => {
    const key = parseLogKey(String(text));
    const origin = key.name.endsWith("/grant") ? key.name.slice(0, -"/grant".length) : "";
    const organization = organizationOf(origin);
    if (organization === undefined) throw new LedgerError("grants: keys: not a key of an organization's grants");
    return { key, origin, organization };
  });
}

/** Decodes base64 of at most `most` characters. Throws Malformed. */
function decode(text, most) {
  if (text.length > most) throw new Malformed("base64: too long");
  return fromUTF8(unbase64(text));
}

/** Remembers the nonces of grants until they expire, in the order of use. */
export class Used {
  #entries = new Map(); // expiry by nonce
  #floor = 0; // the latest expiry of a grant that was forgotten

  constructor(most = maxUsed) {
    this.most = most;
  }

  get size() {
    return this.#entries.size;
  }

  /** Remembers a grant, or throws a Refusal. When the clock goes back, grants that were forgotten stay expired. */
  claim({ nonce, notAfter }, now) {
    if (this.#entries.has(nonce)) throw new Refusal(403, "used", "The grant was used before");
    let earliest;
    for (const [first, ends] of this.#entries) {
      earliest = ends;
      if (ends > now) break;
      this.#floor = Math.max(this.#floor, ends);
      this.#entries.delete(first);
    }
    if (notAfter <= this.#floor) throw expired();
    if (this.#entries.size >= this.most) {
      throw new Refusal(503, "full", "Too many grants are in use: repeat the request later", Math.ceil((earliest - now) / 1000));
    }
    this.#entries.set(nonce, notAfter);
  }

  /** Forgets a grant whose action was not permitted, so that it can be used for its own action. */
  release({ nonce }) {
    this.#entries.delete(nonce);
  }
}

/** Checks the requests of one server. */
export class Checker {
  #keys;
  #routes;
  #open;
  #start;
  #now;
  #used = new Used();
  #signs;
  #subjectOf;

  /**
   * With `signs`, a request without a grant is checked if it states its intent. `subjectOf(request)` returns on whose behalf it is
   * made, according to the server.
   */
  constructor(config, now = Date.now, signs = false, subjectOf = () => undefined) {
    this.#subjectOf = subjectOf;
    ({ routes: this.#routes, open: this.#open } = compileRoutes(config));
    this.#signs = signs;
    this.#keys = parseKeys(config.keys, this.#routes.some((r) => r.optional !== true));
    this.#now = now;
    this.#start = now();
  }

  /**
   * Resolves to {grant, act, payload, body, parsed} of a request with a grant, to the same without grant of one that states its intent, and
   * to {} of one that passes as it is; throws a Refusal. `act` is the receipt without status and time.
   * `header(name)` returns all values of a header joined by ", ", and `read()` resolves to the body of at most maxBody
   * bytes or throws a Refusal.
   */
  async check({ method, target, header, read, request }) {
    const at = target.indexOf("?");
    const path = at < 0 ? target : target.slice(0, at);
    if (!path.startsWith("/") || target.length > maxTarget) throw new Refusal(400, "bad_request", "The request target must be a path");
    const matched = matchRoute(this.#routes, method, path);
    if (!matched) {
      if (matchRoute(this.#open, method, path)) return {};
      throw new Refusal(403, "not_declared", "No tool is declared for this method and path");
    }
    const asked = { ...matched, method, path, query: at < 0 ? "" : target.slice(at + 1), header, request };
    const signed = header("Agentledger-Grant");
    if (matched.route.optional && signed === "") {
      const intent = header("Agentledger-Intent");
      return intent !== "" && this.#signs ? readAct(asked, parseIntent(intent), "intent", read) : {};
    }
    const { grant, organization } = await this.#openGrant(signed);
    this.#used.claim(grant, this.#now());
    try {
      const { agent, approvalId, nonce, actionDigest } = grant;
      const found = await readAct(asked, { organization, agent, approvalId, nonce }, "grant", read);
      if (digestOf(found.act, found.payload, await this.#subject(request)) !== actionDigest) throw otherAction();
      return { grant, ...found };
    } catch (why) {
      this.#used.release(grant);
      throw why;
    }
  }

  /** Resolves to the canonical text of the subject on whose behalf a request is made, or undefined. */
  async #subject(request) {
    try {
      const subject = await this.#subjectOf(request);
      return subject === undefined || subject === null ? undefined : canonicalize(subject);
    } catch {
      throw otherAction();
    }
  }

  async #openGrant(text) {
    if (text === "") throw new Refusal(403, "grant_required", "This action needs a grant");
    const opened = await this.#openSigned(text).catch(() => undefined);
    if (!opened) throw new Refusal(403, "bad_grant", "The grant is malformed or is not signed by a known key");
    const now = this.#now();
    const { notBefore, notAfter } = opened.grant;
    if (now >= notAfter) throw expired();
    if (now + leeway < notBefore) throw new Refusal(403, "not_yet", "The grant is not valid yet: compare the clocks");
    if (notBefore <= this.#start + leeway) {
      throw new Refusal(403, "before_start", "The grant is older than this process, which can't know whether it was used");
    }
    return opened;
  }

  async #openSigned(text) {
    const note = parseNote(decode(text, maxGrant));
    const known = this.#keys.find(({ key }) => note.lines.some((line) => key.owns(line)));
    if (!known) return undefined;
    await checkSigned(note, known.key);
    const grant = readGrant(note.text);
    return grant.origin === known.origin ? { grant, organization: known.organization } : undefined;
  }
}

/** Another charset could have another meaning for the server. */
const mediaType = /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

/** Returns what a request without a grant states about itself. */
function parseIntent(text) {
  const parts = intentForm.exec(text);
  if (!parts) throw new Refusal(400, "bad_request", "Agentledger-Intent must be an organization, an agent and an event");
  const [, organization, agent, intentEventId] = parts;
  return { organization, agent, intentEventId };
}

/** Resolves to {act, payload, body, parsed}: `who` with tool and digest of the request's act without a subject. `of` has its payload. */
async function readAct(asked, who, of, read) {
  const coding = asked.header("Content-Encoding");
  if (coding !== "" && coding.toLowerCase() !== "identity") throw new Refusal(415, "unsupported_body", "Content-Encoding must be identity");
  const body = await read();
  const { tool, exact, parsed } = await describe(asked, body);
  let payload;
  try {
    payload = payloadText(recordMembers(exact));
  } catch {
    throw noObject();
  }
  const call = asked.header("Agentledger-Call");
  if (call !== "") payload = checkCall(call, exact, of);
  const act = { ...who, tool };
  return { act: { ...act, actionDigest: digestOf(act, payload) }, payload, body, parsed };
}

/** Returns the digest of an action with a payload and, if there is one, a subject, which are canonical texts. */
function digestOf(act, payload, subject) {
  const [agent, organization, tool] = [act.agent, act.organization, act.tool].map((value) => JSON.stringify(value));
  const [behalf, version] = subject === undefined ? ["", 1] : [`"on_behalf_of":${subject},`, 2];
  return sha256hex(`{"agent_id":${agent},${behalf}"organization_id":${organization},"payload":${payload},"tool_name":${tool},"v":${version}}`);
}

/** Resolves to the tool of a request and its arguments in exact form. */
async function describe({ route, method, path, query, header, parameters, request }, body) {
  if (route.host) {
    const members = { method, host: route.host, path, query, body_sha256: sha256hex(body) };
    return { tool: "http." + method.toLowerCase(), exact: canonicalizeExact(members) };
  }
  if (route.describe) {
    let exact;
    try {
      exact = canonicalizeExact(await route.describe(request, body));
    } catch {
      throw new Refusal(400, "bad_request", "The request does not describe an action");
    }
    return { tool: route.tool, exact: canonicalizeExact(readArguments(exact)) };
  }
  if (query !== "") throw new Refusal(400, "bad_request", "A query is not part of this action");
  const type = header("Content-Type");
  if (body.length > 0 && type !== "" && !mediaType.test(type)) throw new Refusal(415, "unsupported_body", "Content-Type must be application/json");
  const given = readArguments(body.length > 0 ? body : "{}");
  const parsed = body.length > 0 ? JSON.parse(fromUTF8(body)) : {};
  for (const [name, value] of parameters) {
    if (Object.hasOwn(given, name)) throw reservedName();
    given[name] = value;
  }
  return { tool: route.tool, exact: canonicalizeExact(given), parsed };
}

/** Returns the members of a JSON object. */
function readArguments(text) {
  let given;
  try {
    given = parseExact(text);
  } catch {
    throw noObject();
  }
  if (given === null || typeof given !== "object" || Array.isArray(given) || Object.getPrototypeOf(given) !== null) throw noObject();
  if (reserved.some((name) => Object.hasOwn(given, name))) throw reservedName();
  return given;
}

/**
 * Returns the payload of a guarded call in canonical form, if it is of a call with these arguments: it records them, or
 * it has their digest and records some of them.
 */
function checkCall(call, exact, of) {
  let got;
  let want;
  let payload;
  let members;
  try {
    const value = parse(decode(call, maxCall));
    if (value === null || typeof value !== "object" || Array.isArray(value)) throw otherAction();
    rewrite({ payload: value }); // not too deep for an event
    payload = rewrite(value);
    const { phase, call_id: callId, salt, input_digest: digest, ...rest } = value;
    members = rest;
    if (digest !== undefined && digest !== sha256hex(exact)) throw otherAction();
    got = rewrite(members);
    want = payloadText(recordMembers(exact, digest === undefined ? undefined : Object.keys(members)));
  } catch {
    throw otherAction(of);
  }
  if (got !== want) throw otherAction(of);
  return payload;
}

