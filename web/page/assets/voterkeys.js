// The page of passkeys: a passkey is registered to sign votes.

import { hasPasskeys } from "./passkey.js";
import { registerVoter } from "./signing.js";
import { addLocalTimes } from "./times.js";

addLocalTimes(document);
if (hasPasskeys()) {
  for (const button of document.querySelectorAll("button[data-voter]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      registerVoter(button.dataset.voter)
        .then(() => location.reload())
        .catch((why) => {
          document.getElementById("outcome").textContent = why.message;
        });
    });
  }
}
document.documentElement.dataset.done = "yes";
