// The caller's span: both events of an act are signed with it, and an event without a trace_id is of its trace.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Client } from "../src/index.js";
import { traceOf } from "../src/verify/forms.js";

const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const parent = `00-${trace}-00f067aa0ba902b7-01`;
const other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

function start() {
  const events = new Map();
  const created = (e) => ({ event_id: e.event_id, sequence_num: 1, event_hash: "00", chain_valid: true, status: "created" });
  const fetch = async (url, { body }) => {
    const lines = String(body).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    for (const e of lines) events.set(e.event_id, e);
    if (!url.endsWith("/batch")) return new Response(JSON.stringify(created(lines[0])), { status: 201 });
    return new Response(lines.map((e) => JSON.stringify({ status_code: 201, ...created(e) })).join("\n"));
  };
  const client = new Client({
    url: "http://log.test",
    token: "apl_test",
    org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11",
    agent: "agt_a",
    keyId: "key_a",
    key: "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=",
    fetch,
  });
  return { client, events };
}

test("a traceparent is read as W3C Trace Context demands", () => {
  const vectors = JSON.parse(readFileSync(new URL("../../../testdata/traceparent.json", import.meta.url), "utf8"));
  assert.ok(vectors.length > 30);
  for (const v of vectors) assert.equal(traceOf(v.traceparent), v.trace ?? undefined, v.name);
  for (const value of [undefined, null, 7, [parent]]) assert.equal(traceOf(value), undefined);
});

test("both events of an act have its traceparent", async () => {
  for (const [given, named, wantParent, wantTrace] of [
    [parent, undefined, parent, trace],
    [parent, "trc-1", parent, "trc-1"],
    [`${parent}-x`, undefined, undefined, undefined],
    [undefined, undefined, undefined, undefined],
  ]) {
    const { client, events } = start();
    const act = { tool: "acme.refund", payload: { n: 1 }, key: "k", trace: named };
    await client.run({ ...act, traceparent: () => given }, () => "done");
    const again = await client.run({ ...act, traceparent: () => other }, () => "done");
    assert.equal(again.repeated, true, "a repetition under another caller is the same act");
    await client.flush();
    assert.deepEqual([...events.values()].map((e) => e.payload.phase), ["intent", "result"]);
    for (const e of events.values()) {
      assert.equal(e.traceparent, wantParent);
      if (wantTrace === undefined) assert.match(e.trace_id, /^trc_/);
      else assert.equal(e.trace_id, wantTrace);
    }
  }
});

test("an event without a trace_id is of the trace of its traceparent", async () => {
  const { client, events } = start();
  for (const [members, want] of [
    [{ traceparent: parent }, new RegExp(`^${trace}$`)],
    [{ traceparent: parent, trace_id: "trc-1" }, /^trc-1$/],
    [{ traceparent: "00-x" }, /^trc_/],
  ]) {
    await client.send({ action_kind: "note", ...members });
    assert.match([...events.values()].at(-1).trace_id, want);
  }
});
