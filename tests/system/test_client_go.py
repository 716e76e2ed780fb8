"""The Go client (clients/go): its own tests against the service and against servers that fail as the service
only does in bad hours, what its README has, and what the description has."""

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

NAMES = {"channel_seals": "ChannelSeals", "notices_page": "NoticesPage", "create_notice": "CreateNotice",
         "register_digest": "RegisterDigest", "register_file": "RegisterFile", "register_many": "RegisterMany",
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
    done = subprocess.run([built / "tests", "-test.v", "-test.run", pattern], cwd=CLIENT, capture_output=True,
                          text=True, timeout=600, check=False, env={**os.environ, **environment})
    failed = "\n".join(re.findall(r"^--- FAIL.*(?:\n    .*)*|^panic.*", done.stdout + done.stderr, re.MULTILINE))
    assert done.returncode == 0, failed[-6000:] or done.stderr[-3000:]
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
    assert len(passed) == 10


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
    passed = run_tests(built, "^TestANoticeOfTheService", CONSTANCIA_NOTICE=str(notice))
    assert passed == ["TestANoticeOfTheServiceIsGood"]


# ---- the module ----

REPLACE = f"-replace=constancia.example/constancia={CLIENT}"
IMPORTS = ("context", "errors", "fmt", "net/http", "os")


def program_of(built, folder, name, text, *edits, **environment):
    """Compiles a program of the module's user, as the README has it."""
    folder.mkdir()
    (folder / "main.go").write_text(text, encoding="utf-8")
    run_go(built, "mod", "init", "shop.example/shop", cwd=folder)
    run_go(built, "mod", "edit", "-require=constancia.example/constancia@v0.1.0", *edits, cwd=folder)
    run_go(built, "vet", ".", cwd=folder, **environment)
    run_go(built, "build", "-o", folder / name, cwd=folder, **environment)
    return folder / name


def imported(text):
    used = [one for one in IMPORTS if re.search(rf"\b{one.rpartition('/')[2]}\.", text)]
    return "".join(f'import "{one}"\n' for one in [*used, "constancia.example/constancia"])


def test_the_programs_of_the_readme_work_when_pasted(start, built, tmp_path):
    service = start(seal__interval="200ms")
    first, *others = re.findall(r"```go\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = first.split("func run(")[1].split("\n}\n")[0].splitlines()
    assert len(lines) <= 36, "registering, certifying, saving and verifying are a short program"
    (tmp_path / "contract.txt").write_text("I declare.\n")
    (tmp_path / "roots.pem").write_bytes((service.data / "trust.pem").read_bytes())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "constancia").symlink_to(BINARY)
    environment = {**os.environ, "CONSTANCIA_URL": f"{service.public_url}/v1", "PATH": str(tmp_path / "bin"),
                   "CONSTANCIA_KEY": service.new_channel().live_key["key"]}

    def run(program):
        done = subprocess.run([program, "1001"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                              timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert run(program_of(built, tmp_path / "walk", "walk", first, REPLACE)) == \
        "valid 2 [] [log: the signatures of the log and of its witnesses, which constancia verify --log-key checks " \
        "reports: not given]\n"
    assert list((tmp_path / "certification").glob("*.pdf"))
    body = "\n".join(others) + """
func main() {
	client, err := constancia.New(constancia.Options{URL: os.Getenv("CONSTANCIA_URL"), Key: os.Getenv("CONSTANCIA_KEY")})
	ctx := context.Background()
	for _, one := range []func() error{
		func() error { return err }, func() error { return many(ctx, client, "1") },
		func() error { return look(ctx, client) },
		func() error { return list(ctx, client) }, func() error { return declare(ctx, client, "order-1001") },
	} {
		if err := one(); err != nil {
			panic(err)
		}
	}
	http.HandleFunc("/hook", receive)
}
"""
    said = run(program_of(built, tmp_path / "more", "more", "package main\n" + imported(body) + body, REPLACE))
    assert "on record since 20" in said and "\n102 reading-1-99\n" in said and "it was used for evt_" in said


def test_the_module_says_what_it_needs():
    assert (CLIENT / "go.mod").read_text(encoding="utf-8") == "module constancia.example/constancia\n\ngo 1.19\n"
    assert (CLIENT / "CHANGELOG.md").exists() and not (CLIENT / "go.sum").exists()
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_package_is_the_same_each_time_and_is_taken_by_a_proxy(built, tmp_path):
    """Go checks the shape of a module's zip where it takes one from a proxy, which may be a folder."""
    for name in ("first", "second"):
        subprocess.run([ROOT / "scripts" / "client-packages", CLIENT.parent, tmp_path / name, "go"], check=True,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "0"})
    (bill, package) = sorted((tmp_path / "first").iterdir())
    for one in (bill, package):
        assert one.read_bytes() == (tmp_path / "second" / one.name).read_bytes()
    component = json.loads(bill.read_text())["metadata"]["component"]
    assert component["purl"] == "pkg:golang/constancia.example/constancia@v0.1.0"
    place = tmp_path / "proxy" / "constancia.example" / "constancia" / "@v"
    place.mkdir(parents=True)
    (place / "v0.1.0.zip").write_bytes(package.read_bytes())
    (place / "v0.1.0.mod").write_bytes((CLIENT / "go.mod").read_bytes())
    (place / "v0.1.0.info").write_text('{"Version": "v0.1.0"}')
    text = """package main

import "constancia.example/constancia"

func main() { print(constancia.Version) }
"""
    program = program_of(built, tmp_path / "shop", "shop", text, GOPROXY=f"file://{tmp_path}/proxy", GONOSUMDB="*",
                         GOFLAGS="-mod=mod -modcacherw")
    assert subprocess.run([program], capture_output=True, text=True, check=True).stderr == "0.1.0"
    usage = subprocess.run([ROOT / "scripts" / "client-packages", CLIENT, tmp_path, "cobol"], capture_output=True,
                           check=False)
    assert usage.returncode == 1 and b"usage" in usage.stderr
