// What the end of the process means for events that clients have queued.
//
//   - A program that runs out of work still sends what is queued, for at most `endMs`, unless somebody waits for the
//     result: then the event gets all its tries.
//   - What is left, also after process.exit(), is counted in one line on standard error.
//   - A page that is hidden or closed makes one last request with `keepalive`.
//   - A signal whose default ends the process runs no JavaScript. This module handles no signal.

const endMs = 5_000;

const holding = new Set(); // senders with queued events; strong, so that a client without references is finished too
const unfinished = new Set(); // of these, senders that the end of the process has not finished yet
let watching = false;

/** Finishes a sender, which has queued an event, at the end of the process. */
export function hold(sender) {
  holding.add(sender);
  unfinished.add(sender);
  if (watching) return;
  watching = true;
  const { process, document, Deno } = globalThis;
  if (document) globalThis.addEventListener?.("pagehide", leave);
  process?.on?.("beforeExit", finish);
  process?.on?.("exit", report);
  if (Deno) process?.on?.("uncaughtExceptionMonitor", reportUncaught);
}

/** Forgets a sender whose queue is empty, or that was closed: its caller knows what was not sent. */
export function release(sender) {
  holding.delete(sender);
  unfinished.delete(sender);
}

function finish() {
  for (const sender of unfinished) sender.finish(endMs);
  unfinished.clear(); // until the program queues more
}

function leave() {
  for (const sender of holding) sender.leave();
}

/** An uncaught error ends Deno without the event "exit". */
function reportUncaught() {
  if (globalThis.process.listenerCount("uncaughtException") === 0) report();
}

function report() {
  for (const sender of holding) {
    for (const [count, fate] of sender.leftBehind) {
      const [events, them] = count === 1 ? ["1 queued event was", "it"] : [`${count} queued events were`, "them"];
      if (count > 0) console.error(`agentledger: ${events} not delivered before the process ended; ${fate(them)}`);
    }
  }
}
