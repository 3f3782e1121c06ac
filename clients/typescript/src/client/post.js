// Requests with events, and what their answers say about each event: a result, or an error whose `final` tells whether
// the service refused the event itself. Without either the event was not delivered.

import { Refused, WrongAnswer } from "../errors.js";
import { parseAnswer, refused } from "./http.js";
import { readResult } from "./result.js";

/** Sends one signed event. Resolves to its result. */
export async function postEvent(transport, event, request = {}) {
  const headers = { "Idempotency-Key": event.eventId };
  const { text } = await transport.once({ ...request, method: "POST", ingest: true, proves: true, path: "/v1/ingest/events", body: event.text, headers });
  return readResult(parseAnswer(text), event.eventId);
}

/** Sends signed events. Resolves to a result or an error for each; rejects with an error that is about none of them. */
export async function postBatch(transport, events, request = {}) {
  const body = events.map((event) => event.text + "\n").join("");
  const media = "application/x-ndjson";
  const path = "/v1/ingest/events/batch";
  const { text, requestId } = await transport.once({ ...request, method: "POST", ingest: true, proves: true, path, body, media }).catch((why) => {
    if (why instanceof Refused && why.final) why.proved = false;
    throw why;
  });
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines.length !== events.length) throw new WrongAnswer(`${lines.length} lines to ${events.length}`);
  const answers = lines.map((line, i) => readLine(line, events[i].eventId, requestId));
  if (answers.some((answer) => answer instanceof WrongAnswer)) {
    // A line with an error names no event. If another line is not about its event, they may have changed places.
    for (const answer of answers) if (answer instanceof Refused) answer.proved = false;
  }
  return answers;
}

function readLine(line, eventId, requestId) {
  try {
    const answer = parseAnswer(line);
    const status = answer.status_code;
    if (!Number.isInteger(status)) throw new WrongAnswer("a line without status_code");
    return status === 200 || status === 201 ? readResult(answer, eventId) : refused(status, answer, { requestId });
  } catch (why) {
    return why;
  }
}
