"""`serve` with secrets passed as files, as the unit's LoadCredential= does: the password of the mail
server and the passphrase of the key that signs, both used."""

import contextlib
import json
import threading

import pytest

import demanding_proxy
import program
import timestamp_authority
from client import BINARY, Administration, eventually, run
from fleet import FleetNode
from mail_server import MailServer, make_certificates
from nodes import Deployment
from operators import NO_AUTHORITY
from pki import PASSPHRASE, Pki, held_in_pkcs12
from program import NotStarted

pytestmark = pytest.mark.sqlite  # what is handed over does not depend on the store
PASSWORD = "correct & horse"


class Node(FleetNode):
    """Whose commands have its environment, too."""

    def run(self, *words, timeout=600):
        return program.run(self.command(*words), self.environment, timeout)


class Deployed(Administration, Deployment):
    node_class = Node

    def __init__(self, directory, settings):
        self.secrets = set()
        super().__init__(directory, BINARY, settings)

    def admin(self, *words):
        return self.nodes[0].admin(*words)

    def entry(self):
        return self.nodes[0]


@pytest.fixture
def outside(tmp_path):
    """A mail server that wants a password, a key that wants a passphrase: settings that name credentials."""
    certificates = make_certificates(tmp_path)
    server = MailServer(certificates, user="constancia", password=PASSWORD)
    pki = Pki(tmp_path / "pki")
    held = held_in_pkcs12(pki, "mine", pki.signer("mine")["signer.chain"])
    server.wanted = {
        "mail.url": server.url, "mail.from": "notices@example.org", "mail.user": "constancia",
        "mail.roots": str(certificates[0]), "mail.allow_networks": "127.0.0.0/8",
        "mail.password": "credential:mail", "signer.key": held["signer.key"],
        "signer.passphrase_file": "passphrase", "tsa.roots": str(pki.root),
        **NO_AUTHORITY}
    yield server
    server.close()


def hand_over(directory):
    place = directory / "credentials"
    place.mkdir(mode=0o700)
    for name, secret in (("mail", PASSWORD), ("passphrase", PASSPHRASE)):
        (place / name).write_text(secret + "\n")
        (place / name).chmod(0o400)
    return {"CREDENTIALS_DIRECTORY": str(place)}


def cause_mail(deployed):
    """Without a payment method an automatic top-up fails at once."""
    account = deployed.new_account(credits=5, email="owner@example.com")
    pack = deployed.admin("pack", "create", "--name", "A pack", "--credits", 1000, "--price", "10.00",
                          "--currency", "EUR")["pack_id"]
    deployed.admin("account", "billing", account, "--country", "ES")
    deployed.admin("topup", "set", "--account", account, "--threshold", 10, "--pack", pack)


def test_secrets_are_read_from_what_the_supervisor_hands_over(outside, tmp_path):
    given = hand_over(tmp_path)
    deployed = Deployed(tmp_path / "node", outside.wanted)
    with contextlib.ExitStack() as ending:
        ending.callback(deployed.close)
        with pytest.raises(NotStarted, match="mail.password: the supervisor provides no credentials"):
            deployed.add()
        node = deployed.add(environment=given)
        assert node.run("config", "check").returncode == 0
        node.start()
        assert run("account", "list", *node.chosen()).returncode == 0, "administration needs no secret"
        cause_mail(deployed)
        eventually(lambda: outside.messages, "the mail server let it in")
        assert outside.logins == ["constancia"]
        channel = deployed.new_channel()
        channel.test.register().expect(201)
        record = channel.test.certified(seq_from=1, seq_to=1)
        assert record["status"] == "completed", "the key was opened"
        channel.close()
        text = node.log_tail(10000) + node.run("config", "print").stdout
        assert not [secret for secret in (PASSWORD, PASSPHRASE) if secret in text]
        assert node.stop() == 0
        (tmp_path / "credentials" / "mail").unlink()
        with pytest.raises(NotStarted):
            node.start()
        assert "mail.password" in node.log_tail()


TSA_PASSWORD, TSA_TOKEN, LITERAL = "correct-horse", "eyJhbGciOi.J9.opaque-token", "written-here"


@pytest.fixture
def authorities(tmp_path):
    """Three authorities: two want a password, one a token."""
    good = timestamp_authority.Server(timestamp_authority.Certificates(str(tmp_path / "authority")))
    certificates = demanding_proxy.Certificates(str(tmp_path / "proxy"))
    proxies = [demanding_proxy.Server(certificates, good.url, **demands) for demands in (
        {"basic": f"first:{TSA_PASSWORD}"}, {"bearer": TSA_TOKEN}, {"basic": f"third:{LITERAL}"})]
    for server in (good, *proxies):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield proxies, {
        "tsa.url": ",".join(proxy.url for proxy in proxies), "tsa.roots": str(good.roots),
        "tsa.tls_roots": certificates.path("root.pem"), "tsa.allow_networks": "127.0.0.0/8",
        "tsa.policy": "2.25.1", "tsa.user": "first,,third",
        "tsa.password": f"credential:tsapw,,{LITERAL}", "tsa.token": ", credential:tsa-token ,"}
    for server in (good, *proxies):
        server.shutdown()
        server.server_close()


def test_each_entry_of_a_list_may_be_a_credential(authorities, tmp_path):
    """Each authority gets its own secret, and no reference is ever sent."""
    proxies, wanted = authorities
    given = tmp_path / "credentials"
    given.mkdir(mode=0o700)
    (given / "tsapw").write_text(TSA_PASSWORD + "\n")
    (given / "tsa-token").write_text(TSA_TOKEN + "\n")
    deployed = Deployed(tmp_path / "node", wanted)
    with contextlib.ExitStack() as ending:
        ending.callback(deployed.close)
        node = deployed.add(environment={"CREDENTIALS_DIRECTORY": str(given)})
        done = node.run("config", "check", "--connect", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        answered = [one for one in json.loads(done.stdout)["connections"] if one["what"] == "authority"]
        assert len(answered) == 3 and all(one["ok"] for one in answered)
        assert all(len(proxy.seen) == 1 for proxy in proxies)
        # What has no credentials sends nothing: it does not even ask.
        done = run("config", "check", "--connect", *node.chosen())
        assert done.returncode == 1
        for name in ("tsa.password", "tsa.token"):
            assert f"{name}: the supervisor provides no credentials" in done.stderr
        node.start()
        assert run("account", "list", *node.chosen()).returncode == 0
        done = run("config", "print", *node.chosen())
        assert done.returncode == 0 and done.stdout.count("(not shown; set by") == 2
        assert node.stop() == 0
        assert run("account", "list", *node.chosen()).returncode == 0, "on the store itself"
        text = node.log_tail(10000) + done.stdout
        assert not [secret for secret in (TSA_PASSWORD, TSA_TOKEN, LITERAL) if secret in text]
    assert all(set(proxy.seen) == {proxy.demanded} for proxy in proxies)
