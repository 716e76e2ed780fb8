// Receipts of a watcher's chains: what they acknowledge, and until when they promise an entry of the log.

import { createHash } from "node:crypto";

import { bytesOfBase64, canonical, isHash, isText, isTime, type Document } from "./evidence.js";
import { eachReceipt, type GivenReceipts } from "./given.js";
import { Climb, hexOf, NAME_MAX, nodeOf, sizeOf } from "./log.js";
import { isSigned } from "./notes.js";
import { leafOf } from "./tiles.js";

const PATH_MAX = 10;
const RECEIPTS_MAX = 1 << 20;
const CHANNELS_MAX = 1000;
const CHANNEL_ID_MAX = 39;
const HASH_SIZE = 32;
/** Microseconds. A promise of a later time after the event is none. */
const PROMISE_MAX = 24 * 3600 * 1_000_000;
const PREFIX = "constancia-receipt/1\n";

export interface Promised {
  sequence: number;
  chainHash: string;
  /** Microseconds; undefined: it promises nothing. */
  sealBy?: number;
  /** Signed by the key that it states. */
  isSigned: boolean;
  /** Of the log that it names, if it is signed. */
  origin?: string;
  /** It promises only a time beyond PROMISE_MAX. */
  isFar: boolean;
}

const isCount = (value: unknown, first: number) => Number.isSafeInteger(value) && (value as number) >= first;
const bytesOf = (text: string) => new TextEncoder().encode(text);

/** A time in microseconds since 1970. */
export const micros = (time: string) => Date.parse(`${time.slice(0, 19)}Z`) * 1000 + Number(time.slice(20, 26));
/** The other way round. */
export function textOf(time: number): string {
  const rest = time % 1_000_000;
  return `${new Date((time - rest) / 1000).toISOString().slice(0, 19)}.${String(rest).padStart(6, "0")}Z`;
}

/** Whether the key that a receipt names signed it. */
function hasSignature(event: Document, receipt: Document): boolean {
  const { chain_hash, channel_id, hash, hash_alg, mode, received_at, sequence } = event;
  const { index, key, origin, path, seal_by, signature, size } = receipt;
  const isWhole = isText(hash) && isTime(received_at) && isText(origin) && sizeOf(origin) <= NAME_MAX
    && (seal_by === null || isTime(seal_by)) && isCount(index, 0) && isCount(size, 1) && index < size
    && Array.isArray(path) && path.length <= PATH_MAX;
  if (!isWhole) return false;
  const statement = canonical({
    chain: mode, chain_hash, channel_id, hash, hash_alg: hash_alg ?? "sha-256", origin, received_at, seal_by, sequence,
    v: "constancia-receipt/1",
  });
  const climb = new Climb(index, size);
  let root = leafOf(bytesOf(statement));
  for (const one of path) {
    const bytes = bytesOfBase64(one, HASH_SIZE);
    if (climb.isAtRoot || bytes?.length !== HASH_SIZE) return false;
    root = climb.isLeft() ? nodeOf(hexOf(bytes), root) : nodeOf(root, hexOf(bytes));
  }
  const [given, signed] = [bytesOfBase64(key, HASH_SIZE), bytesOfBase64(signature, 2 * HASH_SIZE)];
  return climb.isAtRoot && given?.length === HASH_SIZE && signed?.length === 2 * HASH_SIZE
    && isSigned(given, Buffer.concat([bytesOf(PREFIX), Buffer.from(root, "hex")]), signed);
}

export const isChannel = (id: unknown) =>
  isText(id) && id !== "" && sizeOf(id as string) <= CHANNEL_ID_MAX && canonical(id) !== "";
/** What names the live chain of a channel in the log. */
const tagOf = (id: string) => createHash("sha256").update(`constancia-tag/1\n${id}\nlive`).digest("hex");

/** All receipts of the chains that are watched, one for each event and chain hash, which binds the service most: of
 * the given channels and of those of receipts. */
export class Promises {
  /** Ids by tag. */
  readonly channels = new Map<string, string>();
  readonly #chains = new Map<string, Map<number, Promised[]>>();
  /** Of test chains, with a false signature, and what is no receipt. */
  readonly counts = { test: 0, false: 0, malformed: 0 };
  firstMalformed = "";
  #kept = 0;
  #origin = "";

  constructor(channels: Iterable<string>) {
    for (const id of channels) this.#watch(id);
  }

  #watch(id: string): Map<number, Promised[]> {
    let chain = this.#chains.get(id);
    if (!chain) {
      if (this.#chains.size === CHANNELS_MAX) {
        throw new TypeError(`at most ${CHANNELS_MAX} channels can be watched at once`);
      }
      this.#chains.set(id, chain = new Map());
      this.channels.set(tagOf(id), id);
    }
    return chain;
  }

  /** Reads what was given; `origin` is that of the log that is watched. */
  async read(given: GivenReceipts, origin: string, signal?: AbortSignal): Promise<void> {
    this.#origin = origin;
    for await (const { value, where, isTooLong } of eachReceipt(given)) {
      signal?.throwIfAborted();
      this.#add(Object(value) as Document, isTooLong ? `${where}: it is too long` : where);
    }
  }

  #add(event: Document, where: string): void {
    const { channel_id: channelId, mode, sequence, chain_hash: chainHash } = event;
    const wrong = Object.entries({
      channel_id: isChannel(channelId), mode: mode === "live" || mode === "test", sequence: isCount(sequence, 1),
      chain_hash: isHash(chainHash),
    }).find(([, isRight]) => !isRight);
    if (wrong) {
      this.counts.malformed++;
      this.firstMalformed ||= `${where}: ${wrong[0]}`;
    } else if (mode === "test") {
      this.counts.test++;
    } else {
      this.#keep(this.#watch(channelId), { sequence, chainHash, ...this.#promiseOf(event) });
    }
  }

  #promiseOf(event: Document): Omit<Promised, "sequence" | "chainHash"> {
    const receipt = event.receipt ?? undefined;
    if (receipt === undefined) return { isSigned: false, isFar: false };
    if (!hasSignature(event, Object(receipt))) {
      this.counts.false++;
      return { isSigned: false, isFar: false };
    }
    const signed = { isSigned: true, isFar: false, origin: receipt.origin };
    if (receipt.seal_by === null) return signed;
    const sealBy = micros(receipt.seal_by);
    return { ...signed, sealBy, isFar: sealBy - micros(event.received_at) > PROMISE_MAX };
  }

  /** Whether it is signed for the log that is watched. */
  binds({ isSigned, origin }: Promised): boolean {
    return isSigned && origin === this.#origin;
  }

  /** Whether it binds the service more than another one of the same chain hash. */
  #isBefore(one: Promised, other: Promised): boolean {
    if (one.isSigned !== other.isSigned) return one.isSigned;
    if (this.binds(one) !== this.binds(other)) return this.binds(one);
    return (one.sealBy ?? Infinity) < (other.sealBy ?? Infinity); // the earliest promise
  }

  #keep(chain: Map<number, Promised[]>, promise: Promised): void {
    const others = chain.get(promise.sequence) ?? [];
    const same = others.find(({ chainHash }) => chainHash === promise.chainHash);
    if (!same) {
      if (++this.#kept > RECEIPTS_MAX) throw new RangeError(`there are more than ${RECEIPTS_MAX} receipts`);
      chain.set(promise.sequence, [...others, promise]);
    } else if (this.#isBefore(promise, same)) {
      others[others.indexOf(same)] = promise;
    }
  }

  /** Of an event, in the order of their chain hashes. */
  of(channelId: string, sequence: number): Promised[] {
    const found = this.#chains.get(channelId)?.get(sequence) ?? [];
    return [...found].sort((one, other) => (one.chainHash < other.chainHash ? -1 : 1));
  }

  /** Of a channel, in order of their events. */
  *all(channelId: string): Generator<Promised, void, undefined> {
    const sequences = [...this.#chains.get(channelId)?.keys() ?? []].sort((one, other) => one - other);
    for (const sequence of sequences) yield* this.of(channelId, sequence);
  }

  /** What stands for the receipts of events up to one: the state of `constancia log watch` has the same. Each hash
   * covers the ones before it, so that who chooses the receipts cannot make it that of others. */
  digest(channelId: string, last: number): string {
    let found: Uint8Array = new Uint8Array(HASH_SIZE);
    const number = new DataView(new ArrayBuffer(8));
    for (const { sequence, chainHash } of this.all(channelId)) {
      if (sequence > last) break;
      number.setBigInt64(0, BigInt(sequence), true);
      const hash = createHash("sha256").update(found).update(new Uint8Array(number.buffer));
      found = hash.update(chainHash, "hex").digest();
    }
    return hexOf(found);
  }
}
