"""`config check --connect` queries everything that a service depends on, and reports the results."""

import contextlib
import json
import pathlib
import subprocess
import threading

import pytest

import demanding_proxy
import s3_server
import signer_log
import stores
import timestamp_authority
from client import BINARY, free_port, run
from mail_server import MailServer, make_certificates
from payment_provider import PaymentProvider
from postgres import eventually
from program import clean_environment
from publisher import Publisher

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src" / "store" / "schema" / "sqlite"
NETWORK = "127.0.0.0/8"
PASSWORD = "a mail password that is not read"


class World:
    """What a deployment talks to, all of it on this machine."""

    def __init__(self, directory):
        data = directory / "data"
        certificates = make_certificates(directory)
        self.store = stores.make(data)
        self.s3 = s3_server.Server(directory)
        self.mail = MailServer(certificates, "notices", PASSWORD)
        self.provider = PaymentProvider()
        self.authority = timestamp_authority.Server(
            timestamp_authority.Certificates(str(directory / "authority")))
        threading.Thread(target=self.authority.serve_forever, daemon=True).start()
        settings = {**self.s3.settings("mine"), **self.mail.settings(), **self.provider.settings()}
        self.settings = {
            **self.store.settings(), "service.data_dir": data, "tsa.url": self.authority.url,
            "service.listen": f"127.0.0.1:{free_port()}", "service.admin_listen": "",
            "tsa.roots": self.authority.roots, "tsa.allow_networks": NETWORK,
            **{name.replace("__", "."): value for name, value in settings.items()},
            "content.timeout": "3s", "mail.require_tls": "true", "mail.roots": certificates[0],
            "mail.user": "notices", "mail.password": PASSWORD}

    def close(self):
        for one in (self.mail, self.provider):
            one.close()
        self.s3.stop()
        self.authority.shutdown()
        self.authority.server_close()
        self.store.discard()

    def run(self, *words, **changed):
        chosen = {**self.settings, **{name.replace("__", "."): value
                                      for name, value in changed.items()}}
        return run(*words, *(f"--set={name}={value}" for name, value in chosen.items()))

    def connect(self, expected, **changed):
        done = self.run("config", "check", "--connect", "--json", **changed)
        assert done.returncode == expected, done.stdout + done.stderr
        for secret in (PASSWORD, self.s3.secret_key, self.provider.key, self.provider.secret):
            assert secret not in done.stdout + done.stderr
        told = json.loads(done.stdout)
        assert all(one["milliseconds"] >= 0 for one in told["connections"])
        return {one["what"]: one for one in told["connections"]}, told["findings"]


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def test_each_says_what_answered_and_nothing_stays_changed(world):
    connections, _ = world.connect(0)  # before `init`
    assert all(one["ok"] for one in connections.values()), connections
    servers = {"coordinator", "shards"} if stores.DISTRIBUTED else set()
    assert connections.keys() == {"database", "content", "authority", "revocation", "mail", "payments",
                                  "reports", "clock"} | servers
    assert "seven scripts" in connections["reports"]["text"]
    assert "name no source" in connections["revocation"]["text"]
    assert not world.s3.objects and not world.mail.messages and not world.provider.charges
    methods = [method for method, _target, _status in world.s3.requests]
    assert {"PUT", "GET", "DELETE"} <= set(methods)
    assert world.mail.logins == ["notices"]
    assert [request[0] for request in world.provider.requests] == ["GET"]
    assert "Timestamp good" in connections["authority"]["text"]
    assert "non_qualified" in connections["authority"]["text"]
    # Next to its store, and as a table.
    assert world.run("init").returncode == 0
    marker = dict(world.s3.objects)
    done = world.run("config", "check", "--connect")
    assert done.returncode == 0, done.stdout + done.stderr
    assert world.s3.objects.keys() == marker.keys()
    line = next(line for line in done.stdout.splitlines() if line.startswith("database"))
    if stores.KIND == "postgresql":
        assert "PostgreSQL" in line and "standby server1 (" in line and "schema 0" in line
    else:
        assert "SQLite" in line


def test_a_store_that_a_start_would_not_take_is_told(world):
    """As without asking anybody where it is a file (test_config)."""
    data = world.settings["service.data_dir"]
    assert world.run("init").returncode == 0
    before = signer_log.lines(data)
    world.connect(0)
    assert signer_log.lines(data) == before, "it was checked, and not written"

    def told():
        _, findings = world.connect(1)
        said = {one["setting"]: one["problem"] for one in findings if "problem" in one}
        done = world.run("serve")
        assert done.returncode == 1
        first = json.loads(next(line for line in done.stderr.splitlines() if '"start_failed"' in line))
        return said, first["message"]

    signer_log.mark(data, world.store, 7)
    said, refusal = told()
    assert said == {"store.url": refusal} and "has seen round 7" in refusal
    (data / "signer" / signer_log.NAME).unlink()
    world.store.change(f"UPDATE signers SET development = 0, sha256 = {stores.blob(bytes(32))}")
    said, refusal = told()
    assert said == {"signer.key": refusal}
    world.store.change(f"UPDATE settings SET value = {stores.text(min(SCHEMA.iterdir()).stem)} WHERE name = 'schema'")
    said, refusal = told()
    assert said.keys() == {"store.url"}, "what the store names is not asked before its schema is good"
    assert "store migrate" in said["store.url"] and "store migrate" in refusal


def test_each_failure_names_its_setting(world):
    world.authority.mode = "error"
    changed = {"content__secret_key": "x" * 20, "mail__password": "not that",
               "payment__stripe_key": "sk_not_that"}
    if stores.KIND == "postgresql":
        changed["store__require_replicas"] = 7
    connections, findings = world.connect(1, **changed)
    failed = {what for what, one in connections.items() if not one["ok"]}
    wanted = {"content": "content.access_key", "mail": "mail.password", "payments": "payment.stripe_key",
              "authority": "tsa.url"}
    if stores.KIND == "postgresql":
        wanted["database"] = "store.require_replicas"
    if stores.DISTRIBUTED:
        wanted["shards"] = "store.require_replicas"  # each of the other servers has too few, too
    assert failed == set(wanted)
    assert {one["setting"] for one in findings if "problem" in one} == set(wanted.values())
    assert not world.mail.messages and not world.s3.objects
    # An address that serving would not connect to is not connected to here.
    before = world.authority.count, len(world.provider.requests), len(world.mail.logins)
    connections, _ = world.connect(1, tsa__allow_networks="", mail__allow_networks="",
                                   content__allow_networks="")
    for what in ("authority", "mail", "content"):
        assert not connections[what]["ok"] and "not permitted" in connections[what]["text"], what
    assert (world.authority.count, len(world.mail.logins)) == (before[0], before[2])


@pytest.mark.parametrize("changed, setting, remedy", [
    ({"payment__stripe_key": "sk_not_that"}, "payment.stripe_key",
     "the key is not accepted; check payment.stripe_key and its permissions"),
    ({"payment__allow_networks": ""}, "payment.allow_networks",
     "; if it is the right one, add its network to payment.allow_networks"),
    ({"payment__stripe_url": "https://127.0.0.1:1"}, "payment.stripe_url", "; check payment.stripe_url"),
])
def test_a_refused_payment_provider_names_its_setting(world, changed, setting, remedy):
    if "payment__allow_networks" in changed:
        changed = {**changed, "payment__stripe_url": world.settings["payment.stripe_url"].replace("http:", "https:")}
    connections, findings = world.connect(1, **changed)
    assert not connections["payments"]["ok"] and connections["payments"]["text"].endswith(remedy), connections
    assert [one["setting"] for one in findings if "problem" in one] == [setting]


@contextlib.contextmanager
def demanding(world, directory, **demands):
    """A TLS proxy in front of the authority; gives the settings for it, and the paths of its files."""
    certificates = demanding_proxy.Certificates(str(directory))
    proxy = demanding_proxy.Server(certificates, world.authority.url, **demands)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield {"tsa__url": proxy.url, "tsa__tls_roots": certificates.path("root.pem")}, certificates.path
    finally:
        proxy.shutdown()
        proxy.server_close()


TOKEN = "a token that is not read"
PAIR = {"tsa__client_certificate": "stranger.pem", "tsa__client_key": "stranger.key"}
AUTHORITY = {  # demands of the authority, settings, the setting at fault, the end of the sentence
    "no credentials": ({"bearer": TOKEN}, {}, "tsa.user",
                       ": HTTP 401: the authority requires credentials; set tsa.user and tsa.password, or tsa.token"),
    "wrong password": ({"basic": "me:right"}, {"tsa__user": "me", "tsa__password": "wrong"}, "tsa.user",
                       ": HTTP 401: the authority rejected the credentials; check tsa.user and tsa.password"),
    "wrong token": ({"bearer": TOKEN}, {"tsa__token": "other"}, "tsa.token",
                    ": HTTP 401: the authority rejected the credentials; check tsa.token"),
    "system roots": ({}, {"tsa__tls_roots": ""}, "tsa.tls_roots",
                     "; the roots of the system do not include that of its TLS certificate: set tsa.tls_roots"),
    "other TLS roots": ({}, {"tsa__tls_roots": "stranger_root.pem"}, "tsa.tls_roots",
                        "; tsa.tls_roots must contain the root of its TLS certificate"),
    "other roots": ({}, {"tsa__roots": "stranger_root.pem"}, "tsa.roots",
                    "; tsa.roots must contain the root of its timestamps"),
    "no client certificate": ({"mutual": True}, {}, "tsa.client_certificate",
                              "; set tsa.client_certificate and tsa.client_key"),
    "other client certificate": ({"mutual": True}, PAIR, "tsa.client_certificate",
                                 "; the authority does not accept tsa.client_certificate"),
    "network": ({}, {"tsa__allow_networks": ""}, "tsa.allow_networks",
                ": address 127.0.0.1 is loopback and not permitted; if it is the right one, add its network to "
                "tsa.allow_networks"),
    "nothing there": ({}, {"tsa__url": "https://127.0.0.1:1/"}, "tsa.url", ""),
    "no such name": ({}, {"tsa__url": "https://tsa.invalid/"}, "tsa.url",
                     ": Could not resolve host: tsa.invalid"),
}


@pytest.mark.sqlite
@pytest.mark.parametrize("mistake", AUTHORITY)
def test_a_refusal_of_an_authority_names_the_setting_at_fault(world, tmp_path, mistake):
    demands, given, setting, sentence = AUTHORITY[mistake]
    with demanding(world, tmp_path / "proxy", **demands) as (proxied, path):
        paths = {name: path(value) if ".pem" in value or ".key" in value else value
                 for name, value in given.items()}
        connections, findings = world.connect(1, **{**proxied, **paths})
    said = connections["authority"]["text"]
    assert [(one["setting"], one["problem"]) for one in findings if "problem" in one] == [(setting, said)]
    assert said.startswith("https://") and said.endswith(sentence), said
    assert connections["authority"]["setting"] == setting
    assert TOKEN not in said and "wrong" not in said


OTHERS = {
    "mail password": ("mail", {"mail__password": "other"}, "mail.password", "; check mail.user and mail.password"),
    "mail roots": ("mail", {"mail__roots": "{authority}"}, "mail.roots",
                   "; mail.roots must contain the root of its TLS certificate"),
    "mail roots of the system": ("mail", {"mail__roots": ""}, "mail.roots",
                                 "; the roots of the system do not include that of its TLS certificate: set "
                                 "mail.roots"),
    "mail network": ("mail", {"mail__allow_networks": ""}, "mail.allow_networks",
                     "; if it is the right one, add its network to mail.allow_networks"),
    "mail server": ("mail", {"mail__url": "smtp://127.0.0.1:1"}, "mail.url", ""),
    "secret key": ("content", {"content__secret_key": "x" * 20}, "content.access_key",
                   "; check content.access_key, its permissions for the bucket, and content.secret_key"),
    "access key": ("content", {"content__access_key": "OTHER"}, "content.access_key",
                   "; check content.access_key, its permissions for the bucket, and content.secret_key"),
    "bucket": ("content", {"content__url": "{elsewhere}"}, "content.url",
               "content: S3 answers HEAD with 404 (no such bucket)"),
    "content network": ("content", {"content__allow_networks": ""}, "content.allow_networks",
                        "; if it is the right one, add its network to content.allow_networks"),
}


@pytest.mark.sqlite
@pytest.mark.parametrize("mistake", OTHERS)
def test_a_refusal_of_mail_or_content_names_the_setting_at_fault(world, mistake):
    what, given, setting, sentence = OTHERS[mistake]
    words = {"{authority}": world.authority.roots,
             "{elsewhere}": world.s3.url("mine").replace(world.s3.bucket, "elsewhere", 1)}
    connections, findings = world.connect(1, **{name: words.get(value, value) for name, value in given.items()})
    said = connections[what]["text"]
    assert [(one["setting"], one["problem"]) for one in findings if "problem" in one] == [(setting, said)]
    assert said.endswith(sentence), said


@pytest.mark.sqlite
def test_mail_that_cannot_be_encrypted_names_the_setting_that_demands_it(world):
    plain = MailServer()
    try:
        connections, findings = world.connect(1, mail__url=plain.url, mail__user="", mail__password="")
        said = connections["mail"]["text"]
        assert said.endswith("; the server offers no STARTTLS, which mail.require_tls demands"), said
        assert [one["setting"] for one in findings if "problem" in one] == ["mail.require_tls"]
    finally:
        plain.close()


@pytest.mark.postgresql
@pytest.mark.skipif(stores.DISTRIBUTED, reason="each of the other servers has standbys of its own")
def test_a_missing_standby_is_warned_of_without_being_asked(world):
    """A start does not fail for it, and a server that does not answer is no fault of the settings."""
    def warned(setting, **changed):
        done = world.run("config", "check", "--json", **changed)
        assert done.returncode == 0, done.stdout + done.stderr
        return [one["warning"] for one in json.loads(done.stdout)["findings"] if one["setting"] == setting]

    assert not warned("store.require_replicas")
    (said,) = warned("store.require_replicas", store__require_replicas=7)
    assert "store.require_replicas asks for 7" in said and "registrations are refused" in said
    (said,) = warned("store.url", store__url="postgresql://constancia@127.0.0.1:1/register")
    assert said.startswith("the standbys are unknown, since the server did not answer: ")


@contextlib.contextmanager
def server_settings(primary, **settings):
    """In force while this runs."""
    def reload(statements):
        primary.query("\n".join(statements) + "\nSELECT pg_reload_conf();")

    try:
        reload(f"ALTER SYSTEM SET {name} = '{value}';" for name, value in settings.items())
        eventually(lambda: all(primary.query(f"SHOW {name}") == value
                               for name, value in settings.items()), "the settings are in force")
        yield
    finally:
        reload(["ALTER SYSTEM RESET ALL;"])
        eventually(lambda: all(primary.query(f"SHOW {name}") != value
                               for name, value in settings.items()), "they no longer are")


@pytest.mark.postgresql
@pytest.mark.skipif(stores.DISTRIBUTED, reason="events are in the logs of other servers")
@pytest.mark.parametrize("settings, said", [
    ({}, ["wal_init_zero is on and min_wal_size 80 MB: each new WAL segment (16 MB, "
          "about 24 thousand small events)",
          "max_wal_size is 1024 MB: under load a checkpoint starts about every 778 thousand small events"]),
    ({"wal_init_zero": "off"}, ["max_wal_size is 1024 MB"]),
    ({"wal_init_zero": "off", "max_wal_size": "4GB"}, []),
    ({"min_wal_size": "4GB", "max_wal_size": "4GB"}, []),
    ({"min_wal_size": "4GB", "max_wal_size": "5GB"}, ["min_wal_size 4096 MB"]),
    ({"min_wal_size": "4GB", "max_wal_size": "4GB", "wal_recycle": "off"}, ["wal_recycle off"]),
    ({"min_wal_size": "2GB", "max_wal_size": "2GB"}, ["max_wal_size is 2048 MB"])])
def test_settings_of_the_server_that_make_registrations_uneven_are_told(world, settings, said):
    """Nothing fails for them."""
    with server_settings(stores.cluster().primary, **settings):
        _, findings = world.connect(0)
        told = [one["warning"] for one in findings if one["setting"] == "store.url" and "warning" in one]
        assert len(told) == len(said) and all(map(str.__contains__, told, said)), told
        assert not any("problem" in one for one in findings)
        done = world.run("config", "check", "--connect")
        assert done.returncode == 0
        lines = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
        assert all(any(one in line for line in lines) for one in told), done.stderr


@pytest.mark.sqlite
def test_what_is_published_of_an_authority_is_asked_for(world, tmp_path):
    publisher = Publisher(tmp_path / "publisher")
    publisher.pki.add_issuer("time", "An issuer of timestamps")
    authority = timestamp_authority.Server(timestamp_authority.Certificates(
        str(publisher.pki.timestamps("clock", "time"))))
    threading.Thread(target=authority.serve_forever, daemon=True).start()
    published = {"tsa__url": authority.url, "tsa__roots": publisher.pki.root,
                 "revocation__allow_networks": NETWORK, "revocation__timeout": "20s"}
    try:
        connections, _ = world.connect(0, **published)
        assert "certificates are not revoked" in connections["revocation"]["text"]
        assert publisher.asked
        publisher.asked.clear()
        connections, findings = world.connect(1, **{**published, "revocation__allow_networks": ""})
        assert not connections["revocation"]["ok"] and connections["authority"]["ok"]
        assert not publisher.asked
        assert {one["setting"] for one in findings if "problem" in one} == {"revocation.allow_networks"}
        publisher.lost = True
        connections, _ = world.connect(1, **published)
        assert "missing" in connections["revocation"]["text"], connections["revocation"]
    finally:
        publisher.close()
        authority.shutdown()
        authority.server_close()


@pytest.mark.sqlite
def test_the_roots_of_receivers_are_read(world, tmp_path):
    roots = tmp_path / "roots.pem"
    for text, found in (("", "the file contains no certificate"),
                        (pathlib.Path(world.authority.roots).read_text() * 3, None),
                        (pathlib.Path(world.authority.roots).read_text()
                         + "-----BEGIN CERTIFICATE-----\nxxxx\n-----END CERTIFICATE-----\n",
                         "certificate 2 cannot be read")):
        roots.write_text(text)
        connections, findings = world.connect(1 if found else 0, webhook__roots=roots)
        assert (found or "3 trusted roots for webhook receivers") in connections["webhooks"]["text"]
        assert [one["setting"] for one in findings if "problem" in one] == ["webhook.roots"] * bool(found)


@pytest.mark.sqlite
def test_a_font_that_cannot_be_read_is_found_by_drawing(world, tmp_path):
    """It is there, and holds nothing."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs mount namespaces")
    (mono,) = pathlib.Path("/usr/share/fonts").rglob("DejaVuSansMono.ttf")
    cut = tmp_path / "cut.ttf"
    cut.write_bytes(mono.read_bytes()[:20000])
    chosen = [f"--set={name}={value}" for name, value in world.settings.items()]
    done = subprocess.run(["unshare", "-m", "sh", "-c", f'mount --bind {cut} {mono} && exec "$@"', "sh",
                           BINARY, "config", "check", "--connect", *chosen], text=True,
                          env=clean_environment(), capture_output=True, check=False)
    line = next(line for line in done.stdout.splitlines() if line.startswith("reports"))
    assert done.returncode == 1 and "FAILED" in line and "Mono" in line, done.stdout


def test_another_installations_place_is_not_written_to(world, tmp_path):
    assert world.run("init").returncode == 0
    other = stores.make(tmp_path / "other")
    try:
        before = dict(world.s3.objects)
        world.s3.requests.clear()
        changed = {"service__data_dir": tmp_path / "other", **{
            name.replace(".", "__"): value for name, value in other.settings().items()}}
        if stores.KIND == "sqlite":
            changed["content__url"] = f"file:{tmp_path / 'elsewhere'}"
            assert world.run("init", **changed).returncode == 0
            changed.pop("content__url")
        connections, _ = world.connect(1, **changed)
        assert not connections["content"]["ok"]
        assert world.s3.objects.keys() == before.keys()
        assert "PUT" not in [method for method, _target, _status in world.s3.requests]
    finally:
        other.discard()
