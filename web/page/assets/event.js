// The page of an event: reads its bundle and checks it here.

import { checkEvent } from "./eventcheck.js";
import { addLocalTimes } from "./times.js";
import { runChecks } from "./trust.js";

const page = document.getElementById("checked");
const { url, transparency, origin, event } = page.dataset;

addLocalTimes(page);
await runChecks(origin, () => checkEvent({ url, transparency, origin, event }));
page.dataset.done = "yes";
