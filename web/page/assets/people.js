// Every page of people: times in the reader's zone.

import { addLocalTimes } from "./times.js";

addLocalTimes(document);
document.documentElement.dataset.done = "yes";
