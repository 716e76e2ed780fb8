// Notices of the service: checking who signed them, and reading them.

import { createHmac, timingSafeEqual } from "node:crypto";

import { InvalidSignature, UnexpectedAnswer } from "./errors.js";

/** `id` is the same on every retry: remember those that are dealt with. docs/integrate/webhooks.md and the
 * interface's description tell what `data` has for each `type`. */
export interface Notice {
  id: string;
  type: string;
  created_at: string;
  mode: "live" | "test";
  data: Record<string, unknown>;
}

export interface VerifyOptions {
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
                             body: Uint8Array, options: VerifyOptions = {}): Notice {
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
