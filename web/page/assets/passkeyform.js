// Buttons that send their form with a passkey: a new one ("new", of the form's address), one of the person's ("use"),
// or a new one whose options are in the page ("prepared").

import { askPasskey, base, hasPasskeys, makePasskey, makePrepared } from "./passkey.js";

function make(button) {
  const { email, display_name: name } = button.form.elements;
  switch (button.dataset.passkey) {
    case "use":
      return askPasskey(base);
    case "prepared":
      return makePrepared(JSON.parse(button.form.dataset.options));
  }
  return makePasskey(base + "/v1/id/auth/passkey/create", { email: email.value, display_name: name?.value || undefined });
}

async function send(button) {
  const { passkey, password } = button.form.elements;
  if (password) {
    password.required = false;
    password.value = "";
  }
  if (!button.form.reportValidity()) return;
  passkey.value = JSON.stringify(await make(button));
  button.type = "submit";
  button.form.requestSubmit(button);
}

if (hasPasskeys()) {
  for (const button of document.querySelectorAll("button[data-passkey]")) {
    button.hidden = false;
    button.addEventListener("click", (pressed) => {
      if (button.type === "submit") return;
      pressed.preventDefault();
      send(button).catch((why) => {
        document.getElementById("outcome").textContent = why.message;
      });
    });
  }
}
