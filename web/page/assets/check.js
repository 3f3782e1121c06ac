// The page that checks a file of the reader: a bundle or an evidence pack.

import { LedgerError } from "./verifier/errors.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { verifyPack } from "./verifier/verify/pack.js";
import { showOutcome } from "./marks.js";

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

async function check() {
  showOutcome("waiting", "Checking …");
  const report = document.getElementById("report");
  report.textContent = "";
  const key = form.elements.trusted.value.trim();
  const result = await verifyFile(form.elements.file.files[0], key === "" ? {} : { key });
  report.textContent = result.lines.join("\n");
  showOutcome(states[result.outcome], result.reason === "" ? "Proved, as far as the report says." : result.reason);
}

form.addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  check().catch((why) => {
    const words = why instanceof LedgerError ? why.message : "the file can't be read";
    showOutcome("fail", `The check could not be made: ${words}`);
  });
});
document.addEventListener("dragover", (over) => over.preventDefault());
document.addEventListener("drop", (dropped) => {
  dropped.preventDefault();
  if (dropped.dataTransfer.files.length === 0) return;
  form.elements.file.files = dropped.dataTransfer.files;
  form.requestSubmit();
});
document.getElementById("checked").dataset.done = "yes";
