// Times in the reader's zone, beside UTC.

/** Adds the local time to every time element below a root. */
export function addLocalTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const local = document.createElement("span");
    local.className = "local";
    const age = element.dataset.age === undefined ? "" : `, ${describeAge(at)}`;
    local.textContent = ` (${at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "long" })}${age})`;
    element.after(local);
  }
}

/** Returns how long ago a time was, by the reader's clock. */
export function describeAge(at) {
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  let value = (at.getTime() - Date.now()) / 1000;
  for (const [unit, size] of [["second", 60], ["minute", 60], ["hour", 24], ["day", Infinity]]) {
    if (Math.abs(value) < size) return words.format(Math.round(value), unit);
    value /= size;
  }
  return "";
}
