"""docs/integrate/integrate.md as its readers use it: every line of it, pasted from the top, with a service that
`scripts/run` started as the page says, its tour included."""

import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import types
import urllib.parse

import pytest

from client import ROOT, eventually, free_port
from console import Visitor
from program import BINARY, clean_environment

pytestmark = pytest.mark.sqlite  # the store of a development service
PATIENCE = 600
PAGE = ROOT / "docs/integrate/integrate.md"
SECRET = "whsec_" + "01" * 32


def blocks():
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert text.count("```") == 2 * len(found), "whatever is shown is run"
    return found


@pytest.fixture
def checkout(tmp_path):
    """What the page uses of the repository, built."""
    for name in ("scripts", "clients"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").symlink_to(pathlib.Path(BINARY).resolve().parent)
    # Without the build: the program under test has been built already.
    (tmp_path / "Makefile").write_text("run:\n\t@exec scripts/run\n", encoding="utf-8")
    return tmp_path


@contextlib.contextmanager
def terminal(commands, folder, environment):
    """A shell in which they run, in order, until it ends or is ended with all of it."""
    printed = folder / f"terminal-{len(list(folder.glob('terminal-*')))}"
    with open(printed, "wb") as output:
        shell = subprocess.Popen(["bash", "-euo", "pipefail", "-c", commands], cwd=folder,
                                 env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield shell, lambda: printed.read_text(encoding="utf-8", errors="replace")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)
        shell.wait(60)


def test_every_line_works_when_pasted(checkout):
    first, *rest = blocks()
    assert first == "make run\n"
    environment = clean_environment({"LISTEN": f"127.0.0.1:{free_port()}",
                                     "HOOK_PORT": str(free_port()),
                                     "PYTHONDONTWRITEBYTECODE": "1"})
    with terminal(first, checkout, environment) as (service, told):
        end = time.monotonic() + PATIENCE
        while "The tour is over" not in told():
            assert service.poll() is None and time.monotonic() < end, told()[-4000:]
            time.sleep(0.2)
        judge_demo(told())
        with terminal("\n".join(rest), checkout, environment) as (shell, said):
            try:
                shell.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                pytest.fail(f"it hangs: {said()[-4000:]}")
            text = said()
            assert shell.returncode == 0, text[-4000:]
        assert service.poll() is None
    judge(text)


def opened(link):
    """The console that it leads to."""
    parts = urllib.parse.urlsplit(link)
    visitor = Visitor(types.SimpleNamespace(public_url=f"{parts.scheme}://{parts.netloc}")).enter(link)
    assert visitor.status == 200 and "demo@example.org" in visitor.body and "<nav" in visitor.body
    return visitor


def test_the_link_of_the_ready_file_opens_the_console(start):
    """Once; scripts/run prints another, which would take its place."""
    service = start()
    link = service.ready["console_url"]
    assert opened(link).get("/console/channels").status == 200
    parts = urllib.parse.urlsplit(link)
    again = Visitor(service).get(f"{parts.path}?{parts.query}").send("/console/enter")
    assert again.status == 403


def judge_demo(text):
    """The link of the tour opens a console with something to look at."""
    (link,) = re.findall(r"^  Console +(http://\S+/console/enter\?link=[0-9a-f]{64})$", text, re.MULTILINE)
    visitor = opened(link)

    def rows(path):
        assert visitor.get(path).status == 200, path
        return json.loads(visitor.content)
    assert rows("/console/usage.json?by=channel") and sum(one["events"] for one in rows("/console/usage.json")) >= 27
    channels = re.findall(r"/console/channels/(chn_\w+)", visitor.get("/console/channels").body)
    shown = [visitor.get(f"/console/certifications?channel={one}&status=completed").body for one in set(channels)]
    assert len(set(re.findall(r"/console/certifications/(CERT-[\w-]+)", " ".join(shown)))) >= 1
    assert {"paid", "pending"} <= {one["state"] for one in rows("/console/money/purchases.json")}
    assert "purchase" in {one["kind"] for one in rows("/console/money/movements.json")}
    assert "colleague@example.org" in visitor.get("/console/users").text()
    hooks = set(re.findall(r"/console/webhooks/(whk_\w+)", visitor.get("/console/webhooks").body))

    def there(*states):
        return any("/notices/ntc_" in visitor.get(f"/console/webhooks/{one}?status={state}").body
                   for one in hooks for state in states)
    eventually(lambda: there("delivered"), "a notice was delivered")
    eventually(lambda: there("waiting", "failed"), "another was refused")
    for page in ("", "events", "keys", "limits", "money", "usage", "certifications", "sessions"):
        assert visitor.get(f"/console/{page}").status == 200 and "<table" in visitor.body, page
    assert 'class="act"' in visitor.get("/console/acts").body


def judge(text):
    """What the reader has to see, by the page's headings."""
    for wanted, times in ((r"Idempotent-Replayed: true", 1), (r"report-en\.pdf: OK", 1),
                          (r'"code": ?"client_ref_conflict"', 1), (r"^409$", 1),
                          (r"^HTTP/1\.1 429", 1), (r"^[Rr]etry-[Aa]fter: [1-9]", 1),
                          (r"^250$", 1), (r"^registered 253 254$", 1), (r"^registered 255 256$", 1),
                          (r"^completed", 2), (r"^digest [0-9a-f]{64}$", 2),
                          (r"^409 client_ref_conflict ", 2),
                          (r"^still refused after a wait of [1-9]", 2),
                          (r"^valid True$", 1), (r"^signatures by program receipts 3$", 1),
                          (r"^valid by program receipts 3$", 1),
                          (r"^certification\.completed CERT-", 2)):
        found = re.findall(wanted, text, re.MULTILINE)
        assert len(found) == times, (wanted, found, text[-6000:])
    assert "FAILED" not in text and text.count("WRONG") == 0


def program_of_the_page(name):
    return re.search(rf"^cat > {re.escape(name)} <<'END'\n(.*?)^END$",
                     PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]


@contextlib.contextmanager
def receiving(command, folder):
    port = free_port()
    environment = clean_environment({
        "HOOK_PORT": str(port), "WEBHOOK_SECRET": SECRET, "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(ROOT / "clients" / "python")})
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as receiver:
        try:
            end = time.monotonic() + PATIENCE
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                assert receiver.poll() is None and time.monotonic() < end
                time.sleep(0.1)
            yield port, receiver
        finally:
            receiver.kill()


def status_of(port, head, body=b""):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"POST /hook HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode() + body)
        first = connection.makefile("rb").readline().split()
        return int(first[1]) if first else None


def notice(identifier):
    body = json.dumps({"id": identifier, "type": "certification.completed", "mode": "live",
                       "created_at": "2026-01-02T03:04:05.678901Z",
                       "data": {"certification_id": identifier}}).encode()
    now = str(int(time.time()))
    mac = hmac.new(SECRET.encode(), now.encode() + b"." + body, hashlib.sha256).hexdigest()
    return (f"Content-Length: {len(body)}\r\nX-SVC-Timestamp: {now}\r\n"
            f"X-SVC-Signature: v1={mac}"), body


@pytest.mark.parametrize("language", ["py", "mjs"])
def test_the_receivers_take_what_is_bounded_and_signed(tmp_path, language):
    name = f"receiver.{language}"
    (tmp_path / name).write_text(program_of_the_page(name), encoding="utf-8")
    if language == "mjs":
        package = tmp_path / "node_modules" / "@constancia" / "client"
        subprocess.run(["tsc", "-p", ROOT / "clients" / "typescript", "--outDir",
                        package / "dist"], check=True, timeout=PATIENCE)
        shutil.copy(ROOT / "clients" / "typescript" / "package.json", package)
    command = {"py": sys.executable, "mjs": "node"}[language]
    with receiving([command, name], tmp_path) as (port, receiver):
        assert status_of(port, "Connection: close") == 411
        assert status_of(port, "Transfer-Encoding: chunked", b"0\r\n\r\n") == 411
        assert status_of(port, "Content-Length: 999999999") == 413  # not waited for
        head, body = notice("CERT-1")
        assert status_of(port, head, body.replace(b"live", b"test")) == 400
        assert [status_of(port, head, body) for _ in range(2)] == [204, 204]
        assert status_of(port, *notice("CERT-2")) == 204
        assert [receiver.stdout.readline() for _ in range(2)] == [
            b"certification.completed CERT-1\n", b"certification.completed CERT-2\n"]
        if language == "py":  # what could not be dealt with is not acknowledged, nor taken as seen
            receiver.stdout.close()
            head, body = notice("CERT-3")
            assert [status_of(port, head, body) for _ in range(2)] == [None, None]


def test_every_page_is_in_the_index():
    index = ROOT / "docs/README.md"
    table = [line for line in index.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    generated = set((ROOT / "docs/develop").glob("source-map/*.md"))  # source-map.md lists them
    for page in set((ROOT / "docs").rglob("*.md")) - generated - {index}:
        assert any(f"]({page.relative_to(index.parent)})" in line for line in table), page
    assert "](docs/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_is_found():
    for page, link in (("README.md", "docs/integrate/integrate.md"), ("docs/develop/architecture.md", "../integrate/integrate.md")):
        assert f"]({link})" in (ROOT / page).read_text(encoding="utf-8"), page
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / link).exists(), link
