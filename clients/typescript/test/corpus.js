// The files of the published corpus.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../../testdata/", import.meta.url);

/** Returns the files of the corpus. */
export function corpusFiles() {
  const vectors = readdirSync(new URL("vectors/", root)).filter((n) => n.endsWith(".json")).map((n) => "vectors/" + n);
  return [...vectors, "packs/evidence-pack.json"].map((n) => JSON.parse(readFileSync(fileURLToPath(new URL(n, root)), "utf8")));
}
