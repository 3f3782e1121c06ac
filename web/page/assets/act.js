// The page of an act.

import { checkAct } from "./actcheck.js";
import { addLocalTimes } from "./times.js";

addLocalTimes(document);
document.documentElement.dataset.done = "yes";
await checkAct(document.getElementById("checked"));
