"""docs/integrate/curl.md as its readers use it: every line of it, pasted into one shell that has curl and no program of
ours."""

import json
import re
import subprocess

import pytest

from client import ROOT, run
from program import clean_environment

PAGE = ROOT / "docs/integrate/curl.md"
PATIENCE = 300


def commands():
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert text.count("```") == 2 * len(found), "whatever is shown is run"
    return "\n".join(found)


@pytest.fixture(name="printed", scope="module")
def what_the_page_prints(start, tmp_path_factory):
    service, folder = start(), tmp_path_factory.mktemp("curl")
    content, digests = service.new_channel(), service.new_channel("hash_only")
    keys = {"CONSTANCIA_KEY": content.live_key, "CONSTANCIA_TEST_KEY": content.test_key,
            "CONSTANCIA_HASH_KEY": digests.live_key}
    for channel in (content, digests):
        channel.close()
    environment = clean_environment({"CONSTANCIA_URL": f"{service.public_url}/v1",
                                     **{name: key["key"] for name, key in keys.items()}})
    done = subprocess.run(["sh", "-c", commands()], cwd=folder, env=environment, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return folder, service.data / "trust.pem", done.stdout


def test_every_line_works_when_pasted(printed):
    _, _, text = printed
    for wanted, times in ((r"^422 limit_blocked$", 1), (r"^400 validation_error$", 1), (r"^409 client_ref_conflict$", 1),
                          (r"^102 reading-order-\d+-\d+-100 [0-9a-f]{64}$", 1), (r"^all documents are on record$", 1),
                          (r'^"CERT-\d{4}-\d{7}"$', 1), (r'^  "type": "balance.low",$', 1), (r'^A channel$', 1)):
        found = re.findall(wanted, text, re.MULTILINE)
        assert len(found) == times, (wanted, found, text[-6000:])


def test_the_receipts_are_those_that_the_verifier_takes(printed):
    folder, trust, _ = printed
    receipts = [json.loads(line) for line in (folder / "receipts.ndjson").read_text(encoding="utf-8").splitlines()]
    assert [receipt["sequence"] for receipt in receipts] == list(range(1, 103))
    done = run("verify", *map(str, folder.glob("*.zip")), "--receipt", str(folder / "receipts.ndjson"),
               "--trust", str(trust), "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 0 and result["verdict"]["code"] == "valid", done.stdout
    assert result["checked"]["receipts"] == 102 and result["checked"]["parts"] == 1
