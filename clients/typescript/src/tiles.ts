// A log's tree from its tiles, and its entries (C2SP tlog-tiles). Nothing that comes is trusted, and each file has
// a maximum size.

import { createHash } from "node:crypto";

import { documentOf, isHash } from "./evidence.js";
import { hexOf, nodeOf, require } from "./log.js";

const WIDTH = 256;
const HEIGHT = 8;
const ENTRY_MAX = 384;
const HASH_SIZE = 32;
const MEMBERS = "chain_hash_last first_sequence last_sequence seal_hash tag v";
const CODE = "log";

/** Reads a file of at most that size in bytes; undefined: there is none. */
export type Read = (path: string, most: number) => Promise<Uint8Array | undefined>;

export interface Entry {
  index: number;
  tag: string;
  first: number;
  last: number;
  chainHash: string;
}

/** The path of a tile: tile/0/x001/234.p/8. */
function pathOf(level: string, index: number, width: number): string {
  const groups = [String(index % 1000).padStart(3, "0")];
  for (let rest = Math.floor(index / 1000); rest; rest = Math.floor(rest / 1000)) {
    groups.unshift(`x${String(rest % 1000).padStart(3, "0")}`);
  }
  return `tile/${level}/${groups.join("/")}${width < WIDTH ? `.p/${width}` : ""}`;
}

export const leafOf = (entry: Uint8Array) => createHash("sha256").update("\0").update(entry).digest("hex");

/** The largest power of two below a number. */
function split(count: number): number {
  let half = 1;
  while (2 * half < count) half *= 2;
  return half;
}

/** A tree that grows: the roots of its complete subtrees, from left to right. */
export class Frontier {
  constructor(public size = 0, private readonly roots: string[] = []) {}

  add(leaf: string): void {
    let found = leaf;
    for (let rest = this.size; rest % 2; rest = Math.floor(rest / 2)) found = nodeOf(this.roots.pop()!, found);
    this.roots.push(found);
    this.size++;
  }

  root(): string {
    if (!this.roots.length) return createHash("sha256").digest("hex");
    return this.roots.reduceRight((found, left) => nodeOf(left, found));
  }
}

/** The tree of the first `size` entries. It keeps one tile of each level. */
export class Tree {
  readonly #read: Read;
  readonly #size: number;
  readonly #kept = new Map<number, { index: number; data: Uint8Array }>();

  constructor(read: Read, size: number) {
    this.#read = read;
    this.#size = size;
  }

  /** Reads a tile; a partial one that is gone is the beginning of the full one. */
  async #file(level: string, index: number, width: number, most: number): Promise<Uint8Array> {
    const path = pathOf(level, index, width);
    let found = await this.#read(path, most);
    if (!found && width < WIDTH) found = await this.#read(pathOf(level, index, WIDTH), most);
    require(found, CODE, path, "the log does not have this file");
    return found;
  }

  async #tile(level: number, index: number): Promise<Uint8Array> {
    const kept = this.#kept.get(level);
    if (kept?.index === index) return kept.data;
    const width = Math.min(WIDTH, Math.floor(this.#size / 2 ** (HEIGHT * level)) - index * WIDTH);
    const data = await this.#file(String(level), index, width, HASH_SIZE * WIDTH);
    require([HASH_SIZE * width, HASH_SIZE * WIDTH].includes(data.length), CODE, pathOf(String(level), index, width),
            "it has another size");
    this.#kept.set(level, { index, data });
    return data;
  }

  /** The root of a complete subtree. */
  async #node(height: number, index: number): Promise<string> {
    const level = Math.floor(height / HEIGHT);
    const count = 2 ** (height % HEIGHT);
    const first = index * count;
    const tile = await this.#tile(level, Math.floor(first / WIDTH));
    const place = first % WIDTH;
    let nodes = Array.from({ length: count }, (_, at) =>
      hexOf(tile.subarray(HASH_SIZE * (place + at), HASH_SIZE * (place + at + 1))));
    while (nodes.length > 1) {
      nodes = Array.from({ length: nodes.length / 2 }, (_, at) => nodeOf(nodes[2 * at], nodes[2 * at + 1]));
    }
    return nodes[0];
  }

  /** The root over leaves, which begin where a subtree does. */
  async #rangeRoot(begin: number, count: number): Promise<string> {
    const half = split(count);
    if (count === 1) return this.#node(0, begin);
    if (count === 2 * half) return this.#node(Math.log2(count), begin / count);
    return nodeOf(await this.#rangeRoot(begin, half), await this.#rangeRoot(begin + half, count - half));
  }

  /** The hashes of a consistency proof, the first of which is a node of both trees. */
  async consistency(before: number, begin = 0, count = this.#size): Promise<string[]> {
    if (before === count) return [await this.#rangeRoot(begin, count)];
    const half = split(count);
    return before <= half
      ? [...await this.consistency(before, begin, half), await this.#rangeRoot(begin + half, count - half)]
      : [...await this.consistency(before - half, begin + half, count - half), await this.#rangeRoot(begin, half)];
  }

  /** The tree of the first `size` entries, to which later ones are added. */
  async frontier(size: number): Promise<Frontier> {
    const roots: string[] = [];
    for (let begin = 0, height = Math.floor(Math.log2(size || 1)); height >= 0; height--) {
      const count = 2 ** height;
      if (size - begin < count) continue;
      roots.push(await this.#node(height, begin / count));
      begin += count;
    }
    return new Frontier(size, roots);
  }

  /** The entries of a bundle that the tree has. */
  async #bundle(index: number): Promise<Uint8Array[]> {
    const width = Math.min(WIDTH, this.#size - index * WIDTH);
    const data = await this.#file("entries", index, width, WIDTH * (ENTRY_MAX + 2));
    const found: Uint8Array[] = [];
    for (let at = 0; found.length < width;) {
      const size = at + 2 <= data.length ? 256 * data[at] + data[at + 1] : 0;
      require(size > 0 && size <= ENTRY_MAX && at + 2 + size <= data.length, CODE, pathOf("entries", index, width),
              "an entry is cut off or too large");
      found.push(data.subarray(at + 2, at + 2 + size));
      at += 2 + size;
    }
    return found;
  }

  /** The entries that the tree of `begin` does not have. At the end throws unless they lead to the root. */
  async *entries(begin: Frontier, root: string): AsyncGenerator<Entry, void, undefined> {
    while (begin.size < this.#size) {
      const first = Math.floor(begin.size / WIDTH) * WIDTH;
      const bundle = await this.#bundle(first / WIDTH);
      for (const text of bundle.slice(begin.size - first)) { // the tree at the beginning has those before
        const index = begin.size;
        begin.add(leafOf(text));
        yield entryOf(text, index);
      }
    }
    require(begin.root() === root, CODE, "the log",
            `its entries do not lead to the root of its checkpoint of ${this.#size} entries`);
  }
}

function entryOf(text: Uint8Array, index: number): Entry {
  const where = `entry ${index} of the log`;
  const { chain_hash_last: chainHash, first_sequence: first, last_sequence: last, tag } =
    documentOf(text, MEMBERS, CODE, where);
  require(isHash(chainHash) && isHash(tag) && first <= last, CODE, where, "a member has another form");
  return { index, tag, first, last, chainHash };
}
