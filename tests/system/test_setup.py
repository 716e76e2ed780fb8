"""`constancia setup`: the settings of a new deployment, from options or from a terminal, checked before they are
written."""

import json
import os
import pathlib
import pty
import re
import select
import signal
import stat
import subprocess
import termios
import time

import pytest

from client import BINARY, free_port
from pki import MODULE, Pki, openssl, token_environment
from postgres import ROLE, Cluster, literal
from program import clean_environment, eventually, flags, run

SECRET = "a secret: with # ; and = signs"
TOPICS = ["public-url", "name", "store", "content", "tsa-url", "seal-key", "publish", "mail", "backups",
          "security-contact"]


@pytest.fixture(name="pki", scope="module")
def authority(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


class Setup:
    """The command for a file in a directory of its own, with answers that are complete."""

    def __init__(self, directory, pki):
        self.directory = directory / "etc"
        self.path = self.directory / "constancia.conf"
        self.secret = directory / "secret"
        self.secret.write_text(f"{SECRET}\n", encoding="utf-8")
        self.data = directory / "data"
        self.answers = {
            "public-url": "https://register.example.org", "name": "Example Registry", "store": "embedded",
            "content": "directory", "tsa-url": "https://tsa.example.net/tsr", "tsa-kind": "qualified",
            "tsa-roots": str(pki.root), "seal-key": "make", "country": "ES", "organization": "Ejemplo, S.L.",
            "publish": "proxy", "mail": "none", "backups": "none", "security-contact": "none"}

    def run(self, *words, **more):
        answers = {**self.answers, **{name.replace("_", "-"): value for name, value in more.items()}}
        given = [f"--{name}={value}" for name, value in answers.items() if value is not None]
        return run([BINARY, "setup", "--config", self.path, "--data", self.data, *given, *words])

    def printed(self):
        done = run([BINARY, "config", "print", "--json", "--config", self.path])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def check(self):
        """With ports of its own, since a service of this machine may have those that setup writes."""
        ports = {"service.listen": f"127.0.0.1:{free_port()}", "service.admin_listen": f"127.0.0.1:{free_port()}"}
        return run([BINARY, "config", "check", "--config", self.path, *flags(ports)])

    def mode(self, name):
        return stat.S_IMODE((self.directory / name).stat().st_mode)


@pytest.fixture(name="setup")
def prepared(tmp_path, pki):
    return Setup(tmp_path, pki)


def certify(pki, csr, chain):
    made = csr.with_suffix(".crt")
    openssl("x509", "-req", "-in", csr, "-CA", pki.path("issuer.pem"), "-CAkey", pki.path("issuer.key"),
            "-copy_extensions", "copy", "-days", "365", "-out", made)
    chain.write_bytes(b"".join(pki.path(each).read_bytes() for each in (made, "issuer.pem", "root.pem")))


def test_from_the_answers_to_a_store(setup, pki):
    """The commands that it names lead to a store; only the certificate comes from elsewhere."""
    done = setup.run("--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["config"] == str(setup.path) and told["former"] is None and told["key_made"]
    refused = setup.check()
    assert refused.returncode == 1 and "seal-chain.pem" in refused.stderr, refused.stderr
    certify(pki, setup.directory / "seal-key.csr", setup.directory / "seal-chain.pem")
    assert setup.check().returncode == 0, setup.check().stderr
    commands = [step.partition("constancia ")[2] for step in told["next"] if " init" in step]
    (init,) = commands
    assert init == f"init --config {setup.path}"
    done = run([BINARY, *init.split()])
    assert done.returncode == 0, done.stderr
    assert (setup.data / "constancia.db").exists()


def test_the_file_has_what_was_chosen_and_no_more(setup):
    assert setup.run().returncode == 0
    text = setup.path.read_text(encoding="utf-8")
    values = dict(re.findall(r"^([a-z_]+) = (.*)$", text, re.M))
    assert values == {
        "public_url": "https://register.example.org", "data_dir": str(setup.data), "name": "Example Registry",
        "trusted_proxies": "127.0.0.0/8,::1/128", "url": "https://tsa.example.net/tsr", "kind": "qualified",
        "roots": setup.answers["tsa-roots"], "key": f"{setup.directory}/seal-key.pem",
        "chain": f"{setup.directory}/seal-chain.pem"}
    assert "constancia.conf(5)" in text
    assert setup.mode("constancia.conf") == 0o640 and setup.mode("seal-key.pem") == 0o400
    made = ["constancia.conf", "seal-key.csr", "seal-key.pem"]
    assert sorted(path.name for path in setup.directory.iterdir()) == made
    subject = openssl("req", "-in", setup.directory / "seal-key.csr", "-verify", "-noout", "-subject").stdout.decode()
    assert "O = \"Ejemplo, S.L.\"" in subject, subject


def test_missing_answers_are_listed_together(setup):
    done = run([BINARY, "setup", "--config", setup.path])
    assert done.returncode == 2
    assert [name for name in TOPICS if f"--{name}" in done.stderr] == TOPICS, done.stderr
    done = setup.run(tsa_roots=None, country=None)
    assert "--tsa-roots" in done.stderr and "--country" in done.stderr and "--name" not in done.stderr, done.stderr
    assert not setup.path.exists()


@pytest.mark.parametrize("wrong, expected", [
    ({"public_url": "register.example.org"}, "--public-url: must be a URL"),
    ({"name": ""}, "--name: must not be empty"),
    ({"store": "mysql://h/d"}, "--store: must be embedded or postgresql://"),
    ({"store": "postgresql://u:secret@h/d"}, "--store-password-file"),
    ({"content": "ftp://x"}, "--content: must be directory"),
    ({"content": "s3://b/p?endpoint=nonsense", "content_access_key": "a"}, "--content: "),
    ({"tsa_kind": "good"}, "--tsa-kind: must be"),
    ({"tsa_roots": "/nonexistent.pem"}, "--tsa-roots: "),
    ({"tsa_user": "me", "tsa_password_file": "/nonexistent"}, "--tsa-password-file: cannot be read"),
    ({"tsa_password_file": "/nonexistent"}, "--tsa-password-file: does not apply"),
    ({"seal_key": "/nonexistent.pem", "country": None, "organization": None}, 
     "--seal-key: /nonexistent.pem cannot be read"),
    ({"country": "Spain"}, "--country: must be an ISO 3166-1"),
    ({"organization_id": "12345"}, "--organization-id: must be an identifier"),
    ({"publish": "http"}, "--publish: must be proxy or tls"),
    ({"publish": "tls", "tls_certificate": "/nonexistent", "tls_key": "/dev/null"},
     "--tls-certificate: cannot be read"),
    ({"tsa_url": "http://tsa.example.net", "tsa_user": "me", "tsa_password_file": "SECRET"}, "--tsa-password-file: "),
    ({"mail": "mail.example.org", "mail_from": "a@example.org"}, "--mail: must be smtp"),
    ({"mail": "smtp://mail.example.org", "mail_from": "nonsense"}, "--mail-from: must be an address"),
    ({"backups": "backups"}, "--backups: must be an absolute path"),
    ({"backups": "/a; rm -r /b"}, "--backups: must be an absolute path"),
    ({"security_contact": "someone@example.org"}, "--security-contact: must be a list"),
    ({"public_url": "https://me:password@register.example.org"}, "--public-url: must have a host in ASCII"),
    ({"tsa_url": "http://tsa.example.net", "tsa_user": "me", "tsa_password_file": "SECRET"},
     "--tsa-password-file: tsa.url: must be an https:// address"),
    ({"tsa_roots": "root.pem"}, "--tsa-roots: must be an absolute path"),
    ({"tsa_roots": "KEY"}, "--tsa-roots: contains a private key and no certificate"),
    ({"tsa_url": "https://a.example,https://b.example", "tsa_roots": "ROOT,KEY"},
     "--tsa-roots: contains a private key and no certificate"),
    ({"seal_key": "seal.pem", "country": None, "organization": None}, "--seal-key: must be make, none, a pkcs11: URI"),
    ({"seal_key": "pkcs11:token=a;object=b?pin-value=1234"}, "--seal-key: must not contain the PIN"),
    ({"seal_key": "KEY", "seal_chain": "KEY", "country": None, "organization": None},
     "--seal-chain: contains a private key and no certificate"),
    ({"publish": "tls", "tls_certificate": "KEY", "tls_key": "KEY"}, "--tls-certificate: contains a private key"),
    ({"publish": "tls", "tls_certificate": "server.pem", "tls_key": "KEY"}, "--tls-certificate: must be an absolute"),
    ({"backups": "/"}, "--backups: must be a new or empty directory"),
    ({"backups": "/usr/../etc"}, "--backups: must be a new or empty directory"),
    ({"backups": "/etc/passwd"}, "--backups: is not a directory"),
])
def test_each_answer_is_checked(setup, pki, wrong, expected):
    files = {"SECRET": str(setup.secret), "KEY": str(pki.path("root.key")), "ROOT": str(pki.root)}
    for name, value in wrong.items():
        for word, path in files.items():
            wrong = {**wrong, name: (wrong[name] or "").replace(word, path) or None} if value else wrong
    done = setup.run(**wrong)
    assert done.returncode == 2 and expected in done.stderr, done.stderr
    assert "secret" not in done.stderr.replace("a secret must", "")
    assert "1234" not in done.stderr and "password@" not in done.stderr
    assert not setup.directory.exists(), "nothing is written before all answers are valid"


def test_what_depends_on_a_refused_answer_is_not_reported(setup):
    done = setup.run(mail="mail.example.org", mail_from="a@example.org")
    assert done.stderr.splitlines() == [
        "constancia setup: --mail: must be smtp://HOST:PORT or smtps://HOST, without user or path"]


def test_a_secret_that_would_be_cut_is_refused(setup):
    setup.secret.write_bytes(b"one\0two\n")
    done = setup.run(tsa_user="me", tsa_password_file=setup.secret)
    assert done.returncode == 2 and "--tsa-password-file: the first line of the file contains a NUL byte" in done.stderr


def test_only_one_of_several_commands_writes(setup):
    """Those that began before it has written are refused, and change nothing."""
    given = [f"--{name}={value}" for name, value in setup.answers.items() if name != "tsa-roots"]
    words = [BINARY, "setup", "--config", setup.path, *given, f"--tsa-roots={setup.answers['tsa-roots']}"]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=clean_environment()) for _ in range(6)]
    results = [(process.communicate(timeout=120), process.returncode) for process in running]
    assert sorted(code for _, code in results) in ([0, *[1] * n, *[2] * (5 - n)] for n in range(6)), results
    for (_, err), code in results:
        assert code == 0 or "was changed meanwhile" in err or "has settings already" in err, err
    key = openssl("pkey", "-in", setup.directory / "seal-key.pem", "-pubout").stdout
    assert openssl("req", "-in", setup.directory / "seal-key.csr", "-noout", "-pubkey").stdout == key


def test_a_full_disk_leaves_no_part_of_a_secret(setup, tmp_path):
    """Needs root, and a mount namespace."""
    setup.directory.mkdir()
    inside = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=4k,nr_inodes=20 none "$0" && '
              'head -c 4096 /dev/zero >"$0/other"; "$@"; code=$?; find "$0" -type f; exit $code', setup.directory]
    if os.geteuid() or run([*inside, "true"]).returncode:
        pytest.skip("needs root and mount namespaces")
    given = [f"--{name}={value}" for name, value in setup.answers.items()]
    done = run([*inside, BINARY, "setup", "--config", setup.path, *given, "--tsa-user=me",
                f"--tsa-password-file={setup.secret}"])
    assert done.returncode == 2, done.stderr
    assert "No space is left" in done.stderr and "Free space, then run the same command again." in done.stderr
    assert done.stdout.split() == [f"{setup.directory}/other"]


@pytest.mark.parametrize("given, expected", [
    ("--set=rate.lvie=3", "--set rate.lvie: unknown setting"), ("--set=rate.live=none", "rate.live: must be"),
    ("--set=mail.password=x", "--set mail.password: a secret must not be an argument")])
def test_further_settings_are_checked_too(setup, given, expected):
    done = setup.run(given)
    assert done.returncode == 2 and expected in done.stderr, done.stderr
    assert setup.run("--set=rate.live=77").returncode == 0
    assert setup.printed()["rate"]["live"] == "77"


@pytest.mark.parametrize("value, expected", [
    ("Example ; a comment", "must not contain ';' at the start or after a space, where a comment begins"),
    ("; a comment", "must not contain ';' at the start or after a space, where a comment begins"),
    ("Example\nquiet = true", "must not contain line feeds or other control characters"),
    ("Example\x1b[31m", "must not contain line feeds or other control characters"),
    ("x" * 4001, "must have at most 4000 bytes")])
def test_a_value_that_a_file_would_change_is_refused(setup, value, expected):
    """Before anything is written, credentials and keys included."""
    done = setup.run(name=value)
    assert done.returncode == 2 and f"--name: {expected}" in done.stderr, done.stderr
    if "x" * 4001 != value and value[0] != ";":
        done = setup.run(f"--set=mail.from={value}")
        assert done.returncode == 2 and f"--set mail.from: {expected}" in done.stderr, done.stderr
    assert not setup.directory.exists()


def test_secrets_are_in_files_of_their_own(setup):
    done = setup.run(store="postgresql://u@db.example.org/registry", store_password_file=setup.secret, tsa_user="me",
                     tsa_password_file=setup.secret, mail="smtps://mail.example.org", mail_from="a@example.org",
                     mail_user="me", mail_password_file=setup.secret, seal_passphrase_file=setup.secret,
                     content="s3://bucket/prefix?endpoint=https://s3.example.org", content_access_key="AKEY",
                     content_secret_key_file=setup.secret)
    assert done.returncode == 0, done.stderr
    assert SECRET not in setup.path.read_text(encoding="utf-8") + done.stdout + done.stderr
    names = ["content-secret-key", "mail-password", "pgpass", "seal-passphrase", "tsa-password"]
    credentials = setup.directory / "credentials"
    assert sorted(path.name for path in credentials.iterdir()) == names
    assert setup.mode("credentials") == 0o750
    for name in names:
        assert setup.mode(f"credentials/{name}") == 0o600
        text = (credentials / name).read_text(encoding="utf-8")
        assert text == ("*:*:*:*:a secret\\: with # ; and = signs\n" if name == "pgpass" else f"{SECRET}\n")
    printed = setup.printed()
    assert printed["mail"]["password"] == "********", "it is found next to the file"
    assert printed["store"]["url"].endswith(f"?passfile={credentials}/pgpass")
    assert "ENCRYPTED" in (setup.directory / "seal-key.pem").read_text(encoding="utf-8")
    done = setup.check()
    assert "credential" not in done.stderr, done.stderr


def test_the_password_of_a_database_is_used(setup, tmp_path):
    """By the service and by pg_dump, from a file that the address names."""
    password, held = "a pass:word\\", tmp_path / "password"
    held.write_text(f"{password}\n", encoding="utf-8")
    with Cluster(standbys=0) as cluster:
        database = cluster.create_database()
        cluster.primary.query(f"ALTER ROLE {ROLE} PASSWORD {literal(password)}")
        rules = pathlib.Path(cluster.primary.query("SHOW hba_file"))
        rules.write_text(f"host {database} {ROLE} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        cluster.primary.query("SELECT pg_reload_conf()")
        url = cluster.url(database)
        more = ("--set=store.require_replicas=0",)
        alone = [BINARY, "account", "list", f"--set=store.url={url}", f"--data={tmp_path}/alone", *more]
        eventually(lambda: "no password supplied" in run(alone).stderr, "a password is required")
        done = setup.run(*more, store=url, store_password_file=held, tsa_url="embedded:", tsa_kind=None, tsa_roots=None,
                         seal_key="none", country=None, organization=None)
        assert done.returncode == 0, done.stderr
        for words in (["init"], ["store", "backup", tmp_path / "backup"]):
            done = run([BINARY, *words, "--config", setup.path])
            assert done.returncode == 0, done.stderr


def test_backups_have_a_directory(setup):
    """That of the package needs no further step; another one is to be made, and opened for the units."""
    told = json.loads(setup.run("--json", backups="/var/backups/constancia").stdout)
    assert not [step for step in told["next"] if "ReadWritePaths" in step], told
    assert [step for step in told["next"] if "backup" in step], told
    done = setup.run("--json", "--replace", backups="/srv/backups")
    steps = json.loads(done.stdout)["next"]
    place = [number for number, step in enumerate(steps) if "/srv/backups" in step]
    assert steps[0] == "sudo install -d -m 0700 -o constancia -g constancia /srv/backups" and 0 in place and 1 in place
    sudo = "sudo() { [ $1 != tee ] || cat; }\n"
    done = subprocess.run(["sh", "-c", sudo + steps[1]], text=True, capture_output=True, check=True)
    assert done.stdout == "[Service]\nReadWritePaths=/srv/backups\n" * 2, done.stdout


def test_settings_are_replaced_only_on_request(setup):
    setup.directory.mkdir()
    setup.path.write_text("# as installed\n[service]\n#name = x\n ; nothing is set\n", encoding="utf-8")
    assert setup.run("--replace").returncode == 0, "a file without settings is as good as none"
    first = setup.path.read_text(encoding="utf-8")
    done = setup.run(name="Another")
    assert done.returncode == 2 and "--replace" in done.stderr and str(setup.path) in done.stderr, done.stderr
    assert setup.path.read_text(encoding="utf-8") == first
    key = (setup.directory / "seal-key.pem").read_bytes()
    for kept in (".former", ".former.1"):
        done = setup.run("--replace", "--json", name="Another" + kept)
        told = json.loads(done.stdout)
        assert told["former"] == f"{setup.path}{kept}" and told["key_made"] is False
        assert setup.printed()["service"]["name"] == "Another" + kept
    assert (setup.directory / "constancia.conf.former").read_text(encoding="utf-8") == first
    assert (setup.directory / "seal-key.pem").read_bytes() == key, "a key is never replaced"
    assert told["certificate"].startswith("Send ")
    (setup.directory / "seal-chain.pem").write_text("there\n", encoding="utf-8")
    told = json.loads(setup.run("--replace", "--json").stdout)
    assert "existed already and were kept" in told["certificate"]


def test_the_next_commands_use_the_file(setup):
    """The units read the usual file only."""
    told = json.loads(setup.run("--json", backups="/var/backups/constancia").stdout)
    assert not [step for step in told["next"] if "systemctl" in step], told
    assert [step for step in told["next"] if f"serve --config {setup.path}" in step], told


def test_a_key_on_a_token_signs_its_request(setup, pki, monkeypatch):
    held = pki.signer("seal", "pkcs11")
    for name, value in token_environment(pki).items():
        monkeypatch.setenv(name, value)
    done = setup.run("--json", seal_key=held["signer.key"], seal_passphrase_file=held["signer.passphrase_file"])
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["key_made"] is False
    certify(pki, setup.directory / "seal-key.csr", setup.directory / "seal-chain.pem")
    assert MODULE in setup.path.read_text(encoding="utf-8")
    assert setup.check().returncode == 0, setup.check().stderr


def test_an_own_key_and_tls_in_the_service(setup, pki):
    held = pki.signer("own")
    server = pki.issue("server", "web", "issuer", "register.example.org")
    done = setup.run("--json", seal_key=held["signer.key"], seal_chain=held["signer.chain"], country=None,
                     organization=None, publish="tls", tls_certificate=server, tls_key=pki.path("server.key"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["request"] is None
    assert setup.printed()["service"]["listen"] == "0.0.0.0:8443"
    done = setup.check()
    assert "signer" not in done.stderr, done.stderr


def test_an_installation_for_trials(setup):
    done = setup.run(tsa_url="embedded:", tsa_kind=None, tsa_roots=None, seal_key="none", country=None,
                     organization=None, public_url="http://127.0.0.1:8080")
    assert done.returncode == 0, done.stderr
    assert setup.check().returncode == 0, setup.check().stderr


def test_root_gives_the_files_to_the_service(setup, tmp_path):
    """The user of the service reads the settings and owns the secrets. Needs root, and a mount namespace for a user of
    that name."""
    users = tmp_path / "passwd"
    users.write_text("root:x:0:0::/:/bin/sh\nconstancia:x:12345:12346::/:/bin/sh\n", encoding="utf-8")
    inside = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', users]
    if os.geteuid() or run([*inside, "true"]).returncode:
        pytest.skip("needs root and mount namespaces")
    given = [f"--{name}={value}" for name, value in setup.answers.items()]
    done = run([*inside, BINARY, "setup", "--config", setup.path, *given, f"--seal-passphrase-file={setup.secret}"])
    assert done.returncode == 0, done.stderr
    assert f"sudo -u constancia constancia init --config {setup.path}\n" in done.stdout, done.stdout

    def owner(name):
        facts = (setup.directory / name).stat()
        return facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)
    assert owner("constancia.conf") == (0, 12346, 0o640) and owner(".") == (0, 12346, 0o750)
    assert owner("seal-key.pem") == (12345, 12346, 0o400)
    assert owner("credentials") == (0, 12346, 0o750), "root writes into it"
    assert owner("credentials/seal-passphrase") == (12345, 12346, 0o600)


# ---- on a terminal ----

class Terminal:
    """A dialogue with the command."""

    def __init__(self, *words):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([BINARY, "setup", *map(str, words)], stdin=slave, stdout=slave, stderr=slave,
                                        env=clean_environment(), start_new_session=True)
        os.close(slave)
        self.text = ""

    def read(self, until):
        """Blocks until the output after the last answer has the text."""
        seen, end = "", time.monotonic() + 60
        while until not in seen:
            assert time.monotonic() < end, seen
            if select.select([self.master], [], [], 1)[0]:
                try:
                    seen += os.read(self.master, 65536).decode()
                except OSError:  # the process has ended
                    break
        self.text += seen
        assert until in seen, seen
        return seen

    def say(self, answer):
        os.write(self.master, f"{answer}\n".encode())

    def close(self):
        code = self.process.wait(60)
        os.close(self.master)
        return code


def test_a_terminal_is_asked(setup):
    terminal = Terminal("--config", setup.path, "--data", setup.data, "--backups=none")
    for topic, wrong, answers in [
            ("1 of 10", "nonsense", ["https://register.example.org"]), ("2 of 10", None, ["Example Registry"]),
            ("3 of 10", "mysql:", [""]), ("4 of 10", None, [""]),
            ("5 of 10", "nonsense", ["https://tsa.example.net/tsr"]),
            ("kind", "good", ["qualified"]), ("PEM file", "/nonexistent", [setup.answers["tsa-roots"]]),
            ("User name", None, ["me"]), ("Password", None, [SECRET]), ("6 of 10", None, [""]),
            ("Passphrase", None, [""]), ("Country", "Spain", ["ES"]), ("Registered name", None, ["Ejemplo, S.L."]),
            ("Identifier", "12345", ["VATES-B00000000"]), ("7 of 10", "http", [""]), ("8 of 10", None, [""]),
            ("10 of 10", "someone", ["mailto:security@example.org"])]:
        terminal.read(topic)
        if "\n> " not in terminal.text.split(topic)[-1]:
            terminal.read("> ")
        if wrong:
            terminal.say(wrong)
            terminal.read("This is not valid")
            if "\n> " not in terminal.text.split("This is not valid")[-1]:
                terminal.read("> ")
        terminal.say(*answers)
    terminal.read("account create")
    assert terminal.close() == 0
    assert SECRET not in terminal.text, "a password is not shown"
    assert "9 of 10" not in terminal.text, "an option answered it"
    assert (setup.directory / "credentials" / "tsa-password").read_text(encoding="utf-8") == f"{SECRET}\n"
    printed = setup.printed()
    assert printed["service"]["security_contact"] == "mailto:security@example.org"
    assert printed["signer"]["key"] == f"{setup.directory}/seal-key.pem"


def test_an_invalid_pair_is_asked_for_again(setup):
    """Credentials are sent over https only: the name is to be omitted, not only the password."""
    terminal = Terminal("--config", setup.path, *(f"--{name}={value}" for name, value in setup.answers.items()
                                                  if name not in ("tsa-url", "tsa-kind", "tsa-roots")),
                        "--tsa-url=http://tsa.example.net/tsr", "--tsa-kind=qualified",
                        f"--tsa-roots={setup.answers['tsa-roots']}")
    terminal.read("User name")
    terminal.say("me")
    terminal.read("Password")
    terminal.say(SECRET)
    terminal.read("This is not valid")
    if "User name" not in terminal.text.split("not valid")[-1]:
        terminal.read("User name")
    terminal.say("")
    terminal.read("Passphrase")
    terminal.say("")
    terminal.read("Identifier")
    terminal.say("")
    terminal.read("account create")
    assert terminal.close() == 0 and SECRET not in terminal.text
    assert setup.printed()["tsa"]["user"] == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_password_leaves_the_terminal_as_it_was(setup, number):
    terminal = Terminal("--config", setup.path, "--public-url=https://register.example.org", "--name=N",
                        "--store=postgresql://u@db.example.org/registry")
    terminal.read("Password of the database user")
    if "\n> " not in terminal.text:
        terminal.read("> ")
    assert not termios.tcgetattr(terminal.master)[3] & termios.ECHO
    os.killpg(terminal.process.pid, number)
    terminal.read("Nothing was written")
    assert termios.tcgetattr(terminal.master)[3] & termios.ECHO
    assert terminal.close() == 2 and not setup.directory.exists()


def test_nothing_is_written_when_the_input_ends(setup):
    terminal = Terminal("--config", setup.path)
    terminal.read("1 of 10")
    os.write(terminal.master, b"\x04")
    terminal.read("Nothing was written")
    assert terminal.close() == 2
    assert not setup.directory.exists()
