// Sends events. Events that wait while requests are in flight form the next batch; there is no timer. At most two
// requests are in flight at a time. Events of one trace are stored in the order in which they were given: see Waiting.

import { LedgerError, Unreachable, WrongAnswer } from "../errors.js";
import { isRetryable, parseAnswer, refused } from "./http.js";
import { readResult } from "./result.js";
import { tell } from "./tell.js";
import { afterTurn } from "./turn.js";
import { Waiting } from "./waiting.js";

const maxOut = 2; // requests in flight
const maxLines = 1000;
const maxBytes = 8 << 20;

/** The sender of one client. */
export class Sender {
  #transport;
  #queue;
  #first; // of the items whose events are not signed yet, in the order of the calls: each has the next one
  #last;
  #given = 0; // calls of add
  #entered = 0; // of these, calls whose item waits, or was rejected by the queue
  #due; // number of entered calls at which the next request is sent; undefined until the turn ends
  #planned = false;
  #waiting = new Waiting(); // items: {number, event, trace, size, attempts, resolve, reject}
  #out = new Map(); // batches of items, and the promises of their ends
  #failures = 0; // in a row
  #rests = 0; // pauses in progress
  #idle = []; // functions to call when nothing is left
  #closed = false;
  #stop = new AbortController();
  #loaded;
  #onRefused;

  constructor(transport, queue, onRefused) {
    this.#transport = transport;
    this.#queue = queue;
    this.#onRefused = onRefused;
  }

  /** The number of events that the service has not stored yet. */
  get pending() {
    return this.#queue.size;
  }

  /**
   * Puts a signed event, or the promise of one, into the queue. Events enter it in the order of the calls, however long
   * signing takes. Resolves, when it is in the queue, to the event and the promise of its result as `stored`.
   */
  async add(signing) {
    if (this.#closed) throw new LedgerError("the client is closed");
    this.#given++;
    const item = { attempts: 0 };
    if (this.#first) this.#last.next = item;
    else this.#first = item;
    this.#last = item;
    this.#plan();
    try {
      item.event = await signing;
    } catch (why) {
      item.why = why;
    }
    return new Promise((resolve, reject) => {
      Object.assign(item, { keep: resolve, fail: reject });
      this.#enter();
    });
  }

  /** Puts items into the queue up to the first one that is not signed yet. */
  #enter() {
    while (this.#first?.keep) {
      const item = this.#first;
      this.#first = item.next;
      item.next = undefined; // so that a waiting item does not keep later ones in memory
      this.#keep(item);
    }
  }

  async #keep(item) {
    try {
      if (item.why) throw item.why;
      if (this.#stop.signal.aborted) throw new LedgerError("the client is closed");
      await this.resume();
      item.number = await this.#queue.add(item.event);
      const stored = new Promise((resolve, reject) => Object.assign(item, { resolve, reject }));
      stored.catch(() => {}); // a caller that does not wait is notified by onRefused
      this.#wait(item);
      item.keep({ event: item.event, stored });
    } catch (why) {
      item.fail(why);
    }
    this.#entered++;
    this.#pump();
  }

  #wait(item) {
    item.trace = item.event.traceId;
    item.size = item.event.text.length * 3 + 1;
    this.#waiting.push(item);
  }

  /** Loads what a durable queue has stored, once. */
  resume() {
    this.#loaded ??= this.#queue.load().then((events) => {
      for (const [number, event] of events) this.#wait({ number, event, attempts: 0, resolve() {}, reject() {} });
      this.#plan();
    });
    return this.#loaded;
  }

  /** Allows the next request once all events are signed that were given up to the end of this turn. */
  #plan() {
    if (this.#entered >= this.#due) this.#due = undefined; // signed events also wait for the events of this turn
    if (this.#planned) return;
    this.#planned = true;
    afterTurn(() => {
      this.#planned = false;
      this.#due ??= this.#given;
      this.#pump();
    });
  }

  #pump() {
    while (this.#mayGo()) {
      const batch = this.#waiting.take(maxLines, maxBytes);
      this.#out.set(batch, this.#send(batch));
      this.#due = undefined;
      if (this.#waiting.free > 0) this.#plan();
    }
    if (this.#out.size + this.#waiting.size + this.#given - this.#entered > 0) return;
    for (const done of this.#idle.splice(0)) done();
  }

  /**
   * Decides whether the next request is sent now: in parallel with another one only if it is as large, because small
   * ones cost more.
   */
  #mayGo() {
    const { free } = this.#waiting;
    const most = this.#failures > 0 ? 1 : maxOut;
    if (free === 0 || this.#rests > 0 || this.#out.size >= most || this.#stop.signal.aborted) return false;
    if (free < maxLines && !(this.#entered >= this.#due)) return false;
    return [...this.#out.keys()].every((batch) => free >= batch.length);
  }

  /** Sends a batch once. Events that must be retried wait at the front. */
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
    this.#waiting.giveBack(batch, again);
    const rest = again.length > 0 ? this.#rest(answers[batch.indexOf(again[0])]) : (this.#failures = 0);
    await this.#queue.remove(done.map((item) => item.number)).catch(() => {}); // if it fails, they are sent again: a replay
    for (const item of done) item.finish();
    await rest;
    this.#out.delete(batch);
    this.#due = undefined;
    this.#plan(); // the callers that were just notified may send more
  }

  async #rest(why) {
    if (this.#rests === 0) this.#failures++;
    this.#rests++;
    await this.#transport.retry.sleep(this.#transport.pause(this.#failures, why), this.#stop.signal).catch(() => {});
    this.#rests--;
  }

  /** Decides whether an event is done. Its caller is notified after the queue has removed it. */
  #settle(item, answer) {
    if (!(answer instanceof Error)) {
      item.finish = () => item.resolve(answer);
      return true;
    }
    item.attempts++;
    const final = !isRetryable(answer);
    const givenUp = item.attempts >= this.#transport.retry.attempts;
    if (!final && givenUp && this.#queue.durable) item.reject(answer); // the event remains in the queue
    if (!final && !(givenUp && !this.#queue.durable)) return false;
    item.finish = () => {
      item.reject(answer);
      tell("onRefused", this.#onRefused, item.event, answer);
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

  /** Resolves when the service has stored every event; rejects with Unreachable if the deadline passes first. */
  async flush(deadlineMs = 30_000) {
    await this.resume();
    let timer;
    const late = new Promise((_, reject) => {
      const why = () => reject(new Unreachable(`the deadline has passed, ${this.pending} events are left`));
      timer = setTimeout(why, deadlineMs);
    });
    const idle = new Promise((resolve) => this.#idle.push(resolve));
    this.#plan();
    try {
      await Promise.race([idle, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Flushes, and then accepts no more events. Events that remain after the deadline are rejected, and kept by a durable
   * queue.
   */
  async close(deadlineMs = 30_000) {
    this.#closed = true;
    try {
      await this.flush(deadlineMs);
    } finally {
      this.#stop.abort();
      await Promise.all(this.#out.values());
      for (const item of this.#waiting.clear()) item.reject(new Unreachable("the client was closed before the event was sent"));
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
