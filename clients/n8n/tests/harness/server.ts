import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { Console, type Member } from './console';

const SECRET = 'a secret of the operator in a test';
const REPOSITORY = resolve(__dirname, '../../../../..');

/** A real `agentledger serve` with a folder of its own. Callbacks may go to loopback. */
export class Server {
	private constructor(
		private readonly process: ChildProcess,
		private readonly folder: string,
		readonly url: string,
		private readonly identity: string,
	) {}

	static async start(): Promise<Server> {
		const folder = mkdtempSync(join(tmpdir(), 'n8n-agentledger-'));
		const listen = ['--listen', '127.0.0.1:0', '--id-listen', '127.0.0.1:0', '--metrics-listen', ''];
		const flags = ['--data', folder, '--public-url', 'http://log.test', '--callout-allow', '127.0.0.0/8'];
		const process = spawn(program(), ['serve', ...flags, ...listen, '--log-level', 'error'], {
			env: { ...globalThis.process.env, AGENTLEDGER_PLATFORM_SECRET: SECRET },
			stdio: ['ignore', 'pipe', 'inherit'],
		});
		const [, url, identity] = await readLine(process, /serving (\S+) identity (\S+)/);
		return new Server(process, folder, url!, identity!);
	}

	/** Creates an organization and signs its owner in. */
	async provision(slug: string): Promise<Console> {
		const made = await this.platform('POST', '', {
			name: slug,
			slug,
			admin_email: `owner@${slug}.example`,
			admin_password: `a password of ${slug}`,
			disclosure: 'full',
		});
		return await Console.signIn(this.url, slug, made as unknown as Member);
	}

	/** Calls an operator route for organizations. */
	async platform(method: string, path: string, body: object): Promise<Record<string, unknown>> {
		const answer = await fetch(`${this.identity}/v1/id/platform/organizations${path}`, {
			method,
			headers: { 'X-Platform-Secret': SECRET, 'Content-Type': 'application/json' },
			body: JSON.stringify(body),
		});
		if (!answer.ok) {
			throw new Error(`platform call: ${answer.status} ${await answer.text()}`);
		}
		return (await answer.json()) as Record<string, unknown>;
	}

	async stop(): Promise<void> {
		const ended = new Promise((done) => this.process.once('exit', done));
		this.process.kill('SIGTERM');
		await ended;
		rmSync(this.folder, { recursive: true, force: true });
	}
}

let built: string | undefined;

/** The server's program: AGENTLEDGER_BIN, or built from the repository once. */
function program(): string {
	if (process.env.AGENTLEDGER_BIN) {
		return process.env.AGENTLEDGER_BIN;
	}
	if (built === undefined) {
		built = resolve(__dirname, '../../agentledger');
		execFileSync('go', ['build', '-o', built, './cmd/agentledger'], { cwd: REPOSITORY, stdio: 'inherit' });
	}
	return built;
}

async function readLine(process: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
	let text = '';
	for await (const chunk of process.stdout!) {
		text += String(chunk);
		const found = pattern.exec(text);
		if (found) {
			process.stdout!.resume();
			return found;
		}
	}
	throw new Error(`the server ended: ${text}`);
}
