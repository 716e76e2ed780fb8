"""A run of a script: the world is made, clients and faults do what the script says, everything is healed, and what
the service then holds is read."""

import threading
import time

import closing
import closing_accounts
import closing_copies
import faults
from history import FOREVER, NO_ANSWER, Fault, History, Operation
from operations import Client, Interface

RUN_SECONDS = 90  # after which clients are stopped
CLIENT_SECONDS = 60  # how long they may then need for their last step
IDENTIFIERS = {"account create": "account_id", "channel create": "channel_id", "key create": "key_id",
               "limit create": "limit_id", "threshold create": "threshold_id", "pack create": "pack_id",
               "purchase create": "sale_id", "webhook create": "endpoint_id"}


class Broken(Exception):
    """The run itself failed: nothing can be said of the service."""


class Run:
    """Everything that clients share. Thread safe where it says so."""

    def __init__(self, script, world):
        self.script, self.world = script, world
        self.steps = {step["id"]: step for steps in script["clients"] for step in steps}
        self.names = {}  # identifiers, and secrets, by the names of the script
        self.results = {}  # of steps, by number
        self.operations, self.pages, self.known, self.faults = [], {}, {}, []
        self.begun = {}  # when each step began, by number
        self.completed, self.evidence = {}, {}  # records of certifications and digests of their archives, by identifier
        self.stopping = False
        self._lock = threading.Lock()
        self._count = 0
        self._start, self._wall = time.monotonic(), time.time()
        world.clock = self.clock

    # ---- for clients; thread safe ----

    def clock(self):
        return time.monotonic() - self._start

    def next_number(self):
        with self._lock:
            self._count += 1
            return self._count

    def record(self, operation):
        with self._lock:
            self.operations.append(operation)
            if operation.good and "walk" in operation.arguments:
                self.pages[operation.arguments["walk"]] = operation

    def last_page(self, walk):
        with self._lock:
            return self.pages[walk]

    def learn(self, chain, event):
        with self._lock:
            self.known.setdefault(chain, []).append(event)

    def known_of(self, chain):
        with self._lock:
            return list(self.known.get(chain, ()))

    def bind(self, name, answer, words):
        identifier = IDENTIFIERS.get(words)
        if identifier:
            self.names[name] = answer[identifier]
        for secret in ("key", "secret"):
            if secret in answer:
                self.names["secret of " + name] = answer[secret]

    # ---- the run ----

    def setup(self):
        for script in self.script.get("receivers", ()):
            number = len(self.world.receivers)
            self.names[f"receiver {number}"] = self.world.receive(script).url
        interface = Interface(self, "setup")
        for step in self.script["setup"]:
            done = interface.perform(step)
            if not done or not done.good:
                raise Broken(f"setup: {step}: {done}")

    def apply_faults(self, clients):
        """Begins and ends each at its time, and ends all that are left once the clients have finished. In the main
        thread, since a process ends with the thread that started it (PR_SET_PDEATHSIG)."""
        start, present, ended = self.clock(), self.world.present, False
        waiting = [faults.make(spec) for spec in self.script["faults"]]
        while not ended or present:
            ended = self.clock() - start > RUN_SECONDS or not any(client.is_alive() for client in clients)
            for fault in list(present):
                elapsed = self.clock() - fault.begun
                if not ended:
                    fault.step(self.world, elapsed)
                if ended or fault.is_over(elapsed):
                    fault.end(self.world)
                    present.remove(fault)
                    self.faults.append(Fault(fault.name, fault.begun, self.clock(), fault.spec))
            for fault in [one for one in waiting if not ended and self.clock() >= self.due(one, start)]:
                waiting.remove(fault)
                fault.begun = self.clock()
                present.append(fault)
                fault.begin(self.world)
            self.world.keep_up()
            time.sleep(0.002 if waiting or present else 0.005)

    def due(self, fault, start):
        """Returns when a fault begins: "at" seconds after the clients began, or after the step "after" began."""
        since = self.begun.get(fault.spec["after"], float("inf")) if "after" in fault.spec else start
        return since + fault.at

    def run_clients(self):
        clients = [Client(self, f"client {number}", steps, number)
                   for number, steps in enumerate(self.script["clients"])]
        for client in clients:
            client.start()
        self.apply_faults(clients)
        self.stopping = True
        for client in clients:
            client.join(CLIENT_SECONDS)
            if client.error:
                raise client.error
            if client.is_alive():
                raise Broken(f"{client.name} hangs")

    def discard_answers(self):
        """Takes what was answered while the power was being cut as not answered: the processes end a moment after
        their disk has forgotten."""
        for start, end in self.world.facts.get("cuts", ()):
            for one in self.operations:
                if one.invoked <= end and start <= one.completed < FOREVER:
                    one.status, one.completed, one.answer, one.headers = NO_ANSWER, FOREVER, None, {}

    def deliveries(self):
        return [{"receiver": number, "arrived": delivery.arrived, "at": delivery.at - self._start,
                 "status": delivery.status, "path": delivery.path, "record": delivery.record,
                 "body": delivery.body.decode(), "timestamp": delivery.headers.get("X-SVC-Timestamp"),
                 "signature": delivery.headers.get("X-SVC-Signature"), "id": delivery.headers.get("X-SVC-Webhook-Id")}
                for number, receiver in enumerate(self.world.receivers) for delivery in list(receiver.deliveries)]

    @property
    def clock_moved(self):
        return self.world.facts.get("clock_moved", False) or any(fault.name in faults.OF_CLOCK for fault in self.faults)

    def facts(self, unresolved):
        """Returns what rules know besides the operations (history.py)."""
        wall = time.time() - self.clock()
        return {"wall": wall, "wall_error": abs(wall - self._wall) + 0.002,
                "receivers": [receiver.url for receiver in self.world.receivers], "names": self.names,
                "clock_moved": self.clock_moved,
                "bidden_ends": self.world.bidden_ends, "errors": self.world.logged_errors(),
                "mails": self.world.services.mails(self._start),
                "mails_given_up": self.world.logged("mail_failed", "mail_dropped"),
                "unresolved": unresolved, **closing_accounts.charges(self.world.provider), **self.world.facts}

    def run(self):
        """Returns the history."""
        try:
            self.world.start()
            self.setup()
            self.run_clients()
            self.world.heal()
            self.discard_answers()
            unresolved = closing.read(self)
            self.world.watched = False
            self.world.stop()
            deliveries, facts = self.deliveries(), self.facts(unresolved)
            if self.script.get("backups"):
                facts["copy"] = closing_copies.read(self)
            return History(self.script, self.operations, self.faults, deliveries, self.world.ends, facts)
        finally:
            self.world.close()


__all__ = ["Broken", "Operation", "Run"]
