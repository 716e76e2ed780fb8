"""`serve` with secrets passed as files, as the unit's LoadCredential= does: the password of the mail
server and the passphrase of the key that signs, both used."""

import contextlib

import pytest

import program
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
