// Walks through the interface with our own client, as it was installed from its package.
// usage: walk.js BASE_URL CONTENT_KEY DIGEST_KEY FOLDER
import {
  ApiError, Client, Conflict, digest, type Certification, type Event, type Replayable,
} from "@constancia/client";

declare const process: { argv: string[] };

function expect(truth: boolean, what: string): asserts truth {
  if (!truth) throw new Error(what);
}

const [, program, baseUrl, content, digests, folder] = process.argv;
expect(!!program && !!baseUrl && !!content && !!digests && !!folder, "usage");

const client = new Client({ baseUrl, key: content });
const first: Replayable<Event> = await client.register("json", { total: "49.90" });
const again = await client.register("json", { total: "49.90" });
expect(again.replayed && again.event_id === first.event_id, "replayed");
const file = await client.registerFile("file", program);
expect(file.hash === (await digest(program)), "digest");
const references: string[] = [];
for await (const one of client.events({ limit: 1 })) references.push(one.client_ref);
expect(references.join() === "json,file", "list");
const asked = await client.certify({ seq_from: 1, seq_to: 2 });
const done: Certification = await client.wait(asked, { timeout: 300_000 });
const report = (await client.save(done, folder)).find((path) => path.endsWith(".pdf"));
expect(report !== undefined, "report");
expect((await client.verifyFile(report)).verification.valid, "valid");

const other = new Client({ baseUrl, key: digests });
await other.registerDigest("digest", file.hash);
const refused: unknown = await other.registerDigest("digest", first.hash).catch((error) => error);
expect(refused instanceof Conflict && refused instanceof ApiError, "a conflict is refused");
expect(refused.code === "client_ref_conflict", refused.code);
