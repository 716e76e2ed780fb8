// ZIP files of the one shape that evidence has (docs/verify/evidence-format.md, section 2), and the lines
// of their streams (section 3). Nothing is held but a piece.

import { createHash } from "node:crypto";
import { open, type FileHandle } from "node:fs/promises";
import { Readable } from "node:stream";
import { createInflateRaw } from "node:zlib";
import * as zlib from "node:zlib";

import { compareBytes, Wrong } from "./asn1.js";
import type { Source } from "./files.js";

const PIECE = 262_144;
const ENTRIES_MAX = 65_534;
const SIZE_MAX = 2 ** 32 - 1;
const NAME = /^[A-Za-z0-9._/-]{1,100}$/;
const GZIP_HEADER_MAX = 1 << 20;
export const LINE_MAX = 262_144;
export const LINES_MAX = 100_000;

/** Bytes that are read where they are. */
export class Bytes {
  private constructor(readonly size: number,
                      private readonly get: (at: number, size: number) => Promise<Uint8Array>,
                      private readonly file?: FileHandle) {}

  static async of(source: Source): Promise<Bytes> {
    if (source instanceof Uint8Array) {
      return new Bytes(source.length, async (at, size) => source.subarray(at, at + size));
    }
    if (typeof source !== "string") {
      return new Bytes(source.size, async (at, size) =>
        new Uint8Array(await source.slice(at, at + size).arrayBuffer()));
    }
    const file = await open(source, "r");
    try {
      const found = await file.stat();
      if (!found.isFile()) throw new TypeError(`${source} is not a regular file`);
      return new Bytes(found.size, async (at, size) => {
        const bytes = new Uint8Array(size);
        for (let done = 0; done < size;) {
          const { bytesRead } = await file.read(bytes, done, size - done, at + done);
          if (!bytesRead) throw new Error(`${source}: the file changed while it was read`);
          done += bytesRead;
        }
        return bytes;
      }, file);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Exactly so many; they have to be there. */
  async read(at: number, size: number): Promise<Uint8Array> {
    if (at < 0 || at + size > this.size) throw malformed("it ends too early");
    return this.get(at, size);
  }

  /** Whether it begins or ends as a ZIP file does. */
  async isZip(): Promise<boolean> {
    if (this.size < 22) return this.size > 4 && isOne(await this.read(0, 4), 0x04034b50);
    return isOne(await this.read(0, 4), 0x04034b50) || isOne(await this.read(this.size - 22, 4), 0x06054b50);
  }

  async *pieces(at = 0, end = this.size): AsyncGenerator<Uint8Array> {
    for (; at < end; at += PIECE) yield this.read(at, Math.min(PIECE, end - at));
  }

  async sha256(): Promise<string> {
    const running = createHash("sha256");
    for await (const piece of this.pieces()) running.update(piece);
    return running.digest("hex");
  }

  async close(): Promise<void> {
    await this.file?.close();
  }
}

export interface Entry {
  name: string;
  at: number;
  size: number;
  crc: number;
}

function malformed(what: string): Wrong {
  return new Wrong("archive.malformed", "", `the file is not a ZIP file of the required form: ${what}`);
}

function isOne(bytes: Uint8Array, signature: number): boolean {
  return compareBytes(bytes, fields([4, signature])) === 0;
}

function fields(...sizedValues: [number, number][]): Uint8Array {
  const bytes = new Uint8Array(sizedValues.reduce((sum, [size]) => sum + size, 0));
  let at = 0;
  for (const [size, value] of sizedValues) {
    for (let n = 0; n < size; n++) bytes[at++] = Math.floor(value / 256 ** n) % 256;
  }
  return bytes;
}

/** The entries in order. Every byte of heads and directory has to be the one that the rules give. */
export async function entriesOf(bytes: Bytes): Promise<Entry[]> {
  if (bytes.size > SIZE_MAX || bytes.size < 22) throw malformed("its size");
  const end = await bytes.read(bytes.size - 22, 22);
  const view = new DataView(end.buffer, end.byteOffset, 22);
  const [count, size, offset] = [view.getUint16(10, true), view.getUint32(12, true),
                                 view.getUint32(16, true)];
  const wanted = fields([4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size],
                        [4, offset], [2, 0]);
  if (compareBytes(end, wanted) || offset + size + 22 !== bytes.size || count > ENTRIES_MAX
      || size > count * 146) {
    throw malformed("its end record");
  }
  const directory = await bytes.read(offset, size);
  const entries: Entry[] = [];
  const names = new Set<string>();
  let [at, record] = [0, 0];
  for (let number = 0; number < count; number++) {
    const entry = entryAt(directory, record, at);
    const { name } = entry;
    if (names.has(name)) throw malformed(`${name} occurs twice`);
    names.add(name);
    const common = commonOf(entry);
    const local = new Uint8Array([0x50, 0x4b, 3, 4, ...common, ...new TextEncoder().encode(name)]);
    if (entry.at + entry.size > offset || compareBytes(await bytes.read(at, local.length), local)) {
      throw malformed(`the head of ${name}`);
    }
    entries.push(entry);
    at = entry.at + entry.size;
    record += 46 + name.length;
  }
  if (at !== offset || record !== size) throw malformed("bytes of no entry");
  return entries;
}

/** What local and central heads have in common. */
function commonOf({ name, size, crc }: Entry): Uint8Array {
  return fields([2, 10], [2, 0], [2, 0], [2, 0], [2, 0x21], [4, crc], [4, size], [4, size],
                [2, name.length], [2, 0]);
}

function entryAt(directory: Uint8Array, record: number, at: number): Entry {
  if (record + 46 > directory.length) throw malformed("its directory");
  const view = new DataView(directory.buffer, directory.byteOffset + record, 46);
  const length = view.getUint16(28, true);
  const raw = directory.subarray(record + 46, record + 46 + length);
  const name = String.fromCharCode(...raw.subarray(0, 101));
  if (raw.length !== length || length < 1 || length > 100 || !isName(name)) throw malformed("a name");
  const entry = { name, at: at + 30 + length, size: view.getUint32(20, true),
                  crc: view.getUint32(16, true) };
  const wanted = new Uint8Array([
    0x50, 0x4b, 1, 2, ...fields([2, 0x030a]), ...commonOf(entry),
    ...fields([2, 0], [2, 0], [2, 0], [4, 0x81a40000], [4, at])]);
  if (compareBytes(directory.subarray(record, record + 46), wanted)) {
    throw malformed(`the directory's record of ${name}`);
  }
  return entry;
}

function isName(name: string): boolean {
  return NAME.test(name) && !name.split("/").some((step) => ["", ".", ".."].includes(step));
}

/** A small entry, in memory. */
export async function contentOf(bytes: Bytes, entry: Entry, most: number): Promise<Uint8Array> {
  if (entry.size > most) {
    throw new Wrong("document.too_long", entry.name, "the document is longer than this format allows");
  }
  return bytes.read(entry.at, entry.size);
}

/** The SHA-256 of an entry, whose CRC-32 has to be right. */
export async function digestOf(bytes: Bytes, entry: Entry): Promise<string> {
  const running = createHash("sha256");
  let crc = 0;
  for await (const piece of bytes.pieces(entry.at, entry.at + entry.size)) {
    running.update(piece);
    crc = crc32(piece, crc);
  }
  if (crc !== entry.crc) {
    throw new Wrong("archive.entry_damaged", entry.name, "this entry of the ZIP file is damaged");
  }
  return running.digest("hex");
}

/** The lines of a gzip file, without their ends. */
export async function* linesOf(bytes: Bytes, entry: Entry): AsyncGenerator<Uint8Array> {
  const damaged = (what: string) =>
    new Wrong("lines.damaged", entry.name, `the lines of the file cannot be read: ${what}`);
  const tooLong = () =>
    new Wrong("lines.too_long", entry.name, `the line is longer than ${LINE_MAX} bytes`);
  const begin = entry.at + await headerSize(bytes, entry, damaged);
  const end = entry.at + entry.size - 8;
  if (begin > end) throw damaged("it ends too early");
  let rest: Uint8Array = new Uint8Array(0);
  let [crc, size, lines] = [0, 0, 0];
  for await (const piece of inflated(bytes, begin, end, damaged)) {
    crc = crc32(piece, crc);
    size = (size + piece.length) % 2 ** 32;
    let at = 0;
    for (let to; (to = piece.indexOf(0x0a, at)) >= 0; at = to + 1) {
      const line = rest.length ? Buffer.concat([rest, piece.subarray(at, to)]) : piece.subarray(at, to);
      rest = new Uint8Array(0);
      if (line.length > LINE_MAX) throw tooLong();
      if (++lines > LINES_MAX) {
        throw new Wrong("lines.divided", entry.name, `the file has more than ${LINES_MAX} lines`);
      }
      yield line;
    }
    rest = rest.length ? Buffer.concat([rest, piece.subarray(at)]) : piece.slice(at);
    if (rest.length > LINE_MAX) throw tooLong();
  }
  const trailer = await bytes.read(end, 8);
  if (compareBytes(trailer, fields([4, crc], [4, size]))) throw damaged("its CRC or size");
  if (rest.length || !lines) {
    throw new Wrong("lines.no_end", entry.name, "the last line does not end with a line feed");
  }
}

/** Unpacks one deflate stream that is exactly these bytes. */
async function* inflated(bytes: Bytes, begin: number, end: number,
                         damaged: (what: string) => Wrong): AsyncGenerator<Uint8Array> {
  const packed = Readable.from(bytes.pieces(begin, end), { objectMode: false });
  const inflate = createInflateRaw();
  packed.on("error", (error: Error) => inflate.destroy(error));
  try {
    packed.pipe(inflate);
    for await (const piece of inflate) yield piece;
  } catch (error) {
    const { code = "", message } = error as Error & { code?: string };
    throw String(code).startsWith("Z_") ? damaged(message) : error;
  } finally {
    packed.destroy();
    inflate.destroy();
  }
  if (inflate.bytesWritten !== end - begin) throw damaged("bytes after its end");
}

/** Of a gzip header (RFC 1952). */
async function headerSize(bytes: Bytes, entry: Entry, damaged: (what: string) => Wrong):
                          Promise<number> {
  const head = await bytes.read(entry.at, Math.min(entry.size, GZIP_HEADER_MAX));
  const flags = head[3];
  if (head.length < 18 || head[0] !== 0x1f || head[1] !== 0x8b || head[2] !== 8 || flags & 0xe0) {
    throw damaged("it is no gzip file");
  }
  let at = 10;
  if (flags & 4) at += 2 + head[at] + 256 * head[at + 1];
  for (const flag of [8, 16]) {
    if (!(flags & flag)) continue;
    at = head.indexOf(0, at) + 1;
    if (!at) throw damaged("its header");
  }
  if (flags & 2) {
    const crc = crc32(head.subarray(0, at), 0) & 0xffff;
    if (head[at] + 256 * head[at + 1] !== crc) throw damaged("the CRC of its header");
    at += 2;
  }
  if (!(at + 8 <= entry.size && at <= head.length)) throw damaged("its header");
  return at;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

export const crc32: (bytes: Uint8Array, before: number) => number = zlib.crc32 ?? ((bytes, before) => {
  let crc = ~before;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return ~crc >>> 0;
});
