// Runs of tools without a signing key: the service signs their events. The ingest key needs the scope workflows.

import { canonicalize } from "../canonical/write.js";
import { WrongAnswer } from "../errors.js";
import { randomHex } from "./random.js";

const root = "/v1/ingest/workflows/runs";

/** The runs of one client. Bodies and answers use the names of the HTTP API. */
export class Runs {
  #transport;

  constructor(transport) {
    this.#transport = transport;
  }

  async #call(method, path, body) {
    const text = body === undefined ? undefined : canonicalize(body);
    const { text: answer } = await this.#transport.call({ method, path, body: text, ingest: true });
    try {
      return JSON.parse(answer);
    } catch {
      throw new WrongAnswer("not JSON");
    }
  }

  /** Starts a run, or finds the run with the same external_run_id. `workflow.name` is required. */
  async start(run) {
    const body = { external_run_id: "run-" + randomHex(), ...run };
    const started = await this.#call("POST", root, body);
    if (!started?.run_id || !started.status) throw new WrongAnswer("no run");
    return started;
  }

  /** Reports steps in order, 50 per request. Resolves to an answer for each. */
  async step(runId, ...steps) {
    const results = [];
    for (let i = 0; i < steps.length; i += 50) {
      const part = steps.slice(i, i + 50);
      const answers = await this.#call("POST", `${root}/${encodeURIComponent(runId)}/steps`, part);
      if (!Array.isArray(answers) || answers.length !== part.length) throw new WrongAnswer("another number of steps");
      if (answers.some((a) => !a?.decision || !a.event?.event_id)) throw new WrongAnswer("no decision");
      results.push(...answers);
    }
    return results;
  }

  /** Reports whether a tool may execute a step: the policy allows it, or the step consumed an approval. */
  mayGoOn(answer) {
    const approved = answer.approval?.status === "consumed";
    return answer.decision === "allow" || (answer.decision === "allow_with_obligation" && approved);
  }

  /** Ends a run: status `succeeded`, `failed` or `aborted`. */
  async complete(runId, ending) {
    const result = await this.#call("POST", `${root}/${encodeURIComponent(runId)}/complete`, ending);
    if (!result?.status) throw new WrongAnswer("no run");
    return result;
  }
}
