"""What a run reads in the end, when all faults are over and all clients have finished: requests without an answer
are repeated until they have one, and everything that the service holds is read."""

import dataclasses
import gzip
import json
import os
import random
import subprocess
import time
import zipfile

from closing_accounts import ClosingAccounts, made
from operations import Interface
from rules_chain import FREQUENT

BRIEF, PATIENCE = 2, 90  # seconds until what has to become true must be so
CHECK_SECONDS = 300  # how long a check of the whole store may take on a machine under load
VERIFIED = 8  # certifications whose files are downloaded
READ_AGAIN = 15  # events of a chain that are read one by one
LARGE, LARGE_READ = 5000, 60  # bytes of a content that is read in any case, and how many of a chain are
PAUSE_MIN, PAUSE_MAX = 0.01, 0.2  # seconds between two questions


class Pauses:
    """Sleeps between two questions: briefly at first, since most things are so soon, then longer."""

    def __init__(self):
        self.seconds = PAUSE_MIN

    def sleep(self):
        time.sleep(self.seconds)
        self.seconds = min(2 * self.seconds, PAUSE_MAX)


class Closing:
    def __init__(self, run):
        self.run = run
        self.interface = Interface(run, "closing")
        self.random = random.Random(run.script["seed"])
        self.unresolved = []  # what was not answered, although nothing was wrong any more

    def patience(self):
        """Returns how long something may take; little once a process has ended that should not have, which is a
        violation already."""
        return BRIEF if self.run.world.ends else PATIENCE

    def until_answered(self, step):
        """Repeats a step until its answer is neither missing nor 5xx, nor a refusal for the rate."""
        end, pauses = time.monotonic() + self.patience(), Pauses()
        while True:
            done = self.interface.perform(step, closing=True)
            if done is None or (0 < done.status < 500 and done.status != 429):
                return done
            self.run.world.keep_up()  # starts a node again that ended although nothing was wrong any more
            if time.monotonic() > end:
                self.unresolved.append(f"waited in vain for an answer: {done}")
                return done
            pauses.sleep()

    def unanswered(self):
        """Returns the registrations whose outcome is unknown."""
        known = {(one.arguments["chain"], one.arguments["client_ref"])
                 for one in self.run.operations if one.kind == "register" and one.good}
        return {place: one for one in self.run.operations
                if one.kind == "register" and not one.good and not one.refused
                and (place := (one.arguments["chain"], one.arguments["client_ref"])) not in known}

    def read_unanswered(self):
        """Reads the contents of registrations whose outcome is unknown, where they have become events: before they are
        repeated, because a repetition stores the content again."""
        keys = dict(self.keys())
        unanswered = [(place, one) for place, one in self.unanswered().items()
                      if place[0] in keys and one.arguments["form"] != "hash"]
        for (chain, ref), one in self.random.sample(unanswered, min(READ_AGAIN, len(unanswered))):
            number = -one.number
            self.run.steps[number] = {"client_ref": ref}
            listed = self.until_answered({"op": "list", "key": keys[chain], "filters": {"client_ref": number},
                                          "order": "asc", "limit": 50})
            if listed and listed.good and listed.answer["data"]:
                event = listed.answer["data"][0]
                arguments = {**one.arguments, "identity": [event["hash"]]}
                self.run.results[number] = dataclasses.replace(one, arguments=arguments, status=200, answer=event)
                self.until_answered({"op": "get_content", "of": number, "key": keys[chain]})

    def resolve(self):
        """Repeats the registrations whose outcome is unknown."""
        keys = dict(self.keys())
        for (chain, ref), one in self.unanswered().items():
            self.until_answered({"op": "register", "key": keys.get(chain, one.arguments["key"]),
                                 "client_ref": ref, "content": one.arguments["spec"]})

    def keys(self):
        """A key of each chain that still works."""
        found = {}
        for one in self.run.operations:
            if one.kind == "key create" and one.good:
                found.setdefault(one.arguments["name"].rsplit("/", 1)[0], []).append(one.arguments["name"])
        revoked = {one.arguments["key"] for one in self.run.operations if one.kind in ("key revoke", "key expire")}
        for chain, names in found.items():
            if good := [name for name in names if name not in revoked]:
                yield chain, good[0]

    def walk(self, op, key, **more):
        first = self.until_answered({"op": op, "key": key, **more})
        pages, number = [first], -first.number  # numbers of steps that no script has
        self.run.results[number] = first
        while pages[-1] and pages[-1].good and pages[-1].answer["has_more"]:
            pages.append(self.until_answered({"op": "list_next", "of": number}))
        return [item for page in pages if page and page.good for item in page.answer["data"]]

    def read_chain(self, key):
        events = self.walk("list", key, order="asc", limit=self.random.choice((7, 50, 500)))
        self.walk("list", key, order="desc", limit=self.random.choice((3, 40, 499)))
        if key.split("/")[-2] == "live":
            self.walk("list", key, order="desc", limit=self.random.choice((3, 50)), filters={"status": "registered"})
        read = [one for one in self.run.operations if one.kind == "register" and one.good
                and one.arguments["chain"] == key.rsplit("/", 1)[0]]
        for one in self.random.sample(read, min(READ_AGAIN, len(read))):
            self.run.results[-one.number] = one
            self.until_answered({"op": "get_event", "of": -one.number, "key": key})
            self.until_answered({"op": "get_content", "of": -one.number, "key": key})
        # Large contents are files of their own: one may be lost alone.
        for one in [one for one in read if one.arguments["spec"].get("size", 0) >= LARGE][-LARGE_READ:]:
            self.run.results[-one.number] = one
            self.until_answered({"op": "get_content", "of": -one.number, "key": key})
        return events

    def ended(self, number, key):
        """Waits until a certification has ended."""
        end, pauses = time.monotonic() + self.patience(), Pauses()
        while True:
            done = self.until_answered({"op": "certification", "of": number, "key": key})
            if not done or not done.good or done.answer["status"] != "processing" or time.monotonic() > end:
                return done
            pauses.sleep()

    def read_certifications(self):
        completed, seen, keys = [], set(), dict(self.keys())
        asked = self.run.operations[:]
        for one in [one for one in asked if one.good and one.kind in ("certify", "certification request")]:
            name, given = one.answer["certification_id"], one.arguments
            chain = given["chain"] if one.kind == "certify" else f"{given['channel']}/{given['mode']}"
            if name in seen or chain not in keys:
                continue
            seen.add(name)
            self.run.results[-one.number] = dataclasses.replace(
                one, arguments={**given, "chain": chain, "key": keys[chain]})
            done = self.ended(-one.number, keys[chain])
            if done and done.good and done.answer["status"] == "completed":
                completed.append(done)
        for one in self.random.sample(completed, min(VERIFIED, len(completed))):
            self.run.results[-one.number] = one
            for name in ("es", "en", *(part["name"] for part in one.answer["content_parts"])):
                self.until_answered({"op": "download", "of": -one.number, "file": name})
            self.read_archive(one)
            for name in ("code", "es", "evidence"):
                self.until_answered({"op": "verify", "of": -one.number, "by": name})

    def read_archive(self, certification):
        """Downloads the archive and records what it states, and the verdict of the verifier."""
        path = os.path.join(self.run.world.directory, "archive.zip")
        step = {"op": "download", "of": -certification.number, "file": "evidence"}
        kept = []
        take = self.interface.take

        def keep(operation, *arguments):
            kept[:] = [take(operation, *arguments)]
        self.interface.take = keep
        done = self.until_answered(step)
        self.interface.take = take
        if not done or not done.good:
            return
        with open(path, "wb") as file:
            file.write(kept[0])
        verified = subprocess.run([self.run.world.binary, "verify", path, "--trust", self.run.world.trust(), "--json"],
                                  capture_output=True, text=True, timeout=120, check=False,
                                  env=self.run.world.verifier_environment())
        done.answer |= {"verified": verified.returncode, "verdict": verified.stdout[-2000:],
                        "levels": levels_of(verified.stdout), **contents_of(path)}

    def wait_for_seals(self):
        """Until the last event of each live chain is sealed, where rounds are frequent."""
        if self.run.script["settings"]["seal.interval"] not in FREQUENT or self.run.clock_moved:
            return
        end, pauses = time.monotonic() + self.patience(), Pauses()
        for key in [key for chain, key in self.keys() if chain.endswith("/live")]:
            while True:
                done = self.until_answered({"op": "list", "key": key, "filters": {}, "order": "desc", "limit": 1})
                last = done.answer["data"] if done and done.good else []
                if not last or last[0]["timestamp"]["type"] != "pending" or time.monotonic() > end:
                    break
                pauses.sleep()

    def back_up(self):
        """Makes a backup, unless the newest one is to be that of a client, which a fault may have hit."""
        made = [one for one in self.run.operations if one.kind == "store backup" and one.good]
        if self.run.script.get("backups") and (not made or self.run.script["seed"] % 2):
            self.until_answered({"op": "admin", "words": "store backup", "arguments": {}, "seconds": CHECK_SECONDS})

    def wait_for_notices(self):
        """Until every notice that the service lists as waiting for an enabled endpoint was sent, or its patience is
        over."""
        end, pauses = time.monotonic() + self.patience(), Pauses()
        while time.monotonic() < end:
            waiting = False
            for name in made(self.run, "account create"):
                notices, endpoints = (self.interface.perform({"op": "admin", "words": words, "arguments": {
                    "account": {"$": name}, "limit": 1000}}, closing=True) for words in ("notice list", "webhook list"))
                waiting |= not notices.good or not endpoints.good or awaited(notices, endpoints)
            if not waiting:
                return
            pauses.sleep()

    def wait_for_mails(self):
        """Until no mail is waiting. The lease of one whose node was killed lasts 30 seconds."""
        end, pauses = time.monotonic() + self.patience(), Pauses()
        while self.run.world.services.mail:
            done = self.until_answered({"op": "admin", "words": "store wake", "arguments": {"dry_run": True}})
            if not done or not done.good or not done.answer["due"]["mails"] or time.monotonic() > end:
                return
            pauses.sleep()

    def read(self):
        accounts = ClosingAccounts(self)
        accounts.end_states()
        self.read_unanswered()
        self.resolve()
        accounts.settle()
        self.read_certifications()
        self.wait_for_seals()
        for _, key in sorted(self.keys()):
            self.read_chain(key)
            self.walk("certifications", key, limit=self.random.choice((3, 50)))
            self.until_answered({"op": "balance", "key": key})
            self.until_answered({"op": "channel", "key": key})
        self.back_up()
        self.wait_for_notices()
        self.wait_for_mails()
        accounts.read()
        self.until_answered({"op": "admin", "words": "store check", "arguments": {}, "seconds": CHECK_SECONDS})
        self.interface.close()


def awaited(notices, endpoints):
    """Returns whether a notice waits for an enabled endpoint."""
    enabled = {one["endpoint_id"] for one in endpoints.answer["data"] if one["enabled"]}
    return any(delivery["status"] == "waiting" and delivery["endpoint_id"] in enabled
               for notice in notices.answer["data"] for delivery in notice.get("deliveries", ()))


def levels_of(verdict):
    """Returns the level of each signature that the verifier names."""
    try:
        return [one["level"] for one in json.loads(verdict)["signatures"]]
    except (ValueError, KeyError):
        return []


def contents_of(path):
    """Returns what an archive states: its manifest's range, and its events in order."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("events/")]
        events = [json.loads(line) for name in names for line in gzip.decompress(archive.read(name)).splitlines()]
        return {"manifest": json.loads(archive.read("manifest.json")), "events": events}


def read(run):
    """Returns what was not answered."""
    closing = Closing(run)
    closing.read()
    return closing.unresolved
