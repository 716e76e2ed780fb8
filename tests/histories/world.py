"""The service that a script runs against, with its store and all its parts, each of which a fault may reach."""

import os
import time

from nodes import Deployment
from payment_provider import PaymentProvider
from program import BINARY, NotStarted
from webhook_receiver import Receiver

START_SECONDS = 120


class World:
    """One node on the embedded store. `directory` is emptied by its owner."""

    def __init__(self, script, directory, binary=BINARY):
        self.script, self.directory, self.binary = script, directory, binary
        self.receivers = []
        self.provider = None
        self.watched = True  # whether a process that ends was not meant to
        self.ends = []
        self.facts = {}  # for the rules, with times of `clock`
        self.clock = None  # seconds since the start of the run; set by it

    # ---- for subclasses ----

    def settings(self):
        return {"store.url": f"sqlite:{self.directory}/store.db"}

    def add_nodes(self):
        self.deployment.add()

    # ---- its life ----

    def start(self):
        settings = {"webhook.allow_http": "true", "webhook.allow_networks": "127.0.0.0/8",
                    **self.settings(), **self.script["settings"]}
        if "provider" in self.script:
            self.provider = PaymentProvider()
            self.provider.notices = self.script["provider"]["notices"]
            self.provider.script(*self.script["provider"]["behaviours"])
            settings |= {name.replace("__", "."): value for name, value in self.provider.settings().items()}
        self.deployment = Deployment(self.directory, self.binary, settings)
        self.add_nodes()
        self.nodes = self.deployment.nodes
        for node in self.nodes:
            node.start(START_SECONDS)
        if self.provider:
            self.provider.webhook_url = f"http://{self.nodes[0].address}:{self.nodes[0].port}/payments/stripe/notices"

    def look_at_ends(self):
        """Notes processes that ended unbidden, and starts them again."""
        for node in self.nodes:
            if node.process is not None and node.process.poll() is not None:
                self.ends.append({"process": str(node), "status": node.process.returncode,
                                  "log": node.log_tail(5)})
                node.process = None
        return self.ends

    def heal(self):
        """Blocks until every node is ready, whatever happened to it."""
        self.look_at_ends()
        for node in self.nodes:
            if not node.alive():
                node.spawn()
        for node in self.nodes:
            node.wait("/readyz", START_SECONDS)

    def stop(self):
        """Ends the nodes as a service manager does, and notes those that end otherwise than with 0."""
        for node in self.nodes:
            self.expect_end(node, node.stop())

    def expect_end(self, node, status):
        if status != 0:
            self.ends.append({"process": str(node), "status": status, "log": node.log_tail(5)})

    def close(self):
        if hasattr(self, "deployment"):
            self.deployment.close()
        for receiver in self.receivers:
            receiver.close()
        if self.provider:
            self.provider.close()

    def receive(self, script):
        """Starts a receiver of notices. `script`: its answers in turn, each a status or seconds of silence."""
        answers = list(script)

        def answer(delivery):
            delivery.at = time.monotonic()
            return answers.pop(0) if answers else 200
        receiver = Receiver(answer=answer)
        self.receivers.append(receiver)
        return receiver

    def trust(self):
        return os.path.join(self.nodes[0].data, "trust.pem")


__all__ = ["NotStarted", "World"]
