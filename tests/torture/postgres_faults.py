#!/usr/bin/env python3
"""Breaks what lies between a receipt and its standby, round after round, while clients register at
two nodes, and holds the service to what it said.

    postgres_faults.py [--rounds N] [--seed N] [--clients N] [--faults NAME,NAME] [--keep]

The nodes share a PostgreSQL primary with one synchronous standby. A round runs the load, one fault,
and the recovery; `FAULTS` names them. What a client received (201 or 200) is kept on the client's
side. After every round: each receipt is on the server that survived, unchanged, over HTTP and in its
tables; standby and primary hold the same; a chain has no gap and nothing that was not sent; credits
add up; `store check` finds nothing. While no standby can hold a commit, nothing is acknowledged,
neither as new nor as repeated. The network is cut only where namespaces can be made (as root).
"""

import argparse
import calendar
import http.client
import os
import random
import shutil
import sys
import tempfile
import time

from service import BINARY, Client, Report  # which also finds tests/support
from torture import POOR_CREDITS, POOR_UNPAID, RICH_CREDITS, Chain, Torture, Worker

import network
from nodes import Deployment
from program import NotStarted, Refused
from postgres import Cluster, Failed, eventually

COMMIT_TIMEOUT = 1.0
RETRY_PAUSE = 0.05
RETRY_SECONDS = 90
READ_ATTEMPTS = 20  # as many as there are connections that may be broken
SEQUENCE_BITS = 40  # of the number of an event; the rest is its chain's


class Fence:
    """A time in which no standby can hold a commit: what is asked for after its start must not be
    acknowledged before its end."""

    def __init__(self):
        self.start = None
        self.violations = []
        self.refusals = 0

    def raise_(self):
        self.start = time.monotonic()

    def lift(self):
        self.start = None

    def watch(self, asked_at, status, what):
        start = self.start  # read after the answer came, so the fence still applies
        if start is None or asked_at <= start:
            return
        if status in (200, 201):
            self.violations.append(f"{what}: {status}")
        else:
            self.refusals += 1


class RetryingClient:
    """Asks any node, and another one, with the same client_ref, when it is not answered."""

    def __init__(self, torture, random):
        self.torture = torture
        self.random = random
        self.clients = [Client(node.port, 40, node.address) for node in torture.nodes]
        self.at = 0

    def close(self):
        for client in self.clients:
            client.close()

    def ask(self, key, declaration):
        """One try; a status of 0: no whole answer."""
        asked_at = time.monotonic()
        try:
            answer = self.clients[self.at].register(key, declaration)
        except (OSError, http.client.HTTPException):
            answer = 0, {}, b""
        self.torture.fence.watch(asked_at, answer[0], declaration.client_ref)
        if answer[0] in (0, 503):
            self.torture.unanswered += 1
            self.at = (self.at + 1) % len(self.clients)
            time.sleep(RETRY_PAUSE)
        else:
            self.torture.answers[self.at] += 1
        return answer

    def get(self, path, key):
        """One try, at the node that answered last."""
        try:
            return self.clients[self.at].get(path, key)
        except (OSError, http.client.HTTPException):
            return 503, {}

    def register(self, key, declaration):
        """Until it is answered, or the round has been over for long."""
        end = None
        self.at = self.random.randrange(len(self.clients))
        while True:
            answer = self.ask(key, declaration)
            if answer[0] not in (0, 503):
                return answer
            if self.torture.stopping and end is None:
                end = time.monotonic() + RETRY_SECONDS
            if end and time.monotonic() > end:
                return 503, {}, b""


class PatientClient(Client):
    """For what is asked after a fault, when a node may still find out that a connection to the store
    was cut. It repeats the request until it is answered; the longest wait is reported at the end."""

    longest = 0.0

    def request(self, *arguments):
        start = time.monotonic()
        while True:
            answer = super().request(*arguments)
            waited = time.monotonic() - start
            if answer[0] != 503 or waited > RETRY_SECONDS:
                PatientClient.longest = max(PatientClient.longest, waited)
                return answer
            time.sleep(RETRY_PAUSE)


class FaultWorker(Worker):
    def __init__(self, torture, number, seed):
        super().__init__(torture, number, seed)
        self.client = RetryingClient(torture, self.random)

    def register(self, chain, declaration, good):
        """What is new to this client may have been registered by an attempt that was not answered."""
        super().register(chain, declaration, (200, 201))


class PostgresTorture(Torture):
    def __init__(self, options, directory):
        self.options = options
        self.random = random.Random(options.seed)
        self.directory = directory
        self.report = Report()
        self.fence = Fence()
        self.chains, self.weights = [], []
        self.round = 0
        self.stopping = False
        self.unanswered = 0
        self.machine = network.Machine() if options.network else None
        addresses = ["127.0.0.1"] + ([self.machine.store_here] if self.machine else [])
        self.cluster = Cluster(standbys=1, addresses=addresses)
        self.deployment = None
        self.counts, self.waits = {}, {}

    # ---- before the first round ----

    def prepare(self):
        self.cluster.start()
        self.database = self.cluster.create_database()
        url = self.cluster.url(self.database, connect_timeout=2)
        self.deployment = Deployment(self.directory, BINARY, {
            "store.url": url, "store.commit_timeout": f"{int(COMMIT_TIMEOUT * 1000)}ms",
            "seal.interval": "1s"})
        first = self.deployment.add()
        if self.machine:
            there = self.cluster.url(self.database, self.machine.store_here, connect_timeout=2)
            self.deployment.add(address=self.machine.there, wrap=self.machine.wrap(),
                                settings={"store.url": there})
        else:
            self.deployment.add()
        self.nodes = self.deployment.nodes
        self.answers = [0] * len(self.nodes)
        for node in self.nodes:
            node.start()
        self.service = first
        self.make_chains()

    def make_chains(self):
        cli = self.nodes[0].admin
        accounts = {"rich": cli("account", "create", "--name", "rich", "--credits", RICH_CREDITS),
                    "poor": cli("account", "create", "--name", "poor", "--credits", POOR_CREDITS,
                                "--unpaid-limit", POOR_UNPAID)}
        for account, modality, mode, weight in (("rich", "content", "live", 6),
                                                ("rich", "hash_only", "live", 4),
                                                ("rich", "content", "test", 1),
                                                ("poor", "content", "live", 1)):
            name = f"{account} {modality} {mode}"
            channel = cli("channel", "create", "--account", accounts[account]["account_id"],
                          "--name", name, "--declarant", "Torture", "--modality", modality)
            key = cli("key", "create", "--channel", channel["channel_id"], "--mode", mode)
            self.chains.append(Chain(name, account, modality, mode, key["key"]))
            self.weights.append(weight)

    # ---- what is checked in the middle of a fault ----

    def progress(self, node=None):
        return sum(self.answers) if node is None else self.answers[node]

    def wait_for_progress(self, what, node=None):
        """Registrations continue: some more are answered."""
        goal, start = self.progress(node) + 20, time.monotonic()
        try:
            eventually(lambda: self.progress(node) >= goal, what)
            self.report.check(True, "")
            self.waits[what] = max(self.waits.get(what, 0), time.monotonic() - start)
        except Failed as failure:
            self.report.check(False, f"round {self.round}: {failure}; node1:\n"
                                     f"{self.nodes[0].log_tail(8)}")

    def keep_fenced(self, seconds):
        """Nothing may be acknowledged now; clients continue to send requests."""
        self.fence.raise_()
        before = self.fence.refusals
        eventually(lambda: self.fence.refusals > before + 2, "requests are refused")
        time.sleep(seconds)

    def answer_of_readyz(self, node, reason):
        """/readyz says why: some reason with that word in it."""
        def look():
            status, text = node.ask("/readyz") or (None, "")
            return status == 503 and reason in text
        try:
            eventually(look, f"{node}: /readyz says {reason}")
            self.report.check(True, "")
        except Failed as failure:
            self.report.check(False, f"round {self.round}: {failure}: {node.ask('/readyz')}")

    # ---- faults ----

    def kill_primary(self):
        """The primary goes away for good; the standby takes over, and gets a standby of its own."""
        self.cluster.primary.kill()
        self.fence.raise_()
        old = self.cluster.fail_over()
        self.keep_fenced(self.random.uniform(0, 1))
        self.answer_of_readyz(self.nodes[0], "standby")
        self.fence.lift()
        self.cluster.rebuild(old)

    def restart_primary(self):
        """It crashes and returns as the primary that it was."""
        self.cluster.primary.kill()
        time.sleep(self.random.uniform(0, 0.5))
        self.cluster.primary.start()

    def kill_standby(self):
        standby = self.cluster.standby
        standby.kill()
        self.keep_fenced(self.random.uniform(0, 1))
        self.answer_of_readyz(self.nodes[0], "standby")
        self.fence.lift()
        standby.start()

    def freeze_standby(self):
        """Longer than a commit may wait: outcomes are unknown, and known once it resumes."""
        self.cluster.standby.freeze()
        self.keep_fenced(COMMIT_TIMEOUT + self.random.uniform(0.5, 2))
        self.fence.lift()
        self.cluster.standby.thaw()

    def cancel_commits(self):
        """Commits become visible that no standby holds: repeated, they must still be refused."""
        standby = self.cluster.standby
        standby.freeze()
        self.keep_fenced(0)
        cancelled = 0
        for _ in range(4):
            eventually(lambda: self.cluster.primary.commits_waiting() > 0, "a commit waits")
            cancelled += self.cluster.primary.cancel_commits()
            time.sleep(self.random.uniform(0, COMMIT_TIMEOUT))
            if self.random.random() < 0.5:
                self.cluster.primary.terminate_backends(self.database)
        self.report.check(cancelled > 0, f"round {self.round}: no commit was cancelled")
        self.keep_fenced(COMMIT_TIMEOUT)
        if self.random.random() < 0.5:
            self.fence.lift()
            standby.thaw()
            return
        # What was visible and not held goes with the primary; it was never acknowledged.
        self.cluster.primary.kill()
        standby.thaw()
        old = self.cluster.fail_over()
        self.keep_fenced(0)
        self.fence.lift()
        self.cluster.rebuild(old)

    def harass_backends(self):
        """Cancelled waits and terminated connections while the standby is well."""
        for _ in range(self.random.randint(5, 15)):
            if self.random.random() < 0.7:
                self.cluster.primary.cancel_commits()
            else:
                self.cluster.primary.terminate_backends(self.database)
            time.sleep(self.random.uniform(0, 0.2))

    def kill_nodes(self):
        killed = self.random.sample(self.nodes, self.random.randint(1, len(self.nodes)))
        for node in killed:
            node.kill()
        if len(killed) < len(self.nodes):
            other = next(i for i, node in enumerate(self.nodes) if node not in killed)
            self.wait_for_progress(f"{self.nodes[other]} continues alone", other)
        for node in killed:
            node.spawn()

    def cut_network(self):
        """A node loses its store in the middle of what it does; the other must not wait for it."""
        self.machine.cut()
        self.wait_for_progress("node1 continues while node2 is cut off", 0)
        time.sleep(self.random.uniform(0, 2))
        self.machine.join()

    FAULTS = (kill_primary, restart_primary, kill_standby, freeze_standby, cancel_commits,
              harass_backends, kill_nodes, cut_network)

    def choose_faults(self):
        """Each one once in some order, then again: few rounds see many of them."""
        known = {fault.__name__: fault for fault in self.FAULTS
                 if self.machine or fault is not PostgresTorture.cut_network}
        names = self.options.faults.split(",") if self.options.faults else list(known)
        unknown = set(names) - set(known)
        if unknown:
            sys.exit(f"no such faults here: {', '.join(sorted(unknown))}")
        while True:
            order = self.random.sample(names, len(names))
            yield from ((name, known[name]) for name in order)

    # ---- a round ----

    def run_fault(self, name, fault):
        self.stopping = False
        workers = [FaultWorker(self, i, self.random.getrandbits(64))
                   for i in range(self.options.clients)]
        for worker in workers:
            worker.start()
        try:
            time.sleep(self.random.uniform(0.1, 0.8))
            fault(self)
            self.wait_for_progress(f"registrations continue after {name}")
            self.heal(name)
        finally:
            self.fence.lift()
            self.stopping = True
            for worker in workers:
                worker.join()
        for worker in workers:
            self.report.check(not worker.error, f"round {self.round}, {name}: {worker.error}")
        self.report.check(not self.fence.violations,
                          f"round {self.round}, {name}: acknowledged without a standby: "
                          f"{self.fence.violations[:3]}")
        self.fence.violations.clear()

    def heal(self, name):
        self.cluster.primary.wait_for_standbys()
        for number, node in enumerate(self.nodes):
            node.wait("/readyz")
            self.wait_for_progress(f"{node} answers after {name}", number)

    # ---- what must hold after it ----

    def read_tables(self, server):
        """Of each chain, by its number: the rows in order of their sequences."""
        chains = {}
        for event, ref, received_at, digest, chain_hash in server.rows(
                "SELECT event, client_ref, received_at, encode(hash, 'hex'), "
                "encode(chain_hash, 'hex') FROM events ORDER BY event", self.database):
            chain, sequence = divmod(int(event), 1 << SEQUENCE_BITS)
            chains.setdefault(chain, []).append((sequence, ref, received_at, digest, chain_hash))
        return chains

    def check_tables(self, rows, where):
        by_ref = {}
        for chain, events in rows.items():
            self.report.check([event[0] for event in events] == list(range(1, len(events) + 1)),
                              f"{where}: chain {chain} has a gap")
            for sequence, ref, received_at, digest, chain_hash in events:
                by_ref.setdefault(ref, []).append((sequence, int(received_at), digest, chain_hash))
        for chain in self.chains:
            lost = [ref for ref, receipt in chain.receipts.items()
                    if by_ref.get(ref) != [self.row_of(receipt)]]
            self.report.check(not lost, f"{where}: {chain.name}: {len(lost)} of "
                                        f"{len(chain.receipts)} acknowledged and lost or changed: "
                                        f"{lost[:3]} {[by_ref.get(ref) for ref in lost[:3]]}")

    @staticmethod
    def row_of(receipt):
        return (receipt["sequence"], microseconds(receipt["received_at"]), receipt["hash"],
                receipt["chain_hash"])

    def check_replication(self, rows):
        self.cluster.primary.wait_for_standbys()
        on_standby = self.read_tables(self.cluster.standby)
        shared = {chain: on_standby.get(chain, [])[:len(events)] for chain, events in rows.items()}
        self.report.check(shared == rows,
                          f"round {self.round}: primary and standby hold different events")

    def check_ledger(self):
        wrong = self.cluster.primary.rows(
            "SELECT account, balance, (SELECT COALESCE(sum(credits), 0) FROM credit_entries "
            "WHERE credit_entries.account = accounts.account) FROM accounts "
            "WHERE balance <> (SELECT COALESCE(sum(credits), 0) FROM credit_entries "
            "WHERE credit_entries.account = accounts.account)", self.database)
        self.report.check(not wrong, f"round {self.round}: balance and its entries: {wrong}")

    def check_everything(self, name):
        rows = self.read_tables(self.cluster.primary)
        self.check_tables(rows, f"round {self.round}, {name}")
        self.check_replication(rows)
        self.check_ledger()
        for node in self.nodes:
            client = PatientClient(node.port, address=node.address)
            for chain in self.chains:
                older = list(chain.receipts)
                some = self.random.sample(older, min(20, len(older)))
                fresh = self.random.sample(chain.fresh, min(100, len(chain.fresh)))
                self.check_receipts(client, chain, list(dict.fromkeys(fresh + some)))
            client.close()
        client = PatientClient(self.nodes[0].port, address=self.nodes[0].address)
        lists = {chain.name: client.events(chain.key) for chain in self.chains}
        for chain in self.chains:
            self.check_chain(chain, lists[chain.name])
            chain.fresh = []
        self.check_credits(client, lists)
        self.check_store(name)
        client.close()

    def check_store(self, when):
        """A command may be the first to use a connection that was terminated: it is then run a second time."""
        for attempt in range(READ_ATTEMPTS):
            try:
                self.nodes[0].admin("store", "check")
                self.report.check(True, "")
                return
            except (Refused, ValueError) as error:
                if "temporarily_unavailable" not in str(error) or attempt == READ_ATTEMPTS - 1:
                    self.report.check(False, f"round {self.round}: store check after {when}: "
                                             f"{error}")
                    return

    def run(self, rounds):
        self.prepare()
        faults = self.choose_faults()
        for self.round in range(1, rounds + 1):
            name, fault = next(faults)
            start, before = time.monotonic(), self.progress()
            self.counts[name] = self.counts.get(name, 0) + 1
            self.run_fault(name, fault)
            for chain in self.chains:
                chain.end_round()
            self.check_everything(name)
            print(f"round {self.round}: {name}: {self.progress() - before} answers, "
                  f"{time.monotonic() - start:.1f} s", flush=True)
        for node in self.nodes:
            self.report.check(node.stop() == 0, f"{node}: SIGTERM: exit status is not 0")
        self.end_report()

    def end_report(self):
        for chain in self.chains:
            print(f"{chain.name}: {len(chain.receipts)} acknowledged, "
                  f"{len(chain.unanswered)} asked for and not acknowledged")
        print("faults:", ", ".join(f"{name} {n}" for name, n in sorted(self.counts.items())))
        for what, seconds in sorted(self.waits.items()):
            print(f"longest until {what}: {seconds:.1f} s")
        print(f"longest until one request after a fault was answered: "
              f"{PatientClient.longest:.1f} s")
        print(f"refused while nothing could be acknowledged: {self.fence.refusals}; "
              f"503 or no answer in all: {self.unanswered}")
        self.report.check(all(chain.receipts for chain in self.chains), "a chain took no event")

    def close(self):
        if self.deployment:
            self.deployment.close()
        self.cluster.close()
        if self.machine:
            self.machine.close()

    def keep_logs(self):
        """Next to the nodes' directories, which stay."""
        for server in self.cluster.servers:
            if os.path.exists(server.log):
                shutil.copy(server.log, os.path.join(self.directory, server.name + ".log"))


def microseconds(text):
    """Of a time as the interface writes it, since 1970."""
    whole, fraction = text.removesuffix("Z").split(".")
    seconds = time.strptime(whole, "%Y-%m-%dT%H:%M:%S")
    return calendar.timegm(seconds) * 1_000_000 + int(fraction)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--faults", help="only these, separated by commas")
    parser.add_argument("--keep", action="store_true", help="leave the directory with the logs")
    options = parser.parse_args()
    options.network = network.available()
    return options


def main():
    options = read_options()
    print(f"seed {options.seed}, {options.rounds} rounds, {options.clients} clients"
          + ("" if options.network else "; no network namespaces here: the network is not cut"),
          flush=True)
    directory = tempfile.mkdtemp(prefix="constancia-torture-")
    torture = PostgresTorture(options, directory)
    try:
        torture.run(options.rounds)
    except (NotStarted, Refused, Failed, OSError, http.client.HTTPException,
            AssertionError) as error:
        torture.report.check(False, f"round {torture.round}: {type(error).__name__}: {error}")
        options.keep = True
    finally:
        if options.keep or torture.report.failed:
            torture.keep_logs()
        torture.close()
    if options.keep or torture.report.failed:
        print("kept:", directory)
    else:
        shutil.rmtree(directory)
    return torture.report.end()


if __name__ == "__main__":
    sys.exit(main())
