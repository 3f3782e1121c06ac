// The tests that every runtime must pass. A program and a worker import them in each runtime.

import { judge } from "../test/judge.js";
import { Client, Denied, Refused, verify } from "../src/index.js";
import { Signer } from "../src/client/signer.js";
import { findNative, signerOf } from "../src/client/sign.js";

/** Runs all tests. `given` has files (the corpus), signing (the vectors of signatures) and two services. Resolves to counts. */
export async function exercise({ files, signing, services }) {
  return { vectors: await judgeAll(files), signatures: await signAll(signing), services: await useAll(services) };
}

async function judgeAll(files) {
  let right = 0;
  for (const { kind, vectors } of files) {
    for (const v of vectors) {
      const { verdict, said } = await judge(kind, v.input);
      expect(verdict, v.verdict, v.name);
      if (v.expect) expect(sorted(said), sorted(v.expect), v.name);
      right++;
    }
  }
  return right;
}

async function signAll({ private_key_b64: key, vectors }) {
  for (const v of vectors) {
    const { organization_id: organization, agent_id: agent, key_id: keyId } = v.envelope;
    const digest = fromHex(v.event_digest);
    expect(await new Signer({ organization, agent, keyId }, key).signBytes(digest), v.sig_value_b64.digest, v.name);
    for (const native of [findNative(), null]) { // null: by WebCrypto
      const own = signerOf(fromBase64(key), native);
      expect(await own.bytes(digest), v.sig_value_b64.digest, v.name);
      expect(await own.event(keyId, v.jcs), v.sig_value_b64.digest, v.name);
    }
  }
  return vectors.length;
}

/** Sends, guards and proves at both services, each of which refuses the other's agent. */
async function useAll(services) {
  const proved = [];
  for (const [i, s] of services.entries()) {
    const client = new Client(s.client);
    const results = await client.sendAll(Array.from({ length: 20 }, (_, n) => ({ action_kind: "step", payload: { n, half: n / 2 } })));
    expect(results.filter((r) => r.status === "created").length, 20, "a batch");
    let acts = 0;
    await client.run({ tool: "acme.mail.send", payload: { to: "ann" }, key: "act-1-" + s.run }, () => acts++);
    await client.run({ tool: "acme.mail.send", payload: { to: "ann" }, key: "act-1-" + s.run }, () => acts++);
    expect(acts, 1, "an act is done once");
    const why = await client.run({ tool: "acme.customers.delete" }, () => acts++).catch((e) => e);
    expect([why instanceof Denied, acts], [true, 1], "a denied act");
    const signed = await client.sign({ action_kind: "note" });
    await client.send(signed);
    const { outcome, text } = await client.log(s.slug, { key: s.logKey }).bundle(signed.eventId, { require: "full" });
    const other = services[1 - i];
    proved.push(outcome, (await verify.bundle(text, { key: other.logKey })).outcome);
    const { org, agent, keyId, key } = other.client;
    const stranger = new Client({ ...s.client, org, agent, keyId, key });
    const refused = await stranger.send({ action_kind: "note" }).catch((e) => e);
    expect([refused instanceof Refused, refused.status], [true, 403], "another organization's agent");
    await client.close();
    await stranger.close();
  }
  return proved;
}

function expect(got, want, what) {
  const [a, b] = [got, want].map((v) => JSON.stringify(v));
  if (a !== b) throw new Error(`${what}: got ${a}, want ${b}`);
}

/** Sorts members, because the files and the judge order them differently. */
function sorted(v) {
  if (typeof v !== "object" || v === null) return v;
  if (Array.isArray(v)) return v.map(sorted);
  return Object.fromEntries(Object.keys(v).sort().map((name) => [name, sorted(v[name])]));
}

const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
