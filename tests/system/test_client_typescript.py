"""The TypeScript client (clients/typescript): compiled, put where a program finds its packages, and
run by Node against the service and against servers that fail."""

import hashlib
import json
import os
import re
import shutil
import subprocess

import pytest

from client import ROOT
from hooks import Receiver, new_endpoint
from program import BINARY
from test_client_python import OPERATIONS, described

CLIENT = ROOT / "clients" / "typescript"
NAMES = {"channel_seals": "channelSeals", "notices_page": "noticesPage", "create_notice": "createNotice",
         "register_digest": "registerDigest", "register_file": "registerFile",
         "register_many": "registerMany", "find_by_hash": "findByHash", "is_on_record": "isOnRecord",
         "events_page": "eventsPage", "event_evidence_record": "eventEvidenceRecord", "signer_list": "signerList",
         "certifications_page": "certificationsPage", "verify_digest": "verifyDigest",
         "certification_evidence_record": "certificationEvidenceRecord",
         "verify_file": "verifyFile", "webhook_description": "webhookDescription"}


def run(command, folder, **environment):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, timeout=600,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A folder of a program that has the package installed as it would be published."""
    folder = tmp_path_factory.mktemp("typescript")
    package = folder / "node_modules" / "@constancia" / "client"
    package.mkdir(parents=True)
    run(["tsc", "-p", CLIENT, "--outDir", package / "dist"], folder)
    shutil.copy(CLIENT / "package.json", package)
    for test in (CLIENT / "test").iterdir():
        shutil.copy(test, folder)
    return folder


def test_the_types_are_those_of_the_description():
    digest = hashlib.sha256((ROOT / "docs" / "openapi.yaml").read_bytes()).hexdigest()
    first = (CLIENT / "src" / "api.ts").read_text(encoding="utf-8").split("\n", 1)[0]
    assert first == f"// Of docs/openapi.yaml, SHA-256 {digest}", \
        "docs/openapi.yaml changed: npm run types in clients/typescript"


def test_every_operation_has_a_method():
    text = (CLIENT / "src" / "client.ts").read_text(encoding="utf-8")
    methods = set(re.findall(r"^  (?:async )?\*?(\w+)\(", text, re.MULTILINE))
    for path in described()["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict):
                wanted = OPERATIONS[operation["operationId"]]
                assert {NAMES.get(name, name) for name in wanted} <= methods, wanted


def test_the_client_against_the_service(start, program):
    service = start(seal__interval="200ms")
    content = service.new_channel()
    hashes = service.new_channel("hash_only")
    run(["node", "--test", "service.test.mjs"], program,
        CONSTANCIA_URL=f"{service.public_url}/v1", CONSTANCIA_KEY=content.live_key["key"],
        CONSTANCIA_TEST_KEY=content.test_key["key"], CONSTANCIA_HASH_KEY=hashes.live_key["key"],
        CONSTANCIA_PROGRAM=str(BINARY), CONSTANCIA_TRUST=str(service.data / "trust.pem"))


def test_the_client_in_bad_hours_and_notices(start, program):
    service = start()
    with Receiver() as receiver:
        endpoint = new_endpoint(service, service.new_account(credits=100), receiver.url)
        receiver.secrets = [endpoint["secret"]]
        service.admin("webhook", "test", endpoint["endpoint_id"])
        delivery = receiver.next()
    notice = program / "notice.json"
    notice.write_text(json.dumps({"secret": endpoint["secret"], "headers": dict(delivery.headers),
                                  "body": delivery.body.decode()}), encoding="utf-8")
    run(["node", "--test", "faults.test.mjs"], program, CONSTANCIA_NOTICE=str(notice))


@pytest.mark.parametrize("name", ["calls", "receipts"])
def test_the_client_against_a_scripted_server(program, name):
    run(["node", "--test", f"{name}.test.mjs"], program)


def test_the_walk_through_of_the_readme_works_when_pasted(service, program):
    text = (CLIENT / "README.md").read_text(encoding="utf-8")
    pieces = re.findall(r"```js\n(.*?)```", text, re.DOTALL)
    assert len(pieces) >= 5
    (program / "walk.mjs").write_text("\n".join(pieces), encoding="utf-8")
    said = run(["node", "walk.mjs"], program, CONSTANCIA_URL=f"{service.public_url}/v1",
               CONSTANCIA_KEY=service.new_channel().live_key["key"])
    assert "completed" in said and re.search(r"^valid$", said, re.MULTILINE)
    assert "Assertion failed" not in said and list(program.glob("certification/*.pdf"))


def test_a_program_in_typescript_has_its_types(program):
    (program / "typed.mts").write_text("""
import { Client, LimitBlocked, ReceiptFile, type Certification, type Declaration, type Event, type Notice, type Receipt,
         type Registered } from "@constancia/client";
export function told(notice: Notice): string | number {
  if (notice.type === "certification.completed") {
    // @ts-expect-error it is not that of a balance
    const other: number = notice.data.threshold;
    void other;
    return notice.data.verification_code;
  }
  switch (notice.type) {
    case "balance.low": return notice.data.balance;
    case "consumption.limit_reached": return notice.data.action === "block" ? notice.data.period_key : "";
    case "event.sealed": return notice.data.segments[0].channel_id;
  }
  const later: unknown = notice.data.unheard_of;
  // @ts-expect-error there is no such state
  if (notice.mode === "unheard") return "";
  return typeof later === "number" ? later : notice.type;
}
export async function many(client: Client, signal: AbortSignal): Promise<Receipt[]> {
  const declared: Declaration[] = [{ clientRef: "r", payload: { when: new Date() } }, { clientRef: "s", hash: "ab" }];
  // @ts-expect-error it is one or the other
  declared.push({ clientRef: "t", hash: "ab", payload: {} });
  const kept: Receipt[] = [];
  for await (const one of client.registerMany(declared, { signal })) {
    const each: Registered = one;
    if (each.error) throw each.error instanceof LimitBlocked ? each.error.retryAfter : each.error;
    else kept.push(each.event);
  }
  return kept;
}
export const keeping = new Client({ baseUrl: "http://127.0.0.1:1", receipts: new ReceiptFile("r", { rotateBytes: 9 }),
                                    hooks: { onRetry: ({ error, attempt }) => console.log(error.message, attempt) } });
export const sinks = [(event: Receipt) => event.toJSON(), "receipts.ndjson", { write: async (_: Event) => undefined }]
  .map((receipts) => new Client({ baseUrl: "http://127.0.0.1:1", receipts }));
export async function walk(client: Client): Promise<string> {
  const event = await client.register("r", { a: 1 });
  const replayed: boolean = event.replayed;
  for await (const one of client.events({ status: "unpaid", from: new Date() })) {
    const each: Event = one;
    void each;
  }
  const done: Certification = await client.wait(await client.certify({ seq_from: 1, seq_to: 2 }));
  // @ts-expect-error there is no such state
  if (done.status === "unheard") return "";
  // @ts-expect-error a number is no reference
  await client.register(1, {});
  return replayed ? done.certification_id : event.chain_hash;
}
""", encoding="utf-8")
    run(["tsc", "--strict", "--noEmit", "--module", "node16", "--moduleResolution", "node16",
         "--target", "es2022", "--lib", "es2022,dom", "typed.mts"], program)


def test_the_package_says_what_it_needs():
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package and package["name"] == "@constancia/client"
    version = re.search(r'VERSION = "(.*)"', (CLIENT / "src" / "client.ts").read_text())[1]
    assert package["version"] == version
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
