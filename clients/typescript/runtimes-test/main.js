// RUNTIME main.js FILE: exercises the package in the program and then in a worker. FILE contains the arguments of exercise as JSON.

import { readFileSync } from "node:fs";
import { exercise } from "./core.js";

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));

function exerciseInWorker(data) {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onerror = (why) => reject(new Error(why.message));
    worker.onmessage = ({ data: told }) => {
      worker.terminate();
      if (told.error) reject(new Error(told.error));
      else resolve(told.result);
    };
    worker.postMessage(data);
  });
}

const inside = (name) => ({ ...given, services: given.services.map((s) => ({ ...s, run: name })) });
const runtime = globalThis.Deno ? "deno" : globalThis.Bun ? "bun" : "node";
const main = await exercise(inside(runtime + "-main"));
const worker = globalThis.Worker ? await exerciseInWorker(inside(runtime + "-worker")) : "none here";
console.log(JSON.stringify({ runtime, main, worker }));
