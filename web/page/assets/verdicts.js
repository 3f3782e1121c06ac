// Turns a report of the verifier into the verdicts of a page.

import { parseEntry, parseRecord } from "./verifier/verify/documents.js";
import { timeWords } from "./verifier/verify/words.js";

const steps = ["envelope", "signature", "record", "chain", "inclusion", "checkpoint"];

/** Returns the verdicts on a bundle by name. `bundle` was parsed, `result` is the verifier's under `trust`. */
export function bundleVerdicts(bundle, result, trust) {
  const verdicts = new Map();
  for (const step of steps) {
    verdicts.set(step, { ...judge(step, bundle, result, trust), numbers: read(() => numbers[step](bundle, trust)) ?? [] });
  }
  verdicts.set("witnesses", witnesses(result));
  return verdicts;
}

function judge(step, bundle, result, trust) {
  const { report, reason } = result;
  const ok = report[step + "_ok"];
  if (ok === true) return { state: "ok", words: "proved" };
  if (ok === false) {
    const error = report.errors.find((e) => e.startsWith(step + ": "));
    const unknown = step === "checkpoint" && report.unknown_keys ? trust.explain(result) : undefined;
    return { state: "fail", words: unknown ?? `wrong: ${error ?? reason}` };
  }
  if ((bundle.erased_at ?? null) !== null && step !== "record") {
    return { state: "gone", words: `can't be checked: the envelope was erased on ${bundle.erased_at}` };
  }
  return { state: "none", words: "not disclosed by this log" };
}

function witnesses({ report }) {
  const by = report.cosignatures.map((c) => [c.name, timeWords(c)]);
  if (report.quorum_ok === undefined) return { state: "none", words: "no policy asks for any", numbers: by };
  if (report.quorum_ok === false) {
    return { state: "fail", words: "too few witnesses of the policy have cosigned the checkpoint", numbers: by };
  }
  const time = report.quorum_time ? `a quorum of them by ${report.quorum_time}` : "but that proves no time";
  return { state: "ok", words: `${by.length} cosigned, ${time}`, numbers: by };
}

const numbers = {
  envelope: (b) => [["Signed digest", parseRecord(b.record).event_digest]],
  signature: (b) => {
    const r = parseRecord(b.record);
    return [["Agent", r.agent_id], ["Key", r.key_id], ["Public key", r.public_key], ["Signature", r.sig_value_b64]];
  },
  record: (b) => [["SHA-256 of the record", parseEntry(b.entry).record]],
  chain: (b) => [["Hash of the entry before", parseEntry(b.entry).prev], ["This entry", b.event_hash]],
  inclusion: (b) => [
    ["Index", String(b.inclusion.log_index)],
    ["Size of the tree", String(b.inclusion.tree_size)],
    ["Leaf", b.event_hash],
    ...b.inclusion.hashes.map((h, i) => [`Hash ${i + 1}`, h]),
    ["Root", b.inclusion.root_hash],
  ],
  checkpoint: (b, { signer, words }) => [
    ["Key", signer?.vkey ?? b.log_key],
    ["Signed by", words],
    ["Checkpoint", b.checkpoint],
  ],
};

/** Returns undefined when a part is not there or can't be read: its verdict says so. */
function read(ask) {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
