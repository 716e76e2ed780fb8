"""Mistakes that operators make in the settings: each is reported by exactly the sentences of its row, which
name the setting at fault and what to do, and by no other."""

import ctypes
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import tempfile

import pytest

from client import BINARY, free_port
from pki import Pki, held_in_pkcs12, openssl
from program import clean_environment

pytestmark = pytest.mark.sqlite  # no row needs a server

PORT = free_port()
DAY = 86400
BASE = {
    "service": {"public_url": "https://register.example.org", "listen": "127.0.0.1:0",
                "admin_listen": "127.0.0.1:0", "data_dir": "{dir}/data", "name": "Example Registry"},
    "tsa": {"url": "https://tsa.example.net/tsr", "kind": "qualified", "roots": "{dir}/root.pem"},
    "signer": {"key": "{dir}/seal.key", "chain": "{dir}/seal-chain.pem"},
}


class World:
    """A directory with keys and certificates, right and wrong, and the settings file of one row."""

    def __init__(self, directory):
        self.directory = directory
        self.pki = Pki(directory / "pki")
        self.pki.signer("seal")
        self.pki.signer("other")
        self.pki.signer("expired", begins=-20 * DAY, ends=-10 * DAY)
        self.pki.signer("early", begins=10 * DAY, ends=20 * DAY)
        self.pki.signer("web", extensions="web")
        held_in_pkcs12(self.pki, "seal", self.pki.path("seal-chain.pem"))

    def fresh(self, directory):
        """Copies what rows refer to, and change, to a directory of the row."""
        for path in self.pki.directory.iterdir():
            if path.is_file():
                shutil.copy2(path, directory / path.name)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"))


def text_of(settings):
    return "".join(f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in pairs.items()) + "\n"
                   for section, pairs in settings.items())


def changed(changes):
    settings = {section: dict(pairs) for section, pairs in BASE.items()}
    for name, value in changes.items():
        section, key = name.split(".")
        settings.setdefault(section, {})
        if value is None:
            settings[section].pop(key, None)
        else:
            settings[section][key] = value
    return text_of(settings)


OTHER = 65534  # runs the rows in which a file belongs to somebody else, where the test runs as root


def command(user):
    root = user and os.geteuid() == 0
    return [*(["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"] if root else []), BINARY]


def found(world, directory, changes, text=None, prepare=None, environment=None, arguments=(), mode=0o600, user=False):
    """Returns the exit status and the lines of `config check`."""
    world.fresh(directory)
    directory.chmod(0o755)
    if user and os.geteuid() == 0:
        for path in (directory, *directory.iterdir()):
            os.chown(path, OTHER, OTHER)
    if prepare:
        prepare(directory)
    content = (text or (lambda same: same))(changed(changes))
    content = content.encode() if isinstance(content, str) else content
    file = directory / "constancia.conf"
    extra = {key: value.replace("{dir}", str(directory)) for key, value in (environment or {}).items()}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        file.write_bytes(content.replace(b"{dir}", str(directory).encode()).replace(b"{port}", port.encode()))
        file.chmod(mode)
        if user and os.geteuid() == 0 and mode:
            os.chown(file, OTHER, OTHER)
        done = subprocess.run([*command(user), "config", "check", "--config", str(file), *arguments], text=True,
                              check=False, env=clean_environment(extra), capture_output=True, timeout=120, cwd="/")
    if user and done.returncode not in (0, 1):
        pytest.skip("another user cannot run the program where it is")
    words = {str(file): "{file}", str(directory): "{dir}", f"127.0.0.1:{port}": "127.0.0.1:{port}",
             f"({OTHER if os.geteuid() == 0 else os.geteuid()})": "({user})"}
    for word, name in words.items():
        done.stderr = done.stderr.replace(word, name)
    shown = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "{time}", done.stderr)
    return done.returncode, re.sub(r"belongs to (user \d+ and group \d+|[\w-]+)", "belongs to {owner}",
                                   shown).splitlines()


MISTAKES = {}


def mistake(name, changes, expected, **more):
    """Adds a row: changes of the settings, and the lines about them."""
    assert name not in MISTAKES, name
    MISTAKES[name] = (changes, expected, more)


def write(name, content):
    def prepare(directory):
        (directory / name).write_text(content)
        (directory / name).chmod(0o600)
    return prepare


def mode(name, bits):
    return lambda directory: (directory / name).chmod(bits)


def joined(*names, to):
    return lambda directory: (directory / to).write_bytes(
        b"".join((directory / name).read_bytes() for name in names))


def closed(directory):
    (directory / "pki").mkdir()
    (directory / "root.pem").rename(directory / "pki" / "root.pem")
    (directory / "pki").chmod(0)


def der(directory):
    openssl("x509", "-in", directory / "root.pem", "-outform", "DER", "-out", directory / "root.der")


mistake("nothing", {},
        [])
mistake("settings file that all can read", {"mail.password": "secret"},
        ["warning: {file}: contains a secret, and every user can read it (mode 0644): set mode 0640, or use "
         "credential:NAME"],
        mode=0o644)
mistake("settings file that its owner cannot read", {},
        ["{file}: Permission denied; run the command as the user of the service: sudo -u constancia constancia"],
        mode=0,
        user=True)
mistake("key of another user", {},
        ["{file}:14: signer.key: {dir}/seal.key cannot be read by the user of this process ({user}): it belongs to "
         "{owner} with mode 0000"],
        prepare=mode("seal.key", 0),
        user=True)
mistake("roots of another user", {},
        ["{file}:11: tsa.roots: {dir}/root.pem cannot be read by the user of this process ({user}): it belongs to "
         "{owner} with mode 0000"],
        prepare=mode("root.pem", 0),
        user=True)
mistake("roots in a closed directory", {"tsa.roots": "{dir}/pki/root.pem"},
        ["{file}:11: tsa.roots: {dir}/pki/root.pem cannot be read: the user of this process ({user}) may not enter "
         "{dir}/pki"],
        prepare=closed,
        user=True)
mistake("data directory of another user", {},
        ["{file}:5: service.data_dir: {dir}/data belongs to {owner} and is not writable by this user ({user}): "
         "Permission denied"],
        prepare=lambda d: (d / "data").mkdir(mode=0o555),
        user=True)
mistake("parent of data directory of another user", {"service.data_dir": "{dir}/up/data"},
        ["{file}:5: service.data_dir: {dir}/up/data cannot be created by this user ({user}): {dir}/up belongs to "
         "{owner}; create it with 'install -d -m 0700 -o USER {dir}/up/data'"],
        prepare=lambda d: (d / "up").mkdir(mode=0o555),
        user=True)
mistake("taken port", {"service.listen": "127.0.0.1:{port}"},
        ["{file}:3: service.listen: listening on 127.0.0.1:{port}: Address already in use; 'ss -ltnp' shows the "
         "program that uses it"])
mistake("server down", {"store.url": "postgresql://u@127.0.0.1:1/register"},
        ["warning: {file}:18: store.url: the standbys are unknown, since the server did not answer: postgresql: "
         "connection to server at \"127.0.0.1\", port 1 failed: Connection refused  Is the server running on that "
         "host and accepting TCP/IP connections?"])
mistake("no pg_dump", {"store.url": "postgresql://u@127.0.0.1:1/register", "backup.directory": "/srv/backup"},
        ["warning: {file}:21: backup.directory: pg_dump is not in the PATH, and a backup of PostgreSQL needs it: "
         "install postgresql-client",
         "warning: {file}:18: store.url: the standbys are unknown, since the server did not answer: postgresql: "
         "connection to server at \"127.0.0.1\", port 1 failed: Connection refused  Is the server running on that "
         "host and accepting TCP/IP connections?"],
        environment={"PATH": "{dir}"})
mistake("secret on the command line", {},
        ["warning: --set mail.password: is visible to every user of this machine while the command runs"],
        arguments=["--set", "mail.password=secret"])
mistake("tls roots html", {"tsa.tls_roots": "{dir}/x"},
        ["{file}:12: tsa.tls_roots: {dir}/x is a web page or XML and must contain certificates in PEM form"],
        prepare=write("x", "<html>"))
mistake("typo of a name", {"service.pulbic_url": "x"},
        ["{file}:7: unknown setting 'service.pulbic_url'; did you mean service.public_url; 'constancia config print' "
         "lists all settings"])
mistake("typo of a section", {},
        ["{file}:14: unknown setting 'singer.key'; did you mean signer.key; 'constancia config print' lists all "
         "settings",
         "{file}:15: unknown setting 'singer.chain'; did you mean signer.chain; 'constancia config print' lists all "
         "settings"],
        text=lambda t: t.replace("[signer]", "[singer]"))
mistake("section in capitals", {},
        ["{file}:14: unknown setting 'Signer.key'; did you mean signer.key; 'constancia config print' lists all "
         "settings",
         "{file}:15: unknown setting 'Signer.chain'; did you mean signer.chain; 'constancia config print' lists all "
         "settings"],
        text=lambda t: t.replace("[signer]", "[Signer]"))
mistake("no bracket", {},
        ["{file}:13: the ']' after the section's name is missing"],
        text=lambda t: t.replace("[signer]", "[signer"))
mistake("dotted names", {},
        ["{file}:18: 'rate.live' must be written as 'live = …' below [rate]"],
        text=lambda t: t + "[rate]\nrate.live = 5\n")
mistake("unit missing", {"tsa.timeout": "10"},
        ["{file}:12: tsa.timeout: must be a duration with a unit, such as 500ms, 60s, 5m, 2h or 7d; only 0 needs no "
         "unit"])
mistake("unit wrong", {"tsa.timeout": "10 seconds"},
        ["{file}:12: tsa.timeout: must be a duration with a unit, such as 500ms, 60s, 5m, 2h or 7d; only 0 needs no "
         "unit"])
mistake("size with unit", {"http.body_memory": "256M"},
        ["{file}:18: http.body_memory: must be a decimal integer, such as 50"])
mistake("boolean yes", {"seal.strict_clock": "yes"},
        ["{file}:18: seal.strict_clock: must be true or false"])
mistake("boolean True", {"seal.strict_clock": "True"},
        ["{file}:18: seal.strict_clock: must be true or false"])
mistake("kind typo", {"tsa.kind": "qualifed"},
        ["{file}:10: tsa.kind: must be a list of qualified or non_qualified"])
mistake("kind dev", {"tsa.kind": "development"},
        ["{file}:10: tsa.kind: must be a list of qualified or non_qualified"])
mistake("twice", {},
        ["{file}:18: tsa.kind: is set twice"],
        text=lambda t: t + "[tsa]\nkind = qualified\n")
mistake("roots missing", {"tsa.roots": "{dir}/rots.pem"},
        ["{file}:11: tsa.roots: {dir}/rots.pem cannot be read: No such file or directory"])
mistake("roots not set", {"tsa.roots": None},
        ["tsa.roots: must name a PEM file with the trusted roots of the authority"])
mistake("roots dir", {"tsa.roots": "{dir}"},
        ["{file}:11: tsa.roots: {dir} cannot be read: it is a directory"])
mistake("roots empty", {"tsa.roots": "{dir}/x.pem"},
        ["{file}:11: tsa.roots: {dir}/x.pem is empty"],
        prepare=write("x.pem", ""))
mistake("roots html", {"tsa.roots": "{dir}/x.pem"},
        ["{file}:11: tsa.roots: {dir}/x.pem is a web page or XML and must contain certificates in PEM form"],
        prepare=write("x.pem", "<html>404</html>"))
mistake("roots der", {"tsa.roots": "{dir}/root.der"},
        ["{file}:11: tsa.roots: {dir}/root.der is in DER form and must be PEM: convert it with 'openssl x509 -inform "
         "DER -in FILE -out FILE.pem'"],
        prepare=der)
mistake("roots is key", {"tsa.roots": "{dir}/seal.key"},
        ["{file}:11: tsa.roots: {dir}/seal.key contains a private key and no certificate"])
mistake("roots unreadable", {"tsa.roots": "{dir}/x/root.pem"},
        ["{file}:11: tsa.roots: {dir}/x/root.pem cannot be read: No such file or directory"])
mistake("client cert no key", {"tsa.client_certificate": "{dir}/seal.pem"},
        ["tsa.client_key: must be set too: tsa.client_certificate and tsa.client_key belong together"])
mistake("client key mode", {"tsa.client_certificate": "{dir}/seal.pem", "tsa.client_key": "{dir}/seal.key"},
        ["{file}:13: tsa.client_key: {dir}/seal.key must be accessible only to its owner: mode 0600 or 0400, not 0644",
         "{file}:16: signer.key: {dir}/seal.key is accessible to users other than its owner (mode 0644): run chmod "
         "0400 {dir}/seal.key"],
        prepare=mode("seal.key", 0o644))
mistake("tsa no scheme", {"tsa.url": "tsa.example.net/tsr"},
        ["{file}:9: tsa.url: must list https:// addresses, or embedded: for development"])
mistake("tsa user no password", {"tsa.user": "x"},
        ["tsa.password: must be set too: tsa.user and tsa.password belong together"])
mistake("tsa password http", {"tsa.user": "x", "tsa.password": "y", "tsa.url": "http://tsa.example.net/tsr"},
        ["{file}:9: tsa.url: must be an https:// address when credentials are sent"])
mistake("tsa kind length", {"tsa.kind": "qualified, qualified"},
        ["{file}:10: tsa.kind: must have one value for all authorities, or one for each"])
mistake("tsa roots length",
        {"tsa.url": "https://a.example.net/tsr, https://b.example.net/",
         "tsa.roots": "{dir}/root.pem,{dir}/root.pem,{dir}/root.pem"},
        ["{file}:11: tsa.roots: must have one value for all authorities, or one for each"])
mistake("tsa url space", {"tsa.url": "https://a.example.net/tsr https://b.example.net/"},
        ["{file}:9: tsa.url: must separate addresses with commas"])
mistake("tsa url userinfo", {"tsa.url": "https://me:pw@a.example.net/tsr"},
        ["{file}:9: tsa.url: must not contain a user name or password: set tsa.user and tsa.password"])
mistake("tsa policy", {"tsa.policy": "baseline"},
        ["{file}:12: tsa.policy: must be a list of object identifiers such as 1.3.6.1.4.1"])
mistake("tsa tokens", {"tsa.tokens": "2"},
        ["{file}:12: tsa.tokens: must be 1 unless tsa.url lists two or more authorities"])
mistake("tsa none", {"tsa.url": None},
        ["tsa.url: must list a timestamp authority, otherwise events are never sealed; embedded: is for development"])
mistake("embedded with key", {"tsa.url": "embedded:"},
        ["{file}:9: tsa.url: must not contain embedded: when signer.key is set; it is for development only"])
mistake("public_url no scheme", {"service.public_url": "register.example.org"},
        ["{file}:2: service.public_url: must be a URL such as https://register.example.org, without a slash at the "
         "end"])
mistake("public_url http", {"service.public_url": "http://register.example.org"},
        ["warning: {file}:2: service.public_url: should begin with https://, because clients send their keys to this "
         "address",
         "warning: {file}:2: service.public_url: Passkeys are not available at this service's address. They require "
         "https and a host name."])
for kind, address in [("user", "https://user:password@register.example.org"), ("letters", "https://ré.example.org"),
                      ("port", "https://register.example.org:99999"), ("no host", "https://:8443")]:
    mistake(f"public_url {kind}", {"service.public_url": address},
            ["{file}:2: service.public_url: must have a host in ASCII (xn--… for other letters) and a valid port, and "
             "neither user nor password"])
mistake("proxies everywhere", {"service.trusted_proxies": "10.0.0.0/8,0.0.0.0/0"},
        ["warning: {file}:7: service.trusted_proxies: contains every address, so that clients choose the address whose "
         "limits apply to them"])
mistake("proxies everywhere six", {"service.trusted_proxies": "::/0"},
        ["warning: {file}:7: service.trusted_proxies: contains every address, so that clients choose the address whose "
         "limits apply to them"])
mistake("tsa roots without root", {"tsa.roots": "{dir}/issuer.pem"},
        ["warning: {file}:11: tsa.roots: {dir}/issuer.pem has no root certificate, only certificates of other issuers, "
         "which are not trusted: add the root"])
mistake("backups missing", {"backup.directory": "{dir}/missing/backups"},
        ["warning: {file}:18: backup.directory: {dir}/missing/backups is no directory in which this user ({user}) can "
         "write: create it with 'install -d -m 0700 -o USER {dir}/missing/backups'"], user=True)
mistake("backups file", {"backup.directory": "{dir}/root.pem"},
        ["warning: {file}:18: backup.directory: {dir}/root.pem is no directory in which this user ({user}) can "
         "write: create it with 'install -d -m 0700 -o USER {dir}/root.pem'"], user=True)
mistake("public_url slash", {"service.public_url": "https://register.example.org/"},
        ["{file}:2: service.public_url: must be a URL such as https://register.example.org, without a slash at the "
         "end"])
mistake("public_url v1", {"service.public_url": "https://register.example.org/v1"},
        ["{file}:2: service.public_url: must not end with /v1"])
mistake("quotes", {"service.public_url": '"https://register.example.org"'},
        ["{file}:2: service.public_url: must be written without quotes"])
mistake("quoted name", {"service.name": '"Example"'},
        ["warning: {file}:6: service.name: the quotes around the value are part of it"])
mistake("quoted list", {"webhook.allow_networks": '"10.0.0.0/8"'},
        ["{file}:18: webhook.allow_networks: must be written without quotes"])
mistake("listen no port", {"service.listen": "0.0.0.0"},
        ["{file}:3: service.listen: must be address:port, such as 127.0.0.1:8080 or [::1]:8080"])
mistake("listen only port", {"service.listen": ":8080"},
        ["{file}:3: service.listen: must be address:port, such as 127.0.0.1:8080 or [::1]:8080"])
mistake("listen name", {"service.listen": "localhost:8080"},
        ["{file}:3: service.listen: must be address:port, such as 127.0.0.1:8080 or [::1]:8080"])
mistake("listen url", {"service.listen": "http://127.0.0.1:8080"},
        ["{file}:3: service.listen: must be address:port, such as 127.0.0.1:8080 or [::1]:8080"])
mistake("same port", {"service.listen": f"127.0.0.1:{PORT}", "service.admin_listen": f"127.0.0.1:{PORT}"},
        ["{file}:4: service.admin_listen: must be another address or port than service.listen"])
mistake("same port wild", {"service.listen": f"0.0.0.0:{PORT}", "service.admin_listen": f"127.0.0.1:{PORT}"},
        ["{file}:4: service.admin_listen: must be another address or port than service.listen"])
mistake("same port six", {"service.listen": f"[::]:{PORT}", "service.admin_listen": f"127.0.0.1:{PORT}"},
        ["{file}:4: service.admin_listen: must be another address or port than service.listen"])
mistake("foreign address", {"service.listen": "203.0.113.7:8080"},
        ["{file}:3: service.listen: listening on 203.0.113.7:8080: Cannot assign requested address; no interface of "
         "this machine has the address ('ip address')"])
mistake("networks host bits", {"service.trusted_proxies": "10.0.0.1/8"},
        ["{file}:7: service.trusted_proxies: must be a list of networks such as 10.0.0.0/8, 2001:db8::/32: "
         "'10.0.0.1/8' has bits after its prefix, or its prefix is too long; a network ends with zeros, as "
         "10.0.0.0/8 does"])
mistake("networks name", {"service.trusted_proxies": "proxy.example.org"},
        ["{file}:7: service.trusted_proxies: must be a list of networks such as 10.0.0.0/8, 2001:db8::/32: "
         "'proxy.example.org' is not a network such as 10.0.0.0/8 or fd00::/8"])
mistake("networks spaces", {"service.trusted_proxies": "10.0.0.0/8 192.168.0.0/16"},
        ["{file}:7: service.trusted_proxies: must be a list of networks such as 10.0.0.0/8, 2001:db8::/32: "
         "'10.0.0.0/8 192.168.0.0/16' is not a network such as 10.0.0.0/8 or fd00::/8"])
mistake("data_dir relative", {"service.data_dir": "data"},
        ["{file}:5: service.data_dir: must be an absolute path: a relative one depends on the directory in which a "
         "command runs"])
mistake("data_dir tilde", {"service.data_dir": "~/data"},
        ["{file}:5: service.data_dir: must be an absolute path: a relative one depends on the directory in which a "
         "command runs"])
mistake("data_dir file", {"service.data_dir": "{dir}/root.pem"},
        ["{file}:5: service.data_dir: {dir}/root.pem is not a directory"])
mistake("data_dir below file", {"service.data_dir": "{dir}/root.pem/data"},
        ["{file}:5: service.data_dir: {dir}/root.pem/data: Not a directory"])
mistake("data_dir no parent", {"service.data_dir": "{dir}/no/such/data"},
        ["{file}:5: service.data_dir: {dir}/no/such/data cannot be created, because {dir}/no/such is missing: create "
         "{dir}/no/such first"])
mistake("store postgres typo", {"store.url": "postgres:/constancia@db/register"},
        ["{file}:18: store.url: The store address 'postgres@db/register' is not valid. It must be sqlite:PATH or "
         "postgresql://USER@HOST/DATABASE."])
mistake("store no scheme", {"store.url": "/var/lib/constancia/constancia.db"},
        ["{file}:18: store.url: The store address '/var/lib/constancia/constancia.db' is not valid. It must be "
         "sqlite:PATH or postgresql://USER@HOST/DATABASE."])
mistake("store http", {"store.url": "http://db.example.org/"},
        ["{file}:18: store.url: The store address 'http://db.example.org/' is not valid. It must be sqlite:PATH or "
         "postgresql://USER@HOST/DATABASE."])
mistake("store password @", {"store.url": "postgresql://u:p@ss@db:5432/register"},
        ["{file}:18: store.url: must have the password escaped: write @ as %40, / as %2F, : as %3A, # as %23, ? as "
         "%3F and % as %25"])
mistake("store password /", {"store.url": "postgresql://u:p/ss@db:5432/register"},
        ["{file}:18: store.url: must have the password escaped: write @ as %40, / as %2F, : as %3A, # as %23, ? as "
         "%3F and % as %25"])
mistake("store password #", {"store.url": "postgresql://u:p#ss%zz@db:5432/register"},
        ["{file}:18: store.url: must have the password escaped: write @ as %40, / as %2F, : as %3A, # as %23, ? as "
         "%3F and % as %25"])
mistake("store option", {"store.url": "postgresql://u@db/register?sslmod=require"},
        ["{file}:18: store.url: invalid URI query parameter: \"sslmod\""])
mistake("store space", {"store.url": "postgresql://u@db /register"},
        ["{file}:18: store.url: must not contain spaces"])
mistake("store kv", {"store.url": "host=db dbname=register password=x"},
        ["{file}:18: store.url: The store address 'host=db dbname=register ' is not valid. It must be sqlite:PATH or "
         "postgresql://USER@HOST/DATABASE."])
mistake("store sqlite relative", {"store.url": "sqlite:constancia.db"},
        ["{file}:18: store.url: must be an absolute path: a relative one depends on the directory in which a command "
         "runs"])
mistake("content no scheme", {"content.url": "/srv/content"},
        ["{file}:18: content.url: The content store address '/srv/content' is not valid. It must be file:DIRECTORY "
         "or s3://BUCKET/PREFIX?endpoint=URL."])
mistake("content relative", {"content.url": "file:content"},
        ["{file}:18: content.url: must be an absolute path: a relative one depends on the directory in which a "
         "command runs"])
mistake("content s3 no keys", {"content.url": "s3://evidence?endpoint=https://s3.example.org&region=eu-1"},
        ["content.access_key: must be set for an s3: address",
         "content.secret_key: must be set for an s3: address"])
mistake("content s3 endpoint",
        {"content.url": "s3://evidence?endpoint=s3.example.org", "content.access_key": "a", "content.secret_key": "b"},
        ["{file}:18: content.url: 's3.example.org' is not a valid S3 service address. endpoint must be "
         "https://HOST[:PORT] or http://HOST[:PORT], without a path."])
mistake("content s3 https",
        {"content.url": "https://evidence.s3.example.org", "content.access_key": "a", "content.secret_key": "b"},
        ["{file}:18: content.url: The content store address 'https://evidence.s3.example.org' is not valid. It must "
         "be file:DIRECTORY or s3://BUCKET/PREFIX?endpoint=URL."])
mistake("key missing", {"signer.key": "{dir}/none.key"},
        ["{file}:14: signer.key: {dir}/none.key cannot be read: No such file or directory"])
mistake("chain missing", {"signer.chain": "{dir}/none.pem"},
        ["{file}:15: signer.chain: {dir}/none.pem cannot be read: No such file or directory"])
mistake("key no chain", {"signer.chain": None},
        ["{file}:14: signer.key: {dir}/seal.key contains no certificate: set signer.chain"])
mistake("chain no key", {"signer.key": None},
        ["signer.key: must be set when signer.chain or signer.passphrase_file is set"])
mistake("key mode", {},
        ["{file}:14: signer.key: {dir}/seal.key is accessible to users other than its owner (mode 0644): run chmod "
         "0400 {dir}/seal.key"],
        prepare=mode("seal.key", 0o644))
mistake("key mismatch", {"signer.key": "{dir}/other.key"},
        ["{file}:15: signer.chain: the first certificate in {dir}/seal-chain.pem does not belong to the key in "
         "{dir}/other.key; the key's own certificate must come first, then its issuers"])
mistake("cert expired", {"signer.key": "{dir}/expired.key", "signer.chain": "{dir}/expired-chain.pem"},
        ["{file}:15: signer.chain: the certificate of CN=expired,O=Constancia tests has expired on {time}"])
mistake("cert early", {"signer.key": "{dir}/early.key", "signer.chain": "{dir}/early-chain.pem"},
        ["{file}:15: signer.chain: the certificate of CN=early,O=Constancia tests is not valid before {time}"])
mistake("cert web", {"signer.key": "{dir}/web.key", "signer.chain": "{dir}/web-chain.pem"},
        ["{file}:15: signer.chain: the certificate of CN=web,O=Constancia tests is not for signing documents: its "
         "extended key usage is for something else"])
mistake("chain order", {"signer.chain": "{dir}/x.pem"},
        ["{file}:15: signer.chain: the first certificate in {dir}/x.pem does not belong to the key in "
         "{dir}/seal.key; the key's own certificate must come first, then its issuers"],
        prepare=joined("root.pem", "issuer.pem", "seal.pem", to="x.pem"))
mistake("chain leaf", {"signer.chain": "{dir}/seal.pem"},
        ["{file}:15: signer.chain: {dir}/seal.pem does not lead to a root: the certificate of CN=An issuer of "
         "seals,O=Constancia tests is missing, add it and its issuers"])
mistake("chain no root", {"signer.chain": "{dir}/x.pem"},
        ["{file}:15: signer.chain: {dir}/x.pem does not lead to a root: the certificate of CN=An operator's "
         "root,O=Constancia tests is missing, add it and its issuers"],
        prepare=joined("seal.pem", "issuer.pem", to="x.pem"))
mistake("chain html", {"signer.chain": "{dir}/x.pem"},
        ["{file}:15: signer.chain: {dir}/x.pem: no certificates: the file is a web page or XML and must contain "
         "certificates in PEM form"],
        prepare=write("x.pem", "<html>"))
mistake("key is cert", {"signer.key": "{dir}/seal.pem"},
        ["{file}:14: signer.key: {dir}/seal.pem contains certificates and no private key"])
mistake("swapped", {"signer.key": "{dir}/seal-chain.pem", "signer.chain": "{dir}/seal.key"},
        ["{file}:14: signer.key: {dir}/seal-chain.pem contains certificates and no private key"])
mistake("p12 no pass", {"signer.key": "{dir}/seal.p12", "signer.chain": None},
        ["signer.passphrase_file: must name the file with the passphrase: {dir}/seal.p12 is encrypted"])
mistake("p12 wrong pass", {"signer.key": "{dir}/seal.p12", "signer.chain": None, "signer.passphrase_file": "{dir}/x"},
        ["{file}:15: signer.passphrase_file: {dir}/seal.p12: no usable private key (or wrong passphrase): mac verify "
         "failure"],
        prepare=write("x", "wrong\n"))
mistake("p12 pass missing",
        {"signer.key": "{dir}/seal.p12", "signer.chain": None, "signer.passphrase_file": "{dir}/none"},
        ["{file}:15: signer.passphrase_file: opening {dir}/none: No such file or directory"])
mistake("pass cred", {"signer.key": "{dir}/seal.p12", "signer.chain": None, "signer.passphrase_file": "passphrase"},
        ["{file}:15: signer.passphrase_file: passphrase names a credential, but the supervisor provides none; give a "
         "path instead"])
mistake("p11 module", {"signer.key": "pkcs11:token=x;object=y?module-path=/usr/lib/none.so"},
        ["{file}:14: signer.key: the module cannot be loaded: /usr/lib/none.so: cannot open shared object file: No "
         "such file or directory"])
mistake("p11 no module", {"signer.key": "pkcs11:token=x;object=y"},
        ["{file}:14: signer.key: pkcs11: URI: module-path is missing"])
mistake("p11 typo", {"signer.key": "pkcs11://token=x;object=y?module-path=/usr/lib/none.so"},
        ["{file}:14: signer.key: pkcs11: URI: //token is not supported"])
mistake("mail no from", {"mail.url": "smtps://mail.example.org"},
        ["mail.from: must be an address such as notices@example.org"])
mistake("mail from name", {"mail.url": "smtps://mail.example.org", "mail.from": "Example Registry"},
        ["{file}:19: mail.from: must be an address such as notices@example.org"])
mistake("mail url plain", {"mail.url": "mail.example.org:587", "mail.from": "a@example.org"},
        ["{file}:18: mail.url: must be smtp://HOST:PORT or smtps://HOST, without user or path"])
mistake("mail url user", {"mail.url": "smtp://me:pw@mail.example.org:587", "mail.from": "a@example.org"},
        ["{file}:18: mail.url: must be smtp://HOST:PORT or smtps://HOST, without user or path"])
mistake("mail user no password",
        {"mail.url": "smtps://mail.example.org", "mail.from": "a@example.org", "mail.user": "x"},
        ["mail.password: must be set too: mail.user and mail.password belong together"])
mistake("mail roots",
        {"mail.url": "smtps://mail.example.org", "mail.from": "a@example.org", "mail.roots": "{dir}/none"},
        ["{file}:20: mail.roots: {dir}/none cannot be read: No such file or directory"])
mistake("stripe no key", {"payment.provider": "stripe"},
        ["payment.stripe_key: The setting payment.stripe_key is required for payment.provider=stripe and must be "
         "printable ASCII without spaces."])
mistake("stripe test",
        {"payment.provider": "stripe", "payment.stripe_key": "sk_test_abcdefgh",
         "payment.stripe_webhook_secret": "whsec_x"},
        ["warning: {file}:19: payment.stripe_key: is a key of Stripe's test mode: no payment is real"])
mistake("stripe publishable",
        {"payment.provider": "stripe", "payment.stripe_key": "pk_live_abcdefgh",
         "payment.stripe_webhook_secret": "whsec_x"},
        ["{file}:19: payment.stripe_key: must be a secret or restricted key (sk_live_… or rk_live_…), not a "
         "publishable key"])
mistake("stripe swapped",
        {"payment.provider": "stripe", "payment.stripe_key": "whsec_x", "payment.stripe_webhook_secret": "sk_live_x"},
        ["{file}:19: payment.stripe_key: must be a secret or restricted key (sk_live_… or rk_live_…), not the "
         "secret of a webhook endpoint",
         "{file}:20: payment.stripe_webhook_secret: must be the secret of the webhook endpoint (whsec_…), not an API "
         "key"])
mistake("provider caps", {"payment.provider": "Stripe"},
        ["{file}:18: payment.provider: must be manual or stripe"])
mistake("payment return",
        {"payment.provider": "stripe", "payment.stripe_key": "sk_live_abcdefgh",
         "payment.stripe_webhook_secret": "whsec_x", "payment.return_url": "register.example.org"},
        ["{file}:21: payment.return_url: The field 'payment.return_url' must be an http or https URL in ASCII of at "
         "most 2048 bytes, with a host and without a user name, password or fragment."])
mistake("webhook roots", {"webhook.roots": "{dir}/none"},
        ["{file}:18: webhook.roots: {dir}/none cannot be read: No such file or directory"])
mistake("webhook roots html", {"webhook.roots": "{dir}/x"},
        ["{file}:18: webhook.roots: {dir}/x is a web page or XML and must contain certificates in PEM form"],
        prepare=write("x", "<html>"))
mistake("webhook schedule", {"webhook.schedule": "1m;5m"},
        ["{file}:18: webhook.schedule: must be a list of 1 to 20 durations such as 1m,5m,30m"])
mistake("log level", {"log.level": "warn"},
        ["{file}:18: log.level: must be debug, info, warning or error"])
mistake("level", {"certification.level": "lta"},
        ["{file}:18: certification.level: must be empty, B, T, LT or LTA"])
mistake("digest", {"evidence.digest": "sha256"},
        ["{file}:18: evidence.digest: must be sha-256 or sha-512"])
mistake("prefix", {"service.prefix": "REG"},
        ["{file}:7: service.prefix: must have 2 to 10 lower-case letters or digits"])
mistake("negative", {"rate.live": "-1"},
        ["{file}:18: rate.live: must be from 1 to 1000000000"])
mistake("thousands", {"account.stored_bytes": "1,000,000"},
        ["{file}:18: account.stored_bytes: must be a decimal integer, such as 50"])
mistake("crlf", {},
        [],
        text=lambda t: t.replace("\n", "\r\n"))
mistake("bom", {},
        [],
        text=lambda t: b"\xef\xbb\xbf" + t.encode())
mistake("utf16", {},
        ["{file}: the file is UTF-16; save it as UTF-8 text"],
        text=lambda t: t.encode("utf-16"))
mistake("tabs", {},
        [],
        text=lambda t: t.replace("\n", "\n\t"))
mistake("latin1", {},
        ["{file}:6: service.name: the value contains control characters or is not UTF-8"],
        text=lambda t: t.replace("Example", "Año").encode("latin-1"))
mistake("colon", {},
        [],
        text=lambda t: t.replace(" = ", ": "))
mistake("no equals", {},
        ["{file}:18: must be a [section], key = value or a comment"],
        text=lambda t: t + "[rate]\nlive 5\n")
mistake("hash comment", {"rate.live": "5 # per second"},
        ["{file}:18: rate.live: must be a decimal integer, such as 50",
         "warning: {file}:18: rate.live: '#' begins a comment only at the start of a line, ' ;' within one; this "
         "value contains it"])
mistake("slash comment", {},
        ["{file}:1: must be a [section], key = value or a comment"],
        text=lambda t: "// settings\n" + t)
mistake("long", {"webhook.allow_networks": ",".join(["10.0.0.0/8"] * 500)},
        ["{file}:18: the line is longer than 4096 bytes; continue a list on indented lines, and shorten any other "
         "value"])
mistake("env typo", {},
        ["CONSTANCIA_TSA_PASWORD: unknown setting, ignored; did you mean CONSTANCIA_TSA_PASSWORD"],
        environment={"CONSTANCIA_TSA_PASWORD": "x"})
mistake("env lower", {},
        ["CONSTANCIA_tsa_password: unknown setting, ignored; did you mean CONSTANCIA_TSA_PASSWORD"],
        environment={"CONSTANCIA_tsa_password": "x"})
mistake("env dot", {},
        ["CONSTANCIA_TSA.PASSWORD: unknown setting, ignored; did you mean CONSTANCIA_TSA_PASSWORD"],
        environment={"CONSTANCIA_TSA.PASSWORD": "x"})
mistake("env quotes", {},
        ["CONSTANCIA_RATE_LIVE: rate.live: must be written without quotes"],
        environment={"CONSTANCIA_RATE_LIVE": '"5"'})
mistake("cred none",
        {"mail.password": "credential:mail", "mail.url": "smtps://mail.example.org",
         "mail.from": "a@example.org", "mail.user": "x"},
        ["{file}:18: mail.password: the supervisor provides no credentials (CREDENTIALS_DIRECTORY is not set); see "
         "LoadCredential= in systemd.exec(5)"])
mistake("cred wrong",
        {"mail.password": "credential:mail", "mail.url": "smtps://mail.example.org",
         "mail.from": "a@example.org", "mail.user": "x"},
        ["{file}:18: mail.password: the credential cannot be read: opening {dir}/mail: No such file or directory"],
        environment={"CREDENTIALS_DIRECTORY": "{dir}"})
mistake("cred wrong place", {"tsa.user": "credential:user", "tsa.password": "x"},
        ["{file}:12: tsa.user: credential:NAME works only for secrets: content.secret_key, tsa.password, tsa.token, "
         "payment.stripe_key, payment.stripe_webhook_secret, mail.password"])
mistake("tls no key", {"service.tls_certificate": "{dir}/seal.pem"},
        ["service.tls_key: must also be set: a certificate and its key require each other"])
mistake("tls mismatch", {"service.tls_certificate": "{dir}/seal.pem", "service.tls_key": "{dir}/other.key"},
        ["{file}:8: service.tls_key: is not the key of the certificate",
         "warning: {file}:7: service.tls_certificate: has no issuer certificate after the server certificate: "
         "clients that have only the root accept it only if the root issued it"])
mistake("tls missing", {"service.tls_certificate": "{dir}/none.pem", "service.tls_key": "{dir}/seal.key"},
        ["{file}:7: service.tls_certificate: cannot be read: opening {dir}/none.pem: No such file or directory"])
mistake("tls key mode", {"service.tls_certificate": "{dir}/web-chain.pem", "service.tls_key": "{dir}/web.key"},
        ["{file}:8: service.tls_key: must not be accessible to others: use mode 0600, 0400, or 0640 with a dedicated "
         "group"],
        prepare=mode("web.key", 0o644))
mistake("admin socket dir", {"service.admin_socket": "{dir}/none/admin.sock"},
        ["{file}:7: service.admin_socket: {dir}/none: No such file or directory"])
mistake("next chain", {"signer.next_chain": "{dir}/seal-chain.pem"},
        ["signer.next_key: must be set when signer.next_chain or signer.next_passphrase_file is set"])
mistake("replicas", {"store.require_replicas": "-1"},
        ["{file}:18: store.require_replicas: must be from 0 to 100"])
mistake("security contact", {"service.security_contact": "security@example.org"},
        ["{file}:7: service.security_contact: must be a list of addresses such as "
         "mailto:security@example.org,https://example.org/report"])
for wrong in ("*", "https://app.example.org/", "https://App.example.org", "https://app.example.org:443", "null",
              "app.example.org", "https://*.example.org", "capacitor://localhost", "https://user@app.example.org",
              "https://app.example.org:0", "https://app.example.org:65536"):
    mistake(f"origin {wrong}", {"http.cors_origins": f"http://localhost:5173,{wrong}"},
            ["{file}:18: http.cors_origins: must be a list of origins such as "
             f"https://app.example.org,http://localhost:5173: '{wrong}' is none; an origin is a scheme, a host in lower "
             "case and a port other than the default, without a path, a slash at the end or a wildcard"])
mistake("origins", {"http.cors_origins": "https://app.example.org, http://localhost:5173,http://[::1]:8080"}, [])
mistake("config missing", {},
        ["/nonexistent.conf: No such file or directory"],
        arguments=["--config", "/nonexistent.conf"])

# Lines that depend on the machine, and on the service's first start.
MACHINE = ("seal.strict_clock: the system clock is not synchronized", "libmicrohttpd",
           "does not exist yet: run 'constancia init'")


@pytest.fixture
def place():
    """A directory that another user can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as directory:
        yield pathlib.Path(directory)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_reported_by_its_sentences_alone(world, place, name):
    changes, expected, more = MISTAKES[name]
    code, lines = found(world, place, changes, **more)
    wanted = [line.replace("{file}", "{dir}/constancia.conf") for line in expected]
    total = re.compile(r"\d+ problems? prevents? a start\.")
    said = [line.replace("{file}", "{dir}/constancia.conf") for line in lines
            if not total.fullmatch(line) and not (line.startswith("warning: ") and any(map(line.count, MACHINE)))]
    assert sorted(said) == sorted(wanted)
    problems = [line for line in wanted if not line.startswith("warning: ")]
    assert code == (1 if problems else 0)


def test_there_are_many():
    assert len([name for name, row in MISTAKES.items() if row[1]]) >= 40


def test_an_unsynchronized_clock_is_reported_without_being_asked(world, tmp_path):
    """By what the kernel says of it, in this test and to the program."""
    timex = ctypes.create_string_buffer(512)  # modes 0: only reads
    state = ctypes.CDLL(None, use_errno=True).adjtimex(timex)
    (status,) = struct.unpack_from("i", timex, 40)
    synchronized = state not in (-1, 5) and not status & 0x40
    code, lines = found(world, tmp_path, {})
    said = [line for line in lines if "seal.strict_clock: the system clock is not synchronized" in line]
    assert code == 0 and len(said) == (0 if synchronized else 1), (state, status, lines)
