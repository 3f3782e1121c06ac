// Random names. Bytes are generated in bulk, because each system call takes microseconds.

import { hex } from "../bytes.js";

const drawn = new Uint8Array(4096);
let left = 0;
const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Returns 16 random bytes that no other caller gets. */
function draw() {
  if (left === 0) {
    crypto.getRandomValues(drawn);
    left = drawn.length;
  }
  left -= 16;
  const bytes = drawn.slice(left, left + 16);
  drawn.fill(0, left, left + 16);
  return bytes;
}

/** Returns 16 random bytes in hex. */
export function randomHex() {
  return hex(draw());
}

/** Returns 16 random bytes in base64url without padding. */
export function randomBase64url() {
  const bytes = draw();
  let out = "";
  for (let i = 0; i < 15; i += 3) {
    const n = (bytes[i] << 16) | (bytes[i + 1] << 8) | bytes[i + 2];
    out += digits[n >> 18] + digits[(n >> 12) & 63] + digits[(n >> 6) & 63] + digits[n & 63];
  }
  return out + digits[bytes[15] >> 2] + digits[(bytes[15] & 3) << 4];
}
