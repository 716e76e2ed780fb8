// Receipts that are given to compare an archive with (docs/verify/evidence-format.md, section 10.3).

import { isHash, type Document } from "./evidence.js";
import type { Note } from "./archive.js";
import type { Event } from "./client.js";
import { receiptFiles, ReceiptFile } from "./receipts.js";
import { Bytes } from "./zip.js";

/** The path of a file with one answer, a JSON array of answers or one in each line, with those that it
 * was renamed to (`….1`); several paths; a `ReceiptFile`; or the receipts themselves. */
export type GivenReceipts = string | ReceiptFile | Iterable<string | Event> | AsyncIterable<Event>;

const WHOLE_MAX = 16 << 20;
const LINE_MAX = 1 << 20;
const MEMBERS = ["event_id", "client_ref", "received_at", "occurred_at", "hash", "hash_alg", "modality",
  "config_version"];

interface Loaded {
  sequence: number;
  chainHash: string;
  members: unknown[];
  where: string;
  state: "open" | "confirmed" | "compared";
}

export class Receipts {
  /** All that were read, and those that an event of the archive agrees with. */
  readonly counts = { given: 0, matched: 0 };
  readonly #given?: GivenReceipts;
  readonly #note: Note;
  readonly #bySequence = new Map<number, Loaded[]>();

  constructor(given: GivenReceipts | undefined, note: Note) {
    this.#given = given;
    this.#note = note;
  }

  /** Reads them, and keeps those of this chain. */
  async read(channelId: string, mode: string): Promise<void> {
    if (this.#given === undefined) return;
    for await (const { value, where, isTooLong } of eachReceipt(this.#given)) {
      if (isTooLong) this.#unusable(where, "it is too long");
      else this.#add(value, where, channelId, mode);
    }
    if (!this.counts.given) this.#unusable("", "there is none");
  }

  #add(receipt: unknown, where: string, channelId: string, mode: string): void {
    const given = Object(receipt) as Document;
    const { sequence, chain_hash: chainHash } = given;
    this.counts.given++;
    const members = MEMBERS.map((name) => given[name] ?? null);
    const isWhole = Number.isSafeInteger(sequence) && isHash(chainHash)
      && typeof given.channel_id === "string" && MEMBERS.every((name) => name === "occurred_at" || given[name] !== undefined);
    if (!isWhole) {
      this.#unusable(where, "it is not a response to a registration");
    } else if (given.channel_id !== channelId || given.mode !== mode) {
      this.#note("receipt.event_not_given", "unchecked", where,
                 `the archive does not contain event ${sequence} of ${given.channel_id} (${given.mode})`);
    } else {
      const loaded: Loaded = { sequence, chainHash, members, where, state: "open" };
      const others = this.#bySequence.get(sequence);
      if (others) others.push(loaded);
      else this.#bySequence.set(sequence, [loaded]);
    }
  }

  #unusable(where: string, why: string): void {
    this.#note("receipt.not_usable", "unchecked", where, `the file contains no usable receipts: ${why}`);
  }

  compareEvent(event: Document, chainHash: string): void {
    for (const receipt of this.#bySequence.get(event.sequence) ?? []) {
      receipt.state = "compared";
      const differing = MEMBERS.filter((name, at) => receipt.members[at] !== event[name]);
      if (receipt.chainHash !== chainHash) differing.unshift("chain_hash");
      if (!differing.length) this.counts.matched++;
      else {
        this.#note("receipt.event_differs", "unchecked", receipt.where,
                   `event ${event.sequence} of the archive differs from the receipt: ${differing.join(", ")}`);
      }
    }
  }

  /** Of an event right before or after the range, whose chain hash alone is in the archive. */
  compareHash(sequence: number, chainHash: string): void {
    for (const receipt of this.#bySequence.get(sequence) ?? []) {
      if (receipt.chainHash !== chainHash) {
        this.#note("receipt.chain_differs", "unchecked", receipt.where,
                   `the archive has another chain hash for event ${sequence}`);
      } else if (receipt.state === "open") {
        receipt.state = "confirmed";
      }
    }
  }

  conclude(): void {
    for (const receipts of this.#bySequence.values()) {
      for (const { sequence, where, state } of receipts) {
        if (state === "confirmed") {
          this.#note("receipt.hash_alone", "unchecked", where,
                     `of event ${sequence} the archive contains the chain hash alone`);
        } else if (state === "open") {
          this.#note("receipt.event_not_given", "unchecked", where,
                     `the archive does not contain event ${sequence}`);
        }
      }
    }
  }
}

/** What was given as a receipt; a value that is undefined is no JSON. */
interface Given {
  value: unknown;
  where: string;
  isTooLong?: boolean;
}

/** All receipts, one after another. */
export async function* eachReceipt(given: GivenReceipts): AsyncGenerator<Given, void, undefined> {
  const all = typeof given === "string" ? [given] : given instanceof ReceiptFile ? [given.path] : given;
  let number = 0;
  for await (const one of all) {
    if (typeof one !== "string") yield { value: one, where: `receipt ${++number}` };
    else for (const path of await filesOf(one)) yield* eachOfFile(path);
  }
}

async function* eachOfFile(path: string): AsyncGenerator<Given, void, undefined> {
  const bytes = await Bytes.of(path);
  try {
    const whole = bytes.size <= WHOLE_MAX ? parsed(await bytes.read(0, bytes.size)) : undefined;
    if (whole !== undefined) {
      yield* [whole].flat().map((value, at) => ({ value, where: `${path}: receipt ${at + 1}` }));
      return;
    }
    let number = 0;
    for await (const line of textLines(bytes)) {
      const where = `${path}: line ${++number}`;
      if (line === undefined) yield { value: undefined, where, isTooLong: true };
      else if (line.some((byte) => byte > 0x20)) yield { value: parsed(line), where };
    }
  } finally {
    await bytes.close();
  }
}

async function filesOf(path: string): Promise<string[]> {
  const found = await receiptFiles(path);
  return found.length ? found : [path]; // which is then told as missing
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/** Lines without their ends; undefined for one that is too long. */
async function* textLines(bytes: Bytes): AsyncGenerator<Uint8Array | undefined> {
  let rest: Uint8Array = new Uint8Array(0);
  let isTooLong = false;
  for await (const piece of bytes.pieces()) {
    let at = 0;
    for (let to; (to = piece.indexOf(0x0a, at)) >= 0; at = to + 1) {
      yield isTooLong ? undefined : Buffer.concat([rest, piece.subarray(at, to)]);
      [rest, isTooLong] = [new Uint8Array(0), false];
    }
    isTooLong ||= rest.length + piece.length - at > LINE_MAX;
    rest = isTooLong ? new Uint8Array(0) : Buffer.concat([rest, piece.subarray(at)]);
  }
  if (rest.length || isTooLong) yield isTooLong ? undefined : rest;
}
