// Signatures (CMS) and timestamps (RFC 3161): what they are over, and whether the value is good by the
// certificate inside. Whose that certificate is, and whether it counted, is not asked here.

import { constants, createHash, verify, X509Certificate } from "node:crypto";

import {
  childrenOf, compareBytes, derOf, elementOf, hexOf, octetsOf, Wrong, type Element,
} from "./asn1.js";

const SIGNED_DATA = "2a864886f70d010702";
const DATA = "2a864886f70d010701";
const TST_INFO = "2a864886f70d0109100104";
const CONTENT_TYPE = "2a864886f70d010903";
const MESSAGE_DIGEST = "2a864886f70d010904";
const TIME_STAMP = "2a864886f70d010910020e";
const RSA_PSS = "2a864886f70d01010a";
const DIGESTS: Record<string, string> = {
  "608648016503040201": "sha256", "608648016503040202": "sha384", "608648016503040203": "sha512",
};

export interface Timestamp {
  imprint: string;
  /** In the form of the documents: UTC, microseconds. */
  time: string;
}

/** A timestamp whose signature is right, of what it says itself. */
export function timestampOf(token: Uint8Array, where: string): Timestamp {
  try {
    const { content } = signed(token, TST_INFO, undefined);
    return infoOf(content);
  } catch (error) {
    throw named(error, "token.not_valid", where, "the timestamp is not valid");
  }
}

/** Checks a detached signature over these bytes. Returns its timestamp; undefined if it has none. */
export function checkSignature(signature: Uint8Array, over: Uint8Array, where: string):
                               Timestamp | undefined {
  try {
    const { value, unsigned } = signed(signature, DATA, over);
    const token = attribute(unsigned, TIME_STAMP);
    if (!token) return undefined;
    const given = signed(token.whole, TST_INFO, undefined);
    const info = infoOf(given.content);
    if (info.imprint !== hexOf(createHash("sha256").update(value).digest())) {
      throw new Wrong("signature.not_valid", where, "the timestamp is not over this signature");
    }
    return info;
  } catch (error) {
    throw named(error, "signature.not_valid", where, "the signature is not valid");
  }
}

function named(error: unknown, code: string, where: string, what: string): Wrong {
  const why = error instanceof Error ? error.message : String(error);
  return new Wrong(code, where, `${what}: ${why}`);
}

function require(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

function signed(bytes: Uint8Array, kind: string, detached: Uint8Array | undefined) {
  const info = childrenOf(elementOf(bytes));
  require(info.length === 2 && isObject(info[0], SIGNED_DATA), "it is no SignedData");
  const [explicit] = childrenOf(info[1]);
  const [, , encapsulated, ...rest] = childrenOf(explicit);
  const [type, inside] = childrenOf(encapsulated);
  require(isObject(type, kind), "its content is of another type");
  require((inside === undefined) === (detached !== undefined), "its content is not where it should be");
  const content = detached ?? octetsOf(childrenOf(inside)[0]);
  const certificates = rest.filter(({ tag }) => tag === 0xa0).flatMap(childrenOf);
  const signers = childrenOf(rest[rest.length - 1]);
  require(rest[rest.length - 1].tag === 0x31 && signers.length === 1, "it has not one signer");
  return { content, ...checkSigner(signers[0], kind, content, certificates) };
}

function checkSigner(signer: Element, kind: string, content: Uint8Array, certificates: Element[]) {
  const [version, sid, digest, attributes, algorithm, value, unsigned] = childrenOf(signer);
  require(version?.tag === 0x02 && sid?.tag === 0x30 && attributes?.tag === 0xa0,
          "its signer is not named by issuer and serial number, or has no signed attributes");
  const hash = DIGESTS[hexOf(childrenOf(digest)[0].content)];
  require(hash, "its digest is none that is taken");
  const found = attribute(attributes, MESSAGE_DIGEST);
  const stated = attribute(attributes, CONTENT_TYPE);
  require(found && stated && isObject(stated, kind), "it lacks a signed attribute");
  const own = createHash(hash).update(content).digest();
  require(compareBytes(octetsOf(found), own) === 0, "it is over other bytes");
  const certificate = certificates.find((one) => one.tag === 0x30 && isNamed(one, sid));
  require(certificate, "the signer's certificate is not inside");
  const key = new X509Certificate(certificate.whole).publicKey;
  const isPss = isObject(childrenOf(algorithm)[0], RSA_PSS);
  const how = isPss ? { padding: constants.RSA_PKCS1_PSS_PADDING,
                        saltLength: constants.RSA_PSS_SALTLEN_AUTO } : {};
  require(verify(hash, derOf(attributes, 0x31), { key, ...how }, octetsOf(value)),
          "its value is not by the key of the certificate inside");
  return { value: octetsOf(value), unsigned };
}

function isObject(element: Element | undefined, identifier: string): boolean {
  return element?.tag === 0x06 && hexOf(element.content) === identifier;
}

/** Whether a certificate has this issuer, byte for byte, and serial number. */
function isNamed(certificate: Element, sid: Element): boolean {
  const [issuer, serial] = childrenOf(sid);
  const fields = childrenOf(childrenOf(certificate)[0]);
  if (fields[0]?.tag === 0xa0) fields.shift();
  return compareBytes(fields[0].whole, serial.whole) === 0
    && compareBytes(fields[2].whole, issuer.whole) === 0;
}

/** The one value of the one attribute of this type. */
function attribute(attributes: Element | undefined, type: string): Element | undefined {
  const found = (attributes ? childrenOf(attributes) : []).map(childrenOf)
    .filter(([name]) => isObject(name, type));
  require(found.length <= 1, "an attribute occurs twice");
  if (!found.length) return undefined;
  const values = childrenOf(found[0][1]);
  require(values.length === 1, "an attribute has not one value");
  return values[0];
}

function infoOf(content: Uint8Array): Timestamp {
  const [, , imprint, , time] = childrenOf(elementOf(content));
  const [algorithm, digest] = childrenOf(imprint);
  const name = hexOf(childrenOf(algorithm)[0].content);
  require(DIGESTS[name] === "sha256", "its imprint is no SHA-256");
  const text = new TextDecoder().decode(time.content);
  const [, date, fraction = ""] = /^([0-9]{14})(?:\.([0-9]{1,16}))?Z$/.exec(text) ?? [];
  require(time.tag === 0x18 && date, "its time has another form");
  const parts = /(....)(..)(..)(..)(..)(..)/.exec(date) as RegExpExecArray;
  const [, year, month, day, hour, minute, second] = parts;
  return {
    imprint: hexOf(octetsOf(digest)),
    time: `${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction.padEnd(6, "0").slice(0, 6)}Z`,
  };
}
