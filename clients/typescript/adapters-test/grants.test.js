// Grants at the tool in the real Express 4 and 5 and Fastify: the vectors that Go and Python run too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { after, test } from "node:test";
import express5 from "express";
import express4 from "express4";
import fastify from "fastify";
import { Grants } from "@agentledger/client/grants";

const vectors = JSON.parse(readFileSync(new URL("../../../testdata/grants.json", import.meta.url), "utf8"));
const servers = [];
after(() => servers.forEach((s) => s.close()));

let now;

/** Returns a checker that begins at the time of the vectors. */
function open() {
  now = Date.parse(vectors.start);
  const { name, seed_b64: key } = vectors.receipt_key;
  return new Grants(vectors.config, { now: () => now, receipts: { name, key }, onBehalfOf: ({ headers }) => headers["x-subject"] && JSON.parse(headers["x-subject"]) });
}
function bodyOf(v) {
  if (v.body_size) return Buffer.alloc(v.body_size, " ");
  return v.body_b64 === undefined ? Buffer.from(v.body ?? "") : Buffer.from(v.body_b64, "base64");
}

/** Sends a request byte by byte as the vector has it. Resolves to status and body. */
function send(port, v) {
  now = Date.parse(v.now);
  const body = bodyOf(v);
  const lines = [`${v.method} ${v.target} HTTP/1.1`, "Host: shop.example", "Connection: close", `Content-Length: ${body.length}`];
  const head = [...lines, ...v.headers.map(([name, value]) => `${name}: ${value}`), "", ""].join("\r\n");
  return new Promise((resolve, reject) => {
    const parts = [];
    const socket = connect(port, "127.0.0.1");
    const done = () => {
      const [top, ...rest] = Buffer.concat(parts).toString().split("\r\n\r\n");
      if (top === "") return reject(new Error(`${v.name}: no answer`));
      const text = /transfer-encoding: chunked/i.test(top) ? rest.join("").replace(/^[0-9a-f]+\r\n|\r\n0$/gi, "") : rest.join("\r\n\r\n");
      resolve({ status: Number(top.split(" ")[1]), head: top, text });
    };
    socket.on("data", (part) => parts.push(part)).on("close", done).on("error", () => {});
    socket.write(head);
    socket.write(body);
  });
}

/** Runs all vectors. The server answers with {agent, approval, body} of a permitted request; `bodyOf` is what body must be. */
async function run(port, wanted, own = []) {
  for (const v of vectors.cases.filter(({ target }) => !own.includes(target))) {
    const { status, head, text } = await send(port, v);
    const [, receipt] = /^agentledger-receipt: (.*)$/im.exec(head) ?? [];
    assert.deepEqual([v.name, receipt?.trim()], [v.name, v.receipt_b64]);
    const want = v.status !== 200 ? { error: v.error, code: v.code } : v.agent ? { agent: v.agent, approval: v.approval, body: wanted(v) } : {};
    assert.deepEqual([v.name, status, JSON.parse(text)], [v.name, v.status, JSON.parse(JSON.stringify(want))]);
  }
}

const answerOf = (grant, body) => (grant ? { agent: grant.agent, approval: grant.approvalId, body } : {});
const inBase64 = (v) => bodyOf(v).toString("base64");

for (const [name, express] of [["Express 5", express5], ["Express 4", express4]]) {
  test(`the vectors in ${name}`, async () => {
    const app = express();
    app.use(open().express());
    app.use(express.json(), express.raw({ type: () => true })); // after the grants they leave the body as it is
    app.use(({ grant, body }, response) => response.json(answerOf(grant, Buffer.isBuffer(body) ? body.toString("base64") : body)));
    const server = createServer(app).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    await run(server.address().port, (v) => (v.method === "PUT" ? inBase64(v) : JSON.parse(v.body || "{}")));
  });
}

test("the vectors in Fastify", async () => {
  const app = fastify();
  app.addHook("preParsing", open().fastify());
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (request, body, done) => done(null, body));
  app.all("/*", (request, reply) => reply.send(answerOf(request.grant, Buffer.from(request.body ?? "").toString("base64"))));
  servers.push(app);
  await app.listen({ port: 0, host: "127.0.0.1" });
  await run(app.server.address().port, inBase64, ["/orders/%FF/notes/a"]); // Fastify refuses this path before any hook
});

test("the example of the document", async () => {
  const document = readFileSync(new URL("../../../docs/guides/grants-at-the-tool.md", import.meta.url), "utf8");
  const [, source] = /```js\nimport [^\n]*\n([^`]*)```/.exec(document);
  const app = express5();
  now = Date.parse(vectors.start);
  const At = class extends Grants {
    constructor(config) {
      super(config, { now: () => now });
    }
  };
  new Function("Grants", "KEY", "app", source)(At, vectors.config.keys[0], app);
  const server = createServer(app).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  const { status, text } = await send(server.address().port, vectors.cases.find((v) => v.name === "a guarded call"));
  assert.deepEqual([status, JSON.parse(text)], [200, { refunded: "A-1009", for: "agt_support" }]);
});

test("grants after a body parser are an error", async () => {
  const app = express5();
  app.use(express5.json(), open().express());
  app.use((why, request, response, next) => response.status(500).json({ why: why.message, next: typeof next }));
  const server = createServer(app).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  const { status, text } = await send(server.address().port, vectors.cases.find((v) => v.agent && v.method === "POST"));
  assert.equal(status, 500);
  assert.match(text, /before the body is parsed/);
});

const small = {
  Express: async () => {
    const check = open().express();
    const server = createServer((request, response) => check(request, response, () => response.end("{}"))).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    return server.address().port;
  },
  Fastify: async () => {
    const app = fastify();
    app.addHook("preParsing", open().fastify());
    app.all("/*", (request, reply) => reply.send("{}"));
    servers.push(app);
    await app.listen({ port: 0, host: "127.0.0.1" });
    return app.server.address().port;
  },
};

for (const [name, listen] of Object.entries(small))
  for (const length of ["Transfer-Encoding: chunked", `Content-Length: ${16 << 20}`])
    test(`${name}: a client that writes a body that is too large to its end reads why it was refused, ${length}`, async () => {
      const v = vectors.cases.find((c) => c.agent && c.method === "POST");
      const socket = connect(await listen(), "127.0.0.1").pause();
      now = Date.parse(v.now);
      const headers = v.headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      socket.write(`POST ${v.target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${length}\r\n${headers}\r\n`);
      const chunked = length.startsWith("Transfer");
      const part = Buffer.from(chunked ? `10000\r\n${" ".repeat(0x10000)}\r\n` : " ".repeat(0x10000));
      for (let sent = 0; sent < 16 << 20; sent += 0x10000) if (!socket.write(part)) await once(socket, "drain");
      if (chunked) socket.write("0\r\n\r\n");
      let answer = "";
      for await (const part of socket) if ((answer += part).includes("too_large")) break;
      assert.match(answer, /^HTTP\/1\.1 413 /);
    });
