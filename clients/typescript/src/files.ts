// Files that go and come piece by piece.

import { createHash, randomUUID } from "node:crypto";
import { constants, open, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import { ApiError, DigestMismatch, UnexpectedAnswer } from "./errors.js";
import type { Answer, Body, Request, Transport } from "./http.js";

/** A file by its path, or what is in memory. */
export type Source = string | Uint8Array | Blob;
/** Bytes so far, and in all where that is known. */
export type Progress = (received: number, total?: number) => void;
export type Algorithm = "sha-256" | "sha-512";

const PIECE = 65536;

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

/** A file that comes into `path` whole and checked, or not at all. What came before a lost
 * connection stays beside it, under a name made of the digest, for the rest to be added. */
export class Download {
  readonly #path: string;
  readonly #expected?: string;
  readonly #part: string;
  /** Of what came in this call. */
  #etag = "";

  constructor(path: string, expected: string | undefined, private readonly algorithm: Algorithm,
              private readonly progress?: Progress) {
    this.#path = path;
    this.#expected = expected?.toLowerCase();
    const mark = this.#expected?.slice(0, 32) ?? randomUUID();
    this.#part = join(dirname(path), `.${basename(path)}.${mark}.part`);
  }

  /** The digest. `request` makes one with more headers. */
  async run(transport: Transport,
            request: (more: Record<string, string>) => Request): Promise<string> {
    const part = await open(this.#part, constants.O_RDWR | constants.O_CREAT);
    let keep = false;
    try {
      const found = await this.#complete(transport, request, part);
      await part.sync();
      await rename(this.#part, this.#path);
      return found;
    } finally {
      keep = this.#expected !== undefined && (await part.stat()).size > 0;
      await part.close();
      if (!keep) await rm(this.#part, { force: true });
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
      if (!size) return request({});
      const same: Record<string, string> = this.#etag ? { "If-Range": this.#etag } : {};
      return request({ Range: `bytes=${size}-`, ...same });
    }, (answer) => this.#receive(answer, part));
    const found = await this.#digest(part);
    if (this.#expected !== undefined && found !== this.#expected) {
      throw new DigestMismatch(basename(this.#path), this.#expected, found);
    }
    return found;
  }

  async #receive(answer: Answer, part: FileHandle): Promise<void> {
    const told = answer.headers.get("ETag") ?? "";
    this.#etag = told.startsWith('"') ? told : ""; // a weak one is for no range
    const range = contentRange(answer);
    let at = range.start;
    if (at > (await part.stat()).size) {
      throw new UnexpectedAnswer("another range came than was asked for");
    }
    await part.truncate(at);
    for await (const piece of answer.pieces()) {
      for (let done = 0; done < piece.length; ) {
        const { bytesWritten } = await part.write(piece, done, piece.length - done, at);
        done += bytesWritten;
        at += bytesWritten;
      }
      this.progress?.(at, range.total);
    }
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
  const given = /^bytes ([0-9]+)-[0-9]+\/([0-9]+|\*)$/.exec(
    answer.headers.get("Content-Range") ?? "");
  if (!given) throw new UnexpectedAnswer("a range came that does not say which");
  return { start: Number(given[1]), total: given[2] === "*" ? undefined : Number(given[2]) };
}
