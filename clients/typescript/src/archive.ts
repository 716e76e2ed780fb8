// What an evidence archive says: its documents, its chain, its segments and timestamps, and receipts
// (docs/verify/evidence-format.md). Streams are read line by line; of a chain only a segment is held.

import { createHash } from "node:crypto";

import { compareBytes, Wrong } from "./asn1.js";
import { checkSignature, timestampOf, type Timestamp } from "./cms.js";
import {
  bytesOfBase64, canonical, checkMembers, documentOf, hashes, isHash, isLater, type Document,
} from "./evidence.js";
import type { Receipts } from "./given.js";
import { Log } from "./log.js";
import type { Parts } from "./parts.js";
import {
  contentOf, digestOf, entriesOf, linesOf, LINES_MAX, type Bytes, type Entry,
} from "./zip.js";

const DOCUMENT_MAX = 32_768;
const MANIFEST_MAX = 16_777_215;
const SIGNATURE_MAX = 8_519_679;
const ENTRIES_MAX = 20_000;
const SEAL_MAX = 2_048;
const OBJECTS_MAX = 4_096;
const OBJECTS_SIZE_MAX = 32 << 20;
const STAMPS_MAX = 65_536;
const PARTS_MAX = 10_000;
/** Rounds that are read for a segment: its own and the one before it. */
const SKIPPED_MAX = 2;
const STREAMS = ["events", "leaves", "seals", "rounds", "validation", "renewals", "checkpoints", "log", "history"] as const;
/** How many of these an archive of each version has. */
const STREAMS_OF_VERSION = [0, 4, 6, 9];
type Stream = typeof STREAMS[number];

const EVENT = "chain channel_id client_ref config_hash config_version event_id hash hash_alg modality " +
  "occurred_at previous_chain_hash received_at sequence v";
const SEAL = "chain chain_hash_before chain_hash_last channel_id clock count first_sequence last_sequence " +
  "previous_seal_hash previous_token_hash segment_id v";
const TOKEN_1 = "authority gen_time kind request token";
const TOKEN = `${TOKEN_1} certificates renewal revocations`;

/** What is certified, and what of it was looked at. */
export interface Certified {
  certificationId: string;
  channelId: string;
  mode: "live" | "test";
  firstSequence: number;
  lastSequence: number;
  issuedAt: string;
  verificationCode: string;
  /** The SHA-256 of the archive. */
  sha256: string;
  /** Whether it says where its segments are in the log of the service. */
  hasLog: boolean;
  /** The content parts that belong to it. */
  parts: { name: string; sha256: string; bytes: number }[];
  checked: { files: number; events: number; segments: number; timestamps: number };
}

/** What may be open although nothing is wrong. */
export type Note = (code: string, severity: "wrong" | "unchecked" | "warning", where: string,
                    what: string) => void;

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const encoded = (text: string) => new TextEncoder().encode(text);

function require(condition: unknown, code: string, where: string, what: string): asserts condition {
  if (!condition) throw new Wrong(code, where, what);
}

/** Of RFC 4998: both hashes in ascending order. */
function joinedHash(one: string, other: string): string {
  return createHash("sha256").update(one < other ? one + other : other + one, "hex").digest("hex");
}

/** Where a hash leads that is joined with each sibling in turn. */
function topOf(hash: string, path: string[]): string {
  return path.reduce((node, sibling) => joinedHash(node, sibling), hash);
}

function base64OfHex(hex: string): string {
  return Buffer.from(hex, "hex").toString("base64");
}

function rootOf(leaves: string[]): string {
  let level = leaves;
  while (level.length > 1) {
    const next: string[] = [];
    for (let at = 0; at < level.length; at += 2) {
      next.push(at + 1 < level.length ? joinedHash(level[at], level[at + 1]) : level[at]);
    }
    level = next;
  }
  return level[0];
}

interface Round {
  id: string;
  root: string;
  tokenHash: string;
  time: string;
}

interface Stamp extends Timestamp {
  isNamed: boolean;
}

export class Archive {
  readonly manifest: Document;
  readonly #bytes: Bytes;
  readonly #entries: Map<string, Entry>;
  readonly #names: string[];
  readonly #note: Note;
  readonly #receipts: Receipts;
  readonly #parts: Parts;
  readonly #signal?: AbortSignal;
  readonly #checked = { files: 0, events: 0, segments: 0, timestamps: 0 };
  readonly #objects = new Map<string, string>();
  readonly #named = new Set<string>();
  readonly #stamps = new Map<number, Stamp>();
  readonly #configs = new Map<number, { hash: string; modality: string; isUsed: boolean }>();
  #signedAt?: string;
  #genesisHash = "";
  /** Of the event or leaf that was read last. */
  #chainHash = "";
  #receivedAt = "";
  #round?: Round;
  #previousRound?: Round;

  private constructor(bytes: Bytes, entries: Entry[], manifest: Document, receipts: Receipts,
                      parts: Parts, note: Note, signal?: AbortSignal) {
    this.#bytes = bytes;
    this.#names = entries.map(({ name }) => name);
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
    this.manifest = manifest;
    this.#receipts = receipts;
    this.#parts = parts;
    this.#note = note;
    this.#signal = signal;
  }

  /** Checks all but certificates. Throws Wrong at the first thing that is not as it should be. */
  static async check(bytes: Bytes, receipts: Receipts, parts: Parts, note: Note,
                     signal?: AbortSignal): Promise<Certified> {
    const entries = await entriesOf(bytes);
    require(entries.length >= 8 && entries.length <= ENTRIES_MAX, "archive.entry_count", "",
            "the number of entries is none that an evidence archive has");
    const wanted = ["manifest.json", "META-INF/ASiCManifest001.xml", "META-INF/signature001.p7s"];
    require(wanted.every((name, at) => entries[entries.length - 3 + at].name === name),
            "manifest.misplaced", "", `the last three entries are not ${wanted.join(", ")}`);
    const manifest = documentOf(
      await contentOf(bytes, entries[entries.length - 3], MANIFEST_MAX),
      "certification_id channel_id config_versions content_parts event_count files first_chain_hash " +
      "frozen_range issued_at last_chain_hash mode previous_chain_hash requested_range service v " +
      "verification_code", "manifest.malformed", "manifest.json", [1, 2, 3]);
    return new Archive(bytes, entries, manifest, receipts, parts, note, signal).#check();
  }

  async #check(): Promise<Certified> {
    const { manifest } = this;
    this.#checkManifest();
    this.#checkOrder();
    await this.#checkDigests();
    await this.#checkSignature();
    await this.#checkGenesis();
    await this.#checkConfigurations();
    await this.#receipts.read(manifest.channel_id, manifest.mode);
    await this.#parts.open(manifest);
    this.#chainHash = manifest.previous_chain_hash;
    this.#receipts.compareHash(this.#first - 1, manifest.previous_chain_hash);
    if (manifest.mode === "live") await this.#checkLive();
    else await this.#checkTest();
    this.#checkEnd();
    await this.#parts.finish();
    return {
      certificationId: manifest.certification_id, channelId: manifest.channel_id, mode: manifest.mode,
      firstSequence: this.#first, lastSequence: this.#last, issuedAt: manifest.issued_at,
      verificationCode: manifest.verification_code, hasLog: this.#hasLog, parts: manifest.content_parts,
      sha256: await this.#bytes.sha256(), checked: this.#checked,
    };
  }

  get #first(): number {
    return this.manifest.frozen_range.first_sequence;
  }

  get #last(): number {
    return this.manifest.frozen_range.last_sequence;
  }

  // ---- manifest, digests, signature ----

  #checkManifest(): void {
    const { manifest } = this;
    const [code, where] = ["manifest.malformed", "manifest.json"];
    const { service, frozen_range, requested_range: asked, files, config_versions, content_parts } = manifest;
    checkMembers(service, "name prefix verification_url", code, where);
    checkMembers(frozen_range, "first_sequence last_sequence", code, where);
    checkMembers(asked, "from seq_from seq_to to", code, where);
    const lists = [files, config_versions, content_parts];
    require(lists.every(Array.isArray) && content_parts.length <= PARTS_MAX, code, where,
            "a list is none, or too long");
    for (const file of files) {
      checkMembers(file, "path sha256 size", code, where);
      require(typeof file.path === "string", code, where, "a path is no text");
    }
    let before = 0;
    for (const config of config_versions) {
      checkMembers(config, "hash version", code, where);
      require(isHash(config.hash), code, where, "a configuration's hash has another form");
      require(config.version > before, "manifest.configs_not_ascending", where,
              "config_versions is not in ascending order");
      before = config.version;
    }
    const [first, last] = [this.#first, this.#last];
    require(first <= last && manifest.event_count === last - first + 1, "manifest.count_of_range", where,
            "event_count does not agree with frozen_range");
    const times = asked.from !== null && asked.to !== null;
    const numbers = asked.seq_from !== null && asked.seq_to !== null;
    require(times ? asked.seq_from === null && asked.seq_to === null
            : numbers && asked.from === null && asked.to === null, "manifest.request_unclear", where,
            "requested_range must contain either two times or two sequence numbers");
    require(!times || asked.from < asked.to, "manifest.request_reversed", where,
            "requested_range ends before it begins");
    require(times || (asked.seq_from === first && asked.seq_to === last), "manifest.request_differs",
            where, "requested_range requests other events than frozen_range contains");
    this.#checkParts(content_parts);
  }

  #checkParts(parts: Document[]): void {
    let after = this.#first - 1;
    parts.forEach((part, at) => {
      checkMembers(part, "bytes first_sequence last_sequence name sha256", "manifest.malformed",
                   "manifest.json");
      const name = `content-part-${String(at + 1).padStart(3, "0")}.zip`;
      require(part.name === name, "manifest.part_name", "manifest.json", `content_parts: not ${name}`);
      require(after < part.first_sequence && part.first_sequence <= part.last_sequence
              && part.last_sequence <= this.#last, "manifest.part_range", "manifest.json",
              `content_parts: the range of ${name} is invalid`);
      after = part.last_sequence;
    });
  }

  /** Section 3. */
  #checkOrder(): void {
    const { v, config_versions } = this.manifest;
    const names = ["mimetype", "README.txt", "LEEME.txt", "genesis.json"];
    if (v > 2 && this.#entries.has("signers.p7m")) names.push("signers.p7m");
    for (const { version } of config_versions) {
      names.push(`config/config-${String(version).padStart(6, "0")}.json`);
    }
    for (const stream of STREAMS.slice(0, STREAMS_OF_VERSION[v])) names.push(...this.#filesOf(stream));
    names.push(...this.#names.slice(-3));
    const at = names.findIndex((name, number) => this.#names[number] !== name);
    require(at < 0 && names.length === this.#names.length, "archive.file_misplaced",
            this.#names[Math.max(at, 0)] ?? "", "the entries are not those of an evidence archive, in order");
    require(this.#hasLog === this.#filesOf("log").length > 0, "log.place_missing", "",
            "there are checkpoints or places in the log alone");
  }

  get #hasLog(): boolean {
    return this.#filesOf("checkpoints").length > 0;
  }

  #filesOf(stream: Stream): string[] {
    const names: string[] = [];
    for (let number = 1; ; number++) {
      const name = `${stream}/${stream}-${String(number).padStart(6, "0")}.ndjson.gz`;
      if (!this.#entries.has(name)) return names;
      names.push(name);
    }
  }

  /** Each entry's SHA-256 against the manifest, and the ASiCManifest byte by byte. */
  async #checkDigests(): Promise<void> {
    const { files } = this.manifest;
    const listed = this.#names.slice(1, -3);
    require(files.length === listed.length, "archive.file_count", "manifest.json",
            "the manifest lists another number of files");
    const lines: string[] = [];
    for (const name of this.#names) {
      this.#signal?.throwIfAborted();
      const entry = this.#entries.get(name) as Entry;
      const digest = await digestOf(this.#bytes, entry);
      const at = listed.indexOf(name, this.#checked.files);
      if (at >= 0) {
        const { path, size, sha256: stated } = files[at];
        require(path === name, "archive.file_not_listed", name, "the manifest lists another file here");
        require(size === entry.size, "archive.file_size", name, "the manifest says another size");
        require(stated === digest, "archive.file_digest", name,
                "the SHA-256 of the file differs from the one in the manifest");
        this.#checked.files = at;
      }
      if (at >= 0 || name === "manifest.json") {
        const line = `<asic:DataObjectReference URI="${name}"><ds:DigestMethod ` +
          'Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/>' +
          `<ds:DigestValue>${base64OfHex(digest)}</ds:DigestValue>` +
          "</asic:DataObjectReference>\n";
        if (at >= 0) lines.push(line);
        else lines.unshift(line);
      }
    }
    this.#checked.files = listed.length;
    const mimetype = await this.#content("mimetype", 100);
    require(compareBytes(mimetype, encoded("application/vnd.etsi.asic-e+zip")) === 0, "archive.mimetype",
            "mimetype", "the first entry has another content");
    const wanted = '<?xml version="1.0" encoding="UTF-8"?>\n' +
      '<asic:ASiCManifest xmlns:asic="http://uri.etsi.org/02918/v1.2.1#" ' +
      'xmlns:ds="http://www.w3.org/2000/09/xmldsig#">\n' +
      '<asic:SigReference URI="META-INF/signature001.p7s" MimeType="application/x-pkcs7-signature"/>\n' +
      `${lines.join("")}</asic:ASiCManifest>\n`;
    const asic = await this.#content("META-INF/ASiCManifest001.xml", MANIFEST_MAX);
    require(compareBytes(asic, encoded(wanted)) === 0, "asic.differs", "META-INF/ASiCManifest001.xml",
            "the ASiC manifest does not have the required form");
  }

  #content(name: string, most: number): Promise<Uint8Array> {
    return contentOf(this.#bytes, this.#entries.get(name) as Entry, most);
  }

  async #checkSignature(): Promise<void> {
    const where = "META-INF/signature001.p7s";
    const asic = await this.#content("META-INF/ASiCManifest001.xml", MANIFEST_MAX);
    const timestamp = checkSignature(await this.#content(where, SIGNATURE_MAX), asic, where);
    const { mode, issued_at } = this.manifest;
    require(mode === "test" || timestamp, "signature.not_valid", where, "the signature has no timestamp");
    this.#signedAt = timestamp?.time;
    require(!timestamp || !isLater(issued_at, timestamp.time), "signature.not_valid", where,
            "issued_at is after the timestamp of the signature");
  }

  // ---- documents ----

  async #checkGenesis(): Promise<void> {
    const where = "genesis.json";
    const { manifest } = this;
    const bytes = await this.#content(where, DOCUMENT_MAX);
    const genesis = documentOf(bytes, "chain channel_id created_at v", "genesis.malformed", where);
    require(genesis.chain === manifest.mode && genesis.channel_id === manifest.channel_id,
            "genesis.of_another", where, "the genesis document is of another channel or mode");
    this.#genesisHash = sha256(bytes);
    require(this.#first > 1 || manifest.previous_chain_hash === this.#genesisHash,
            "genesis.not_before_event", where, "its SHA-256 is not the previous_chain_hash of event 1");
  }

  async #checkConfigurations(): Promise<void> {
    for (const { version, hash } of this.manifest.config_versions) {
      const where = `config/config-${String(version).padStart(6, "0")}.json`;
      const bytes = await this.#content(where, DOCUMENT_MAX);
      const config = documentOf(bytes, "channel_id declarant description modality name sealed_at " +
                                "supplementary_info v version", "config.malformed", where);
      require(sha256(bytes) === hash, "config.digest", where, "its SHA-256 is not that in the manifest");
      require(config.channel_id === this.manifest.channel_id && config.version === version,
              "config.of_another", where, "the document is of another channel or version");
      this.#configs.set(version, { hash, modality: config.modality, isUsed: false });
    }
  }

  // ---- streams ----

  /** Each file but the last has as many lines as may be. */
  async *#lines(stream: Stream): AsyncGenerator<Uint8Array, void, undefined> {
    let lines = 0;
    for (const name of this.#filesOf(stream)) {
      require(lines % LINES_MAX === 0, "lines.divided", name, "the file before it is not full");
      for await (const line of linesOf(this.#bytes, this.#entries.get(name) as Entry)) {
        if (lines++ % 1000 === 0) this.#signal?.throwIfAborted();
        yield line;
      }
    }
  }

  #sequence = 0;

  async #checkEvent(line: Uint8Array): Promise<void> {
    const { manifest } = this;
    const sequence = (this.#sequence ||= this.#first);
    const where = `event ${sequence}`;
    const event = documentOf(line, EVENT, "event.malformed", where);
    require(sequence <= this.#last && event.sequence === sequence, "event.sequence", where,
            "the event has another sequence number, or is beyond the range");
    require(event.chain === manifest.mode, "event.mode", where, "the event is of another mode");
    require(event.channel_id === manifest.channel_id, "event.channel", where,
            "the event is of another channel");
    const link = sequence === this.#first ? "chain.start" : "chain.broken";
    require(event.previous_chain_hash === this.#chainHash, link, where,
            "the event does not continue the chain");
    const { received_at: received, modality, hash_alg } = event;
    require(received >= this.#receivedAt, "event.received_before_previous", where,
            "the event was received before the one before it");
    const { from, to } = manifest.requested_range;
    require(from === null || (from <= received && received < to), "event.received_outside_range", where,
            "the event was not received in the range that was asked for");
    require(!isLater(received, manifest.issued_at), "event.received_after_issue", where,
            "the event was received after the archive was issued");
    const config = this.#configs.get(event.config_version);
    require(config, "event.config_missing", where, "its configuration is not in the archive");
    require(config.hash === event.config_hash, "event.config_digest", where,
            "config_hash is not the SHA-256 of its configuration");
    require(config.modality === modality, "event.modality", where, "its configuration has another modality");
    config.isUsed = true;
    const digits = hash_alg === "sha-512" ? 128 : 64;
    require(modality === "hash_only" || hash_alg === "sha-256", "event.algorithm", where,
            "the algorithm of content must be sha-256");
    require(event.hash.length === digits && /^[0-9a-f]+$/.test(event.hash), "event.malformed", where,
            "hash has another form");
    this.#receivedAt = received;
    this.#chainHash = sha256(line);
    require(sequence !== this.#first || this.#chainHash === manifest.first_chain_hash,
            "chain.first", where, "its chain hash is not that in the manifest");
    require(sequence !== this.#last || this.#chainHash === manifest.last_chain_hash,
            "chain.last", where, "its chain hash is not that in the manifest");
    this.#receipts.compareEvent(event, this.#chainHash);
    if (modality === "content") await this.#parts.check(event);
    this.#sequence++;
    this.#checked.events++;
  }

  async #checkTest(): Promise<void> {
    this.#note("archive.test", "warning", "",
               "this is a test archive, without timestamps or probative value");
    const extra = STREAMS.slice(1).flatMap((stream) => this.#filesOf(stream));
    require(!extra.length, "archive.file_superfluous", extra[0], "this file is not allowed here");
    for await (const line of this.#lines("events")) await this.#checkEvent(line);
  }

  #checkEnd(): void {
    const { event_count: count } = this.manifest;
    require(this.#checked.events === count, "manifest.count_of_events", "manifest.json",
            `event_count is ${count}, but the archive has ${this.#checked.events} events`);
    for (const [version, { isUsed }] of this.#configs) {
      require(isUsed, "manifest.config_unused", "manifest.json", `no event refers to version ${version}`);
    }
  }

  // ---- segments ----

  async #checkLive(): Promise<void> {
    if (this.manifest.v > 1) {
      await this.#readObjects();
      await this.#readRenewals();
    }
    const streams = {
      events: this.#lines("events"), leaves: this.#lines("leaves"), rounds: this.#lines("rounds"),
    };
    const log = this.#hasLog
      ? new Log(this.#lines("checkpoints"), this.#lines("log"), this.manifest) : undefined;
    try {
      let before: Segment | undefined;
      const history = await this.#readHistory();
      for await (const line of this.#lines("seals")) {
        before = await this.#checkSegment(line, before, streams, history, log);
      }
      await log?.end();
      require(before && before.last >= this.#last, "segment.missing", "seals",
              "the segments do not cover the range");
      for (const [name, lines] of Object.entries(streams)) {
        require((await lines.next()).done, "lines.superfluous", name, "no further line is allowed here");
      }
    } finally {
      for (const lines of Object.values(streams)) await lines.return();
      await log?.close();
    }
    for (const name of this.#objects.keys()) {
      require(this.#named.has(name), "validation.not_named", "validation", "no token names this object");
    }
    for (const [number, { isNamed }] of this.#stamps) {
      require(isNamed, "renewal.not_named", "renewals", `nothing names stamp ${number}`);
    }
  }

  /** Section 4.12: the seals from the first event of the chain on, before those of the archive. */
  async #readHistory(): Promise<Before | undefined> {
    let before: Before | undefined;
    for await (const line of this.#lines("history")) {
      require(line.length <= SEAL_MAX, "bridge.malformed", "history", "seal");
      const seal = documentOf(line, SEAL, "bridge.malformed", "history");
      this.#checkSeal(seal, "bridge.malformed", `history: ${seal.segment_id}`);
      checkContinues(seal, before ?? { last: 0, sealHash: null, chainHash: this.#genesisHash },
                     before ? "bridge.broken" : "history.start");
      before = { last: seal.last_sequence, sealHash: sha256(line), chainHash: seal.chain_hash_last };
    }
    return before;
  }

  #checkSeal(seal: Document, code: string, where: string): void {
    const { first_sequence: first, last_sequence: last } = seal;
    checkMembers(seal.clock, "max_error_us source synchronized", code, where);
    require(seal.chain === this.manifest.mode, "segment.mode", where, "the segment is of another mode");
    require(seal.channel_id === this.manifest.channel_id, "segment.channel", where,
            "the segment is of another channel");
    require(first <= last && seal.count === last - first + 1, code, where,
            "count does not agree with the sequence numbers");
  }

  async #checkSegment(line: Uint8Array, before: Segment | undefined, streams: Streams,
                      history: Before | undefined, log: Log | undefined): Promise<Segment> {
    const { manifest } = this;
    const code = "segment.malformed";
    const given = documentOf(line, "path round_id seal", code, "seals");
    const bytes = encoded(canonical(given.seal));
    require(bytes.length <= SEAL_MAX && hashes(40)(given.path), code, "seals", "seal or path");
    const seal = documentOf(bytes, SEAL, code, "seals");
    const where = `seals: ${seal.segment_id}`;
    this.#checkSeal(seal, code, where);
    const { first_sequence: first, last_sequence: last } = seal;
    if (history && !before) checkContinues(seal, history, "history.not_leading");
    require(before ? first === before.last + 1 && first <= this.#last
            : first <= this.#first && last >= this.#first, "segment.misplaced", where,
            "the segment does not follow the one before it, or covers no event of the range");
    require((seal.previous_seal_hash === null) === (first === 1)
            && (!before || seal.previous_seal_hash === before.sealHash), "segment.previous_seal", where,
            "previous_seal_hash is not that of the segment before");
    const known = before ? this.#chainHash : first === 1 ? this.#genesisHash
      : first === this.#first ? manifest.previous_chain_hash : seal.chain_hash_before;
    require(seal.chain_hash_before === known, before ? "segment.previous_event" : "segment.start", where,
            "chain_hash_before is not that of the event before");
    const leaves = await this.#collect(first, last, streams, where);
    require(seal.chain_hash_last === leaves[leaves.length - 1], "segment.last_event", where,
            "chain_hash_last is not that of its last event");
    const sealHash = sha256(bytes);
    const round = await this.#findRound(given.round_id, streams.rounds);
    const root = topOf(rootOf([...leaves, sealHash]), given.path);
    require(root === round.root, "segment.root", where, "the segment does not lead to the round's root");
    const previous = this.#previousRound;
    require(seal.previous_token_hash === (previous ? previous.tokenHash : null),
            previous ? "segment.previous_token" : "segment.previous_round_missing", where,
            "previous_token_hash is not that of the round before");
    if (!previous && !before && first > 1) {
      this.#note("segment.no_lower_bound", "unchecked", where,
                 "nothing shows after which time the segment was made");
    }
    require(!this.#receivedAt || !isLater(this.#receivedAt, round.time), "segment.before_reception", where,
            "an event was received after the round's time");
    await log?.check(seal, sealHash, where);
    this.#checked.segments++;
    return { last, sealHash };
  }

  /** The chain hashes of a segment: of events of the range, and of leaves around it. */
  async #collect(first: number, last: number, streams: Streams, where: string): Promise<string[]> {
    const found: string[] = [];
    for (let sequence = first; sequence <= last; sequence++) {
      const isInside = sequence >= this.#first && sequence <= this.#last;
      const { done, value } = await (isInside ? streams.events : streams.leaves).next();
      require(!done, isInside ? "segment.events_unread" : "segment.leaves_unread", where,
              `the archive has no event or leaf ${sequence}`);
      if (isInside) {
        await this.#checkEvent(value);
      } else {
        const leaf = documentOf(value, "chain_hash sequence", "leaf.malformed", "leaves");
        require(leaf.sequence === sequence, "leaf.sequence", "leaves", `leaf ${sequence} is not there`);
        require(sequence !== this.#first - 1 || leaf.chain_hash === this.manifest.previous_chain_hash,
                "leaf.start", "leaves", "the leaf before the range has another hash");
        this.#chainHash = leaf.chain_hash;
        this.#receipts.compareHash(sequence, leaf.chain_hash);
      }
      found.push(this.#chainHash);
    }
    return found;
  }

  // ---- rounds ----

  async #findRound(id: string, rounds: Lines): Promise<Round> {
    for (let skipped = 0; this.#round?.id !== id; skipped++) {
      const { done, value } = await rounds.next();
      require(!done, "segment.round_missing", "rounds", `there is no round ${id}`);
      require(skipped < SKIPPED_MAX, "round.superfluous", "rounds", "a round that no segment needs");
      const round = this.#readRound(value);
      require(!this.#round || this.#round.id !== round.id, "round.repeated", "rounds",
              "a round occurs twice");
      require(!this.#round || !isLater(this.#round.time, round.time), "round.before_previous", round.id,
              "the round is earlier than its predecessor");
      [this.#previousRound, this.#round] = [this.#round, round];
    }
    return this.#round;
  }

  #readRound(line: Uint8Array): Round {
    const { v, issued_at } = this.manifest;
    const where = "rounds";
    const code = "round.malformed";
    let tokens: Document[];
    const members = v === 1 ? `${TOKEN_1} root round_id` : "gen_time root round_id tokens";
    const round = documentOf(line, members, code, where);
    if (v === 1) {
      tokens = [{ ...round, certificates: [], revocations: [], renewal: null }];
    } else {
      tokens = round.tokens;
      require(Array.isArray(tokens) && [1, 2].includes(tokens.length), code, round.round_id, "tokens");
      for (const token of tokens) checkMembers(token, TOKEN, code, round.round_id);
      require(tokens[0].gen_time === round.gen_time, code, round.round_id, "gen_time is not its token's");
    }
    const digests = tokens.map((token) => this.#checkRoundToken(token, round.root, round.round_id));
    require(!this.#signedAt || !isLater(round.gen_time, this.#signedAt), "round.after_signature",
            round.round_id, "the round is later than the signature of the archive");
    require(!isLater(round.gen_time, issued_at), "round.after_issue", round.round_id,
            "the round is of after the archive was issued");
    return { id: round.round_id, root: round.root, tokenHash: digests[0], time: round.gen_time };
  }

  #checkRoundToken(token: Document, root: string, where: string): string {
    for (const [member, kinds, most] of [["certificates", ["certificate"], 64],
                                         ["revocations", ["crl", "ocsp"], 16]] as const) {
      const names: string[] = token[member];
      require(hashes(most)(names) && names.every((name, at) => !at || names[at - 1] < name),
              "round.malformed", where, member);
      for (const name of names) {
        const kind = this.#objects.get(name);
        require(kind && (kinds as readonly string[]).includes(kind), "token.object_missing", where,
                `${member}: what it names is not there`);
        this.#named.add(name);
      }
    }
    require(token.request === null || bytesOfBase64(token.request, 1024), "round.malformed", where,
            "request");
    const stated = this.#checkToken(token, 65_536, where);
    require(stated.imprint === root, "token.not_valid", where, "the timestamp is over another root");
    return stated.hash;
  }

  /** Checks a token of a round or a renewal. */
  #checkToken(token: Document, most: number, where: string): Timestamp & { hash: string } {
    require(["qualified", "non_qualified", "development"].includes(token.kind), "round.malformed", where,
            "kind");
    const bytes = bytesOfBase64(token.token, most);
    require(bytes, "round.malformed", where, "token");
    const stated = timestampOf(bytes, where);
    require(stated.time === token.gen_time, "token.time_differs", where, "gen_time is not that of the token");
    const hash = sha256(bytes);
    this.#checkCover(token, hash, where);
    this.#checked.timestamps++;
    return { ...stated, hash };
  }

  /** Section 4.9: whether the stamp that a token names covers it. */
  #checkCover(token: Document, hash: string, where: string): void {
    if (token.renewal === null) return;
    const { path, stamp } = checkMembers(token.renewal, "path stamp", "renewal.malformed", where);
    const found = this.#stamps.get(stamp);
    require(hashes(40)(path), "renewal.malformed", where, "path");
    require(found, "renewal.missing", where, "the archive has no stamp that it names");
    require(topOf(hash, path) === found.imprint, "renewal.root", where,
            "the stamp that it names does not cover it");
    require(token.gen_time <= found.time, "renewal.older", where, "it was renewed before its time");
    found.isNamed = true;
  }

  async #readObjects(): Promise<void> {
    let [before, size] = ["", 0];
    for await (const line of this.#lines("validation")) {
      const given = documentOf(line, "der kind sha256", "validation.malformed", "validation");
      const der = bytesOfBase64(given.der, 262_144);
      require(der && ["certificate", "crl", "ocsp"].includes(given.kind) && sha256(der) === given.sha256,
              "validation.malformed", "validation", "der, kind or sha256");
      require(given.sha256 > before, "validation.not_ascending", "validation", "the objects do not ascend");
      before = given.sha256;
      size += der.length;
      this.#objects.set(given.sha256, given.kind);
      require(this.#objects.size <= OBJECTS_MAX && size <= OBJECTS_SIZE_MAX, "validation.count", "validation",
              "there are too many objects");
    }
  }

  async #readRenewals(): Promise<void> {
    let before = Infinity;
    for await (const line of this.#lines("renewals")) {
      const given = documentOf(line, "authority gen_time kind renewal stamp token", "renewal.malformed",
                               "renewals");
      const where = `renewals: stamp ${given.stamp}`;
      require(given.stamp < before, "renewal.not_descending", where, "the stamps do not descend");
      require(this.#stamps.size < STAMPS_MAX, "renewal.count", where, "there are too many stamps");
      before = given.stamp;
      const { imprint } = this.#checkToken(given, 131_072, where);
      this.#stamps.set(given.stamp, { imprint, time: given.gen_time, isNamed: false });
    }
  }
}

type Lines = AsyncGenerator<Uint8Array, void, undefined>;

interface Streams {
  events: Lines;
  leaves: Lines;
  rounds: Lines;
}

interface Segment {
  last: number;
  sealHash: string;
}

/** The end of a run of seals. */
interface Before {
  last: number;
  sealHash: string | null;
  chainHash: string;
}

function checkContinues(seal: Document, before: Before, code: string): void {
  require(seal.first_sequence === before.last + 1 && seal.previous_seal_hash === before.sealHash
          && seal.chain_hash_before === before.chainHash, code, `history: ${seal.segment_id}`,
          "the seal does not continue the one before it");
}
