// Throughput of 64 callers through one client beside raw batches of the same events, in turns, on loopback: npm run bench.
// It starts a server of its own, and ends by itself. Processor times are of this process and, on Linux, of the server's.

import { readFileSync } from "node:fs";
import { Server, clientOf } from "../test/harness.js";

const callers = 64;
const events = 3200; // in one run
const rounds = 15;

const event = (i) => ({ action_kind: "tool_call", trace_id: "trc-" + (i % callers), payload: { i, text: "x".repeat(600) } });

async function throughClient(client) {
  let next = 0;
  const caller = async () => {
    while (next < events) await client.send(event(next++));
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

const signSome = (client, from, n) => Promise.all(Array.from({ length: n }, (_, i) => client.sign(event(from + i))));

function post(client, signed) {
  const body = signed.map((e) => e.text + "\n").join("");
  return client.transport.call({ method: "POST", path: "/v1/ingest/events/batch", body, media: "application/x-ndjson", ingest: true });
}

/** Batches of events that were signed before. */
async function rawBatches(client, signed) {
  for (let i = 0; i < events; i += callers) await post(client, signed.slice(i, i + callers));
}

/** Batches whose events are signed one batch after the other: the client's work without its queue and callers. */
async function signedBatches(client) {
  for (let i = 0; i < events; i += callers) await post(client, await signSome(client, i, callers));
}

/** The processor time of a process so far, in µs; NaN where there is no /proc. */
function processorTime(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10_000; // ticks of 10 ms
  } catch {
    return NaN;
  }
}

/** Resolves to µs for each event: of the clock, of this process, of the server. */
async function measure(server, run) {
  const [ours, theirs, began] = [process.cpuUsage(), processorTime(server.pid), performance.now()];
  await run();
  const wall = (performance.now() - began) * 1000;
  const { user, system } = process.cpuUsage(ours);
  return [wall, user + system, processorTime(server.pid) - theirs].map((us) => us / events);
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

const server = await Server.start({ activate: false });
try {
  const client = clientOf(server.acme);
  let signed = [];
  const runs = {
    "raw batches, signed before": () => rawBatches(client, signed),
    "64 callers, signing included": () => throughClient(client),
    "batches by one loop, signing included": () => signedBatches(client),
    "signing alone": () => signSome(client, 0, events),
  };
  const taken = Object.fromEntries(Object.keys(runs).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const [name, run] of Object.entries(runs)) {
      signed = name.startsWith("raw") ? await signSome(client, 0, events) : [];
      const took = await measure(server, run);
      if (round > 0) taken[name].push(took); // the first one warms up
    }
  }
  await client.close();
  const [raw] = Object.values(taken);
  for (const [name, all] of Object.entries(taken)) {
    const ratio = median(all.map(([wall], i) => raw[i][0] / wall)); // within each round, because load comes and goes
    const [wall, ours, theirs] = [0, 1, 2].map((n) => median(all.map((took) => took[n])));
    console.log(`${name}: ${(1e6 / wall).toFixed(0)} events/s, ratio ${ratio.toFixed(2)}; µs of a processor: client ${ours.toFixed(0)}, server ${theirs.toFixed(0)}`);
  }
} finally {
  await server.close();
}
