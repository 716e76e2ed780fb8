// The places of segments in the log, checkpoints/ and log/ of an archive: inclusion and consistency proofs
// (RFC 9162, section 2.1), and the checkpoints to which they lead (C2SP tlog-checkpoint). Nothing here
// checks who signed these.

import { createHash } from "node:crypto";

import { Wrong } from "./asn1.js";
import { bytesOfBase64, canonical, documentOf, hashes, type Document } from "./evidence.js";

const PATH_MAX = 63;
export const NOTE_MAX = 65_536;
const SIGNATURES_MAX = 64;
const SIGNATURE_MAX = 21_840;
/** Bytes of an origin, and of the name of a key. */
export const NAME_MAX = 255;
const HASH_SIZE = 32;
const SIZE_MAX = 2 ** 53;
const SIZE = /^(0|[1-9][0-9]{0,15})$/;
const CONTROL = /[\u0000-\u0009\u000b-\u001f]/;
// A dash, a name, and base64 of a key's id, 4 bytes, and more. Names have neither white space of Unicode
// nor control characters nor plus signs.
const SIGNATURE = new RegExp(
  "^\u2014 ([^\\u0000-\\u0020\\u007f\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000+]+) " +
  "([A-Za-z0-9+/]{6}(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|[A-Za-z0-9+/]{4}==))$", "u");

export const nodeOf = (left: string, right: string) => createHash("sha256").update(`01${left}${right}`, "hex").digest("hex");
export const hexOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const sizeOf = (text: string) => new TextEncoder().encode(text).length;

export function require(condition: unknown, code: string, where: string, what: string): asserts condition {
  if (!condition) throw new Wrong(code, where, what);
}

/** The way from a node of a tree to its root: to which side each hash of a proof belongs. Numbers have more
 * bits than bit operators take. */
export class Climb {
  #node: number;
  #last: number;

  constructor(index: number, size: number) {
    this.#node = index;
    this.#last = size - 1;
  }

  #up(): void {
    this.#node = Math.floor(this.#node / 2);
    this.#last = Math.floor(this.#last / 2);
  }

  /** Goes up to the first node that is not the right one of two. */
  skipLeft(): void {
    while (this.#node % 2) this.#up();
  }

  get isAtRoot(): boolean {
    return this.#last === 0;
  }

  /** Goes up, and returns whether the next hash is on the left. */
  isLeft(): boolean {
    const found = this.#node % 2 === 1 || this.#node === this.#last;
    while (found && this.#node % 2 === 0 && this.#node > 0) this.#up();
    this.#up();
    return found;
  }
}

/** Whether a leaf has that index in a tree (section 2.1.3.2). */
function isIncluded(leaf: string, index: number, size: number, path: string[], root: string): boolean {
  const climb = new Climb(index, size);
  let hash = leaf;
  for (const one of path) {
    if (climb.isAtRoot) return false;
    hash = climb.isLeft() ? nodeOf(one, hash) : nodeOf(hash, one);
  }
  return climb.isAtRoot && hash === root;
}

/** Whether a tree begins with a smaller one (section 2.1.4.2). */
function isConsistent(before: Checkpoint, after: Checkpoint): boolean {
  const path = before.consistency;
  if (before.size === 0) return !path.length && before.root === createHash("sha256").digest("hex");
  if (!path.length) return false;
  // A tree of a power of two leaves is a node of the larger one; the proof does not repeat it.
  const count = BigInt(before.size);
  const whole = (count & (count - 1n)) === 0n ? [before.root, ...path] : path;
  const [old, now] = rootsOf(before.size, after.size, whole) ?? [];
  return old === before.root && now === after.root;
}

/** The roots of a tree and of a larger one to which the hashes of a consistency proof lead, the first of which
 * is a node of both. */
export function rootsOf(before: number, after: number, [first, ...others]: string[]): [string, string] | undefined {
  const climb = new Climb(before - 1, after);
  climb.skipLeft();
  let [old, now] = [first, first];
  for (const one of others) {
    if (climb.isAtRoot) return undefined;
    if (climb.isLeft()) [old, now] = [nodeOf(one, old), nodeOf(one, now)];
    else now = nodeOf(now, one);
  }
  return climb.isAtRoot ? [old, now] : undefined;
}

interface Checkpoint {
  origin: string;
  size: number;
  root: string;
  /** With the next one. */
  consistency: string[];
}

function checkpointOf(line: Uint8Array): Checkpoint {
  const [code, where] = ["log.checkpoint_malformed", "checkpoints"];
  const { consistency, note } = documentOf(line, "consistency note", code, where);
  require(hashes(PATH_MAX)(consistency) && typeof note === "string", code, where, "consistency or note");
  return { ...noteOf(note, where), consistency };
}

/** A signed checkpoint. */
export interface Note {
  /** That is signed. */
  text: string;
  /** Names of keys, and an id with a signature. */
  signatures: { name: string; bytes: Uint8Array }[];
  origin: string;
  size: number;
  root: string;
}

export function noteOf(note: string, where: string): Note {
  const code = "log.checkpoint_malformed";
  require(sizeOf(note) <= NOTE_MAX && !CONTROL.test(note), code, where, "the note's size or characters");
  const end = note.lastIndexOf("\n\n");
  const lines = note.slice(end + 2).split("\n");
  require(end >= 0 && lines.pop() === "" && lines.length >= 1 && lines.length <= SIGNATURES_MAX,
          code, where, "the note has no signatures, or too many");
  const signatures = lines.map((one) => {
    const [, name, signature] = SIGNATURE.exec(one) ?? [];
    require(name && sizeOf(name) <= NAME_MAX && signature.length <= SIGNATURE_MAX, code, where,
            "the line of a signature has another form");
    return { name, bytes: Buffer.from(signature, "base64") };
  });
  const [origin, size, root, ...extensions] = note.slice(0, end).split("\n");
  require(origin && sizeOf(origin) <= NAME_MAX && extensions.every((one: string) => one), code, where,
          "the origin or an extension line of a checkpoint");
  require(SIZE.test(size) && BigInt(size) <= SIZE_MAX, code, where, "the size of a tree");
  const hash = bytesOfBase64(root, HASH_SIZE);
  require(hash?.length === HASH_SIZE, code, where, "the root of a tree");
  return { text: `${note.slice(0, end)}\n`, signatures, origin, size: Number(size), root: hexOf(hash) };
}

type Lines = AsyncGenerator<Uint8Array, void, undefined>;

/** Goes along the checkpoints as segments need them, and holds one. */
export class Log {
  readonly #checkpoints: Lines;
  readonly #places: Lines;
  readonly #tag: string;
  #current?: Checkpoint;

  constructor(checkpoints: Lines, places: Lines, { channel_id: channel, mode }: Document) {
    this.#checkpoints = checkpoints;
    this.#places = places;
    this.#tag = createHash("sha256").update(`constancia-tag/1\n${channel}\n${mode}`).digest("hex");
  }

  /** Checks the place of the next segment. */
  async check(seal: Document, sealHash: string, where: string): Promise<void> {
    const { done, value } = await this.#places.next();
    require(!done, "log.place_missing", where, "its place in the log is missing");
    const code = "log.place_malformed";
    const { index, path, size } = documentOf(value, "index? path size?", code, "log");
    require(hashes(PATH_MAX)(path) && (index === null) === (size === null), code, "log", "index, path or size");
    if (size === null) {
      require(!path.length, code, "log", "a path of a segment that is not in the log");
      return;
    }
    require(index < size, code, "log", "an index beyond its tree");
    while (!this.#current || this.#current.size < size) {
      require(await this.#advance(), "log.checkpoint_missing", where, "its checkpoint is missing");
    }
    require(this.#current.size === size, "log.checkpoint_missing", where, "its checkpoint is missing");
    const { chain_hash_last, first_sequence, last_sequence } = seal;
    const entry = canonical({ chain_hash_last, first_sequence, last_sequence, seal_hash: sealHash, tag: this.#tag, v: 1 });
    const leaf = createHash("sha256").update("\0").update(entry).digest("hex");
    require(isIncluded(leaf, index, size, path, this.#current.root), "log.not_included", where,
            "the segment is not in the log at this place");
  }

  /** Checks the checkpoints that no segment needs, and that nothing is left over. */
  async end(): Promise<void> {
    require((await this.#places.next()).done, "lines.superfluous", "log", "no further line is allowed here");
    while (await this.#advance());
    require(this.#current && !this.#current.consistency.length, "log.last_consistency", "checkpoints",
            "the last checkpoint must have no consistency proof");
  }

  async close(): Promise<void> {
    await this.#places.return();
    await this.#checkpoints.return();
  }

  async #advance(): Promise<boolean> {
    const { done, value } = await this.#checkpoints.next();
    if (done) return false;
    const [before, found] = [this.#current, checkpointOf(value)];
    if (before) {
      const where = "checkpoints";
      require(found.origin === before.origin, "log.origin_differs", where, "this checkpoint is of another log");
      require(found.size > before.size, "log.checkpoints_not_ascending", where,
              "the checkpoints are not in ascending order");
      require(isConsistent(before, found), "log.two_histories", where,
              `nothing shows that the logs of ${before.size} and ${found.size} entries are of one history`);
    }
    this.#current = found;
    return true;
  }
}
