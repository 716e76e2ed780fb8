// Receipts that keep themselves.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import * as constancia from "@constancia/client";
import { hangUp, say, script, scriptWith, sha256 } from "./scripted.mjs";

const EVENT = { event_id: "evt_1", client_ref: "r", hash: sha256("456"), new: { a: [1.5, null] } };
const receipt = (n) => ({ event_id: `evt_${n}`, text: "ñ\n".repeat(20) });
const lines = async (path) => (await readFile(path, "utf8")).split("\n").slice(0, -1);
const answered = (status, event, headers) => say(status, JSON.stringify(event), headers);
const REPLAY = { "Idempotent-Replayed": "true" };

async function inFolder(use) {
  const folder = await mkdtemp(join(tmpdir(), "constancia-"));
  try {
    await use(folder, join(folder, "receipts.ndjson"));
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function all(path) {
  const found = [];
  for (const one of await constancia.receiptFiles(path)) found.push(...await lines(one));
  return found.filter((line) => line.trim()).map((line) => JSON.parse(line).event_id);
}

test("each answer to a registration is a line of the file, as it came", () => {
  let file;
  return scriptWith((folder) => ({ receipts: (file = join(folder, "receipts.ndjson")) }),
                    async ({ client, folder }) => {
    const first = await client.register("r", { a: 1 });
    assert.deepEqual(JSON.parse(await readFile(file, "utf8")), EVENT);
    assert.ok((await client.register("r", { a: 1 })).replayed);
    await client.registerDigest("r", EVENT.hash);
    await writeFile(join(folder, "n.txt"), "456");
    await client.registerFile("r", join(folder, "n.txt"));
    await client.event("evt_1"); // is not a receipt
    const kept = await lines(file);
    assert.deepEqual(kept, Array(4).fill(JSON.stringify(EVENT)));
    assert.equal(JSON.stringify(first), kept[0]);
    assert.equal(first.replayed, false);
  }, answered(201, EVENT), answered(200, EVENT, REPLAY), answered(201, EVENT), answered(201, EVENT),
  answered(200, EVENT));
});

test("a receipt is kept even where another digest was recorded than was sent", () => {
  const kept = [];
  return scriptWith({ receipts: (event) => void kept.push(event) }, async ({ client }) => {
    await assert.rejects(client.registerFile("r", Buffer.from("other")), constancia.DigestMismatch);
    assert.equal(kept[0].event_id, "evt_1");
  }, answered(201, EVENT));
});

test("a sink is a function or has write, and is waited for", async () => {
  const kept = [];
  const slow = async (event) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    kept.push(JSON.stringify(event));
  };
  for (const receipts of [slow, { write: slow }]) {
    await scriptWith({ receipts }, ({ client }) => client.register("r", {}), answered(201, EVENT));
  }
  assert.deepEqual(kept, Array(2).fill(JSON.stringify(EVENT)));
  for (const receipts of [null, 7, {}]) {
    assert.throws(() => new constancia.Client({ baseUrl: "http://127.0.0.1:1", receipts }), TypeError);
  }
});

test("a receipt that is not kept is in the error, and nothing is registered without a place", () =>
  script(async ({ url, folder, seen }) => {
    const full = new Error("no space");
    const receipts = () => Promise.reject(full);
    const client = new constancia.Client({ baseUrl: url, receipts });
    await assert.rejects(client.register("r", {}), (error) =>
      error instanceof constancia.ReceiptNotKept && error.event.event_id === "evt_1"
      && error.cause === full && /evt_1.*not kept.*no space/.test(error.message)
      && JSON.stringify(error.event) === JSON.stringify(EVENT));
    const nowhere = new constancia.Client({ baseUrl: url, receipts: join(folder, "no", "such") });
    await assert.rejects(nowhere.register("r", {}), { code: "ENOENT" });
    await assert.rejects(nowhere.registerFile("r", Buffer.from("456")), { code: "ENOENT" });
    assert.equal(seen.length, 1);
  }, answered(201, EVENT)));

test("what was not registered is not kept", () => {
  let file;
  return scriptWith((folder) => ({ receipts: (file = join(folder, "receipts.ndjson")) }),
                    async ({ client }) => {
    await assert.rejects(client.register("r", {}), constancia.Conflict);
    assert.equal(await readFile(file, "utf8"), "");
  }, say(409, '{"code":"client_ref_conflict","message":"m"}'));
});

test("a line that a crash tore off is put aside", () => inFolder(async (folder, path) => {
  const whole = JSON.stringify(receipt(1)) + "\n";
  await writeFile(path, whole + whole.slice(0, 30));
  const file = new constancia.ReceiptFile(path);
  await file.write(receipt(2));
  assert.deepEqual(await all(path), ["evt_1", "evt_2"]);
  assert.ok((await readFile(path, "utf8")).startsWith(whole));
  assert.equal(await readFile(`${path}.torn`, "utf8"), whole.slice(0, 30) + "\n");
  // Only the end is missing: it is a receipt.
  await appendFile(path, whole.trimEnd());
  await file.write(receipt(3));
  assert.deepEqual(await all(path), ["evt_1", "evt_2", "evt_1", "evt_3"]);
  assert.deepEqual(await readdir(folder), ["receipts.ndjson", "receipts.ndjson.torn"]);
}));

test("a line that another process is just writing is not torn", () => inFolder(async (_, path) => {
  const line = JSON.stringify(receipt(1)) + "\n";
  await writeFile(path, line.slice(0, 40));
  const writing = new constancia.ReceiptFile(path).write(receipt(2));
  await new Promise((resolve) => setTimeout(resolve, 60));
  await appendFile(path, line.slice(40));
  await writing;
  assert.deepEqual(await all(path), ["evt_1", "evt_2"]);
}));

test("a file is renamed before it is too large, over none that is there", () =>
  inFolder(async (folder, path) => {
    const size = JSON.stringify(receipt(1)).length + 5;
    const file = new constancia.ReceiptFile(path, { rotateBytes: 3 * size });
    await writeFile(`${path}.2`, "precious\n");
    for (let n = 1; n <= 8; n++) await file.write(receipt(n));
    assert.equal(await readFile(`${path}.2`, "utf8"), "precious\n");
    assert.deepEqual((await readdir(folder)).sort(), ["receipts.ndjson", "receipts.ndjson.2",
      ...(await file.files()).slice(1, -1).map((one) => one.slice(folder.length + 1))].sort());
    await rm(`${path}.2`);
    assert.deepEqual(await all(path), Array.from({ length: 8 }, (_, n) => `evt_${n + 1}`));
    for (const one of await file.files()) assert.ok((await readFile(one)).length <= 3 * size);
    const never = new constancia.ReceiptFile(join(folder, "never"), { rotateBytes: 0 });
    for (let n = 1; n <= 8; n++) await never.write(receipt(n));
    assert.equal((await never.files()).length, 1);
    assert.throws(() => new constancia.ReceiptFile(path, { rotateBytes: -1 }), TypeError);
  }));

test("a file that cannot be renamed grows on", { skip: process.platform === "win32" || !process.geteuid() },
     () => inFolder(async (folder, path) => {
       const file = new constancia.ReceiptFile(path, { rotateBytes: 1 });
       await file.write(receipt(1));
       const { chmod } = await import("node:fs/promises");
       await chmod(folder, 0o500);
       await file.write(receipt(2)).finally(() => chmod(folder, 0o700));
       assert.deepEqual(await all(path), ["evt_1", "evt_2"]);
     }));

const PROCESSES = 4;
const EACH = 60;

test("several processes lose no receipt, nor half of one, while the file is renamed", () =>
  inFolder(async (folder, path) => {
    const own = join(folder, "writer.mjs");
    const client = new URL("./node_modules/@constancia/client/dist/index.js", import.meta.url);
    await writeFile(own, `
      import { ReceiptFile } from ${JSON.stringify(client.href)};
      const [path, name] = process.argv.slice(2);
      const files = [1, 2].map(() => new ReceiptFile(path, { rotateBytes: 4000 }));
      await Promise.all(files.map(async (file, at) => {
        for (let n = 0; n < ${EACH}; n++) {
          await file.write({ event_id: name + "-" + at + "-" + n, text: "ñ".repeat(n) });
        }
      }));
    `);
    await Promise.all(Array.from({ length: PROCESSES }, (_, process_) => new Promise((done, failed) => {
      const writer = spawn(process.execPath, [fileURLToPath(new URL(`file://${own}`)), path,
                                              `p${process_}`], { stdio: "inherit" });
      writer.on("close", (code) => code === 0 ? done() : failed(new Error(`exit ${code}`)));
    })));
    const found = await all(path);
    assert.equal(found.length, PROCESSES * 2 * EACH);
    assert.equal(new Set(found).size, found.length);
    assert.ok((await constancia.receiptFiles(path)).length > 5);
  }));

// ---- batches ----

const batched = (refusals = {}, replayed = []) => (response, _, body) => {
  const results = body.toString().trim().split("\n").map((line) => {
    const { client_ref, hash = sha256(line) } = JSON.parse(line);
    const error = refusals[client_ref];
    if (error) return { message: "m", client_ref, retry_after: null, ...error };
    const http_status = replayed.includes(client_ref) ? 200 : 201;
    return { event_id: `evt_${client_ref}`, client_ref, hash: hash.toLowerCase(), http_status };
  });
  say(200, results.map((one) => JSON.stringify(one) + "\n").join(""))(response);
};

async function gather(items) {
  const found = [];
  for await (const one of items) found.push(one);
  return found;
}

const many = (count) => Array.from({ length: count }, (_, n) => ({ clientRef: `${n}`, payload: { n } }));

test("many declarations go in batches of 1,000 and come back in order", () => {
  const kept = [];
  const receipts = { write: () => assert.fail(), writeAll: (events) => void kept.push(events.length) };
  return scriptWith({ receipts }, async ({ client, seen }) => {
    async function* source() {
      yield* many(1001);
      yield { clientRef: "d", hash: sha256("d").toUpperCase(), occurredAt: new Date(0) };
    }
    const results = await gather(client.registerMany(source()));
    assert.deepEqual(results.map((one) => one.clientRef),
                     [...many(1001).map((one) => one.clientRef), "d"]);
    assert.ok(results.every((one) => one.event && !one.event.replayed && !one.error));
    assert.deepEqual(kept, [1000, 2]);
    assert.deepEqual(seen.map((one) => [one.url, one["content-type"]]),
                     Array(2).fill(["/v1/events/batch", "application/x-ndjson"]));
    assert.deepEqual(JSON.parse(seen[1].body.toString().split("\n")[1]), {
      client_ref: "d", hash: sha256("d").toUpperCase(), hash_alg: "sha-256",
      occurred_at: "1970-01-01T00:00:00.000Z",
    });
    assert.deepEqual(await gather(client.registerMany([])), []);
  }, batched(), batched());
});

test("a batch has 8 MiB at most", () => script(async ({ client, seen }) => {
  const payload = { text: "ñ".repeat(120_000) };
  const large = Array.from({ length: 40 }, (_, n) => ({ clientRef: `${n}`, payload }));
  assert.equal((await gather(client.registerMany(large))).length, 40);
  assert.equal(seen.length, 2);
  assert.ok(seen.every((one) => one.body.length <= 8 << 20));
  assert.ok(seen[0].body.length > 7 << 20);
}, batched(), batched()));

test("a refusal is the result of its declaration alone", () => {
  const kept = [];
  return scriptWith({ receipts: (event) => void kept.push(event.event_id) }, async ({ client }) => {
    const [one, two, three] = await gather(client.registerMany(many(3)));
    assert.ok(one.event.replayed);
    assert.ok(two.error instanceof constancia.Conflict && two.error.eventId === "evt_9");
    assert.ok(three.error instanceof constancia.LimitBlocked && three.error.retryAfter === 40_000);
    assert.deepEqual(kept, ["evt_0"]);
    assert.equal(JSON.stringify(one.event).includes("http_status"), false);
  }, batched({ 1: { http_status: 409, code: "client_ref_conflict", event_id: "evt_9" },
               2: { http_status: 422, code: "limit_blocked", retry_after: 40_000 } }, ["0"]));
});

test("what was refused for want of room is sent again, and a lost batch as well", () =>
  script(async ({ client, seen }) => {
    const results = await gather(client.registerMany(many(3)));
    assert.deepEqual(results.map((one) => one.event?.event_id), ["evt_0", "evt_1", "evt_2"]);
    const sent = seen.map((one) => one.body.toString().trim().split("\n")
      .map((line) => JSON.parse(line).client_ref));
    assert.deepEqual(sent, [["0", "1", "2"], ["0", "1", "2"], ["1"]]);
    assert.deepEqual(seen[0].body, seen[1].body);
  }, hangUp, batched({ 1: { http_status: 429, code: "rate_limited", retry_after: 1 } }), batched()));

test("what is refused to the end is a result", () => {
  const busy = batched({ 1: { http_status: 503, code: "temporarily_unavailable" } });
  return script(async ({ client }) => {
    const [one, two] = await gather(client.registerMany(many(2)));
    assert.ok(one.event && two.error instanceof constancia.Unavailable);
  }, busy, busy, busy, busy);
});

test("a batch that fails as a whole throws, and is not tried beyond its attempts", () =>
  script(async ({ client, seen }) => {
    await assert.rejects(gather(client.registerMany(many(2))), constancia.Unauthorized);
    await assert.rejects(gather(client.registerMany(many(2))), constancia.ConnectionFailed);
    assert.equal(seen.length, 5);
  }, say(401, '{"code":"invalid_key","message":"m"}'), hangUp, hangUp, hangUp, hangUp));

test("an answer that does not fit the batch is refused, and kept is what was recorded", () => {
  const kept = [];
  const line = (more) => JSON.stringify({ ...EVENT, client_ref: "0", http_status: 201, ...more });
  const bad = ["", line() + "\n" + line(), "<html>", "null", "[]", line({ client_ref: "r" }),
               line({ http_status: "201" }), line({ http_status: 302 }), line({ http_status: 409 }),
               line({ http_status: undefined }), '{"http_status":409}', line({ event_id: null })];
  return scriptWith({ receipts: (event) => void kept.push(event.event_id) }, async ({ client }) => {
    for (const _ of bad) {
      await assert.rejects(gather(client.registerMany(many(1))), constancia.UnexpectedAnswer);
    }
    assert.deepEqual(kept, []);
    const declared = [{ clientRef: "0", hash: sha256("other") }];
    await assert.rejects(gather(client.registerMany(declared)), constancia.DigestMismatch);
    assert.deepEqual(kept, ["evt_1"]);
  }, ...bad.map((body) => say(200, body)), say(200, line()));
});

test("a batch is sent in halves where the service takes smaller ones", () => {
  const small = (response, headers, body) => body.toString().trim().split("\n").length > 2
    ? say(413, '{"code":"payload_too_large","message":"m"}')(response) : batched()(response, headers, body);
  return script(async ({ client, seen }) => {
    const results = await gather(client.registerMany(many(5)));
    assert.deepEqual(results.map((one) => one.event.event_id), many(5).map((one) => `evt_${one.clientRef}`));
    assert.deepEqual(seen.map((one) => one.body.toString().trim().split("\n").length), [5, 3, 2, 1, 2]);
  }, small, small, small, small, small);
});

test("a declaration that no batch holds is refused alone", () => script(async ({ client }) => {
  const [one, two] = await gather(client.registerMany(many(2)));
  assert.ok(one.error instanceof constancia.TooLarge && two.event);
}, ...[2, 1].map(() => say(413, '{"code":"payload_too_large","message":"m"}')), batched()));

test("the receipt of another declaration is kept, and an error", () => {
  const kept = [];
  return scriptWith({ receipts: (event) => void kept.push(event.event_id) }, async ({ client }) => {
    await assert.rejects(client.register("other", {}), constancia.UnexpectedAnswer);
    await assert.rejects(client.registerFile("other", Buffer.from("456")), constancia.UnexpectedAnswer);
    await assert.rejects(client.registerDigest("r", sha256("other")), constancia.DigestMismatch);
    assert.equal((await client.registerDigest("r", sha256("456").toUpperCase())).event_id, "evt_1");
    assert.deepEqual(kept, Array(4).fill("evt_1"));
  }, ...Array(4).fill(answered(201, EVENT)));
});

test("a declaration that JSON does not have is not sent", () => script(async ({ client }) => {
  for (const payload of [{ a: NaN }, { when: new Date(NaN) }, { a: [new Date("x")] }]) {
    await assert.rejects(gather(client.registerMany([{ clientRef: "r", payload }])), TypeError);
    await assert.rejects(client.register("r", payload), TypeError);
  }
  await assert.rejects(client.register("r", {}, { occurredAt: new Date(NaN) }), TypeError);
  await assert.rejects(client.certify({ from: new Date(NaN), to: new Date() }), TypeError);
}));

// ---- by content ----

const page = (...data) => say(200, JSON.stringify({ data, has_more: false, next_cursor: null }));

test("content is looked up by its digest, taken here", () => script(async ({ client, seen, folder }) => {
  const path = join(folder, "n.txt");
  await writeFile(path, "456");
  assert.equal(await client.isOnRecord(path), true);
  assert.equal(await client.isOnRecord(new Blob(["4", "56"])), true);
  assert.equal(await client.isOnRecord(Buffer.from("456")), false);
  const sha512 = createHash("sha512").update("456").digest("hex");
  const asked = seen.map((one) => new URL(one.url, "http://x").searchParams)
    .map((one) => [one.get("hash"), one.get("hash_alg")]);
  const [short, long] = [[sha256("456"), "sha-256"], [sha512, "sha-512"]];
  assert.deepEqual(asked, [short, short, long, short, long]);
  assert.ok(seen.every((one) => one.url.startsWith("/v1/events?")));
  const [found] = await gather(client.findByHash(EVENT.hash.toUpperCase()));
  assert.equal(found.event_id, "evt_1");
}, page(EVENT), page(), page({ ...EVENT, hash: createHash("sha512").update("456").digest("hex") }),
page(), page(), page(EVENT)));

test("a service that ignores the digest is not believed", () => script(async ({ client }) => {
  await assert.rejects(client.isOnRecord(Buffer.from("other")), constancia.UnexpectedAnswer);
  for (const hash of ["", "ab", "z".repeat(64), "a".repeat(128)]) {
    await assert.rejects(gather(client.findByHash(hash)), TypeError);
  }
}, page(EVENT)));
