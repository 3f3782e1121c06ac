// Signing in with a passkey.

import { addLocalTimes } from "./times.js";
import { askPasskey, base, call, hasPasskeys } from "./passkey.js";

const form = document.getElementById("signin");
const button = document.getElementById("passkey");

async function signIn() {
  await call(base + "/v1/id/auth/passkey/finish", { credential: await askPasskey(base) });
  location.assign(form.dataset.return + location.hash); // the hash is the token of a link
}

addLocalTimes(document);
if (hasPasskeys()) {
  button.hidden = false;
  button.addEventListener("click", () => {
    signIn().catch((why) => {
      document.getElementById("outcome").textContent = why.message;
    });
  });
}
document.documentElement.dataset.done = "yes";
