// The page that checks a file of the reader: a bundle or an evidence pack, which may also be a folder.

import { LedgerError } from "./verifier/errors.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { verifyPack } from "./verifier/verify/pack.js";
import { canCheck, showOutcome } from "./marks.js";

const form = document.getElementById("check");
const states = { proved: "ok", proved_wrong: "fail", cant_tell: "fail" };

const largestBundle = 64 << 20; // bytes; a pack is read by slices, and has no such bound

/** Reports whether a file begins as a ZIP file does. */
async function isZip(file) {
  const begin = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return begin[0] === 0x50 && begin[1] === 0x4b;
}

async function verifyFile(file, given) {
  if (await isZip(file)) return verifyPack(file, given);
  if (file.size > largestBundle) throw new LedgerError("the file is too large for a bundle, and no evidence pack");
  return verifyBundle(new Uint8Array(await file.arrayBuffer()), given);
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
  if (folder) return verifyPack(folder, given);
  const { file, folder: input } = form.elements;
  if (file.files.length > 0) return verifyFile(file.files[0], given);
  if (input.files.length > 0) return verifyPack(input.files, given);
  throw new LedgerError("choose a file or a folder");
}

async function check(folder) {
  if (!canCheck()) return;
  showOutcome("waiting", "Checking …");
  const report = document.getElementById("report");
  report.textContent = "";
  const key = form.elements.trusted.value.trim();
  const result = await verifyChosen(folder, key === "" ? {} : { key });
  report.textContent = result.lines.join("\n");
  showOutcome(states[result.outcome], result.reason === "" ? "Proved, as far as the report says." : result.reason);
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
