// C2SP signed notes, their verifier keys, and cosignatures of witnesses.

import { base64, concat, equal, hex, unbase64, unhex, utf8 } from "../bytes.js";
import { KeyCache } from "../crypto/ed25519.js";
import { sha256 } from "../crypto/sha256.js";
import { Malformed, Unproved } from "../errors.js";

const controls = /[\u0000-\u001f\u007f-\u009f]/;
const badName = /[+\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const maxNote = 128 << 10; // bytes
const maxLines = 100;
const latestTime = 253402300799n; // the end of the year 9999, in seconds

/** Types of keys: the first byte of a verifier key's base64. */
const [typeLog, typeWitness, typeMLDSA] = [1, 4, 6];
const sizeMLDSA44 = 1312; // bytes of a public key, FIPS 204

const checkedKeys = new KeyCache();

/** Reports whether a text is the name of a key: not empty, no plus, white space or control character. */
export function isName(name) {
  return name !== "" && !badName.test(name);
}

/** A verifier key of a log or a witness. `text` is its C2SP form. */
export class VerifierKey {
  constructor(text, types) {
    const [name, id, ...rest] = text.split("+");
    const typed = unbase64(rest.join("+"));
    if (!isName(name) || utf8(name).length > 255 || !types.includes(typed[0])) throw new Malformed("verifier key");
    this.text = text;
    this.name = name;
    this.type = typed[0];
    this.raw = typed.slice(1);
    if (this.type === typeMLDSA && this.raw.length !== sizeMLDSA44) throw new Malformed("verifier key");
    this.ed25519 = this.type === typeMLDSA ? undefined : checkedKeys.get(this.raw);
    this.id = sha256(name + "\n", typed).slice(0, 4);
    if (!equal(unhex(id ?? "", 4), this.id)) throw new Malformed("verifier key: key id");
  }

  /** The display name of the key: name and key ID. */
  get signer() {
    return this.name + "+" + hex(this.id);
  }

  /** Reports whether a signature line names this key. */
  owns(line) {
    return line.name === this.name && equal(line.id, this.id);
  }
}

/** Parses the verifier key of a log. Throws Malformed. */
export function parseLogKey(text) {
  return new VerifierKey(text, [typeLog]);
}

/** Parses the verifier key of a witness: Ed25519 or ML-DSA-44. Throws Malformed. */
export function parseWitnessKey(text) {
  return new VerifierKey(text, [typeWitness, typeMLDSA]);
}

/** Parses a note: `text` is the signed text, `lines` the signatures. Throws Malformed. */
export function parseNote(text) {
  if (utf8(text).length > maxNote) throw new Malformed("parse note: size");
  const at = text.lastIndexOf("\n\n");
  // eslint-disable-next-line no-control-regex
  if (at < 0 || !text.endsWith("\n") || /[\u0000-\u0009\u000b-\u001f]/.test(text)) {
    throw new Malformed("parse note: text, characters or signature lines");
  }
  const lines = text.slice(at + 2, -1).split("\n").map(parseLine);
  if (at + 2 === text.length || lines.length > maxLines) {
    throw new Malformed("parse note: text, characters or signature lines");
  }
  const seen = new Set(lines.map((l) => l.name + "+" + hex(l.id)));
  if (seen.size !== lines.length) throw new Malformed("parse note: a second line of a key");
  return { text: text.slice(0, at + 1), lines };
}

function parseLine(line, i) {
  const [dash, name, encoded, ...rest] = line.split(" ");
  if (dash !== "\u2014" || rest.length > 0 || !isName(name ?? "")) {
    throw new Malformed(`parse note: name or base64 of signature line ${i + 1}`);
  }
  const raw = unbase64(encoded);
  if (raw.length < 5) throw new Malformed(`parse note: name or base64 of signature line ${i + 1}`);
  return { name, id: raw.slice(0, 4), signature: raw.slice(4) };
}

/** Checks that the key of a log signed the note. Throws Unproved. */
export async function checkSigned(note, key) {
  const line = note.lines.find((l) => key.owns(l));
  if (!line) throw new Unproved("open checkpoint: verify note: no line of the key: wrong signature", true);
  if (!(await key.ed25519.verify(line.signature, utf8(note.text)))) {
    throw new Unproved("open checkpoint: verify note: wrong signature: wrong signature", true);
  }
}

/** Parses the text of a checkpoint. The caller must check the signature. Throws Malformed. */
export function readCheckpoint(note) {
  const [origin, size, root, end, ...rest] = note.text.split("\n");
  if (!origin || end !== "" || rest.length > 0) throw new Malformed("checkpoint text: lines, size or root");
  const tree = { origin, size: parseDecimal(size), root: unbase64(root, 32) };
  if (tree.size === 0n && !equal(tree.root, sha256())) throw new Malformed("checkpoint text: size or root");
  return tree;
}

/** Checks form, signature and origin of a checkpoint. Throws Malformed or Unproved. */
export async function openCheckpoint(note, key) {
  await checkSigned(note, key);
  const tree = readCheckpoint(note);
  if (tree.origin !== key.name) throw new Unproved("open checkpoint: the key is of another origin", true);
  return tree;
}

/** Parses a decimal of at most `limit`, without sign and leading zeros. */
export function parseDecimal(text, limit = 2n ** 63n - 1n) {
  if (!/^(0|[1-9][0-9]{0,19})$/.test(text) || BigInt(text) > limit) throw new Malformed("number");
  return BigInt(text);
}

/** Returns the time of a witness's cosignature in seconds (bigint). Throws Malformed or Unproved. */
export async function checkCosigned(note, key) {
  const line = note.lines.find((l) => key.owns(l));
  if (!line || line.signature.length < 8) throw new Unproved("verify cosignature: no line of the key", true);
  const time = new DataView(line.signature.buffer, line.signature.byteOffset).getBigUint64(0);
  if (time > latestTime) throw new Unproved("verify cosignature: time", true);
  const signature = line.signature.slice(8);
  const good =
    key.type === typeMLDSA
      ? time > 0n && (await verifyMLDSA(key, cosignedTree(key.name, time, note), signature))
      : await key.ed25519.verify(signature, utf8(`cosignature/v1\ntime ${time}\n${note.text}`));
  if (!good) throw new Unproved("verify cosignature: wrong signature", true);
  return time;
}

/** Loads the ML-DSA code on first use, because few witnesses sign with it. */
async function verifyMLDSA(key, message, signature) {
  const { verifyMLDSA44 } = await import("../crypto/mldsa.js");
  return verifyMLDSA44(key.raw, message, signature);
}

/** The message of an ML-DSA cosignature: a cosigned_message of C2SP tlog-cosignature for the whole tree. */
function cosignedTree(name, time, note) {
  const { origin, size, root } = readCheckpoint(note);
  return concat("subtree/v1\n\0", opaque(name), uint64(time), opaque(origin), uint64(0n), uint64(size), root);
}

function opaque(text) {
  const bytes = utf8(text);
  if (bytes.length > 255) throw new Malformed("verify cosignature: length of a name");
  return concat(Uint8Array.of(bytes.length), bytes);
}

function uint64(n) {
  const out = new DataView(new ArrayBuffer(8));
  out.setBigUint64(0, n);
  return new Uint8Array(out.buffer);
}

/** Returns the vkey of a public key, for tests and for people who write policies. */
export function formatLogKey(name, raw) {
  const typed = concat(Uint8Array.of(typeLog), raw);
  return `${name}+${hex(sha256(name + "\n", typed).slice(0, 4))}+${base64(typed)}`;
}

/** Reports whether a text has control characters. */
export function hasControls(text) {
  return controls.test(text);
}
