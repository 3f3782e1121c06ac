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

async function rawBatches(client) {
  const signed = await Promise.all(Array.from({ length: events }, (_, i) => client.sign(event(i))));
  const began = performance.now();
  for (let i = 0; i < events; i += callers) {
    const body = signed.slice(i, i + callers).map((e) => e.text + "\n").join("");
    await client.transport.call({ method: "POST", path: "/v1/ingest/events/batch", body, media: "application/x-ndjson", ingest: true });
  }
  return performance.now() - began;
}

async function signing(client) {
  const began = performance.now();
  await Promise.all(Array.from({ length: events }, (_, i) => client.sign(event(i))));
  return performance.now() - began;
}

const rate = (ms) => (events * 1000) / ms;
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const server = await Server.start({ activate: false });
try {
  const client = clientOf(server.acme);
  const [own, raw, signed] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    own.push(rate(await throughClient(client)));
    raw.push(rate(await rawBatches(client)));
    signed.push(rate(await signing(client)));
  }
  await client.close();
  const [a, b, c] = [own, raw, signed].map(median);
  console.log(`${callers} callers ${a.toFixed(0)} events/s, raw batches of ${callers} ${b.toFixed(0)} events/s, ratio ${(a / b).toFixed(2)}; signing alone ${c.toFixed(0)} events/s`);
} finally {
  await server.close();
}
