// The lines of a report, in the words and the order of `aps verify`.

import { LedgerError, printable } from "../errors.js";
import { parseNote, readCheckpoint } from "../log/note.js";
import { checkForm, is } from "./forms.js";
import { genesis, parseEntry, parseEnvelope, parseRecord } from "./documents.js";

const yes = {
  inclusion: "the entry is in the tree that the checkpoint signs, at its index",
  chain: "the entry names the one before it, which is in the same tree",
  record: "the entry commits to this record of this event",
  envelope: "this envelope is the one that was signed",
  directory: "the service's directory lists a tree of this log that has the entry",
};

/** Returns the line of one verdict. */
function line(ok, name, words) {
  const label = name.padEnd("checkpoint  ".length);
  if (ok === null || ok === undefined) return `--    ${label}not disclosed`;
  return ok ? `ok    ${label}${words}` : `FAIL  ${label}it does not hold that ${words}`;
}

/** Returns the lines of a bundle's report. `receipt` is the line about the receipt of a tool, or undefined. */
export function reportLines(b, r, receipt) {
  const lines = [
    "event       " + printable(b.event_id),
    "log         " + printable(b.origin),
    line(r.inclusion_ok, "inclusion", yes.inclusion),
    line(r.checkpoint_ok, "checkpoint", checkpointWords(r.log_key_source)),
    line(r.chain_ok, "chain", yes.chain),
    line(r.record_ok, "record", yes.record),
    line(r.signature_ok, "signature", signatureWords(b)),
    line(r.envelope_ok, "envelope", yes.envelope),
  ];
  if (b.directory) lines.push(line(r.directory_ok, "directory", yes.directory));
  if (r.ok) lines.push(...successionLines(b));
  if (receipt) lines.push(receipt);
  lines.push(...quorumLines(r.quorum_ok, r.quorum_time, r.cosignatures, ""));
  const second = r.directory_cosignatures ?? [];
  lines.push(...quorumLines(r.directory_quorum_ok, r.directory_quorum_time, second, "the directory, "));
  if (r.unchecked.length > 0) lines.push("not covered: " + r.unchecked.join(", "));
  for (const e of r.errors) lines.push("wrong: " + printable(e));
  const soft = r.unknown_keys ? lines.map(soften) : lines;
  const claim = b.operator_statement?.key_claim;
  if (typeof claim === "string" && claim !== "") soft.push("the operator claims of the key that signed: " + printable(claim));
  soft.push(...conclusion(r));
  return soft;
}

function conclusion(r) {
  if (!r.ok || r.quorum_ok === false || r.directory_quorum_ok === false) return [];
  return [
    r.log_key_source === "argument"
      ? "proved, as far as checked above"
      : "whole, but signed by a key that only the bundle vouches for",
  ];
}

function soften(text) {
  if (text.startsWith("FAIL")) return "--  " + text.slice(4);
  return text.startsWith("wrong: ") ? "can't tell: " + text.slice(7) : text;
}

function quorumLines(quorum, at, by, of) {
  const lines = [];
  const until = at ? `, by ${at}` : "";
  if (quorum === true) {
    lines.push(line(true, "quorum", `${of}enough witnesses of the policy have cosigned the checkpoint${until}`));
  }
  if (quorum === false) {
    lines.push(`--    quorum      ${of}not reached: too few witnesses of the policy have cosigned the checkpoint`);
  }
  for (const c of by) lines.push(`cosigned    ${of}${timeWords(c)}, by ${printable(c.name)}`);
  return lines;
}

/** Returns the time of a cosignature, with a remark if it proves none. */
export function timeWords(c) {
  return c.in_future ? `${c.time} (in the future: it proves no time)` : c.time;
}

function checkpointWords(source) {
  const key = source === "argument" ? "the key given" : "the key that the bundle names itself";
  return "the checkpoint is signed by " + key;
}

const signers = {
  agent: "the agent's",
  bridge: "the service's, which signs for tools without a key",
  system: "the service's own",
};

function signatureWords(b) {
  if ((b.record ?? null) === null) return "";
  const words = "the key in the record signed this event";
  try {
    const r = parseRecord(b.record);
    const maker = r.signer === "agent" && r.custody === "server" ? ", with a key that the service made" : "";
    return `${words}; the record calls it ${signers[r.signer]}${maker}`;
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return words;
  }
}

/** Describes the predecessor that the first event of a log names. The bundle must be correct. */
function successionLines(b) {
  if (b.log_index !== 0 || !b.record || !b.envelope) return [];
  try {
    const { members } = parseEnvelope(b.envelope);
    const r = parseRecord(b.record);
    if (members.action_kind !== "ledger_successor" || r.signer !== "system") return [];
    if (parseEntry(b.entry).prev !== genesis(b.origin)) return [];
    const payload = members.payload;
    checkForm(payload, { predecessor: is.someText, checkpoint: is.text, reason: is.someText });
    const last = readCheckpoint(parseNote(payload.checkpoint));
    if (last.origin !== payload.predecessor || next(payload.predecessor) !== b.origin) return [];
    return [`succeeds    ${printable(payload.predecessor)}, last known with ${last.size} entries: ${printable(payload.reason)}`];
  } catch (why) {
    if (!(why instanceof LedgerError)) throw why;
    return [];
  }
}

/** Returns the origin of the log's successor, which ends in /2, then /3. */
function next(origin) {
  const m = /^(.*\/o\/[^/]+)\/([1-9][0-9]{0,8})$/.exec(origin);
  return m ? `${m[1]}/${Number(m[2]) + 1}` : origin + "/2";
}
