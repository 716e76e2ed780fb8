// Requests by fetch. Each may be repeated: it has the effect of once.

import { setTimeout as pause } from "node:timers/promises";

import { ApiError, ConnectionFailed, refused, UnexpectedAnswer } from "./errors.js";

/** After 429 and 503 as the service says by Retry-After, after a lost connection in growing steps,
 * each with some chance added so that many clients do not come back at once. */
export interface Retry {
  /** In all; 1: no retry. 5 by default. */
  attempts?: number;
  /** The most milliseconds that the waiting of a call takes. 60,000 by default. */
  patience?: number;
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

  async bytes(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of this.pieces()) {
      pieces.push(piece);
      size += piece.length;
    }
    const whole = new Uint8Array(size);
    for (const piece of pieces.reverse()) whole.set(piece, (size -= piece.length));
    return whole;
  }

  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }

  async json(): Promise<unknown> {
    const text = await this.text();
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

  constructor(timeout: number, retry: Retry) {
    this.#timeout = timeout;
    this.#attempts = retry.attempts ?? 5;
    this.#patience = retry.patience ?? 60_000;
  }

  /** What `consume` makes of a good answer; it throws ConnectionFailed when that is cut short, and
   * the next attempt's request is prepared anew. */
  async perform<T>(prepare: () => Request | Promise<Request>,
                   consume: (answer: Answer) => Promise<T>): Promise<T> {
    let waited = 0;
    for (let attempt = 1; ; attempt++) {
      const request = await prepare();
      try {
        return await this.#exchange(request, consume);
      } catch (error) {
        const milliseconds = this.#delay(attempt, error, waited);
        if (milliseconds === undefined || !again(error)) throw error;
        await pause(milliseconds);
        waited += milliseconds;
      }
    }
  }

  #delay(attempt: number, error: unknown, waited: number): number | undefined {
    const told = error instanceof ApiError ? error.retryAfter : undefined;
    const left = this.#patience - waited;
    if (attempt >= this.#attempts || (told ?? 0) * 1000 > left) return undefined;
    const wanted = told === undefined ? (250 + 250 * Math.random()) * 2 ** (attempt - 1)
      : told * (1000 + 250 * Math.random());
    return Math.min(wanted, left);
  }

  async #exchange<T>(request: Request, consume: (answer: Answer) => Promise<T>): Promise<T> {
    const { origin, pathname } = new URL(request.url);
    const name = `${request.method} ${origin}${pathname}`;
    const silence = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), this.#timeout);
    };
    alive();
    try {
      const sent = new Outgoing(request.body, alive);
      // What cannot be sent is a TypeError here; fetch would tell it as the connection's.
      const headers = new Headers({ ...request.headers, ...sent.headers });
      const response = await fetch(request.url, {
        method: request.method, redirect: "manual", signal: silence.signal, headers, ...sent.init,
      }).catch((error) => {
        throw sent.failure ?? lost(name, error);
      });
      alive();
      const answer = new Answer(name, response, alive);
      if (response.status >= 300) throw await refusal(answer, response.statusText);
      return await consume(answer);
    } finally {
      clearTimeout(timer);
    }
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

function again(error: unknown): boolean {
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
  const given = await answer.json().catch(() => undefined);
  const record = (typeof given === "object" && given ? given : {}) as Record<string, unknown>;
  const text = (name: string) =>
    typeof record[name] === "string" ? (record[name] as string) : undefined;
  const after = answer.headers.get("Retry-After") ?? "";
  return refused({
    status: answer.status, code: text("code") ?? "",
    message: text("message") || reason || "refused",
    requestId: answer.headers.get("X-Request-Id") ?? undefined, incidentId: text("incident_id"),
    retryAfter: /^[0-9]{1,9}$/.test(after) ? Number(after) : undefined,
    eventId: text("event_id"), docUrl: text("doc_url"),
  });
}
