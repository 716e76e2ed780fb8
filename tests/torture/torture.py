#!/usr/bin/env python3
"""Kills a busy service at random moments, round after round, and holds it to what it said.

    torture.py [--rounds N] [--seed N] [--clients N] [--answers N] [--keep] [--small]
               [--fault NAME]

What a client received (201 or 200) is kept on the client's side. After every restart: each of these
receipts is still there, unchanged; repeating a request gives the original; a chain has no gaps and
nothing that was not sent; credits add up; what is held has its digest. What is registered is found
by its client_ref at any moment. Statements of the store's index fail now and then, and sizes are
drawn small (sizes.py), so that what runs seldom runs often.

With --fault the program is one in which that fault is planted (support/planted_faults.py), and what passes
is that it is found.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time

import shaking
from service import (BINARY, Client, NotStarted, Refused, Report, Service, declare_file, declare_hash,
                     declare_json, lasting)

import sizes
from planted_faults import INDEX

POOR_CREDITS, POOR_UNPAID = 400, 150
RICH_CREDITS = 10_000_000
TEST_EVENTS_PER_DAY = 10_000
LOOKERS = 3


class Chain:
    """One key's chain, as its clients know it."""

    def __init__(self, name, account, modality, mode, key):
        self.name, self.account, self.modality, self.mode, self.key = (name, account, modality,
                                                                       mode, key)
        self.lock = threading.Lock()
        self.sent = {}        # client_ref: declaration, of everything ever sent as new
        self.receipts = {}    # client_ref: the Event as first answered
        self.fresh = []       # client_refs acknowledged in this round
        self.unanswered = []  # client_refs that earlier rounds left without an answer

    def acknowledge(self, declaration, body):
        with self.lock:
            self.receipts[declaration.client_ref] = json.loads(body)
            self.fresh.append(declaration.client_ref)

    def end_round(self):
        self.unanswered = [ref for ref in self.sent if ref not in self.receipts]


class Worker(threading.Thread):
    def __init__(self, torture, number, seed):
        super().__init__(daemon=True)
        self.torture = torture
        self.number = number
        self.random = random.Random(seed)
        self.client = Client(torture.service.port)
        self.answers = 0
        self.error = None

    def run(self):
        try:
            while not self.torture.stopping:
                self.act(self.random.choices(self.torture.chains, self.torture.weights)[0])
                self.answers += 1
        except (OSError, http.client.HTTPException):
            pass  # killed, as intended
        except AssertionError as error:
            self.error = str(error)
        self.client.close()

    def new_declaration(self, chain):
        client_ref = f"{self.torture.round}-{self.number}-{self.random.getrandbits(48):012x}"
        if chain.modality == "hash_only":
            return declare_hash(client_ref, client_ref)
        kind = self.random.random()
        if kind < 0.1:
            return declare_file(client_ref, self.random.randbytes(self.random.randint(0, 60_000)))
        size = self.random.randint(20_000, 50_000) if kind < 0.2 else self.random.randint(1, 400)
        return declare_json(client_ref, client_ref + "x" * size)

    def act(self, chain):
        choice = self.random.random()
        with chain.lock:
            acknowledged = list(chain.receipts) if choice < 0.35 else []
            unanswered = chain.unanswered if 0.35 <= choice < 0.45 else []
        if acknowledged and choice < 0.15:
            self.repeat(chain, self.random.choice(acknowledged))
        elif acknowledged and choice < 0.25:
            self.look_up(chain, self.random.choice(acknowledged))
        elif acknowledged:
            self.contradict(chain, self.random.choice(acknowledged))
        elif unanswered:
            self.register(chain, chain.sent[self.random.choice(unanswered)], (200, 201))
        else:
            declaration = self.new_declaration(chain)
            with chain.lock:
                chain.sent[declaration.client_ref] = declaration
            self.register(chain, declaration, (201,))

    def register(self, chain, declaration, good):
        status, _, body = self.client.register(chain.key, declaration)
        if status in good:
            chain.acknowledge(declaration, body)
            return
        used_up = chain.mode == "test" and len(chain.sent) > TEST_EVENTS_PER_DAY
        allowed = status == 503 or (status == 402 and chain.account == "poor") or \
            (status == 429 and used_up)
        assert allowed, f"{chain.name}: new event answered {status} {body[:300]}"

    def repeat(self, chain, client_ref):
        status, headers, body = self.client.register(chain.key, chain.sent[client_ref])
        if status == 503:
            return
        assert status == 200, f"{chain.name}: repetition answered {status} {body[:300]}"
        assert headers["Idempotent-Replayed"] == "true", f"{chain.name}: not marked as replayed"
        assert lasting(body) == lasting(chain.receipts[client_ref]), \
            f"{chain.name}: repetition differs: {body} from {chain.receipts[client_ref]}"

    def look_up(self, chain, client_ref):
        """The whole list of it is that event."""
        status, page = self.client.get("/events?client_ref=" + client_ref, chain.key)
        if status == 503:
            return
        assert status == 200, f"{chain.name}: look-up answered {status} {page}"
        assert [lasting(event) for event in page["data"]] == [lasting(chain.receipts[client_ref])], \
            f"{chain.name}: looked up {client_ref}: {page['data']}"

    def contradict(self, chain, client_ref):
        declare = declare_hash if chain.modality == "hash_only" else declare_json
        status, _, body = self.client.register(chain.key, declare(client_ref, "something else"))
        assert status in (409, 503), f"{chain.name}: conflict answered {status} {body[:300]}"


class Looker(Worker):
    """Looks up what was acknowledged, and nothing else."""

    def act(self, chain):
        with chain.lock:
            acknowledged = list(chain.receipts)
        if acknowledged:
            self.look_up(chain, self.random.choice(acknowledged))
        else:
            time.sleep(0.01)


class Torture:
    def __init__(self, options, data):
        self.random = random.Random(options.seed)
        self.clients, self.answers = options.clients, options.answers
        self.service = Service(data, {"seal.interval": "1s"}, binary=program_with(options.fault),
                               environment=shaking.environment(shaking.build(options.directory)))
        self.fault = options.fault
        self.report = Report()
        self.chains, self.weights = [], []
        self.round = 0
        self.stopping = False
        self.killed_early = 0

    def prepare(self):
        self.service.start()
        accounts = {
            "rich": self.service.admin("account", "create", "--name", "rich",
                                     "--credits", str(RICH_CREDITS)),
            "poor": self.service.admin("account", "create", "--name", "poor",
                                     "--credits", str(POOR_CREDITS),
                                     "--unpaid-limit", str(POOR_UNPAID)),
        }
        for account, modality, mode, weight in (("rich", "content", "live", 6),
                                                ("rich", "hash_only", "live", 4),
                                                ("rich", "content", "test", 1),
                                                ("poor", "content", "live", 1)):
            name = f"{account} {modality} {mode}"
            channel = self.service.admin("channel", "create", "--account",
                                       accounts[account]["account_id"], "--name", name,
                                       "--declarant", "Torture", "--modality", modality)
            key = self.service.admin("key", "create", "--channel", channel["channel_id"],
                                   "--mode", mode)
            self.chains.append(Chain(name, account, modality, mode, key["key"]))
            self.weights.append(weight)

    def is_over(self, workers):
        """Whether the round has had its answers, or one of them is wrong. On a busy machine they take longer."""
        return sum(worker.answers for worker in workers) >= self.answers or \
            any(worker.error for worker in workers) or not all(worker.is_alive() for worker in workers)

    def run_round(self):
        self.stopping = False
        workers = [kind(self, i, self.random.getrandbits(64))
                   for i, kind in enumerate([Worker] * self.clients + [Looker] * LOOKERS)]
        for worker in workers:
            worker.start()
        time.sleep(self.random.uniform(0.02, 0.7))
        while not self.is_over(workers):
            time.sleep(0.05)
        self.service.kill()
        self.stopping = True
        for worker in workers:
            worker.join()
            self.report.check(not worker.error, f"round {self.round}: {worker.error}")
        for chain in self.chains:
            chain.end_round()
        if self.random.random() < 0.2:  # the restart, with its recovery, is killed too
            self.service.spawn()
            time.sleep(self.random.uniform(0, 0.3))
            self.service.kill()
            self.killed_early += 1
        try:
            self.service.start()
        except NotStarted as error:
            self.report.check(False, f"round {self.round}: restart: {error}")
            raise

    def check_receipts(self, client, chain, client_refs):
        """Each by its own address, and some by repeating the request; with their content."""
        missing = []
        for client_ref in client_refs:
            receipt = chain.receipts[client_ref]
            status, event = client.get("/events/" + receipt["event_id"], chain.key)
            if status != 200 or lasting(event) != lasting(receipt):
                missing.append((client_ref, status, event, receipt))
        self.report.check(not missing, f"round {self.round}: {chain.name}: {len(missing)} of "
                                       f"{len(client_refs)} receipts: {missing[:1]}")
        for client_ref in self.random.sample(client_refs, min(10, len(client_refs))):
            declaration = chain.sent[client_ref]
            status, body = self.repeat_until_answered(client, chain, declaration)
            same = status == 200 and lasting(body) == lasting(chain.receipts[client_ref])
            self.report.check(same, f"round {self.round}: {chain.name}: repetition: "
                                    f"{status} {body}")
            if declaration.content is None:
                continue
            status, _, body = client.request(
                "GET", f"/events/{chain.receipts[client_ref]['event_id']}/content", chain.key)
            self.report.check(status == 200 and body == declaration.content,
                              f"round {self.round}: {chain.name}: content: {status} {body[:80]}")

    def repeat_until_answered(self, client, chain, declaration):
        """Statements fail now and then."""
        for _ in range(50):
            status, _, body = client.register(chain.key, declaration)
            if status != 503:
                break
        return status, body

    def check_chain(self, chain, events):
        where = f"round {self.round}: {chain.name}: "
        self.report.check([event["sequence"] for event in events] ==
                          list(range(1, len(events) + 1)), where + "the sequence has a gap")
        refs = {event["client_ref"]: event for event in events}
        self.report.check(len(refs) == len(events), where + "a client_ref occurs twice")
        foreign = [ref for ref in refs if ref not in chain.sent or
                   refs[ref]["hash"] != chain.sent[ref].digest]
        self.report.check(not foreign, where + f"no client sent {foreign[:3]}")
        lost = [ref for ref, receipt in chain.receipts.items()
                if ref not in refs or lasting(refs[ref]) != lasting(receipt)]
        self.report.check(not lost, where + f"{len(lost)} acknowledged and lost: {lost[:3]}")
        times = [event["received_at"] for event in events]
        self.report.check(times == sorted(times), where + "received_at decreases")

    def check_credits(self, client, lists):
        for account, credits in (("rich", RICH_CREDITS), ("poor", POOR_CREDITS)):
            chains = [chain for chain in self.chains
                      if chain.account == account and chain.mode == "live"]
            spent = sum(len(lists[chain.name]) for chain in chains)
            unpaid = sum(event["status"] == "unpaid" for chain in chains
                         for event in lists[chain.name])
            _, balance = client.get("/account/balance", chains[0].key)
            expected = {"balance": max(0, credits - spent),
                        "unpaid_events": max(0, spent - credits)}
            got = {name: balance[name] for name in expected}
            self.report.check(got == expected and unpaid == expected["unpaid_events"],
                              f"round {self.round}: {account}: {got}, {unpaid} unpaid listed, "
                              f"expected {expected} after {spent} events")
            self.report.check(balance["operational"] == (unpaid == 0),
                              f"round {self.round}: {account}: operational")
        self.report.check(len(lists[self.chains[-1].name]) <= POOR_CREDITS + POOR_UNPAID,
                          f"round {self.round}: more unpaid events than the limit")
        for chain in self.chains:
            self.report.check(chain.mode == "live" or len(lists[chain.name]) <= TEST_EVENTS_PER_DAY,
                              f"round {self.round}: more test events than a day has")

    def check_store(self, when):
        try:
            self.service.admin("store", "check")
            self.report.check(True, "")
        except (Refused, ValueError) as error:
            self.report.check(False, f"round {self.round}: store check {when}: {error}")

    def check_round(self, everything):
        client = Client(self.service.port)
        for chain in self.chains:
            older = list(chain.receipts)
            some = self.random.sample(older, min(20, len(older)))
            self.check_receipts(client, chain, list(dict.fromkeys(chain.fresh + some)))
            chain.fresh = []
        if everything:
            lists = {chain.name: client.events(chain.key) for chain in self.chains}
            for chain in self.chains:
                self.check_chain(chain, lists[chain.name])
            self.check_credits(client, lists)
            self.check_store("while serving")
        client.close()

    def run(self, rounds):
        self.prepare()
        for self.round in range(1, rounds + 1):
            self.run_round()
            often = 2 if self.fault else 10
            self.check_round(everything=self.round % often == 0 or self.round == rounds)
            if self.fault and self.report.failed:
                return
        self.report.check(self.service.stop() == 0, "SIGTERM: exit status is not 0")
        self.check_store("when stopped")
        for chain in self.chains:
            print(f"{chain.name}: {len(chain.receipts)} acknowledged, "
                  f"{len(chain.unanswered)} asked for and not acknowledged")
        print(f"restarts killed on their way: {self.killed_early}")
        self.report.check(all(chain.receipts for chain in self.chains), "a chain took no event")


def program_with(fault):
    """The program, or one next to it with a planted fault."""
    return f"{BINARY}-{fault}" if fault else BINARY


def end(torture, fault):
    """The exit status."""
    if not fault:
        return torture.report.end()
    found = bool(torture.report.failed)
    print(f"{fault} found in round {torture.round}" if found else
          f"{fault} was not found in {torture.round} rounds", flush=True)
    return 0 if found else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--answers", type=int, default=0, help="that a round has at least (0)")
    parser.add_argument("--keep", action="store_true", help="leave the data directory")
    parser.add_argument("--small", action="store_true",
                        help="sizes that a planted fault is searched for with")
    parser.add_argument("--fault", choices=INDEX)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.rounds} rounds, {options.clients} clients", flush=True)
    sizes.use_drawn(options.seed, smallest=options.small or bool(options.fault))
    options.directory = directory = tempfile.mkdtemp(prefix="constancia-torture-")
    torture = Torture(options, os.path.join(directory, "data"))
    try:
        torture.run(options.rounds)
    except (NotStarted, Refused, OSError, http.client.HTTPException, AssertionError) as error:
        torture.report.check(False, f"round {torture.round}: {type(error).__name__}: {error}")
        options.keep = not options.fault
    finally:
        torture.service.kill()
    if options.keep or (torture.report.failed and not options.fault):
        print("kept:", directory)
    else:
        shutil.rmtree(directory)
    return end(torture, options.fault)


if __name__ == "__main__":
    sys.exit(main())
