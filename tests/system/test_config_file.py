"""The settings file of a command: --config, CONSTANCIA_CONFIG, or the file of the installation."""

import json
import os
import subprocess

import pytest

from client import BINARY
from program import clean_environment


def run(*words, environment=None, wrap=()):
    return subprocess.run([*wrap, BINARY, *words], env=clean_environment(environment), text=True, capture_output=True,
                          check=False, timeout=60, cwd="/")


@pytest.fixture(name="settings")
def settings_file(tmp_path):
    path = tmp_path / "constancia.conf"
    path.write_text("[rate]\nlive = 7\n", encoding="utf-8")
    return path


def rate(*words, environment=None):
    done = run("config", "print", "--json", *words, environment=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rate"]["live"]


def test_a_variable_names_the_file(settings):
    named = {"CONSTANCIA_CONFIG": str(settings)}
    assert rate(environment=named) == "7"
    assert rate("--config=", environment=named) == "50"
    assert rate("--data=/nowhere", environment=named) == "50", "another directory is another deployment"
    assert rate("--data=/nowhere", f"--config={settings}") == "7"
    assert rate("--set=rate.live=8", environment=named) == "8"


def test_an_operation_reads_it_too(settings, tmp_path):
    settings.write_text(f"[service]\ndata_dir = {tmp_path}/elsewhere\n", encoding="utf-8")
    done = run("account", "list", environment={"CONSTANCIA_CONFIG": str(settings)})
    assert done.returncode == 1 and f"{tmp_path}/elsewhere/constancia.db" in done.stderr, done.stderr


def test_development_ignores_it(settings):
    """A service for development must not open the store of production."""
    settings.write_text("[store]\nurl = nonsense:\n", encoding="utf-8")
    done = run("dev", "--data=/nonexistent/demo", "--listen=127.0.0.1:0",
               environment={"CONSTANCIA_CONFIG": str(settings)})
    assert done.returncode and "nonsense" not in done.stderr, done.stderr


def test_offline_commands_need_none(tmp_path):
    done = run("verify", "/nonexistent", environment={"CONSTANCIA_CONFIG": str(tmp_path / "missing")})
    assert "missing" not in done.stderr, done.stderr


def test_a_file_that_may_not_be_read_is_an_error(settings, tmp_path):
    """Defaults in its place would be those of another deployment."""
    if os.geteuid():
        settings.chmod(0)
        wrap = ()
    else:
        settings.chmod(0o640)
        tmp_path.chmod(0o711)
        wrap = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    done = run("account", "list", environment={"CONSTANCIA_CONFIG": str(settings)}, wrap=wrap)
    if done.returncode in (126, 127) or str(settings) not in done.stderr and "Permission denied" not in done.stderr:
        pytest.skip("another user cannot run the program where it lies")
    assert done.returncode == 2, done.stderr
    assert f"{settings}: Permission denied" in done.stderr and "sudo -u constancia" in done.stderr, done.stderr
