// The page that checks a file of the reader: a bundle or an evidence pack, which may also be a folder.

import { LedgerError } from "./verifier/errors.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { verifyPack } from "./verifier/verify/pack.js";
import { parseLogKey, parseNote } from "./verifier/log/note.js";
import { findSigner, keyID } from "./knownkeys.js";
import { canCheck, showOutcome } from "./marks.js";
import { forget, newKey, recall, remember } from "./memory.js";

const form = document.getElementById("check");
const states = { proved_wrong: "fail", cant_tell: "fail" };

const largestBundle = 64 << 20; // bytes; a pack is read by slices, and has no such bound

/** Reports whether a file begins as a ZIP file does. */
async function isZip(file) {
  const begin = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return begin[0] === 0x50 && begin[1] === 0x4b;
}

/** Resolves to the result for a file, with the origin and the checkpoint that it names. */
async function verifyFile(file, given) {
  if (await isZip(file)) return verifyFiles(file, given);
  if (file.size > largestBundle) throw new LedgerError("the file is too large for a bundle, and no evidence pack");
  const bytes = new Uint8Array(await file.arrayBuffer());
  const result = await verifyBundle(bytes, given);
  const { origin, checkpoint } = result.report?.ok ? JSON.parse(new TextDecoder().decode(bytes)) : {};
  return { ...result, origin, checkpoint };
}

async function verifyFiles(pack, given) {
  const result = await verifyPack(pack, given);
  return { ...result, origin: result.report?.origin, checkpoint: result.report?.checkpoint };
}

const mostFiles = 5000; // of a dropped folder: more than a pack may have

/** Adds the files of a dropped folder as pairs of a path and a File. */
async function addEntries(entry, path, files) {
  if (entry.isFile) files.push([path, await new Promise((resolve, reject) => entry.file(resolve, reject))]);
  if (!entry.isDirectory) return;
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)); // in parts, the last one is empty
    if (some.length === 0) return;
    for (const next of some) {
      if (files.length < mostFiles) await addEntries(next, `${path}/${next.name}`, files);
    }
  }
}

/** Resolves to the result for what was dropped or chosen last. */
function verifyChosen(folder, given) {
  if (folder) return verifyFiles(folder, given);
  const { file, folder: input } = form.elements;
  if (file.files.length > 0) return verifyFile(file.files[0], given);
  if (input.files.length > 0) return verifyFiles(input.files, given);
  throw new LedgerError("choose a file or a folder");
}

// A saved copy of this page remembers nothing: all files of a browser may share one storage.
const remembers = "remembers" in form.dataset;

/** Returns what this browser remembers of the log of an origin. */
function recallLog(origin) {
  return remembers ? recall(origin) : { keys: [] };
}

/** Returns words for a log: its origin, and the name that its page showed. Any page of this service can choose a name. */
function logWords(origin) {
  const { name } = recallLog(origin);
  return typeof name === "string" && name !== "" ? `${origin}, which this service calls “\u2068${name}\u2069”` : origin;
}

/** Returns words for a remembered key: its ID, and where this browser got it from. */
function keyWords({ vkey, source, by, since }) {
  const day = new Date(since ?? NaN);
  const date = { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" };
  const on = Number.isNaN(day.valueOf()) ? "" : ` on ${day.toLocaleDateString("en-GB", date)}`;
  const from = {
    shown: `which this service showed to this browser${on}`,
    entered: `which was entered in this browser${on}`,
    stated: `which an entry of the log states under the key ${by}, as this browser saw${on}`,
  };
  return `the key ${keyID(vkey)}, ${from[source] ?? `which this browser remembers${on}`}`;
}

/** Returns words for a proof of a document of a log under a key. */
function proofWords(origin, key) {
  return `Proved, as far as the report says: log ${logWords(origin)}, under ${key}.`;
}

/** Returns the outcome for a document that this browser's keys do not prove, although the verifier found no fault. */
function refuse(result, why) {
  return { ...result, lines: result.lines.filter((l) => !l.startsWith("proved")), state: "fail", words: `Not proved: ${why}` };
}

/** Returns the outcome of a proof under the key that the reader entered, and remembers a log's first key. */
function judgeEntered(result, entered) {
  const { text, name: origin } = parseLogKey(entered);
  const { keys } = recallLog(origin);
  const signer = keys[findSigner(keys, parseNote(result.checkpoint))];
  if (keys.length > 0 && !signer) {
    const expected = keyWords(keys.at(-1));
    return refuse(result, `two keys. The document is signed by the key ${keyID(text)} that you entered. ` +
      `For its size, this browser expects ${expected}. The log is ${logWords(origin)}. Ask its owner which key is right.`);
  }
  const mine = `the key ${keyID(text)} that you entered`;
  if (signer) {
    const words = signer.vkey === text ? keyWords(signer) : `${mine}, and ${keyWords(signer)}`;
    return { ...result, state: "ok", words: proofWords(origin, words) };
  }
  const added = remembers && remember(origin, { keys: [newKey(text, "entered")] });
  return { ...result, state: "ok", words: proofWords(origin, added ? `${mine}; this browser remembers it from now on` : mine) };
}

/** Resolves to the outcome for a whole document without an entered key: this browser may remember the key of its log. */
async function judgeRemembered(result, verify) {
  const { origin, checkpoint } = result;
  const { keys } = recallLog(origin);
  if (keys.length === 0) {
    const words = `Whole, but whose? It names the log ${logWords(origin)}. Enter the key that you got from the owner of this log.`;
    return { ...result, state: "none", words };
  }
  const signer = keys[findSigner(keys, parseNote(checkpoint))];
  if (!signer) {
    const expected = keyWords(keys.at(-1));
    return refuse(result, `another key. The document names the log ${logWords(origin)}. ` +
      `For its size, this browser expects ${expected}. That key has not signed it. ` +
      "If the log has changed its key, open its public page in this browser: it accepts a key that the log itself states. " +
      "Otherwise ask the owner of the log.");
  }
  const again = await verify({ key: signer.vkey });
  if (again.outcome !== "proved") return { ...again, state: states[again.outcome], words: again.reason };
  return { ...again, state: "ok", words: proofWords(origin, keyWords(signer)) };
}

/** Offers to forget a log, if this browser remembers it. */
function offerForgetting(origin) {
  const offer = document.getElementById("known");
  if (!offer) return;
  offer.hidden = origin === undefined || recallLog(origin).keys.length === 0;
  offer.dataset.origin = origin ?? "";
}

document.getElementById("forget")?.addEventListener("click", () => {
  const { origin } = document.getElementById("known").dataset;
  forget(origin);
  offerForgetting(origin);
  document.getElementById("report").textContent = "";
  showOutcome("waiting", `This browser has forgotten the log ${origin}. Check the document again.`);
  form.elements.trusted.focus();
});

/** Resolves to the result of a document, with the state and the words of its outcome. */
async function judge(verify, entered) {
  const result = await verify(entered === "" ? {} : { key: entered });
  if (result.outcome === "proved") return judgeEntered(result, entered);
  if (entered === "" && result.report?.ok) return judgeRemembered(result, verify);
  return { ...result, state: states[result.outcome], words: result.reason };
}

async function check(folder) {
  if (!canCheck()) return;
  showOutcome("waiting", "Checking …");
  const report = document.getElementById("report");
  report.textContent = "";
  offerForgetting();
  const result = await judge((given) => verifyChosen(folder, given), form.elements.trusted.value.trim());
  report.textContent = result.lines.join("\n");
  offerForgetting(result.origin);
  showOutcome(result.state, result.words);
}

function showFailure(why) {
  const words = why instanceof LedgerError ? why.message : "the file can't be read";
  showOutcome("fail", `The check could not be made: ${words}`);
}

form.addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  check().catch(showFailure);
});
// The file or the folder that was chosen last counts.
form.elements.file.addEventListener("change", () => (form.elements.folder.value = ""));
form.elements.folder.addEventListener("change", () => (form.elements.file.value = ""));
document.addEventListener("dragover", (over) => over.preventDefault());
document.addEventListener("drop", (dropped) => {
  dropped.preventDefault();
  const entry = dropped.dataTransfer.items?.[0]?.webkitGetAsEntry?.();
  if (entry?.isDirectory) {
    const files = [];
    addEntries(entry, entry.name, files)
      .then(() => check(files))
      .catch(showFailure);
    return;
  }
  if (dropped.dataTransfer.files.length === 0) return;
  form.elements.file.files = dropped.dataTransfer.files;
  form.requestSubmit();
});
canCheck();
document.getElementById("checked").dataset.done = "yes";
