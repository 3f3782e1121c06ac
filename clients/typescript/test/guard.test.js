// Fail closed: whatever fails before the act, the act does not run. Attacks and faults come from a scripted fetch.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client, Denied, ExactNumber, FailedBefore, Interrupted, KeyReused, MemoryJournal, NotDecided, Overflow, Refused, Unreachable, parseExact } from "../src/index.js";
import { FileJournal, FileQueue } from "../src/node.js";

const token = "apl_test_secret";
const own = {
  url: "http://log.test",
  token,
  org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
  agent: "agt_a",
  keyId: "key_a",
  key: "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=",
  retry: { attempts: 2, sleep: async () => {} },
};

const json = (status, body, headers) => new Response(JSON.stringify(body), { status, headers });
const created = (e) => ({ event_id: e.event_id, sequence_num: 1, event_hash: "00", chain_valid: true, status: "created" });

/** Returns a fetch that stores what it is sent and answers with `answer(event, init)`. */
function service(answer, sent = []) {
  return async (url, init) => {
    const lines = String(init.body).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    sent.push(...lines);
    if (!url.endsWith("/batch")) return answer(lines[0], init);
    return new Response(lines.map((e) => JSON.stringify({ status_code: 201, ...created(e) })).join("\n"));
  };
}

const stopped = () => {
  throw new TypeError("fetch failed");
};
const silent = (e, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
const unwritable = Object.assign(new MemoryJournal(), {
  store: async () => {
    throw Object.assign(new Error("no space: " + token), { code: "ENOSPC" });
  },
});

const network = /Check the network and the service's address/;
const address = /Check the service's address \(url\), because something else may answer there/;
const operator = /its operator can say more/;

test("after any failure before the act, it is not done, and the message explains what to do", async () => {
  const table = [
    ["server down", stopped, NotDecided, network],
    ["time-out", silent, NotDecided, network],
    ["401", () => json(401, { error: "Invalid API key" }), NotDecided, /Invalid API key.*Check the ingest key \(token\)/],
    ["403", () => json(403, { error: "Organization mismatch" }), NotDecided, /Organization mismatch.*Check the ingest key's scopes/],
    ["409", () => json(409, { error: "The event is stored without its approval" }), NotDecided],
    ["422, the clock is ahead", () => json(422, { error: "emitted_at is too far in the future" }), NotDecided, /Set this machine's clock/],
    ["422, the clock is behind", () => json(422, { error: "emitted_at is too far in the past" }), NotDecided, /Set this machine's clock/],
    ["429", () => json(429, { error: "Monthly event limit reached", code: "plan_limit" }), NotDecided, /operator can raise it/],
    ["429 with Retry-After", () => json(429, { code: "rate_limited" }, { "Retry-After": "7" }), NotDecided, /Repeat it after 7 s/],
    ["429 alone", () => json(429, {}), NotDecided, /Repeat it later/],
    ["500", () => json(500, { error: "Internal error" }), NotDecided, operator],
    ["503 frozen", () => json(503, { code: "frozen" }), NotDecided, operator],
    ["302", () => new Response("", { status: 302, headers: { Location: "http://other.test" } }), NotDecided, address],
    ["204", () => new Response(null, { status: 204 }), NotDecided, address],
    ["no JSON", () => new Response("<html>", { status: 201 }), NotDecided, address],
    ["a list", () => json(201, []), NotDecided, address],
    ["another event", (e) => json(201, { ...created(e), event_id: "evt_other" }), NotDecided, address],
    ["no status", (e) => json(201, { event_id: e.event_id }), NotDecided],
    ["no number", (e) => json(201, { event_id: e.event_id, status: "created" }), NotDecided],
    ["an unknown decision", (e) => json(201, { ...created(e), policy_decision: "permit" }), NotDecided],
    ["a replay without a decision", (e) => json(200, { event_id: e.event_id, status: "replayed" }), NotDecided],
    ["a broken approval", (e) => json(201, { ...created(e), policy_decision: "allow_with_obligation", approval: {} }), NotDecided],
    ["deny", (e) => json(201, { ...created(e), policy_decision: "deny" }), Denied],
    ["deny in a replay", (e) => json(200, { event_id: e.event_id, status: "replayed", policy_decision: "deny" }), Denied],
    ["disk full", (e) => json(201, created(e)), NotDecided, /the journal can't be written.*its disk may be full/, unwritable],
  ];
  for (const [name, answer, want, says = /./, journal] of table) {
    let done = 0;
    const client = new Client({ ...own, timeoutMs: 50, fetch: service(answer), guard: { journal } });
    const guarded = {
      guard: () => client.guard("acme.mail.send", () => done++)({ to: "bob" }),
      guardFetch: () => client.guardFetch({ fetch: async () => new Response(String(done++)) })("http://tool.test/", { method: "POST" }),
    };
    for (const [by, act] of Object.entries(guarded)) {
      await assert.rejects(act(), (why) => {
        assert.ok(why instanceof want, `${name}, ${by}: ${why}`);
        assert.match(why.message, says, `${name}, ${by}`);
        if (want === NotDecided) assert.match(why.message, /The act was not done: the same call is safe to repeat/);
        assert.ok(!(why.message + why.cause?.message).includes(token), name);
        return true;
      });
    }
    assert.equal(done, 0, name);
    await client.close(0).catch(() => {});
  }
});

test("a full disk prevents an act, and the next small one runs", () => {
  const folder = mkdtempSync(join(tmpdir(), "agentledger-full-"));
  try {
    const line = `ulimit -f 4 && exec "$0" "$1" "$2" | cat`; // blocks of 512 bytes; the pipe has no bound
    const output = execFileSync("sh", ["-c", line, process.execPath, new URL("disk.js", import.meta.url).pathname, folder], { encoding: "utf8" });
    const { ran, refusals } = JSON.parse(output);
    assert.deepEqual([ran, refusals.length], [2, 1]);
    assert.match(refusals[0], /^NotDecided: not decided: the journal can't be written. The act was not done: .*its disk may be full/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("an act whose answer was lost is decided by the same event", async () => {
  const sent = [];
  let lost = true;
  const answer = (e) => (lost ? stopped() : json(200, { event_id: e.event_id, status: "replayed", policy_decision: "allow" }));
  const client = new Client({ ...own, fetch: service(answer, sent) });
  const act = { tool: "acme.mail.send", payload: { to: "bob" }, key: "mail-1" };
  await assert.rejects(client.run(act, () => assert.fail()), NotDecided);
  lost = false;
  assert.equal((await client.run(act, () => 7)).output, 7);
  const intents = sent.filter((e) => e.payload.phase === "intent");
  assert.equal(new Set(intents.map((e) => e.event_id)).size, 1);
  await client.flush();
  const result = sent.find((e) => e.payload.phase === "result");
  assert.equal(result.parent_event_id, intents[0].event_id);
  assert.equal(result.payload.call_id, intents[0].payload.call_id);
});

test("only a refusal by the service makes another intent of an act", async () => {
  for (const [headers, intents] of [[{ "X-Request-Id": "req-1" }, 2], [{}, 1]]) { // the second is an ingress's
    const sent = [];
    let refused = true;
    const answer = (e) => (refused ? json(404, { error: "Not found" }, headers) : json(201, { ...created(e), policy_decision: "allow" }));
    const client = new Client({ ...own, fetch: service(answer, sent) });
    const act = { tool: "acme.mail.send", payload: { to: "bob" }, key: "mail-1" };
    await assert.rejects(client.run(act, () => assert.fail()), NotDecided);
    refused = false;
    assert.equal((await client.run(act, () => 7)).output, 7);
    assert.equal(new Set(sent.filter((e) => e.payload.phase === "intent").map((e) => e.event_id)).size, intents);
    await client.close();
  }
});

test("a key runs one act once", async () => {
  const client = new Client({ ...own, fetch: service((e) => json(201, created(e))) });
  let ran = 0;
  const act = { tool: "acme.mail.send", payload: { n: 1 }, key: "k" };
  const both = await Promise.all([client.run(act, () => ++ran), client.run(act, () => ++ran)]);
  assert.deepEqual([ran, both.map((b) => b.repeated)], [1, [false, true]]);
  await assert.rejects(client.run({ ...act, payload: { n: 2 } }, () => ++ran), KeyReused);
  const failing = { ...act, key: "f" };
  await assert.rejects(client.run(failing, () => Promise.reject(new Error("own"))), /^Error: own$/);
  await assert.rejects(client.run(failing, () => ++ran), FailedBefore);
  assert.equal(ran, 1);
});

test("clients with one journal run an act of a key once", async () => {
  const journal = new MemoryJournal();
  const clients = [1, 2].map(() => new Client({ ...own, guard: { journal }, fetch: service((e) => json(201, created(e))) }));
  let ran = 0;
  const act = { tool: "acme.mail.send", payload: { n: 1 }, key: "k" };
  const both = await Promise.all(clients.map((client) => client.run(act, async () => ++ran)));
  assert.deepEqual(both.map((b) => [b.output, b.repeated]), [[1, false], [1, true]]);
  await Promise.all(clients.map((client) => client.close()));
});

test("an interrupted act is not repeated after a restart", async () => {
  const folder = mkdtempSync(join(tmpdir(), "agentledger-journal-"));
  const sent = [];
  const open = async () => {
    const journal = await FileJournal.open(folder);
    return { journal, client: new Client({ ...own, fetch: service((e) => json(201, created(e)), sent), guard: { journal } }) };
  };
  try {
    const before = await open();
    const act = { tool: "acme.mail.send", payload: {}, key: "once" };
    const cut = new Promise((resolve) => void before.client.run(act, () => new Promise(resolve.bind(undefined, undefined))));
    await cut; // the act has begun and never ends, as if the process were killed here
    await before.journal.close();
    const later = await open();
    assert.deepEqual(await later.client.guards.resume(), ["once"]);
    await assert.rejects(later.client.run(act, () => assert.fail()), Interrupted);
    await later.client.flush();
    const results = new Map(sent.filter((e) => e.payload.phase === "result").map((e) => [e.event_id, e.payload.status]));
    assert.deepEqual([...results.values()], ["unknown"]);
    await later.journal.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("flush and close wait for the journal's note that a result is stored", async () => {
  const told = [];
  const slow = Object.assign(new MemoryJournal(), {
    store: async (act) => {
      if (!act.told) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
      told.push(act.key);
    },
  });
  const client = new Client({ ...own, fetch: service((e) => json(201, created(e))), guard: { journal: slow } });
  await client.run({ tool: "acme.mail.send", key: "a" }, () => 1);
  await client.flush();
  assert.deepEqual(told, ["a"]);
  await client.run({ tool: "acme.mail.send", key: "b" }, () => 1);
  await client.close();
  assert.deepEqual(told, ["a", "b"]);
});

test("a file queue keeps events over a restart, and reports when it is full", async () => {
  const folder = mkdtempSync(join(tmpdir(), "agentledger-queue-"));
  const sent = [];
  try {
    const down = new Client({ ...own, fetch: async () => stopped(), queue: await FileQueue.open(folder, { limit: 2 }), retry: {} });
    const first = [];
    for (const n of [1, 2]) first.push((await down.enqueue({ action_kind: "note", payload: { n } })).eventId);
    await assert.rejects(down.send({ action_kind: "note" }), (why) => why instanceof Overflow && why.limit === 2);
    await assert.rejects(FileQueue.open(folder), /in use/);
    await assert.rejects(down.close(1), Unreachable);
    const queue = await FileQueue.open(folder);
    const up = new Client({ ...own, fetch: service((e) => json(201, created(e)), sent), queue });
    assert.equal(up.pending, 2);
    await up.close();
    assert.deepEqual(sent.map((e) => e.event_id), first);
    const empty = await FileQueue.open(folder);
    assert.equal(empty.size, 0);
    await empty.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("503 and 429 with Retry-After are retried; other errors are reported at once", async () => {
  const pauses = [];
  const sleep = async (ms) => void pauses.push(ms);
  const answers = [json(503, { code: "overloaded" }, { "Retry-After": "7" }), json(429, { code: "rate_limited" }, { "Retry-After": "3" })];
  const client = new Client({ ...own, retry: { sleep }, fetch: service((e) => answers.shift() ?? json(201, created(e))) });
  assert.equal((await client.send({ action_kind: "note" })).status, "created");
  assert.deepEqual(pauses, [7000, 3000]);
  const refused = new Client({ ...own, fetch: service(() => json(422, { error: "Invalid signature" })) });
  await assert.rejects(refused.send({ action_kind: "note" }), (why) => why instanceof Refused && why.status === 422);
  assert.equal(refused.pending, 0);
});

test("numbers that a double cannot hold are recorded with their digits, as they are judged and given to the tool", async () => {
  const exact = '{"id":1915883588174806058,"n":9007199254740994,"o":{"$number":"5"},"part":0.12345678901234567}';
  const values = { id: 1915883588174806058n, o: { $number: "5" }, part: new ExactNumber("0.123456789012345670"), n: 9007199254740994n };
  const recorded = {
    $tagged: true,
    id: { $number: "1915883588174806058" },
    n: 9007199254740994,
    o: { $object: { $number: "5" } },
    part: { $number: "0.12345678901234567" },
  };
  for (const payload of [values, parseExact(exact)]) {
    for (const options of [{}, { digestInput: true, shown: ["id"] }]) {
      const sent = [];
      const client = new Client({ ...own, fetch: service((e) => json(201, created(e)), sent) });
      await client.run({ tool: "acme.ads.get", payload, ...options }, () => 7);
      const { call_id, phase, salt, input_digest, ...members } = sent[0].payload;
      assert.equal(phase, "intent");
      assert.deepEqual(members, options.digestInput ? { $tagged: true, id: recorded.id } : recorded);
      if (options.digestInput) assert.equal(input_digest, createHash("sha256").update(exact).digest("hex"));
      await client.close();
    }
  }
});

test("arguments that have no recorded form are refused before anything is signed", async () => {
  const sent = [];
  const client = new Client({ ...own, fetch: service((e) => json(201, created(e)), sent) });
  let deep = 9007199254740993n;
  for (let i = 0; i < 62; i++) deep = [deep];
  for (const payload of [{ $tagged: true }, { a: 10n ** 128n + 1n }, { a: 2 ** 53 }, { a: "\ud800" }, { deep }, { salt: "" }]) {
    await assert.rejects(client.run({ tool: "acme.ads.get", payload }, () => assert.fail("it ran")), /is a member|must not have|digits|2\^53|surrogate|64 levels/);
  }
  assert.throws(() => new ExactNumber("0x1"), /not a JSON number/);
  assert.throws(() => JSON.stringify(new ExactNumber("1e400")), /use toString/);
  assert.deepEqual(sent, []);
});

test("questions have numbers that a double cannot hold in recorded form", async () => {
  const bodies = [];
  const fetch = async (url, { body }) => {
    bodies.push(JSON.parse(body));
    return json(422, { error: "seen" });
  };
  const client = new Client({ ...own, fetch });
  const payload = { id: 2n ** 53n + 1n, n: 1.5 };
  await assert.rejects(client.evaluate({ tool: "acme.ads.get", payload, actionKind: "tool_call" }), Refused);
  await assert.rejects(client.approvals.ask({ tool: "acme.ads.get", payload, trace: "t" }), Refused);
  for (const body of bodies) assert.deepEqual(body.payload, { $tagged: true, id: { $number: "9007199254740993" }, n: 1.5 });
  assert.deepEqual([bodies.length, bodies[0].action_kind, bodies[1].trace_id], [2, "tool_call", "t"]);
  await assert.rejects(client.evaluate({ tool: "acme.ads.get", payload: [1] }), /not an object/);
  await assert.rejects(client.evaluate({ tool: "acme.ads.get", payload: { $tagged: true } }), /give it another name/);
});

test("results keep integers that a double cannot hold, also for repetitions", async () => {
  const sent = [];
  const client = new Client({ ...own, fetch: service((e) => json(201, created(e)), sent) });
  const act = { tool: "acme.ads.get", payload: {}, key: "k", recordOutput: true };
  const output = { id: 2n ** 53n + 1n, z: [1, "x"], 2: 1, 10: 2 };
  assert.deepEqual((await client.run(act, () => output)).output, output);
  const again = (await client.run(act, () => assert.fail("it ran"))).output;
  assert.deepEqual({ ...again }, output);
  await client.flush(1000);
  const { payload } = sent.find((e) => e.payload.phase === "result");
  assert.deepEqual(payload.output, { 2: 1, 10: 2, id: { $number: "9007199254740993" }, z: [1, "x"] });
  assert.equal(payload.$tagged, true);
  assert.equal(payload.output_digest, createHash("sha256").update('{"10":2,"2":1,"id":9007199254740993,"z":[1,"x"]}').digest("hex"));
  await client.close();
});
