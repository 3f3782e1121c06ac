// Heads and consistency proofs of the real server, verified from their texts alone, with two organizations.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { verify } from "../src/index.js";
import { Server, clientOf } from "./harness.js";

let server;
before(async () => (server = await Server.start({ activate: false })));
after(() => server?.close());

const fetchText = async (slug, path) => (await fetch(`${server.url}/v1/public/orgs/${slug}/transparency/${path}`)).text();

test("only a head is proved, and only under its own log's key", async () => {
  for (const own of [server.acme, server.boole]) {
    const other = own === server.acme ? server.boole : server.acme;
    const client = clientOf(own);
    await client.send({ action_kind: "note" });
    const text = await fetchText(own.slug, "head");
    const head = JSON.parse(text);
    const key = own.logKey;
    const table = {
      "as it is": [text, { key }, "proved"],
      "an object": [head, { key }, "proved"],
      "without a key": [text, {}, "cant_tell"],
      "the other log's key": [text, { key: other.logKey }, "cant_tell"],
      "another size": [{ ...head, tree_size: head.tree_size + 1 }, { key }, "proved_wrong"],
      "another root": [{ ...head, root_hash: "0".repeat(64) }, { key }, "proved_wrong"],
      "another newest entry": [{ ...head, latest_log_index: head.latest_log_index - 1 }, { key }, "proved_wrong"],
      "a changed checkpoint": [{ ...head, checkpoint: head.checkpoint.replace(/\n\d+\n/, "\n99\n") }, { key }, "proved_wrong"],
      "not JSON": ["{", { key }, "proved_wrong"],
      "without a checkpoint": [{ ...head, checkpoint: undefined }, { key }, "proved_wrong"],
    };
    for (const [name, [source, given, want]] of Object.entries(table)) {
      const got = await verify.head(source, given);
      assert.equal(got.outcome, want, `${name}: ${got.reason}`);
    }
    await client.close();
  }
});

test("only a newer checkpoint is proved to extend an older one", async () => {
  const client = clientOf(server.acme);
  const grow = async () => {
    for (let i = 0; i < 3; i++) await client.send({ action_kind: "note" });
    return JSON.parse(await fetchText("acme", "head"));
  };
  const [older, newer, newest] = [await grow(), await grow(), await grow()];
  const boole = clientOf(server.boole);
  await boole.send({ action_kind: "note" });
  const foreign = JSON.parse(await fetchText("boole", "head"));
  const text = await fetchText("acme", `consistency?from=${older.tree_size}&to=${newer.tree_size}`);
  const answer = JSON.parse(text);
  const key = server.acme.logKey;
  const flipped = answer.hashes.map((h, i) => (i === 0 ? (h[0] === "0" ? "1" : "0") + h.slice(1) : h));
  const table = {
    "as it is": [text, older, newer, { key }, "proved"],
    "without a key": [text, older, newer, {}, "cant_tell"],
    "the other log's key": [text, older, newer, { key: server.boole.logKey }, "cant_tell"],
    "a changed hash": [{ ...answer, hashes: flipped }, older, newer, { key }, "proved_wrong"],
    "a hash too few": [{ ...answer, hashes: answer.hashes.slice(1) }, older, newer, { key }, "proved_wrong"],
    "a hash too many": [{ ...answer, hashes: [...answer.hashes, answer.to_root] }, older, newer, { key }, "proved_wrong"],
    "another root": [{ ...answer, from_root: answer.to_root }, older, newer, { key }, "proved_wrong"],
    "older and newer exchanged": [text, newer, older, { key }, "proved_wrong"],
    "a later checkpoint": [text, older, newest, { key }, "proved_wrong"],
    "a checkpoint of another log": [text, older, foreign, { key }, "cant_tell"],
    "no answer": ["[]", older, newer, { key }, "proved_wrong"],
  };
  for (const [name, [source, from, to, given, want]] of Object.entries(table)) {
    const got = await verify.consistency(source, from.checkpoint, to.checkpoint, given);
    assert.equal(got.outcome, want, `${name}: ${got.reason}`);
  }
  await Promise.all([client.close(), boole.close()]);
});
