// The list of events.

import { keepLive } from "./live.js";
import { continueSearch } from "./longsearch.js";
import { addLocalTimes } from "./times.js";

addLocalTimes(document);
keepLive();
document.documentElement.dataset.done = "yes";
continueSearch("event");
