"""The command `chaos`: the faults that it makes, and the clients and tools that survive them."""

import collections
import contextlib
import hashlib
import http.client
import json
import os
import socket
import subprocess
import urllib.parse

import pytest

from client import eventually, fresh
from program import clean_environment
from scripted import say, script  # noqa: F401
from test_client_typescript import program  # noqa: F401
from tools import TOOLS, Tools, receipts_of, tools_of

import constancia
from constancia._http import Retry

PATIENT = Retry(attempts=40, patience=300)


@contextlib.contextmanager
def chaos(folder, to, *words):
    with Tools("", "", folder).running("chaos", "--listen", "127.0.0.1:0", "--to", to, "--json", *words) as one:
        one.url = one.json(0)["listening"]
        yield one


def ask(proxy, method="GET", path="/x", body=None, **headers):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(proxy.url).netloc, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def test_what_passes_is_unchanged(script, tmp_path):  # noqa: F811
    script.answers = [say(201, b'{"a": 1}', X_Request_Id="req_1", Retry_After="7"), say(200, b""), say(404, b"no")]
    with chaos(tmp_path, script.url) as proxy:
        status, body, headers = ask(proxy, "POST", "/v1/events?x=%20y", b"body", Authorization="Bearer k",
                                    Content_Type="text/plain")
        assert (status, body, headers["X-Request-Id"], headers["Retry-After"]) == (201, b'{"a": 1}', "req_1", "7")
        assert ask(proxy)[:2] == (200, b"")
        assert ask(proxy)[:2] == (404, b"no")
        assert proxy.json(1) == {"fault": "pass", "method": "POST", "number": 1, "path": "/v1/events", "status": 201}
    seen = script.seen[0]
    assert (seen.command, seen.path, seen.body) == ("POST", "/v1/events?x=%20y", b"body")
    assert seen.headers["Authorization"] == "Bearer k"
    assert proxy.process.returncode == 0
    assert "FOR TESTS" in proxy.errors[0]


def test_a_body_in_chunks_is_sent_on(script, tmp_path):  # noqa: F811
    script.answers = [say(200, b"ok")]
    with chaos(tmp_path, script.url) as proxy:
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(proxy.url).netloc, timeout=60)
        connection.request("POST", "/x", iter([b"one", b"", b"x" * 200000]), {"Expect": "100-continue"},
                           encode_chunked=True)
        assert connection.getresponse().read() == b"ok"
        connection.close()
    assert script.seen[0].body == b"one" + b"x" * 200000


def test_each_fault_of_a_script(script, tmp_path):  # noqa: F811
    body = os.urandom(100000)
    script.answers = [say(200, body)] * 5
    with chaos(tmp_path, script.url, "--script", "lost,503,half,hang,pass", "--hang-for", "10ms",
               "--retry-after", "3") as proxy:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            ask(proxy)
        status, refusal, headers = ask(proxy)
        assert (status, headers["Retry-After"]) == (503, "3")
        assert json.loads(refusal)["code"] == "temporarily_unavailable"
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask(proxy)
        assert body.startswith(caught.value.partial) and len(caught.value.partial) == 50000
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            ask(proxy)
        assert ask(proxy)[1] == body
        assert ask(proxy)[1] == body  # after the script everything passes
        said = [proxy.json(number) for number in range(1, 7)]
    assert [one["fault"] for one in said] == ["lost", "unavailable", "half", "hang", "pass", "pass"]
    assert [one["status"] for one in said] == [200, None, 200, 200, 200, 200]
    assert len(script.seen) == 5, "503 is not sent on"


def test_half_of_an_answer_without_a_body(script, tmp_path):  # noqa: F811
    script.answers = [say(204)]
    with chaos(tmp_path, script.url, "--script", "half") as proxy:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            ask(proxy)


def faults(tmp_path, url, count, *words):
    with chaos(tmp_path, url, *words) as proxy:
        for _ in range(count):
            ask(proxy)
        return [proxy.json(number)["fault"] for number in range(1, count + 1)]


def test_a_seed_repeats_the_faults(script, tmp_path):  # noqa: F811
    script.answers = [say(200, b"")] * 1000
    first = faults(tmp_path, script.url, 100, "--seed", "7", "--unavailable", "0.3")
    assert first == faults(tmp_path, script.url, 100, "--seed", "7", "--unavailable", "0.3")
    assert first != faults(tmp_path, script.url, 100, "--seed", "8", "--unavailable", "0.3")
    assert 10 < collections.Counter(first)["unavailable"] < 60


def test_an_upstream_that_is_away_is_502(tmp_path):
    with chaos(tmp_path, "http://127.0.0.1:1") as proxy:
        assert ask(proxy)[0] == 502
        assert proxy.json(1)["status"] == 502


@pytest.mark.parametrize("head, status", [
    (b"GET x HTTP/1.1\r\n\r\n", b"400"), (b"GET / HTTP/2\r\n\r\n", b"400"), (b"G\x01T / HTTP/1.1\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
    (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 40 + b"\r\n", b"413"), (b"x" * 20000, b"413")])
def test_what_is_no_request_is_refused(script, tmp_path, head, status):  # noqa: F811

    with chaos(tmp_path, script.url) as proxy:
        parts = urllib.parse.urlsplit(proxy.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall(head)
            assert connection.recv(100).startswith(b"HTTP/1.1 " + status)
    assert not script.seen


@pytest.mark.parametrize("words", [
    (), ("--listen", "127.0.0.1:0"), ("--listen", "here:1", "--to", "http://127.0.0.1:1"),
    ("--listen", "127.0.0.1:0", "--to", "ftp://x"), ("--listen", "127.0.0.1:0", "--to", "http://x", "--lost", "2"),
    ("--listen", "127.0.0.1:0", "--to", "http://x", "--lost", "0.6", "--half", "0.6"),
    ("--listen", "127.0.0.1:0", "--to", "http://x", "--script", "lost,explode")])
def test_misuse_is_refused(tmp_path, words):
    done = subprocess.run([TOOLS, "chaos", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          env=clean_environment({}), check=False)
    assert done.returncode in (1, 2) and done.stderr and not done.stdout


# ---- clients and tools ----

FAULTS = ("--seed", "3", "--lost", "0.15", "--unavailable", "0.1", "--half", "0.15", "--hang", "0.05",
          "--hang-for", "20ms", "--retry-after", "0")


def met(proxy):
    """The faults that the requests met, so that a test without faults fails."""
    return collections.Counter(json.loads(line)["fault"] for line in proxy.lines[1:])


def valid(service, folder, channel, receipts="receipts.ndjson"):
    """Every receipt is of an event of the chain, and the whole chain is certified and valid with them."""
    tools = tools_of(service, channel.live_key["key"], folder)
    done = tools.run("certify", "--trust", service.data / "trust.pem", "--receipts", receipts)
    assert done.stdout.splitlines()[-1].startswith("VALID"), done.stdout


def test_register_survives(service, channel, tmp_path):
    contents = {f"file-{number}": os.urandom(1000 * number) for number in range(1, 21)}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    with chaos(tmp_path, service.public_url, *FAULTS) as proxy:
        tools = Tools(f"{proxy.url}/v1", channel.live_key["key"], tmp_path)
        for name in contents:
            # Five attempts may all fail; a repetition has no further effect.
            eventually(lambda name=name: subprocess.run(
                [TOOLS, "register", name], cwd=tmp_path, env=clean_environment(tools.environment), timeout=120,
                capture_output=True, check=False).returncode == 0, f"{name} is registered")
        assert met(proxy)["lost"] and met(proxy)["half"] and met(proxy)["unavailable"]
    events = channel.live.get("/v1/events?limit=100").json["data"]
    assert sorted(one["hash"] for one in events) == sorted(
        hashlib.sha256(content).hexdigest() for content in contents.values())
    assert {one["event_id"] for one in receipts_of(tmp_path)} == {one["event_id"] for one in events}
    valid(service, tmp_path, channel)


def test_the_python_client_survives(service, channel, tmp_path):
    receipts = tmp_path / "receipts.ndjson"
    refs = [fresh() for _ in range(60)]
    with chaos(tmp_path, service.public_url, *FAULTS) as proxy, \
            constancia.Client(f"{proxy.url}/v1", channel.live_key["key"], receipts=receipts, retry=PATIENT) as client:
        for ref in refs[:30]:
            client.register(ref, {"ref": ref})
        outcomes = list(client.register_many({"client_ref": ref, "payload": {"ref": ref}} for ref in refs[30:]))
        assert all(one.event for one in outcomes)
        certification = client.certify(seq_from=1, seq_to=len(refs))
        assert client.wait(certification).status == "completed"
        assert met(proxy)["lost"] and met(proxy)["half"] and met(proxy)["unavailable"]
    events = channel.live.get("/v1/events?limit=100").json["data"]
    assert [one["client_ref"] for one in events] == refs
    assert len(channel.live.get("/v1/certifications").json["data"]) == 1
    valid(service, tmp_path, channel)


TYPESCRIPT = """
import { Client } from "@constancia/client";
const client = new Client({ baseUrl: process.env.URL, key: process.env.KEY, receipts: "receipts.ndjson",
                            retry: { attempts: 40, patience: 300_000 } });
const refs = JSON.parse(process.env.REFS);
for (const ref of refs.slice(0, 30)) await client.register(ref, { ref });
const declarations = refs.slice(30).map((ref) => ({ clientRef: ref, payload: { ref } }));
for await (const outcome of client.registerMany(declarations)) if (!outcome.event) throw outcome.error;
const certification = await client.certify({ seq_from: 1, seq_to: refs.length });
const done = await client.wait(certification);
if (done.status !== "completed") throw new Error(done.status);
"""


def test_the_typescript_client_survives(service, channel, tmp_path, program):  # noqa: F811
    refs = [fresh() for _ in range(60)]
    (program / "chaos.mjs").write_text(TYPESCRIPT)
    receipts = program / "receipts.ndjson"
    receipts.unlink(missing_ok=True)
    with chaos(tmp_path, service.public_url, *FAULTS) as proxy:
        done = subprocess.run(["node", "chaos.mjs"], cwd=program, capture_output=True, text=True, timeout=600, check=False,
                              env={**os.environ, "URL": f"{proxy.url}/v1", "KEY": channel.live_key["key"],
                                   "REFS": json.dumps(refs)})
        assert done.returncode == 0, done.stderr
        assert met(proxy)["lost"] and met(proxy)["half"] and met(proxy)["unavailable"]
    events = channel.live.get("/v1/events?limit=100").json["data"]
    assert [one["client_ref"] for one in events] == refs
    assert len(channel.live.get("/v1/certifications").json["data"]) == 1
    valid(service, tmp_path, channel, receipts)
