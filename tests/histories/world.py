"""The service that a script runs against, with its store and all its parts, each of which a fault may reach."""

import collections
import contextlib
import json
import os
import resource
import time

import disks
import faults
import preloads
from moved_clock import MovedClock
from nodes import Deployment, Node
from payment_provider import PaymentProvider
from program import BINARY, NotStarted
from services import Services
from supervision import Supervision
from webhook_receiver import Receiver

START_SECONDS = 120
SLOW_SECONDS = 3  # of a receiver's answer


class WorldNode(Node):
    """A node with a file of settings, which may change while it runs."""

    def __init__(self, deployment, name, **more):
        self.file = os.path.join(deployment.world_directory, name + ".conf")
        super().__init__(deployment, name, **more)

    def chosen(self):
        return [*(["--config", self.file] if os.path.exists(self.file) else []), *super().chosen()]


class WorldDeployment(Deployment):
    node_class = WorldNode

    def __init__(self, world, settings):
        self.world_directory = world.directory
        super().__init__(world.disk.directory, world.first_binary, settings)


class World(Supervision):
    """One node on the embedded store. `directory` is emptied by its owner."""

    def __init__(self, script, directory, binary=BINARY):
        super().__init__()
        self.script, self.directory, self.binary = script, directory, str(binary)
        self.first_binary = str(script.get("previous") or binary)  # with which the nodes begin
        self.receivers, self.receiver_faults = [], []
        self.watched = True  # whether a process that ends was not meant to
        self.nodes, self.disk, self.services, self.provider = [], None, None, None
        self.facts = {}  # for the rules, with times of `clock`
        self.clock = None  # seconds since the start of the run; set by it

    # ---- for subclasses ----

    def settings(self):
        series = {"backup.directory": self.series} if self.script.get("backups") else {}
        return {"store.url": f"sqlite:{self.disk.directory}/store.db", **series}

    def add_nodes(self):
        self.deployment.add()

    @property
    def series(self):
        """The directory of the series of backups."""
        return f"{self.disk.directory}/backups"

    # ---- its life ----

    def start(self):
        self.disk = disks.open_disk(self.script.get("disk", "plain"), self.script["seed"], self.directory)
        self.services = Services(self.script, self.directory)
        settings = {"webhook.allow_http": "true", "webhook.allow_networks": "127.0.0.0/8",
                    **self.services.settings(), **self.settings(), **self.script["settings"]}
        if script := self.script.get("provider"):
            self.provider = PaymentProvider()
            self.provider.notices = script["notices"]
            self.provider.script(*script["behaviours"])
            settings |= {name.replace("__", "."): value for name, value in self.provider.settings().items()}
        self.deployment = WorldDeployment(self, settings)
        self.nodes = self.deployment.nodes
        self.add_nodes()
        self.disk.sync()
        self.equip()
        for node in self.nodes:
            node.start(START_SECONDS)
        if self.provider:
            self.provider.webhook_url = f"http://{self.nodes[0].address}:{self.nodes[0].port}/payments/stripe/notices"

    def equip(self):
        """Prepares the nodes for the faults of the script."""
        self.supervise(self.nodes)
        self.changes = {node: {} for node in self.nodes}
        self.limits, self.clocks, self.log_steps, self.offsets, self.changeable = {}, {}, {}, {}, {}
        self.migrated = True
        wanted = faults.preloads(self.script)
        self.shaking = preloads.Shaking(os.path.join(self.directory, "shaking")) if "shaking" in wanted else None
        for node in self.nodes:
            environments = []
            if "log_steps" in wanted:
                place = os.path.join(self.directory, node.name + ".steps")
                os.makedirs(place)
                self.log_steps[node] = preloads.log_steps_of(place)
                environments.append(self.log_steps[node].environment({}))
            environments += [self.shaking.environment()] if self.shaking else []
            if "clock" in wanted:
                self.clocks[node], self.offsets[node] = MovedClock(), 0
                environments.append(self.clocks[node].environment)
            node.environment = {**node.environment, **preloads.joined([*environments, self.disk.environment()])}
            node.log = node.printed = os.path.join(self.directory, node.name + ".log")
            # What is given in the command would go before the file.
            self.changeable[node] = {name: node.settings.pop(name) for name in faults.CHANGEABLE & set(node.settings)}
            self.write_settings(node, self.changeable[node])

    def heal(self):
        """Blocks until every node is ready, whatever happened to it."""
        end = time.monotonic() + START_SECONDS
        while True:
            self.keep_up()
            waited = [node for node in self.nodes if not node.alive() or not node.is_ready()]
            if not waited:
                return
            if time.monotonic() > end:
                raise NotStarted(f"{waited} not ready {START_SECONDS} s after all faults: "
                                 f"{[(node.ask('/readyz'), node.log_tail()) for node in waited]}")
            time.sleep(0.02)

    def stop(self):
        """Ends the nodes as a service manager does, and notes those that end otherwise than with 0."""
        for node in self.nodes:
            self.terminate(node)
            self.await_stop(node)

    def close(self):
        for node in self.nodes:
            node.kill()
        for receiver in self.receivers:
            receiver.close()
        for other in (self.services, self.provider):
            if other:
                other.close()
        if self.disk:
            self.disk.close()

    # ---- for faults ----

    def cut_power(self, percent, seed):
        """Everything ends, and of what was not synced so much is there. Where the disk does not forget, it only
        ends."""
        running, start = [node.process for node in self.nodes if node.process], self.clock()
        if hasattr(self.disk, "cut"):
            self.disk.cut(percent, seed, running)
        for node in self.nodes:
            node.kill()
        self.facts.setdefault("cuts", []).append([start, self.clock()])

    def full_limit(self, process, kind):
        """Returns a limit of a process before any fault lowered it."""
        return self.limits.setdefault((process.pid, kind), resource.prlimit(process.pid, kind))

    def move_clock(self, node, seconds):
        """Moves a node's clock by that much more."""
        self.offsets[node] += seconds
        self.clocks[node].move(self.offsets[node])

    def verifier_environment(self):
        """Returns the environment of a program whose clock is that of a node."""
        moved = [clock.environment for clock in self.clocks.values()]
        return {**os.environ, **moved[0]} if moved else None

    def reconfigure(self, node, fault, changed):
        """Changes settings of a node on behalf of a fault, and has it read them; {}: as they were."""
        self.changes[node].pop(fault, None)
        if changed:
            self.changes[node][fault] = changed
        given = {}
        for one in self.changes[node].values():
            given |= one
        self.write_settings(node, {**self.changeable[node], **given})
        self.reload(node)

    @staticmethod
    def write_settings(node, settings):
        with open(node.file + ".new", "w", encoding="utf-8") as file:
            for name, value in settings.items():
                section, key = name.split(".", 1)
                file.write(f"[{section}]\n{key} = {value}\n")
        os.rename(node.file + ".new", node.file)

    def upgrade(self):
        """Has nodes start with the current program from now on."""
        for node in self.nodes:
            node.binary = self.binary
        self.migrated = False

    def migrate(self):
        """Migrates the store for the current program, if that was not done. Returns whether nodes can start."""
        if not self.migrated:
            self.migrated = self.nodes[0].run("store", "migrate").returncode == 0
        return self.migrated

    def receiver_address(self):
        return "127.0.0.1"

    def receive(self, script):
        """Starts a receiver of notices. `script`: its answers in turn, each a status or seconds of silence."""
        answers, present = list(script), []

        def answer(delivery):
            delivery.at = time.monotonic()
            how = present[-1].spec["how"] if present else None
            if how == "slow":
                time.sleep(SLOW_SECONDS)
            elif how in ("close", "lose"):
                if how == "lose":
                    delivery.status = 0
                    receiver.deliveries.append(delivery)
                raise ConnectionError(how)
            elif how:
                return int(how)
            return answers.pop(0) if answers else 200

        receiver = Receiver(self.receiver_address(), answer=answer)
        self.receivers.append(receiver)
        self.receiver_faults.append(present)
        return receiver

    def trust(self):
        """Returns a file with the roots that a user of this service accepts."""
        path = os.path.join(self.directory, "trust.pem")
        with open(path, "w", encoding="ascii") as file:
            for part in (os.path.join(self.nodes[0].data, "trust.pem"), *self.services.roots()):
                with open(part, encoding="ascii") as other:
                    file.write(other.read())
        return path

    def log_lines(self):
        """Yields (a line, what it states) of all nodes' logs."""
        for node in self.nodes:
            with open(node.log, encoding="utf-8", errors="replace") as file:
                for line in file:
                    with contextlib.suppress(ValueError):
                        yield line, json.loads(line)

    def logged(self, *events):
        """Returns the lines of these events that the nodes logged."""
        return [line for line, entry in self.log_lines() if entry.get("event") in events]

    def logged_errors(self):
        """Returns [number, a line] of each kind of event that the nodes logged as an error."""
        found = collections.OrderedDict()
        for line, entry in self.log_lines():
            if entry.get("level") == "error":
                found.setdefault(entry.get("event"), [0, line])[0] += 1
        return list(found.values())


__all__ = ["NotStarted", "World"]
