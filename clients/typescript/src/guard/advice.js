// Advice on an act without a decision, by its cause. The causes are those of permit.js and of the journal.

import { Refused, Unreachable, WrongAnswer } from "../errors.js";

const byStatus = new Map([
  [401, "Check the ingest key (token)"],
  [403, "Check the ingest key's scopes, the organization and the agent's key"],
]);
const address = "Check the service's address (url), because something else may answer there";
const operator = "The service has a fault or is stopped: its operator can say more";

/** Returns what to do, as a sentence without its full stop; "" if the cause already contains it. */
export function adviceFor(why) {
  if (why instanceof Refused) return adviceForRefusal(why);
  if (why instanceof WrongAnswer) return address;
  return why instanceof Unreachable ? "Check the network and the service's address (url)" : "";
}

function adviceForRefusal({ status, code, retryAfter, message }) {
  if (byStatus.has(status)) return byStatus.get(status);
  if (status === 422 && message.includes("emitted_at is too far")) return "Set this machine's clock";
  if (status === 429 && code === "plan_limit") return "The organization's limit is reached: the service's operator can raise it";
  if (status === 429) return retryAfter > 0 ? `Repeat it after ${retryAfter} s` : "Repeat it later";
  if (status >= 300 && status < 400) return address;
  return status >= 500 ? operator : "";
}
