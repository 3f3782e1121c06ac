// A page of people whose parts are kept up to date.

import { keepLive } from "./live.js";
import { addLocalTimes } from "./times.js";

addLocalTimes(document);
keepLive();
document.documentElement.dataset.done = "yes";
