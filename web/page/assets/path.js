// Draws the path from a leaf to the root.

import { hex } from "./verifier/bytes.js";
import { nodeHash } from "./verifier/log/tree.js";

const names = "http://www.w3.org/2000/svg";
const [boxWidth, boxHeight, step, gap] = [116, 24, 46, 24]; // pixels
const width = 3 * boxWidth + 2 * gap;

/**
 * Returns the steps from a leaf to the root, by RFC 9162, section 2.1.3.2: each with the given hash, its side,
 * and the hash of both. Hashes are bytes. The proof was checked before.
 */
export function pathSteps(index, size, leaf, hashes) {
  let [at, last, node] = [BigInt(index), BigInt(size) - 1n, leaf];
  return hashes.map((given) => {
    const onLeft = at % 2n === 1n || at === last;
    node = onLeft ? nodeHash(given, node) : nodeHash(node, given);
    while (onLeft && at % 2n === 0n && at !== 0n) [at, last] = [at / 2n, last / 2n];
    [at, last] = [at / 2n, last / 2n];
    return { given, onLeft, node };
  });
}

/** Returns a picture of the steps: the root on top, the leaf at the bottom, the given hashes dashed. */
export function drawPath(leaf, steps) {
  const height = (steps.length + 1) * step;
  const picture = element("svg", { class: "path", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
  const title = element("title", {});
  title.textContent = `The path from the leaf to the root has ${steps.length} hashes.`;
  picture.append(title);
  const middle = (width - boxWidth) / 2;
  const top = (level) => height - (level + 1) * step + (step - boxHeight) / 2;
  steps.forEach((s, level) => {
    const side = s.onLeft ? 0 : width - boxWidth;
    picture.append(line(middle + boxWidth / 2, top(level), middle + boxWidth / 2, top(level + 1) + boxHeight));
    picture.append(line(side + boxWidth / 2, top(level), middle + boxWidth / 2, top(level + 1) + boxHeight));
    picture.append(box(side, top(level), s.given, "given"));
  });
  [leaf, ...steps.map((s) => s.node)].forEach((node, level, all) => {
    picture.append(box(middle, top(level), node, level === all.length - 1 ? "end" : "node"));
  });
  return picture;
}

function box(x, y, hash, kind) {
  const group = element("g", { class: kind });
  const text = element("text", { x: x + boxWidth / 2, y: y + 16, "text-anchor": "middle" });
  text.textContent = hex(hash).slice(0, 12) + "…";
  group.append(element("rect", { x, y, width: boxWidth, height: boxHeight, rx: 4 }), text);
  return group;
}

function line(x1, y1, x2, y2) {
  return element("line", { x1, y1, x2, y2 });
}

function element(name, attributes) {
  const made = document.createElementNS(names, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
