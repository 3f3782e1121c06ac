// The page that checks a file of the reader: a bundle or an evidence pack.

import { LedgerError } from "./verifier/errors.js";
import { verifyBundle } from "./verifier/verify/index.js";
import { verifyPack } from "./verifier/verify/pack.js";
import { showOutcome } from "./marks.js";

const form = document.getElementById("check");
const states = { proved: "ok", proved_wrong: "fail", cant_tell: "fail" };

/** Reports whether bytes begin as a ZIP file does. */
function isZip(bytes) {
  return bytes[0] === 0x50 && bytes[1] === 0x4b;
}

async function check() {
  showOutcome("waiting", "Checking …");
  const report = document.getElementById("report");
  report.textContent = "";
  const bytes = new Uint8Array(await form.elements.file.files[0].arrayBuffer());
  const key = form.elements.trusted.value.trim();
  const given = key === "" ? {} : { key };
  const result = isZip(bytes) ? await verifyPack(bytes, given) : await verifyBundle(bytes, given);
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
