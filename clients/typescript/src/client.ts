// The operations of the service.

import { createHash, randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import type { components, operations } from "./api.js";
import {
  CertificationFailed, ConstanciaError, DigestMismatch, UnexpectedAnswer, WaitTimeout,
} from "./errors.js";
import { Download, Form, type Algorithm, type Progress, type Source } from "./files.js";
import { Transport, type Answer, type Body, type Request, type Retry } from "./http.js";

export const VERSION = "0.1.0";

type Schemas = components["schemas"];
export type Event = Schemas["Event"];
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

/** Times are kept as they are written: they are finer than a Date. */
export type Time = string | Date;

type Query<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;
type Filters<Name extends keyof operations> = {
  [Member in keyof Query<Name>]: Member extends "from" | "to" ? Time : Query<Name>[Member];
};
/** `client_ref` and `order` are for services that know them. */
export type EventFilters = Filters<"listEvents"> & { client_ref?: string; order?: "asc" | "desc" };
export type CertificationFilters = Filters<"listCertifications"> & { order?: "asc" | "desc" };

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
  /** With a test key, the refusal that is forced. */
  scenario?: string;
  /** The installation's. "SVC" by default. */
  headerPrefix?: string;
  /** Goes before this client's own. */
  userAgent?: string;
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

  constructor(options: Options) {
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
    this.#transport = new Transport(options.timeout ?? 60_000, options.retry ?? {});
  }

  // ---- registering: repeated with the same reference it has the effect of once ----

  /** A JSON object, on a channel that keeps content. */
  async register(clientRef: string, payload: Record<string, unknown>,
           options: { occurredAt?: Time } = {}): Promise<Replayable<Event>> {
    return this.#register({ client_ref: clientRef, payload }, options.occurredAt);
  }

  /** A digest alone, on a channel that keeps no content; `digest` takes a file's. */
  async registerDigest(clientRef: string, hash: string,
                 options: { algorithm?: Algorithm; occurredAt?: Time } = {}):
                 Promise<Replayable<Event>> {
    return this.#register({ client_ref: clientRef, hash, hash_alg: options.algorithm ?? "sha-256" },
                          options.occurredAt);
  }

  /** A file, on a channel that keeps content. What the receipt says is compared with the digest of
   * what was sent. */
  async registerFile(clientRef: string, file: Source,
                     options: { name?: string; occurredAt?: Time } = {}):
                     Promise<Replayable<Event>> {
    const fields: Record<string, string> = { client_ref: clientRef };
    if (options.occurredAt !== undefined) fields.occurred_at = rfc3339(options.occurredAt);
    const form = await Form.of(fields, file, options.name);
    const event = await this.#ask<Replayable<Event>>("POST", "/events", form, form.contentType);
    if (event.hash !== form.sha256) {
      throw new DigestMismatch(`${event.event_id} as it was recorded`, form.sha256, event.hash);
    }
    return event;
  }

  // ---- events ----

  async event(eventId: string): Promise<EventWithProof> {
    return this.#ask("GET", `/events/${step(eventId)}`);
  }

  /** All that the filters let through, fetched page by page while they are used. */
  events(filters: Omit<EventFilters, "cursor"> = {}): AsyncGenerator<Event, void, undefined> {
    return all((cursor) => this.eventsPage({ limit: 500, ...filters, ...cursor }));
  }

  async eventsPage(filters: EventFilters = {}): Promise<Page<Event>> {
    return this.#ask("GET", "/events" + query(filters));
  }

  /** The declared content, in memory; `saveContent` writes it to a file and checks it. */
  async content(eventId: string): Promise<Content> {
    return this.#perform("GET", `/events/${step(eventId)}/content`, async (answer) => ({
      body: await answer.bytes(),
      mediaType: (answer.headers.get("Content-Type") ?? "").split(";")[0],
      fileName: fileName(answer),
    }));
  }

  /** The declared content to a file, checked against the event's digest, which it returns. */
  async saveContent(event: Event, path: string,
                    options: { progress?: Progress } = {}): Promise<string> {
    const url = `${this.#base}/events/${step(event.event_id)}/content`;
    return new Download(path, event.hash, event.hash_alg ?? "sha-256", options.progress).run(
      this.#transport, (more) => ({ method: "GET", url, headers: { ...this.#keyed, ...more } }));
  }

  /** RFC 4998, in DER; NotFound until the event is sealed. */
  async eventEvidenceRecord(eventId: string): Promise<Uint8Array> {
    return this.#record(`/events/${step(eventId)}/evidence-record`);
  }

  // ---- channel and account ----

  /** With the newest 1,000 versions of its configuration, numbered from 1. While the first one of the
   * answer is a later one, those before it come with `beforeVersion` set to that. */
  async channel(options: { beforeVersion?: number } = {}): Promise<Channel> {
    const { beforeVersion } = options;
    return this.#ask("GET", beforeVersion === undefined ? "/channel" : `/channel?before_version=${beforeVersion}`);
  }

  async balance(): Promise<AccountBalance> {
    return this.#ask("GET", "/account/balance");
  }

  // ---- certifications ----

  /** Asks for a range by time or by sequence. It is issued behind the answer: see `wait`.
   *
   * A key is made for each call unless one is given, and goes with each attempt, so that one
   * certification comes of them and one fee. To be as safe beyond the call, store a key of your own
   * before it, and give that: for 24 hours it answers with the certification that it stands for. An
   * error tells the key that was sent, as `idempotencyKey`. */
  async certify(range: Range, options: { idempotencyKey?: string } = {}):
          Promise<Replayable<Certification>> {
    const key = options.idempotencyKey ?? randomUUID();
    if (!/^[!-~]{1,255}$/.test(key)) {
      throw new TypeError("an idempotency key is 1 to 255 visible ASCII characters");
    }
    try {
      return await this.#ask("POST", "/certifications", JSON.stringify(range), "application/json",
                             { "Idempotency-Key": key });
    } catch (error) {
      if (error instanceof ConstanciaError) error.idempotencyKey = key;
      throw error;
    }
  }

  /** With fresh links. */
  async certification(certificationId: string): Promise<Certification> {
    return this.#ask("GET", `/certifications/${step(certificationId)}`);
  }

  /** All that the filter lets through, newest first, fetched page by page. */
  certifications(filters: Omit<CertificationFilters, "cursor"> = {}):
                 AsyncGenerator<Certification, void, undefined> {
    return all((cursor) => this.certificationsPage({ limit: 500, ...filters, ...cursor }));
  }

  async certificationsPage(filters: CertificationFilters = {}): Promise<Page<Certification>> {
    return this.#ask("GET", "/certifications" + query(filters));
  }

  /** The certification once it is completed. `progress` is called with each state that is seen.
   * Throws CertificationFailed, or WaitTimeout after so many milliseconds. */
  async wait(certification: Certification | string,
             options: { timeout?: number; progress?: (now: Certification) => void } = {}):
             Promise<Certification> {
    const id = typeof certification === "string" ? certification : certification.certification_id;
    const timeout = options.timeout ?? 600_000;
    const end = performance.now() + timeout;
    for (let next = POLL_FIRST; ; next = Math.min(2 * next, POLL_LONGEST)) {
      const now = await this.certification(id);
      options.progress?.(now);
      if (now.status === "completed") return now;
      if (now.status === "failed") throw new CertificationFailed(now);
      const left = end - performance.now();
      if (left <= 0) throw new WaitTimeout(now, timeout);
      await pause(Math.min(next, left));
    }
  }

  /** RFC 4998, in DER; NotFound until it is made, soon after issuing. */
  async certificationEvidenceRecord(certificationId: string): Promise<Uint8Array> {
    return this.#record(`/certifications/${step(certificationId)}/evidence-record`);
  }

  /** An issued file by its link, to a file that comes into being whole; the key does not go with
   * it. Returns its SHA-256, which has to be `sha256` if that is given. With it a later call goes
   * on where one that failed ended. */
  async download(url: string, path: string, options: { sha256?: string; progress?: Progress } = {}):
           Promise<string> {
    return new Download(path, options.sha256, "sha-256", options.progress).run(
      this.#transport, (more) => ({ method: "GET", url, headers: { ...this.#open, ...more } }));
  }

  /** All files of a completed certification, each checked against the digest that the service has
   * on record for it. Returns their paths. */
  async save(certification: Certification, folder: string): Promise<string[]> {
    if (certification.status !== "completed" || !certification.verification_code) {
      throw new TypeError(`${certification.certification_id} is not completed`);
    }
    const { evidence_url, reports = [], content_parts = [] } = certification;
    const links = [evidence_url, ...[...reports, ...content_parts].map(({ url }) => url)];
    const { documents } = await this.verify(certification.verification_code);
    const saved: string[] = [];
    await mkdir(folder, { recursive: true });
    for (const url of links) {
      if (!url) continue;
      const name = basename(decodeURIComponent(new URL(url).pathname));
      const document = documents.find((one) => one.name === name);
      if (!document) throw new UnexpectedAnswer(`the service has no digest of ${name}`);
      const path = join(folder, name);
      await this.download(url, path, { sha256: document.sha256 });
      saved.push(path);
    }
    return saved;
  }

  // ---- what anybody may ask ----

  async signers(): Promise<Signer[]> {
    return (await this.#ask<{ data: Signer[] }>("GET", "/signers")).data;
  }

  /** The same as the service signed it (CMS, in DER), for `constancia verify --signers`; NotFound while there is none. */
  async signerList(): Promise<Uint8Array> {
    return this.#perform("GET", "/signers.p7m", (answer) => answer.bytes());
  }

  /** What the service issued under this code; NotFound if nothing. */
  async verify(code: string): Promise<Verification> {
    return this.#ask("GET", `${this.#site}/verify/${step(code)}`);
  }

  /** The certification with a file of this SHA-256; NotFound if none. */
  async verifyDigest(sha256: string): Promise<Verification> {
    return this.#ask("GET", `${this.#site}/verify${query({ sha256 })}`);
  }

  /** Has a report or an archive checked in full by the service. */
  async verifyFile(file: Source): Promise<FileCheck> {
    const form = await Form.of({}, file);
    return this.#ask("POST", `${this.#site}/verify`, form, form.contentType);
  }

  /** The interface's description in OpenAPI. */
  async description(): Promise<string> {
    return this.#perform("GET", "/openapi.yaml", (answer) => answer.text());
  }

  /** That of notices, from services that tell. */
  async webhookDescription(): Promise<string> {
    return this.#perform("GET", "/webhooks.yaml", (answer) => answer.text());
  }

  // ---- behind them ----

  /** target: a path of the interface, with the key; or a public page, without. */
  #perform<T>(method: string, target: string, consume: (answer: Answer) => Promise<T>,
              more: Pick<Partial<Request>, "headers" | "body"> = {}): Promise<T> {
    const keyed = target.startsWith("/");
    const request = {
      ...more, method, url: keyed ? this.#base + target : target,
      headers: { ...(keyed ? this.#keyed : this.#open), ...more.headers },
    };
    return this.#transport.perform(() => request, consume);
  }

  #ask<T>(method: string, target: string, body?: Body | string, contentType = "application/json",
          more: Record<string, string> = {}): Promise<T> {
    const headers = { ...(body !== undefined && { "Content-Type": contentType }), ...more };
    return this.#perform(method, target, async (answer) => {
      const result = await answer.json();
      if (typeof result !== "object" || result === null) {
        throw new UnexpectedAnswer("the answer is no object");
      }
      if (method !== "POST") return result as T;
      return { ...result, replayed: answer.headers.get("Idempotent-Replayed") === "true" } as T;
    }, { body, headers });
  }

  #register(declared: Record<string, unknown>, occurredAt?: Time): Promise<Replayable<Event>> {
    const when = occurredAt === undefined ? {} : { occurred_at: rfc3339(occurredAt) };
    return this.#ask("POST", "/events", JSON.stringify({ ...declared, ...when }, faithful));
  }

  /** Its ETag is its SHA-256. */
  #record(path: string): Promise<Uint8Array> {
    return this.#perform("GET", path, async (answer) => {
      const body = await answer.bytes();
      const found = createHash("sha256").update(body).digest("hex");
      const told = (answer.headers.get("ETag") ?? "").replace(/"/g, "");
      if (told !== found) throw new DigestMismatch("the evidence record", told, found);
      return body;
    });
  }
}

/** JSON has no NaN; what would be null instead was not declared. */
function faithful(name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new TypeError(`"${name}" is no number that JSON has`);
  }
  return value;
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

function rfc3339(when: Time): string {
  return typeof when === "string" ? when : when.toISOString();
}
