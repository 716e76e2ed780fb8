/* Verifies an event in the browser, from its content to the Merkle root covered by the timestamp. The signature of
 * the timestamp and its signer are not verified. */
"use strict";

const hex = bytes => Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
const unhex = text => {
  if (typeof text !== "string" || !/^([0-9a-f]{2})+$/.test(text))
    throw new Error("no digest");
  return Uint8Array.from(text.match(/../g), pair => parseInt(pair, 16));
};
const digest = async (bytes, name = "SHA-256") => hex(new Uint8Array(await crypto.subtle.digest(name, bytes)));
const utf8 = text => new TextEncoder().encode(text);

/* An encoding that this page does not support. It is not an error of the event. */
class Unread extends Error {}

/* Reads one DER element: its contents, the following bytes, and the whole element. */
function element(bytes, tag) {
  let size = bytes[1], head = 2;
  if (size > 0x80 && size < 0x85) {
    head += size - 0x80;
    size = bytes.slice(2, head).reduce((sum, byte) => sum * 256 + byte, 0);
  } else if (size >= 0x80) {
    throw new Unread("BER");
  }
  if (tag === OCTETS && bytes[0] === (OCTETS | CONSTRUCTED))
    throw new Unread("BER");
  if (bytes[0] !== tag || bytes.length < head + size)
    throw new Error("no timestamp");
  return {held: bytes.slice(head, head + size), rest: bytes.slice(head + size), whole: bytes.slice(0, head + size)};
}

const SEQUENCE = 0x30, SET = 0x31, INTEGER = 0x02, OCTETS = 0x04, OID = 0x06, TIME = 0x18, FIRST = 0xa0, SECOND = 0xa1;
const CONSTRUCTED = 0x20;
const SIGNED_DATA = "06092a864886f70d010702", TST_INFO = "060b2a864886f70d0109100104";
const MESSAGE_DIGEST = "06092a864886f70d010904", SHA256 = "0609608648016503040201";
const DIGESTS = {"06052b0e03021a": "SHA-1", [SHA256]: "SHA-256", "0609608648016503040202": "SHA-384",
                 "0609608648016503040203": "SHA-512"};

/* Reads the signed digest of the content and its algorithm (RFC 5652). */
function readSigner(rest) {
  for (const tag of [FIRST, SECOND]) // certificates and revocation lists
    rest = rest[0] === tag ? element(rest, tag).rest : rest;
  const signer = element(element(rest, SET).held, SEQUENCE);
  const identity = element(signer.held, INTEGER).rest;
  const algorithm = element(element(identity, identity[0]).rest, SEQUENCE);
  const name = DIGESTS[hex(element(algorithm.held, OID).whole)];
  if (signer.rest.length || !name)
    throw new Unread("another signature");
  for (let left = element(algorithm.rest, FIRST).held; left.length; left = element(left, SEQUENCE).rest) {
    const type = element(element(left, SEQUENCE).held, OID);
    if (hex(type.whole) === MESSAGE_DIGEST)
      return {name, digest: hex(element(element(type.rest, SET).held, OCTETS).held)};
  }
  throw new Error("no digest");
}

/* Reads the message imprint, the time and the signed content of a token (RFC 3161). */
function readToken(bytes) {
  const contentInfo = element(bytes, SEQUENCE);
  const type = element(contentInfo.held, OID);
  const signed = element(element(type.rest, FIRST).held, SEQUENCE);
  const inside = element(element(element(signed.held, INTEGER).rest, SET).rest, SEQUENCE);
  const kind = element(inside.held, OID);
  if (contentInfo.rest.length || hex(type.whole) !== SIGNED_DATA || hex(kind.whole) !== TST_INFO)
    throw new Error("no timestamp");
  const content = element(element(kind.rest, FIRST).held, OCTETS).held;
  const info = element(content, SEQUENCE);
  const imprint = element(element(element(info.held, INTEGER).rest, OID).rest, SEQUENCE);
  const algorithm = element(imprint.held, SEQUENCE);
  const time = element(element(imprint.rest, INTEGER).rest, TIME);
  if (hex(element(algorithm.held, OID).whole) !== SHA256)
    throw new Error("another digest");
  return {imprint: hex(element(algorithm.rest, OCTETS).held), time: new TextDecoder().decode(time.held), content,
          signer: readSigner(inside.rest)};
}

/* Converts "20260131090000.5Z" to "2026-01-31T09:00:00.500000Z". */
function writtenOut(time) {
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.(\d+))?Z$/.exec(time);
  return parts && `${parts[1]}-${parts[2]}-${parts[3]}T${parts[4]}:${parts[5]}:${parts[6]}.${(parts[7] ?? "").slice(0, 6).padEnd(6, "0")}Z`;
}

async function join(one, other) {
  return digest(unhex([one, other].sort().join("")));
}

async function climb(leaf, path) {
  let node = leaf;
  for (const [place, list] of path.entries()) {
    const others = place ? list : list.filter(hash => hash !== leaf);
    if (others.length !== 1 || (!place && list.length !== 2))
      throw new Error("no path");
    node = await join(node, others[0]);
  }
  return node;
}

/* Checks that a token is for that root and time, and that its signature covers them. The signature itself and the
 * signer are not verified, so the result is at most "part". */
async function stamps(base64, root, sealedAt) {
  const token = readToken(Uint8Array.from(atob(base64), letter => letter.charCodeAt(0)));
  return token.imprint === root && writtenOut(token.time) === sealedAt &&
    await digest(token.content, token.signer.name) === token.signer.digest ? "part" : "bad";
}

const sealed = one => one.proof.round !== undefined;
const verdict = good => good ? "good" : "bad";

/* Each check returns "good", "bad", "part", "none" (not applicable) or "unread". An exception means "bad". The hashed
 * record, not the page, determines which checks apply. */
const checks = {
  async content(one, place) {
    const record = JSON.parse(one.record);
    if (record.modality === "hash_only")
      return "none";
    const answer = await fetch(place.dataset.address, {redirect: "error"}).catch(() => null);
    const content = await answer?.arrayBuffer().catch(() => null);
    if (!content || (answer.status !== 200 && answer.status !== 404))
      return "unread";
    const found = answer.ok && await digest(content);
    return verdict(found === record.hash && found === one.receipt.hash);
  },
  async record(one) {
    const record = JSON.parse(one.record), receipt = one.receipt;
    const same = ["channel_id", "client_ref", "config_version", "event_id", "hash", "hash_alg", "modality",
                  "occurred_at", "received_at", "sequence"];
    return verdict(same.every(name => record[name] === receipt[name]) && record.chain === receipt.mode &&
      record.config_hash === one.proof.config_hash);
  },
  async chain(one) {
    return verdict(JSON.parse(one.record).previous_chain_hash === one.proof.previous_chain_hash &&
      await digest(utf8(one.record)) === one.receipt.chain_hash);
  },
  async path(one) {
    return sealed(one) ? verdict(await climb(one.receipt.chain_hash, one.proof.path) === one.proof.round.root) : "none";
  },
  async token(one) {
    if (!sealed(one))
      return "none";
    const {token, root, sealed_at: sealedAt} = one.proof.round;
    return sealedAt === one.receipt.timestamp.sealed_at ? stamps(token, root, sealedAt) : "bad";
  },
  async second(one) {
    return stamps(one.seal.second.token, one.proof.round.root, one.seal.second.sealed_at);
  },
};

const MARKS = {good: "✓", bad: "✗", part: "◐", none: "–", unread: "–"};

async function verify(place) {
  const one = JSON.parse(place.dataset.one);
  for (const line of place.querySelectorAll("[data-check]")) {
    const state = await checks[line.dataset.check](one, place)
      .catch(error => error instanceof Unread ? "unread" : "bad");
    line.className = state;
    line.querySelector("strong").textContent = `${MARKS[state]} ${line.dataset[state]}`;
  }
}

const place = document.getElementById("verify_now");
if (place && globalThis.crypto?.subtle) {
  place.hidden = false;
  place.querySelector("button").addEventListener("click", () => verify(place));
}
