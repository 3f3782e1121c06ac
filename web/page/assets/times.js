// Times in the reader's zone, beside UTC.

/** Adds the local time to every time element below a root. */
export function addLocalTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const local = document.createElement("span");
    local.className = "local";
    local.textContent = ` (${at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "long" })})`;
    element.after(local);
  }
}
