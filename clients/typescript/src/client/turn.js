// The end of a turn: a moment when no callback and no promise of now is left, so that events that are given together go
// together. The functions are taken at import, because tests of others may replace them by ones that do not run.

const { setImmediate: immediate, MessageChannel: Channel } = globalThis;
let channel;
const due = [];

/** Calls a function after the turn. Browsers have no setImmediate, and timers of a hidden page run once a second. */
export const afterTurn = immediate ? (call) => void immediate(call) : askChannel;

function askChannel(call) {
  if (!channel) {
    channel = new Channel();
    channel.port1.onmessage = () => due.shift()();
  }
  due.push(call);
  channel.port2.postMessage(0);
}
