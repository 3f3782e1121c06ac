// The page of an approval: it is kept up to date, and a vote is signed by a passkey before its form is sent.

import { keepLive } from "./live.js";
import { hasPasskeys } from "./passkey.js";
import { signVote } from "./signing.js";
import { addLocalTimes } from "./times.js";

/** Signs an approving vote with the form's comment, and sends the form as if `button` had been pressed without a script. */
async function send(form, button) {
  const field = (name) => form.elements.namedItem(name);
  const assertion = await signVote(form.dataset.approval, {
    vote: "approve",
    action_digest: field("action_digest").value,
    comment: field("comment").value,
    reason_code: field("reason_code").value,
  });
  field("assertion").value = JSON.stringify(assertion);
  const hidden = document.createElement("input"); // a form that a script sends has no button
  Object.assign(hidden, { type: "hidden", name: button.name, value: button.value });
  form.append(hidden);
  form.submit();
}

function say(words) {
  const outcome = document.getElementById("sign-outcome");
  outcome.hidden = words === "";
  outcome.textContent = words;
}

let signing = false;

addLocalTimes(document);
keepLive();
// The live parts of the page are replaced, so the document listens.
document.addEventListener("submit", (event) => {
  if (event.submitter?.dataset.sign === undefined) return;
  event.preventDefault();
  if (signing) return; // the browser asks for the passkey already
  signing = true;
  say("");
  send(event.target, event.submitter).catch((why) => {
    signing = false;
    say(why.message);
  });
});
// Buttons that need a passkey are shown only where there can be one (agentledger.css).
if (hasPasskeys()) document.documentElement.dataset.passkeys = "yes";
document.documentElement.dataset.done = "yes";
