"""The applications of docs/examples/orders: each declares orders and a contract, has them certified and verifies the
evidence. The one in Java runs in tests/conformance/clients/java-client."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import golang
from client import ROOT, PATIENCE
from program import BINARY, clean_environment
from test_client_typescript import CLIENT, run

ORDERS = ROOT / "docs/examples/orders"
# What orders.ts uses of Node, whose own types are a package of npm.
NODE = """
declare module "node:fs/promises" { export function readFile(path: string, encoding: "utf8"): Promise<string>; }
declare module "node:path" { export function basename(path: string): string; export function join(...parts: string[]): string; }
declare const process: { argv: string[]; env: Record<string, string | undefined>; exitCode: number };
"""
LINES_MAX = {"orders.py": 45, "orders.ts": 27, "orders.go": 37}  # of code


@pytest.fixture(name="typescript", scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("typescript")
    package = folder / "node_modules/@constancia/client"
    package.mkdir(parents=True)
    run(["tsc", "-p", CLIENT, "--outDir", package / "dist"], folder)
    shutil.copy(CLIENT / "package.json", package)
    shutil.copy(ORDERS / "orders.ts", folder)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "node.d.ts").write_text(NODE, encoding="utf-8")
    run(["tsc", "--strict", "--module", "node16", "--moduleResolution", "node16", "--target", "es2022", "--lib",
         "es2022,dom", "node.d.ts", "orders.ts"], folder)
    return ["node", folder / "orders.js"]


@pytest.fixture(name="go", scope="module")
def built_in_go(tmp_path_factory):
    folder = tmp_path_factory.mktemp("go")
    shutil.copy(ORDERS / "orders.go", folder)
    (folder / "go.mod").write_text("module orders\n\ngo 1.19\n\nrequire constancia.example/constancia v0.1.0\n\n"
                                   f"replace constancia.example/constancia => {golang.CLIENT}\n", encoding="utf-8")
    golang.run_go(folder, "build", "-o", folder / "orders", cwd=folder)
    return [folder / "orders"]


@pytest.fixture(name="command", params=["python", "typescript", "go"])
def command_of_language(request):
    if request.param == "python":
        return [sys.executable, ORDERS / "orders.py"]
    return request.getfixturevalue(request.param)


class Shop:
    """A channel and a directory with what is declared."""

    def __init__(self, service, folder):
        self.service, self.folder = service, folder
        self.channel = service.new_channel(credits=100)
        orders = [{"number": number, "total": f"{number}.90"} for number in range(1001, 1024)]
        (folder / "orders.ndjson").write_text("".join(json.dumps(one) + "\n" for one in orders), encoding="utf-8")
        (folder / "contract.txt").write_bytes(b"We deliver by Friday. " * 5000)

    def run(self, command, **environment):
        given = {"CONSTANCIA_URL": f"{self.service.public_url}/v1", "CONSTANCIA_KEY": self.channel.live_key["key"],
                 "PATH": f"{os.path.dirname(BINARY)}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "clients/python"),
                 "PYTHONDONTWRITEBYTECODE": "1", **environment}
        (self.folder / "evidence").mkdir(exist_ok=True)
        return subprocess.run([*map(str, command), "orders.ndjson", "contract.txt", "evidence",
                               str(self.service.data / "trust.pem")], cwd=self.folder, env=clean_environment(given),
                              capture_output=True, text=True, timeout=10 * PATIENCE, check=False)


@pytest.fixture(name="shop")
def shop_of_test(service, tmp_path):
    made = Shop(service, tmp_path)
    yield made
    made.channel.close()


def test_the_evidence_is_valid_and_a_repetition_does_nothing_twice(shop, command):
    for receipts in (24, 48):
        done = shop.run(command)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"valid {receipts} receipts"), done.stdout
        lines = (shop.folder / "evidence/receipts.ndjson").read_text(encoding="utf-8").splitlines()
        assert len(lines) == receipts and len({json.loads(line)["event_id"] for line in lines}) == 24
    assert shop.channel.live.balance()["balance"] == 76
    assert len(shop.channel.live.get("/v1/certifications").expect(200).json["data"]) == 1


def test_a_receipt_that_differs_is_not_overlooked(shop, command):
    assert shop.run(command).returncode == 0
    path = shop.folder / "evidence/receipts.ndjson"
    receipt = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    receipt["hash"] = "0" * 64
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(receipt) + "\n")
    done = shop.run(command)
    assert done.returncode == 1 and not done.stdout.startswith("valid"), done.stdout


def test_a_refusal_is_shown(shop, command):
    done = shop.run(command, CONSTANCIA_KEY="svc_live_unknown")
    assert done.returncode == 1 and "invalid_key" in done.stderr, done.stderr
    with (shop.folder / "orders.ndjson").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"number": "x" * 300}) + "\n")
    done = shop.run(command)
    assert done.returncode == 1 and "client_ref" in done.stderr, done.stderr


@pytest.mark.parametrize("name", sorted(path.name for path in ORDERS.iterdir() if path.name in LINES_MAX))
def test_they_stay_short(name):
    lines = [line for line in (ORDERS / name).read_text(encoding="utf-8").splitlines()
             if line.strip() and not line.startswith("//")]
    assert len(lines) < LINES_MAX[name]
