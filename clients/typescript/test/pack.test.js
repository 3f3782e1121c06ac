// Evidence packs as Blobs: packs of the real server, one of them larger than 50 MB.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream, mkdirSync, openAsBlob, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { verify } from "../src/index.js";
import { folderFiles } from "../src/node.js";
import { Sha256 } from "../src/crypto/sha256.js";
import { sliceBytes, slices, sourceOf } from "../src/verify/source.js";
import { Archive } from "../src/verify/archive.js";
import { corpusFiles } from "./corpus.js";
import { Server, clientOf } from "./harness.js";

const megabyte = 1e6;
let server;
const packs = {}; // by organization: the path of a file

before(async () => {
  server = await Server.start({ activate: false });
  await fill(server.acme, 215, 180_000);
  await fill(server.boole, 3, 180_000);
  for (const own of [server.acme, server.boole]) packs[own.slug] = await exportPack(own);
});
after(() => server?.close());

/** Sends events with payloads of that many characters, and waits until the latest checkpoint includes them. */
async function fill(organization, events, characters) {
  const client = clientOf(organization);
  const text = "Größe ".repeat(characters / 6);
  const sent = await client.sendAll(Array.from({ length: events }, (_, n) => ({ action_kind: "note", payload: { n, text } })));
  assert.deepEqual([...new Set(sent.map((r) => r.status))], ["created"]);
  await client.log(organization.slug, { key: organization.logKey }).bundle(sent.at(-1).eventId);
  await client.close();
}

async function exportPack(organization) {
  const { cookie } = await server.signIn(organization);
  const answer = await fetch(`${server.url}/v1/console/evidence.zip?envelopes=1`, { headers: { Cookie: cookie } });
  assert.equal(answer.status, 200);
  const path = join(server.folder, organization.slug + ".zip");
  await pipeline(Readable.fromWeb(answer.body), createWriteStream(path));
  return path;
}

/** A Blob that records the largest number of bytes read at once in `largest`. */
class CountingBlob extends Blob {
  largest = 0;

  arrayBuffer() {
    throw new Error("the Blob is read whole");
  }

  slice(begin, end) {
    this.largest = Math.max(this.largest, end - begin);
    return super.slice(begin, end);
  }
}

const countingBlob = async (path) => new CountingBlob([await openAsBlob(path)]);

test("a pack of more than 50 MB is proved by slices", async () => {
  assert.ok(statSync(packs.acme).size > 50 * megabyte, String(statSync(packs.acme).size));
  const blob = await countingBlob(packs.acme);
  const { outcome, reason, report } = await verify.pack(blob, { key: server.acme.logKey, require: "full" });
  assert.equal(outcome, "proved", reason);
  assert.ok(report.envelopes >= 215, String(report.envelopes));
  assert.ok(blob.largest > 0 && blob.largest <= sliceBytes, String(blob.largest));
});

test("the memory does not grow with the pack's size", () => {
  const child = fileURLToPath(new URL("packchild.js", import.meta.url));
  const check = (own) => {
    const heap = ["--max-old-space-size=64", "--max-semi-space-size=2"]; // MiB, so that garbage is collected early
    return JSON.parse(execFileSync(process.execPath, ["--no-warnings", ...heap, child, packs[own.slug], own.logKey]));
  };
  const [large, small] = [check(server.acme), check(server.boole)];
  assert.deepEqual([large.outcome, small.outcome], ["proved", "proved"], large.reason + small.reason);
  const more = large.peak - small.peak;
  assert.ok(more < 45 * megabyte, `the large pack took ${more} bytes more than the small one's ${small.peak}`);
});

test("each organization's pack is proved under its own key alone, as bytes and as a Blob", async () => {
  const blob = await openAsBlob(packs.boole);
  const bytes = new Uint8Array(await blob.arrayBuffer());
  for (const [name, source] of Object.entries({ blob, bytes, file: new File([blob], "boole.zip") })) {
    const own = await verify.pack(source, { key: server.boole.logKey });
    assert.equal(own.outcome, "proved", `${name}: ${own.reason}`);
    const other = await verify.pack(source, { key: server.acme.logKey });
    assert.equal(other.outcome, "cant_tell", `${name}: ${other.reason}`);
  }
});

/** Returns the contents of the pack's files as one text of bytes; undefined if they can't be read. */
async function contents(bytes) {
  try {
    const { files } = await Archive.open(bytes);
    const parts = [];
    for (const [name, file] of files) {
      parts.push(Buffer.from(name + "\n"));
      for await (const part of file.slices()) parts.push(part);
    }
    return Buffer.concat(parts).toString("latin1");
  } catch {
    return undefined;
  }
}

test("a changed byte is detected anywhere, unless the files are the same", async () => {
  const bytes = new Uint8Array(await (await openAsBlob(packs.boole)).arrayBuffer());
  const whole = await contents(bytes);
  for (let i = 0; i < 40; i++) {
    const at = i < 30 ? Math.floor((bytes.length * i) / 30) : bytes.length - 1 - 7 * (i - 30);
    const changed = bytes.slice();
    changed[at] ^= 1;
    const { outcome } = await verify.pack(new Blob([changed]), { key: server.boole.logKey });
    const same = (await contents(changed)) === whole;
    assert.ok(same ? outcome === "proved" : outcome !== "proved", `byte ${at}: ${outcome}`);
  }
});

test("a file that changes while it is read causes an error of the platform, not a verdict", async () => {
  const path = await exportPack(server.boole);
  const blob = await openAsBlob(path);
  truncateSync(path, 1000);
  await assert.rejects(verify.pack(blob, { key: server.boole.logKey }), { name: "NotReadableError" });
  for (const wrong of [undefined, null, "PK", {}, [80, 75]]) await assert.rejects(verify.pack(wrong, {}), TypeError);
});

test("Blobs of the corpus get the same verdicts as bytes", async () => {
  const { vectors } = corpusFiles().find((f) => f.kind === "evidence-pack");
  for (const { name, verdict, input } of vectors) {
    const { outcome } = await verify.pack(new Blob([Buffer.from(input.pack_b64, "base64")]), { key: input.key, toolKeys: input.tool_keys });
    assert.equal(outcome === "proved", verdict === "accept", name);
  }
});

test("an unpacked pack is proved, and an unreadable folder causes no verdict", async () => {
  const whole = await openAsBlob(await exportPack(server.boole));
  const { files } = await Archive.open(whole);
  const folder = join(server.folder, "unpacked");
  const pairs = [];
  for (const [name, file] of files) {
    const parts = [];
    for await (const part of file.slices()) parts.push(part);
    pairs.push([name, Buffer.concat(parts)]);
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), pairs.at(-1)[1]);
  }
  writeFileSync(join(folder, ".DS_Store"), "");
  const key = server.boole.logKey;
  const want = await verify.pack(whole, { key });
  const within = pairs.map(([name, content]) => ["november/" + name, content]);
  const chosen = pairs.map(([name, content]) =>
    Object.defineProperty(new File([content], basename(name)), "webkitRelativePath", { value: "november/" + name }));
  for (const source of [await folderFiles(folder), new Map(pairs), within.reverse(), chosen]) {
    const got = await verify.pack(source, { key });
    assert.deepEqual(got, want);
  }
  assert.match(want.lines.join("\n"), /its carrier may have repacked it/);
  const known = await verify.pack(pairs, { key, manifest: want.report.manifest_sha256 });
  assert.doesNotMatch(known.lines.join("\n"), /repacked/);
  const bad = { "a name twice": [...pairs, pairs[0]], "two files": [...pairs, ["old/manifest.json", new Uint8Array()]] };
  bad["no file"] = pairs.slice(0, -1);
  bad["name of a file"] = [...pairs, ["../x", new Uint8Array()]];
  bad["number of files"] = [...pairs, ...Array.from({ length: 4096 }, (_, n) => [`.x/${n}`, new Uint8Array()])];
  for (const [words, source] of Object.entries(bad)) {
    const { outcome, reason } = await verify.pack(source, { key });
    assert.equal(outcome, "cant_tell");
    assert.match(reason, new RegExp("the files of the pack can't be read: " + words));
  }
  const { outcome } = await verify.pack(pairs.map(([n, c]) => [n, n === "report.html" ? new Uint8Array() : c]), { key });
  assert.equal(outcome, "proved_wrong");
  symlinkSync("/etc/passwd", join(folder, "link"));
  await assert.rejects(folderFiles(folder), /symbolic link/);
  for (const wrong of [[1], [["a"]], [[1, whole]]]) await assert.rejects(verify.pack(wrong, {}), TypeError);
});

/** Reads the lines of a text like those of a file in a pack. */
async function linesOf(text, most) {
  const bytes = new TextEncoder().encode(text);
  const archive = new Archive(new Map([["a", { size: bytes.length, slices: () => slices(sourceOf(bytes), 0, bytes.length) }]]));
  const lines = [];
  for await (const line of archive.lines("a", most)) lines.push(line);
  return lines;
}

test("lines are read like split reads them, and rejected beyond their limits", async () => {
  const long = "ü".repeat((2 << 20) - 1) + "a"; // 4 MiB with the newline
  for (const lines of [[], ["a"], ["a", "bc", "ü"], [long, "a", long], Array(70_000).fill("Größe von 32 bytes und mehr")]) {
    assert.deepEqual(await linesOf(lines.map((l) => l + "\n").join("")), lines);
  }
  assert.equal((await linesOf("a\n".repeat(7), 7)).length, 7);
  const refused = { "no end": "a\nb", empty: "a\n\nb\n", "empty at first": "\na\n", long: long + "a\n", endless: long + "aa" };
  for (const [name, text] of Object.entries(refused)) await assert.rejects(linesOf(text), { name: "Malformed" }, name);
  await assert.rejects(linesOf("a\n".repeat(8), 7), { name: "Malformed" });
});

test("SHA-256 of parts equals SHA-256 of the whole", () => {
  const data = Buffer.from(Array.from({ length: 1000 }, (_, i) => (i * 7) & 255));
  for (let round = 0; round < 300; round++) {
    const length = round < 200 ? round : Math.floor(Math.random() * 1000);
    const sum = new Sha256();
    for (let at = 0; at < length; ) {
      const end = Math.min(length, at + Math.floor(Math.random() * 150));
      sum.update(data.subarray(at, end));
      at = end;
    }
    assert.equal(Buffer.from(sum.digest()).toString("hex"), createHash("sha256").update(data.subarray(0, length)).digest("hex"));
  }
});
