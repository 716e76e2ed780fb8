"""The services outside of the nodes that a script asks for: timestamp authorities, a content store, a mail server.
They run in this process."""

import functools
import hashlib
import os
import shutil
import tempfile
import threading

import timestamp_authority
from publisher import Publisher
from s3_server import Server

try:
    from mail_server import MailServer
except ImportError:  # aiosmtpd is not installed
    MailServer = None

# More attempts than can fail while a run has faults, so that no mail is given up.
MAIL_SCHEDULE = "200ms,500ms,1s,1s,2s,2s,5s,5s,5s,5s,5s,10s,10s,10s,10s,1m,1m,1m,1m,1m"

_certificates = tempfile.TemporaryDirectory(prefix="constancia-authority-")


def directory(name):
    """Returns a directory of this process: others make certificates at the same time."""
    return os.path.join(_certificates.name, str(os.getpid()), name)


@functools.cache
def certificates(number):
    """Returns those of an authority."""
    return timestamp_authority.Certificates(directory(str(number)))


@functools.cache
def publisher():
    """Returns the publisher of revocation data, one for all runs of this process: certificates name its address."""
    made = Publisher(directory("published"))
    made.pki.add_issuer("time", "An issuer of timestamps")
    return made


@functools.cache
def published_certificates(number):
    """Returns those of an authority whose issuer publishes revocation data. What signs its wrong answers is that of an
    authority that is not trusted."""
    made = publisher().pki.timestamps(f"clock-{number}", "time")
    plain = certificates(number)
    for name in os.listdir(plain.directory):
        if not (made / name).exists():
            shutil.copy(plain.path(name), made / name)
    return timestamp_authority.Certificates(str(made))


@functools.cache
def published_signer():
    """Returns the settings of a signing key whose issuer publishes revocation data."""
    return publisher().pki.signer("seals")


class Services:
    def __init__(self, script, directory):
        self.revocation = script.get("revocation")  # who publishes revocation data: None, "authorities", or "all"
        self.publisher = publisher() if self.revocation else None
        self.revocation_faults = []
        self.authorities = [self._authority(number) for number in range(script.get("authorities", 0))]
        self.authority_faults = [[] for _ in self.authorities]
        self.content = self.mail = None
        if script.get("content") == "s3":
            os.makedirs(os.path.join(directory, "objects"))
            self.content = Server(os.path.join(directory, "objects"))
        if script.get("mail") and MailServer:
            self.mail = MailServer()
        elif script.get("mail"):
            print("no mail server: aiosmtpd is not installed", flush=True)

    def _authority(self, number):
        server = timestamp_authority.Server((published_certificates if self.publisher else certificates)(number))
        if self.publisher:
            server.roots = str(self.publisher.pki.root)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return server

    def settings(self):
        """Returns the settings of the nodes that use them."""
        found = {}
        if self.authorities:
            found |= {"tsa.url": ",".join(server.url for server in self.authorities),
                      "tsa.roots": ",".join(server.roots for server in self.authorities),
                      "tsa.allow_networks": "127.0.0.0/8"}
        if self.publisher:
            found |= {"tsa.roots": str(self.publisher.pki.root), "revocation.allow_networks": "127.0.0.0/8",
                      "revocation.timeout": "2s", **(published_signer() if self.revocation == "all" else {})}
        for service in (self.content, self.mail):
            if service:
                found |= {name.replace("__", "."): value for name, value in service.settings().items()}
        return found | ({"mail.schedule": MAIL_SCHEDULE} if self.mail else {})

    def roots(self):
        """Returns the files with the roots of the authorities."""
        return sorted({server.roots for server in self.authorities})

    def publish(self, mode):
        """Sets how revocation data is published from now on (publisher.py)."""
        self.publisher.mode = mode

    def script_mail(self, answers):
        """Sets the answers to the next messages; None: it accepts all."""
        if self.mail:
            with self.mail._lock:
                self.mail._script[:] = answers or ()

    def holds_mail(self):
        """Returns whether the mail server has a message to which it has not responded."""
        return bool(self.mail and self.mail.held)

    def mails(self, start):
        """Returns the messages that the mail server accepted, with times since the start."""
        return [{"id": message["Message-ID"], "to": message.recipients, "subject": message["Subject"],
                 "text": message.get_content(), "at": message.at - start,
                 "sha256": hashlib.sha256(message.content).hexdigest()}
                for message in (list(self.mail.messages) if self.mail else ())]

    def close(self):
        if self.publisher:
            self.publish("good")
            self.publisher.first.clear()
        for server in self.authorities:
            server.shutdown()
            server.server_close()
        if self.content:
            self.content.stop()
        if self.mail:
            self.mail.close()
