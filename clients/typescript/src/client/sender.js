// Sends events. Events that wait while requests are in flight form the next batch; no timer gathers them. At most two
// requests are in flight at a time, not counting those that hang: these hold back only the events of their own traces.
// Events of one trace are stored in the order in which they were given: see Waiting.
//
// After a request that failed, its events are sent in smaller ones, down to one event each, because a proxy may block a
// single event permanently. Such an event is retried alone, after all others that wait, and only the later events of its
// trace wait for it.

import { LedgerError, Refused, Unreachable } from "../errors.js";
import { hold, release } from "./ending.js";
import { isRetryable, letEnd, mayConcernOne } from "./http.js";
import { postBatch, postEvent } from "./post.js";
import { tell, warn } from "./tell.js";
import { afterTurn } from "./turn.js";
import { Waiting } from "./waiting.js";

const maxOut = 2; // requests in flight
const maxHoldMs = 1_000; // how long a request in flight may keep other events waiting
const encoder = new TextEncoder();
const maxLines = 1_000;
const maxBytes = 8 << 20;
const maxLast = 60 << 10; // bytes of the last request of a page: browsers allow 64 KiB for all with keepalive

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
  #waiting = new Waiting(); // items: {number, event, trace, size, lines, attempts, awaited, settled, resolve, reject}
  #awaited = 0; // items with tries left whose caller waits for the result
  #entering = 0; // events that were given, and are not in the queue yet
  #adding = 0; // of these, events that the queue is storing
  #out = new Map(); // batches of items, and the promises of their ends
  #released = new Set(); // of these batches, those that hold back only their own traces
  #maxLines = maxLines; // less after a 413, because a proxy may limit bodies to less than the service does
  #failures = 0; // in a row
  #reported = false;
  #rests = new Set(); // controllers of pauses of all requests
  #ownRests = new Set(); // controllers of pauses of single events
  #isToldToWait = false; // by the Retry-After of the latest one
  #awake; // a timer that keeps the process alive
  #held = false; // until the end of the process
  #idle = []; // functions to call when nothing is left
  #closed = false;
  #stop = new AbortController();
  #loaded;
  #onRefused;

  constructor(transport, queue, onRefused) {
    this.#transport = transport;
    this.#queue = queue;
    this.#onRefused = onRefused;
    if (queue.durable && queue.size > 0) this.#hold();
  }

  /** The number of events that the service has neither stored nor refused yet. */
  get pending() {
    return this.#queue.size + this.#entering - this.#adding;
  }

  /** What becomes of pending events if the process ends now: pairs of a count and a sentence about "it" or "them". */
  get leftBehind() {
    const { durable, folder } = this.#queue;
    const lost = (them) => (them === "it" ? "it is lost" : "they are lost");
    if (!durable) return [[this.pending, lost]];
    const place = folder === undefined ? "their queue" : `the queue in ${folder}`;
    return [[this.#queue.size - this.#adding, (them) => `the next client with ${place} sends ${them}`], [this.#entering, lost]];
  }

  #hold() {
    if (!this.#held) hold(this);
    this.#held = true;
  }

  #release() {
    if (this.#held) release(this);
    this.#held = false;
  }

  /**
   * Puts a signed event, or the promise of one, into the queue. Events enter it in the order of the calls, however long
   * signing takes. Resolves, when it is in the queue, to the event and the promise of its result as `stored`. An event
   * stays in the queue until the service has stored or refused it, except in memory if `waited`: its caller, who waits
   * for `stored`, then sends it again if that rejects. Reading `stored` keeps the process alive while
   * the event has tries left.
   */
  async add(signing, { waited = false } = {}) {
    if (this.#closed) throw new LedgerError("the client is closed");
    this.#hold();
    this.#given++;
    this.#entering++;
    const item = { attempts: 0, awaited: false, settled: false, kept: this.#queue.durable || !waited };
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
      await this.#store(item);
      const stored = new Promise((resolve, reject) => Object.assign(item, { resolve, reject }));
      stored.catch(() => {}); // a caller that does not wait is notified by onRefused
      this.#wait(item);
      const readStored = () => (this.#await(item), stored);
      item.keep({ event: item.event, get stored() { return readStored(); } });
    } catch (why) {
      item.fail(why);
    }
    this.#entering--;
    this.#entered++;
    this.#pump();
  }

  async #store(item) {
    this.#adding++;
    try {
      item.number = await this.#queue.add(item.event);
    } finally {
      this.#adding--;
    }
  }

  /** Keeps the process alive, from now on, while the event has tries left. */
  #await(item) {
    if (item.awaited || item.settled) return;
    item.awaited = true;
    this.#awaited++;
    this.#stayAwake();
  }

  #settled(item) {
    item.settled = true;
    if (item.awaited) this.#awaited--;
    item.awaited = false;
    this.#stayAwake();
  }

  /** Pauses don't keep the process alive, unless somebody waits. */
  #stayAwake() {
    if (this.#rests.size + this.#ownRests.size > 0 && this.#awaited > 0) {
      this.#awake ??= setInterval(() => {}, 2 ** 31 - 1);
    } else if (this.#awake !== undefined) {
      clearInterval(this.#awake);
      this.#awake = undefined;
    }
  }

  #wait(item) {
    item.trace = item.event.traceId;
    item.size = item.event.text.length * 3 + 1;
    this.#waiting.push(item);
  }

  /** Loads what a durable queue has stored, once. */
  resume() {
    this.#loaded ??= this.#queue.load().then((events) => {
      for (const [number, event] of events) this.#wait({ number, event, attempts: 0, kept: true, resolve() {}, reject() {} });
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
      const batch = this.#waiting.take(this.#maxLines, maxBytes);
      this.#out.set(batch, this.#send(batch));
      this.#due = undefined;
      if (this.#waiting.free > 0) this.#plan();
    }
    if (this.#out.size + this.#waiting.size + this.#given - this.#entered > 0) return;
    if (this.pending === 0) this.#release();
    for (const done of this.#idle.splice(0)) done();
  }

  /**
   * Decides whether the next request is sent now: in parallel with another one only if it is as large, because small
   * ones cost more.
   */
  #mayGo() {
    const { free } = this.#waiting;
    const most = this.#failures > 0 ? 1 : maxOut;
    const out = [...this.#out.keys()].filter((batch) => !this.#released.has(batch));
    if (free === 0 || this.#rests.size > 0 || out.length >= most || this.#stop.signal.aborted) return false;
    if (free < this.#maxLines && !(this.#entered >= this.#due)) return false;
    return out.every((batch) => free >= batch.length);
  }

  /** Lets other requests start as if this one had ended. Its traces still wait for it. */
  #letOthers(batch) {
    this.#released.add(batch);
    this.#due = undefined;
    this.#plan();
  }

  #forget(batch) {
    this.#out.delete(batch);
    this.#released.delete(batch);
    this.#due = undefined;
    this.#plan(); // the callers that were just notified may send more
  }

  /** Sends a batch once. Events that must be retried wait at the front. */
  async #send(batch) {
    const hangs = setTimeout(() => this.#letOthers(batch), maxHoldMs);
    letEnd(hangs);
    let answers;
    try {
      answers = await this.#post(batch);
    } catch (why) {
      answers = batch.map(() => why);
      for (const item of batch) item.lines = batch.length >> 1 || 1;
      if (batch.length > 1 && mayConcernOne(why)) return this.#divide(batch, why);
    } finally {
      clearTimeout(hangs);
    }
    const done = [];
    const again = [];
    for (const [i, item] of batch.entries()) {
      (this.#settle(item, answers[i]) ? done : again).push(item);
    }
    if (again.length === 1 && batch.length === 1 && this.#waiting.size > 0) return this.#retryAlone(batch, answers[0]);
    this.#waiting.giveBack(batch, again);
    if (done.length >= this.#maxLines) this.#maxLines = Math.min(maxLines, this.#maxLines + (this.#maxLines >> 3) + 1);
    const rest = again.length > 0 ? this.#rest(answers[batch.indexOf(again[0])]) : this.#recover();
    await this.#remove(done).catch(() => {}); // if it fails, they are sent again: a replay
    for (const item of done) item.finish();
    await rest;
    this.#forget(batch);
  }

  /** Lets others go on while an event that failed alone waits for its next try. */
  async #retryAlone(batch, why) {
    await this.#rest(why);
    this.#letOthers(batch);
    await this.#sleep(this.#transport.pause(batch[0].attempts, why), this.#ownRests);
    this.#waiting.giveBack(batch, batch, { last: true });
    this.#forget(batch);
  }

  /** Sends the events of a request in smaller ones. */
  #divide(batch, why) {
    if (why.status === 413) this.#maxLines = batch.length >> 1;
    this.#waiting.giveBack(batch, batch);
    this.#forget(batch);
  }

  /** Removes items from the queue. A durable queue keeps the refused events of them in another place. */
  async #remove(items) {
    const refused = items.filter((item) => item.refused);
    if (refused.length > 0) await this.#queue.refuse?.(refused.map((item) => [item.event, item.refused]));
    await this.#queue.remove(items.map((item) => item.number));
  }

  /** Warns of events that stay in the queue, once until a request succeeds. */
  #report(why) {
    if (!this.#reported) warn(`events were not delivered, and are sent again later: ${why.message}`);
    this.#reported = true;
  }

  #recover() {
    this.#failures = 0;
    this.#reported = false;
  }

  /** Pauses all requests. */
  async #rest(why) {
    if (this.#rests.size === 0) this.#failures++;
    this.#isToldToWait = why?.retryAfter > 0;
    await this.#sleep(this.#transport.pause(this.#failures, why), this.#rests);
  }

  /** Waits, unless all pauses are ended. */
  async #sleep(ms, rests) {
    const control = new AbortController();
    rests.add(control);
    if (this.#stop.signal.aborted) control.abort();
    this.#stayAwake();
    await this.#transport.retry.sleep(ms, control.signal, { keepsAlive: false }).catch(() => {});
    rests.delete(control);
    this.#stayAwake();
  }

  #endRests() {
    for (const control of [...this.#rests, ...this.#ownRests]) control.abort();
  }

  /**
   * Decides whether an event is done. Its caller is notified after the queue has removed it. If it stays, the caller is
   * notified once a further try would not help soon.
   */
  #settle(item, answer) {
    if (!(answer instanceof Error)) {
      this.#settled(item);
      item.finish = () => item.resolve(answer);
      return true;
    }
    item.attempts++;
    const final = answer instanceof Refused && answer.final;
    const isUnheard = !item.awaited && !this.#onRefused;
    if (!final && isRetryable(answer) && item.attempts < this.#transport.retry.attempts) return false;
    this.#settled(item);
    if (!final && item.kept) {
      this.#report(answer);
      item.reject(answer);
      return false;
    }
    if (final) item.refused = answer;
    if (final && isUnheard) warn(`a queued event will not be sent again: ${answer.message}`);
    item.finish = () => {
      item.reject(answer);
      tell("onRefused", this.#onRefused, item.event, answer);
    };
    return true;
  }

  /** Resolves to a result or an error for each event. */
  async #post(batch, more) {
    const request = { signal: this.#stop.signal, ...more };
    if (batch.length === 1) return [await postEvent(this.#transport, batch[0].event, request)];
    return postBatch(this.#transport, batch.map((item) => item.event), request);
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
      this.#release();
      this.#stop.abort();
      this.#endRests();
      await Promise.all(this.#out.values());
      for (const item of this.#waiting.clear()) item.reject(new Unreachable("the client was closed before the event was sent"));
      await this.#queue.close();
    }
  }

  /** Flushes at the end of the process, and stops what would keep it alive afterwards. */
  async finish(deadlineMs) {
    if (this.pending === 0) return;
    if (!this.#isToldToWait) {
      this.#failures = 0;
      this.#endRests();
    }
    await this.flush(deadlineMs).catch(() => {});
    if (this.pending > 0) this.#stop.abort();
  }

  /** Makes a last request of a page. The events stay in the queue, because its answer may not arrive. */
  leave() {
    const batch = [];
    let left = maxLast;
    const out = [...this.#out.keys()].flat();
    for (const item of [...out, ...this.#waiting.all].sort((a, b) => a.place - b.place).slice(0, this.#maxLines)) {
      left -= encoder.encode(item.event.text).length + 1;
      if (left < 0) break;
      batch.push(item);
    }
    if (batch.length > 0) this.#post(batch, { keepalive: true }).catch(() => {});
  }
}
