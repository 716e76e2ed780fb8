#!/usr/bin/env python3
"""Cuts the power of a busy service at random moments and holds it to what it said.

    power_cut.py [--file-system NAME] [--rounds N] [--seed N] [--clients N] [--only KIND]
                 [--fault NAME]

The service works on a file system that forgets what was not synced (`forgetful`), or on ext4, xfs
or btrfs on a disk that does. Each round ends in a cut: all processes are gone, and of what was not
synced nothing is left, or a part by chance, torn and out of order. Then the service is started
again and everything that was acknowledged is checked: each receipt with its content, in chains
without gaps; certifications with their files; keys, limits, credits, configurations; backups.

Cuts fall into registration, sealing, certification, administration and backup, into start-up and
shutdown, after a sync that failed, and after a plain kill whose leftovers were answered as replays;
and into rare operations on the log of the store: it is checkpointed once it has grown,
and a transaction that is larger than its memory puts a part of itself there before its commit.
Content is on the same file system, on one that nothing happens to, or in an S3 service.
Now and then a store is left, after its last backup was restored and cut again, and a new one is
made, which is cut while it is made.

With --fault a fault is planted, and what passes is that it is found.
"""

import argparse
import http.client
import os
import random
import shutil
import sys
import tempfile
import time

import forgetting
import machine
from machine import Ended, Machine, NotStarted, Refused
from mixed_load import Administered, Administrator, Bulk, Certifications, Certifier, Copier
from service import Client, Report, lasting
from torture import RICH_CREDITS, POOR_CREDITS, POOR_UNPAID, Chain, Torture, Worker

import log_steps
import s3_server
import sizes
from burst import Burst
from program import copy_keys

SURVIVAL = (0, 0, 10, 50, 90, 100)  # percent of what was not synced
LIFE = 30  # rounds of a store
LOOKED_AT = 5  # rounds from one look at what was administered to the next
FAULTS = ("sync", "directories", "start", "journal", "move")
MIB = 1 << 20
# Where a thread is when the power fails, and the largest number of bytes after which it stops.
LOG_STEPS = (("moving", 32 * MIB), ("moved", 0), ("synced", 0), ("reset", 0), ("spilling", 2 * MIB),
             ("committing", 5 * MIB), ("committed", 5 * MIB))


class LastingChain(Chain):
    """What is reported after the power failed counts as not reported."""

    def __init__(self, machine, *arguments):
        super().__init__(*arguments)
        self.machine = machine

    def acknowledge(self, declaration, body):
        if self.machine.on:
            super().acknowledge(declaration, body)


class PowerCuts(Torture):
    """Rounds on one place."""

    def __init__(self, options, place, logs):
        self.random = random.Random(options.seed)
        self.clients, self.fault = options.clients, options.fault
        self.place, self.logs = place, logs
        self.kinds = self.choose_kinds(options.only)
        self.report = Report()
        self.round = self.cuts = self.acknowledged = 0
        self.counts = {}
        self.stood = {}  # at a step, or after it: how many cuts fell there
        self.stopping = False
        self.service = self.s3 = None
        self.steps = log_steps.LogSteps(logs, log_steps.build(logs))
        self.chains, self.weights = [], []
        self.workers, self.companions = [], []

    # ---- the life of a store ----

    def cut(self):
        self.service.cut(self.random.choice(SURVIVAL), self.random.getrandbits(32))
        self.cuts += 1

    def sometimes_cut_on_the_way(self, syncs):
        """A start that is cut at one of its syncs."""
        while self.random.random() < 0.3:
            self.place.fail_power_in(self.random.randint(1, syncs))
            self.service.on = True
            self.service.spawn()
            self.wait_for_the_cut(self.random.uniform(0.05, 1))
            self.cut()

    def wait_for_the_cut(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.place.power_failed():
            time.sleep(0.005)

    def restart(self):
        try:
            self.service.start()
        except NotStarted as error:
            self.report.check(False, f"{self.where()}: start: {error}")
            raise

    def where(self):
        return f"{self.place.kind}, round {self.round}"

    def begin_store(self):
        self.close()
        self.place.empty()
        # What finds the planted faults is known of the usual ones.
        drawn = {} if self.fault else sizes.use_drawn(self.random.getrandbits(32))
        self.log_moved = drawn.get("log_moved", sizes.LOG_MOVED)
        self.content = self.choose_content()
        self.service = Machine(self.place, self.logs,
                               {"seal.interval": "1s", **Burst.SETTINGS}, self.fault,
                               content=self.content, steps=self.steps)
        self.sometimes_cut_on_the_way(40)
        self.restart()
        create = self.service.admin
        accounts = {
            "rich": create("account", "create", "--name", "rich", "--credits", RICH_CREDITS),
            "poor": create("account", "create", "--name", "poor", "--credits", POOR_CREDITS,
                           "--unpaid-limit", POOR_UNPAID),
        }
        self.chains, self.weights = [], []
        for account, modality, mode, weight in (("rich", "content", "live", 6),
                                                ("rich", "hash_only", "live", 4),
                                                ("rich", "content", "test", 1),
                                                ("poor", "content", "live", 1)):
            name = f"{account} {modality} {mode}"
            channel = create("channel", "create", "--account", accounts[account]["account_id"],
                             "--name", name, "--declarant", "Torture", "--modality", modality)
            key = create("key", "create", "--channel", channel["channel_id"], "--mode", mode)
            self.chains.append(LastingChain(self.service, name, account, modality, mode,
                                            key["key"]))
            self.weights.append(weight)
        self.certifications = Certifications(self.chains[0])
        self.administered = Administered(self.service)
        self.backups = []

    def choose_content(self):
        """A third of the stores each; a planted fault may show only where content is next to the data."""
        kind = "beside" if self.fault else self.random.choice(("beside", "apart", "in S3"))
        self.counts["content " + kind] = self.counts.get("content " + kind, 0) + 1
        if kind == "beside":
            return machine.beside
        directory = os.path.join(self.logs, f"content-{self.round}")
        os.mkdir(directory)
        if kind == "apart":
            return machine.apart(directory)
        self.s3 = s3_server.Server(directory)
        return machine.in_s3(self.s3)

    def end_store(self):
        client = Client(self.service.port)
        self.certifications.finish(client, self.report, self.where())
        client.close()
        if self.backups:
            self.check_restored(self.backups[-1])

    def check_restored(self, backup):
        """The service ends; the backup is restored, the power cut, and what it held is there."""
        self.service.admin("store", "restore", "--live", backup.directory,
                         data=os.path.join(self.place.directory, "restored"))
        self.cut()
        self.service.end()
        restored = Machine(self.place, self.logs, fault=self.fault, data="restored",
                           content=self.content)
        copy_keys(self.service.data, restored.data)
        try:
            restored.start()
            restored.admin("store", "check")
            client = Client(restored.port)
            for chain in self.chains:
                found = {event["client_ref"]: lasting(event) for event in client.events(chain.key)}
                lost = [ref for ref in backup.receipts[chain.name]
                        if found.get(ref) != lasting(chain.receipts[ref])]
                self.report.check(not lost, f"{self.where()}: restored: {chain.name}: {len(lost)} "
                                            f"receipts lost: {lost[:3]}")
            client.close()
        except (NotStarted, Refused) as error:
            self.report.check(False, f"{self.where()}: restored: {error}\n{restored.log_tail()}")
        finally:
            restored.end()

    # ---- load ----

    def begin_load(self, bulk=False):
        self.stopping = False
        seeds = [self.random.getrandbits(64) for _ in range(self.clients + 3)]
        self.workers = [Worker(self, i, seeds[i]) for i in range(self.clients)]
        self.companions = [
            Certifier(self.service, self.report, seeds[-1], self.certifications),
            Administrator(self.service, self.report, seeds[-2], self.administered)]
        if self.random.random() < 0.2:
            self.companions.append(Copier(self.service, self.report, seeds[-3], self.chains,
                                          self.backups))
        if bulk:
            self.companions.append(Bulk(self.service, self.report, self.random.getrandbits(64),
                                        self.chains[0]))
        for thread in self.workers + self.companions:
            thread.start()

    def end_load(self):
        """After the service ended."""
        self.stopping = True
        for thread in self.workers + self.companions:
            thread.join()
        for worker in self.workers:
            self.report.check(not worker.error, f"{self.where()}: {worker.error}")
        for chain in self.chains:
            chain.end_round()

    # ---- the kinds of round: each from a service that runs to the power that fails ----

    def at_some_moment(self):
        self.begin_load()
        self.wait_for_events(self.random.randint(0, 500), self.random.uniform(0.02, 5))

    def wait_for_events(self, count, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and sum(len(chain.fresh) for chain in self.chains) < count:
            time.sleep(0.01)

    def in_a_sync(self):
        self.place.fail_power_in(self.random.randint(1, 200))
        self.begin_load()
        self.wait_for_the_cut(5)

    def in_shutdown(self):
        self.begin_load()
        self.wait_for_events(self.random.randint(0, 200), 2)
        self.service.process.terminate()
        if self.random.random() < 0.5:
            self.place.fail_power_in(self.random.randint(1, 10))
        self.wait_for_the_cut(self.random.uniform(0, 0.5))

    def after_a_failed_sync(self):
        """The service ends, as it should, or refuses; the machine keeps its power, and the service continues
        when it is started again."""
        self.service.disk_failed = self.place.kind != "forgetful"
        self.place.fail_sync_in(self.random.randint(1, 60))
        self.begin_load()
        end = time.monotonic() + self.random.uniform(0.5, 3)
        while time.monotonic() < end and self.service.alive():
            time.sleep(0.01)
        self.go_on_after_a_kill(starts=2)

    def after_a_kill(self):
        self.begin_load()
        self.wait_for_events(self.random.randint(0, 200), 2)
        self.go_on_after_a_kill()

    def go_on_after_a_kill(self, starts=1):
        """The sync that is to fail may be one of the first start's."""
        self.service.end()
        self.end_load()
        try:
            if starts > 1:
                self.start_or_refuse()
            if not self.service.alive():
                self.service.start()
        except NotStarted as error:
            # After a failed flush of its disk a file system may take nothing any more.
            self.report.check(self.service.disk_failed,
                              f"{self.where()}: start: {error}")
            return
        self.ask_again()
        if self.random.random() < 0.5:
            self.begin_load()
            self.wait_for_events(self.random.randint(0, 200), 2)

    def start_or_refuse(self):
        try:
            self.service.start()
        except NotStarted:
            self.service.end()

    def ask_again(self):
        """What was asked for in vain: an answer now is a promise like any other."""
        client = Client(self.service.port)
        try:
            for chain in self.chains:
                for ref in chain.unanswered[-20:]:
                    status, _, body = client.register(chain.key, chain.sent[ref])
                    if status in (200, 201):
                        chain.acknowledge(chain.sent[ref], body)
        except (OSError, http.client.HTTPException) as error:
            self.report.check(self.service.disk_failed, f"{self.where()}: asking again: {error}")
        client.close()

    def at_a_step_of_the_log(self):
        """What no other thread waits for continues for a moment; or the thread itself does."""
        step, size = self.random.choice(LOG_STEPS)
        if step == "moving":
            size = self.log_moved
        self.steps.stop_at(step, self.random.randint(0, size))
        self.begin_load(bulk=True)
        end = time.monotonic() + 30
        while time.monotonic() < end and self.steps.reached() != step and self.service.alive():
            time.sleep(0.005)
        time.sleep(self.random.choice((0, 0.2)))
        if self.steps.reached() != step:  # within this time
            step = "never " + step
        elif self.random.random() < 0.3:
            self.steps.go_on()
            time.sleep(self.random.uniform(0, 0.5))
            step = "behind " + step
        self.stood[step] = self.stood.get(step, 0) + 1

    KINDS = ((at_some_moment, 40), (in_a_sync, 25), (in_shutdown, 10), (after_a_failed_sync, 10),
             (after_a_kill, 15), (at_a_step_of_the_log, 10))
    # Where a start meets what is unsynced; where a file system of the kernel gives up; where the log
    # grows.
    SHOWING = {"start": (after_a_failed_sync, after_a_kill), "journal": (after_a_failed_sync,),
               "move": (at_a_step_of_the_log,)}

    def choose_kinds(self, only):
        """Pairs of a kind and its weight: the one that was asked for, those in which the planted
        fault shows, or all."""
        if only:
            return [(kind, 1) for kind, _ in self.KINDS if kind.__name__ == only]
        return [(kind, 1) for kind in self.SHOWING.get(self.fault, ())] or self.KINDS

    # ---- rounds ----

    def run_round(self):
        kinds, weights = zip(*self.kinds)
        kind = self.random.choices(kinds, weights)[0]
        self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
        self.service.disk_failed = False
        kind(self)
        self.cut()
        self.steps.go_on()
        self.end_load()
        self.sometimes_cut_on_the_way(15)
        self.restart()

    def check_round(self, everything):
        client = Client(self.service.port)
        lists = {chain.name: client.events(chain.key) for chain in self.chains}
        for chain in self.chains:
            self.check_chain(chain, lists[chain.name])
            self.check_content(client, chain)
            self.acknowledged += len(chain.fresh)
            chain.fresh = []
        self.check_credits(client, lists)
        if everything or self.round % LOOKED_AT == 0:
            self.administered.check(self.service, client, self.report, self.where())
        for one in self.certifications.accepted if everything \
                else self.certifications.accepted[-3:]:
            self.certifications.check(client, self.report, self.where(), one)
        for backup in self.backups if everything else self.backups[-1:]:
            backup.check(self.report, self.where())
        if everything:
            self.check_store("after a cut")
        client.close()

    def check_content(self, client, chain):
        """Of everything new, and of some that older rounds brought."""
        older = self.random.sample(list(chain.receipts), min(5, len(chain.receipts)))
        lost = []
        for ref in dict.fromkeys(chain.fresh + older):
            declaration = chain.sent[ref]
            if declaration.content is None:
                continue
            status, _, body = client.request(
                "GET", f"/events/{chain.receipts[ref]['event_id']}/content", chain.key)
            if status != 200 or body != declaration.content:
                lost.append((ref, status, body[:80]))
        self.report.check(not lost, f"{self.where()}: {chain.name}: {len(lost)} contents: "
                                    f"{lost[:2]}")

    def run(self, rounds):
        age, failed = 0, 0
        for self.round in range(1, rounds + 1):
            if age == 0:
                self.begin_store()
            age += 1
            last = age == LIFE or self.round == rounds
            self.run_round()
            self.check_round(everything=last or age % 10 == 0)
            if last:
                self.end_store()
            if self.fault and self.report.failed:
                return
            if last or self.report.failed > failed:  # what was lost once is not counted again
                age, failed = 0, self.report.failed
        if sum(self.stood.values()) >= 5:
            self.report.check(any(not step.startswith("never") for step in self.stood),
                              f"no thread came to a step of the log: {self.stood}")

    def close(self):
        if self.service:
            self.service.end()
            self.end_load()
        if self.s3:
            self.s3.stop()
            self.s3 = None

    def summary(self):
        kinds = ", ".join(f"{name.replace('_', ' ')} {count}"
                          for name, count in sorted(self.counts.items()))
        stood = ", ".join(f"{step} {self.stood[step]}" for step in sorted(self.stood))
        return (f"{self.place.kind}: {self.cuts} cuts, {self.acknowledged} acknowledged events; "
                f"{kinds}; the log was {stood or 'left alone'}; {self.place.loss}")


def campaign(options, kind):
    """The report of the rounds on one file system; None where it cannot be mounted."""
    logs = tempfile.mkdtemp(prefix="constancia-power-")
    try:
        place = forgetting.open_place(kind, options.seed)
    except forgetting.Unusable as reason:
        print(f"SKIPPED: {kind}: {reason}", flush=True)
        os.rmdir(logs)
        return None
    cuts = PowerCuts(options, place, logs)
    with place:
        try:
            cuts.run(options.rounds)
        except (NotStarted, Refused, Ended, forgetting.Broken, OSError,
                http.client.HTTPException, AssertionError) as error:
            cuts.report.check(False, f"{cuts.where()}: {type(error).__name__}: {error}")
        finally:
            cuts.close()
    print(cuts.summary(), flush=True)
    if cuts.report.failed and not options.fault:
        print("kept:", logs)
    else:
        shutil.rmtree(logs)
    return cuts


def main():
    forgetting.unmount_when_told_to_end()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file-system", choices=(*forgetting.FILE_SYSTEMS, "all"),
                        default="forgetful")
    parser.add_argument("--rounds", type=int, default=100, help="on each file system")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--only", choices=[kind.__name__ for kind, _ in PowerCuts.KINDS],
                        help="rounds of this kind alone")
    parser.add_argument("--fault", choices=FAULTS)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.rounds} rounds, {options.clients} clients", flush=True)
    kinds = forgetting.FILE_SYSTEMS if options.file_system == "all" else (options.file_system,)
    campaigns = [done for kind in kinds if (done := campaign(options, kind))]
    if not campaigns:
        return 77
    total = Report()
    for done in campaigns:
        if options.fault:
            total.check(done.report.failed and done.cuts,
                        f"{done.place.kind}: {options.fault} was not found in {done.cuts} cuts")
            if not total.failed:
                print(f"{done.place.kind}: {options.fault} found within {done.cuts} cuts")
        else:
            total.passed += done.report.passed
            total.failed += done.report.failed
    print(f"{sum(done.cuts for done in campaigns)} cuts, "
          f"{sum(done.acknowledged for done in campaigns)} acknowledged events")
    return total.end()


if __name__ == "__main__":
    sys.exit(main())
