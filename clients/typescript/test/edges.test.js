// HTTP as proxies speak it: informational answers before the answer, Retry-After, and answers for other requests.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { postBatch } from "../src/client/post.js";
import { Client, WrongAnswer } from "../src/index.js";

const key = "5NHZgfHuNSdO91a1hLNNrOz5N9rYjhgjI6iMeWqbRkc=";
const own = { token: "apl_test_secret", org: "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", agent: "agt_a", keyId: "key_a", key };

const answer = (status, body, headers = "") => `HTTP/1.1 ${status} X\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;
const created = (event, more = {}) => JSON.stringify({ event_id: event.event_id, sequence_num: 1, chain_valid: true, status: "created", ...more });
const hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 103 Early Hints\r\nRetry-After: 9\r\n\r\n";

/** Runs `use` with a client whose requests get the raw answers of `reply`, by event and number of the request. */
async function withProxy(reply, use, more = {}) {
  let n = 0;
  const server = createServer((socket) => {
    let text = "";
    socket.on("error", () => {});
    socket.on("data", (part) => {
      text += part;
      const [head, body] = text.split("\r\n\r\n");
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
      if (body === undefined || Buffer.byteLength(body) < length) return;
      text = "";
      socket.write(reply(body ? JSON.parse(body.split("\n")[0]) : undefined, ++n));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = new Client({ ...own, url: `http://127.0.0.1:${server.address().port}`, ...more });
  try {
    return await use(client);
  } finally {
    await client.close(1).catch(() => {});
    server.close();
  }
}

const pauses = [];
const retry = { attempts: 3, sleep: async (ms) => void pauses.push(ms) };

test("informational answers before the answer are skipped", async () => {
  const send = (client) => client.send({ action_kind: "note" });
  const { status } = await withProxy((event) => hints + answer(201, created(event)), send);
  assert.equal(status, "created");
});

test("Retry-After is waited for, in seconds or until a date", async () => {
  for (const [after, least] of [["7", 7_000], ["99999999999", 3_600_000], [new Date(Date.now() + 60_000).toUTCString(), 50_000]]) {
    pauses.length = 0;
    const reply = (event, n) => (n === 1 ? answer(429, "", `Retry-After: ${after}\r\n`) : answer(201, created(event)));
    const { status } = await withProxy(reply, (client) => client.send({ action_kind: "note" }), { retry });
    assert.deepEqual([status, pauses.length, pauses[0] >= least], ["created", 1, true], after);
  }
});

test("an answer for another request is an error with its reason", async () => {
  const another = { event_id: "evt_another" };
  const id = "apr_0000000000000000000000";
  const calls = {
    "names another event": [(event) => answer(201, created(event, another)), (client) => client.send({ action_kind: "note" })],
    "3 lines to 2": [() => answer(200, "{}\n{}\n{}\n"), (client) => postBatch(client.transport, [{ text: "{}" }, { text: "{}" }])],
    "neither created nor replayed": [(event) => answer(200, JSON.stringify({ event_id: event.event_id })), (client) => client.send({ action_kind: "note" })],
    "no decision": [(event) => answer(200, created({}, another)), (client) => client.evaluate({ tool: "acme.mail.send" })],
    "names another approval": [
      () => answer(200, JSON.stringify({ approval_id: "apr_1111111111111111111111", status: "approved", action_digest: "0".repeat(64), expires_at: "2030-01-01T00:00:00.000Z", quorum: 1, approvals: 1 })),
      (client) => client.approvals.get(id),
    ],
    "not JSON": [() => answer(200, "<html>"), (client) => client.send({ action_kind: "note" })],
  };
  for (const [reason, [reply, call]] of Object.entries(calls)) {
    await assert.rejects(withProxy(reply, call, { retry }), (why) => why instanceof WrongAnswer && why.message.includes(reason), reason);
  }
});
