// Many declarations in one request: POST /events/batch.

import type { Event, RegisteredEvent } from "./client.js";
import { DigestMismatch, refused, UnexpectedAnswer, type ApiError } from "./errors.js";
import type { Algorithm } from "./files.js";
import { faithful, rfc3339, type Time } from "./json.js";
import { receiptOf, type Receipt } from "./receipts.js";

/** JSON for a channel that keeps content, or a digest for one that does not. */
export type Declaration = { clientRef: string; occurredAt?: Time } & (
  { payload: Record<string, unknown>; hash?: undefined } |
  { hash: string; algorithm?: Algorithm; payload?: undefined });

/** What became of one declaration: its receipt, or why it was refused. */
export type Registered = { clientRef: string } & (
  { event: Receipt; error?: undefined } | { error: ApiError; event?: undefined });

/** A declaration as it is sent. */
export interface Item {
  clientRef: string;
  /** In lower case, where the digest is declared. */
  hash?: string;
  body: string;
}

const ITEMS_MAX = 1000;
const BYTES_MAX = 8 << 20;

export function itemOf(declaration: Declaration): Item {
  const { clientRef, occurredAt, payload, hash } = declaration;
  const content = hash === undefined ? { payload }
    : { hash, hash_alg: declaration.algorithm ?? "sha-256" };
  const when = occurredAt === undefined ? {} : { occurred_at: rfc3339(occurredAt) };
  return {
    clientRef, hash: hash?.toLowerCase(),
    body: JSON.stringify({ client_ref: clientRef, ...content, ...when }, faithful),
  };
}

/** As many as fit into a request, each time. */
export async function* batches(declarations: Iterable<Declaration> | AsyncIterable<Declaration>):
                               AsyncGenerator<Item[], void, undefined> {
  const encoder = new TextEncoder();
  let batch: Item[] = [];
  let bytes = 0;
  for await (const declaration of declarations) {
    const item = itemOf(declaration);
    const size = encoder.encode(item.body).length + 1;
    if (batch.length && (batch.length === ITEMS_MAX || bytes + size > BYTES_MAX)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(item);
    bytes += size;
  }
  if (batch.length) yield batch;
}

/** Reads a line of the answer: an Event or an Error, with `http_status`. */
export function itemOutcome(line: string, { clientRef }: Item): Registered {
  let given: unknown;
  try {
    given = JSON.parse(line);
  } catch {
    throw new UnexpectedAnswer("a result of the batch is no JSON");
  }
  const { http_status: status, ...record } = Object(given) as Record<string, unknown>;
  if ((status === 200 || status === 201) && typeof record.event_id === "string") {
    const event = record as unknown as RegisteredEvent;
    checkReference(clientRef, event);
    return { clientRef, event: receiptOf({ ...event, replayed: status === 200 }) };
  }
  if (typeof status === "number" && status >= 400 && typeof record.code === "string") {
    return { clientRef, error: refused(refusalOf(status, record)) };
  }
  throw new UnexpectedAnswer("a result of the batch is neither an event nor an error");
}

/** Throws for the receipt of another declaration. */
export function checkReference(clientRef: string, event: Event): void {
  if (event.client_ref !== clientRef) {
    throw new UnexpectedAnswer(`${event.event_id} is not of this declaration, but of another one`);
  }
}

/** Throws when another digest was recorded than was declared. */
export function checkDigest(hash: string | undefined, event: Event): void {
  if (hash !== undefined && event.hash !== hash) {
    throw new DigestMismatch(`${event.event_id} as it was recorded`, hash, event.hash);
  }
}

function refusalOf(status: number, record: Record<string, unknown>) {
  const text = (name: string) =>
    typeof record[name] === "string" ? (record[name] as string) : undefined;
  const after = record.retry_after;
  return {
    status, code: text("code") ?? "", message: text("message") || "refused",
    incidentId: text("incident_id"), eventId: text("event_id"), docUrl: text("doc_url"),
    retryAfter: typeof after === "number" && after >= 0 ? after : undefined,
  };
}
