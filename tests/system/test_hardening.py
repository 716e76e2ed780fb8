"""The commands of the hardening checklist: a service that is set up as the page says shows the output on the page."""

import os
import pwd
import re
import subprocess

import pytest

from operators import NO_AUTHORITY
from pki import Pki
from postgres import ROLE, Cluster
from program import PATIENCE, ROOT
from test_reload import Reloading

PAGE = ROOT / "docs/operate/hardening.md"

# Commands that need a machine, a network or a state that a test has not, by their beginning; and why.
ELSEWHERE = {
    "constancia config check": "test_config_connect.py",
    "curl --silent --output /dev/null --write-out '%{http_code}\\n' https://s3.": "a bucket",
    "swapon": "the machine", "sysctl": "the machine", "apt list": "the machine", "dpkg": "a package: tests/package",
    "ss --no-header --listening --tcp --numeric --processes": "the machine",
    "curl --silent --output /dev/null --write-out '%{http_code} %{redirect_url}": "test_proxies.py",
    "curl --silent --include https://register": "test_proxies.py", "openssl s_client": "test_proxies.py",
    "runuser": "a firewall", "psql": "test_the_role_of_the_database",
    "constancia store check": "every test of the store",
    "curl --silent http://127.0.0.1:8081/metrics | grep '^constancia_clock": "the clock of the machine",
    "curl --silent http://127.0.0.1:8081/readyz": "test_monitoring.py",
}


def checks():
    """(command, expected output) of each command of the page."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        for one in re.split(r"(?m)^# ", block)[1:]:
            command, _, expected = one.partition("\n")
            yield command, expected


def elsewhere(command):
    return next((why for begins, why in ELSEWHERE.items() if command.startswith(begins)), None)


def fits(expected, output):
    pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", expected.strip()))
    return re.fullmatch(pattern, output.strip(), re.S) is not None


def test_each_exception_is_a_command_of_the_page():
    commands = [command for command, _ in checks()]
    assert len(commands) > 25
    for begins in ELSEWHERE:
        assert any(command.startswith(begins) for command in commands), begins


@pytest.fixture(scope="module")
def hardened(tmp_path_factory):
    """A service as the page has it, with the rights that its unit leaves it."""
    place = tmp_path_factory.mktemp("hardened")
    pki = Pki(place / "pki")
    one = Reloading(place)
    one.base |= {**NO_AUTHORITY, "tsa.roots": str(pki.root), **pki.signer("operator"),
                 "service.trusted_proxies": "127.0.0.0/8"}
    one.write()
    one.file.chmod(0o640)
    one.key = pki.path("operator.key")
    one.key.chmod(0o400)
    one.wrap = ["setpriv", "--no-new-privs", *(["--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else [])]
    try:
        yield one.start()
        assert one.stop() == 0
    finally:
        one.discard()


@pytest.mark.sqlite
@pytest.mark.parametrize("command, expected", [check for check in checks() if not elsewhere(check[0])])
def test_a_command_shows_a_good_state(hardened, tmp_path, command, expected):
    """What is on the page, of this service: its paths, ports and user."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in (("constancia", f'exec {hardened.binary} "$@"'), ("systemctl", f"echo {hardened.process.pid}"),
                        ("journalctl", f"cat {hardened.log}")):
        (tools / name).write_text(f"#!/bin/sh\n{words}\n")
        (tools / name).chmod(0o755)
    user = pwd.getpwuid(os.geteuid()).pw_name
    given = {"/etc/constancia/constancia.conf": hardened.file, "/etc/constancia/report-key.pem": hardened.key,
             "/var/lib/constancia": hardened.data, "127.0.0.1:8081": f"127.0.0.1:{hardened.admin_port}",
             ":8081": f":{hardened.admin_port}", "127.0.0.1:8080": f"127.0.0.1:{hardened.port}",
             "/usr/bin/constancia": hardened.binary, "/lib/systemd/system": ROOT / "dist", "/root/": f"{tmp_path}/",
             "/home/": f"{tmp_path}/", "root:constancia": f"{user}:{pwd_group()}"}
    for old, new in given.items():
        command, expected = command.replace(old, str(new)), expected.replace(old, str(new))
    expected = re.sub(r"(?m)^(\d+ )?constancia$", rf"\g<1>{user}", expected)
    for history in (tmp_path / ".bash_history", tmp_path / "user/.bash_history"):
        history.parent.mkdir(exist_ok=True)
        history.write_text("constancia config check\n")
    done = subprocess.run(["bash", "-c", f"pid=$(systemctl show constancia); {command}"], capture_output=True,
                          text=True, check=False, timeout=PATIENCE,
                          env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    assert fits(expected, done.stdout), (command, expected, done.stdout, done.stderr)


def pwd_group():
    return subprocess.run(["id", "-gn"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.sqlite
def test_a_bad_state_shows(tmp_path):
    """The patterns find what they are for: secrets in settings and in a history."""
    def naming(word):
        (command,) = [command for command, _ in checks() if word in command]
        return command
    (bad := tmp_path / "bad.conf").write_text("[mail]\npassword = letmein\n[tsa]\ntoken = credential:tsa\n"
                                              "[content]\nsecret_key=x\n")
    counting = naming("stripe_webhook").replace("/etc/constancia/constancia.conf", str(bad))
    assert subprocess.run(["bash", "-c", counting], capture_output=True, text=True, check=False).stdout == "2\n"
    (tmp_path / ".bash_history").write_text("constancia serve --set mail.password=letmein\n")
    (tmp_path / "user").mkdir()
    searching = naming("bash_history").replace("/root/", f"{tmp_path}/").replace("/home/", f"{tmp_path}/")
    assert "letmein" in subprocess.run(["bash", "-c", searching], capture_output=True, text=True, check=False).stdout


@pytest.mark.postgresql
def test_the_role_of_the_database():
    ((command, expected),) = [check for check in checks() if "pg_roles" in check[0]]
    query = re.search(r'"(SELECT .*)"', command)[1].replace("'constancia'", f"'{ROLE}'")
    with Cluster(standbys=0) as cluster:
        (row,) = cluster.primary.rows(query)
        assert "|".join(row) == expected.strip()
