// Verification of archives on this machine. CONSTANCIA_CORPUS: base of tests/corpus/evidence.
import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import * as constancia from "@constancia/client";
import { say, script, sha256 } from "./scripted.mjs";

const { verifyArchive } = constancia;
const base = (name) => join(process.env.CONSTANCIA_CORPUS, name);
const LIVE = base("live.zip");
const given = JSON.parse(await readFile(base("receipts.json")));
const receipts = given.slice(0, 3); // of the events in it
const bytes = await readFile(LIVE);
const folder = await mkdtemp(join(tmpdir(), "constancia-"));
process.env.TMPDIR = folder; // so that what is left there is known
const RECEIPTS = join(folder, "receipts.json");
await writeFile(RECEIPTS, JSON.stringify(receipts));
after(() => rm(folder, { recursive: true }));
const alone = { program: false };
const codes = ({ findings }) => findings.map((one) => one.code);
const SIGNATURES = "client.signatures_not_checked";

/** A program that answers this, and keeps its words in `words`. */
async function program(status, output, more = "") {
  const path = join(folder, `program-${Math.random()}`);
  await writeFile(`${path}.json`, typeof output === "string" ? output : JSON.stringify(output));
  await writeFile(path, `#!/bin/sh\nfor word; do echo "$word"; done > ${path}.words\n${more}\n` +
                        `cat ${path}.json\nexit ${status}\n`);
  await chmod(path, 0o700);
  return { path, words: async () => (await readFile(`${path}.words`, "utf8")).split("\n").slice(0, -1) };
}

function crc32(text) {
  let crc = ~0;
  for (const byte of Buffer.from(text, "latin1")) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1;
  }
  return ~crc >>> 0;
}

const answer = (code, more = {}) => ({
  valid: code === "valid", verdict: { code }, findings: [], warnings: [],
  files: [{ kind: "archive", sha256: sha256(bytes) }], ...more,
});

test("without the program nothing is valid, and it says what was not checked", async () => {
  for (const source of [LIVE, bytes, new Uint8Array(bytes), new Blob([bytes])]) {
    const check = await verifyArchive(source, alone);
    assert.equal(check.verdict, "origin_not_established");
    assert.deepEqual(codes(check), [SIGNATURES]);
    assert.deepEqual(check.checked.program, []);
    assert.ok(check.checked.client.length > 5 && !check.checked.client.includes("receipts"));
    assert.ok(check.notChecked.some((one) => one.startsWith("certificates")));
    const { archive } = check;
    assert.equal(archive.sha256, sha256(bytes));
    assert.deepEqual([archive.mode, archive.firstSequence, archive.lastSequence], ["live", 1, 3]);
    assert.deepEqual(archive.checked, { files: 9, events: 3, segments: 1, timestamps: 4 });
  }
  const missing = await verifyArchive(LIVE, { program: join(folder, "none") });
  assert.deepEqual([missing.verdict, codes(missing)], ["origin_not_established", [SIGNATURES]]);
});

test("what is no archive is said, and what cannot be read is thrown", async () => {
  for (const other of [Buffer.alloc(0), Buffer.from("%PDF-1.7\n".repeat(9)), Buffer.from("PK")]) {
    assert.deepEqual(codes(await verifyArchive(other, alone)), ["file.kind_unknown"]);
  }
  await assert.rejects(verifyArchive(join(folder, "none.zip"), alone), { code: "ENOENT" });
  await assert.rejects(verifyArchive(folder, alone), TypeError);
  await assert.rejects(verifyArchive(LIVE, { ...alone, receipts: join(folder, "none") }), { code: "ENOENT" });
  await assert.rejects(verifyArchive(LIVE, { ...alone, parts: [join(folder, "none")] }), { code: "ENOENT" });
});

test("receipts are compared, whatever they come as", async () => {
  const path = join(folder, "receipts.ndjson");
  const line = (one) => JSON.stringify(one) + "\n";
  await writeFile(path, `${line(receipts[1])}\n   \n${line(receipts[2]).trim()}`);
  await writeFile(`${path}.1`, line({ ...receipts[0], replayed: true, later: 1 }));
  const one = join(folder, "one.json");
  await writeFile(one, JSON.stringify(receipts[0], null, 2));
  async function* source() {
    yield* receipts;
  }
  const { occurred_at: _, ...short } = receipts[0]; // left out by typed clients where it is null
  for (const [these, count] of [[RECEIPTS, 3], [receipts, 3], [source(), 3], [path, 3], [[one, path], 4],
                                [new constancia.ReceiptFile(path), 3], [[short], 1]]) {
    const check = await verifyArchive(LIVE, { ...alone, receipts: these });
    assert.deepEqual(codes(check), [SIGNATURES]);
    assert.deepEqual(check.receipts, { given: count, matched: count });
    assert.ok(check.checked.client.includes("receipts"));
  }
});

test("a receipt that differs, or of which the archive says nothing, leaves it open", async () => {
  const first = receipts[0];
  const { path: valid } = await program(0, answer("valid"));
  const cases = [
    ...["event_id", "client_ref", "received_at", "occurred_at", "hash", "hash_alg", "modality",
        "config_version", "chain_hash"].map((name) =>
      [{ ...first, [name]: name === "chain_hash" ? "0".repeat(64) : "other" }, "receipt.event_differs"]),
    [{ ...first, sequence: 4000 }, "receipt.event_not_given"],
    [{ ...first, channel_id: "chn_other" }, "receipt.event_not_given"],
    [{ ...first, mode: "test" }, "receipt.event_not_given"],
    [{ ...first, chain_hash: undefined }, "receipt.not_usable"], [{}, "receipt.not_usable"],
    [null, "receipt.not_usable"], [{ ...first, hash: undefined }, "receipt.not_usable"],
    [{ ...first, sequence: "1" }, "receipt.not_usable"],
  ];
  for (const [receipt, code] of cases) {
    const check = await verifyArchive(LIVE, { program: valid, receipts: [receipt] });
    assert.deepEqual([check.verdict, check.code, ...codes(check)],
                     ["origin_not_established", "could_not_check", code], JSON.stringify(receipt));
    assert.deepEqual(check.receipts, { given: 1, matched: 0 });
  }
  const twice = await verifyArchive(LIVE, { program: valid, receipts: [first, { ...first, hash: "0" }] });
  assert.deepEqual([codes(twice), twice.receipts], [["receipt.event_differs"], { given: 2, matched: 1 }]);
  const none = await verifyArchive(LIVE, { program: valid, receipts: [] });
  assert.deepEqual(codes(none), ["receipt.not_usable"]);
  const torn = join(folder, "torn.ndjson");
  await writeFile(torn, JSON.stringify(first) + "\n" + JSON.stringify(first).slice(0, 50));
  const half = await verifyArchive(LIVE, { program: valid, receipts: torn });
  assert.deepEqual([codes(half), half.receipts.matched], [["receipt.not_usable"], 1]);
  assert.match(half.findings[0].where, /torn\.ndjson: line 2$/);
});

test("many findings are counted, not kept, and none has more than text", async () => {
  const others = Array.from({ length: 3000 }, () => ({ ...receipts[0], channel_id: "\x1b[31mchn\u2028" }));
  const check = await verifyArchive(LIVE, { ...alone, receipts: others });
  assert.deepEqual([check.findings.length, check.receipts.given], [1000, 3000]);
  assert.match(check.findings[0].what, /event 1 of \\u\{1b\}\[31mchn\\u\{2028\} \(live\)$/);
  const { path } = await program(0, answer("valid"));
  const open = await verifyArchive(LIVE, { program: path, receipts: others });
  assert.deepEqual([open.verdict, open.findings.length], ["origin_not_established", 1000]);
});

test("receipts right before and after the range are compared by their chain hash", async () => {
  const middle = base("middle.zip");
  const { archive } = await verifyArchive(middle, alone);
  const before = given.find((one) => one.sequence === archive.firstSequence - 1);
  const right = await verifyArchive(middle, { ...alone, receipts: [before] });
  assert.deepEqual(codes(right), ["receipt.hash_alone", SIGNATURES]);
  const wrong = await verifyArchive(middle, { ...alone, receipts: [{ ...before, chain_hash: "0".repeat(64) }] });
  assert.ok(codes(wrong).includes("receipt.chain_differs"));
});

test("the program's word counts, where it fits", async () => {
  const trust = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
  const good = await program(0, answer("valid"));
  const check = await verifyArchive(LIVE, { program: good.path, at: new Date(0), trust: "roots.pem",
                                            signers: "signers.p7m", parts: [base("part.zip")],
                                            signer: ["ab", "cd"] });
  assert.deepEqual([check.verdict, check.code, check.findings], ["valid", "valid", []]);
  assert.equal(check.signaturesBy, "program");
  assert.deepEqual(check.notChecked, ["receipts: not given", "reports: not given"]);
  assert.deepEqual(check.warnings, []);
  assert.deepEqual(await good.words(), [
    "verify", LIVE, base("part.zip"), "--json", "--config", "", "--trust", join(process.cwd(), "roots.pem"),
    "--signer", "ab", "--signer", "cd", "--signers", join(process.cwd(), "signers.p7m"), "--at", "1970-01-01T00:00:00.000Z"]);
  const held = await program(0, answer("valid"), 'cp "$2" $0.zip; cp "$7" $0.pem');
  const of = await verifyArchive(bytes, { program: held.path, trust });
  assert.equal(of.verdict, "valid");
  assert.deepEqual(of.notChecked, ["receipts: not given", "content parts: not all given", "reports: not given"]);
  const kept = await verifyArchive(LIVE, { program: held.path, trust, receipts });
  assert.deepEqual(kept.notChecked, ["content parts: not all given", "reports: not given"]);
  assert.ok(of.warnings.some((one) => one.code === "part.not_given"));
  assert.deepEqual(await readFile(`${held.path}.zip`), bytes);
  assert.equal(await readFile(`${held.path}.pem`, "utf8"), trust);
  assert.deepEqual((await readdir(folder)).filter((name) => name.startsWith("constancia-verify-")), []);
  const found = { code: "signature.not_valid", severity: "wrong", path: LIVE, where: "", what: "w" };
  for (const [status, code, verdict] of [
    [1, "not_valid", "invalid"], [2, "signer_not_established", "origin_not_established"],
    [2, "could_not_check", "origin_not_established"], [2, "unheard_of", "origin_not_established"]]) {
    const { path } = await program(status, answer(code, { findings: [found], valid: false }));
    const told = await verifyArchive(LIVE, { program: path });
    assert.equal(told.verdict, status === 2 ? "invalid" : verdict); // by the finding
    const { path: bare } = await program(status, answer(code));
    assert.equal((await verifyArchive(LIVE, { program: bare })).verdict, verdict);
    assert.deepEqual([told.findings[0].by, told.findings[0].where], ["program", LIVE]);
  }
});

test("a program that says something else than it should is not believed", async () => {
  const other = [{ kind: "archive", sha256: "0".repeat(64) }];
  for (const [status, output, more] of [
    [0, ""], [0, "valid"], [0, "null"], [0, "{}"], [0, answer("valid", { valid: false })],
    [0, answer("not_valid")], [1, answer("valid")], [2, answer("valid")], [3, answer("valid")],
    [0, answer("signer_not_established")], [0, answer("valid", { files: other })],
    [0, answer("valid", { files: [] })], [0, answer("valid", { findings: null })],
    [0, answer("valid"), "kill -9 $$"], [0, answer("valid"), "exit 0"],
  ]) {
    const { path } = await program(status, output, more);
    const check = await verifyArchive(LIVE, { program: path });
    assert.equal(check.verdict, "origin_not_established", JSON.stringify([status, output, more]));
    assert.deepEqual(check.checked.program, []);
  }
  const unasked = await program(0, answer("valid"));
  const spoilt = Buffer.from(bytes);
  spoilt[bytes.indexOf("reference") + 900] ^= 1;
  assert.equal((await verifyArchive(spoilt, { program: unasked.path })).verdict, "invalid");
  await assert.rejects(unasked.words(), { code: "ENOENT" });
});

test("a part that the manifest does not list is wrong", async () => {
  const path = join(folder, "part.zip");
  await writeFile(path, (await readFile(base("part.zip"))).fill(0, 100, 101));
  const check = await verifyArchive(LIVE, { ...alone, parts: [path] });
  assert.deepEqual([check.verdict, check.findings[0].code], ["invalid", "part.not_listed"]);
  const other = join(folder, "other.zip"); // of another certification, whose archive is not given
  const { archive } = await verifyArchive(LIVE, alone);
  const part = await readFile(base("part.zip"));
  const renamed = part.toString("latin1").replaceAll(archive.certificationId, "CERT-2026-9999999");
  const head = /\{[^{]*"certification_id".*?\}/.exec(renamed)[0];
  const [old] = /\{[^{]*"certification_id".*?\}/.exec(part.toString("latin1"));
  const bytesOf = (value) => Buffer.from(Uint32Array.of(value).buffer).toString("latin1");
  await writeFile(other, renamed.replaceAll(bytesOf(crc32(old)), bytesOf(crc32(head))), "latin1");
  const strange = await verifyArchive(LIVE, { ...alone, parts: [other] });
  assert.deepEqual(codes(strange), ["part.archive_not_given", SIGNATURES]);
  const given = await verifyArchive(LIVE, { ...alone, parts: [base("part.zip"), base("part.zip")] });
  assert.ok(given.checked.client.includes("content parts") && !given.warnings.length);
});

test("a signal ends it, also while the program runs", async () => {
  const enough = new Error("enough");
  await assert.rejects(verifyArchive(LIVE, { signal: AbortSignal.abort(enough) }), enough);
  const { path } = await program(0, answer("valid"), "exec sleep 60");
  const controller = new AbortController();
  const failed = assert.rejects(verifyArchive(bytes, { program: path, signal: controller.signal }), enough);
  setTimeout(() => controller.abort(enough), 300);
  await failed;
  assert.deepEqual((await readdir(folder)).filter((name) => name.startsWith("constancia-verify-")), []);
});

test("a client verifies an archive, and looks up a code", () => script(async ({ client, seen }) => {
  assert.equal((await client.verify(LIVE, alone)).verdict, "origin_not_established");
  assert.equal((await client.verify(bytes, { ...alone, receipts })).receipts.matched, 3);
  assert.equal((await client.verifyArchive(LIVE, alone)).signaturesBy, "client");
  assert.equal(seen.length, 0);
  assert.equal((await client.verify("SVC-2026-ABCD-EFGH")).valid, true);
  assert.equal(seen[0].url, "/verify/SVC-2026-ABCD-EFGH");
  await assert.rejects(client.verify(LIVE), /verifyArchive/);
  await assert.rejects(client.verify("evidence.zip", { signal: new AbortController().signal }), TypeError);
}, say(200, '{"valid":true}')));
