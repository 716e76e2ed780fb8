"""An SMTP server (aiosmtpd) that keeps all messages and can also misbehave. For tests only.

    server = MailServer()                      listens on 127.0.0.1; .url
    server.script("451 later", "cut")          responses to the next messages, in order; then messages are accepted
    server.messages                            every complete message, as email.message
    server.close()

usage: mail_server.py PORT FILE
Runs standalone and appends a line of JSON to the file for each message before it accepts it.

A step of the script:
    take            accept the message
    cut             keep the message, and close the connection without a response
    late SECONDS    accept the message after that time; a client that gives up before has not sent it
    rcpt CODE TEXT  this response to RCPT
    CODE TEXT       this response to the complete message, which is kept in .turned_down

With certificates (make_certificates) it offers and requires STARTTLS, and a password if `user` is set.
"""

import asyncio
import email
import email.policy
import json
import pathlib
import ssl
import subprocess
import sys
import threading
import time

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from ports import reserve_port


def make_certificates(directory, name="127.0.0.1"):
    """Creates a root and a server certificate; returns the paths of root, chain and key."""
    directory = pathlib.Path(directory)
    root, root_key = directory / "root.pem", directory / "root.key"
    chain, key, request = directory / "mail.pem", directory / "mail.key", directory / "mail.csr"
    extensions = directory / "extensions"
    extensions.write_text(f"subjectAltName=IP:{name}\n")

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", root_key, "-out", root, "-subj", "/CN=Test mail root", "-days", 30)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
            "-out", request, "-subj", "/CN=mail", "-days", 30)
    openssl("x509", "-req", "-in", request, "-CA", root, "-CAkey", root_key, "-CAcreateserial",
            "-out", chain, "-days", 30, "-extfile", extensions)
    return root, chain, key


class Handler:
    def __init__(self, server):
        self.server = server

    async def handle_RCPT(self, _smtp, _session, envelope, address, _options):
        step = self.server.peek()
        if step.startswith("rcpt "):
            self.server.next_step()
            return step[len("rcpt "):]
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, smtp, session, envelope):
        step = self.server.next_step()
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        message.sender, message.recipients = envelope.mail_from, envelope.rcpt_tos
        message.over_tls = session.ssl is not None
        message.content = envelope.content
        if step.startswith("late "):
            await self.server.hold(float(step[len("late "):]))  # ends here when the connection does
            step = "take"
        if step in ("take", "cut"):
            self.server.keep(message)
        else:
            self.server.turned_down.append(message)
        if step == "cut":
            smtp.transport.abort()
            return "421 cut"
        return "250 taken" if step == "take" else step


class MailServer:
    def __init__(self, certificates=None, user=None, password=None, port=None, file=None):
        self.messages = []
        self.turned_down = []
        self.logins = []
        self.held = 0  # messages whose response is delayed
        self.user, self.password = user, password
        self._script = []
        self._lock = threading.Lock()
        self.file = file
        self.port = port or reserve_port()
        self.url = f"smtp://127.0.0.1:{self.port}"
        more = {}
        if certificates:
            _root, chain, key = certificates
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain, key)
            more = {"tls_context": context, "require_starttls": True}
        if user:
            more |= {"authenticator": self.authenticate, "auth_required": True}
        self.controller = Controller(Handler(self), hostname="127.0.0.1", port=self.port, ready_timeout=60, **more)
        self.controller.start()

    def settings(self, **more):
        """Returns the settings of a service that uses it, for client.Service."""
        return {"mail__url": self.url, "mail__from": "notices@example.org",
                "mail__require_tls": "false", "mail__allow_networks": "127.0.0.0/8",
                "mail__schedule": "200ms,200ms,200ms,200ms", **more}

    def authenticate(self, _server, _session, _envelope, _mechanism, data):
        self.logins.append(data.login.decode())
        right = data.login.decode() == self.user and data.password.decode() == self.password
        return AuthResult(success=right, handled=False)  # it sends 235 or 535

    def script(self, *steps):
        with self._lock:
            self._script += steps

    def peek(self):
        with self._lock:
            return self._script[0] if self._script else "take"

    def next_step(self):
        with self._lock:
            return self._script.pop(0) if self._script else "take"

    async def hold(self, seconds):
        self.held += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self.held -= 1

    def keep(self, message):
        message.at = time.monotonic()
        self.messages.append(message)
        if self.file:
            self.file.write(json.dumps({"id": message["Message-ID"], "to": message.recipients,
                                        "subject": message["Subject"]}) + "\n")
            self.file.flush()

    def close(self):
        self.controller.stop()


def main():
    port, path = sys.argv[1:]
    with open(path, "a", encoding="utf-8") as file:
        MailServer(port=int(port), file=file)
        threading.Event().wait()


if __name__ == "__main__":
    main()
