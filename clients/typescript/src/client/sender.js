// Sends events in order. What waits while one request is out goes as the next batch; there is no timer. One request
// is out at a time, so events of one trace are stored in the order in which they were given.

import { LedgerError, Unreachable, WrongAnswer } from "../errors.js";
import { isRetryable, parseAnswer, refused } from "./http.js";
import { readResult } from "./result.js";

const maxLines = 1000;
const maxBytes = 8 << 20;

/** The sender of one client. */
export class Sender {
  #transport;
  #queue;
  #waiting = []; // {number, event, attempts, resolve, reject}
  #running;
  #closed = false;
  #stop = new AbortController();
  #loaded;
  #onRefused;

  constructor(transport, queue, onRefused = () => {}) {
    this.#transport = transport;
    this.#queue = queue;
    this.#onRefused = onRefused;
  }

  /** The number of events that the service does not have yet. */
  get pending() {
    return this.#queue.size;
  }

  /** Puts a signed event into the queue. Resolves, when the queue keeps it, to the promise of its result as `stored`. */
  async add(event) {
    if (this.#closed) throw new LedgerError("the client is closed");
    await this.resume();
    const number = await this.#queue.add(event);
    const item = { number, event, attempts: 0, size: event.text.length * 3 + 1 };
    const stored = new Promise((resolve, reject) => Object.assign(item, { resolve, reject }));
    stored.catch(() => {}); // a caller that does not wait is told by onRefused
    this.#waiting.push(item);
    this.#start();
    return { stored };
  }

  /** Reads what a durable queue kept, once. */
  resume() {
    this.#loaded ??= this.#queue.load().then((kept) => {
      for (const [number, event] of kept) {
        const size = event.text.length * 3 + 1;
        this.#waiting.push({ number, event, attempts: 0, size, resolve() {}, reject() {} });
      }
      this.#start();
    });
    return this.#loaded;
  }

  #start() {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      if (this.#waiting.length > 0 && !this.#stop.signal.aborted) this.#start();
    });
  }

  async #run() {
    await undefined; // events of the same turn go together
    for (let failures = 0; this.#waiting.length > 0 && !this.#stop.signal.aborted; ) {
      const batch = this.#take();
      const why = await this.#send(batch);
      if (!why) {
        failures = 0;
        continue;
      }
      failures++;
      await this.#transport.retry.sleep(this.#transport.pause(failures, why), this.#stop.signal).catch(() => {});
    }
  }

  #take() {
    let bytes = 0;
    let n = 0;
    while (n < Math.min(this.#waiting.length, maxLines)) {
      bytes += this.#waiting[n].size;
      if (n > 0 && bytes > maxBytes) break;
      n++;
    }
    return this.#waiting.splice(0, n);
  }

  /** Sends a batch once. Returns why a part of it has to be sent again. */
  async #send(batch) {
    let answers;
    try {
      answers = await this.#post(batch);
    } catch (why) {
      answers = batch.map(() => why);
    }
    const done = [];
    const again = [];
    for (const [i, item] of batch.entries()) {
      (this.#settle(item, answers[i]) ? done : again).push(item);
    }
    this.#waiting.unshift(...again);
    await this.#queue.remove(done.map((item) => item.number)).catch(() => {}); // then it is sent again: a replay
    for (const item of done) item.finish();
    return again.length === 0 ? undefined : answers[batch.indexOf(again[0])];
  }

  /** Decides whether an event is done. It is told after the queue has forgotten it. */
  #settle(item, answer) {
    if (!(answer instanceof Error)) {
      item.finish = () => item.resolve(answer);
      return true;
    }
    item.attempts++;
    const final = !isRetryable(answer);
    const givenUp = item.attempts >= this.#transport.retry.attempts;
    if (!final && givenUp && this.#queue.durable) item.reject(answer); // it stays in the queue
    if (!final && !(givenUp && !this.#queue.durable)) return false;
    item.finish = () => {
      item.reject(answer);
      this.#onRefused(item.event, answer);
    };
    return true;
  }

  /** Resolves to a result or an error for each event. */
  async #post(batch) {
    const request = { method: "POST", ingest: true, signal: this.#stop.signal };
    if (batch.length === 1) {
      const [{ event }] = batch;
      const headers = { "Idempotency-Key": event.eventId };
      const { text } = await this.#transport.once({ ...request, path: "/v1/ingest/events", body: event.text, headers });
      return [readResult(parseAnswer(text), event.eventId)];
    }
    const body = batch.map((item) => item.event.text + "\n").join("");
    const { text } = await this.#transport.once({
      ...request,
      path: "/v1/ingest/events/batch",
      body,
      media: "application/x-ndjson",
    });
    const lines = text.replace(/\n$/, "").split("\n");
    if (lines.length !== batch.length) throw new WrongAnswer(`${lines.length} lines to ${batch.length}`);
    return lines.map((line, i) => readLine(line, batch[i].event.eventId));
  }

  /** Resolves when the service has every event; rejects with Unreachable when the deadline is over first. */
  async flush(deadlineMs = 30_000) {
    await this.resume();
    let timer;
    const late = new Promise((_, reject) => {
      const why = () => reject(new Unreachable(`the deadline is over, ${this.pending} events are left`));
      timer = setTimeout(why, deadlineMs);
    });
    try {
      while (this.#running) await Promise.race([this.#running, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Flushes, and takes no more events. What is left after the deadline is rejected, and kept by a durable queue. */
  async close(deadlineMs = 30_000) {
    this.#closed = true;
    try {
      await this.flush(deadlineMs);
    } finally {
      this.#stop.abort();
      await this.#running;
      for (const item of this.#waiting.splice(0)) item.reject(new Unreachable("the client was closed before the event was sent"));
      await this.#queue.close();
    }
  }
}

function readLine(line, eventId) {
  try {
    const answer = parseAnswer(line);
    const status = answer.status_code;
    return status === 200 || status === 201 ? readResult(answer, eventId) : refused(Number(status), answer);
  } catch (why) {
    return why;
  }
}
