// The list of acts. On a wide screen an act opens beside the list.

import { checkAct } from "./actcheck.js";
import { keepLive, read } from "./live.js";
import { continueSearch } from "./longsearch.js";
import { addLocalTimes } from "./times.js";

const wide = matchMedia("(min-width: 1700px)");
let opening = new AbortController(); // ends the request for an act when another one is opened
let shown = ""; // address of the act beside the list, "" for none

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Opens the act of a link beside the list, or its page if it cannot be read. */
async function open(link) {
  opening.abort();
  opening = new AbortController();
  let page;
  try {
    page = await read(link.href, "document", "act", opening.signal);
  } catch (why) {
    if (why.name !== "AbortError") location.assign(link.href);
    return;
  }
  const parts = ["section:has(#what)", "section:has(#asked)", "#checked"].map((part) => document.importNode(page.querySelector(part), true));
  parts.forEach(addLocalTimes);
  const title = make("h2", { tabIndex: -1, textContent: page.querySelector("h1").textContent });
  const shut = make("button", { type: "button", className: "btn s", textContent: "Close" });
  shut.addEventListener("click", close);
  const head = make("header", {}, title, make("span", { className: "row" }, make("a", { className: "btn s", href: link.href, textContent: "Open" }), shut));
  document.getElementById("peek")?.remove();
  const panel = make("aside", { id: "peek", className: "peek card", ariaLabel: "Selected act" }, head, make("div", { className: "stack" }, ...parts));
  document.querySelector(".split").append(panel);
  shown = link.href;
  mark();
  title.focus();
  await checkAct(panel.querySelector("#checked"));
}

function close() {
  opening.abort();
  document.getElementById("peek")?.remove();
  const link = [...document.querySelectorAll("#found .k a")].find((a) => a.href === shown);
  shown = "";
  mark();
  link?.focus();
}

/** Marks the row of the act beside the list. */
function mark() {
  for (const row of document.querySelectorAll("#found tbody tr")) {
    row.toggleAttribute("data-shown", shown !== "" && row.querySelector(".k a")?.href === shown);
  }
}

document.addEventListener("click", (press) => {
  const link = press.target.closest("#found .k a");
  if (link === null || !wide.matches || press.ctrlKey || press.metaKey || press.shiftKey) return;
  press.preventDefault();
  open(link);
});
document.addEventListener("keydown", (press) => {
  if (press.key === "Escape" && shown !== "") close();
});

const copy = document.getElementById("copy");
if (navigator.clipboard !== undefined) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.href);
    copy.textContent = "Copied";
  });
}

addLocalTimes(document);
keepLive(mark);
document.documentElement.dataset.done = "yes";
continueSearch("act");
