"use strict";
// Search over the index of sections, and the choice of a dark or light page. Nothing is requested from any host.
(() => {
  const root = document.body.dataset.root;
  const found = document.getElementById("found");
  const query = document.getElementById("query");

  // rank returns how well a section fits all words, or 0 if it lacks one.
  function rank(section, words) {
    const page = section.p.toLowerCase(), title = section.t.toLowerCase(), text = section.x.toLowerCase();
    let sum = 0;
    for (const word of words) {
      const points = (title.includes(word) ? 8 : 0) + (page.includes(word) ? 4 : 0) + (text.includes(word) ? 1 : 0);
      if (points === 0) return 0;
      sum += points;
    }
    return sum;
  }

  function show() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length === 0 ? [] : searchIndex.map((section) => [rank(section, words), section])
      .filter(([points]) => points > 0).sort((a, b) => b[0] - a[0]).slice(0, 20);
    found.replaceChildren(...hits.map(([, section]) => {
      const item = document.createElement("li"), link = document.createElement("a"), page = document.createElement("small");
      link.href = root + section.u;
      link.textContent = section.t;
      page.textContent = section.p;
      link.append(page);
      item.append(link);
      return item;
    }));
    if (words.length > 0 && hits.length === 0) found.textContent = "Nothing found";
    found.hidden = words.length === 0;
  }

  query.addEventListener("input", show);
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    found.querySelector("a")?.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") found.hidden = true;
  });

  const element = document.documentElement;
  let stored = null;
  try { stored = localStorage.getItem("theme"); } catch { /* not available for files in some browsers */ }
  if (stored) element.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = element.dataset.theme ? element.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    element.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", element.dataset.theme); } catch { /* the choice is lost with the page */ }
  });
})();
