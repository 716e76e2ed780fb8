"""The Go client (clients/go): its own tests against the service and against servers that fail as the service only does in
bad hours, what its README has, and what the description has."""

import hashlib
import json
import os
import re
import subprocess

import pytest

from golang import CLIENT, run_go
from hooks import Receiver, new_endpoint
from program import BINARY, ROOT
from test_client_python import OPERATIONS, described

NAMES = {"register_digest": "RegisterDigest", "register_file": "RegisterFile", "register_many": "RegisterMany",
         "events_page": "EventsPage", "event_evidence_record": "EventEvidenceRecord", "signer_list": "SignerList",
         "certifications_page": "CertificationsPage", "certification_evidence_record": "CertificationEvidenceRecord",
         "verify_digest": "VerifyDigest", "verify_file": "VerifyFile", "webhook_description": "WebhookDescription"}
TESTS_MIN = 45


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the caches of Go, and the compiled tests."""
    folder = tmp_path_factory.mktemp("go")
    run_go(folder, "test", "-c", "-o", folder / "tests", ".")
    return folder


def run_tests(built, pattern, **environment):
    done = subprocess.run([built / "tests", "-test.v", "-test.run", pattern], cwd=CLIENT, capture_output=True, text=True,
                          timeout=600, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert "--- SKIP" not in done.stdout
    return re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE)


# ---- what the description has ----

def test_the_models_are_those_of_the_description():
    digest = hashlib.sha256((ROOT / "docs" / "openapi.yaml").read_bytes()).hexdigest()
    first = (CLIENT / "models.go").read_text(encoding="utf-8").split("\n", 1)[0]
    assert first == f"// Of docs/openapi.yaml, SHA-256 {digest}", \
        "docs/openapi.yaml changed: run clients/go/scripts/models with oapi-codegen in PATH"


def source():
    return "\n".join(path.read_text(encoding="utf-8") for path in CLIENT.glob("*.go") if "_test" not in path.name)


def test_every_operation_has_a_method_with_its_filters():
    text = source()
    methods = set(re.findall(r"^func \(c \*Client\) ([A-Z]\w*)\(", text, re.MULTILINE))
    description = described()
    shared = description["components"]["parameters"]
    for path in description["paths"].values():
        for operation in path.values():
            if not isinstance(operation, dict):
                continue
            for name in OPERATIONS[operation["operationId"]]:
                assert NAMES.get(name, name.capitalize()) in methods, name
            if "list" in operation["operationId"]:
                filters = [shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one
                           for one in operation.get("parameters", ())]
                for one in filters:
                    if one["in"] == "query":
                        assert f'"{one["name"]}":' in text, one["name"]


def test_each_type_of_notice_has_a_type_with_its_members():
    text = (CLIENT / "notices.go").read_text(encoding="utf-8")
    hooks = described("webhooks.openapi")
    kinds = dict(re.findall(r'"([a-z_.]+)": +func\(\) any \{ return &(\w+)\{\} \}', text))
    assert set(kinds) == set(hooks["webhooks"])
    for name, hook in hooks["webhooks"].items():
        (_, own) = hook["post"]["requestBody"]["content"]["application/json"]["schema"]["allOf"]
        schema = hooks["components"]["schemas"][own["properties"]["data"]["$ref"].rpartition("/")[2]]
        struct = re.search(rf"^type {kinds[name]} struct {{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL)[1]
        assert set(schema["properties"]) <= set(re.findall(r'`json:"(\w+)"`', struct)), name


# ---- the client's own tests ----

def test_go_vet_and_gofmt_have_nothing_to_say(built):
    run_go(built, "vet", ".", "./internal/...", "./testdata/verdicts")
    files = [str(path) for path in CLIENT.rglob("*.go")]
    done = subprocess.run([os.path.join(run_go(built, "env", "GOROOT").strip(), "bin", "gofmt"), "-l", *files],
                          capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_the_client_against_servers_that_fail(built):
    listed = subprocess.run([built / "tests", "-test.list", "."], capture_output=True, text=True, check=True)
    own = [name for name in listed.stdout.split() if not name.startswith(("TestService", "TestANoticeOfTheService"))]
    assert len(own) >= TESTS_MIN
    assert sorted(run_tests(built, f"^({'|'.join(own)})$")) == sorted(own)


def test_the_client_against_the_service(start, built):
    service = start(seal__interval="200ms")
    keys = {name: service.new_channel(*kind).live_key["key"] for name, kind in (
        ("KEY", ()), ("LIST_KEY", ()), ("CERTIFY_KEY", ()), ("HASH_KEY", ("hash_only",)))}
    passed = run_tests(built, "^TestService", CONSTANCIA_URL=f"{service.public_url}/v1",
                       CONSTANCIA_TEST_KEY=service.new_channel().test_key["key"], CONSTANCIA_PROGRAM=str(BINARY),
                       CONSTANCIA_TRUST=str(service.data / "trust.pem"),
                       **{f"CONSTANCIA_{name}": key for name, key in keys.items()})
    assert len(passed) == 8


def test_a_notice_of_the_service(start, built, tmp_path):
    service = start()
    with Receiver() as receiver:
        endpoint = new_endpoint(service, service.new_account(credits=100), receiver.url)
        receiver.secrets = [endpoint["secret"]]
        service.admin("webhook", "test", endpoint["endpoint_id"])
        delivery = receiver.next()
    notice = tmp_path / "notice.json"
    notice.write_text(json.dumps({"secret": endpoint["secret"], "headers": dict(delivery.headers),
                                  "body": delivery.body.decode()}), encoding="utf-8")
    assert run_tests(built, "^TestANoticeOfTheService", CONSTANCIA_NOTICE=str(notice)) == ["TestANoticeOfTheServiceIsGood"]
