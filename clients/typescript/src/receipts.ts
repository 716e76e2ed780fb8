// Receipts that keep themselves: in a file that is appended to, or a sink of the caller's.

import { lstat, open, readdir, rename, rm, type FileHandle } from "node:fs/promises";
import { basename, dirname } from "node:path";

import type { RegisteredEvent, Replayable } from "./client.js";
import { ReceiptNotKept } from "./errors.js";

/** What a registration answers, with every member that came. As JSON (`JSON.stringify(receipt)`) it is
 * what `constancia verify --receipt` takes: the answer, without `replayed`. */
export type Receipt = Replayable<RegisteredEvent> & { toJSON(): RegisteredEvent };

/** A path, a `ReceiptFile`, a function, or an object with `write`. What it returns is awaited; with
 * `writeAll` it takes those of a batch at once. */
export type ReceiptSink = string | ((receipt: Receipt) => unknown) | {
  write(receipt: Receipt): unknown;
  writeAll?(receipts: readonly Receipt[]): unknown;
};

export interface ReceiptFileOptions {
  /** The file is renamed before it would exceed so many bytes; 0: never. 4 MiB by default: so
   * large a file is one that `constancia verify --receipt` takes. */
  rotateBytes?: number;
}

export function receiptOf(event: Replayable<RegisteredEvent>): Receipt {
  return Object.defineProperty(event, "toJSON", {
    value(this: Replayable<RegisteredEvent>): RegisteredEvent {
      const { replayed: _, ...answer } = this;
      return answer as RegisteredEvent;
    },
  }) as Receipt;
}

const ROTATE_BYTES = 4 << 20;
const TORN_MAX = 1 << 20;
/** How long a last line without its end may be that of another process which is just writing it. */
const TORN_CHECKS = 10;
const TORN_PAUSE = 25;

/** One receipt a line, each on the disk before the call that registered the event returns.
 *
 * Several clients, threads and processes of this package may share a file: each line is one write at
 * its end. A line that a crash tore off is moved to `….torn` by the next write. Before the file
 * exceeds `rotateBytes` it is renamed to `….1`, then `….2` and so on: the highest number is the
 * newest. No file is ever overwritten or removed. */
export class ReceiptFile {
  readonly path: string;
  readonly #rotateBytes: number;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(path: string, options: ReceiptFileOptions = {}) {
    const { rotateBytes = ROTATE_BYTES } = options;
    if (!(rotateBytes >= 0)) throw new TypeError("rotateBytes is 0 (no rotation) or more");
    this.path = path;
    this.#rotateBytes = rotateBytes;
  }

  write(receipt: Receipt): Promise<void> {
    return this.writeAll([receipt]);
  }

  /** Appends all with one write and one fsync, into one file. */
  writeAll(receipts: readonly Receipt[]): Promise<void> {
    const lines = receipts.map((one) => JSON.stringify(one) + "\n").join("");
    return this.#inTurn(() => this.#append(new TextEncoder().encode(lines)));
  }

  /** Creates the file if there is none, so that one which cannot be written is known before
   * anything is registered. */
  open(): Promise<void> {
    return this.#inTurn(() => this.#append(new Uint8Array(0)));
  }

  /** The files that there are, the oldest first. */
  files(): Promise<string[]> {
    return receiptFiles(this.path);
  }

  #inTurn(action: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(action);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  async #append(lines: Uint8Array): Promise<void> {
    for (;;) {
      const file = await open(this.path, "a+", 0o600);
      try {
        await repair(this.path, file);
        const found = await file.stat();
        if (!lines.length) return;
        const { size } = found;
        const isFull = this.#rotateBytes && size && size + lines.length > this.#rotateBytes;
        if (isFull && await rotate(this.path, found.ino)) continue;
        const { bytesWritten } = await file.write(lines, 0, lines.length, null);
        if (bytesWritten !== lines.length) {
          throw new Error(`${this.path}: ${bytesWritten} of ${lines.length} bytes were written`);
        }
        await file.sync();
        if (!size) await syncFolder(this.path);
        return;
      } finally {
        await file.close();
      }
    }
  }
}

/** A file of receipts and those that it was renamed to, the oldest first. */
export async function receiptFiles(path: string): Promise<string[]> {
  const name = basename(path);
  const entries = await readdir(dirname(path));
  const numbers = entries.filter((one) => one.startsWith(`${name}.`))
    .map((one) => one.slice(name.length + 1)).filter((end) => /^[1-9][0-9]{0,14}$/.test(end))
    .map(Number).sort((one, other) => one - other);
  return [...numbers.map((number) => `${path}.${number}`), ...entries.includes(name) ? [path] : []];
}

/** Renames the file to the next number, unless another process did. The place is made before, under
 * a name that nothing has, so that the renaming replaces nothing else. False where it cannot be
 * renamed: then it grows on, rather than that a receipt is lost. */
async function rotate(path: string, ino: number): Promise<boolean> {
  const [last = path] = (await receiptFiles(path)).filter((one) => one !== path).reverse();
  for (let number = 1 + (Number(last.slice(path.length + 1)) || 0); ; number++) {
    const place = `${path}.${number}`;
    try {
      await (await open(place, "wx", 0o600)).close();
    } catch (error) {
      if ((error as { code?: string }).code === "EEXIST") continue;
      return false;
    }
    try {
      const now = await lstat(path);
      if (now.ino === ino) {
        await rename(path, place);
        await syncFolder(path);
        return true;
      }
    } catch (error) {
      if ((error as { code?: string }).code !== "ENOENT") {
        await rm(place, { force: true });
        return false;
      }
    }
    await rm(place, { force: true }); // another process did
    return true;
  }
}

/** Deals with a last line without its end, which a crash left. Only its own bytes are overwritten, by
 * blanks: so nothing is lost that another process appends meanwhile. */
async function repair(path: string, file: FileHandle): Promise<void> {
  let { size } = await file.stat();
  for (let check = 0; await isTorn(file, size); check++) {
    if (check === TORN_CHECKS) break;
    await new Promise((resolve) => setTimeout(resolve, TORN_PAUSE));
    const now = (await file.stat()).size;
    if (now !== size) [size, check] = [now, 0];
  }
  if (!await isTorn(file, size)) return;
  const begin = Math.max(0, size - TORN_MAX);
  const tail = await readAt(file, begin, size - begin);
  const torn = tail.subarray(tail.lastIndexOf(0x0a) + 1);
  if (isReceipt(torn)) {
    await file.write(new Uint8Array([0x0a]), 0, 1, null);
  } else {
    const beside = await open(`${path}.torn`, "a", 0o600);
    try {
      const line = new Uint8Array([...torn, 0x0a]);
      await beside.write(line, 0, line.length, null);
      await beside.sync();
    } finally {
      await beside.close();
    }
    const blank = new Uint8Array(torn.length).fill(0x20);
    blank[blank.length - 1] = 0x0a;
    const there = await open(path, "r+"); // what is opened to append writes only at the end
    try {
      const same = (await there.stat()).ino === (await file.stat()).ino;
      if (same) await there.write(blank, 0, blank.length, size - torn.length);
      await there.sync();
    } finally {
      await there.close();
    }
  }
  await file.sync();
}

async function isTorn(file: FileHandle, size: number): Promise<boolean> {
  return size > 0 && (await readAt(file, size - 1, 1))[0] !== 0x0a;
}

async function readAt(file: FileHandle, at: number, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  let done = 0;
  while (done < size) {
    const { bytesRead } = await file.read(bytes, done, size - done, at + done);
    if (!bytesRead) break;
    done += bytesRead;
  }
  return bytes.subarray(0, done);
}

/** Whether a line is whole: its end alone is missing. */
function isReceipt(line: Uint8Array): boolean {
  try {
    return typeof JSON.parse(new TextDecoder().decode(line)).event_id === "string";
  } catch {
    return false;
  }
}

async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return; // opens no folder
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Gives receipts to a sink. */
export class Keeper {
  readonly #sink: Exclude<ReceiptSink, string>;

  constructor(sink: ReceiptSink) {
    this.#sink = typeof sink === "string" ? new ReceiptFile(sink) : sink;
    if (typeof this.#sink !== "function" && typeof this.#sink?.write !== "function") {
      throw new TypeError("receipts is a path, a ReceiptFile, a function or has write(receipt)");
    }
  }

  /** Before anything is registered. */
  async open(): Promise<void> {
    if (this.#sink instanceof ReceiptFile) await this.#sink.open();
  }

  async keep(receipts: readonly Receipt[]): Promise<void> {
    const sink = this.#sink;
    for (let at = 0; at < receipts.length; at++) {
      try {
        if (typeof sink === "function") {
          await sink(receipts[at]);
        } else if (sink.writeAll) {
          await sink.writeAll(receipts);
          return;
        } else {
          await sink.write(receipts[at]);
        }
      } catch (error) {
        const isWhole = typeof sink !== "function" && sink.writeAll;
        throw new ReceiptNotKept(isWhole ? receipts : receipts.slice(at), error);
      }
    }
  }
}
