#!/usr/bin/env python3
"""Cuts the power in every sync of what is done seldom, one after another.

    power_cut_steps.py [--steps NAME,…] [--seed N] [--every N]

Each step - making a store, starting, stopping, administration without a service, backup, restore,
migration - begins from the same prepared files, and the power fails in its first sync, then in its
second, until it comes to its end without one. Each time once with all forgotten that was not
synced, and once with a part that is chosen by chance. After every cut: nothing is missing that was
there before, and the step can be done again. After a step that came to its end: the power is cut at
once, all that was not synced is forgotten, and what the step had done is there.

Each with content next to the data, and with content on a file system that nothing happens to, whose
syncs do nothing for the data.
"""

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

import forgetting
import machine
from machine import Machine, NotStarted
from mixed_load import digests
from program import copy_keys
from service import ROOT, Client, Report, declare_file, declare_hash, declare_json, lasting

import sizes

SCHEMA = ROOT / "src" / "store" / "schema" / "sqlite"
OLD_ACCOUNTS = 300
EVENTS = 12


class Prepared:
    """A store with events, made once, and a backup of it."""

    def __init__(self, directory):
        self.directory = directory
        place = argparse.Namespace(directory=directory)
        service = Machine(place, directory, {"seal.interval": "1s"})
        ready = service.start().ready
        keys = [ready["channels"][name]["live_key"] for name in ("content", "hash_only")]
        self.receipts = []  # (key, Declaration, Event)
        client = Client(service.port)
        for number in range(EVENTS):
            ref = f"prepared-{number}"
            declaration = (declare_json(ref, ref), declare_file(ref, ref.encode() * 1000),
                           declare_json(ref, ref * 2000), declare_hash(ref, ref))[number % 4]
            key = keys[number % 4 == 3]
            status, _, body = client.register(key, declaration)
            assert status == 201, body
            self.receipts.append((key, declaration, json.loads(body)))
        client.close()
        service.admin("store", "backup", os.path.join(directory, "backup"))
        service.stop()

    def lay(self, place, names, apart):
        """Copies of these, durable; content where it is to be."""
        place.empty()
        for name in names:
            subprocess.run(["cp", "-a", os.path.join(self.directory, name), place.directory],
                           check=True)
        if apart and "data" in names:
            shutil.move(os.path.join(place.directory, "data", "content"),
                        os.path.join(apart, "data"))
        place.sync()


class Step:
    """One, in a place that was prepared."""

    needs = ()

    def __init__(self, prepared, place, logs, report, apart):
        self.prepared, self.place, self.logs, self.report = prepared, place, logs, report
        self.apart = apart
        self.content = machine.apart(apart) if apart else machine.beside
        self.machine = Machine(place, logs, {"seal.interval": "1s"}, content=self.content)

    def where(self, name):
        return os.path.join(self.place.directory, name)

    def prepare(self):
        self.prepared.lay(self.place, self.needs, self.apart)

    def spawn(self, *words, data="data"):
        command = self.machine.beside(*words, data=self.where(data))
        return subprocess.Popen([*command, "--set=tsa.url=embedded:"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True)

    def run(self, *words, data="data"):
        """What it prints; fails the check otherwise."""
        process = self.spawn(*words, data=data)
        out, told = process.communicate(timeout=300)
        self.report.check(process.returncode == 0,
                          f"{self.name}: {' '.join(words)}: exit {process.returncode}: "
                          f"{told.strip()[-300:]} {out.strip()[-300:]}")
        return json.loads(out) if process.returncode == 0 else {}

    @property
    def name(self):
        return type(self).__name__

    def check_sound(self, data="data", events=EVENTS):
        found = self.run("store", "check", data=data)
        self.report.check(found.get("events") == events,
                          f"{self.name}: {events} events were in {data}: {found}")

    def check_receipts(self, data="data"):
        service = Machine(self.place, self.logs, data=data, content=self.content)
        if data == "restored":
            copy_keys(os.path.join(self.prepared.directory, "data"), service.data)
        try:
            service.start()
            client = Client(service.port)
            for key, declaration, receipt in self.prepared.receipts:
                status, event = client.get("/events/" + receipt["event_id"], key)
                same = status == 200 and lasting(event) == lasting(receipt)
                if same and declaration.content is not None:
                    status, _, body = client.request(
                        "GET", f"/events/{receipt['event_id']}/content", key)
                    same = status == 200 and body == declaration.content
                self.report.check(same, f"{self.name}: receipt {receipt}: {status} {event}")
            client.close()
        except NotStarted as error:
            self.report.check(False, f"{self.name}: start: {error}")
        finally:
            service.end()

    # What a step is: the process that does it, and how the two outcomes are checked.

    def begin(self):
        raise NotImplementedError

    def ended(self, process):
        return process.poll() is not None

    def check_interrupted(self):
        raise NotImplementedError

    def check_done(self, process):
        raise NotImplementedError


class Init(Step):
    def begin(self):
        return self.spawn("init")

    def check_interrupted(self):
        self.run("init")
        self.check_sound(events=0)

    def check_done(self, process):
        self.check_sound(events=0)


class Start(Step):
    needs = ("data",)

    def begin(self):
        self.machine.spawn()
        return self.machine.process

    def ended(self, process):
        return process.poll() is not None or os.path.exists(self.machine.ready_file)

    def check_interrupted(self):
        self.check_receipts()

    def check_done(self, process):
        self.check_receipts()
        self.check_sound()


class Stop(Start):
    def begin(self):
        self.place.fail_power_in(1 << 60)
        self.machine.start()
        self.place.fail_power_in(self.number)
        self.machine.process.terminate()
        return self.machine.process

    def ended(self, process):
        return process.poll() is not None


class Administration(Step):
    """Without a service."""

    needs = ("data",)

    def begin(self):
        return self.spawn("account", "create", "--name", "made while the power fails")

    def check_interrupted(self):
        self.check_sound()
        self.run("account", "create", "--name", "made afterwards")

    def check_done(self, process):
        account = json.loads(process.stdout.read())["account_id"]
        self.run("account", "show", account)


class Backup(Step):
    needs = ("data",)

    def begin(self):
        return self.spawn("store", "backup", self.where("new-backup"))

    def check_interrupted(self):
        self.check_sound()
        self.run("store", "backup", self.where("another-backup"))

    def check_done(self, process):
        self.run("store", "restore", "--live", self.where("new-backup"), data="restored")
        self.check_sound("restored")
        self.check_receipts("restored")


class BackupWithoutContent(Step):
    needs = ("data",)

    def begin(self):
        return self.spawn("store", "backup", self.where("new-backup"), "--no-content")

    def check_interrupted(self):
        self.check_sound()

    def check_done(self, process):
        self.run("store", "restore", "--live", self.where("new-backup"), data="restored")
        found = self.run("store", "check", "--no-content", data="restored")
        self.report.check(found.get("events") == EVENTS, f"{self.name}: {found}")


class Restore(Step):
    needs = ("backup",)

    def begin(self):
        return self.spawn("store", "restore", "--live", self.where("backup"), data="restored")

    def check_interrupted(self):
        """Either nothing is there and it can be done again, or all of it is."""
        if not os.path.exists(os.path.join(self.where("restored"), "constancia.db")):
            self.run("store", "restore", "--live", self.where("backup"), data="restored")
        self.check_sound("restored")
        self.report.check(digests(self.where("backup")) ==
                          digests(os.path.join(self.prepared.directory, "backup")),
                          "Restore: the backup changed")

    def check_done(self, process):
        self.check_sound("restored")
        self.check_receipts("restored")


class Migrate(Step):
    """Of a store of the first version."""

    def prepare(self):
        self.place.empty()
        os.mkdir(self.where("data"), 0o700)
        steps = sorted(SCHEMA.glob("*.sql"))
        self.newest = steps[-1].stem
        connection = sqlite3.connect(os.path.join(self.where("data"), "constancia.db"))
        connection.executescript(steps[0].read_text(encoding="utf-8") +
                                 f"INSERT INTO settings VALUES ('schema', '{steps[0].stem}');")
        connection.executemany("INSERT INTO accounts (account, account_id, name, created_at, "
                               "active_at) VALUES (?, ?, 'old', 1, 1)",
                               [(n, f"acc_{n:016}") for n in range(1, OLD_ACCOUNTS + 1)])
        connection.commit()
        connection.close()
        self.place.sync()

    def begin(self):
        return self.spawn("migrate")

    def check_interrupted(self):
        self.run("migrate")
        self.check_done(None)

    def check_done(self, process):
        left = self.run("migrate", "--dry-run").get("steps")
        self.report.check(left == [], f"Migrate: left to do: {left}")
        found = self.run("store", "check", "--no-content").get("accounts")
        self.report.check(found == OLD_ACCOUNTS, f"Migrate: {found} accounts")


STEPS = (Init, Start, Stop, Administration, Backup, BackupWithoutContent, Restore, Migrate)


def try_step(step, number, percent, seed):
    """Whether the power failed on the way. A step that ends before is cut at its end."""
    step.number = number
    if os.path.exists(step.machine.ready_file):
        os.unlink(step.machine.ready_file)
    step.prepare()
    step.place.fail_power_in(number)
    process = step.begin()
    end = time.monotonic() + 300
    while not step.place.power_failed() and not step.ended(process):
        if time.monotonic() > end:
            raise forgetting.Broken(f"{step.name}: hangs")
        time.sleep(0.005)
    failed = step.place.power_failed()
    status = process.poll()
    step.place.cut(percent if failed else 0, seed, [process])
    if failed:
        step.check_interrupted()
    elif step.report.check(status in (0, None), f"{step.name}: exit {status}: "
                           f"{process.stderr.read() if process.stderr else ''}"):
        step.check_done(process)
    return failed


def try_all(make_step, every, chosen):
    """How many cuts there were."""
    number, cuts, failed = 1 - every, 0, True
    while failed:
        number += every
        for percent in (0, 50):
            step = make_step()
            if step.apart:
                shutil.rmtree(step.apart, ignore_errors=True)
                os.mkdir(step.apart)
            before = step.report.failed
            failed = try_step(step, number, percent, chosen.getrandbits(32))
            step.machine.end()
            cuts += 1
            if step.report.failed > before:
                print(f"  that was sync {number}, {percent} % survive", flush=True)
    print(f"{step.name}, content {'apart' if step.apart else 'beside'}: {cuts} cuts, the last two "
          "at its end", flush=True)
    return cuts


def main():
    forgetting.unmount_when_told_to_end()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", default=",".join(step.__name__ for step in STEPS))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--every", type=int, default=1, help="only each Nth sync")
    options = parser.parse_args()
    print(f"seed {options.seed}, steps {options.steps}", flush=True)
    sizes.use_drawn(options.seed)
    chosen, cuts, report = random.Random(options.seed), 0, Report()
    directory = tempfile.mkdtemp(prefix="constancia-steps-")
    try:
        place = forgetting.Forgetful(options.seed)
    except forgetting.Unusable as reason:
        print(f"SKIPPED: {reason}")
        os.rmdir(directory)
        return 77
    with place:
        prepared = Prepared(directory)
        for kind in STEPS:
            if kind.__name__ not in options.steps.split(","):
                continue
            for apart in (None, os.path.join(directory, "apart")):
                cuts += try_all(lambda: kind(prepared, place, directory, report, apart),
                                options.every, chosen)
    shutil.rmtree(directory)
    print(f"{cuts} cuts; {place.loss}")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
