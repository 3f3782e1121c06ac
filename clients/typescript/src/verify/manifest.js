// The manifest of an evidence pack, and the documents whose content is an unverified operator claim.

import { fromMultikey, fromUTF8 } from "../bytes.js";
import { parse } from "../canonical/parse.js";
import { rewrite } from "../canonical/write.js";
import { Malformed, Mismatch } from "../errors.js";
import { parseLogKey } from "../log/note.js";
import { isColumn } from "./acts.js";
import { isBefore } from "./bundle.js";
import { checkForm, is, isObject, listOf, orNull } from "./forms.js";

const decimal = is.matches(/^(0|[1-9][0-9]{0,15})$/);
const bound = (v) => is.time(v) || (decimal(v) && Number.isSafeInteger(Number(v)));
const globForm = /^(?:(?:[A-Za-z0-9_:/-]+|\*)(?:\.(?:[A-Za-z0-9_:/-]+|\*))*(?:\.\*\*)?|\*\*)$/;
const glob = (v) => is.matches(globForm)(v) && v.length <= 256;

const manifestForms = {
  v: is.one,
  origin: is.text,
  organization_id: is.lowerUUID,
  request: isObject,
  begin: is.natural,
  end: is.natural,
  tree_size: is.natural,
  root_hash: is.hash,
  edge: listOf(is.hash),
  prev: orNull(is.hash),
  consistency: listOf(is.hash),
  counts: isObject,
  acts: isObject,
  files: listOf(isObject),
};
const requestForms = {
  from: orNull(bound),
  to: orNull(bound),
  agent_id: orNull(is.agentId),
  tool: orNull(glob),
  trace_id: orNull(is.id),
  envelopes: is.bool,
  coverage: is.oneOf(true),
  on_behalf_of: is.someText,
  issuer: is.someText,
};
const countNames = ["entries", "records", "envelopes", "approvals", "erasures", "erased", "agents", "policies"];
const countForms = Object.fromEntries(countNames.map((n) => [n, is.natural]));

/** Parses the canonical text of an object with exactly these members. */
export function canonicalObject(source, forms, options) {
  const text = typeof source === "string" ? source : fromUTF8(source);
  const value = parse(text);
  if (rewrite(value) !== text) throw new Malformed("not the exact canonical form");
  checkForm(value, forms, options);
  return value;
}

/**
 * Parses the manifest and compares every other file with it. Resolves to the manifest and its SHA-256 in hex. No
 * content counts before this.
 */
export async function readManifest(archive) {
  const raw = await archive.content("manifest.json", 1 << 20);
  const m = canonicalObject(raw, manifestForms, { optional: ["acts"] });
  checkForm(m.request, requestForms, { optional: ["coverage", "on_behalf_of", "issuer"] });
  if (m.request.coverage && !m.request.envelopes) throw new Malformed("request: coverage without envelopes");
  if (m.request.issuer !== undefined && m.request.on_behalf_of === undefined) throw new Malformed("request: issuer");
  checkForm(m.counts, { ...countForms, voter_keys: is.positive }, { optional: ["voter_keys"] });
  if (Object.hasOwn(m.counts, "voter_keys") !== archive.files.has("voters.ndjson")) throw new Mismatch("counts: voter_keys");
  checkActs(m, archive);
  if (m.begin > m.end || m.end > m.tree_size || m.end - m.begin > 1e6) throw new Malformed("manifest.json: range");
  if ((m.prev === null) !== (m.begin === m.end)) throw new Malformed("manifest.json: prev");
  await checkFiles(m, archive);
  checkRequest(m);
  return { manifest: m, digest: await archive.digest("manifest.json") };
}

function checkActs(m, archive) {
  if (Object.hasOwn(m, "acts") !== archive.files.has("acts.ndjson")) throw new Mismatch("acts and the files");
  if (m.acts === undefined) return;
  checkForm(m.acts, { columns: listOf(isColumn), lines: is.natural });
  const { columns } = m.acts;
  if (columns.length > 8 || new Set(columns).size !== columns.length) throw new Malformed("acts: columns");
  if (columns.length > 0 && !m.request.envelopes) throw new Malformed("acts: columns without envelopes");
}

async function checkFiles(m, archive) {
  const names = [...archive.files.keys()].filter((n) => n !== "manifest.json");
  if (m.files.length !== names.length) throw new Mismatch("files and the manifest");
  for (const [i, f] of m.files.entries()) {
    checkForm(f, { name: is.text, sha256: is.hash, size: is.natural });
    const digest = await archive.digest(names[i]); // fails if the container states another size than the content has
    if (f.name !== names[i] || f.size !== archive.files.get(names[i]).size) throw new Mismatch(`name and size of file ${i + 1}`);
    if (f.sha256 !== digest) throw new Mismatch(`digest of ${f.name}`);
  }
}

function checkRequest(m) {
  const { from, to } = m.request;
  const natural = (v) => v !== null && decimal(v);
  if (from === null && m.begin !== 0) throw new Mismatch("request: from and begin");
  if (to === null && m.end !== m.tree_size) throw new Mismatch("request: to and end");
  if (natural(from) && m.begin !== Number(from)) throw new Mismatch("request: from and begin");
  if (natural(to) && m.end !== Math.min(Number(to), m.tree_size)) throw new Mismatch("request: to and end");
}

/** Reports whether a request may withhold events of the range. */
export function filters({ agent_id: agent, tool, trace_id: trace, on_behalf_of: subject }) {
  return agent !== null || tool !== null || trace !== null || subject !== undefined;
}

/** Reports whether on_behalf_of of an envelope is of the subject, and of the issuer unless that is undefined. */
export function fitsSubject({ on_behalf_of: subject, issuer }, of) {
  return isObject(of) && of.subject === subject && (issuer === undefined || of.issuer === issuer);
}

/** Reports whether a tool matches the glob of a request. */
export function fitsTool(pattern, tool) {
  if (tool === undefined) return false;
  const [wanted, have] = [pattern.split("."), tool.split(".")];
  if (wanted.at(-1) === "**") {
    wanted.pop();
    wanted.push(...new Array(Math.max(1, have.length - wanted.length)).fill("*"));
  }
  return wanted.length === have.length && wanted.every((w, i) => w === "*" || w === have[i]);
}

/** Checks keys.json, and returns the keys with their sizes. */
export function readPackKeys(raw) {
  const form = { vkey: is.text, use: is.oneOf("log"), from_size: is.natural, to_size: orNull(is.natural) };
  const { keys } = canonicalObject(raw, { keys: listOf(isObject) });
  if (keys.length === 0) throw new Malformed("keys.json: no key");
  return keys.map((k) => {
    checkForm(k, form);
    if (k.to_size !== null && k.from_size > k.to_size) throw new Malformed("keys.json: sizes");
    return { key: parseLogKey(k.vkey), from: BigInt(k.from_size), to: k.to_size === null ? undefined : BigInt(k.to_size) };
  });
}

const agentForms = { agent_id: is.text, display_name: orNull(is.text), keys: listOf(isObject) };
const agentKeyForms = {
  key_id: is.text,
  public_key: is.text,
  did: is.text,
  custody: is.oneOf("agent", "server"),
  status: is.oneOf("active", "retired", "revoked"),
  registered_at: is.time,
  ended_at: orNull(is.time),
  compromised_from: orNull(is.natural),
};

/** Parses agents.json: the keys of each agent, as key ID LF Multikey. */
export function readAgents(raw) {
  const found = new Map();
  let last = "";
  for (const a of canonicalObject(raw, { agents: listOf(isObject) }).agents) {
    checkForm(a, agentForms);
    if (!isBefore(last, a.agent_id)) throw new Malformed("agents.json: order");
    found.set((last = a.agent_id), readAgentKeys(a.keys));
  }
  if (found.size > 10_000) throw new Malformed("agents.json: number");
  return found;
}

function readAgentKeys(listed) {
  const keys = new Set();
  let last = "";
  for (const k of listed) {
    checkForm(k, agentKeyForms);
    fromMultikey(k.public_key);
    if (!isBefore(last, k.key_id) || k.did !== "did:key:" + k.public_key) throw new Malformed("agents.json: keys");
    keys.add((last = k.key_id) + "\n" + k.public_key);
  }
  return keys;
}
