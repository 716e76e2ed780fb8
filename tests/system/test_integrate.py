"""docs/integrate.md as its readers use it: every line of it, pasted from the top, with a service that
`scripts/run` started as the page says, its tour included."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from client import ROOT, free_port
from program import BINARY, clean_environment

pytestmark = pytest.mark.sqlite  # the store of a development service
PATIENCE = 600
PAGE = ROOT / "docs" / "integrate.md"


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
    # Without the building, which what is tested here has behind it.
    (tmp_path / "Makefile").write_text("run:\n\t@exec scripts/run\n", encoding="utf-8")
    return tmp_path


@contextlib.contextmanager
def terminal(commands, folder, environment):
    """A shell in which they run, one behind the other, until it ends or is ended with all of it."""
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
        with terminal("\n".join(rest), checkout, environment) as (shell, said):
            try:
                shell.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                pytest.fail(f"it hangs: {said()[-4000:]}")
            text = said()
            assert shell.returncode == 0, text[-4000:]
        assert service.poll() is None
    judge(text)


def judge(text):
    """What the reader has to see, by the page's headings."""
    for wanted, times in ((r"Idempotent-Replayed: true", 1), (r"report-en\.pdf: OK", 1),
                          (r'"code": ?"client_ref_conflict"', 1), (r"^409$", 1),
                          (r"^HTTP/1\.1 429", 1), (r"^[Rr]etry-[Aa]fter: [1-9]", 1),
                          (r"^registered 3 4$", 1), (r"^registered 5 6$", 1),
                          (r"^completed", 2), (r"^digest [0-9a-f]{64}$", 2),
                          (r"^409 client_ref_conflict ", 2),
                          (r"^still refused after a wait of [1-9]", 2),
                          (r"^valid True$", 1), (r"^valid true$", 3),
                          (r"^certification\.completed CERT-", 2)):
        found = re.findall(wanted, text, re.MULTILINE)
        assert len(found) == times, (wanted, found, text[-6000:])
    assert "FAILED" not in text and text.count("WRONG") == 0


def test_the_page_is_found():
    for page, link in (("README.md", "docs/integrate.md"), ("docs/architecture.md", "integrate.md")):
        assert f"]({link})" in (ROOT / page).read_text(encoding="utf-8"), page
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / link).exists(), link
