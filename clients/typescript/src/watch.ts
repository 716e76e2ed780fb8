// Follows the public log of a service's segments: that it only grows, and that it agrees with one's own receipts.

import { Wrong } from "./asn1.js";
import { checkMembers, isHash, isText } from "./evidence.js";
import { ApiError, LogNotValid } from "./errors.js";
import type { GivenReceipts } from "./given.js";
import { pause, Transport, type Answer, type CallOptions, type Retry } from "./http.js";
import { NOTE_MAX, noteOf, require, rootsOf, type Note } from "./log.js";
import { COSIGNATURE, cosignedAt, ED25519, isSignedByLog, keyOf, type NoteKey } from "./notes.js";
import { isChannel, Promises, textOf, type Promised } from "./promises.js";
import { Frontier, Tree, type Entry, type Read } from "./tiles.js";

/** What a watcher remembers, as plain data for JSON: as the file of the program's `--state` has it. */
export interface LogState {
  chains: {
    channel_id: string; compared: string; entries: number; first_sequence: number; last_sequence: number; tag: string;
  }[];
  note: string;
  /** After 1, everything is compared again. */
  v: 1 | 2;
}

export interface WatchLogOptions extends CallOptions {
  /** The log's verifier key, `NAME+ID+KEY`. Obtain it once, and compare it with that of other users. */
  key: string;
  /** The `channel_id` of channels of which there may be no receipts. */
  channels?: readonly string[];
  /** Their channels are watched, too. */
  receipts?: GivenReceipts;
  /** That of the last call; without it the whole log is read. */
  state?: LogState | null;
  /** Verifier keys of witnesses that must have cosigned. */
  witnesses?: readonly string[];
  /** How many of them must have; all by default. */
  quorum?: number;
}

export interface WatchOptions extends WatchLogOptions {
  /** Milliseconds without a sign of the log. 60,000 by default. */
  timeout?: number;
  retry?: Retry;
}

export interface LogFinding {
  /** As `constancia log watch` has it (docs/verify/log-watch.md). */
  kind: "two_trees" | "inconsistent" | "shrunken" | "overlap" | "gap" | "receipt_differs" | "promise_broken";
  what: string;
}

export interface LogWatch {
  /** `fine`: everything that was asked for was checked, and nothing is wrong. `not_established`: nothing is wrong,
   * but something could not be checked. */
  verdict: "fine" | "wrong" | "not_established";
  /** The first 100. */
  findings: LogFinding[];
  findingCount: number;
  /** What keeps it from being fine although nothing was found. */
  notChecked: string[];
  notGiven: string[];
  /** For the next call, to be kept: the old one if something is wrong. Null: the log was never accepted. */
  state: LogState | null;
  origin: string;
  size: number;
  signed: boolean;
  quorum: boolean;
  missingWitnesses: string[];
  /** The latest cosignature of a given witness. */
  witnessedAt: string | null;
  /** Entries and receipts were compared. */
  complete: boolean;
  /** No state was given: the whole log was read. */
  first: boolean;
  newEntries: number;
  /** Of the watched channels, in the whole log. */
  ownEntries: number;
  /** That were compared. */
  receipts: number;
  /** Of events that an entry has. */
  covered: number;
  /** Not covered, and nothing that was promised is overdue. */
  waiting: number;
  /** Not covered, and no quorum of witnesses shows that the checkpoint is later than the promise. */
  overdue: number;
  /** Not covered, and promised in another log. */
  otherLog: number;
  /** Not covered, and promised for no time within 24 hours. */
  withoutPromise: number;
  /** Of events before the first entry of their chain. Those that promise nothing are counted with `begunLater`. */
  beforeLog: number;
  /** Chains whose first entry is not that of their first event, which no earlier call had found. */
  begunLater: number;
  /** Ignored: the log has live chains only. */
  testReceipts: number;
  /** With a signature that does not verify: they promise nothing. */
  falseReceipts: number;
  /** The signed checkpoints: keep them if something is wrong. */
  notes: string[];
}

const FINDINGS_MAX = 100;
/** A cache may still serve an earlier checkpoint. */
const SHRUNKEN_READS = 3;
/** From a sealed segment to a checkpoint with it, and differences of clocks; in microseconds. */
const GRACE = 60_000_000;
/** Of the clocks of witnesses, in microseconds. */
const TOLERANCE = 300_000_000;
const CHAIN = "channel_id compared entries first_sequence last_sequence tag";
// What is not checked, or was not given. The client for Python uses the same words.
const LOG_KEY = "signature: the checkpoint is not signed by the given key of the log";
const QUORUM = "witnesses: too few of the given ones cosigned the checkpoint";
const WITNESSES_NOT_GIVEN = "witnesses: not given";
const RECEIPTS_NOT_GIVEN = "receipts: not given";

/** Checks the log at an address once, as `constancia log watch --once` does, without a key of the interface. Memory
 * grows with the receipts only, of which there are up to 1,048,576.
 *
 * Throws LogNotValid when the log's files contradict each other or their signature is false, TypeError for a wrong
 * argument, and the errors of requests. */
export async function watchLog(url: string, options: WatchOptions): Promise<LogWatch> {
  return watchOver(new Transport(options.timeout ?? 60_000, options.retry ?? {}), url, {}, options);
}

/** Checks a log by the requests of a client. */
export async function watchOver(transport: Transport, url: string, headers: Record<string, string>,
                                options: WatchLogOptions): Promise<LogWatch> {
  const watch = new Watch(readerOf(transport, url, headers, options.signal), options);
  try {
    return await watch.run();
  } catch (error) {
    throw error instanceof Wrong ? new LogNotValid(error.where ? `${error.where}: ${error.message}` : error.message)
      : error;
  }
}

/** Reads files of a log. */
function readerOf(transport: Transport, url: string, headers: Record<string, string>, signal?: AbortSignal): Read {
  const base = url.replace(/\/+$/, "");
  return async (path, most) => {
    // A cache on the way may keep an old checkpoint, with which promises look broken.
    const sent = path === "checkpoint" ? { ...headers, "Cache-Control": "no-cache" } : headers;
    const take = async (answer: Answer) => {
      const found = await answer.bytes(most);
      if (found.length > most) throw new LogNotValid(`${path}: it has more than ${most} bytes`);
      return found;
    };
    try {
      return await transport.perform(() => ({ method: "GET", url: `${base}/${path}`, headers: sent }), take, signal);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  };
}

/** What is wrong with an argument is told as such. */
function given<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Wrong ? new TypeError(`${error.where}: ${error.message}`) : error;
  }
}

/** The events that the entries of a chain cover. */
class Span {
  constructor(public first = 0, public last = 0, public entries = 0) {}

  /** Adds the chain's next entry; returns what is wrong with it. */
  add(entry: Entry): "gap" | "overlap" | undefined {
    const follows = !this.entries || entry.first === this.last + 1;
    const overlaps = entry.first <= this.last && entry.last >= this.first;
    this.first = this.entries ? Math.min(this.first, entry.first) : entry.first;
    this.last = Math.max(this.last, entry.last);
    this.entries++;
    return follows ? undefined : overlaps ? "overlap" : "gap";
  }
}

interface WrongEntry {
  entry: Entry;
  kind: "gap" | "overlap" | "receipt_differs";
  /** The receipt is signed for this log: anybody can write one that is not. */
  binds?: boolean;
}

/** One check: what was found so far. */
class Watch {
  readonly #read: Read;
  readonly #options: WatchLogOptions;
  readonly #begun = Date.now() * 1000;
  readonly #key: NoteKey;
  readonly #witnesses: NoteKey[];
  readonly #quorum: number;
  /** Ids by tag. */
  readonly #channels: Map<string, string>;
  readonly #known = new Map<string, LogState["chains"][number]>();
  readonly #old?: Note;
  readonly #promises: Promises;
  #spans = new Map<string, Span>();
  readonly #findings: LogFinding[] = [];
  #findingCount = 0;
  readonly #notChecked: string[] = [];
  readonly #counts = { newEntries: 0, receipts: 0, covered: 0, waiting: 0, overdue: 0, otherLog: 0, withoutPromise: 0,
                       beforeLog: 0, begunLater: 0 };
  /** Of cosignatures of given witnesses, in microseconds. */
  #times: number[] = [];
  #isComplete = false;

  constructor(read: Read, options: WatchLogOptions) {
    const { key, channels = [], receipts, state, witnesses = [], quorum = witnesses.length } = options;
    this.#read = read;
    this.#options = options;
    this.#key = given(() => keyOf(key, ED25519));
    this.#witnesses = witnesses.map((one) => given(() => keyOf(one, COSIGNATURE)));
    this.#quorum = quorum;
    const keys = new Set(this.#witnesses.map((one) => one.key.join()));
    if (!Number.isInteger(quorum) || quorum < 0 || quorum > witnesses.length || keys.size < witnesses.length) {
      throw new TypeError("quorum is a number up to that of the witnesses, each of which has another key");
    }
    if (keys.has(this.#key.key.join())) throw new TypeError("the log's own key is that of no witness");
    if (!channels.every(isChannel)) throw new TypeError("channels has the channel_id of each channel");
    if (!channels.length && receipts === undefined) {
      throw new TypeError("channels or receipts are missing: without them no entry is known to be yours");
    }
    this.#promises = new Promises(channels);
    this.#channels = this.#promises.channels;
    if (state) this.#old = given(() => this.#takeState(state));
  }

  // ---- the state ----

  #takeState(state: LogState): Note {
    const where = "that is not the state of a watcher";
    checkMembers(state, "chains note v", "", where);
    require(Array.isArray(state.chains) && isText(state.note) && [1, 2].includes(state.v), "", where,
            "a member has another form");
    for (const one of state.chains) {
      const { entries, first_sequence, last_sequence } = Object(one) as LogState["chains"][number];
      const numbers = [entries, first_sequence, last_sequence];
      require(one && Object.keys(one).sort().join(" ") === CHAIN && isHash(one.tag) && isHash(one.compared)
              && numbers.every((number) => Number.isSafeInteger(number) && number >= 0), "", where,
              "a chain has another form");
      this.#known.set(one.tag, one);
    }
    const note = noteOf(state.note, where);
    require(isSignedByLog(note, this.#key), "", where, "its checkpoint is not signed by the given key of the log");
    return note;
  }

  #nextState(note: string): LogState {
    const chains = Array.from(this.#channels, ([tag, id]) => {
      const { first, last, entries } = this.#spans.get(tag)!;
      return { channel_id: id, compared: this.#promises.digest(id, last), entries, first_sequence: first,
               last_sequence: last, tag };
    });
    return { chains, note, v: 2 };
  }

  // ---- the whole ----

  async run(): Promise<LogWatch> {
    const { receipts, state = null } = this.#options;
    const { text, note } = await this.#readHead();
    const signed = isSignedByLog(note, this.#key);
    const times = this.#witnesses.map((one) => {
      const time = (cosignedAt(note, one) ?? Infinity) * 1_000_000;
      return time > this.#begun + TOLERANCE ? undefined : time; // one to come is none
    });
    this.#times = times.filter((one): one is number => one !== undefined);
    const quorum = this.#times.length >= this.#quorum;
    if (!quorum) this.#notChecked.push(QUORUM);
    if (signed) await this.#compare(note);
    else this.#notChecked.push(LOG_KEY);
    const isAccepted = this.#isComplete && !this.#findingCount;
    const { counts: { test, false: falseReceipts } } = this.#promises;
    return {
      verdict: this.#findingCount ? "wrong" : this.#notChecked.length ? "not_established" : "fine",
      findings: this.#findings, findingCount: this.#findingCount, notChecked: this.#notChecked,
      notGiven: [...this.#witnesses.length ? [] : [WITNESSES_NOT_GIVEN],
                 ...receipts === undefined ? [RECEIPTS_NOT_GIVEN] : []],
      state: isAccepted ? this.#nextState(text) : state, origin: note.origin, size: note.size, signed, quorum,
      missingWitnesses: this.#witnesses.filter((_, at) => times[at] === undefined).map(({ name }) => name),
      witnessedAt: this.#times.length ? textOf(Math.max(...this.#times)) : null,
      complete: this.#isComplete, first: !this.#old, ...this.#counts,
      ownEntries: Array.from(this.#spans.values()).reduce((sum, { entries }) => sum + entries, 0),
      testReceipts: test, falseReceipts, notes: [...state ? [state.note] : [], text],
    };
  }

  #find(kind: LogFinding["kind"], what: string): void {
    this.#findingCount++;
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push({ kind, what });
  }

  // ---- the checkpoint ----

  /** Reads the checkpoint; an earlier one than the last, which caches may serve, some more times. */
  async #readHead(): Promise<{ text: string; note: Note }> {
    for (let attempt = 1; ; attempt++) {
      const data = await this.#read("checkpoint", NOTE_MAX);
      require(data, "", "", "the log has no checkpoint");
      let text: string;
      try {
        text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
      } catch {
        throw new LogNotValid("the checkpoint is no text");
      }
      const note = noteOf(text, "checkpoint");
      if (!this.#old || note.size >= this.#old.size || attempt === SHRUNKEN_READS) return { text, note };
      await pause(1000, this.#options.signal);
    }
  }

  async #compare(note: Note): Promise<void> {
    await this.#takeReceipts(note); // after the checkpoint, so that it covers few events without a receipt
    const tree = new Tree(this.#read, note.size);
    await this.#compareTrees(tree, note);
    if (this.#findingCount) return;
    await this.#scan(tree, note);
    this.#compareReceipts(note);
    this.#isComplete = true;
  }

  async #compareTrees(tree: Tree, note: Note): Promise<void> {
    const old = this.#old;
    if (!old?.size) return;
    const counts = ` (${old.size} entries before, ${note.size} now)`;
    if (note.size < old.size) {
      this.#find("shrunken", `the log lost entries${counts}`);
    } else if (note.size === old.size) {
      if (note.root !== old.root) this.#find("two_trees", `the log signed two different trees of one size${counts}`);
    } else {
      const [before, after] = rootsOf(old.size, note.size, await tree.consistency(old.size)) ?? [];
      require(after === note.root, "", "",
              `the tiles of the log do not lead to the root of its checkpoint of ${note.size} entries`);
      if (before !== old.root) {
        this.#find("inconsistent", `the log was rewritten: its tree does not begin with the one before${counts}`);
      }
    }
  }

  // ---- entries ----

  /** Whether no chain is new, and no receipt of an event that was covered before. Who made the receipts could choose
   * the digest of the first version. */
  #mayContinue(): boolean {
    return this.#options.state?.v === 2 && Array.from(this.#channels).every(([tag, id]) => {
      const known = this.#known.get(tag);
      return known && known.compared === this.#promises.digest(id, known.last_sequence);
    });
  }

  async #scan(tree: Tree, note: Note): Promise<void> {
    let begin = new Frontier();
    const seen = this.#old?.size ?? 0;
    const isContinued = this.#old && this.#mayContinue();
    if (isContinued) {
      if (seen) begin = await tree.frontier(seen);
      require(begin.root() === this.#old!.root, "", "",
              "the tiles of the log do not lead to the root of its checkpoint before");
    }
    this.#spans = new Map(Array.from(this.#channels.keys(), (tag) => {
      const known = isContinued ? this.#known.get(tag) : undefined;
      return [tag, new Span(known?.first_sequence, known?.last_sequence, known?.entries)];
    }));
    const wrong: WrongEntry[] = [];
    for await (const entry of tree.entries(begin, note.root)) {
      if (entry.index >= seen) this.#counts.newEntries++;
      const id = this.#channels.get(entry.tag);
      if (id === undefined) continue;
      const found = this.#spans.get(entry.tag)!.add(entry);
      const others = this.#promises.of(id, entry.last).filter(({ chainHash }) => chainHash !== entry.chainHash);
      const all: WrongEntry[] = [
        ...found ? [{ entry, kind: found }] : [],
        ...others.map((one) => ({ entry, kind: "receipt_differs" as const, binds: this.#promises.binds(one) })),
      ];
      for (const one of all) {
        if (wrong.length < FINDINGS_MAX) wrong.push(one);
        else this.#findingCount++;
      }
    }
    // Nothing of an entry is wrong before its tree was shown to be that of the checkpoint.
    let earlier: Map<number, Entry> | undefined;
    try {
      earlier = await this.#search(tree, note, wrong.filter(({ kind }) => kind === "overlap"));
    } catch {
      this.#options.signal?.throwIfAborted(); // a log that does not serve its entries again hides nothing
    }
    for (const one of wrong) this.#findEntry(one, earlier);
  }

  /** The first entry that each one of these has events in common with, if there is one before it. */
  async #search(tree: Tree, note: Note, later: WrongEntry[]): Promise<Map<number, Entry>> {
    const found = new Map<number, Entry>();
    if (!later.length) return found;
    for await (const entry of tree.entries(new Frontier(), note.root)) {
      for (const { entry: one } of later) {
        const isCommon = entry.tag === one.tag && entry.first <= one.last && entry.last >= one.first;
        if (entry.index < one.index && isCommon && !found.has(one.index)) found.set(one.index, entry);
      }
    }
    return found;
  }

  #findEntry({ entry, kind, binds }: WrongEntry, overlapped?: Map<number, Entry>): void {
    const { index, first, last } = entry;
    const earlier = overlapped?.get(index);
    const where = `channel ${this.#channels.get(entry.tag)}: `;
    if (kind === "receipt_differs") {
      this.#find(kind, `${where}entry ${index} of the log has another chain hash of event ${last} than your receipt, `
                       + (binds ? "whose key is not checked here: the service has two histories"
                                : "which is not signed for this log: if it is genuine, the service has two histories"));
    } else if (kind === "overlap" && earlier) {
      this.#find(kind, `${where}entries ${earlier.index} and ${index} of the log have events in common: `
                       + `${earlier.first} to ${earlier.last} and ${first} to ${last}`);
    } else if (kind === "overlap" && !overlapped) {
      this.#find(kind, `${where}entry ${index} of the log has the events ${first} to ${last}, of which entries `
                       + "before it have some");
    } else {
      this.#find("gap", `${where}entry ${index} of the log has the events ${first} to ${last}, which do not follow `
                        + "those of the entry before it");
    }
  }

  // ---- receipts ----

  async #takeReceipts(note: Note): Promise<void> {
    const { receipts, signal } = this.#options;
    if (receipts !== undefined) await this.#promises.read(receipts, note.origin, signal);
    const { counts, firstMalformed } = this.#promises;
    if (counts.malformed) {
      this.#notChecked.push(`receipts: ${counts.malformed} are no answers to registrations (${firstMalformed})`);
    }
    if (counts.false) {
      this.#notChecked.push(`receipts: ${counts.false} have a false signature and promise nothing`);
    }
  }

  #compareReceipts(note: Note): void {
    const counts = this.#counts;
    for (const [tag, id] of this.#channels) {
      const [span, known] = [this.#spans.get(tag)!, this.#known.get(tag)];
      const isKnown = known && known.entries > 0 && known.first_sequence === span.first;
      const isNew = span.entries > 0 && span.first > 1 && !isKnown;
      if (isNew) counts.begunLater++;
      for (const promise of this.#promises.all(id)) {
        counts.receipts++;
        if (!span.entries || promise.sequence > span.last) this.#judgeUncovered(id, promise, note);
        else if (promise.sequence >= span.first) counts.covered++;
        else if (isNew || promise.sealBy !== undefined) counts.beforeLog++;
      }
    }
    const texts: [number, string][] = [
      [counts.overdue, "broken promises, of which no quorum of witnesses shows that the checkpoint is later: an old "
                       + "copy of the log looks the same"],
      [counts.otherLog, "events should be in another log by now, which their receipts name"],
      [counts.withoutPromise, "events have no entry, and their receipts promise none within 24 hours"],
      [counts.beforeLog, "are of events before the first entry of their chain, which may be older than the log"],
      [counts.begunLater, "channels have no entry of their first events, which is right only if they are older "
                          + "than the log"],
    ];
    for (const [count, what] of texts) if (count) this.#notChecked.push(`receipts: ${count} ${what}`);
  }

  /** Judges a receipt of an event that no entry covers. Only witnesses show others that the checkpoint is later than
   * the promise: an old copy of the log looks the same. */
  #judgeUncovered(id: string, { sequence, sealBy, origin, isFar }: Promised, note: Note): void {
    if (sealBy === undefined || sealBy + GRACE >= this.#begun) {
      this.#counts[sealBy === undefined || isFar ? "withoutPromise" : "waiting"]++;
    } else if (origin !== note.origin) {
      this.#counts.otherLog++;
    } else {
      const later = this.#times.filter((one) => one > sealBy + GRACE).length;
      const isWitnessed = this.#quorum > 0 && later >= this.#quorum;
      if (!isWitnessed) this.#counts.overdue++;
      this.#find("promise_broken", `channel ${id}: event ${sequence} was promised a sealed segment until `
                                   + `${textOf(sealBy)}, and the log`
                                   + (isWitnessed ? " has none: the service withholds it"
                                                  : ", as it is served now, has none"));
    }
  }
}
