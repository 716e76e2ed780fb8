// The documents of an evidence archive: docs/verify/evidence-format.md, sections 1, 4 and 6.

import { Wrong } from "./asn1.js";

export type Document = Record<string, any>;
type Check = (value: any) => boolean;

const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
const HASH = /^[0-9a-f]{64}$/;
const TIME = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$/;
const DEPTH_MAX = 8;
/** Two clocks may differ by so many microseconds. */
const TOLERANCE = 300_000_000;

export const isHash: Check = (value) => typeof value === "string" && HASH.test(value);
export const isText: Check = (value) => typeof value === "string" && !value.includes("\0");
const sized = (first: number, last: number): Check => (value) => {
  if (!isText(value)) return false;
  const size = new TextEncoder().encode(value).length;
  return first <= size && size <= last;
};
const integer = (first: number, last = INTEGER_MAX): Check =>
  (value) => Number.isSafeInteger(value) && !Object.is(value, -0) && first <= value && value <= last;
const oneOf = (...words: string[]): Check => (value) => words.includes(value);
const orNull = (check: Check): Check => (value) => value === null || check(value);
export const hashes = (most: number): Check =>
  (value) => Array.isArray(value) && value.length <= most && value.every(isHash);

export const isTime: Check = (value) => {
  if (typeof value !== "string" || !TIME.test(value) || value.startsWith("0000")) return false;
  const moment = new Date(`${value.slice(0, 19)}Z`);
  return !Number.isNaN(moment.getTime()) && moment.toISOString().slice(0, 19) === value.slice(0, 19);
};

/** Whether `time` is after `bound`, give or take 300 s. */
export function isLater(time: string, bound: string): boolean {
  const seconds = (Date.parse(`${time.slice(0, 19)}Z`) - Date.parse(`${bound.slice(0, 19)}Z`)) / 1000;
  return seconds * 1e6 + Number(time.slice(20, 26)) - Number(bound.slice(20, 26)) > TOLERANCE;
}

/** Base64 as section 1 has it, decoded; undefined for anything else. */
export function bytesOfBase64(value: unknown, most: number): Uint8Array | undefined {
  if (typeof value !== "string" || value.length > 4 * Math.ceil(most / 3)) return undefined;
  const bytes = Buffer.from(value, "base64");
  return bytes.length && bytes.length <= most && bytes.toString("base64") === value ? bytes : undefined;
}

/** Members with the same meaning in all documents. */
const FORMS: Record<string, Check> = {
  authority: isText, bytes: integer(1, 1e9), certification_id: isText, chain: oneOf("live", "test"),
  channel_id: isText, client_ref: sized(1, 255), config_version: integer(1), count: integer(1, 16384),
  created_at: isTime, declarant: isText, entry: isText, description: orNull(isText), event_count: integer(1),
  event_id: isText, first_sequence: integer(1), from: orNull(isTime), gen_time: isTime, hash: isText,
  hash_alg: oneOf("sha-256", "sha-512"), index: integer(0), issued_at: isTime, last_sequence: integer(1),
  max_error_us: integer(0), modality: oneOf("content", "hash_only"), mode: oneOf("live", "test"),
  name: isText, number: integer(1, 10_000), occurred_at: orNull(isTime), prefix: isText, previous_seal_hash: orNull(isHash),
  previous_token_hash: orNull(isHash), received_at: isTime, root: isHash, round_id: sized(1, 127),
  sealed_at: isTime, segment_id: isText, seq_from: orNull(integer(1)), seq_to: orNull(integer(1)),
  sequence: integer(1), sha256: isHash, size: integer(0), source: isText, stamp: integer(1),
  supplementary_info: orNull(isText), synchronized: (value) => typeof value === "boolean",
  to: orNull(isTime), verification_code: isText, verification_url: isText, version: integer(1),
};

/** Checks that an object has exactly these members, each of its form. One whose name here ends in a question
 * mark may be null. */
export function checkMembers(value: unknown, members: string, code: string, where: string): Document {
  const names = members.split(" ");
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject || Object.keys(value).length !== names.length) {
    throw new Wrong(code, where, `the members are not ${members.replaceAll("?", "")}`);
  }
  for (const given of names) {
    const name = given.replace("?", "");
    const form = FORMS[name] ?? (name.endsWith("_hash") ? isHash : undefined);
    const check = name === given ? form : orNull(form);
    if (!Object.hasOwn(value, name) || (check && !check((value as Document)[name]))) {
      throw new Wrong(code, where, `${name} is missing, or has another form`);
    }
  }
  return value as Document;
}

/** A document: canonical JSON with exactly these members. */
export function documentOf(bytes: Uint8Array, members: string, code: string, where: string,
                           versions = [1]): Document {
  const value = parse(bytes, where);
  checkMembers(value, members, code, where);
  if (members.split(" ").includes("v") && !versions.includes((value as Document).v)) {
    throw new Wrong(code, where, "v is of another version");
  }
  return value as Document;
}

/** RFC 8785. What is parsed and written again is the same text, or it was not canonical. */
function parse(bytes: Uint8Array, where: string): unknown {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw new Wrong("document.not_canonical", where, "the document is not JSON in UTF-8");
  }
  if (canonical(value) !== text) {
    throw new Wrong("document.not_canonical", where, "the document is not canonical");
  }
  return value;
}

/** RFC 8785; other than any JSON where a text has half a character, or where it is nested deeper than
 * any document is. */
export function canonical(value: unknown, depth = 0): string {
  if (depth > DEPTH_MAX) return "";
  if (typeof value === "string") return /[\ud800-\udfff]/u.test(value) ? "" : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((one) => canonical(one, depth + 1)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.keys(value).sort().map(
    (name) => `${canonical(name)}:${canonical((value as Document)[name], depth + 1)}`);
  return `{${members.join(",")}}`;
}
