// Requests by fetch. Each may be repeated: it has the effect of once.

import { setTimeout as timer } from "node:timers/promises";

import {
  ApiError, ConnectionFailed, refused, UnexpectedAnswer, type ConstanciaError,
} from "./errors.js";

/** After 429 and 503 as the service says by Retry-After, after a lost connection in growing steps,
 * each with some chance added so that many clients do not come back at once. */
export interface Retry {
  /** In all; 1: no retry. 5 by default. */
  attempts?: number;
  /** The most milliseconds that the waiting of a call takes. 60,000 by default. */
  patience?: number;
}

/** One attempt of a call. */
export interface Attempt {
  method: string;
  /** Without its query, which may have the signature of a link. */
  url: string;
  /** From 1. */
  attempt: number;
}

/** Observers, for logs and metrics. None of them sees a key, a body or a header. What they throw is
 * ignored, so that a log that fails changes no call. */
export interface Hooks {
  onRequest?(request: Attempt): unknown;
  /** The head of an answer has come, of whatever status. */
  onResponse?(response: Attempt & { status: number; requestId?: string; milliseconds: number }):
    unknown;
  /** The attempt failed, and the next one begins after so many milliseconds. */
  onRetry?(retry: Attempt & { error: ConstanciaError; milliseconds: number }): unknown;
}

/** Of each call. */
export interface CallOptions {
  /** Ends the call with the signal's reason: the request, its retries and all waiting. What was sent
   * may have been done by the service; repeat it to know. */
  signal?: AbortSignal;
}

/** What is sent, in pieces that can be read again for another attempt. */
export interface Body {
  length: number;
  pieces(): AsyncIterable<Uint8Array>;
}

export interface Request {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: Body | string;
}

/** The service is busy; or the request did not come through whole, or its answer did not come back. */
const AGAIN = [429, 503, 408, 502, 504];
/** Bytes of the answer to a refused request. */
const ERROR_BODY_MAX = 65_536;
/** What went wrong before a byte was sent. */
const UNSENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"];

/** A response whose body ends where it should, or reading it throws ConnectionFailed. */
export class Answer {
  readonly status: number;
  readonly headers: Headers;

  constructor(private readonly name: string, private readonly response: Response,
              private readonly alive: () => void) {
    this.status = response.status;
    this.headers = response.headers;
  }

  /** Of what comes; undefined when it is not told. */
  get length(): number | undefined {
    const told = this.headers.get("Content-Length");
    return told && !this.headers.has("Content-Encoding") ? Number(told) : undefined;
  }

  /** Seconds. */
  get retryAfter(): number | undefined {
    const told = this.headers.get("Retry-After") ?? "";
    return /^[0-9]{1,9}$/.test(told) ? Number(told) : undefined;
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    const reader = this.response.body?.getReader();
    try {
      while (reader) {
        const { done, value } = await reader.read().catch((error) => {
          throw lost(this.name, error);
        });
        if (done) break;
        this.alive();
        yield value;
      }
    } finally {
      await reader?.cancel().catch(() => undefined);
    }
  }

  /** All of it, or more than `most` bytes of it. */
  async bytes(most = Infinity): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of this.pieces()) {
      pieces.push(piece);
      size += piece.length;
      if (size > most) break;
    }
    const whole = new Uint8Array(size);
    for (const piece of pieces.reverse()) whole.set(piece, (size -= piece.length));
    return whole;
  }

  async text(most?: number): Promise<string> {
    return new TextDecoder().decode(await this.bytes(most));
  }

  async json(most?: number): Promise<unknown> {
    const text = await this.text(most);
    try {
      return JSON.parse(text);
    } catch {
      throw new UnexpectedAnswer(`${this.name}: the answer is no JSON`);
    }
  }
}

export class Transport {
  readonly #timeout: number;
  readonly #attempts: number;
  readonly #patience: number;
  readonly #hooks: Hooks;

  constructor(timeout: number, retry: Retry, hooks: Hooks = {}) {
    this.#timeout = timeout;
    this.#attempts = retry.attempts ?? 5;
    this.#patience = retry.patience ?? 60_000;
    this.#hooks = hooks;
  }

  /** What `consume` makes of a good answer; it throws ConnectionFailed when that is cut short, and
   * the next attempt's request is prepared anew. */
  async perform<T>(prepare: () => Request | Promise<Request>,
                   consume: (answer: Answer) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.repeat(async (attempt, named) => {
      const request = await prepare();
      const { origin, pathname } = new URL(request.url);
      Object.assign(named, { method: request.method, url: origin + pathname });
      return this.#exchange(request, { ...named, attempt }, consume, signal);
    }, signal);
  }

  /** Repeats an action while it fails as what may be repeated, with waits between. The action tells
   * in `named` what it does. */
  async repeat<T>(action: (attempt: number, named: { method: string; url: string }) => Promise<T>,
                  signal?: AbortSignal): Promise<T> {
    let waited = 0;
    for (let attempt = 1; ; attempt++) {
      const named = { method: "", url: "" };
      signal?.throwIfAborted();
      try {
        return await action(attempt, named);
      } catch (error) {
        signal?.throwIfAborted();
        const milliseconds = this.#delay(attempt, error, waited);
        if (milliseconds === undefined || !mayRepeat(error)) throw error;
        const retry = { ...named, attempt, error, milliseconds };
        observe(() => this.#hooks.onRetry?.(retry));
        await pause(milliseconds, signal);
        waited += milliseconds;
      }
    }
  }

  #delay(attempt: number, error: unknown, waited: number): number | undefined {
    const told = error instanceof ApiError ? error.retryAfter : undefined;
    const left = this.#patience - waited;
    if (attempt >= this.#attempts || left <= 0 || (told ?? 0) * 1000 > left) return undefined;
    const wanted = told === undefined ? (250 + 250 * Math.random()) * 2 ** (attempt - 1)
      : told * (1000 + 250 * Math.random());
    return Math.min(wanted, left);
  }

  async #exchange<T>(request: Request, attempt: Attempt, consume: (answer: Answer) => Promise<T>,
                     signal?: AbortSignal): Promise<T> {
    const name = `${request.method} ${attempt.url}`;
    const silence = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), this.#timeout);
    };
    const stop = () => silence.abort();
    signal?.addEventListener("abort", stop);
    const begun = performance.now();
    alive();
    try {
      const sent = new Outgoing(request.body, alive);
      // What cannot be sent is a TypeError here; fetch would tell it as the connection's.
      const headers = new Headers({ ...request.headers, ...sent.headers });
      observe(() => this.#hooks.onRequest?.(attempt));
      const response = await fetch(request.url, {
        method: request.method, redirect: "manual", signal: silence.signal, headers, ...sent.init,
      }).catch((error) => {
        throw sent.failure ?? lost(name, error);
      });
      alive();
      observe(() => this.#hooks.onResponse?.({
        ...attempt, status: response.status, milliseconds: performance.now() - begun,
        requestId: response.headers.get("X-Request-Id") ?? undefined,
      }));
      const answer = new Answer(name, response, alive);
      if (response.status >= 300) throw await refusal(answer, response.statusText);
      return await consume(answer);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
  }
}

/** Throws the signal's reason when that comes first. */
export async function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await timer(milliseconds, undefined, { signal }).catch((error) => {
    throw signal?.aborted ? signal.reason : error;
  });
}

function observe(hook: () => unknown): void {
  try {
    Promise.resolve(hook()).catch(() => undefined);
  } catch {
    // what an observer throws changes nothing
  }
}

/** A body on its way. An error of what is sent is told as it is, and not as the connection's. */
class Outgoing {
  failure: unknown;
  readonly headers: Record<string, string> = {};
  readonly init: RequestInit = {};

  constructor(body: Body | string | undefined, alive: () => void) {
    if (typeof body === "string") this.init.body = body;
    if (typeof body !== "object") return;
    const pieces = body.pieces()[Symbol.asyncIterator]();
    const stream = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          const { done, value } = await pieces.next();
          alive();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          this.failure = error;
          controller.error(error);
        }
      },
      cancel: async () => void (await pieces.return?.()),
    });
    this.headers["Content-Length"] = String(body.length);
    this.init = { body: stream, duplex: "half" } as RequestInit;
  }
}

/** Whether trying again may help. */
export function mayRepeat(error: unknown): error is ConstanciaError {
  if (error instanceof ApiError) return AGAIN.includes(error.status);
  return error instanceof ConnectionFailed;
}

function lost(name: string, error: unknown): ConnectionFailed {
  const { name: kind, cause } = error as Error & { cause?: { code?: string; name?: string } };
  const why = kind === "AbortError" ? "no sign of the service" : cause?.code ?? cause?.name ?? kind;
  return new ConnectionFailed(`${name}: ${why}`, !UNSENT.includes(cause?.code ?? ""));
}

/** The Error record, as far as it came. */
async function refusal(answer: Answer, reason: string): Promise<ApiError> {
  const given = await answer.json(ERROR_BODY_MAX).catch(() => undefined);
  const record = (typeof given === "object" && given ? given : {}) as Record<string, unknown>;
  const text = (name: string) =>
    typeof record[name] === "string" ? (record[name] as string) : undefined;
  return refused({
    status: answer.status, code: text("code") ?? "",
    message: text("message") || reason || "refused",
    requestId: answer.headers.get("X-Request-Id") ?? undefined, incidentId: text("incident_id"),
    retryAfter: answer.retryAfter,
    eventId: text("event_id"), docUrl: text("doc_url"),
  });
}
