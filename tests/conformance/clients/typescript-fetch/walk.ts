// Walks through the interface with the client that openapi-generator made for TypeScript's fetch.
// usage: walk.js BASE_URL CONTENT_KEY DIGEST_KEY LATER_URL

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import * as api from "./client/index";

const PATIENCE_MS = 300_000;
const [, , basePath, contentKey, digestKey, laterUrl] = process.argv;
const file = Buffer.from(Array.from({ length: 16384 }, (_, i) => i % 256));
const when = "2026-01-31T08:30:00.123456Z";

const configured = (accessToken?: string) => new api.Configuration({ basePath, accessToken });
const sha = (kind: string, content: Uint8Array) => createHash(kind).update(content).digest("hex");
const bytes = async (blob: Blob) => new Uint8Array(await blob.arrayBuffer());

async function refusal(asked: Promise<unknown>): Promise<[number, api.ModelError]> {
    const failure = await asked.then(() => undefined, (reason: unknown) => reason);
    assert(failure instanceof api.ResponseError, String(failure));
    return [failure.response.status, api.ModelErrorFromJSON(await failure.response.json())];
}

async function register(events: api.EventsApi) {
    const eventDeclaration = {
        clientRef: "json", payload: { total: "1210.00", lines: [1, {}] }, occurredAt: when,
    };
    const first = await events.registerEventRaw({ eventDeclaration });
    assert.equal(first.raw.status, 201);
    const event = await first.value();
    assert.equal(event.sequence, 1);
    assert.deepEqual(event.occurredAt, when);
    const again = await events.registerEventRaw({ eventDeclaration });
    assert.equal(again.raw.status, 200);
    assert.equal(again.raw.headers.get("Idempotent-Replayed"), "true");
    assert.deepEqual(await again.value(), event);

    const held = await events.registerFile({
        clientRef: "file", file: new File([file], "scan.bin"), occurredAt: when,
    });
    assert.equal(held.hash, sha("sha256", file));
    const content = await events.getEventContent({ eventId: held.eventId });
    assert.equal(sha("sha256", await bytes(content)), held.hash);
    const proof = (await events.getEvent({ eventId: event.eventId })).proof;
    assert.equal(proof.previousChainHash.length, 64);
}

async function registerDigest(events: api.EventsApi) {
    const hash = sha("sha512", file);
    const event = await events.registerEvent({
        eventDeclaration: { clientRef: "digest", hash, hashAlg: "sha-512" },
    });
    assert.deepEqual([event.hash, event.hashAlg, event.modality], [hash, "sha-512", "hash_only"]);
    const kept: any = api.EventToJSON(event); // as a receipt: with the members that are null
    assert.deepEqual([kept.occurred_at, kept.timestamp.sealed_at], [null, null]);
    assert.match(kept.received_at, /\.[0-9]{6}Z$/);
}

async function listAll(events: api.EventsApi) {
    const references: string[] = [];
    let cursor: string | undefined;
    do {
        const page = await events.listEvents({ limit: 1, cursor });
        references.push(...page.data.map((event) => event.clientRef));
        assert.equal(page.hasMore, page.nextCursor !== null);
        cursor = page.nextCursor ?? undefined;
    } while (cursor);
    assert.deepEqual(references, ["json", "file"]);
}

async function certify(certifications: api.CertificationsApi) {
    const { certificationId } = await certifications.requestCertification({
        certificationRequest: { seqFrom: 1, seqTo: 2 },
    });
    const deadline = Date.now() + PATIENCE_MS;
    let now = await certifications.getCertification({ certificationId });
    while (now.status === "processing" && Date.now() < deadline) {
        await new Promise((awake) => setTimeout(awake, 500));
        now = await certifications.getCertification({ certificationId });
    }
    assert.equal(now.status, "completed");
    assert.equal(now.eventCount, 2);
    const listed = (await certifications.listCertifications({ status: "completed" })).data;
    assert.deepEqual(listed.map((each) => each.certificationId), [certificationId]);
    return now;
}

async function download(open: api.PublicApi, certification: api.Certification) {
    assert(certification.reports?.length);
    for (const report of certification.reports) {
        const link = new URL(report.url);
        const content = await open.download({
            certificationId: certification.certificationId, name: link.pathname.split("/").at(-1)!,
            expires: Number(link.searchParams.get("expires")), mac: link.searchParams.get("mac")!,
        });
        assert.equal(sha("sha256", await bytes(content)), report.sha256);
    }
    assert((await open.listSigners()).data.length);
}

async function verify(pages: api.PublicApi, certification: api.Certification) {
    const code = certification.verificationCode!;
    const found = await pages.verifyCode({ code });
    assert.equal(found.certificationId, certification.certificationId);
    const same = await pages.verify({ sha256: certification.reports![0]!.sha256 });
    assert.deepEqual(same, found);
    const [missing, told] = await refusal(pages.verifyCode({ code: "SVC-2026-AAAA-AAAA" }));
    assert.deepEqual([missing, told.code], [404, "not_found"]);
}

async function readErrors(events: api.EventsApi, digests: api.EventsApi) {
    const [missing, told] = await refusal(events.getEvent({ eventId: "evt_none" }));
    assert.deepEqual([missing, told.code], [404, "not_found"]);
    assert(told.message);
    const later = new api.EventsApi(new api.Configuration({ basePath: laterUrl }));
    const [unknown, reason] = await refusal(later.getEvent({ eventId: "evt_none" }));
    assert.deepEqual([unknown, reason.code], [404, "code_of_a_later_version"]);
    const [conflict, why] = await refusal(digests.registerEvent({
        eventDeclaration: { clientRef: "digest", hash: "0".repeat(64), hashAlg: "sha-256" },
    }));
    assert.deepEqual([conflict, why.code], [409, "client_ref_conflict"]);
}

async function walk() {
    const content = configured(contentKey);
    const events = new api.EventsApi(content);
    const digests = new api.EventsApi(configured(digestKey));
    await register(events);
    await registerDigest(digests);
    await listAll(events);
    const certification = await certify(new api.CertificationsApi(content));
    await download(new api.PublicApi(configured()), certification);
    // This client names nothing that it accepts, and /verify is a page then.
    await verify(new api.PublicApi(new api.Configuration({
        basePath: basePath!.replace(/\/v1$/, ""), headers: { Accept: "application/json" },
    })), certification);
    await readErrors(events, digests);
    assert((await new api.AccountApi(content).getBalance()).operational);
}

void walk();
