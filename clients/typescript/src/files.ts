// Files that go and come piece by piece.

import { createHash, randomUUID } from "node:crypto";
import { constants, lstat, open, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import { ApiError, ConnectionFailed, DigestMismatch, UnexpectedAnswer } from "./errors.js";
import type { Answer, Body, Request, Transport } from "./http.js";

/** A file by its path, or what is in memory. */
export type Source = string | Uint8Array | Blob;
/** Bytes so far, and in all where that is known. */
export type Progress = (received: number, total?: number) => void;
export type Algorithm = "sha-256" | "sha-512";

const PIECE = 65536;
/** Bytes; no file that the service issues is larger. */
export const DOWNLOAD_MAX = 2 ** 32;

function newHash(algorithm: Algorithm) {
  if (algorithm !== "sha-256" && algorithm !== "sha-512") {
    throw new TypeError("the algorithm is sha-256 or sha-512");
  }
  return createHash(algorithm.replace("-", ""));
}

/** The digest of a file in hexadecimal, read piece by piece: for `Client.registerDigest`. */
export async function digest(source: Source, algorithm: Algorithm = "sha-256"): Promise<string> {
  const running = newHash(algorithm);
  for await (const piece of piecesOf(source)) running.update(piece);
  return running.digest("hex");
}

async function* piecesOf(source: Source): AsyncGenerator<Uint8Array> {
  if (typeof source === "string") {
    const file = await open(source, "r");
    try {
      yield* piecesOfHandle(file);
    } finally {
      await file.close();
    }
  } else if (source instanceof Uint8Array) {
    for (let at = 0; at < source.length; at += PIECE) yield source.subarray(at, at + PIECE);
  } else {
    for (let at = 0; at < source.size; at += PIECE) {
      yield new Uint8Array(await source.slice(at, at + PIECE).arrayBuffer());
    }
  }
}

async function* piecesOfHandle(file: FileHandle): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const piece = new Uint8Array(PIECE);
    const { bytesRead } = await file.read(piece, 0, PIECE, at);
    if (!bytesRead) return;
    at += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

async function sizeOf(source: Source): Promise<number> {
  if (typeof source === "string") return (await stat(source)).size;
  return source instanceof Uint8Array ? source.length : source.size;
}

/** multipart/form-data of some texts and a file, whose SHA-256 is taken while it is sent. */
export class Form implements Body {
  /** Once it was sent. */
  sha256 = "";
  readonly contentType: string;
  readonly length: number;

  private constructor(boundary: string, private readonly head: Uint8Array,
                      private readonly source: Source, private readonly size: number,
                      private readonly tail: Uint8Array) {
    this.contentType = `multipart/form-data; boundary=${boundary}`;
    this.length = head.length + size + tail.length;
  }

  static async of(fields: Record<string, string>, source: Source, name?: string): Promise<Form> {
    const given = name ?? (typeof source === "string" ? source : (source as File).name);
    const fileName = basename(given ?? "") || "file";
    if (/[\x00-\x1f\x7f]/.test(fileName)) {
      throw new TypeError("a file's name has no control characters");
    }
    const boundary = randomUUID();
    const texts = Object.entries(fields).map(([field, value]) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`);
    const escaped = fileName.replace(/"/g, "%22");
    const head = `${texts.join("")}--${boundary}\r\nContent-Disposition: form-data; name="file"; ` +
      `filename="${escaped}"\r\nContent-Type: application/octet-stream\r\n\r\n`;
    const encoder = new TextEncoder();
    return new Form(boundary, encoder.encode(head), source, await sizeOf(source),
                    encoder.encode(`\r\n--${boundary}--\r\n`));
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    const running = createHash("sha256");
    let left = this.size;
    yield this.head;
    for await (const piece of piecesOf(this.source)) {
      if ((left -= piece.length) < 0) break;
      running.update(piece);
      yield piece;
    }
    if (left) throw new Error("the file changed while it was sent");
    this.sha256 = running.digest("hex");
    yield this.tail;
  }
}

/** A file that comes into `path` whole and checked, or not at all. Its part is under a name that no
 * other download has. What came before a lost connection is then put beside `path`, under a name
 * made of the digest, where a later call claims it by renaming it, which only one can do. */
export class Download {
  readonly #path: string;
  readonly #expected?: string;
  readonly #part: string;
  readonly #rest?: string;
  /** Of what came in this call. */
  #etag = "";

  /** most: bytes. */
  constructor(path: string, expected: string | undefined, private readonly algorithm: Algorithm,
              private readonly most: number, private readonly progress?: Progress, private readonly signal?: AbortSignal) {
    this.#path = path;
    this.#expected = expected?.toLowerCase();
    const beside = (end: string) => join(dirname(path), `.${basename(path)}.${end}`);
    this.#part = beside(`${randomUUID()}.part`);
    this.#rest = this.#expected && beside(`${this.#expected.slice(0, 32)}.rest`);
  }

  /** The digest. `request` makes one with more headers. */
  async run(transport: Transport,
            request: (more: Record<string, string>) => Request): Promise<string> {
    const claimed = this.#rest !== undefined && await claim(this.#rest, this.#part);
    const part = claimed || await open(this.#part, "wx+");
    try {
      const found = await this.#complete(transport, request, part);
      await part.sync();
      await rename(this.#part, this.#path);
      return found;
    } catch (error) {
      const { size } = await part.stat();
      await part.close(); // nobody writes what another call may claim
      const kept = this.#rest !== undefined && size > 0 && await moved(this.#part, this.#rest);
      if (!kept) await rm(this.#part, { force: true });
      throw error;
    } finally {
      await part.close();
    }
  }

  async #complete(transport: Transport, request: (more: Record<string, string>) => Request,
                  part: FileHandle): Promise<string> {
    const leftOver = (await part.stat()).size > 0;
    if (leftOver && (await this.#digest(part)) === this.#expected) return this.#expected;
    try {
      return await this.#fetch(transport, request, part);
    } catch (error) {
      if (!(error instanceof DigestMismatch || error instanceof ApiError)) throw error;
      await part.truncate(0);
      // What an earlier call left may be spoilt: once more, from the beginning.
      if (!leftOver || (error instanceof ApiError && error.status !== 416)) throw error;
    }
    return this.#fetch(transport, request, part);
  }

  async #fetch(transport: Transport, request: (more: Record<string, string>) => Request,
               part: FileHandle): Promise<string> {
    await transport.perform(async () => {
      const { size } = await part.stat();
      // Without a digest only the tag tells that the rest is of the same file.
      if (!size || !(this.#etag || this.#expected)) return request({});
      const same: Record<string, string> = this.#etag ? { "If-Range": this.#etag } : {};
      return request({ Range: `bytes=${size}-`, ...same });
    }, (answer) => this.#receive(answer, part), this.signal);
    const found = await this.#digest(part);
    if (this.#expected !== undefined && found !== this.#expected) {
      throw new DigestMismatch(basename(this.#path), this.#expected, found);
    }
    return found;
  }

  async #receive(answer: Answer, part: FileHandle): Promise<void> {
    const told = answer.headers.get("ETag") ?? "";
    const tag = told.startsWith('"') ? told : ""; // a weak one is for no range
    const { start, total } = contentRange(answer);
    let at = start;
    if (total !== undefined && total > this.most) throw this.#tooLong(`it has ${total} bytes`);
    if (at > (await part.stat()).size) {
      throw new UnexpectedAnswer("another range came than was asked for");
    }
    if (at && this.#expected === undefined && !(tag && tag === this.#etag)) {
      throw new UnexpectedAnswer("a range of another file came than was asked for");
    }
    this.#etag = tag;
    await part.truncate(at);
    for await (const piece of answer.pieces()) {
      if (total !== undefined && at + piece.length > total) {
        throw new UnexpectedAnswer("the answer is longer than the file");
      }
      if (at + piece.length > this.most) {
        await part.truncate(0);
        throw this.#tooLong("more came, without a length");
      }
      for (let done = 0; done < piece.length; ) {
        const { bytesWritten } = await part.write(piece, done, piece.length - done, at);
        done += bytesWritten;
        at += bytesWritten;
      }
      this.progress?.(at, total);
    }
    if (total !== undefined && at < total) {
      throw new ConnectionFailed(`${basename(this.#path)}: the answer ended before the file did`);
    }
  }

  #tooLong(what: string): UnexpectedAnswer {
    return new UnexpectedAnswer(`${basename(this.#path)}: ${what}, and ${this.most} bytes are the most that ` +
                                "it may have (as the service has on record for it, or `downloadMax`)");
  }

  async #digest(part: FileHandle): Promise<string> {
    const running = newHash(this.algorithm);
    for await (const piece of piecesOfHandle(part)) running.update(piece);
    return running.digest("hex");
  }
}

/** Where what comes begins in the file, and how long the file is. */
function contentRange(answer: Answer): { start: number; total?: number } {
  if (answer.status !== 206) return { start: 0, total: answer.length };
  const told = answer.headers.get("Content-Range") ?? "";
  const given = /^bytes ([0-9]+)-[0-9]+\/([0-9]+)$/.exec(told);
  if (!given) throw new UnexpectedAnswer("a range came that does not say which, and of how much");
  return { start: Number(given[1]), total: Number(given[2]) };
}

/** What an earlier call left, if it is still there and under the new name; undefined if not, or if
 * it may be somebody else's: others can put what they like into a folder that is shared. */
async function claim(rest: string, part: string): Promise<FileHandle | undefined> {
  // Neither a link is followed nor a pipe waited for; Windows has neither flag.
  const flags = constants.O_RDWR | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const file = await open(rest, flags).catch(() => undefined);
  if (!file) return undefined;
  try {
    const found = await file.stat();
    const own = found.uid === (process.geteuid?.() ?? found.uid);
    if (found.isFile() && own && found.nlink === 1 && await moved(rest, part)) {
      const now = await lstat(part);
      if (now.ino === found.ino && now.dev === found.dev) return file;
      await rm(part, { force: true }); // it was another already: fetched anew
    }
  } catch {
    // as if nothing had been there
  }
  await file.close();
  return undefined;
}

function moved(from: string, to: string): Promise<boolean> {
  return rename(from, to).then(() => true, () => false);
}
