"""The files that `make install` installs, and their places: read by the programs that use them, where they
are at hand. The Debian package has a test of its own, tests/package/run."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import program
from client import free_port

pytestmark = pytest.mark.sqlite
ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(program.BINARY).resolve()


# The tests' own names are no settings.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("CONSTANCIA_")}


def run(*words, env=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120,
                          check=False, env=env or ENVIRONMENT)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def needed(program):
    found = shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")
    return found or pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The tree below the prefix."""
    if program.sanitized() or program.counts_coverage():
        pytest.skip("a build with sanitizers or coverage is not installed")
    build = BINARY.parent
    place = tmp_path_factory.mktemp("root")
    run("meson", "install", "-C", build, "--no-rebuild", env={**ENVIRONMENT, "DESTDIR": str(place)})
    prefix = json.loads(run("meson", "introspect", "--buildoptions", build))
    prefix = next(each["value"] for each in prefix if each["name"] == "prefix")
    return place / prefix.lstrip("/")


def files(place):
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def test_everything_is_installed(installed):
    found = files(installed)
    documents = "share/doc/constancia/"
    assert {"bin/constancia", "libexec/constancia/constancia-renderer",
            "libexec/constancia/constancia-trusted-list", "share/man/man1/constancia.1",
            "share/man/man5/constancia.conf.5", "lib/systemd/system/constancia.service",
            "lib/sysusers.d/constancia.conf", "lib/tmpfiles.d/constancia.conf",
            "share/bash-completion/completions/constancia.bash",
            "share/fish/vendor_completions.d/constancia.fish",
            "share/zsh/vendor-completions/_constancia", documents + "reference.html",
            documents + "openapi.yaml", documents + "README.md",
            documents + "examples/haproxy.cfg", documents + "examples/nginx.conf",
            documents + "examples/Caddyfile", documents + "examples/proxy-hardening.conf",
            documents + "examples/prometheus/alerts.yml", documents + "examples/prometheus/alertmanager.yml",
            documents + "examples/grafana/constancia.json", documents + "examples/constancia.conf"} <= found
    pages = {f"{documents}{page.relative_to(ROOT)}" for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= found, pages - found
    watching = {f"{documents}examples/{path.relative_to(ROOT / 'dist')}"
                for place in ("grafana", "prometheus") for path in (ROOT / "dist" / place).rglob("*")
                if path.is_file()}
    assert watching and watching <= found, watching - found
    units = {f"lib/systemd/system/{path.name}" for path in (ROOT / "dist").glob("constancia*.socket")}
    assert units <= found, units - found
    assert not [name for name in found if re.search(r"\btest-|fuzz|bench", name) or name.startswith("etc/")], \
        "an operator's settings are never written over"


def test_the_installed_program_runs(installed):
    told = json.loads(run(installed / "bin/constancia", "version", "--json"))
    assert re.fullmatch(r"\d+\.\d+\.\d+(~dev)?", told["version"])
    steps = sorted(path.stem for path in (ROOT / "src/store/schema/sqlite").glob("*.sql"))
    assert told["schema"] == steps[-1]


def test_one_version(installed):
    version = re.search(r"version: '(.*)'", (ROOT / "meson.build").read_text())[1]
    debian = re.match(r"constancia \((.*?)\) (\S+);", (ROOT / "debian/changelog").read_text())
    assert json.loads(run(BINARY, "version", "--json"))["version"] == version == debian[1]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == ("Unreleased" if version.endswith("~dev") else version)
    assert (debian[2] == "UNRELEASED") == version.endswith("~dev")


def test_the_settings_are_read_below_sysconfdir():
    """That of Debian is /etc; the option is relative to the prefix elsewhere."""
    options = {each["name"]: each["value"]
               for each in json.loads(run("meson", "introspect", "--buildoptions", BINARY.parent))}
    place = os.path.join(options["prefix"], options["sysconfdir"], "constancia/constancia.conf")
    assert f" {place} by default" in run(BINARY, "config", "print", "--help")


def test_the_examples_of_settings_are_good(installed, tmp_path):
    example = installed / "share/doc/constancia/examples/constancia.conf"
    ports = {f"service.{name}": f"127.0.0.1:{free_port()}" for name in ("listen", "admin_listen")}
    settings = ["--config", str(example), "--data", str(tmp_path), *program.flags(ports)]
    missing = subprocess.run([str(BINARY), "config", "check", *settings], capture_output=True, text=True,
                             check=False, timeout=60, env=ENVIRONMENT)
    assert missing.returncode == 1 and "tsa.url" in missing.stderr, "an operator has to say something"
    settings += ["--set", "tsa.url=embedded:"]
    run(BINARY, "init", *settings)
    run(BINARY, "config", "check", *settings)
    assert not [line for line in example.read_text().splitlines() if not re.match(r"#|\[|$", line)]


def test_user_and_directories(installed, tmp_path):
    place = tmp_path / "root"
    (place / "etc/constancia").mkdir(parents=True)
    (place / "etc/constancia/constancia.conf").touch()
    run(needed("systemd-sysusers"), f"--root={place}", installed / "lib/sysusers.d/constancia.conf")
    user = next(line.split(":") for line in (place / "etc/passwd").read_text().splitlines()
                if line.startswith("constancia:"))
    assert user[5:] == ["/var/lib/constancia", "/usr/sbin/nologin"] and 0 < int(user[2]) < 1000
    if os.geteuid() != 0:
        pytest.skip("owners are given by root")
    run(needed("systemd-tmpfiles"), f"--root={place}", "--create",
        installed / "lib/tmpfiles.d/constancia.conf")
    group = int(user[3])
    for name, owner, mode in (("var/lib/constancia", int(user[2]), 0o700),
                              ("etc/constancia", 0, 0o750), ("etc/constancia/constancia.conf", 0, 0o640)):
        status = (place / name).stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (owner, group, mode), name


# ---- the unit ----

# What it promises, line by line: who changes one of them changes what docs/operate/systemd.md says of the unit.
UNIT = """
StartLimitIntervalSec=0 Type=notify NotifyAccess=main WatchdogSec=30s User=constancia Group=constancia
ExecReload=/bin/kill -HUP $MAINPID
Restart=always RestartSec=2s RestartPreventExitStatus=3 TimeoutStopSec=35s KillMode=mixed LimitNOFILE=65536 LimitCORE=0
MemoryHigh=1G MemoryMax=1536M TasksMax=256 OOMPolicy=continue LogRateLimitIntervalSec=30s LogRateLimitBurst=100000
UMask=0077 StateDirectory=constancia StateDirectoryMode=0700 ConfigurationDirectory=constancia
ConfigurationDirectoryMode=0750 WorkingDirectory=/var/lib/constancia
ProtectSystem=strict ProtectHome=yes PrivateTmp=yes PrivateDevices=yes PrivateUsers=yes ProtectProc=invisible
ProcSubset=pid ProtectHostname=yes ProtectKernelLogs=yes ProtectKernelModules=yes ProtectKernelTunables=yes
ProtectControlGroups=yes RemoveIPC=yes
NoNewPrivileges=yes CapabilityBoundingSet= AmbientCapabilities= LockPersonality=yes MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes RestrictRealtime=yes RestrictSUIDSGID=yes SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources @obsolete
SystemCallErrorNumber=EPERM
WantedBy=multi-user.target
"""


def settings_of(text):
    return [line for line in text.splitlines() if re.match(r"[A-Z]\w+=", line)]


def test_the_unit_has_what_it_promises(installed):
    unit = settings_of((installed / "lib/systemd/system/constancia.service").read_text())
    wanted = []
    for line in UNIT.strip().splitlines():
        # Of one setting with several words, or several settings.
        wanted += line.split() if len(re.findall(r"(?:^| )[A-Z]\w+=", line)) > 1 else [line]
    assert not [line for line in wanted if line not in unit]
    assert len(wanted) > 50 and len([line for line in unit if line.startswith("ExecStart=")]) == 1
    # Each line once, but for what is a list of lines.
    names = [line.partition("=")[0] for line in unit if not line.startswith("SystemCallFilter=")]
    assert len(names) == len(set(names))
    refused = [line for line in unit if line.startswith("SystemCallFilter=") and "@" in line]
    assert refused == [line for line in wanted if line.startswith("SystemCallFilter=")], "what is added is named"


def test_the_unit_shows_how_secrets_are_handed_over(installed, tmp_path):
    """Its example is one for systemd, and names settings that there are."""
    text = (installed / "lib/systemd/system/constancia.service").read_text()
    shown = re.findall(r"^#(LoadCredential=(\w+):(/etc/constancia/secrets/\w+))$", text, re.M)
    assert {name for _, name, _ in shown} == {"mail", "passphrase"}
    assert "'password = credential:mail'" in text and "'passphrase_file = passphrase'" in text
    place = tmp_path / "constancia.service"
    place.write_text(re.sub(r"^#LoadCredential", "LoadCredential", text, flags=re.M)
                     .replace("/usr/bin/constancia", str(BINARY)))
    told = run(needed("systemd-analyze"), "verify", "--man=no", place)
    assert "constancia.service" not in told, told


# ---- completion ----

def complete(script, *words):
    """What bash offers behind these words, the last of which is being written."""
    line = " ".join(f"'{word}'" for word in ("constancia", *words))
    done = run("bash", "-c", f"source '{script}'; COMP_WORDS=({line}); "
                             f"COMP_CWORD={len(words)}; _constancia; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return done.split()


def test_bash_knows_every_command_and_option(installed):
    script = installed / "share/bash-completion/completions/constancia.bash"
    listed = re.findall(r"^  ([a-z]+(?: [a-z-]+)?)(?: [A-Z_.]+)*  ", run(BINARY, "--help"), re.M)
    assert len(listed) > 35
    firsts = complete(script, "")
    assert sorted(firsts) == sorted({name.split()[0] for name in listed})
    for name in listed:
        first, *second = name.split()
        if second:
            assert second[0] in complete(script, first, "")
        options = re.findall(r"^  (--[a-z-]+)", run(BINARY, *name.split(), "--help"), re.M)
        assert sorted(complete(script, *name.split(), "--")) == sorted(options), name


def test_bash_knows_values_and_files(installed, tmp_path):
    script = installed / "share/bash-completion/completions/constancia.bash"
    (tmp_path / "evidence.zip").touch()
    assert complete(script, "limit", "create", "--period", "") == ["day", "month"]
    assert complete(script, "limit", "create", "--max", "") == []
    assert complete(script, "trigger", "bal") == ["balance.low", "balance.exhausted"]
    assert complete(script, "--config", tmp_path / "e") == [str(tmp_path / "evidence.zip")]
    assert complete(script, "--config", "x", "acc") == ["account"]
    assert complete(script, "verify", tmp_path / "e") == [str(tmp_path / "evidence.zip")]
    assert complete(script, "account", "create", tmp_path / "e") == []


def test_fish_reads_its_script(installed):
    script = installed / "share/fish/vendor_completions.d/constancia.fish"
    fish = needed("fish")
    run(fish, "--no-execute", script)
    offered = run(fish, "--no-config", "-c", f"source {script}; complete -C'constancia limit create --per'; "
                                             f"complete -C'constancia limit create --period '; "
                                             f"complete -C'constancia acc'; complete -C'constancia limit '")
    assert re.search(r"^--period\t", offered, re.M) and "\nday" in offered
    assert "\naccount" in offered and re.search(r"^create\t", offered, re.M)


# What zsh calls is put down instead of shown.
ZSH = """
compadd() { print -l -- "${@[2,-1]}" }
_describe() { local name=${@[-1]}; print -l -- "${(@P)name}" }
_files() { print -- FILES }
words=("$@"); words[1]=constancia; CURRENT=$#words; PREFIX=$words[-1]; script=$1; set --
source $script
"""


def test_zsh_knows_what_bash_knows(installed):
    script = installed / "share/zsh/vendor-completions/_constancia"
    zsh = needed("zsh")
    run(zsh, "-n", script)

    def offered(*words):
        told = run(zsh, "-f", "-c", ZSH, "zsh", script, *words).splitlines()
        return [line.partition(":")[0] for line in told if line]
    bash = installed / "share/bash-completion/completions/constancia.bash"
    for words in (("",), ("limit", ""), ("serve", ""), ("config", "check", "--"), ("limit", "create", "--"),
                  ("limit", "create", "--period", ""), ("limit", "create", "--max", ""),
                  ("--config", "x", "")):
        assert sorted(offered(*words)) == sorted(complete(bash, *words)), words
    assert offered("--config", "") == offered("verify", "") == ["FILES"]


# ---- pages ----

def test_manual_pages_have_no_faults(installed):
    man = needed("man")
    for page in ("man1/constancia.1", "man5/constancia.conf.5"):
        done = subprocess.run([man, "--warnings=w", "-E", "UTF-8", "-l", installed / "share/man" / page],
                              capture_output=True, text=True, check=False, timeout=60,
                              env={**ENVIRONMENT, "MANWIDTH": "80", "LC_ALL": "C.UTF-8",
                                   "MANROFFSEQ": ""})
        assert done.returncode == 0 and not done.stderr and len(done.stdout) > 2000, done.stderr


# ---- proxies ----

@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=register.example.org",
        "-keyout", place / "key", "-out", place / "certificate")
    (place / "both").write_text((place / "certificate").read_text() + (place / "key").read_text())
    return place


def test_haproxy_takes_its_example(certificate, tmp_path):
    text = (ROOT / "dist/haproxy.cfg").read_text()
    mine = tmp_path / "haproxy.cfg"
    for name, made in (("constancia", "both"), ("client", "both"), ("nodes", "certificate")):
        assert f"/etc/haproxy/{name}.pem" in text
        text = text.replace(f"/etc/haproxy/{name}.pem", str(certificate / made))
    mine.write_text(text)
    run(needed("haproxy"), "-c", "-q", "-f", mine)


def test_nginx_takes_its_example(certificate, tmp_path):
    text = (ROOT / "dist/nginx.conf").read_text()
    site = tmp_path / "site.conf"
    site.write_text(text.replace("/etc/ssl/register.pem", str(certificate / "certificate"))
                    .replace("/etc/ssl/register.key", str(certificate / "key")))
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\naccess_log off;\ninclude {site};\n}}\n")
    told = run(needed("nginx"), "-t", "-p", tmp_path, "-c", whole, "-e", tmp_path / "error.log")
    assert "warn" not in told, told


def test_caddy_takes_its_example(tmp_path):
    told = run(needed("caddy"), "validate", "--adapter", "caddyfile", "--config", ROOT / "dist/Caddyfile",
               env={**ENVIRONMENT, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)})
    warnings = [line for line in told.splitlines() if '"warn"' in line]
    # The site of plain HTTP, which is to have no TLS.
    intended = "server is listening only on the HTTP port, so no automatic HTTPS will be applied to this server"
    assert "Valid configuration" in told and len(warnings) == 1 and intended in warnings[0], told
