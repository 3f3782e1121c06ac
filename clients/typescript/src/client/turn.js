// The end of a turn: a moment when no callback and no promise is pending, so that events that are given together are
// sent together. The functions are captured at import, because test frameworks may replace them with ones that do not
// run.

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
