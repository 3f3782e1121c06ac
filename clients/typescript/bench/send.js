// Throughput of 64 callers through one client beside raw batches of the same events, in turns, on loopback.
// It starts a server of its own, and ends by itself.

import { Server, clientOf } from "../test/harness.js";

const callers = 64;
const events = 6400; // in one run
const rounds = 5;

const event = (i) => ({ action_kind: "tool_call", trace_id: "trc-" + (i % callers), payload: { i, text: "x".repeat(600) } });

async function throughClient(client) {
  let next = 0;
  const caller = async () => {
    while (next < events) await client.send(event(next++));
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, caller));
  return performance.now() - began;
}

const signSome = (client, from, n) => Promise.all(Array.from({ length: n }, (_, i) => client.sign(event(from + i))));

function post(client, signed) {
  const body = signed.map((e) => e.text + "\n").join("");
  return client.transport.call({ method: "POST", path: "/v1/ingest/events/batch", body, media: "application/x-ndjson", ingest: true });
}

/** Batches of events that were signed before. */
async function rawBatches(client) {
  const signed = await signSome(client, 0, events);
  const began = performance.now();
  for (let i = 0; i < events; i += callers) await post(client, signed.slice(i, i + callers));
  return performance.now() - began;
}

/** Batches whose events are signed one batch after the other: the client's work without its queue and callers. */
async function signedBatches(client) {
  const began = performance.now();
  for (let i = 0; i < events; i += callers) await post(client, await signSome(client, i, callers));
  return performance.now() - began;
}

async function signing(client) {
  const began = performance.now();
  await signSome(client, 0, events);
  return performance.now() - began;
}

const rate = (ms) => (events * 1000) / ms;
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const server = await Server.start({ activate: false });
try {
  const client = clientOf(server.acme);
  const [own, raw, fresh, signed] = [[], [], [], []];
  for (let round = 0; round < rounds; round++) {
    own.push(rate(await throughClient(client)));
    raw.push(rate(await rawBatches(client)));
    fresh.push(rate(await signedBatches(client)));
    signed.push(rate(await signing(client)));
  }
  await client.close();
  const [a, b, c, d] = [own, raw, fresh, signed].map(median);
  console.log(`${callers} callers ${a.toFixed(0)} events/s; raw batches of ${callers}, signed before, ${b.toFixed(0)}: ratio ${(a / b).toFixed(2)}`);
  console.log(`the same signed within the run ${c.toFixed(0)}: ratio ${(a / c).toFixed(2)}; signing alone ${d.toFixed(0)}`);
} finally {
  await server.close();
}
