// Against a service: CONSTANCIA_URL, CONSTANCIA_KEY, CONSTANCIA_TEST_KEY, CONSTANCIA_HASH_KEY. Its
// archives are verified by CONSTANCIA_PROGRAM with the roots CONSTANCIA_TRUST.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { inspect } from "node:util";

import * as constancia from "@constancia/client";

const { CONSTANCIA_URL: baseUrl, CONSTANCIA_KEY: key } = process.env;
const connect = (more) => new constancia.Client({ baseUrl, key, ...more });
const client = connect();
const folder = await mkdtemp(join(tmpdir(), "constancia-"));
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
after(() => import("node:fs/promises").then(({ rm }) => rm(folder, { recursive: true })));

async function gather(items) {
  const found = [];
  for await (const one of items) found.push(one);
  return found;
}

async function eventually(fetch) {
  for (let tries = 0; ; tries++) {
    try {
      return await fetch();
    } catch (error) {
      if (!(error instanceof constancia.NotFound) || tries > 3000) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

test("a payload is registered once and read again", async () => {
  const ref = `order/ñ-${randomUUID()}`;
  const payload = { text: "ñ \u2028 \"", total: "49.90", nested: [{ a: null }] };
  const occurredAt = new Date("2026-01-31T08:30:00.123Z");
  const first = await client.register(ref, payload, { occurredAt });
  const again = await client.register(ref, payload, { occurredAt });
  assert.deepEqual([first.replayed, again.replayed], [false, true]);
  assert.equal(again.event_id, first.event_id);
  assert.equal(first.occurred_at, "2026-01-31T08:30:00.123000Z");
  const content = await client.content(first.event_id);
  assert.deepEqual(JSON.parse(new TextDecoder().decode(content.body)), payload);
  assert.equal(content.mediaType, "application/json");
  assert.equal(sha256(content.body), first.hash);
  assert.ok((await client.event(first.event_id)).proof.config_hash);
  await assert.rejects(client.register(ref, { other: 1 }), (error) =>
    error instanceof constancia.Conflict && error.code === "client_ref_conflict"
    && error.status === 409 && error.requestId && error.message.includes(error.requestId));
  await assert.rejects(client.register(randomUUID(), { a: [NaN] }), TypeError);
});

test("a file is sent in pieces and comes back", async () => {
  const whole = randomBytes(3_000_001);
  const source = join(folder, 'a "quoted" ñ.bin');
  await writeFile(source, whole);
  const event = await client.registerFile(randomUUID(), source);
  assert.equal(event.hash, await constancia.digest(source));
  const steps = [];
  const target = join(folder, "back");
  const found = await client.saveContent(event, target,
                                         { progress: (...at) => steps.push(at) });
  assert.equal(found, event.hash);
  assert.deepEqual(await readFile(target), whole);
  assert.deepEqual(steps.at(-1), [3_000_001, 3_000_001]);
  assert.ok(steps.length > 5);
  assert.deepEqual((await readdir(folder)).filter((name) => name.startsWith(".")), []);
  const { fileName } = await client.content(event.event_id);
  assert.equal(fileName, 'a "quoted" ñ.bin');
  for (const held of [new Uint8Array(whole.subarray(0, 70_000)), new Blob([whole])]) {
    const other = await client.registerFile(randomUUID(), held,
                                            { name: "x.bin", occurredAt: new Date() });
    assert.equal(other.hash, await constancia.digest(held));
  }
  await assert.rejects(client.registerFile(randomUUID(), join(folder, "missing")),
                       { code: "ENOENT" });
});

test("seal documents are saved", async () => {
  const event = await client.register(randomUUID(), {});
  const { sequence } = event;
  await client.wait(await client.certify({ seq_from: sequence, seq_to: sequence, seal_history: true }));
  const path = join(folder, "seals");
  for (const bounds of [{}, { from: 1, to: sequence }, { from: event.received_at }]) {
    assert.equal(await client.channelSeals(path, bounds), await constancia.digest(path));
    const seals = (await readFile(path, "utf8")).trim().split("\n").map((line) => JSON.parse(line));
    assert.ok(seals.at(-1).last_sequence >= sequence);
  }
  await assert.rejects(client.channelSeals(path, { from: 2, to: 1 }),
                       (error) => error instanceof constancia.InvalidRequest);
});

test("a file that is too large is refused as such", async () => {
  await assert.rejects(client.registerFile(randomUUID(), new Uint8Array(20_000_000)),
                       (error) => error instanceof constancia.TooLarge
                         && error.code === "payload_too_large");
});

const described = await client.description();
const since = (text) => ({ skip: !described.includes(text) && `the service has no ${text}` });

test("many declarations are registered in batches, and again with no effect", since("/events/batch"),
     async () => {
       const receipts = join(folder, "many.ndjson");
       const keeping = connect({ receipts });
       const run = randomUUID();
       const declared = Array.from({ length: 40 }, (_, n) => ({ clientRef: `${run}-${n}`, payload: { n } }));
       declared[20] = { clientRef: `${run}-3`, payload: { other: 1 } };
       declared[30] = { clientRef: `${run}-h`, hash: "ab".repeat(32) }; // the channel keeps content
       for (const isAgain of [false, true]) {
         const results = await gather(keeping.registerMany(declared));
         assert.deepEqual(results.map((one) => one.clientRef), declared.map((one) => one.clientRef));
         const { 20: conflict, 30: refused } = results;
         assert.ok(conflict.error instanceof constancia.Conflict);
         assert.equal(conflict.error.eventId, results[3].event.event_id);
         assert.ok(refused.error instanceof constancia.InvalidRequest);
         const events = results.flatMap(({ event }) => event ?? []);
         assert.equal(events.length, 38);
         assert.ok(events.every((one) => one.replayed === isAgain));
         const blank = { timestamp: 0, proof: 0, receipt: 0 }; // what only one of the two has
         assert.deepEqual({ ...await client.event(events[5].event_id), ...blank },
                          { ...events[5].toJSON(), ...blank });
       }
       assert.equal((await readFile(receipts, "utf8")).trim().split("\n").length, 76);
     });

test("content is found by its digest", since("name: hash\n"), async () => {
  const bytes = randomBytes(1000);
  assert.equal(await client.isOnRecord(bytes), false);
  const event = await client.registerFile(randomUUID(), bytes);
  assert.equal(await client.isOnRecord(bytes), true);
  const found = await gather(client.findByHash(event.hash.toUpperCase()));
  assert.deepEqual(found.map((one) => one.event_id), [event.event_id]);
  const hashes = connect({ key: process.env.CONSTANCIA_HASH_KEY });
  const algorithm = "sha-512";
  await hashes.registerDigest(randomUUID(), await constancia.digest(bytes, algorithm), { algorithm });
  assert.equal(await hashes.isOnRecord(new Blob([bytes])), true);
});

test("a digest is registered", async () => {
  const hashes = connect({ key: process.env.CONSTANCIA_HASH_KEY });
  const bytes = new TextEncoder().encode("contract");
  for (const algorithm of ["sha-256", "sha-512"]) {
    const hash = await constancia.digest(bytes, algorithm);
    const event = await hashes.registerDigest(randomUUID(), hash, { algorithm });
    assert.equal(event.hash, hash);
    assert.equal(event.hash_alg, algorithm);
    await assert.rejects(hashes.content(event.event_id), constancia.NotFound);
  }
  assert.equal((await hashes.channel()).current_config.modality, "hash_only");
  await assert.rejects(constancia.digest(bytes, "md5"), TypeError);
});

test("lists go on from page to page", async () => {
  const first = await client.register(randomUUID(), {});
  const refs = [first.client_ref];
  for (let n = 0; n < 4; n++) refs.push((await client.register(randomUUID(), { n })).client_ref);
  const range = { seq_from: first.sequence, seq_to: first.sequence + 4 };
  const found = await gather(client.events({ ...range, limit: 2 }));
  assert.deepEqual(found.map((one) => one.client_ref), refs);
  const turned = await gather(client.events({ ...range, order: "desc", limit: 2 }));
  assert.deepEqual(turned.map((one) => one.client_ref), [...refs].reverse());
  const [only, ...more] = await gather(client.events({ client_ref: refs[3] }));
  assert.deepEqual([only.event_id, more], [found[3].event_id, []]);
  assert.deepEqual(await gather(client.events({ client_ref: randomUUID() })), []);
  assert.deepEqual(await gather(client.events({ ...range, to: new Date("2026-01-01") })), []);
  const page = await client.eventsPage({ ...range, limit: 3 });
  assert.ok(page.has_more);
  const rest = await client.eventsPage({ ...range, limit: 3, cursor: page.next_cursor });
  assert.equal(rest.data.length, 2);
});

test("notices of the test mode are fetched", async () => {
  const tests = connect({ key: process.env.CONSTANCIA_TEST_KEY });
  const end = await tests.noticesPage();
  assert.deepEqual(end.data, []);
  const made = await tests.createNotice("event.sealed");
  const page = await tests.noticesPage({ cursor: end.next_cursor, wait: 1, limit: 1 });
  assert.deepEqual(page.data, [made]);
  assert.deepEqual((await tests.noticesPage({ cursor: page.next_cursor })).data, []);
  await assert.rejects(client.noticesPage(), constancia.InvalidRequest);
});

test("errors tell what is to be told, and no secret", async () => {
  await assert.rejects(client.register("", {}), (error) =>
    error instanceof constancia.InvalidRequest && error.code === "validation_error"
    && error.name === "InvalidRequest" && error.message.includes("client_ref"));
  const spanish = await connect({ language: "es" }).register("", {}).catch((error) => error);
  const english = await client.register("", {}).catch((error) => error);
  assert.notEqual(spanish.message.split(" (")[0], english.message.split(" (")[0]);
  await assert.rejects(connect({ key: "svc_live_unknown" }).balance(), constancia.Unauthorized);
  await assert.rejects(client.event("evt_../../channel"), constancia.NotFound);
  assert.ok(!inspect(client, { depth: 9, showHidden: true }).includes(key));
  assert.ok(!JSON.stringify(client).includes(key));
  for (const bad of ["svc_live_secret\n", "", "ñ"]) {
    assert.throws(() => connect({ key: bad }), (error) => !error.message.includes("secret"));
  }
  assert.throws(() => connect({ baseUrl: "http://user:hidden@127.0.0.1/v1" }),
                (error) => !error.message.includes("hidden"));
  const link = `${baseUrl}/downloads/CERT-2026-0000001/report-en.pdf?expires=9&mac=5ec2e75ec2e7`;
  await assert.rejects(client.download(link, join(folder, "none")), (error) =>
    error instanceof constancia.NotFound && !inspect(error).includes("5ec2e7"));
});

test("a forced refusal is told after the retries", async () => {
  const limited = connect({ key: process.env.CONSTANCIA_TEST_KEY, scenario: "rate_limited",
                            retry: { attempts: 2 } });
  await assert.rejects(limited.balance(), (error) =>
    error instanceof constancia.TooManyRequests && error.retryAfter >= 1);
});

test("what the service did is not done again when its answer is lost", async () => {
  const statuses = [];
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const { host, connection, "content-length": length, ...headers } = request.headers;
    const came = await fetch(new URL(request.url, baseUrl),
                             { method: request.method, headers, body: Buffer.concat(pieces) });
    statuses.push(came.status);
    if (statuses.length % 2) return response.socket.destroy();
    const replayed = came.headers.get("Idempotent-Replayed");
    response.writeHead(came.status, replayed ? { "Idempotent-Replayed": replayed } : {});
    response.end(Buffer.from(await came.arrayBuffer()));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const far = new constancia.Client({ baseUrl: `http://127.0.0.1:${server.address().port}`, key });
    const before = (await gather(client.certifications())).map((one) => one.certification_id);
    const event = await far.register(randomUUID(), { lost: true });
    const asked = await far.certify({ seq_from: event.sequence, seq_to: event.sequence });
    assert.ok(event.replayed && asked.replayed);
    assert.deepEqual(statuses, [201, 200, 202, 202]);
    const now = (await gather(client.certifications())).map((one) => one.certification_id);
    assert.deepEqual(now, [asked.certification_id, ...before]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("a certification from the request to its files", async () => {
  const receipts = join(folder, "receipts.ndjson");
  const keeping = connect({ receipts });
  const ref = randomUUID();
  const event = await keeping.register(ref, { certified: true });
  await keeping.register(ref, { certified: true });
  const file = await keeping.registerFile(randomUUID(), new TextEncoder().encode("held"));
  const asked = await client.certify({ seq_from: event.sequence, seq_to: file.sequence });
  assert.equal(asked.replayed, false);
  const seen = [];
  const done = await client.wait(asked, { timeout: 300_000, progress: (now) => seen.push(now) });
  assert.deepEqual([seen.at(-1).status, seen.at(-1).progress], ["completed", 1]);
  const files = await client.save(done, join(folder, "files"));
  const { documents } = await client.verify(done.verification_code);
  const digests = await Promise.all(files.map((path) => constancia.digest(path)));
  assert.deepEqual(digests.sort(), documents.map((one) => one.sha256).sort());
  const { CONSTANCIA_PROGRAM: program, CONSTANCIA_TRUST: trust } = process.env;
  const options = { receipts, trust, program, parts: files.filter((one) => one.includes("content-part")) };
  const archive = files.find((one) => one.endsWith(".zip") && !options.parts.includes(one));
  const own = await client.verify(archive, options);
  assert.deepEqual([own.verdict, own.findings, own.receipts], ["valid", [], { given: 3, matched: 3 }]);
  assert.equal(own.archive.certificationId, done.certification_id);
  assert.ok(own.archive.hasLog && own.notChecked[0].includes("--log-key"), own.notChecked.join());
  // What the file has is what `--receipt` takes.
  const words = ["verify", archive, "--trust", trust, "--receipt", receipts, "--json"];
  assert.equal(JSON.parse(execFileSync(program, words)).checked.receipts, 3);
  await writeFile(receipts, JSON.stringify({ ...event, receipt: null, hash: "0".repeat(64) }));
  const disputed = await client.verify(archive, options);
  assert.deepEqual([disputed.verdict, disputed.findings[0].code],
                   ["origin_not_established", "receipt.event_differs"]);
  const anyone = new constancia.Client({ baseUrl });
  const check = await anyone.verifyFile(files[0]);
  assert.ok(check.verification.valid);
  assert.equal(check.issued.certification_id, done.certification_id);
  assert.equal((await anyone.verifyDigest(digests[0])).verification_code, done.verification_code);
  assert.equal((await anyone.signers()).at(-1).used_until, null);
  assert.match(await anyone.description(), /^openapi: 3\.1/);
  const list = await gather(client.certifications({ limit: 1 }));
  assert.ok(list.some((one) => one.certification_id === done.certification_id));
  const record = await eventually(() => client.certificationEvidenceRecord(done.certification_id));
  const now = await client.certification(done.certification_id);
  assert.equal(sha256(record), now.evidence_record_sha256);
  assert.ok((await eventually(() => client.eventEvidenceRecord(event.event_id))).length > 100);
  await assert.rejects(client.certify({}), constancia.InvalidRequest);
});
