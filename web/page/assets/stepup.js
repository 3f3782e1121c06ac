// The page that asks a person for a fresh proof: by a passkey, in the place of the password.

import { askPasskey, base, call, hasPasskeys } from "./passkey.js";
import { addLocalTimes } from "./times.js";

const form = document.getElementById("stepup");
const button = document.getElementById("passkey");

async function prove() {
  await call(base + "/v1/id/auth/step-up", { passkey: await askPasskey(base) });
  form.submit(); // without the password
}

addLocalTimes(document);
if (hasPasskeys()) {
  button.hidden = false;
  button.addEventListener("click", () => {
    prove().catch((why) => {
      document.getElementById("outcome").textContent = why.message;
    });
  });
}
document.documentElement.dataset.done = "yes";
