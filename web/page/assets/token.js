// Pages that need the token of a link: takes it out of the fragment of the address and puts it into the form.

import "./passkeyform.js";
import { addLocalTimes } from "./times.js";

const begin = "#token=";
const field = document.querySelector("input[name=token]");

/** Takes the token out of the address, so that it stays in no history. Returns whether there was one. */
function takeToken() {
  if (field === null || !location.hash.startsWith(begin)) return false;
  field.value = location.hash.slice(begin.length);
  history.replaceState(null, "", location.pathname + location.search);
  field.closest("#token").hidden = true;
  return true;
}

addLocalTimes(document);
for (const link of document.querySelectorAll("a[data-token]")) link.hash = begin + link.dataset.token;
const send = takeToken() ? document.querySelector("button[data-send]") : null;
if (send === null) document.documentElement.dataset.done = "yes";
else send.form.requestSubmit(send);
