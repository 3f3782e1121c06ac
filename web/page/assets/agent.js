// The page of an agent: times in the reader's zone.

import { addLocalTimes } from "./times.js";

const page = document.getElementById("checked");
addLocalTimes(page);
page.dataset.done = "yes";
