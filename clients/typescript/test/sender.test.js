// The sender: what a request contains, what may be in flight together, and the order within a trace under faults.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Client } from "../src/index.js";
import { Sender } from "../src/client/sender.js";
import { Waiting } from "../src/client/waiting.js";
import { MemoryQueue } from "../src/client/queue.js";
import { Transport } from "../src/client/http.js";

const own = {
  url: "http://log.test",
  token: "apl_test_secret",
  org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
  agent: "agt_a",
  keyId: "key_a",
  key: "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=",
};

const created = (e) => ({ event_id: e.event_id, sequence_num: 1, event_hash: "00", chain_valid: true, status: "created" });
const status = (code, more = {}, headers = {}) => new Response(JSON.stringify(more), { status: code, headers });
const eventsOf = (init) => String(init.body).split("\n").filter(Boolean).map((line) => JSON.parse(line));

function answer(url, events, lineOf = (e) => ({ status_code: 201, ...created(e) })) {
  if (!url.endsWith("/batch")) return new Response(JSON.stringify(created(events[0])), { status: 201 });
  return new Response(events.map((e) => JSON.stringify(lineOf(e))).join("\n"), { headers: { "X-Request-Id": "req-1" } });
}

/** A fetch whose requests wait for `answer` to be called: `requests` are {url, events, answer}. */
function heldService() {
  const requests = [];
  const watchers = [];
  const fetch = (url, init) =>
    new Promise((resolve, reject) => {
      init.signal.addEventListener("abort", () => reject(init.signal.reason));
      requests.push({ url, events: eventsOf(init), answer: () => resolve(answer(url, eventsOf(init))) });
      watchers.splice(0).forEach((watcher) => watcher());
    });
  const arrived = async (n) => {
    while (requests.length < n) await new Promise((resolve) => watchers.push(resolve));
    await new Promise((resolve) => setTimeout(resolve, 20)); // one too many would arrive by now
    assert.equal(requests.length, n);
    return requests[n - 1];
  };
  return { fetch, requests, arrived };
}

const note = (trace_id, i) => ({ action_kind: "note", trace_id, payload: { i } });

test("events of one turn are one request, and events that are returned together are one again", async () => {
  for (const native of [true, false]) {
    const sizes = [];
    const fetch = async (url, init) => (sizes.push(eventsOf(init).length), answer(url, eventsOf(init)));
    const client = native ? new Client({ ...own, fetch }) : withoutNative(() => new Client({ ...own, fetch }));
    let next = 0;
    const caller = async () => {
      while (next < 64 * 5) await client.send(note("trc-" + (next % 64), next++));
    };
    await Promise.all(Array.from({ length: 64 }, caller));
    assert.deepEqual(sizes, [64, 64, 64, 64, 64]);
    await client.close();
  }
});

/** Makes a client that signs with WebCrypto. */
function withoutNative(make) {
  const { getBuiltinModule } = process;
  process.getBuiltinModule = undefined;
  try {
    return make();
  } finally {
    process.getBuiltinModule = getBuiltinModule;
  }
}

test("a second request is sent in parallel if it is as large, and a third one waits", async () => {
  const { fetch, arrived } = heldService();
  const client = new Client({ ...own, fetch });
  const all = [];
  const give = (n, trace) => {
    for (let i = 0; i < n; i++) all.push(client.send(note(trace ?? `trc-${all.length}`, all.length)));
  };
  give(3);
  const first = await arrived(1);
  assert.equal(first.events.length, 3);
  give(2);
  await arrived(1);
  give(4);
  const second = await arrived(2);
  assert.equal(second.events.length, 6);
  give(2);
  await arrived(2);
  give(7);
  await arrived(2);
  second.answer();
  const third = await arrived(3);
  assert.equal(third.events.length, 9);
  first.answer();
  third.answer();
  assert.equal((await Promise.all(all)).filter((r) => r.status === "created").length, 18);
  await client.close();
});

test("an event waits while its trace has one in flight, and others overtake it", async () => {
  const { fetch, requests, arrived } = heldService();
  const client = new Client({ ...own, fetch });
  const first = client.send(note("a", 1));
  await arrived(1);
  const rest = [client.send(note("a", 2)), client.send(note("b", 3)), client.send(note("a", 4))];
  const second = await arrived(2);
  assert.deepEqual(second.events.map((e) => e.trace_id), ["b"]);
  requests[0].answer();
  const third = await arrived(3);
  assert.deepEqual(third.events.map((e) => e.payload.i), [2, 4]);
  second.answer();
  third.answer();
  await Promise.all([first, ...rest]);
  await client.close();
});

/** Numbers from 0 to below n, from a linear congruential generator, so that a failure can be reproduced. */
function seededRandom(seed) {
  let state = seed * 2654435761 + 12345;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** A service that answers late, loses answers and refuses, and records what it stores. */
function faultyService(random) {
  const stored = [];
  const out = [];
  const fetch = async (url, init) => {
    const events = eventsOf(init);
    const traces = new Set(events.map((e) => e.trace_id));
    assert.ok(out.length < 2, "three requests are out");
    for (const other of out) for (const t of traces) assert.ok(!other.has(t), `${t} is out twice`);
    out.push(traces);
    for (let i = random(4); i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
    const fault = random(6);
    const refused = fault === 0 ? random(events.length) : events.length; // of a batch, the lines from here on
    if (fault !== 1) for (const e of events.slice(0, refused)) if (!stored.some((s) => s.event_id === e.event_id)) stored.push(e);
    await new Promise((resolve) => setImmediate(resolve));
    out.splice(out.indexOf(traces), 1);
    if (fault === 1) return status(503);
    if (fault === 2) throw new TypeError("fetch failed"); // stored, and the answer is lost
    if (refused === 0 && !url.endsWith("/batch")) return status(503);
    return answer(url, events, (e) => (events.indexOf(e) < refused ? { status_code: 201, ...created(e) } : { status_code: 503 }));
  };
  return { fetch, stored };
}

test("under any faults each event is stored once, and each trace in order", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed);
    const { fetch, stored } = faultyService(random);
    const client = new Client({ ...own, fetch, retry: { attempts: 1000, sleep: () => new Promise((resolve) => setImmediate(resolve)) } });
    const all = [];
    for (let i = 0; i < 80; i++) {
      all.push(client.send(note("trc-" + random(1 + (seed % 9)), i)));
      if (random(3) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(all);
    await client.flush();
    assert.deepEqual(stored.map((e) => e.payload.i).sort((a, b) => a - b), all.map((_, i) => i), `seed ${seed}`);
    const last = new Map();
    for (const { trace_id: trace, payload } of stored) {
      assert.ok(payload.i > (last.get(trace) ?? -1), `seed ${seed}: ${trace}`);
      last.set(trace, payload.i);
    }
    await client.close();
  }
});

/** What Waiting promises, in its simplest form: one list in the order of push, which is searched from its front. */
class NaiveWaiting {
  items = [];
  out = new Set();

  take(lines, bytes) {
    const free = this.items.filter((item) => !this.out.has(item.trace));
    const taken = [];
    let used = 0;
    for (const item of free) {
      used += item.size;
      if (taken.length === lines || (taken.length > 0 && used > bytes)) break;
      taken.push(item);
    }
    this.items = this.items.filter((item) => !taken.includes(item));
    for (const item of taken) this.out.add(item.trace);
    return taken;
  }

  giveBack(taken, again) {
    for (const item of taken) this.out.delete(item.trace);
    this.items = [...this.items, ...again].sort((a, b) => a.step - b.step);
  }
}

test("waiting events are taken like from a plain list", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = seededRandom(seed);
    const [waiting, naive] = [new Waiting(), new NaiveWaiting()];
    const out = [];
    const bounded = seed % 2 === 0; // then which traces a full request takes is Waiting's own choice
    for (let step = 0; step < 200; step++) {
      const what = random(4);
      if (what < 2) {
        const item = { trace: "t" + random(6), size: 1 + random(9), step };
        waiting.push(item);
        naive.items.push(item);
      } else if (what === 2) {
        const [lines, bytes] = bounded ? [1 + random(5), 1 + random(20)] : [Infinity, Infinity];
        const got = waiting.take(lines, bytes);
        const total = got.reduce((n, item) => n + item.size, 0);
        assert.ok(got.length <= lines && (got.length <= 1 || total <= bytes), `seed ${seed}`);
        const want = naive.take(lines, bytes);
        assert.equal(got.length > 0, want.length > 0, `seed ${seed}`);
        if (!bounded) assert.deepEqual(got, want, `seed ${seed}`);
        if (bounded) takeOver(naive, want, got);
        if (got.length > 0) out.push(got);
      } else if (out.length > 0) {
        const [taken] = out.splice(random(out.length), 1);
        const again = taken.filter(() => random(3) === 0);
        waiting.giveBack(taken, again);
        naive.giveBack(taken, again);
      }
      assert.equal(waiting.size, naive.items.length, `seed ${seed}`);
      assert.equal(waiting.free, naive.items.filter((item) => !naive.out.has(item.trace)).length, `seed ${seed}`);
    }
    assert.deepEqual(new Set(waiting.clear()), new Set(naive.items));
  }
});

/** Undoes a take of the simple list and takes what the other one took, which must be the front of each of its traces. */
function takeOver(naive, want, got) {
  naive.giveBack(want, want);
  for (const item of got) {
    assert.ok(!naive.out.has(item.trace));
    assert.equal(naive.items.find((other) => other.trace === item.trace), item);
    naive.items.splice(naive.items.indexOf(item), 1);
  }
  for (const item of got) naive.out.add(item.trace);
}

test("a request has at most 1,000 events and 8 MiB", async () => {
  const sizes = [];
  const fetch = async (url, init) => {
    sizes.push([eventsOf(init).length, String(init.body).length]);
    return answer(url, eventsOf(init));
  };
  const sender = new Sender(new Transport({ ...own, fetch }), new MemoryQueue());
  const signed = (n, padding) => ({ eventId: "evt_" + n, traceId: "trc-" + n, text: JSON.stringify({ event_id: "evt_" + n, padding }) });
  const large = "x".repeat(100_000);
  const all = [];
  for (let n = 0; n < 2500; n++) all.push(sender.add(signed(n)));
  await Promise.all((await Promise.all(all)).map(({ stored }) => stored));
  assert.deepEqual(sizes.map(([n]) => n), [1000, 1000, 500]);
  sizes.length = 0;
  const more = Array.from({ length: 100 }, (_, n) => sender.add(signed(n, large)));
  await Promise.all((await Promise.all(more)).map(({ stored }) => stored));
  assert.equal(sizes.reduce((n, [lines]) => n + lines, 0), 100);
  assert.ok(sizes.every(([, bytes]) => bytes <= 8 << 20), String(sizes));
  await sender.close();
});

test("a refused event that nobody waits for is told once", async () => {
  const warned = [];
  const { warn } = console;
  console.warn = (...words) => warned.push(words.join(" "));
  try {
    const fetch = async () => status(422, { error: "Invalid signature" }, { "X-Request-Id": "req-1" });
    const client = new Client({ ...own, fetch });
    await client.enqueue(note("a", 1));
    await client.flush();
    await assert.rejects(client.send(note("a", 2)), { status: 422 });
    const { stored } = await client.enqueue(note("a", 3));
    await assert.rejects(stored, { status: 422 });
    await client.close();
    assert.equal(warned.length, 1);
    assert.match(warned[0], /^agentledger: a queued event will not be sent again: refused with status 422: Invalid signature/);
  } finally {
    console.warn = warn;
  }
});

test("a listener's error stops nothing, and its message is not printed", async () => {
  const warned = [];
  const { warn } = console;
  console.warn = (...words) => warned.push(words.join(" "));
  try {
    const faults = [() => { throw new TypeError(own.token); }, async () => { throw new TypeError(own.token); }];
    for (const onRefused of faults) {
      const fetch = async (url, init) => answer(url, eventsOf(init), (e) => (e.payload.i === 0 ? { status_code: 422, error: "Invalid signature" } : { status_code: 201, ...created(e) }));
      const client = new Client({ ...own, fetch, onRefused });
      const [first, ...others] = await client.sendAll([0, 1, 2].map((i) => note("a", i)));
      assert.equal(first.error.status, 422);
      assert.deepEqual(others.map((r) => r.status), ["created", "created"]);
      await client.close();
      const guarded = new Client({ ...own, fetch: async (url, init) => {
        const [e] = eventsOf(init);
        return e.payload.phase === "intent" ? answer(url, [e]) : status(422, { error: "Invalid signature" }, { "X-Request-Id": "req-1" });
      }, guard: { onTrouble: onRefused } });
      assert.equal((await guarded.run({ tool: "acme.mail.send" }, () => "sent")).output, "sent");
      await guarded.close();
    }
    assert.deepEqual(warned, [...Array(2)].flatMap(() => ["agentledger: onRefused failed: TypeError", "agentledger: onTrouble failed: TypeError"]));
  } finally {
    console.warn = warn;
  }
});

test("after close no event is accepted, and what remains is reported", async () => {
  const { fetch, arrived } = heldService();
  const client = new Client({ ...own, fetch });
  const [out, waits] = [client.send(note("a", 1)), client.send(note("b", 2))];
  await arrived(1);
  const later = client.send(note("a", 3));
  await assert.rejects(client.close(20), /deadline has passed, 3 events are left/);
  for (const left of [out, waits, later]) await assert.rejects(left, /closed before the event was sent/);
  await assert.rejects(client.send(note("c", 4)), /the client is closed/);
});

test("requests leave no listener at the signal of their caller, and end with it", async () => {
  const { signal } = new AbortController();
  const fetch = async (url, init) => answer(url, eventsOf(init));
  const client = new Client({ ...own, fetch, timeoutMs: 1e6 });
  for (let i = 0; i < 100; i++) await client.run({ tool: "acme.mail.send", signal }, () => "sent");
  assert.deepEqual(getEventListeners(signal, "abort"), []);
  await client.close();
  const stop = new AbortController();
  const hang = ({ signal: s }) => new Promise((_, reject) => (s.aborted ? reject(s.reason) : s.addEventListener("abort", () => reject(s.reason))));
  const hanging = new Client({ ...own, fetch: (url, init) => hang(init) });
  const asked = hanging.evaluate({ tool: "acme.mail.send", signal: stop.signal });
  stop.abort();
  await assert.rejects(asked, /no connection, or it was lost/);
  await assert.rejects(hanging.evaluate({ tool: "acme.mail.send", signal: AbortSignal.abort() }), /no connection/);
  const late = new Client({ ...own, fetch: hanging.transport.send, timeoutMs: 5, retry: { attempts: 1 } });
  await assert.rejects(late.evaluate({ tool: "acme.mail.send" }), /no answer in time/);
});

test("flush waits for events that are not signed yet", async () => {
  const sent = [];
  const fetch = async (url, init) => (sent.push(...eventsOf(init)), answer(url, eventsOf(init)));
  const client = new Client({ ...own, fetch });
  client.send(note("a", 1));
  await client.flush();
  assert.equal(sent.length, 1);
  await client.close();
});

/** Resolves when a condition holds. */
async function until(holds) {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

test("a request that hangs holds back only its own traces", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { fetch, requests } = heldService();
  const client = new Client({ ...own, fetch });
  const hanging = [];
  for (const trace of ["a", "b"]) {
    hanging.push(client.send(note(trace, 1)));
    await until(() => requests.length === hanging.length);
  }
  const later = client.send(note("a", 2));
  const other = client.send(note("c", 3));
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(requests.length, 2);
  t.mock.timers.tick(1000);
  await until(() => requests.length === 3);
  assert.deepEqual(requests[2].events.map((e) => e.trace_id), ["c"]);
  requests[2].answer();
  await other;
  assert.equal(requests.length, 3);
  requests[0].answer();
  await until(() => requests.length === 4);
  assert.deepEqual(requests[3].events.map((e) => e.payload.i), [2]);
  requests[1].answer();
  requests[3].answer();
  await Promise.all([...hanging, later]);
  await client.close();
});

test("an event that a proxy never lets through is retried alone, and the others are stored", async () => {
  const stored = [];
  const warned = [];
  const { warn } = console;
  console.warn = (...words) => warned.push(words.join(" "));
  try {
    let blocked = true;
    const fetch = async (url, init) => {
      const events = eventsOf(init);
      if (blocked && events.some((e) => e.payload.i === 20)) return new Response("<html>", { status: 403 });
      stored.push(...events.map((e) => e.payload.i));
      return answer(url, events);
    };
    const sleep = () => new Promise((resolve) => setImmediate(resolve));
    const client = new Client({ ...own, fetch, retry: { sleep } });
    for (let i = 0; i < 64; i++) await client.enqueue(note("trc-" + (i % 50), i));
    await until(() => stored.length === 63);
    assert.ok(!stored.includes(20));
    await client.enqueue(note("trc-20", 100));
    await client.enqueue(note("trc-21", 101));
    await until(() => stored.includes(101));
    assert.ok(!stored.includes(100));
    blocked = false;
    await client.flush();
    assert.equal(new Set(stored).size, 66);
    assert.ok(stored.indexOf(100) > stored.indexOf(20));
    assert.match(warned[0], /events were not delivered, and are sent again later/);
    await client.close();
  } finally {
    console.warn = warn;
  }
});

test("however many events a proxy never lets through, the others are stored", async () => {
  const { warn } = console;
  console.warn = () => {};
  try {
    const stored = [];
    let requests = 0;
    let blocked = true;
    const fetch = async (url, init) => {
      const events = eventsOf(init);
      requests++;
      if (blocked && events.some((e) => e.payload.i < 5)) return new Response("<html>", { status: 403 });
      stored.push(...events.map((e) => e.payload.i));
      return answer(url, events);
    };
    const sleep = () => new Promise((resolve) => setImmediate(resolve));
    const client = new Client({ ...own, fetch, retry: { sleep } });
    for (let i = 0; i < 10; i++) await client.enqueue(note("trc-" + i, i));
    await until(() => stored.length === 5 || requests > 1000);
    await client.enqueue(note("trc-10", 10));
    await until(() => stored.length === 6 || requests > 2000);
    assert.deepEqual(stored.toSorted((a, b) => a - b), [5, 6, 7, 8, 9, 10]);
    blocked = false;
    await client.flush();
    assert.equal(new Set(stored).size, 11);
    await client.close();
  } finally {
    console.warn = warn;
  }
});

test("an event that a proxy blocks does not fail the others of its request", async () => {
  for (const blockedAnswer of [() => new Response("<html>", { status: 403 }), () => new Response("<html>")]) {
    const fetch = async (url, init) => {
      const events = eventsOf(init);
      return events.some((e) => e.payload.i === 20) ? blockedAnswer() : answer(url, events);
    };
    const client = new Client({ ...own, fetch });
    const outcomes = await Promise.allSettled(Array.from({ length: 64 }, (_, i) => client.send(note("trc-" + i, i))));
    assert.deepEqual(outcomes.flatMap((o, i) => (o.status === "rejected" ? [i] : [])), [20]);
    assert.equal(client.pending, 0);
    await client.close();
  }
});

test("the service's answer about the sender is not repeated event by event", async () => {
  for (const [code, headers] of [[403, { "X-Request-Id": "req-1" }], [401, {}], [429, {}], [500, {}]]) {
    let requests = 0;
    const fetch = async () => (requests++, status(code, { error: "The ingest key is not for this agent" }, headers));
    const client = new Client({ ...own, fetch });
    const outcomes = await Promise.allSettled([0, 1, 2].map((i) => client.send(note("trc-" + i, i))));
    assert.deepEqual(outcomes.map((o) => o.reason?.status), [code, code, code]);
    assert.equal(requests, 1);
    await client.close();
  }
});

test("requests that were made smaller after a 413 become larger again", async () => {
  let limit = 100;
  const sizes = [];
  const fetch = async (url, init) => {
    const events = eventsOf(init);
    if (events.length > limit) return status(413);
    sizes.push(events.length);
    return answer(url, events);
  };
  const sender = new Sender(new Transport({ ...own, fetch }), new MemoryQueue());
  const send = async () => {
    const signed = Array.from({ length: 1000 }, (_, n) => ({ eventId: "evt_" + n, traceId: "trc-" + n, text: `{"event_id":"evt_${n}"}` }));
    const added = await Promise.all(signed.map((event) => sender.add(event)));
    await Promise.all(added.map(({ stored }) => stored));
  };
  await send();
  assert.ok(Math.max(...sizes) <= 100);
  limit = Infinity;
  for (let round = 0; round < 20; round++) await send();
  assert.equal(Math.max(...sizes), 1000, String(sizes));
  await sender.close();
});
