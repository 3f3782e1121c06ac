// Times in the reader's zone, or in UTC if the account says so. A time element keeps its exact time in UTC in datetime and title.

const options = { hourCycle: "h23", timeZone: document.documentElement.dataset.zone };
const clock = new Intl.DateTimeFormat("en-GB", { ...options, hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { ...options, day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat("en-GB", { ...options, day: "numeric", month: "short", year: "numeric" });

/** Replaces the text of every time element below a root by the reader's own time, except where a list is in UTC. */
export function addLocalTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-utc])")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    element.textContent = shortTime(at, new Date()) + (element.dataset.age === undefined ? "" : ` (${describeAge(at)})`);
  }
}

/** Returns a time as pages show it: the clock time today, day and clock time in this year, and else the date. */
export function shortTime(at, now) {
  const [on, today] = [date.format(at), date.format(now)];
  if (on === today) return clock.format(at);
  return on.slice(-4) === today.slice(-4) ? day.format(at).replace(",", "") : on;
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
