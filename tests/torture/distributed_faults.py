#!/usr/bin/env python3
"""Breaks the servers of a distributed store, round after round, while clients register at two nodes
with accounts on every worker, and holds the service to what it said.

    distributed_faults.py [--rounds N] [--seed N] [--clients N] [--faults NAME,NAME] [--keep]

A coordinator and two workers, each a primary with one synchronous standby. A round is one of
postgres_faults.py: the load, one fault, the recovery, and what must hold after it; `FAULTS` names
them. While a worker is away or hangs, others' accounts continue. Says that it is skipped, and ends with
77, where the PostgreSQL at hand does not offer the extension.
"""

import sys
import threading
import time

import postgres_faults  # which also finds tests/support
from postgres_faults import (BINARY, COMMIT_TIMEOUT, Deployment, PatientClient, PostgresTorture,
                             eventually)
from service import declare_json
from torture import Chain

from distributed import MISSING, Distributed, offered

SKIPPED = 77


class DistributedTorture(PostgresTorture):
    def __init__(self, options, directory):
        options.network = False
        super().__init__(options, directory)
        self.cluster.close()
        self.spares = []
        self.cluster = Distributed(standbys=1)

    def prepare(self):
        self.cluster.start()
        self.database = self.cluster.create_database()
        self.deployment = Deployment(self.directory, BINARY, {
            "store.url": self.cluster.url(self.database, connect_timeout=2),
            "store.commit_timeout": f"{int(COMMIT_TIMEOUT * 1000)}ms", "store.sharded": "true",
            "seal.interval": "1s"})
        for _ in range(2):
            self.deployment.add()
        self.nodes = self.deployment.nodes
        self.answers = [0] * len(self.nodes)
        self.service = self.nodes[0]
        done = self.service.run("store", "distribute")
        assert done.returncode == 0, done.stderr
        for node in self.nodes:
            node.start()
        while {self.place_of(chain) for chain in self.chains} != set(self.ports()):
            self.chains, self.weights = [], []
            self.make_chains()
        while {self.place_of(spare) for spare in self.spares} != set(self.ports()):
            self.spares.append(self.make_spare())

    def make_spare(self):
        """A channel that no worker of the load waits for."""
        cli = self.service.admin
        account = cli("account", "create", "--name", "spare", "--credits", 100000)
        channel = cli("channel", "create", "--account", account["account_id"], "--name", "spare",
                      "--declarant", "Torture", "--modality", "content")
        key = cli("key", "create", "--channel", channel["channel_id"], "--mode", "live")
        self.spare_channel = channel["channel_id"]
        return Chain("spare", "spare", "content", "live", key["key"])

    def ports(self):
        return [worker.primary.port for worker in self.cluster.workers]

    def place_of(self, chain):
        """The port of the worker that has its account's rows."""
        return self.cluster.primary.number(
            "SELECT nodeport FROM pg_dist_placement JOIN pg_dist_node USING (groupid) WHERE shardid = "
            "get_shard_id_for_distribution_column('accounts', (SELECT account FROM api_keys WHERE "
            f"key_hash = sha256('{chain.key}'::bytea)))", self.database)

    def others_go_on(self, worker, what):
        """Registrations of an account that the worker has nothing to do with, at each node."""
        spare = next(one for one in self.spares if self.place_of(one) != worker.primary.port)
        for number, node in enumerate(self.nodes):
            client = PatientClient(node.port, address=node.address)
            for n in range(10):
                start = time.monotonic()
                ref = f"{self.round} {number} {n}"
                status, *_ = client.register(spare.key, declare_json(ref, ref))
                self.waits[what] = max(self.waits.get(what, 0), time.monotonic() - start)
                self.report.check(status == 201, f"round {self.round}: {what}: {status}")
            client.close()

    # ---- faults ----

    def some_worker(self):
        return self.random.choice(self.cluster.workers)

    def restart_worker(self):
        """It crashes and is started again; the others' accounts do not wait for it."""
        worker = self.some_worker()
        worker.primary.kill()
        self.others_go_on(worker, "others' accounts continue while a worker is gone")
        time.sleep(self.random.uniform(0, 3))
        worker.primary.start()

    def freeze_worker(self):
        worker = self.some_worker()
        worker.primary.freeze()
        self.others_go_on(worker, "others' accounts continue while a worker hangs")
        time.sleep(self.random.uniform(0, 5))
        worker.primary.thaw()

    def fail_over_worker(self):
        """Its primary goes away for good; the coordinator is given the address of the standby."""
        worker = self.some_worker()
        worker.primary.kill()
        self.promote(worker)

    def promote(self, worker):
        old = worker.fail_over()
        self.cluster.primary.query(
            f"SELECT citus_update_node(nodeid, '127.0.0.1', {worker.primary.port}) FROM pg_dist_node "
            f"WHERE nodeport = {old.port}", self.database)
        worker.rebuild(old)

    def freeze_workers_standby(self):
        standby = self.some_worker().standby
        standby.freeze()
        time.sleep(COMMIT_TIMEOUT + self.random.uniform(0.5, 2))
        standby.thaw()

    def cancel_on_worker(self):
        """What a worker shows that its standby does not have is not acknowledged."""
        worker = self.some_worker()
        worker.standby.freeze()
        for _ in range(20):
            worker.primary.cancel_commits()
            time.sleep(self.random.uniform(0, COMMIT_TIMEOUT / 4))
        if self.random.random() < 0.5:
            worker.standby.thaw()
            return
        worker.primary.kill()
        worker.standby.thaw()
        self.promote(worker)

    def restart_coordinator(self):
        self.cluster.primary.kill()
        time.sleep(self.random.uniform(0, 0.5))
        self.cluster.primary.start()

    def fail_over_coordinator(self):
        """Its primary goes away for good. Nodes find the standby by the address; it learns its own name once it
        has a standby, for which the commit of that waits."""
        self.cluster.primary.kill()
        self.promote_coordinator()

    def promote_coordinator(self):
        old = self.cluster.coordinator.fail_over()
        self.cluster.coordinator.rebuild(old)
        self.wait_for_progress("registrations continue before the coordinator knows its name")
        self.cluster.primary.query(f"SELECT citus_set_coordinator_host('127.0.0.1', {self.cluster.primary.port})",
                                   self.database)

    def freeze_coordinator(self):
        self.cluster.primary.freeze()
        time.sleep(self.random.uniform(0, 5))
        self.cluster.primary.thaw()

    def freeze_coordinators_standby(self):
        standby = self.cluster.coordinator.standby
        standby.freeze()
        time.sleep(COMMIT_TIMEOUT + self.random.uniform(0.5, 2))
        standby.thaw()

    def cancel_on_coordinator(self):
        """While its standby hangs, and sometimes takes over; the nodes still record acts, which commit there too."""
        standby = self.cluster.coordinator.standby
        acting = threading.Thread(target=self.act)
        standby.freeze()
        acting.start()
        for _ in range(20):
            self.cluster.primary.cancel_commits()
            time.sleep(self.random.uniform(0, COMMIT_TIMEOUT / 4))
        over = self.random.random() < 0.5
        if over:
            self.cluster.primary.kill()
        standby.thaw()
        acting.join()
        if over:
            self.promote_coordinator()

    def act(self):
        """Keys, whatever becomes of them: each is written on the coordinator and, with its act, on a worker."""
        for node in self.nodes:
            node.run("key", "create", "--channel", self.spare_channel, "--mode", "live")

    def harass_all(self):
        """Connections to the coordinator and to the workers end in the middle."""
        for _ in range(self.random.randint(5, 15)):
            server = self.random.choice(self.cluster.clusters).primary
            server.terminate_backends(self.database)
            time.sleep(self.random.uniform(0, 0.2))

    FAULTS = (restart_worker, freeze_worker, fail_over_worker, freeze_workers_standby, cancel_on_worker,
              restart_coordinator, fail_over_coordinator, freeze_coordinator, freeze_coordinators_standby,
              cancel_on_coordinator, harass_all, PostgresTorture.kill_nodes)

    # ---- what must hold after it ----

    def heal(self, name):
        for cluster in self.cluster.clusters:
            cluster.primary.wait_for_standbys()
        eventually(lambda: self.cluster.primary.query(
            "SELECT count(*) FROM events", self.database), "all shards answer")
        super().heal(name)

    def check_replication(self, rows):
        """Each worker and its standby hold the same."""
        for worker in self.cluster.workers:
            worker.primary.wait_for_standbys()
            shards = [name for (name,) in worker.primary.rows(
                "SELECT relname FROM pg_class WHERE relname ~ '^events_[0-9]+$' AND relkind = 'r'",
                self.database)]
            count = f"SELECT {' + '.join(f'(SELECT count(*) FROM {name})' for name in shards)}"
            self.report.check(worker.primary.query(count, self.database) ==
                              worker.standby.query(count, self.database),
                              f"round {self.round}: a worker and its standby hold different events")

    def keep_logs(self):
        for number, cluster in enumerate(self.cluster.clusters):
            for server in cluster.servers:
                server.name = f"{number}-{server.name}"
        PostgresTorture.keep_logs(self)


def main():
    if not offered():
        print(f"skipped: {MISSING}")
        return SKIPPED
    postgres_faults.PostgresTorture = DistributedTorture
    return postgres_faults.main()


if __name__ == "__main__":
    sys.exit(main())
