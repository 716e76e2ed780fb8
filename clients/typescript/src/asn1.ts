// BER and DER (X.690), as far as timestamps and signatures need it.

/** What breaks a rule of docs/verify/evidence-format.md. `code` is one of docs/verify/findings.md. */
export class Wrong extends Error {
  constructor(readonly code: string, readonly where: string, what: string) {
    super(what);
  }
}

/** An element. Its contents are read only when they are asked for. */
export interface Element {
  tag: number;
  isConstructed: boolean;
  /** With its head and, of indefinite length, its end. */
  whole: Uint8Array;
  content: Uint8Array;
}

const DEPTH_MAX = 32;

function malformed(): never {
  throw new Wrong("token.malformed", "", "the structure is not BER");
}

/** The one element that these bytes are, to the last one. */
export function elementOf(bytes: Uint8Array): Element {
  const { element, end } = elementAt(bytes, 0, 1);
  return end === bytes.length ? element : malformed();
}

/** Those that a constructed element holds. */
export function childrenOf(parent: Element): Element[] {
  if (!parent.isConstructed) malformed();
  const children: Element[] = [];
  for (let at = 0; at < parent.content.length;) {
    const { element, end } = elementAt(parent.content, at, 2);
    children.push(element);
    at = end;
  }
  return children;
}

function elementAt(bytes: Uint8Array, at: number, depth: number): { element: Element; end: number } {
  if (depth > DEPTH_MAX || at + 2 > bytes.length) malformed();
  const tag = bytes[at];
  if ((tag & 0x1f) === 0x1f) malformed();
  const isConstructed = (tag & 0x20) !== 0;
  let begin = at + 2;
  let length = bytes[at + 1];
  if (length === 0x80) return indefinite(bytes, at, depth);
  if (length > 0x80) {
    const count = length & 0x7f;
    if (count > 6 || begin + count > bytes.length) malformed();
    length = 0;
    for (let n = 0; n < count; n++) length = length * 256 + bytes[begin + n];
    begin += count;
  }
  const end = begin + length;
  if (end > bytes.length) malformed();
  return {
    element: { tag, isConstructed, whole: bytes.subarray(at, end), content: bytes.subarray(begin, end) },
    end,
  };
}

function indefinite(bytes: Uint8Array, at: number, depth: number) {
  if (!(bytes[at] & 0x20)) malformed();
  let to = at + 2;
  while (bytes[to] !== 0 || bytes[to + 1] !== 0) to = elementAt(bytes, to, depth + 1).end;
  const content = bytes.subarray(at + 2, to);
  return {
    element: { tag: bytes[at], isConstructed: true, whole: bytes.subarray(at, to + 2), content },
    end: to + 2,
  };
}

/** The bytes of an OCTET STRING, which BER may have in pieces. */
export function octetsOf(element: Element): Uint8Array {
  if (!element.isConstructed) return element.content;
  return joined(childrenOf(element).map((piece) => {
    if (piece.tag !== 0x04) malformed();
    return piece.content;
  }));
}

export function joined(parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The same in DER: lengths definite and short, SETs sorted. `tag` instead of its own. */
export function derOf(element: Element, tag = element.tag): Uint8Array {
  if (!element.isConstructed) return framed(tag, element.content);
  if (element.tag === 0x24) return framed(0x04, octetsOf(element));
  const parts = childrenOf(element).map((child) => derOf(child));
  if (tag === 0x31) parts.sort(compareBytes);
  return framed(tag, joined(parts));
}

function framed(tag: number, content: Uint8Array): Uint8Array {
  const length: number[] = [];
  if (content.length < 0x80) {
    length.push(content.length);
  } else {
    for (let left = content.length; left; left = Math.floor(left / 256)) length.unshift(left % 256);
    length.unshift(0x80 | length.length);
  }
  return joined([new Uint8Array([tag, ...length]), content]);
}

export function compareBytes(one: Uint8Array, other: Uint8Array): number {
  const size = Math.min(one.length, other.length);
  for (let at = 0; at < size; at++) if (one[at] !== other[at]) return one[at] - other[at];
  return one.length - other.length;
}

export function hexOf(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += (byte + 256).toString(16).slice(1);
  return text;
}
