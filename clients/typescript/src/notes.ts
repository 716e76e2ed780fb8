// Keys that sign checkpoints of a log, and whose signatures a note has (C2SP signed-note, tlog-cosignature).

import { createHash, createPublicKey, verify } from "node:crypto";

import { Wrong } from "./asn1.js";
import { bytesOfBase64 } from "./evidence.js";
import { hexOf, require, type Note } from "./log.js";

export const ED25519 = 1;
export const COSIGNATURE = 4;
const KEY_SIZE = 32;
/** Seconds, of the year 9999. */
const TIME_MAX = 253_402_300_799n;
/** Of the SubjectPublicKeyInfo of a key of Ed25519. */
const SPKI = Buffer.from("302a300506032b6570032100", "hex");

export interface NoteKey {
  name: string;
  id: string;
  key: Uint8Array;
}

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Reads a verifier key, NAME+ID+KEY. */
export function keyOf(vkey: string, kind: number): NoteKey {
  const where = "a verifier key";
  const [, name, id, key] = /^([^+]+)\+([0-9a-f]{8})\+(.*)$/s.exec(vkey) ?? [];
  const data = bytesOfBase64(key, KEY_SIZE + 1);
  require(name && data?.length === KEY_SIZE + 1, "", where, "it is not NAME+ID+KEY of Ed25519");
  const own = createHash("sha256").update(bytesOf(`${name}\n`)).update(data).digest("hex").slice(0, 8);
  require(id === own, "", where, "its id is of another key");
  require(data[0] === kind, "", where, kind === ED25519 ? "it is none of a log" : "it is none of a witness");
  return { name, id, key: data.subarray(1) };
}

/** Whether an Ed25519 key made a signature. */
export function isSigned(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    const spki = Buffer.concat([SPKI, key]);
    return verify(null, message, { key: createPublicKey({ key: spki, format: "der", type: "spki" }) }, signature);
  } catch {
    return false;
  }
}

/** The first signature of a key under a note: further ones are ignored. */
function signatureOf(note: Note, key: NoteKey): Uint8Array | undefined {
  return note.signatures.find(({ name, bytes }) => name === key.name && hexOf(bytes.subarray(0, 4)) === key.id)
    ?.bytes.subarray(4);
}

/** Whether the log's key signed a note under its own name. */
export function isSignedByLog(note: Note, key: NoteKey): boolean {
  const signature = signatureOf(note, key);
  if (signature && !isSigned(key.key, bytesOf(note.text), signature)) {
    throw new Wrong("", "checkpoint", `the signature of ${key.name} under the checkpoint is false`);
  }
  return signature !== undefined && note.origin === key.name;
}

/** When a witness cosigned, in seconds; undefined: it did not, or the line in its name is false. */
export function cosignedAt(note: Note, key: NoteKey): number | undefined {
  const signature = signatureOf(note, key);
  if (signature?.length !== 72) return undefined;
  const time = new DataView(signature.buffer, signature.byteOffset, 8).getBigUint64(0);
  const message = bytesOf(`cosignature/v1\ntime ${time}\n${note.text}`);
  return time <= TIME_MAX && isSigned(key.key, message, signature.subarray(8)) ? Number(time) : undefined;
}
