// The end of a process in Node.js.

import { testEnding } from "./ending.js";

testEnding("node", [process.execPath]);
