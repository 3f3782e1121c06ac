// The page of an approval: it is kept up to date, and a vote is signed by a passkey before its form is sent.

import { keepLive } from "./live.js";
import { signVote } from "./signing.js";
import { addLocalTimes } from "./times.js";

/** Signs the ballot of a form and sends it. */
async function send(form, vote) {
  const field = (name) => form.elements.namedItem(name);
  const assertion = await signVote(form.dataset.approval, {
    vote,
    action_digest: field("action_digest").value,
    comment: field("comment").value,
    reason_code: field("reason_code").value,
  });
  field("assertion").value = JSON.stringify(assertion);
  const hidden = document.createElement("input"); // a form that a script sends has no button
  Object.assign(hidden, { type: "hidden", name: "do", value: vote });
  form.append(hidden);
  form.submit();
}

addLocalTimes(document);
keepLive();
// The live parts of the page are replaced, so the document listens.
document.addEventListener("submit", (event) => {
  if (event.submitter?.dataset.sign === undefined) return;
  event.preventDefault();
  send(event.target, event.submitter.value).catch((why) => {
    document.getElementById("sign-outcome").textContent = why.message;
  });
});
document.documentElement.dataset.done = "yes";
