// The worker: it gets the arguments of exercise, and posts its result or its error.

import { exercise } from "./core.js";

self.onmessage = async ({ data }) => {
  self.postMessage(await exercise(data).then((result) => ({ result }), (why) => ({ error: String(why?.stack ?? why) })));
};
