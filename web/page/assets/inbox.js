// The list of approvals: it is kept up to date, and j and k move between the cards.

import { keepLive } from "./live.js";
import { addLocalTimes } from "./times.js";

addLocalTimes(document);
keepLive();
// The cards are replaced, so the document listens.
document.addEventListener("keydown", (event) => {
  const step = { j: 1, k: -1 }[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const cards = [...document.querySelectorAll("#cards a")];
  const at = cards.indexOf(document.activeElement);
  cards[at < 0 ? 0 : Math.min(cards.length - 1, Math.max(0, at + step))]?.focus();
});
if (document.getElementById("cards")) document.getElementById("keys").hidden = false;
document.documentElement.dataset.done = "yes";
