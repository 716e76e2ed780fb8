// Notices of the service: checking who signed them, and reading them.

import { createHmac, timingSafeEqual } from "node:crypto";

import { InvalidSignature, UnexpectedAnswer } from "./errors.js";

/** Of each `data`: later versions of the service may add members. */
interface More {
  [member: string]: unknown;
}

export interface CertificationData extends More {
  certification_id: string;
  channel_id: string;
  status: "completed" | "failed";
  /** Events in the certified range. */
  event_count: number;
}

export interface BalanceLowData extends More {
  threshold_id: string;
  threshold: number;
  /** Right after the crossing. */
  balance: number;
}

export interface UnpaidLimitData extends More {
  unpaid_limit: number;
  unpaid_events: number;
  unpaid_credits: number;
}

export interface ConsumptionLimitData extends More {
  limit_id: string;
  scope: "channel" | "key";
  channel_id: string;
  /** null for the limit of a channel. */
  key_id: string | null;
  period: "day" | "month";
  /** UTC: `YYYY-MM-DD` or `YYYY-MM`. */
  period_key: string;
  max_events: number;
  action: "warn" | "block";
}

export interface AutoRechargeData extends More {
  recharge_id: string | null;
  pack_id: string;
  credits: number | null;
  /** A decimal. */
  amount: string | null;
  currency: string | null;
  threshold: number;
}

/** The events of some channels that a sealing round sealed: at most 100 in a notice. */
export interface EventSealedData extends More {
  sealed_at: string;
  segments: {
    channel_id: string;
    segment_id: string;
    seq_from: number;
    seq_to: number;
    event_count: number;
  }[];
}

/** What `data` has for each `type`. The last two are of services that send them. */
export interface NoticeData {
  "certification.completed": CertificationData & { status: "completed"; verification_code: string };
  "certification.failed": CertificationData & { status: "failed"; incident_id: string };
  "balance.low": BalanceLowData;
  "balance.exhausted": More & { channel_id: string };
  "events.unpaid_limit_reached": UnpaidLimitData;
  "consumption.limit_reached": ConsumptionLimitData;
  "recharge.auto_completed": AutoRechargeData & { balance: number };
  "recharge.auto_failed": AutoRechargeData & {
    reason: string; payment_url: string | null; auto_recharge_disabled: true;
  };
  "webhook.test": More & { endpoint_id: string; message: string };
  "event.sealed": EventSealedData;
  "certification.evidence_ready": CertificationData & {
    status: "completed"; verification_code: string; evidence_record_since: string;
  };
}

/** What all notices have. `id` is the same on every retry: remember those that are dealt with. */
export interface Envelope {
  id: string;
  created_at: string;
  mode: "live" | "test";
}

export type KnownNotice = {
  [Type in keyof NoticeData]: Envelope & { type: Type; data: NoticeData[Type] };
}[keyof NoticeData];

/** Of a type that this client has not heard of; `type` is any other text. The form it has here is for
 * the compiler alone, which then takes a `type` that equals a known one for that one. */
export type UnknownNotice = Envelope & {
  type: `${string}\u0000`;
  data: More;
};

/** Compare `type` with one of `NoticeData`, and the compiler knows what `data` has. */
export type Notice = KnownNotice | UnknownNotice;

export interface NoticeOptions {
  /** The installation's, of its headers. "SVC" by default. */
  prefix?: string;
  /** Seconds that a notice may be old, or early. 300 by default. */
  tolerance?: number;
  /** Unix seconds, instead of the clock's. */
  now?: number;
}

/** Of fetch, or of node:http, whose names are in lower case. */
export type NoticeHeaders = Headers | Record<string, string | string[] | undefined>;

/** The notice, if one of its signatures is good, by the endpoint's secret or one of several.
 * @param body the bytes that came, before a JSON parser has seen them */
export function verifyNotice(secret: string | readonly string[], headers: NoticeHeaders,
                             body: Uint8Array, options: NoticeOptions = {}): Notice {
  if (!(body instanceof Uint8Array)) {
    throw new TypeError("the body is checked as the bytes that came");
  }
  const { prefix = "SVC", tolerance = 300, now = Date.now() / 1000 } = options;
  const timestamp = header(headers, `X-${prefix}-Timestamp`).trim();
  if (!/^[0-9]{1,15}$/.test(timestamp)) throw new InvalidSignature("there is no timestamp");
  if (!(Math.abs(now - Number(timestamp)) <= tolerance)) {
    throw new InvalidSignature("the timestamp is too far from now");
  }
  const given = header(headers, `X-${prefix}-Signature`).split(",").map((text) => text.trim());
  const secrets = (typeof secret === "string" ? [secret] : secret).filter((one) => one !== "");
  // All are compared, so that the time it takes tells nothing of which is good.
  const good = secrets.flatMap((one) => {
    const expected = signature(one, timestamp, body);
    return given.map((text) => same(expected, text));
  });
  if (!good.includes(true)) throw new InvalidSignature("no signature is good");
  try {
    return JSON.parse(new TextDecoder().decode(body)) as Notice;
  } catch {
    throw new UnexpectedAnswer("the notice is no JSON");
  }
}

/** A notice as the service would send it, for the tests of a receiver: the headers and the bytes of
 * the body. A body that is given as bytes or text is signed as it is; a notice becomes JSON.
 * @param options `now`: the time of signing; `id`: of the header, where the body is no notice */
export function signNotice(secret: string | readonly string[],
                           notice: Partial<Notice> | string | Uint8Array,
                           options: { prefix?: string; now?: number; id?: string } = {}):
                           { headers: Record<string, string>; body: Uint8Array } {
  const { prefix = "SVC", now = Date.now() / 1000 } = options;
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (!secrets.length || secrets.includes("")) throw new TypeError("a secret is not empty");
  const isRaw = typeof notice === "string" || notice instanceof Uint8Array;
  const text = typeof notice === "string" ? notice : isRaw ? "" : JSON.stringify(notice);
  const body = notice instanceof Uint8Array ? notice : new TextEncoder().encode(text);
  const timestamp = String(Math.floor(now));
  return {
    headers: {
      "Content-Type": "application/json",
      [`X-${prefix}-Webhook-Id`]: options.id ?? ((!isRaw && notice.id) || "tst_0"),
      [`X-${prefix}-Timestamp`]: timestamp,
      [`X-${prefix}-Signature`]: secrets.map((one) => signature(one, timestamp, body)).join(","),
    },
    body,
  };
}

function signature(secret: string, timestamp: string, body: Uint8Array): string {
  return "v1=" + createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");
}

function same(expected: string, given: string): boolean {
  const [one, other] = [expected, given].map((text) => new TextEncoder().encode(text));
  return one.length === other.length && timingSafeEqual(one, other);
}

function header(headers: NoticeHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const [, value] = Object.entries(headers).find(
    ([one]) => one.toLowerCase() === name.toLowerCase()) ?? [];
  return Array.isArray(value) ? value.join(",") : value ?? "";
}
