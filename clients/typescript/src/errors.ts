// What can go wrong. No message holds a key, a secret or the signature of a link.

import type { Certification } from "./client.js";
import type { Receipt } from "./receipts.js";

/** Every error of this package. */
export class ConstanciaError extends Error {
  /** Of a `certify` that failed: for the call that repeats it. */
  idempotencyKey?: string;

  override get name(): string {
    return this.constructor.name;
  }
}

/** No whole answer came: the service may or may not have done what was asked. */
export class ConnectionFailed extends ConstanciaError {
  /** @param sent false when not a byte of the request left */
  constructor(message: string, readonly sent = true) {
    super(message);
  }
}

/** Something answered that is not the service, or not one that this client understands. */
export class UnexpectedAnswer extends ConstanciaError {}

/** What came, or was recorded, is not what it should be. */
export class DigestMismatch extends ConstanciaError {
  constructor(what: string, readonly expected: string, readonly found: string) {
    super(`${what}: the digest is ${found}, not ${expected}`);
  }
}

/** The events are registered, but their receipts could not be kept: they are here. */
export class ReceiptNotKept extends ConstanciaError {
  /** @param cause what the file or the sink threw */
  constructor(readonly events: readonly Receipt[], override readonly cause: unknown) {
    const ids = events.slice(0, 3).map((one) => one.event_id).join(", ");
    const more = events.length > 3 ? ` and ${events.length - 3} more` : "";
    super(`${ids}${more}: registered, but the receipt was not kept: ${String(cause)}`);
  }

  /** The first one, which is the only one unless a batch was registered. */
  get event(): Receipt {
    return this.events[0];
  }
}

/** The files of a log contradict each other, or the signature of its checkpoint is false. */
export class LogNotValid extends ConstanciaError {}

/** A notice that the service did not sign, or not lately. */
export class InvalidSignature extends ConstanciaError {}

/** The certification could not be issued; the same range can be requested again. */
export class CertificationFailed extends ConstanciaError {
  constructor(readonly certification: Certification) {
    super(`${certification.certification_id} failed`);
  }
}

/** The certification is not issued yet; waiting for it can go on. */
export class WaitTimeout extends ConstanciaError {
  constructor(readonly certification: Certification, milliseconds: number) {
    super(`${certification.certification_id} is not issued after ${milliseconds} ms`);
  }
}

/** The service's own record of an error, and what its headers say. */
export interface Refusal {
  status: number;
  code: string;
  message: string;
  requestId?: string;
  incidentId?: string;
  retryAfter?: number;
  eventId?: string;
  docUrl?: string;
}

/** The service refused. `code` is for programs, `message` for people; new codes may appear, so that
 * a program falls back on the class, which follows the HTTP status. */
export class ApiError extends ConstanciaError {
  readonly status: number;
  readonly code: string;
  /** Names the request in the service's log. */
  readonly requestId?: string;
  /** On 5xx: quote it to the operator. */
  readonly incidentId?: string;
  /** Seconds. */
  readonly retryAfter?: number;
  /** Of the original, on a Conflict of a registration. */
  readonly eventId?: string;
  readonly docUrl?: string;

  constructor(refusal: Refusal) {
    const marks = [`${refusal.status} ${refusal.code}`.trim()];
    if (refusal.requestId) marks.push(`request ${refusal.requestId}`);
    if (refusal.incidentId) marks.push(`incident ${refusal.incidentId}`);
    super(`${refusal.message} (${marks.join(", ")})`);
    this.status = refusal.status;
    this.code = refusal.code;
    this.requestId = refusal.requestId;
    this.incidentId = refusal.incidentId;
    this.retryAfter = refusal.retryAfter;
    this.eventId = refusal.eventId;
    this.docUrl = refusal.docUrl;
  }
}

/** 400: the message names the field and the reason. */
export class InvalidRequest extends ApiError {}
/** 401: no key, or none that is valid. */
export class Unauthorized extends ApiError {}
/** 402: unpaid events, or too little balance. */
export class PaymentRequired extends ApiError {}
/** 403: the account or channel is suspended or disabled. */
export class Forbidden extends ApiError {}
/** 403 `suspended`: the service suspended the channel or its account. Nothing stored has changed. */
export class Suspended extends Forbidden {}
/** 403 `account_disabled`: every call is refused until support enables the account. */
export class AccountDisabled extends Forbidden {}
/** 404: not on this channel and chain; or a link that is expired. */
export class NotFound extends ApiError {}
/** 409: the same reference was used for something else. Nothing was overwritten. */
export class Conflict extends ApiError {}
/** 413. */
export class TooLarge extends ApiError {}
/** 422 `limit_blocked`: a consumption limit of the owner blocks registrations until the next period.
 * `retryAfter` has the seconds until then, from services that send it. */
export class LimitBlocked extends ApiError {}
/** 429, still after all retries or with more to wait than they may take. */
export class TooManyRequests extends ApiError {}
/** 5xx. */
export class ServerError extends ApiError {}
/** 503, still after all retries: nothing was acknowledged. */
export class Unavailable extends ServerError {}

const CLASSES: Record<number, typeof ApiError> = {
  400: InvalidRequest, 401: Unauthorized, 402: PaymentRequired, 403: Forbidden, 404: NotFound,
  409: Conflict, 413: TooLarge, 429: TooManyRequests, 503: Unavailable,
};

/** Classes of single codes, below that of their status. */
const CODES: Record<string, typeof ApiError> = {
  "403 suspended": Suspended, "403 account_disabled": AccountDisabled,
  "422 limit_blocked": LimitBlocked,
};

export function refused(refusal: Refusal): ApiError {
  const { status, code } = refusal;
  const kind = CODES[`${status} ${code}`] ?? CLASSES[status]
    ?? (status >= 500 ? ServerError : ApiError);
  return new kind(refusal);
}
