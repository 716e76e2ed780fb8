"""What a run does with its backups once the service has stopped: lists the series and verifies each backup, restores
one of them, and reads what the copy holds, does and refuses."""

import copy
import os
import random
import shutil
import time
import types

from history import NO_ANSWER, Operation
from nodes import Node
from operations import Interface
from program import NotStarted, copy_keys, flags

START_SECONDS = 120
WAKING_SECONDS = 90  # until a copy that was resumed registers
PATIENCE = 60  # seconds until a request has an answer
READ_AGAIN = 8  # contents that are read
PAGE = 500
LATER = (NO_ANSWER, 408, 429)  # answers after which a request is repeated
LOST = ("service.tls_certificate", "service.tls_key")  # what a restore has to name as missing


class Copy:
    """A node of its own on a store that is restored from the series."""

    def __init__(self, run):
        self.run, self.world = run, run.world
        self.random = random.Random(run.script["seed"])
        self.directory = os.path.join(self.world.directory, "copy")
        os.makedirs(self.directory)
        self.content = f"{self.directory}/content"
        given = {name: value for name, value in self.world.deployment.settings.items()
                 if not name.startswith("content.")}
        given |= {"content.url": f"file:{self.content}", "store.url": f"sqlite:{self.directory}/store.db",
                  "rate.live": "1000000", "rate.test": "1000000"}
        self.node = Node(types.SimpleNamespace(directory=self.directory, settings=given, binary=self.world.binary),
                         "copy", environment=self.clock())
        # What the copy is asked is no part of the history: its answers are those of the time of the backup.
        self.view = copy.copy(run)
        self.view.operations, self.view.results, self.view.pages, self.view.known = [], {}, {}, {}
        self.view.world = types.SimpleNamespace(nodes=[self.node], binary=self.world.binary)
        self.interface = Interface(self.view, "copy")
        self.asked = []

    def clock(self):
        """Returns the environment by which the copy has the clock of the original."""
        moved = list(self.world.clocks.values())
        return moved[0].environment if moved else {}

    # ---- the restore ----

    def add_contents(self):
        """Copies the content store of the original, as operators do whose backup has no contents."""
        if self.run.script["content"] == "file":
            shutil.copytree(f"{self.world.disk.directory}/content", self.content)
        else:
            os.makedirs(self.content)

    def restore(self, name):
        """Restores the backup of this name, None for the newest, with settings that name files which are missing."""
        lost = [f"--set={setting}={self.directory}/lost.pem" for setting in LOST]
        words = ["--latest"] if name is None else [f"{self.world.series}/{name}"]
        operation = Operation(self.run.next_number(), "copy", "store restore", {"name": name}, 0.0, closing=True)
        self.interface.command(operation, "store restore", *words, *flags(self.node.settings), *lost,
                               environment=self.node.environment)
        self.run.record(operation)
        return operation

    def start(self):
        copy_keys(self.world.nodes[0].data, self.node.data)
        self.node.spawn()
        self.node.wait_until(self.answers, "the copy answers", START_SECONDS)

    def answers(self):
        """Returns whether the copy has come to the state in which it stays."""
        self.ready = self.node.ask("/readyz")
        return self.ready is not None and (self.ready[0] == 200 or "store wake" in self.ready[1])

    # ---- what it holds ----

    def perform(self, step):
        end, done = time.monotonic() + PATIENCE, self.interface.perform(step)
        while done.status in LATER and time.monotonic() < end:
            done = self.interface.perform(step)
        self.asked.append([step["op"], done.status, None if done.good else done.answer])
        return done

    def keys(self):
        """Returns {chain: the names of its keys}, of which the copy need not have all."""
        found = {}
        for one in self.run.operations:
            if one.kind == "key create" and one.good:
                found.setdefault(one.arguments["name"].rsplit("/", 1)[0], []).append(one.arguments["name"])
        return found

    def read_chain(self, names):
        """Returns a key that the copy accepts, and the events that it shows for it; None: it accepts none."""
        for key in names:
            page = self.perform({"op": "list", "key": key, "filters": {}, "order": "asc", "limit": PAGE})
            if page.good:
                break
        else:
            return None
        first, events = page, list(page.answer["data"])
        self.view.results[first.number] = first
        while page.good and page.answer["has_more"]:
            page = self.perform({"op": "list_next", "of": first.number})
            events += page.answer["data"] if page.good else []
        return key, events

    def read_contents(self, chains):
        """Returns [event_id, digest, status, digest of what was read] of contents that clients sent."""
        held = {event["event_id"]: key for key, events in chains.values() for event in events}
        sent = {one.answer["event_id"]: one for one in self.run.operations
                if one.kind == "register" and one.good and one.arguments["form"] != "hash"
                and one.answer["event_id"] in held}
        found = []
        for name in self.random.sample(sorted(sent), min(READ_AGAIN, len(sent))):
            self.view.results[-1] = sent[name]
            done = self.perform({"op": "get_content", "of": -1, "key": held[name]})
            found.append([name, done.arguments["digest"], done.status, (done.answer or {}).get("sha256")])
        return found

    def sent(self, since):
        """Returns what arrived outside since the copy was started."""
        mail, provider = self.world.services.mail, self.world.provider
        return {"notices": sum(delivery.arrived >= since for receiver in self.world.receivers
                               for delivery in list(receiver.deliveries)),
                "mails": len(mail.messages) if mail else 0, "payments": len(provider.requests) if provider else 0}

    # ---- what it refuses ----

    def register(self, key, client_ref, spec):
        return self.perform({"op": "register", "key": key, "client_ref": client_ref, "content": spec})

    def refusals(self, key, events, sent):
        """Returns (kind, status) of what a read-only copy must refuse. `sent`: a registration that it has."""
        self.view.known[key.rsplit("/", 1)[0]] = list(events)
        asked = [self.register(key, "of-the-copy", sent["spec"]), self.register(key, sent["client_ref"], sent["spec"]),
                 self.perform({"op": "certify", "key": key, "seq_from": 0, "seq_to": 1})]
        return [[one.kind, one.status] for one in asked]

    def wake(self, key, spec):
        """Returns what the copy answers once an operator has resumed it."""
        told = self.perform({"op": "admin", "words": "store wake", "arguments": {}})
        end = time.monotonic() + WAKING_SECONDS
        done = self.register(key, "of-the-copy", spec)
        while done.status in (0, 503) and time.monotonic() < end:
            time.sleep(0.1)
            done = self.register(key, "of-the-copy", spec)
        return {"wake": [told.status, told.answer], "register": [done.status, done.answer]}

    # ---- the whole ----

    def observe(self):
        """Returns what the copy holds and does while it is read-only, and a registration that it has, with its key."""
        before, since = self.sent(time.time()), time.time()
        self.start()
        chains = {chain: found for chain, names in sorted(self.keys().items()) if (found := self.read_chain(names))}
        contents = self.read_contents(chains)
        held = {event["event_id"] for _, events in chains.values() for event in events}
        sent = {one.arguments["chain"]: one.arguments for one in self.run.operations
                if one.kind == "register" and one.good and one.answer["event_id"] in held}
        chain = self.random.choice(sorted(sent)) if sent else None
        refusals = self.refusals(*chains[chain], sent[chain]) if chain else []
        due = self.perform({"op": "admin", "words": "store wake", "arguments": {"dry_run": True}})
        after = self.sent(since)
        return {"ready": self.ready, "chains": {name: events for name, (_, events) in chains.items()},
                "unread": sorted(set(self.keys()) - set(chains)), "contents": contents, "chain": chain,
                "asked": self.asked[:], "refusals": refusals, "due": [due.status, due.answer],
                "sent": {name: after[name] - (before[name] if name != "notices" else 0) for name in after},
                }, (chains[chain][0], sent[chain]["spec"]) if chain else None

    def read(self):
        """Returns what the copy showed, for the facts of a history."""
        try:
            found, usable = self.observe()
            woken = self.wake(*usable) if usable and self.random.random() < 0.5 else None
            return {**found, "woken": woken, "exit": self.node.stop()}
        except NotStarted as error:
            return {"failed": str(error)}
        finally:
            self.interface.close()
            self.node.kill()


def read(run):
    """Reads the series and a copy. Returns what the copy showed; None: nothing could be restored."""
    chosen, interface = random.Random(run.script["seed"]), Interface(run, "closing")
    listed = interface.perform({"op": "backup_list", "stopped": True}, closing=True)
    listed.answer["files"] = sorted(os.listdir(run.world.series)) if os.path.isdir(run.world.series) else []
    backups = listed.answer.get("printed", {}).get("backups", ())
    names = [one["name"] for one in backups]
    for name in names:
        interface.perform({"op": "backup_verify", "name": name, "stopped": True}, closing=True)
    if not names:
        return None
    made, name = Copy(run), None if chosen.random() < 0.6 else chosen.choice(names)
    if {one["name"]: one for one in backups}[name or names[-1]]["content_objects"] < 0:
        made.add_contents()
    restored = made.restore(name)
    return made.read() if "directory" in restored.answer.get("printed", {}) else None

