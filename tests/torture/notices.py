#!/usr/bin/env python3
"""Kills a service that is delivering notices at random moments, and counts what its receivers got.

    notices.py [--rounds N] [--seed N] [--keep]

Receivers answer well, with errors, late, or break off after having read a notice. Credits of several
accounts go up and down through their thresholds meanwhile. In the end: the notices are exactly those
that the ledger of credits calls for; each came to its receiver at least once, always with the same
body and a good signature; none came again after its acknowledgment was recorded, and none after it
was acknowledged but those whose acknowledgment a kill kept from being recorded.
"""

import argparse
import collections
import datetime
import os
import random
import shutil
import sys
import tempfile
import threading
import time

from service import NotStarted, Refused, Report, Service

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "support"))
from webhook_receiver import Receiver  # noqa: E402

ACCOUNTS, CREDITS = 6, 100
THRESHOLDS = range(10, 90, 10)
IN_FLIGHT = 1.0  # seconds around a kill in which an acknowledgment may not have been recorded
SCHEDULE = ",".join(["200ms"] * 20)
PATIENCE = 120


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Owner:
    """An account with an endpoint at a receiver of its own."""

    def __init__(self, torture, number):
        self.torture, self.random = torture, random.Random(torture.random.getrandbits(64))
        self.balance = CREDITS  # about
        self.bad = 0.0  # share of answers that do not acknowledge
        self.acknowledged = collections.defaultdict(list)  # id: times
        self.arrived = collections.defaultdict(list)
        self.bodies = {}
        self.receiver = Receiver(answer=self.answer)
        self.account = torture.service.ask_socket("account create", name=f"owner {number}",
                                     credits=CREDITS)["account_id"]
        for credits in THRESHOLDS:
            torture.service.ask_socket("threshold create", account=self.account, credits=credits)
        endpoint = torture.service.ask_socket("webhook create", account=self.account,
                                              url=self.receiver.url)
        self.endpoint = endpoint["endpoint_id"]
        self.receiver.secrets = [endpoint["secret"]]

    def answer(self, delivery):
        self.arrived[delivery.id].append(delivery.arrived)
        if self.bodies.setdefault(delivery.id, delivery.body) != delivery.body:
            self.torture.report.check(False, f"{delivery.id} came with another body")
        choice = self.random.random()
        if choice < self.bad:
            if choice < self.bad / 3:
                time.sleep(self.random.uniform(0, 0.5))
            if choice < self.bad / 6:
                raise ConnectionError("broken off")
            return self.random.choice((301, 404, 500, 503))
        self.acknowledged[delivery.id].append(time.time())
        return 200


class Causer(threading.Thread):
    """Moves credits until the service is gone."""

    def __init__(self, torture, seed):
        super().__init__(daemon=True)
        self.torture, self.random = torture, random.Random(seed)
        self.moves = 0

    def run(self):
        try:
            while True:
                owner = self.random.choice(self.torture.owners)
                down = owner.balance > self.random.randint(0, CREDITS)
                credits = (-1 if down else 1) * self.random.randint(1, 60)
                try:
                    moved = self.torture.service.ask_socket("credits add", account=owner.account,
                                               credits=credits)
                    owner.balance = moved["balance"]
                    self.moves += 1
                except Refused:
                    owner.balance = 0  # it would be negative
                time.sleep(self.random.uniform(0, 0.02))
        except (OSError, ValueError):
            pass  # killed, as intended


class Torture:
    def __init__(self, options, data):
        self.random = random.Random(options.seed)
        self.report = Report()
        self.service = Service(data, {"webhook.schedule": SCHEDULE})
        self.owners, self.kills = [], []
        self.moves = 0

    def run_round(self):
        for owner in self.owners:
            owner.bad = self.random.choice((0.0, 0.2, 0.6, 1.0))
        causers = [Causer(self, self.random.getrandbits(64)) for _ in range(2)]
        for causer in causers:
            causer.start()
        time.sleep(self.random.uniform(0.05, 2.5))
        self.kills.append(time.time())
        self.service.kill()
        for causer in causers:
            causer.join()
            self.moves += causer.moves
        if self.random.random() < 0.2:  # the restart is killed too
            self.service.spawn()
            time.sleep(self.random.uniform(0, 0.4))
            self.kills.append(time.time())
            self.service.kill()
        self.service.start()

    def settle(self):
        """Lets everything be delivered."""
        for owner in self.owners:
            owner.bad = 0.0
        end = time.monotonic() + PATIENCE
        while any(self.service.ask_socket("webhook show", endpoint=owner.endpoint)["waiting"]
                  for owner in self.owners):
            if time.monotonic() > end:
                self.report.check(False, f"deliveries still wait after {PATIENCE} s")
                return
            time.sleep(0.1)

    def listed(self, operation, key, **arguments):
        items, before = [], {}
        while True:
            page = self.service.ask_socket(operation, limit=1000, **arguments, **before)
            items += page["data"]
            if not page["has_more"]:
                return items
            before = {"before": page["data"][-1][key]}

    def crossings(self, owner):
        """How often a threshold was crossed downwards, by the ledger."""
        entries = self.listed("credits list", "number", account=owner.account)
        balances = [entry["balance"] for entry in reversed(entries)]
        return sum(before > threshold >= after
                   for before, after in zip(balances, balances[1:]) for threshold in THRESHOLDS)

    def check_owner(self, owner):
        deliveries = self.listed("webhook deliveries", "number", endpoint=owner.endpoint)
        ids = [one["notice_id"] for one in deliveries]
        check = self.report.check
        check(len(ids) == len(set(ids)) == self.crossings(owner),
              f"{owner.endpoint}: {len(ids)} notices, {self.crossings(owner)} crossings")
        check({one["type"] for one in deliveries} <= {"balance.low"}, "notices of other types")
        check({one["status"] for one in deliveries} <= {"delivered"}, f"{owner.endpoint}: "
              f"{collections.Counter(one['status'] for one in deliveries)}")
        lost = [one for one in ids if not owner.acknowledged.get(one)]
        check(not lost, f"{owner.endpoint}: {len(lost)} of {len(ids)} were never acknowledged")
        strange = set(owner.arrived) - set(ids)
        check(not strange, f"{owner.endpoint}: {len(strange)} came that the store does not know")
        late = [one["notice_id"] for one in deliveries
                if max(owner.arrived.get(one["notice_id"], [0])) > seconds(one["ended_at"])]
        check(not late, f"{owner.endpoint}: {late[:3]} came after they were recorded as delivered")
        again = 0
        for one, times in owner.acknowledged.items():
            for arrived in owner.arrived[one]:
                earlier = [at for at in times if at < arrived]
                if not earlier:
                    continue
                again += 1
                check(any(abs(kill - earlier[-1]) < IN_FLIGHT for kill in self.kills),
                      f"{one} came again {arrived - earlier[-1]:.3f} s after it was acknowledged, "
                      "and no kill was near")
        check(not owner.receiver.faults, f"{owner.receiver.faults[:3]}")
        return len(ids), sum(map(len, owner.arrived.values())), again

    def check_all(self):
        self.settle()
        counts = [self.check_owner(owner) for owner in self.owners]
        return [sum(column) for column in zip(*counts)]

    def run(self, rounds):
        self.service.start()
        self.owners = [Owner(self, number) for number in range(ACCOUNTS)]
        for number in range(1, rounds + 1):
            self.run_round()
            if number % 10 == 0 or number == rounds:
                notices, arrivals, again = self.check_all()
        self.report.check(self.service.stop() == 0, "SIGTERM: exit status is not 0")
        print(f"{len(self.kills)} kills, {self.moves} moves of credits, {notices} notices, "
              f"{arrivals} deliveries, {again} of them again after an acknowledgment that a kill "
              "forgot")
        self.report.check(notices > 0, "no notice was caused")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--keep", action="store_true", help="leave the data directory")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.rounds} rounds", flush=True)
    directory = tempfile.mkdtemp(prefix="constancia-notices-")
    torture = Torture(options, os.path.join(directory, "data"))
    try:
        torture.run(options.rounds)
    except (NotStarted, Refused, OSError, ValueError) as error:
        torture.report.check(False, f"{type(error).__name__}: {error}\n"
                                    f"{torture.service.log_tail()}")
        options.keep = True
    finally:
        torture.service.kill()
    if options.keep or torture.report.failed:
        print("kept:", directory)
    else:
        shutil.rmtree(directory)
    return torture.report.end()


if __name__ == "__main__":
    sys.exit(main())
