// What holds for every call: signals, hooks, classes of refusals.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import * as constancia from "@constancia/client";
import { hangUp, say, script, scriptWith, sha256 } from "./scripted.mjs";

const BALANCE = '{"balance":1,"operational":true,"unpaid_events":0}';

async function drain(items) {
  for await (const _ of items) { /* all */ }
}

/** Each method of the client, with the answers before the one that it is ended at. */
const EVENT = { event_id: "e", client_ref: "r", hash: sha256("456") };
const CODE = "SVC-2026-ABCD-EFGH";
const COMPLETED = { certification_id: "CERT-1", status: "completed", verification_code: CODE,
                    evidence_url: "http://127.0.0.1:1/x.zip" };
const LOG_KEY = "log.example/segments+4dbba02a+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const CALLS = {
  register: (c, o) => c.register("r", {}, o), registerDigest: (c, o) => c.registerDigest("r", "0", o),
  registerFile: (c, o) => c.registerFile("r", Buffer.from("1"), o),
  registerMany: (c, o) => drain(c.registerMany([{ clientRef: "r", payload: {} }], o)),
  event: (c, o) => c.event("e", o), events: (c, o) => drain(c.events({}, o)),
  eventsPage: (c, o) => c.eventsPage({}, o), findByHash: (c, o) => drain(c.findByHash(EVENT.hash, o)),
  isOnRecord: (c, o) => c.isOnRecord(Buffer.from("1"), o), content: (c, o) => c.content("e", o),
  saveContent: (c, o, folder) => c.saveContent(EVENT, join(folder, "x"), o),
  channelSeals: (c, o, folder) => c.channelSeals(join(folder, "x"), o),
  eventEvidenceRecord: (c, o) => c.eventEvidenceRecord("e", o), channel: (c, o) => c.channel(o),
  noticesPage: (c, o) => c.noticesPage({}, o), createNotice: (c, o) => c.createNotice("balance.low", o),
  balance: (c, o) => c.balance(o), certify: (c, o) => c.certify({ seq_from: 1, seq_to: 1 }, o),
  certification: (c, o) => c.certification("C", o),
  certifications: (c, o) => drain(c.certifications({}, o)),
  certificationsPage: (c, o) => c.certificationsPage({}, o), wait: (c, o) => c.wait("C", o),
  certificationEvidenceRecord: (c, o) => c.certificationEvidenceRecord("C", o),
  download: (c, o, folder, url) => c.download(`${url}/x`, join(folder, "x"), o),
  save: (c, o, folder) => c.save(COMPLETED, join(folder, "x"), o), signers: (c, o) => c.signers(o),
  signerList: (c, o) => c.signerList(o), verify: (c, o) => c.verify(CODE, o),
  verifyDigest: (c, o) => c.verifyDigest("0", o), verifyFile: (c, o) => c.verifyFile(Buffer.from("1"), o),
  description: (c, o) => c.description(o), webhookDescription: (c, o) => c.webhookDescription(o),
  watchLog: (c, o) => c.watchLog({ key: LOG_KEY, channels: ["ch_1"], ...o }),
};
const HERE = ["constructor", "verifyArchive"]; // of these no request is made

test("each method takes a signal, and ends with its reason", async () => {
  const methods = Object.getOwnPropertyNames(constancia.Client.prototype);
  assert.deepEqual(methods.filter((name) => !HERE.includes(name)).sort(), Object.keys(CALLS).sort());
  for (const [name, call] of Object.entries(CALLS)) {
    const early = AbortSignal.abort(new Error("too late"));
    await script(({ client, folder, url }) => assert.rejects(
      call(client, { signal: early }, folder, url), /^Error: too late$/, name));
    const controller = new AbortController();
    const reason = new Error("enough");
    await script(async ({ client, folder, url }) => {
      await assert.rejects(call(client, { signal: controller.signal }, folder, url),
                           (error) => error === reason, name);
      assert.deepEqual((await readdir(folder)).filter((one) => one.startsWith(".")), [], name);
    }, () => controller.abort(reason));
  }
});

test("a signal ends the wait before a retry, and the one for a certification", async () => {
  const ended = (call, ...answers) => script(async ({ client }) => {
    const controller = new AbortController();
    const started = performance.now();
    const failed = assert.rejects(call(client, controller.signal), { name: "AbortError" });
    setTimeout(() => controller.abort(), 200);
    await failed;
    assert.ok(performance.now() - started < 5000);
  }, ...answers);
  await ended((client, signal) => client.balance({ signal }), say(503, "", { "Retry-After": 8 }));
  const processing = say(200, '{"certification_id":"C","status":"processing"}', { "Retry-After": 8 });
  await ended((client, signal) => client.wait("C", { signal }), processing);
});

test("a signal ends a download amid its answer, and what came is gone on with", () => {
  const whole = Buffer.alloc(200_000, "w");
  const controller = new AbortController();
  return script(async ({ client, url, seen, folder }) => {
    const target = join(folder, "x");
    const progress = (at) => at === 100_000 && controller.abort();
    const options = { sha256: sha256(whole), progress };
    await assert.rejects(client.download(`${url}/x`, target, { ...options, signal: controller.signal }),
                         { name: "AbortError" });
    await client.download(`${url}/x`, target, options);
    assert.equal(seen[1].range, "bytes=100000-");
    assert.deepEqual(await readFile(target), whole);
  }, (response) => {
    response.writeHead(200, { "Content-Length": whole.length });
    response.write(whole.subarray(0, 100_000));
  }, say(206, whole.subarray(100_000), { "Content-Range": "bytes 100000-199999/200000" }));
});

test("a signal that is never used leaves nothing behind", () => script(async ({ client }) => {
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...all) => (listeners++, addEventListener.apply(signal, all));
  signal.removeEventListener = (...all) => (listeners--, removeEventListener.apply(signal, all));
  await client.balance({ signal });
  assert.equal(listeners, 0);
}, say(200, BALANCE)));

test("hooks see requests, answers and retries, and no key, query or body", () => {
  const seen = [];
  const hooks = {
    onRequest: (request) => seen.push(["request", request]),
    onResponse: (response) => seen.push(["response", response]),
    onRetry(retry) {
      assert.equal(this, hooks);
      seen.push(["retry", retry]);
    },
  };
  return scriptWith({ hooks }, async ({ client, url, folder }) => {
    await client.balance();
    await client.register("reference", { text: "payload" }); // whose reference is in no address
    await client.download(`${url}/x?mac=5ec2e7`, join(folder, "x"));
    assert.deepEqual(seen.map(([what, { attempt, status }]) => [what, attempt, status]), [
      ["request", 1, undefined], ["retry", 1, undefined], ["request", 2, undefined], ["response", 2, 503],
      ["retry", 2, undefined], ["request", 3, undefined], ["response", 3, 200],
      ["request", 1, undefined], ["response", 1, 201], ["request", 1, undefined], ["response", 1, 200],
    ]);
    const [retry, other] = seen.filter(([what]) => what === "retry").map(([, told]) => told);
    assert.ok(retry.error instanceof constancia.ConnectionFailed && retry.milliseconds > 0);
    assert.ok(other.error instanceof constancia.Unavailable && other.milliseconds >= 1000);
    assert.equal(seen.at(-1)[1].url, `${url}/x`);
    assert.equal(seen.find(([, told]) => told.status === 201)[1].requestId, "req_1");
    assert.ok(seen.every(([, told]) => told.method && told.url.startsWith(url)));
    const said = JSON.stringify(seen) + seen.map(([, told]) => `${told.error?.stack}`).join();
    for (const secret of ["svc_test_key", "5ec2e7", "payload", "reference"]) {
      assert.ok(!said.includes(secret), secret);
    }
  }, hangUp, say(503, "", { "Retry-After": 1 }), say(200, BALANCE),
  say(201, '{"event_id":"e","client_ref":"reference"}', { "X-Request-Id": "req_1" }), say(200, "file"));
});

test("a hook that fails changes no call", () => {
  const fail = () => { throw new Error("log"); };
  const hooks = { onRequest: fail, onResponse: () => Promise.reject(new Error("log")), onRetry: fail };
  return scriptWith({ hooks }, async ({ client }) => {
    assert.equal((await client.balance()).balance, 1);
  }, hangUp, say(200, BALANCE));
});

test("refusals that a program deals with have classes", () => script(async ({ client }) => {
  const kinds = [
    [constancia.LimitBlocked, constancia.ApiError, 86_000], [constancia.Suspended, constancia.Forbidden],
    [constancia.AccountDisabled, constancia.Forbidden],
  ];
  for (const [kind, above, retryAfter] of kinds) {
    await assert.rejects(client.balance(), (error) => error.constructor === kind
      && error instanceof above && error.name === kind.name && error.retryAfter === retryAfter);
  }
  await assert.rejects(client.balance(), (error) => error.constructor === constancia.Forbidden);
  // The class follows the status, whatever the code says.
  await assert.rejects(client.balance(), (error) => error.constructor === constancia.NotFound);
  await assert.rejects(client.balance(), (error) => error.constructor === constancia.ApiError);
}, say(422, '{"code":"limit_blocked","message":"m"}', { "Retry-After": 86000 }),
say(403, '{"code":"suspended","message":"m"}'), say(403, '{"code":"account_disabled","message":"m"}'),
say(403, '{"code":"unheard_of","message":"m"}'), say(404, '{"code":"suspended","message":"m"}'),
say(422, '{"code":"__proto__","message":"m"}')));

test("progress ends at 1, and the waits between are as the service says", () => {
  const state = (status, more) => JSON.stringify({ certification_id: "C", status, ...more });
  return script(async ({ client, seen }) => {
    const steps = [];
    const started = performance.now();
    const done = await client.wait("C", { progress: (now) => steps.push(now.progress) });
    assert.ok(performance.now() - started >= 1000);
    assert.deepEqual(steps, [0.2, 1]);
    assert.equal(done.progress, 1);
    assert.equal(seen.length, 2);
  }, say(200, state("processing", { progress: 0.2 }), { "Retry-After": 1 }),
  say(200, state("completed", { progress: null })));
});

test("a signal cut the wait for an answer, not the one for the receipt", () => {
  const controller = new AbortController();
  const kept = [];
  const receipts = async (event) => {
    controller.abort();
    await new Promise((resolve) => setTimeout(resolve, 20));
    kept.push(event.event_id);
  };
  return scriptWith({ receipts }, async ({ client }) => {
    assert.equal((await client.register("r", {}, { signal: controller.signal })).event_id, "e");
    assert.deepEqual(kept, ["e"]);
  }, say(201, JSON.stringify(EVENT)));
});
