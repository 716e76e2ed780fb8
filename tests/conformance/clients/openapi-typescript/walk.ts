// Walks through the interface with the types that openapi-typescript made, and openapi-fetch.
// usage: walk.js BASE_URL CONTENT_KEY DIGEST_KEY LATER_URL

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./client/schema.js";
import type { webhooks } from "./client/webhooks.js";

type Certification = components["schemas"]["Certification"];
type Notice = webhooks["certification.completed"]["post"]["requestBody"]["content"]["application/json"];

const PATIENCE_MS = 300_000;
const [, , baseUrl, contentKey, digestKey, laterUrl] = process.argv;
const file = Buffer.from(Array.from({ length: 16384 }, (_, i) => i % 256));
const when = "2026-01-31T08:30:00.123456Z";

const client = (key?: string) =>
    createClient<paths>({ baseUrl, headers: key ? { Authorization: `Bearer ${key}` } : {} });
const sha = (kind: string, content: Uint8Array) => createHash(kind).update(content).digest("hex");

function given<T>(answer: { data?: T; error?: unknown }): T {
    assert(answer.data !== undefined, JSON.stringify(answer.error));
    return answer.data;
}

async function register(open: Client<paths>) {
    const body = { client_ref: "json", payload: { total: "1210.00", lines: [1, {}] }, occurred_at: when };
    const first = await open.POST("/events", { body });
    assert.equal(first.response.status, 201);
    const event = given(first);
    assert.equal(event.sequence, 1);
    assert.equal(event.occurred_at, when);
    const again = await open.POST("/events", { body });
    assert.equal(again.response.status, 200);
    assert.equal(again.response.headers.get("Idempotent-Replayed"), "true");
    assert.deepEqual(given(again), event);

    const form = new FormData();
    form.append("client_ref", "file");
    form.append("file", new File([file], "scan.bin"));
    const held = given(await open.POST("/events#file", {
        body: { client_ref: "file", file: "scan.bin" }, bodySerializer: () => form,
    }));
    assert.equal(held.hash, sha("sha256", file));
    const params = { path: { event_id: held.event_id } };
    const content = given(await open.GET("/events/{event_id}/content",
        { params, parseAs: "arrayBuffer" }));
    assert.equal(sha("sha256", new Uint8Array(content)), held.hash);
    const { proof } = given(await open.GET("/events/{event_id}",
        { params: { path: { event_id: event.event_id } } }));
    assert.equal(proof.previous_chain_hash.length, 64);
}

async function registerDigest(digests: Client<paths>) {
    const hash = sha("sha512", file);
    const event = given(await digests.POST("/events",
        { body: { client_ref: "digest", hash, hash_alg: "sha-512" } }));
    assert.deepEqual([event.hash, event.hash_alg, event.modality], [hash, "sha-512", "hash_only"]);
    const occurred: string | null = event.occurred_at; // not undefined
    assert.deepEqual([occurred, event.timestamp.sealed_at], [null, null]);
}

async function listAll(open: Client<paths>) {
    const references: string[] = [];
    let cursor: string | undefined;
    do {
        const page = given(await open.GET("/events", { params: { query: { limit: 1, cursor } } }));
        references.push(...page.data.map((event) => event.client_ref));
        assert.equal(page.has_more, page.next_cursor !== null);
        cursor = page.next_cursor ?? undefined;
    } while (cursor);
    assert.deepEqual(references, ["json", "file"]);
}

async function certify(open: Client<paths>): Promise<Certification> {
    const { certification_id } = given(await open.POST("/certifications",
        { body: { seq_from: 1, seq_to: 2 } }));
    const look = async () => given(await open.GET("/certifications/{certification_id}",
        { params: { path: { certification_id } } }));
    const deadline = Date.now() + PATIENCE_MS;
    let now = await look();
    while (now.status === "processing" && Date.now() < deadline) {
        await new Promise((awake) => setTimeout(awake, 500));
        now = await look();
    }
    assert.equal(now.status, "completed");
    assert.equal(now.event_count, 2);
    const listed = given(await open.GET("/certifications",
        { params: { query: { status: "completed" } } }));
    assert.deepEqual(listed.data.map((each) => each.certification_id), [certification_id]);
    return now;
}

async function download(anyone: Client<paths>, { certification_id, reports }: Certification) {
    assert(reports?.length);
    for (const report of reports) {
        const link = new URL(report.url);
        const content = given(await anyone.GET("/downloads/{certification_id}/{name}", {
            params: {
                path: { certification_id, name: link.pathname.split("/").at(-1)! },
                query: {
                    expires: Number(link.searchParams.get("expires")),
                    mac: link.searchParams.get("mac")!,
                },
            },
            parseAs: "arrayBuffer",
        }));
        assert.equal(sha("sha256", new Uint8Array(content)), report.sha256);
    }
    assert(given(await anyone.GET("/signers")).data.length);
}

async function verify({ certification_id, verification_code, reports }: Certification) {
    const pages = createClient<paths>({
        baseUrl: baseUrl!.replace(/\/v1$/, ""), headers: { Accept: "application/json" },
    });
    const byCode = async (code: string) =>
        pages.GET("/verify/{code}", { params: { path: { code } } });
    const found = given(await byCode(verification_code!));
    assert(typeof found === "object");
    assert.equal(found.certification_id, certification_id);
    const { sha256 } = reports![0]!;
    assert.deepEqual(given(await pages.GET("/verify", { params: { query: { sha256 } } })), found);
    const { response, error } = await byCode("SVC-2026-AAAA-AAAA");
    assert(typeof error === "object");
    assert.deepEqual([response.status, error.code], [404, "not_found"]);
}

async function readErrors(open: Client<paths>, digests: Client<paths>) {
    const missing = await open.GET("/events/{event_id}",
        { params: { path: { event_id: "evt_none" } } });
    assert.deepEqual([missing.response.status, missing.error?.code], [404, "not_found"]);
    assert(missing.error?.message);
    const unknown = await createClient<paths>({ baseUrl: laterUrl }).GET("/events/{event_id}",
        { params: { path: { event_id: "evt_none" } } });
    assert.deepEqual([unknown.response.status, unknown.error?.code], [404, "code_of_a_later_version"]);
    const conflict = await digests.POST("/events",
        { body: { client_ref: "digest", hash: "0".repeat(64), hash_alg: "sha-256" } });
    assert.deepEqual([conflict.response.status, conflict.error?.code], [409, "client_ref_conflict"]);
}

// What a receiver reads of a notice is typed, too; nothing of it runs here.
export const idOf = (notice: Notice): string => notice.data.certification_id;

const open = client(contentKey);
const digests = client(digestKey);
await register(open);
await registerDigest(digests);
await listAll(open);
const certification = await certify(open);
await download(client(), certification);
await verify(certification);
await readErrors(open, digests);
assert(given(await open.GET("/account/balance")).operational);
