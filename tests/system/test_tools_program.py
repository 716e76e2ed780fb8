"""The program with the tools alone, which the package constancia-tools installs as `constancia`."""

import pathlib
import re
import shutil
import subprocess

import pytest

from client import BINARY, run
from program import clean_environment
from tools import SMALL

pytestmark = [pytest.mark.sqlite, pytest.mark.skipif(not SMALL.exists(), reason="the build has no program of the tools")]

COMMANDS = {"verify", "proof", "bundle", "register", "certify", "events tail", "listen", "log audit",
            "log watch", "log check-proof", "trigger", "chaos", "completion", "version"}


def small(*words):
    return subprocess.run([SMALL, *words], env=clean_environment({}), capture_output=True, text=True, timeout=60, check=False)


def listed(text):
    return set(re.findall(r"^  ([a-z]+(?: [a-z-]+)?)(?: [A-Z_.]+)*  ", text, re.M))


def own(text):
    """The help of a command without the options that every command of its program has."""
    return [line for line in text.splitlines() if not re.match(r"  --(config|data|set|json|help)\b", line)]


def test_it_has_these_commands_as_the_service_has_them():
    assert listed(small("--help").stdout) == COMMANDS
    for command in COMMANDS - {"version"}:
        assert own(small(*command.split(), "--help").stdout) == own(run(*command.split(), "--help").stdout), command
    assert small("version").stdout == run("version").stdout
    assert small("verify", "--config", "x", "y").returncode == 2, "it has no settings"
    assert small("account", "list").returncode == small("serve").returncode == 2


def test_it_does_not_contain_the_service():
    assert SMALL.stat().st_size < pathlib.Path(BINARY).stat().st_size / 2
    linked = subprocess.run(["ldd", SMALL], capture_output=True, text=True, check=True).stdout
    assert "libcrypto" in linked and not re.search("sqlite|libpq|microhttpd|gnutls|fido|expat|qrencode", linked), linked
    assert b"CREATE TABLE" not in SMALL.read_bytes() and b"CREATE TABLE" in pathlib.Path(BINARY).read_bytes()


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_it_prints_its_completion(shell):
    text = small("completion", shell).stdout
    assert ":register::" in text and "trigger:balance.low::" in text and ":account:" not in text
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True, timeout=60, check=False)
        assert checked.returncode == 0, checked.stderr
