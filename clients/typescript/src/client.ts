// The operations of the service.

import { createHash, randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { basename, join } from "node:path";

import type { components, operations } from "./api.js";
import {
  CertificationFailed, ConstanciaError, DigestMismatch, TooLarge, UnexpectedAnswer, WaitTimeout,
} from "./errors.js";
import {
  batches, checkDigest, checkReference, itemOf, itemOutcome, type Declaration, type Item, type Registered,
} from "./batches.js";
import { digest, Download, DOWNLOAD_MAX, Form, type Algorithm, type Progress, type Source } from "./files.js";
import {
  mayRepeat, pause, Transport, type Answer, type CallOptions, type Hooks, type Retry,
} from "./http.js";
import { faithful, rfc3339, type Time } from "./json.js";
import { Keeper, receiptOf, type Receipt, type ReceiptSink } from "./receipts.js";
import type { Notice, NoticeData } from "./webhooks.js";
import { verifyArchive, type ArchiveCheck, type ArchiveOptions } from "./verify.js";
import { watchOver, type LogWatch, type WatchLogOptions } from "./watch.js";

export const VERSION = "0.1.0";

type Schemas = components["schemas"];
export type Event = Schemas["Event"];
/** An answer to a registration: the event with its signed receipt. */
export type RegisteredEvent = Schemas["RegisteredEvent"];
export type EventWithProof = Schemas["EventWithProof"];
export type Channel = Schemas["Channel"];
export type AccountBalance = Schemas["AccountBalance"];
export type Certification = Schemas["Certification"];
export type Signer = Schemas["Signer"];
export type Verification = Schemas["Verification"];
export type FileCheck = Schemas["FileCheck"];

/** `replayed`: it was there before, and this is the original. */
export type Replayable<T> = T & { replayed: boolean };

export interface Page<T> {
  data: T[];
  has_more: boolean;
  next_cursor: string | null;
}

/** Declared content as it is held. */
export interface Content {
  body: Uint8Array;
  mediaType: string;
  fileName?: string;
}

type Query<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;
type Filters<Name extends keyof operations> = {
  [Member in keyof Query<Name>]: Member extends "from" | "to" ? Time : Query<Name>[Member];
};
/** `client_ref` and `order` are for services that know them. */
export type EventFilters = Omit<Filters<"listEvents">, "hash" | "hash_alg"> & {
  client_ref?: string; order?: "asc" | "desc"; hash?: string; hash_alg?: Algorithm;
};
export type CertificationFilters = Filters<"listCertifications"> & { order?: "asc" | "desc" };

export interface RegisterOptions extends CallOptions {
  /** The declared time of the fact. */
  occurredAt?: Time;
}

export interface Range {
  from?: Time;
  to?: Time;
  seq_from?: number;
  seq_to?: number;
}

export interface Options {
  /** Of the interface, `https://…/v1`. */
  baseUrl: string;
  /** Not needed for what anybody may ask. */
  key?: string;
  /** Of messages and `report_url`. */
  language?: "en" | "es";
  /** Milliseconds without a sign of the service. 60,000 by default. */
  timeout?: number;
  retry?: Retry;
  /** Observe requests, answers and retries. */
  hooks?: Hooks;
  /** Where each receipt goes before the call that registered the event returns: a file by its path,
   * a `ReceiptFile`, a function or an object with `write(event)`. */
  receipts?: ReceiptSink;
  /** With a test key, the refusal that is forced. */
  scenario?: string;
  /** The installation's. "SVC" by default. */
  headerPrefix?: string;
  /** Goes before this client's own. */
  userAgent?: string;
  /** The most bytes that a file has which is fetched to the disk. 4 GiB by default. `save` takes no more
   * than the service has on record for a file. */
  downloadMax?: number;
}

const POLL_FIRST = 250;
const POLL_LONGEST = 5000;

/** A channel, in the mode of its key. */
export class Client {
  readonly #base: string;
  readonly #site: string;
  readonly #open: Record<string, string>;
  readonly #keyed: Record<string, string>;
  readonly #transport: Transport;
  readonly #keeper?: Keeper;
  readonly #downloadMax: number;

  constructor(options: Options) {
    this.#downloadMax = options.downloadMax ?? DOWNLOAD_MAX;
    const base = options.baseUrl.replace(/\/+$/, "");
    if (!/^https?:\/\/[^/@]+(\/|$)/i.test(base)) {
      throw new TypeError("an address is http:// or https://, a host, and no user name");
    }
    this.#base = base.endsWith("/v1") ? base : `${base}/v1`;
    this.#site = this.#base.slice(0, -"/v1".length);
    const own = `constancia-typescript/${VERSION} Node/${process.version.slice(1)}`;
    this.#open = {
      "User-Agent": options.userAgent ? `${options.userAgent} ${own}` : own,
      Accept: "application/json, */*;q=0.5",
      "Accept-Encoding": "identity",
      ...(options.language && { "Accept-Language": options.language }),
    };
    if (options.key !== undefined && !/^[!-~]+$/.test(options.key)) {
      throw new TypeError("the key is empty, or has what no key has, such as a line's end");
    }
    this.#keyed = {
      ...this.#open,
      ...(options.key && { Authorization: `Bearer ${options.key}` }),
      ...(options.scenario &&
        { [`X-${options.headerPrefix ?? "SVC"}-Test-Scenario`]: options.scenario }),
    };
    new Headers(this.#keyed); // throws TypeError for what cannot be sent
    this.#transport = new Transport(options.timeout ?? 60_000, options.retry ?? {}, options.hooks);
    this.#keeper = options.receipts === undefined ? undefined : new Keeper(options.receipts);
  }

  // ---- registering: repeated with the same reference it has the effect of once ----

  /** A JSON object, on a channel that keeps content. A Date in it is declared as text, in UTC with
   * milliseconds: `"2026-01-31T08:30:00.000Z"`. */
  async register(clientRef: string, payload: Record<string, unknown>,
                 options: RegisterOptions = {}): Promise<Receipt> {
    return this.#register({ clientRef, payload, occurredAt: options.occurredAt }, options.signal);
  }

  /** A digest alone, on a channel that keeps no content; `digest` takes a file's. */
  async registerDigest(clientRef: string, hash: string,
                       options: RegisterOptions & { algorithm?: Algorithm } = {}): Promise<Receipt> {
    const { algorithm, occurredAt, signal } = options;
    return this.#register({ clientRef, hash, algorithm, occurredAt }, signal);
  }

  /** A file, on a channel that keeps content. What the receipt says is compared with the digest of
   * what was sent. */
  async registerFile(clientRef: string, file: Source,
                     options: RegisterOptions & { name?: string } = {}): Promise<Receipt> {
    const { name, occurredAt, signal } = options;
    const fields: Record<string, string> = { client_ref: clientRef };
    if (occurredAt !== undefined) fields.occurred_at = rfc3339(occurredAt);
    const form = await Form.of(fields, file, name);
    await this.#keeper?.open();
    const event = receiptOf(await this.#ask<Replayable<RegisteredEvent>>(
      "POST", "/events", { body: form, signal }));
    await this.#keeper?.keep([event]);
    checkReference(clientRef, event);
    checkDigest(form.sha256, event);
    return event;
  }

  /** Many declarations, in batches of up to 1,000 and 8 MiB, each sent as soon as it is full. Gives one
   * result for each in their order: the receipt or the refusal. A refusal of one does not stop the
   * others. A batch whose answer was lost is sent again, and so are those of a batch that the service
   * had no room for; it has the effect of once. Throws when a batch fails as a whole: repeat from
   * the first declaration without a result. */
  async *registerMany(declarations: Iterable<Declaration> | AsyncIterable<Declaration>,
                      options: CallOptions = {}): AsyncGenerator<Registered, void, undefined> {
    await this.#keeper?.open();
    for await (const batch of batches(declarations)) {
      yield* await this.#registerBatch(batch, options.signal);
    }
  }

  // ---- events ----

  async event(eventId: string, options: CallOptions = {}): Promise<EventWithProof> {
    return this.#ask("GET", `/events/${step(eventId)}`, options);
  }

  /** All that the filters let through, fetched page by page while they are used. */
  events(filters: Omit<EventFilters, "cursor"> = {}, options: CallOptions = {}):
         AsyncGenerator<Event, void, undefined> {
    return all((cursor) => this.eventsPage({ limit: 500, ...filters, ...cursor }, options));
  }

  async eventsPage(filters: EventFilters = {}, options: CallOptions = {}): Promise<Page<Event>> {
    return this.#ask("GET", "/events" + query(filters), options);
  }

  /** The channel's events with this digest of their content, in the order of the chain. */
  async *findByHash(hash: string, options: CallOptions & { algorithm?: Algorithm } = {}):
                    AsyncGenerator<Event, void, undefined> {
    const wanted = hash.toLowerCase();
    const hash_alg = options.algorithm ?? "sha-256";
    if (wanted.length !== (hash_alg === "sha-512" ? 128 : 64) || /[^0-9a-f]/.test(wanted)) {
      throw new TypeError(`that is no ${hash_alg} in hexadecimal`);
    }
    for await (const event of this.events({ hash: wanted, hash_alg }, options)) {
      if (event.hash !== wanted) {
        throw new UnexpectedAnswer("the service does not look up events by their digest");
      }
      yield event;
    }
  }

  /** Whether an event of the channel has this content. Only its digest leaves this machine. */
  async isOnRecord(file: Source, options: CallOptions = {}): Promise<boolean> {
    for (const algorithm of ["sha-256", "sha-512"] as const) {
      const hash = await digest(file, algorithm);
      for await (const _ of this.findByHash(hash, { ...options, algorithm })) return true;
    }
    return false;
  }

  /** The declared content, in memory; `saveContent` writes it to a file and checks it. */
  async content(eventId: string, options: CallOptions = {}): Promise<Content> {
    return this.#perform("GET", `/events/${step(eventId)}/content`, async (answer) => ({
      body: await answer.bytes(),
      mediaType: (answer.headers.get("Content-Type") ?? "").split(";")[0],
      fileName: fileName(answer),
    }), options);
  }

  /** The declared content to a file, checked against the event's digest, which it returns. */
  async saveContent(event: Event, path: string,
                    options: CallOptions & { progress?: Progress } = {}): Promise<string> {
    const url = `${this.#base}/events/${step(event.event_id)}/content`;
    const algorithm = event.hash_alg ?? "sha-256";
    return new Download(path, event.hash, algorithm, this.#downloadMax, options.progress, options.signal).run(
      this.#transport, (more) => ({ method: "GET", url, headers: { ...this.#keyed, ...more } }));
  }

  /** RFC 4998, in DER; NotFound until the event is sealed. */
  async eventEvidenceRecord(eventId: string, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#record(`/events/${step(eventId)}/evidence-record`, options);
  }

  // ---- channel and account ----

  /** With the newest 1,000 versions of its configuration, numbered from 1. While the first one of the
   * answer is a later one, those before it come with `beforeVersion` set to that. */
  async channel(options: CallOptions & { beforeVersion?: number } = {}): Promise<Channel> {
    const { beforeVersion } = options;
    return this.#ask("GET", "/channel" + query({ before_version: beforeVersion }), options);
  }

  /** The seal documents of the segments that contain events of a range to a file, for `constancia verify
   * --bridge`; returns its SHA-256. A bound is a sequence number or a time. */
  async channelSeals(path: string, options: CallOptions & { from?: number | string | Date; to?: number | string | Date;
                                                            progress?: Progress } = {}): Promise<string> {
    const { from, to } = options;
    const url = `${this.#base}/channel/seals` + query({ from, to });
    return new Download(path, undefined, "sha-256", this.#downloadMax, options.progress, options.signal).run(
      this.#transport, (more) => ({ method: "GET", url, headers: { ...this.#keyed, ...more } }));
  }

  async balance(options: CallOptions = {}): Promise<AccountBalance> {
    return this.#ask("GET", "/account/balance", options);
  }

  // ---- notices of the test mode ----

  /** The notices of the test mode after the cursor, with a test key. If there are none, the service
   * waits up to `wait` seconds for one, or less. Without a cursor the page is empty. `next_cursor` is
   * where the next page begins, also after the last one. */
  async noticesPage(filters: Filters<"listNotices"> = {}, options: CallOptions = {}):
                    Promise<Page<Notice>> {
    return this.#ask("GET", "/notices" + query(filters), options);
  }

  /** A new notice with sample data for noticesPage, with a test key. */
  async createNotice(type: keyof NoticeData, options: CallOptions = {}): Promise<Notice> {
    return this.#perform("POST", "/notices", async (answer) => await record(answer) as Notice,
                         { ...options, body: JSON.stringify({ type }) });
  }

  // ---- certifications ----

  /** Asks for a range by time or by sequence. It is issued behind the answer: see `wait`.
   *
   * A key is made for each call unless one is given, and goes with each attempt, so that one
   * certification comes of them and one fee. To be as safe beyond the call, store a key of your own
   * before it, and give that: for 24 hours it answers with the certification that it stands for. An
   * error tells the key that was sent, as `idempotencyKey`; what a signal ends does not. */
  async certify(range: Range, options: CallOptions & { idempotencyKey?: string } = {}):
          Promise<Replayable<Certification>> {
    const key = options.idempotencyKey ?? randomUUID();
    if (!/^[!-~]{1,255}$/.test(key)) {
      throw new TypeError("an idempotency key is 1 to 255 visible ASCII characters");
    }
    try {
      return await this.#ask("POST", "/certifications", {
        body: JSON.stringify(range, faithful), headers: { "Idempotency-Key": key },
        signal: options.signal,
      });
    } catch (error) {
      if (error instanceof ConstanciaError) error.idempotencyKey = key;
      throw error;
    }
  }

  /** With fresh links. */
  async certification(certificationId: string, options: CallOptions = {}): Promise<Certification> {
    return this.#ask("GET", `/certifications/${step(certificationId)}`, options);
  }

  /** All that the filter lets through, newest first, fetched page by page. */
  certifications(filters: Omit<CertificationFilters, "cursor"> = {}, options: CallOptions = {}):
                 AsyncGenerator<Certification, void, undefined> {
    return all((cursor) => this.certificationsPage({ limit: 500, ...filters, ...cursor }, options));
  }

  async certificationsPage(filters: CertificationFilters = {}, options: CallOptions = {}):
                           Promise<Page<Certification>> {
    return this.#ask("GET", "/certifications" + query(filters), options);
  }

  /** The certification once it is completed. `progress` is called with each state that is seen; the
   * last one's `progress` is 1. Between them the wait is as long as Retry-After says, or longer.
   * Throws CertificationFailed, or WaitTimeout after so many milliseconds. */
  async wait(certification: Certification | string,
             options: CallOptions & { timeout?: number; progress?: (now: Certification) => void } = {}):
             Promise<Certification> {
    const id = typeof certification === "string" ? certification : certification.certification_id;
    const timeout = options.timeout ?? 600_000;
    const end = performance.now() + timeout;
    for (let next = POLL_FIRST; ; next = Math.min(2 * next, POLL_LONGEST)) {
      let told: number | undefined;
      const now = await this.#perform("GET", `/certifications/${step(id)}`, async (answer) => {
        told = answer.retryAfter;
        const state = await record(answer) as Certification;
        return state.status === "completed" ? { ...state, progress: 1 } : state;
      }, options);
      options.progress?.(now);
      if (now.status === "completed") return now;
      if (now.status === "failed") throw new CertificationFailed(now);
      const left = end - performance.now();
      if (left <= 0) throw new WaitTimeout(now, timeout);
      await pause(Math.min(Math.max(next, (told ?? 0) * 1000), left), options.signal);
    }
  }

  /** RFC 4998, in DER; NotFound until it is made, soon after issuing. */
  async certificationEvidenceRecord(certificationId: string, options: CallOptions = {}):
                                    Promise<Uint8Array> {
    return this.#record(`/certifications/${step(certificationId)}/evidence-record`, options);
  }

  /** An issued file by its link, to a file that comes into being whole; the key does not go with
   * it. Returns its SHA-256, which has to be `sha256` if that is given. With it a later call goes
   * on where one that failed ended. */
  async download(url: string, path: string,
                 options: CallOptions & { sha256?: string; progress?: Progress } = {}):
                 Promise<string> {
    return this.#download(url, path, this.#downloadMax, options);
  }

  #download(url: string, path: string, most: number,
            options: CallOptions & { sha256?: string; progress?: Progress }): Promise<string> {
    return new Download(path, options.sha256, "sha-256", most, options.progress, options.signal).run(
      this.#transport, (more) => ({ method: "GET", url, headers: { ...this.#open, ...more } }));
  }

  /** All files of a completed certification, each checked against the digest that the service has
   * on record for it. Returns their paths. Their names have the certification's, so that a folder may
   * have the files of several. */
  async save(certification: Certification, folder: string, options: CallOptions = {}):
             Promise<string[]> {
    if (certification.status !== "completed" || !certification.verification_code) {
      throw new TypeError(`${certification.certification_id} is not completed`);
    }
    const links = linksOf(certification);
    const { documents } = await this.verify(certification.verification_code, options);
    const saved: string[] = [];
    await mkdir(folder, { recursive: true });
    for (const url of links) {
      const name = basename(decodeURIComponent(new URL(url).pathname));
      const document = documents.find((one) => one.name === name);
      if (!document) throw new UnexpectedAnswer(`the service has no digest of ${name}`);
      const own = certification.certification_id;
      const path = join(folder, name.includes(own) ? name : basename(`${own}-${name}`));
      const most = Math.min(document.bytes || this.#downloadMax, this.#downloadMax);
      await this.#download(url, path, most, { ...options, sha256: document.sha256 });
      saved.push(path);
    }
    return saved;
  }

  // ---- what anybody may ask ----

  async signers(options: CallOptions = {}): Promise<Signer[]> {
    return (await this.#ask<{ data: Signer[] }>("GET", "/signers", options)).data;
  }

  /** The same as the service signed it (CMS, in DER), for `constancia verify --signers`; NotFound while there is none. */
  async signerList(options: CallOptions = {}): Promise<Uint8Array> {
    return this.#perform("GET", "/signers.p7m", (answer) => answer.bytes(), options);
  }

  /** What the service issued under this code; NotFound if nothing. */
  async verify(code: string, options?: CallOptions): Promise<Verification>;
  /** As `verifyArchive`. A path is taken for one where options such as `receipts` or `trust` say so;
   * otherwise it is a code. */
  async verify(archive: Uint8Array | Blob, options?: ArchiveOptions): Promise<ArchiveCheck>;
  async verify(archive: Source, options: ArchiveOptions): Promise<ArchiveCheck>;
  async verify(asked: Source, options: CallOptions & ArchiveOptions = {}):
               Promise<Verification | ArchiveCheck> {
    const isArchive = typeof asked !== "string" || Object.keys(options).some((name) => name !== "signal");
    if (isArchive) return verifyArchive(asked, options);
    if (/[/\\]|\.zip$/i.test(asked)) {
      throw new TypeError(`"${asked}" is no code: verifyArchive verifies an archive by its path`);
    }
    return this.#ask("GET", `${this.#site}/verify/${step(asked)}`, options);
  }

  /** Verifies an archive on this machine. The same without a client is the function `verifyArchive`. */
  async verifyArchive(archive: Source, options: ArchiveOptions = {}): Promise<ArchiveCheck> {
    return verifyArchive(archive, options);
  }

  /** Checks the log of this service once; `url`: another address of its log. The same without a client is the
   * function `watchLog`. */
  async watchLog(options: WatchLogOptions & { url?: string }): Promise<LogWatch> {
    const headers = { "User-Agent": this.#open["User-Agent"] };
    return watchOver(this.#transport, options.url ?? `${this.#site}/log`, headers, options);
  }

  /** The certification with a file of this SHA-256; NotFound if none. */
  async verifyDigest(sha256: string, options: CallOptions = {}): Promise<Verification> {
    return this.#ask("GET", `${this.#site}/verify${query({ sha256 })}`, options);
  }

  /** Has a report or an archive checked in full by the service. */
  async verifyFile(file: Source, options: CallOptions = {}): Promise<FileCheck> {
    const body = await Form.of({}, file);
    return this.#ask("POST", `${this.#site}/verify`, { ...options, body });
  }

  /** The interface's description in OpenAPI. */
  async description(options: CallOptions = {}): Promise<string> {
    return this.#perform("GET", "/openapi.yaml", (answer) => answer.text(), options);
  }

  /** That of notices, from services that tell. */
  async webhookDescription(options: CallOptions = {}): Promise<string> {
    return this.#perform("GET", "/webhooks.yaml", (answer) => answer.text(), options);
  }

  // ---- behind them ----

  /** target: a path of the interface, with the key; or a public page, without. */
  #perform<T>(method: string, target: string, consume: (answer: Answer) => Promise<T>,
              more: Sending = {}): Promise<T> {
    const { body, headers, signal } = more;
    const keyed = target.startsWith("/");
    const contentType = body && (typeof body === "string" ? "application/json" : body.contentType);
    const request = {
      method, url: keyed ? this.#base + target : target, body,
      headers: {
        ...(keyed ? this.#keyed : this.#open), ...(contentType && { "Content-Type": contentType }),
        ...headers,
      },
    };
    return this.#transport.perform(() => request, consume, signal);
  }

  #ask<T>(method: string, target: string, more: Sending = {}): Promise<T> {
    return this.#perform(method, target, async (answer) => {
      const result = await record(answer);
      if (method !== "POST") return result as T;
      return { ...result, replayed: answer.headers.get("Idempotent-Replayed") === "true" } as T;
    }, more);
  }

  async #register(declaration: Declaration, signal?: AbortSignal): Promise<Receipt> {
    const { body, hash } = itemOf(declaration);
    await this.#keeper?.open();
    const event = receiptOf(await this.#ask<Replayable<RegisteredEvent>>("POST", "/events", { body, signal }));
    await this.#keeper?.keep([event]); // whatever it says
    checkReference(declaration.clientRef, event);
    checkDigest(hash, event);
    return event;
  }

  /** One result for each item. Those that the service had no room for are sent again, as a call is. */
  async #registerBatch(items: Item[], signal?: AbortSignal): Promise<Registered[]> {
    const results: Registered[] = [];
    let left = items.map((_, index) => index);
    let failure: unknown;
    await this.#transport.repeat(async (_, named) => {
      Object.assign(named, { method: "POST", url: `${this.#base}/events/batch` });
      try {
        const answers = await this.#sendBatch(left.map((index) => items[index]), signal);
        left.forEach((index, at) => (results[index] = answers[at]));
      } catch (error) {
        failure = error; // as a whole, and after its own retries
        return;
      }
      left = left.filter((index) => mayRepeat(results[index].error));
      if (left.length) throw results[left[0]].error;
    }, signal).catch((error) => {
      if (!results.some((one) => one.error === error)) throw error;
    });
    if (failure !== undefined) throw failure;
    return results;
  }

  /** Sends a batch, in halves where the service takes smaller ones, and keeps the receipts. */
  async #sendBatch(items: Item[], signal?: AbortSignal): Promise<Registered[]> {
    let answers: Registered[];
    try {
      answers = await this.#exchangeBatch(items, signal);
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error; // nothing of it was registered
      if (items.length === 1) return [{ clientRef: items[0].clientRef, error }];
      const half = Math.ceil(items.length / 2);
      const first = await this.#sendBatch(items.slice(0, half), signal);
      return [...first, ...await this.#sendBatch(items.slice(half), signal)];
    }
    await this.#keeper?.keep(answers.flatMap(({ event }) => event ? [event] : []));
    answers.forEach(({ event }, at) => event && checkDigest(items[at].hash, event));
    return answers;
  }

  #exchangeBatch(items: Item[], signal?: AbortSignal): Promise<Registered[]> {
    return this.#perform("POST", "/events/batch", async (answer) => {
      const lines = (await answer.text()).split("\n").filter((line) => line.trim());
      if (lines.length !== items.length) {
        throw new UnexpectedAnswer(`${lines.length} results came for ${items.length} declarations`);
      }
      return lines.map((line, at) => itemOutcome(line, items[at]));
    }, {
      body: items.map(({ body }) => `${body}\n`).join(""), signal,
      headers: { "Content-Type": "application/x-ndjson" },
    });
  }

  /** Its ETag is its SHA-256. */
  #record(path: string, options: CallOptions): Promise<Uint8Array> {
    return this.#perform("GET", path, async (answer) => {
      const body = await answer.bytes();
      const found = createHash("sha256").update(body).digest("hex");
      const told = (answer.headers.get("ETag") ?? "").replace(/"/g, "");
      if (told !== found) throw new DigestMismatch("the evidence record", told, found);
      return body;
    }, options);
  }
}

/** What goes with a request; a text is JSON unless `headers` says otherwise. */
interface Sending extends CallOptions {
  body?: Form | string;
  headers?: Record<string, string>;
}

async function record(answer: Answer): Promise<object> {
  const result = await answer.json();
  if (typeof result !== "object" || result === null) {
    throw new UnexpectedAnswer("the answer is no object");
  }
  return result;
}

async function* all<T>(fetch: (cursor: { cursor?: string }) => Promise<Page<T>>):
                       AsyncGenerator<T, void, undefined> {
  let page = await fetch({});
  yield* page.data;
  while (page.next_cursor) {
    page = await fetch({ cursor: page.next_cursor });
    yield* page.data;
  }
}

function query(filters: Record<string, unknown>): string {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(given.map(
    ([name, value]) => [name, value instanceof Date ? rfc3339(value) : String(value)])).toString();
  return text && `?${text}`;
}

/** Of a completed certification's files, none of which may be missing. */
function linksOf(certification: Certification): string[] {
  const { certification_id: own, evidence_url, reports = [], content_parts = [] } = certification;
  const links: [string, string | null | undefined][] = [["evidence_url", evidence_url]];
  for (const [member, files] of Object.entries({ reports, content_parts })) {
    files.forEach(({ url }, at) => links.push([`${member}[${at}].url`, url]));
  }
  return links.map(([member, link]) => {
    if (link) return link;
    throw new UnexpectedAnswer(`${own} is completed and has no ${member}: ask for the certification again`);
  });
}

/** As one step of a path. */
function step(name: string): string {
  if (["", ".", ".."].includes(name)) throw new TypeError(`"${name}" names nothing`);
  return encodeURIComponent(name);
}

/** Of Content-Disposition: the exact one goes before the one for older programs. */
function fileName(answer: Answer): string | undefined {
  const given = answer.headers.get("Content-Disposition") ?? "";
  const exact = /filename\*=utf-8''([^;\s]+)/i.exec(given);
  return exact ? decodeURIComponent(exact[1]) : /filename="([^"]*)"/i.exec(given)?.[1];
}
