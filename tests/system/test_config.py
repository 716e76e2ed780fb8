"""All that keeps a service from starting is reported at once, by `config check` and by the start itself."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess

import pytest

import signer_log
import stores

from client import BINARY, eventually, free_port, run
from program import clean_environment

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src" / "store" / "schema" / "sqlite"

pytestmark = pytest.mark.skipif(stores.KIND != "sqlite", reason="the engine does not matter here")


def basics(directory, **settings):
    """A deployment's settings, on ports of its own."""
    chosen = {"service.data_dir": directory, "service.listen": f"127.0.0.1:{free_port()}",
              "service.admin_listen": "", "tsa.url": "embedded:",
              **{name.replace("__", "."): value for name, value in settings.items()}}
    return [f"--set={name}={value}" for name, value in chosen.items()]


def findings(*arguments, environment=None, expected=1):
    done = run("config", "check", "--json", *arguments, environment=environment)
    assert done.returncode == expected, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["valid"] == (expected == 0)
    return told["findings"]


def problems(found):
    return {one["setting"] or one["origin"]: one["problem"] for one in found if "problem" in one}


def refused(arguments):
    """What a start says, with which exit code."""
    done = run("serve", *arguments)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    return done.returncode, [line for line in lines if line["event"].startswith("start_failed")]


@pytest.fixture
def held():
    """An address that somebody has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield "127.0.0.1:%d" % listener.getsockname()[1]


def test_all_that_is_written_wrong_is_told_together(tmp_path):
    file = tmp_path / "constancia.conf"
    file.write_text("[rate]\nlive = many\nlvie = 5\nnonsense\nmore nonsense\n[log]\nlevel = loud\n"
                    "[mail]\nurl = smtp://mail.example\n")
    found = findings("--config", file, *basics(tmp_path / "data"),
                     environment={"CONSTANCIA_RATE_TSET": "1", "CONSTANCIA_SERVICE_HOST": "10.0.0.1"})
    told = [(one["setting"], one["origin"], one.get("problem") or one.get("warning"))
            for one in found]
    wanted = [("rate.live", f"{file}:2", "decimal integer"), (None, f"{file}:3", "did you mean rate.live"),
              (None, f"{file}:4", "must be a [section]"), (None, f"{file}:5", "must be a [section]"),
              ("log.level", f"{file}:7", "debug, info"), ("mail.from", None, "must be an address"),
              (None, "CONSTANCIA_RATE_TSET", "did you mean CONSTANCIA_RATE_TEST")]
    for setting, origin, text in wanted:
        assert any(one[:2] == (setting, origin) and text in one[2] for one in told), (text, told)
    assert len([one for one in found if "problem" in one]) == len(wanted)
    # A start logs the same, but for the variable, of which it only warns.
    done = run("serve", "--config", file, *basics(tmp_path / "data"))
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    lines = [line for line in lines if line["event"].startswith("start_failed")]
    assert done.returncode == 2 and [line["event"] for line in lines] == [
        "start_failed"] + ["start_failed_also"] * (len(wanted) - 2)
    assert [(line["setting"] or None, line["origin"] or None, line["message"]) for line in lines] == [
        one for one, finding in zip(told, found) if "problem" in finding and one[1] != "CONSTANCIA_RATE_TSET"]
    # What a platform sets for a service of this name prevents nothing.
    assert [one["origin"] for one in found if "warning" in one and not one["setting"]] == [
        "CONSTANCIA_SERVICE_HOST"]


def test_a_service_starts_in_spite_of_a_variable_that_no_setting_has(tmp_path):
    arguments = basics(tmp_path / "data")
    environment = {"CONSTANCIA_RATE_TSET": "1"}
    assert run("init", *arguments, environment=environment).returncode == 0
    assert problems(findings(*arguments, environment=environment)).keys() == {"CONSTANCIA_RATE_TSET"}
    assert not problems(findings(*arguments, expected=0))


def test_what_a_start_refuses_is_found_before(tmp_path, held):
    """Addresses, directories, roots and keys, by the same words."""
    data = tmp_path / "data"
    (tmp_path / "roots.pem").write_text("no certificate\n")
    (tmp_path / "key.pem").write_text("no key\n")
    arguments = basics(data, service__listen=held, service__admin_listen="203.0.113.7:80",
                       service__admin_socket=tmp_path / "nowhere" / "admin.sock",
                       tsa__url="https://tsa.example/", tsa__roots=tmp_path / "roots.pem",
                       signer__key=tmp_path / "key.pem")
    data.mkdir()
    told = problems(findings(*arguments))
    assert told.keys() == {"service.listen", "service.admin_listen", "service.admin_socket",
                           "signer.key", "tsa.roots"}
    assert held in told["service.listen"] and "nowhere" in told["service.admin_socket"]
    code, lines = refused(arguments)
    assert code != 0
    said = json.dumps(lines)
    for setting in told:
        assert setting in said or setting == "service.admin_socket", (setting, said)
    assert "nowhere" in said
    # Before `init` the directory is only not there yet.
    data.rmdir()
    found = findings(*arguments)
    assert "service.data_dir" not in problems(found) and "service.listen" in problems(found)
    code, lines = refused(arguments)
    assert "constancia init" in lines[0]["message"]


@pytest.mark.parametrize("address, works", [
    ("https://register.example.org", True), ("http://localhost:8080", True), ("http://127.0.0.1:8080", True),
    ("https://192.0.2.7", False), ("https://[2001:db8::1]:8443", False), ("http://register.example.org", False)])
def test_an_address_that_has_no_passkeys_is_warned_of(tmp_path, address, works):
    found = findings(*basics(tmp_path / "data", service__public_url=address), expected=0)
    warned = [one["warning"] for one in found if one["setting"] == "service.public_url"]
    plain = address == "http://register.example.org"
    assert [one for one in warned if "clients send their keys" in one] == warned[:1 if plain else 0]
    warned = warned[1 if plain else 0:]
    assert (warned == []) == works and all("They require https and a host name" in one for one in warned)


def test_a_directory_of_somebody_else(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    arguments = basics(data)
    tmp_path.chmod(0o755)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BINARY, "config",
                           "check", "--json", *arguments], env=clean_environment(), text=True,
                          capture_output=True, check=False, cwd="/")
    if done.returncode == 127 or not done.stdout:
        pytest.skip("another user cannot run the program where it lies")
    assert "root" in problems(json.loads(done.stdout)["findings"])["service.data_dir"]
    os.chown(data, 65534, 65534)
    warned = [one["warning"] for one in findings(*arguments, expected=0)]
    assert any("sudo -u" in text for text in warned), warned


def test_an_older_store_is_told_with_what_to_do(tmp_path):
    data = tmp_path / "data"
    arguments = basics(data)
    assert run("init", *arguments).returncode == 0
    first = min(os.listdir(SCHEMA))[:-len(".sql")]
    with contextlib.closing(sqlite3.connect(data / "constancia.db")) as store:
        store.execute("UPDATE settings SET value = ? WHERE name = 'schema'", (first,))
        store.commit()
    told = problems(findings(*arguments))
    assert "store migrate" in told["store.url"], told
    code, lines = refused(arguments)
    assert code == 1 and lines[0]["message"] == told["store.url"]


def test_a_store_that_a_start_would_not_take_is_told(tmp_path):
    """The log was rolled back, another certificate is in force, or what was signed is not to be relied on."""
    data = tmp_path / "data"
    arguments = basics(data)
    assert run("init", *arguments).returncode == 0
    store = stores.make(data)
    before = signer_log.lines(data)
    assert not problems(findings(*arguments, expected=0))
    assert signer_log.lines(data) == before, "it was checked, and not written"
    signer_log.mark(data, store, 7)
    told = problems(findings(*arguments))
    assert told.keys() == {"store.url"} and "has seen round 7" in told["store.url"], told
    code, lines = refused(arguments)
    assert code == 1 and lines[0]["message"] == told["store.url"]
    store.change(f"UPDATE signers SET development = 0, sha256 = {stores.blob(bytes(32))}")
    told = problems(findings(*arguments))
    assert told.keys() == {"store.url", "signer.key"}, told
    code, lines = refused(arguments)
    assert lines[0]["message"] == told["signer.key"]
    assert [line["message"] for line in lines[1:]] == [told["store.url"]]
    signer_log.mark(data, store, 8)
    signer_log.tamper(data)
    told = problems(findings(*arguments))
    assert told.keys() == {"signer.directory", "signer.key"}, told
    code, lines = refused(arguments)
    assert code == 1 and told["signer.directory"].split(": ")[-1] in lines[0]["cause"], lines


def test_beside_a_running_service_nothing_of_it_is_a_fault(tmp_path):
    arguments = basics(tmp_path / "data")
    assert run("init", *arguments).returncode == 0
    with subprocess.Popen([BINARY, "serve", *arguments], env=clean_environment(),
                          stderr=subprocess.PIPE, text=True) as running:
        try:
            for line in running.stderr:
                if '"serving"' in line:
                    break
            found = findings(*arguments, expected=0)
            assert [one["warning"] for one in found if "a service is running" in one.get("warning", "")]
            # A second one is refused for the directory, not for the address that the first one has.
            code, lines = refused(arguments)
            assert code != 0 and "in use by another service" in lines[0]["message"]
            assert running.poll() is None
        finally:
            running.terminate()
    assert running.returncode == 0


def without(places, words):
    """The words, where those places are empty."""
    hide = " && ".join(f"mount -t tmpfs none {place}" if os.path.isdir(place)
                       else f"mount --bind /dev/null {place}" for place in places)
    return subprocess.run(["unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh", *map(str, words)],
                          env=clean_environment(), capture_output=True, text=True, check=False)


def test_missing_fonts_and_programs_are_found_at_start(tmp_path):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs mount namespaces")
    arguments = basics(tmp_path / "data")
    assert run("init", *arguments).returncode == 0
    done = without(["/usr/share/fonts"], [BINARY, "config", "check", "--json", *arguments])
    (missing,) = [one["problem"] for one in json.loads(done.stdout)["findings"] if "problem" in one]
    for package in ("fonts-noto-core", "fonts-noto-cjk", "fonts-dejavu-core"):
        assert package in missing
    assert "icc-profiles-free" not in missing
    done = without(["/usr/share/fonts"], [BINARY, "serve", *arguments])
    assert done.returncode != 0 and missing in done.stderr
    # A program without its helpers.
    lone = tmp_path / "bin"
    lone.mkdir()
    shutil.copy2(BINARY, lone / "constancia")
    done = subprocess.run([lone / "constancia", "config", "check", *arguments], text=True,
                          env=clean_environment(), capture_output=True, check=False)
    if "constancia-renderer" not in done.stderr:
        pytest.skip("the helpers are installed on this machine")
    assert done.returncode == 1 and "constancia-trusted-list" in done.stderr


def test_secrets_are_not_told(tmp_path):
    secret = "sk_live_very_secret"
    done = run("config", "check", *basics(tmp_path / "data"), "--set=payment.provider=stripe",
               f"--set=payment.stripe_key={secret} x", f"--set=mail.password={secret}",
               environment={"CONSTANCIA_TSA_PASWORD": secret})
    assert done.returncode == 1
    assert secret not in done.stdout + done.stderr
