// Content parts (docs/verify/evidence-format.md, section 9), compared with the events as these are read.

import { Wrong } from "./asn1.js";
import { documentOf, type Document } from "./evidence.js";
import type { Note } from "./archive.js";
import { Bytes, contentOf, digestOf, entriesOf, type Entry } from "./zip.js";

const SIZE_MAX = 1e9;
const ENTRIES_MAX = 60_000;
const DOCUMENT_MAX = 512;

/** The parts that are given with an archive. */
export class Parts {
  readonly #paths: readonly string[];
  readonly #note: Note;
  readonly #open = new Map<string, Part>();

  constructor(paths: readonly string[], note: Note) {
    this.#paths = paths;
    this.#note = note;
  }

  /** Opens them. Each has to be one that the manifest lists. */
  async open(manifest: Document): Promise<void> {
    const listed: Document[] = manifest.content_parts;
    for (const path of this.#paths) {
      const bytes = await Bytes.of(path);
      const at = bytes.size > SIZE_MAX ? -1 : await bytes.sha256().then((digest) =>
        listed.findIndex((one) => one.sha256 === digest && one.bytes === bytes.size));
      if (at < 0 || this.#open.has(listed[at].name)) {
        const stated = at < 0 ? await certificationOf(bytes) : "";
        await bytes.close();
        if (at >= 0) continue; // given twice
        if (stated === undefined || stated === manifest.certification_id) {
          throw new Wrong("part.not_listed", path, "the manifest lists no part with this SHA-256 and size");
        }
        this.#note("part.archive_not_given", "unchecked", path, `no signature covers it: it is of ${stated}`);
        continue;
      }
      const part = new Part(path, bytes, listed[at]);
      this.#open.set(listed[at].name, part);
      await part.open(manifest, at + 1);
    }
    for (const { name } of listed) {
      if (!this.#open.has(name)) {
        this.#note("part.not_given", "warning", name,
                   "this content part was not given, so its content was not checked");
      }
    }
  }

  /** Compares an event of content with the next one of the part that has to have it, if that is given. */
  async check(event: Document): Promise<void> {
    for (const part of this.#open.values()) if (part.covers(event)) await part.check(event);
  }

  async finish(): Promise<void> {
    for (const part of this.#open.values()) await part.finish();
  }

  async close(): Promise<void> {
    for (const part of this.#open.values()) await part.close();
  }
}

/** Which certification a part says that it belongs to; undefined where it is no part. */
async function certificationOf(bytes: Bytes): Promise<string | undefined> {
  try {
    const [head] = await entriesOf(bytes);
    const content = await contentOf(bytes, head, DOCUMENT_MAX);
    const members = "certification_id channel_id number v";
    return documentOf(content, members, "part.malformed", "").certification_id;
  } catch (error) {
    if (error instanceof Wrong || error instanceof TypeError) return undefined;
    throw error;
  }
}

class Part {
  #entries: Entry[] = [];
  #next = 1;
  #lines?: AsyncGenerator<Uint8Array, void, undefined>;

  constructor(private readonly path: string, private readonly bytes: Bytes,
              private readonly listed: Document) {}

  async open(manifest: Document, number: number): Promise<void> {
    this.#entries = await entriesOf(this.bytes).catch((error) => {
      throw error instanceof Wrong ? this.#wrong("part.malformed", error.message) : error;
    });
    const [head, ...others] = this.#entries;
    const index = others[others.length - 1];
    if (this.#entries.length > ENTRIES_MAX) throw this.#wrong("part.entry_count", "it has too many entries");
    if (head?.name !== "part.json") throw this.#wrong("part.head_misplaced", "its first entry is no part.json");
    if (index?.name !== "index.ndjson" || others.length < 2) {
      throw this.#wrong("part.index_misplaced", "its last entry is no index.ndjson, or there is no other");
    }
    await digestOf(this.bytes, head);
    await digestOf(this.bytes, index);
    const stated = documentOf(await contentOf(this.bytes, head, DOCUMENT_MAX),
                              "certification_id channel_id number v", "part.malformed", this.path);
    if (stated.certification_id !== manifest.certification_id || stated.number !== number
        || stated.channel_id !== manifest.channel_id) {
      throw this.#wrong("part.head_differs", "its head is of another part");
    }
    this.#lines = this.#linesOf(index);
  }

  covers({ modality, sequence }: Document): boolean {
    const { first_sequence: first, last_sequence: last } = this.listed;
    return modality === "content" && first <= sequence && sequence <= last;
  }

  async check(event: Document): Promise<void> {
    const { done, value } = await (this.#lines as AsyncGenerator<Uint8Array>).next();
    if (done) throw this.#wrong("part.event_differs", `event ${event.sequence} is not in it`);
    const item = documentOf(value, "entry event_id hash sequence", "part.malformed", this.path);
    const { sequence, event_id, hash } = event;
    if (item.sequence !== sequence || item.event_id !== event_id || item.hash !== hash) {
      throw this.#wrong("part.event_differs", `its index differs from event ${sequence}`);
    }
    const entry = this.#entries[this.#next++];
    const name = `content/${String(sequence).padStart(12, "0")}`;
    if (item.entry !== entry.name || ![`${name}.json`, `${name}.bin`].includes(entry.name)) {
      throw this.#wrong("part.entry_name", `the entry of event ${sequence} has another name`);
    }
    if (await digestOf(this.bytes, entry) !== hash) {
      throw this.#wrong("part.entry_digest", `the SHA-256 of ${entry.name} is another`);
    }
  }

  async finish(): Promise<void> {
    const { done } = await (this.#lines as AsyncGenerator<Uint8Array>).next();
    if (!done || this.#next !== this.#entries.length - 1) {
      throw this.#wrong("part.line_count", "it has more than the events of its range");
    }
  }

  async close(): Promise<void> {
    await this.bytes.close();
  }

  async *#linesOf(index: Entry): AsyncGenerator<Uint8Array, void, undefined> {
    let rest: Uint8Array = new Uint8Array(0);
    for await (const piece of this.bytes.pieces(index.at, index.at + index.size)) {
      let at = 0;
      for (let to; (to = piece.indexOf(0x0a, at)) >= 0; at = to + 1) {
        const line = Buffer.concat([rest, piece.subarray(at, to)]);
        rest = new Uint8Array(0);
        if (line.length > DOCUMENT_MAX) throw this.#wrong("part.malformed", "a line of its index is too long");
        yield line;
      }
      rest = Buffer.concat([rest, piece.subarray(at)]);
      if (rest.length > DOCUMENT_MAX) throw this.#wrong("part.malformed", "a line of its index is too long");
    }
    if (rest.length) throw this.#wrong("part.index_ends_early", "the last line of its index has no end");
  }

  #wrong(code: string, what: string): Wrong {
    return new Wrong(code, this.path, `the content part is wrong: ${what}`);
  }
}
