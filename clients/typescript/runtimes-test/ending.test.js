// The end of a process in Deno and Bun.

import { testEnding } from "../test/ending.js";

const installed = (name) => new URL(`node_modules/.bin/${name}`, import.meta.url).pathname;

testEnding("deno", [installed("deno"), "run", "--no-prompt", "--no-remote", "--allow-read", "--allow-write", "--allow-net=127.0.0.1", "--allow-env", "--allow-run", "--allow-sys"]);
testEnding("bun", [installed("bun")]);
