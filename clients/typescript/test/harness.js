// A real server with two organizations, for the tests of this package.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "../src/index.js";

const repository = fileURLToPath(new URL("../../../", import.meta.url));
const password = "a-pass-phrase-for-tests-only";

/** The policy of both organizations: refunds need approval, customers are denied. */
export const policy = {
  policy_id: "desk",
  name: "Desk",
  rules: [
    {
      rule_id: "refunds",
      tool: "acme.payments.refund",
      decision: "allow_with_obligation",
      reason: "A person looks",
      obligations: [{ type: "human_approval" }],
    },
    { rule_id: "customers", tool: "acme.customers.**", decision: "deny", reason: "Not the agent's business" },
  ],
};

/** Returns the path of a program of this repository: from AGENTLEDGER_BIN or APS_BIN, or built. */
export function program(name, folder) {
  const given = process.env[{ agentledger: "AGENTLEDGER_BIN", aps: "APS_BIN" }[name]];
  if (given) return given;
  const target = join(folder, name);
  const go = ["/usr/local/go/bin/go"].find((path) => existsSync(path)) ?? "go";
  execFileSync(go, ["build", "-o", target, `./cmd/${name}`], { cwd: repository });
  return target;
}

/** Resolves to a port below those that systems give to connections, so that it stays free until a program listens there. */
async function freePort() {
  for (;;) {
    const listener = createServer();
    const free = await new Promise((resolve) => {
      listener.once("error", () => resolve(false));
      listener.listen(15_000 + Math.floor(Math.random() * 15_000), "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    const { port } = listener.address();
    await new Promise((resolve) => listener.close(resolve));
    return port;
  }
}

/** The real program on loopback, with its own data folder. */
export class Server {
  #process;

  /** Creates and starts a server with the organizations acme and boole, which have the policy. */
  static async start({ activate = true } = {}) {
    const server = new Server();
    server.folder = mkdtempSync(join(tmpdir(), "agentledger-ts-"));
    [server.port, server.idPort] = [await freePort(), await freePort()];
    server.url = `http://127.0.0.1:${server.port}`;
    server.program = program("agentledger", server.folder);
    server.acme = server.#make("acme");
    server.boole = server.#make("boole");
    await server.serve();
    if (activate) for (const o of [server.acme, server.boole]) await (await server.signIn(o)).activate(policy);
    return server;
  }

  #make(slug) {
    const settings = ["--public-url", this.url, "--data", join(this.folder, "data"), "--json", "--disclosure", "full"];
    const names = ["--name", slug, "--slug", slug, "--admin-email", `ann@${slug}.example`];
    const env = { ...process.env, AGENTLEDGER_ADMIN_PASSWORD: password };
    const made = JSON.parse(execFileSync(this.program, ["init", ...settings, ...names], { env, stdio: ["ignore", "pipe", "ignore"] }));
    const { agent } = made;
    return {
      slug,
      email: `ann@${slug}.example`,
      logKey: made.log_key,
      client: {
        url: this.url,
        token: made.ingest_key.secret,
        org: made.organization_id,
        agent: agent.agent_id,
        keyId: agent.key_id,
        key: agent.private_key_b64,
      },
    };
  }

  /** Starts the program and resolves when it answers. */
  async serve() {
    const callouts = ["--callout-allow", "127.0.0.0/8"]; // the tests contain webhook receivers
    const listen = ["--listen", `127.0.0.1:${this.port}`, "--id-listen", `127.0.0.1:${this.idPort}`, "--metrics-listen", ""];
    const log = openSync(join(this.folder, "log"), "a");
    const settings = ["serve", "--public-url", this.url, "--data", join(this.folder, "data"), ...listen, ...callouts];
    this.#process = spawn(this.program, settings, { stdio: ["ignore", log, log] });
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.ended = ended;
    for (let tries = 0; tries < 600; tries++) {
      const answer = await fetch(this.url + "/readyz").catch(() => undefined);
      if (answer?.ok) return;
      if (this.#process.exitCode !== null) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(readFileSync(join(this.folder, "log"), "utf8").slice(-2000));
  }

  /** The process id of the program. */
  get pid() {
    return this.#process.pid;
  }

  /** Stops the program. */
  async stop(signal = "SIGTERM") {
    this.#process.kill(signal);
    await this.ended;
  }

  /** Stops the program and removes its folder. */
  async close() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Resolves to the owner of an organization, signed in. */
  async signIn(organization) {
    const body = JSON.stringify({ email: organization.email, password });
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`http://127.0.0.1:${this.idPort}/v1/id/auth/login`, { method: "POST", headers, body });
    if (!answer.ok) throw new Error(`sign in: ${answer.status}`);
    const cookie = answer.headers.getSetCookie().map((c) => c.split(";")[0]).join("; ");
    return new Person(this.url, cookie);
  }
}

/** An owner with a console session. */
class Person {
  constructor(url, cookie) {
    this.url = url;
    this.cookie = cookie;
  }

  /** Makes a console call. */
  async call(method, path, body) {
    const headers = { Cookie: this.cookie };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(this.url + "/v1/console" + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Activates a policy. */
  async activate(document) {
    await this.call("POST", "/policies", document);
    await this.call("POST", `/policies/${document.policy_id}/activate`);
  }

  /** Votes on an approval. */
  vote(approval, vote, more = {}) {
    const body = { vote, action_digest: approval.actionDigest, ...more };
    return this.call("POST", `/approvals/${approval.approvalId}/votes`, body);
  }
}

/** Returns a client of an organization. */
export function clientOf(organization, more = {}) {
  return new Client({ ...organization.client, ...more });
}
