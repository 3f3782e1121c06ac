import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Execution } from './execution';

/** Stands in for n8n's route for resume URLs: it finds the waiting execution and runs the node's webhook. */
export class Resumer {
	private readonly secret = randomBytes(16).toString('hex');
	private readonly waiting = new Map<string, Execution>();
	/** The statuses returned to callers, in order. */
	readonly statuses: number[] = [];
	private watchers: Array<() => void> = [];

	private constructor(private readonly server: Server) {}

	static async start(): Promise<Resumer> {
		const server = createServer();
		const resumer = new Resumer(server);
		server.on('request', (request, response) => void resumer.serve(request, response));
		await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
		return resumer;
	}

	get url(): string {
		return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
	}

	/** Like n8n's getSignedResumeUrl: a path with execution and node, and its signature. */
	signedUrl(execution: string, node: string): string {
		const path = `/webhook-waiting/${execution}/${node}`;
		return `${this.url}${path}?signature=${this.sign(path)}`;
	}

	wait(id: string, execution: Execution): void {
		this.waiting.set(id, execution);
	}

	/** Resolves when one more call has been answered with this status. */
	async answered(status: number): Promise<void> {
		while (!this.statuses.includes(status)) {
			await new Promise<void>((done) => this.watchers.push(done));
		}
	}

	async stop(): Promise<void> {
		this.server.closeAllConnections();
		await new Promise((done) => this.server.close(done));
	}

	private sign(path: string): string {
		return createHmac('sha256', this.secret).update(path).digest('hex');
	}

	private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const chunks: Buffer[] = [];
		for await (const chunk of request) {
			chunks.push(chunk as Buffer);
		}
		const { status, body } = await this.resume(request.url ?? '', Buffer.concat(chunks).toString());
		response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
		this.statuses.push(status);
		this.watchers.splice(0).forEach((watcher) => watcher());
	}

	private async resume(target: string, text: string): Promise<{ status: number; body: unknown }> {
		const { pathname, searchParams } = new URL(target, this.url);
		const id = pathname.split('/')[2] ?? '';
		if (searchParams.get('signature') !== this.sign(pathname)) {
			return { status: 401, body: { error: 'Invalid token' } };
		}
		const execution = this.waiting.get(id);
		if (execution === undefined) {
			return { status: 409, body: { message: 'The execution is not waiting' } };
		}
		const answer = await execution.callWebhook(text);
		if (execution.resumed !== undefined) {
			this.waiting.delete(id);
		}
		return answer;
	}
}
