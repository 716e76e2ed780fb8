// Against servers that fail as the service only does in bad hours, and notices.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { link, lstat, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";

import * as constancia from "@constancia/client";
import { chunked, cut, hangUp, say, script, scriptWith, sha256 } from "./scripted.mjs";

const BALANCE = '{"balance":1,"operational":true,"unpaid_events":0}';

test("retries wait at least as long as told", () => script(async ({ client, seen }) => {
  const start = performance.now();
  assert.equal((await client.balance()).balance, 1);
  assert.ok(performance.now() - start >= 2000);
  assert.equal(seen[0].url, "/v1/account/balance");
  assert.match(seen[0]["user-agent"], /^shop\/1 constancia-typescript\//);
  assert.equal(seen[0].authorization, "Bearer svc_test_key");
  assert.equal(seen[0]["accept-encoding"], "identity");
}, say(503, "", { "Retry-After": 1 }), say(429, "", { "Retry-After": 1 }), say(502),
say(200, BALANCE)));

test("what is too long to wait for is told at once", () => script(async ({ client, seen }) => {
  await assert.rejects(client.balance(), { status: 429, retryAfter: 40000 });
  await assert.rejects(client.balance(), (error) => error instanceof constancia.ServerError
    && error.incidentId === "inc_1" && error.message.includes("inc_1"));
  await assert.rejects(client.balance(), { status: 302 });
  await assert.rejects(client.balance(), constancia.UnexpectedAnswer);
  assert.equal(seen.length, 4);
}, say(429, "", { "Retry-After": 40000 }),
say(500, '{"code":"internal","message":"m","incident_id":"inc_1"}'),
say(302, "", { Location: "http://127.0.0.1:1/" }), say(200, "<html>")));

test("a lost connection repeats what may be repeated", () => script(async ({ client, seen }) => {
  assert.ok((await client.balance()).operational);
  assert.equal(seen.length, 3);
}, hangUp, cut(BALANCE.slice(0, 9), BALANCE.length), say(200, BALANCE)));

const ACCEPTED = '{"certification_id":"CERT-1"}';

test("a certification is asked for under one key in all attempts", () =>
  script(async ({ client, seen }) => {
    const range = { seq_from: 1, seq_to: 1 };
    assert.equal((await client.certify(range)).replayed, false);
    const [first, ...others] = seen.map((one) => one["idempotency-key"]);
    assert.deepEqual(others, [first, first, first]);
    assert.ok(first.length >= 22);
    assert.ok((await client.certify(range)).replayed);
    assert.notEqual(seen.at(-1)["idempotency-key"], first);
    await client.certify(range, { idempotencyKey: "own" });
    assert.equal(seen.at(-1)["idempotency-key"], "own");
    for (const idempotencyKey of ["", "a b", "a\n", "ñ", "k".repeat(256)]) {
      await assert.rejects(client.certify(range, { idempotencyKey }), TypeError);
    }
  }, hangUp, say(503, "", { "Retry-After": 1 }), say(502), say(202, ACCEPTED),
  say(202, ACCEPTED, { "Idempotent-Replayed": "true" }), say(202, ACCEPTED)));

test("a certification that failed tells the key for its repetition", () =>
  script(async ({ client, seen }) => {
    const range = { seq_from: 1, seq_to: 1 };
    for (const kind of [constancia.ConnectionFailed, constancia.ServerError,
                        constancia.UnexpectedAnswer]) {
      const failed = await client.certify(range).catch((error) => error);
      assert.ok(failed instanceof kind);
      assert.ok(failed.idempotencyKey);
      assert.equal(failed.idempotencyKey, seen.at(-1)["idempotency-key"]);
      await client.certify(range, { idempotencyKey: failed.idempotencyKey });
      assert.equal(seen.at(-1)["idempotency-key"], failed.idempotencyKey);
    }
    await assert.rejects(client.balance(), { status: 404, idempotencyKey: undefined });
  }, hangUp, hangUp, hangUp, hangUp, say(202, ACCEPTED), say(500), say(202, ACCEPTED),
  say(202, "<html>"), say(202, ACCEPTED), say(404)));

const UNHEARD = '{"code":"unheard_of","message":"m","event_id":"evt_1","new":{"a":[]}}';

test("a code that is not known yet does no harm", () => script(async ({ client }) => {
  for (const kind of [constancia.Conflict, constancia.InvalidRequest, constancia.ApiError,
                      constancia.ServerError]) {
    await assert.rejects(client.balance(), (error) => error instanceof kind
      && error.code === "unheard_of" && error.eventId === "evt_1");
  }
  await assert.rejects(client.balance(), constancia.InvalidRequest);
}, say(409, UNHEARD), say(400, UNHEARD), say(422, UNHEARD), say(507, UNHEARD),
say(400, '{"code":7,"message":["m"]}')));

test("nothing that listens is a failed connection", async () => {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${server.address().port}`;
  await new Promise((resolve) => server.close(resolve));
  const client = new constancia.Client({ baseUrl, retry: { attempts: 2 } });
  await assert.rejects(client.certify({ seq_from: 1, seq_to: 1 }),
                       (error) => error instanceof constancia.ConnectionFailed && !error.sent);
});

test("a header that cannot be sent is the caller's mistake", () => {
  const baseUrl = "http://127.0.0.1:1";
  for (const more of [{ userAgent: "x\ny" }, { userAgent: "ñ€" }, { language: "e\rn" },
                      { scenario: "a\0" }, { scenario: "a", headerPrefix: "S V C" }]) {
    assert.throws(() => new constancia.Client({ baseUrl, ...more }), TypeError);
  }
});

test("silence ends", () => script(async ({ url }) => {
  const client = new constancia.Client({ baseUrl: url, timeout: 300, retry: { attempts: 1 } });
  await assert.rejects(client.balance(), /no sign of the service/);
}, () => undefined));

const EVENT = { event_id: "e", client_ref: "r", hash: sha256("456") };

test("a file is sent again from its beginning, and what was recorded is compared", () =>
  script(async ({ client, seen, folder }) => {
    const path = join(folder, "n.txt");
    await writeFile(path, "456");
    assert.equal((await client.registerFile("r", path)).event_id, "e");
    assert.deepEqual(seen[0].body, seen[1].body);
    assert.match(seen[1].body.toString(), /filename="n\.txt"[^]*456\r\n--/);
    assert.equal(Number(seen[0]["content-length"]), seen[0].body.length);
    await assert.rejects(client.registerFile("r", path), constancia.DigestMismatch);
  }, hangUp, say(201, JSON.stringify(EVENT)), say(201, JSON.stringify({ ...EVENT, hash: "0" }))));

test("a download goes on where it was cut", () => {
  const whole = randomBytes(300_000);
  const steps = [];
  return script(async ({ client, url, seen, folder }) => {
    const target = join(folder, "evidence.zip");
    await client.download(`${url}/x?mac=1`, target,
                          { sha256: sha256(whole), progress: (...at) => steps.push(at) });
    assert.deepEqual(seen.map((one) => one.range), [undefined, "bytes=100000-", "bytes=150000-"]);
    assert.ok(seen.every((one) => one["if-range"] === undefined));
    assert.equal(seen[0].authorization, undefined);
    assert.deepEqual(await readFile(target), whole);
    assert.deepEqual(steps.at(-1), [300_000, 300_000]);
    assert.deepEqual(await readdir(folder), ["evidence.zip"]);
  },
  cut(whole.subarray(0, 100_000), whole.length, { taken: () => steps.at(-1)?.[0] === 100_000 }),
  cut(whole.subarray(100_000, 150_000), 200_000, {
    status: 206, headers: { "Content-Range": "bytes 100000-299999/300000" },
    taken: () => steps.at(-1)[0] === 150_000,
  }),
  say(206, whole.subarray(150_000), { "Content-Range": "bytes 150000-299999/300000" }));
});

test("what changed between its pieces is fetched anew", () => {
  let received = 0;
  const arrived = (at) => () => received === at;
  return script(async ({ url, seen, folder }) => {
    const client = new constancia.Client({ baseUrl: url, retry: { attempts: 5 } });
    const target = join(folder, "evidence.zip");
    await client.download(`${url}/x`, target, { progress: (at) => (received = at) });
    assert.deepEqual(seen.map((one) => [one.range, one["if-range"]]), [
      [undefined, undefined], ["bytes=40-", '"1"'], [undefined, undefined], ["bytes=40-", '"2"'],
      ["bytes=60-", '"2"']]);
    assert.equal(await readFile(target, "utf8"), "new ".repeat(20));
  }, cut("old ".repeat(10), 80, { headers: { ETag: '"1"' }, taken: arrived(40) }),
  cut("new ".repeat(5), 80, { headers: { ETag: 'W/"2"' }, taken: arrived(20) }),
  cut("new ".repeat(10), 80, { headers: { ETag: '"2"' }, taken: arrived(40) }),
  say(206, "new ".repeat(5), { "Content-Range": "bytes 40-59/80", ETag: '"2"' }),
  say(206, "new ".repeat(5), { "Content-Range": "bytes 60-79/80", ETag: '"2"' }));
});

test("more than the file is refused", () => {
  let received = 0;
  return script(async ({ client, url, folder }) => {
    await assert.rejects(client.download(`${url}/x`, join(folder, "file"), { progress: (at) => (received = at) }),
                         constancia.UnexpectedAnswer);
    assert.deepEqual(await readdir(folder), []);
  }, cut("01234", 10, { headers: { ETag: '"1"' }, taken: () => received === 5 }),
  say(206, "5".repeat(1000), { "Content-Range": "bytes 5-9/10", ETag: '"1"' }));
});

test("a rest of another file is refused where no digest tells", async () => {
  const told = { "Content-Range": "bytes 40-79/80" };
  for (const [ETag, rest] of [['"1"', { ETag: '"2"', ...told }], ['"1"', told], ["", told],
                              ['"1"', { ETag: '"1"', "Content-Range": "bytes 40-79/*" }]]) {
    let received = 0;
    await script(async ({ client, url, folder }) => {
      await assert.rejects(client.download(`${url}/x`, join(folder, "file"), {
        progress: (at) => (received = at) }), constancia.UnexpectedAnswer);
      assert.deepEqual(await readdir(folder), []);
    }, cut("old ".repeat(10), 80, { headers: { ETag }, taken: () => received === 40 }),
    say(206, "new ".repeat(10), rest));
  }
});

test("two downloads of one file have a part each", () => {
  const whole = randomBytes(200_000);
  const begun = {};
  begun.seen = new Promise((resolve) => (begun.tell = resolve));
  let first, rest;
  return script(async ({ client, url, seen, folder }) => {
    const target = join(folder, "file");
    first = client.download(`${url}/x`, target, { sha256: sha256(whole), progress: begun.tell });
    await begun.seen;
    await assert.rejects(client.download(`${url}/x`, target, { sha256: sha256(whole) }),
                         constancia.DigestMismatch);
    assert.deepEqual(await readFile(target), whole);
    assert.deepEqual(await readdir(folder), ["file"]);
    assert.deepEqual(seen.map((one) => one.range), [undefined, undefined]);
  }, (response) => {
    rest = response.writeHead(200, { "Content-Length": whole.length });
    rest.write(whole.subarray(0, 100_000));
  }, async (response) => {
    rest.end(whole.subarray(100_000));
    await first;
    say(200, "other")(response);
  });
});

test("what an earlier call left is claimed by one alone", () => {
  const whole = Buffer.alloc(1000, "w");
  return script(async ({ client, url, seen, folder }) => {
    const target = join(folder, "file");
    const rest = join(folder, `.file.${sha256(whole).slice(0, 32)}.rest`);
    await writeFile(rest, whole.subarray(0, 500));
    const options = { sha256: sha256(whole) };
    await Promise.all([1, 2].map(() => client.download(`${url}/x`, target, options)));
    assert.deepEqual(seen.map((one) => one.range).sort(), ["bytes=500-", undefined]);
    assert.deepEqual(await readFile(target), whole);
    assert.deepEqual(await readdir(folder), ["file"]);
  }, ...[1, 2].map(() => (response, { range }) => range === undefined ? say(200, whole)(response)
    : say(206, whole.subarray(500), { "Content-Range": "bytes 500-999/1000" })(response)));
});

const NEVER = { skip: process.platform === "win32" };
for (const [what, plant] of [["a symbolic link", symlink], ["a hard link", link],
                             ["a pipe", (_, rest) => execFileSync("mkfifo", [rest])]]) {
  test(`${what} at the place of a rest is not written to`, NEVER, () => {
    const whole = Buffer.alloc(1000, "w");
    return script(async ({ client, url, folder }) => {
      const [target, victim] = [join(folder, "file"), join(folder, "victim")];
      await writeFile(victim, "precious");
      await plant(victim, join(folder, `.file.${sha256(whole).slice(0, 32)}.rest`));
      await client.download(`${url}/x`, target, { sha256: sha256(whole) });
      assert.deepEqual(await readFile(target), whole);
      assert.ok((await lstat(target)).isFile());
      assert.equal(await readFile(victim, "utf8"), "precious");
    }, say(200, whole));
  });
}

test("a rest of another user is not gone on with", NEVER, () => {
  const whole = Buffer.alloc(1000, "w");
  const real = process.geteuid;
  return script(async ({ client, url, seen, folder }) => {
    const target = join(folder, "file");
    await writeFile(join(folder, `.file.${sha256(whole).slice(0, 32)}.rest`), "w");
    process.geteuid = () => real() + 1;
    await client.download(`${url}/x`, target, { sha256: sha256(whole) });
    assert.equal(seen[0].range, undefined);
    assert.deepEqual(await readFile(target), whole);
  }, say(200, whole)).finally(() => (process.geteuid = real));
});

const endless = chunked(Buffer.alloc(65536), 1000);

test("a download without a length has a bound", () => {
  const whole = Buffer.alloc(1000, "w");
  const more = Buffer.alloc(1001, "w");
  return scriptWith({ downloadMax: 1000 }, async ({ client, url, folder }) => {
    const target = join(folder, "file");
    await client.download(`${url}/x`, target, { sha256: sha256(whole) });
    await rm(target);
    for (let number = 0; number < 3; number++) {
      await assert.rejects(client.download(`${url}/x`, target, { sha256: sha256(whole) }), (error) =>
        error instanceof constancia.UnexpectedAnswer && error.message.includes("1000 bytes"));
      assert.deepEqual(await readdir(folder), []);
    }
  }, chunked(whole), endless, chunked(more), say(200, more));
});

test("the answer to a refused request has a bound", { timeout: 30_000 }, () => script(async ({ client }) => {
  await assert.rejects(client.balance(), (error) => error instanceof constancia.ApiError && error.status === 400);
}, (response) => {
  response.writeHead(400, { "Transfer-Encoding": "chunked" });
  const more = () => response.destroyed || response.write(Buffer.alloc(65536)) === false || setImmediate(more);
  response.on("drain", more);
  more();
}));

const completed = (url) => ({ certification_id: "CERT-1", status: "completed",
                              verification_code: "SVC-2026-AAAA-AAAA", evidence_url: `${url}/files/CERT-1.zip` });

test("saving takes no more than is on record", () => {
  const issued = say(200, JSON.stringify({ documents: [{ name: "CERT-1.zip", bytes: 7, sha256: sha256("content") }] }));
  return script(async ({ client, url, folder }) => {
    const [saved] = await client.save(completed(url), folder);
    await rm(saved);
    await assert.rejects(client.save(completed(url), folder), (error) =>
      error instanceof constancia.UnexpectedAnswer && error.message.includes("7 bytes"));
    assert.deepEqual(await readdir(folder), []);
  }, issued, chunked("content"), issued, endless);
});

test("saving names the file that is missing", () => script(async ({ client, url, folder }) => {
  for (const [member, changed] of [["evidence_url", { evidence_url: null }], ["reports[0].url", { reports: [{}] }],
                                   ["content_parts[0].url", { content_parts: [{}] }]]) {
    await assert.rejects(client.save({ ...completed(url), ...changed }, join(folder, "files")), (error) =>
      error instanceof constancia.UnexpectedAnswer
      && error.message.includes(`CERT-1 is completed and has no ${member}`));
  }
  assert.deepEqual(await readdir(folder), []);
}));

test("a download that failed is resumed by the next call", () => {
  const whole = randomBytes(200_000);
  let received = 0;
  return script(async ({ client, url, folder }) => {
    const target = join(folder, "part.zip");
    await writeFile(target, "what was there");
    const options = { sha256: sha256(whole), progress: (at) => (received = at) };
    await assert.rejects(client.download(`${url}/x`, target, options), constancia.ConnectionFailed);
    assert.equal(await readFile(target, "utf8"), "what was there");
    await client.download(`${url}/x`, target, options);
    assert.deepEqual(await readFile(target), whole);
    assert.deepEqual(await readdir(folder), ["part.zip"]);
  }, cut(whole.subarray(0, 90_000), whole.length, { taken: () => received === 90_000 }), hangUp, hangUp, hangUp,
  say(206, whole.subarray(90_000), { "Content-Range": "bytes 90000-199999/200000" }));
});

test("a spoilt rest is fetched anew, and a wrong file does not appear", () => {
  const whole = Buffer.alloc(1000, "w");
  const digest = sha256(whole);
  return script(async ({ client, url, folder }) => {
    const target = join(folder, "file");
    const rest = join(folder, `.file.${digest.slice(0, 32)}.rest`);
    for (const left of [Buffer.alloc(500), Buffer.alloc(2000), whole]) {
      await writeFile(rest, left);
      await client.download(`${url}/x`, target, { sha256: digest.toUpperCase() });
      assert.deepEqual(await readFile(target), whole);
      await rm(target);
    }
    await assert.rejects(client.download(`${url}/x`, target, { sha256: digest }),
                         constancia.DigestMismatch);
    await assert.rejects(client.download(`${url}/x`, target), constancia.ConnectionFailed);
    assert.deepEqual(await readdir(folder), []);
  }, say(206, whole.subarray(500), { "Content-Range": "bytes 500-999/1000" }), say(200, whole),
  say(416, "", { "Content-Range": "bytes */1000" }), say(200, whole), say(200, "other"),
  cut("1234", 10), hangUp, hangUp, hangUp);
});

test("waiting ends in time and on failure", () => script(async ({ client }) => {
  await assert.rejects(client.wait("CERT-1", { timeout: 0 }), (error) =>
    error instanceof constancia.WaitTimeout && error.certification.status === "processing");
  await assert.rejects(client.wait("CERT-1"), constancia.CertificationFailed);
}, say(200, '{"certification_id":"CERT-1","status":"processing"}'),
say(200, '{"certification_id":"CERT-1","status":"failed"}')));

const SECRET = "whsec_" + "01".repeat(32);
const OTHER = "whsec_" + "fe".repeat(32);
const BODY = Buffer.from('{"id":"ntc_1","type":"balance.low","data":{"text":"ñ"},"new":1}');
const NOW = 1767323045;
const signed = (secret, timestamp, body = BODY) =>
  "v1=" + createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex");

test("a notice is taken with a good signature alone", () => {
  const check = (given, { body = BODY, timestamp = `${NOW}`, secret = SECRET, now = NOW } = {}) =>
    constancia.verifyNotice(secret, { "x-svc-timestamp": timestamp, "X-Svc-Signature": given },
                            body, { now });
  const [good, other] = [signed(SECRET, NOW), signed(OTHER, NOW)];
  for (const given of [good, `${other},${good}`, `${good}, ${other}`]) {
    assert.equal(check(given).data.text, "ñ");
  }
  assert.equal(check(other, { secret: [SECRET, OTHER] }).type, "balance.low");
  const headers = new Headers({ "X-SVC-Timestamp": String(NOW), "X-SVC-Signature": good });
  assert.equal(constancia.verifyNotice(SECRET, headers, BODY, { now: NOW }).id, "ntc_1");
  for (const given of [other, "", "v1=", good.slice(0, -1), good.slice(3), good.replace("v1", "v2"),
                       good + "0", "ñ"]) {
    assert.throws(() => check(given), constancia.InvalidSignature, given);
  }
  for (const bad of [{ body: Buffer.concat([BODY, Buffer.from(" ")]) }, { now: NOW + 301 },
                     { now: NOW - 301 }, { now: NaN }, { timestamp: "now" }, { timestamp: "" },
                     { timestamp: "-1" }, { timestamp: "9".repeat(5000) }, { secret: [] }]) {
    assert.throws(() => check(good, bad), constancia.InvalidSignature);
  }
  assert.throws(() => check(signed("", NOW), { secret: "" }), constancia.InvalidSignature);
  assert.throws(() => check(good, { body: BODY.toString() }), TypeError);
});

test("a receiver's test signs its own notices", () => {
  const notice = { id: "ntc_7", type: "balance.low", data: { balance: 1 } };
  const signed_ = constancia.signNotice(SECRET, notice);
  assert.deepEqual(constancia.verifyNotice(SECRET, signed_.headers, signed_.body), notice);
  assert.equal(signed_.headers["X-SVC-Webhook-Id"], "ntc_7");
  const { headers, body } = constancia.signNotice(SECRET, BODY, { now: NOW + 0.9, prefix: "TST" });
  assert.equal(headers["X-TST-Signature"], signed(SECRET, NOW));
  assert.equal(headers["X-TST-Timestamp"], String(NOW));
  assert.equal(body, BODY);
  const options = { now: NOW, prefix: "TST" };
  assert.ok(constancia.verifyNotice(SECRET, headers, body, options));
  assert.throws(() => constancia.verifyNotice(OTHER, headers, body, options), constancia.InvalidSignature);
  const both = constancia.signNotice([OTHER, SECRET], BODY.toString(), { now: NOW });
  assert.equal(both.headers["X-SVC-Signature"], `${signed(OTHER, NOW)},${signed(SECRET, NOW)}`);
  for (const none of ["", [], [SECRET, ""]]) assert.throws(() => constancia.signNotice(none, {}), TypeError);
});

test("a notice of the service is good", { skip: !process.env.CONSTANCIA_NOTICE }, async () => {
  const { secret, headers, body } = JSON.parse(await readFile(process.env.CONSTANCIA_NOTICE));
  const notice = constancia.verifyNotice(secret, headers, Buffer.from(body), { tolerance: 3600 });
  assert.equal(notice.type, "webhook.test");
});
