#!/usr/bin/env python3
"""Cuts the power of a PostgreSQL primary, of its standby, of both, and of everything at once.

    power_cut_postgres.py [--rounds N] [--seed N] [--clients N] [--faults NAME,NAME] [--no-sync]

The deployment of postgres_faults.py, with its load and its checks: two nodes on a primary with one
synchronous standby. Each server's data, and what the nodes keep, is on a file system of its own
that forgets what was not synced; wherever that program kills, this one cuts the power. What was
acknowledged must be on the primary, restarted or promoted, and on its standby. A migration
alongside the load is cut too, and done again.

With --no-sync the servers' syncs do nothing, and what passes is that it is found.
"""

import argparse
import http.client
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from unittest import mock

import forgetting
from postgres_faults import PostgresTorture
from service import BINARY, ROOT

from nodes import Deployment
from program import NotStarted, Refused
from postgres import PATIENCE, ROLE, Cluster, Failed, Server, unprivileged
import sizes

SURVIVAL = (0, 0, 10, 50, 90, 100)  # percent of what was not synced
SCHEMA = ROOT / "src" / "store" / "schema" / "postgres"


class CutServer(Server):
    """On a file system that forgets."""

    place = None

    def rest_on(self, place):
        self.place = place
        self.data = os.path.join(place.directory, "data")
        user = unprivileged()
        if user:
            os.chown(place.directory, user.pw_uid, user.pw_gid)

    def discard(self):
        super().discard()
        if self.place:
            self.place.sync()

    def kill(self):
        self.cluster.cut([self])

    def spawn(self):
        with mock.patch.dict(os.environ, self.cluster.environment):
            super().spawn()

    def signal_kill(self):
        self._signal_all(signal.SIGKILL)

    def wait_for_end(self):
        self.process.wait(PATIENCE)
        self.process = None


class CutCluster(Cluster):
    """What it asks of its owner: to cut the power of servers."""

    server_class = CutServer
    cut = None
    environment = {}

    def start(self):
        super().start()
        self.sync()
        return self

    def rebuild(self, server):
        super().rebuild(server)
        server.place.sync()

    def sync(self):
        for server in self.servers:
            server.place.sync()


class PostgresPowerCuts(PostgresTorture):
    def __init__(self, options, directory, places):
        super().__init__(options, directory)
        self.cuts = 0
        *server_places, self.nodes_place = places
        self.cluster = CutCluster(standbys=1)
        self.cluster.cut = self.cut
        if options.no_sync:
            self.cluster.environment = forgetting.environment("sync")
        for server, place in zip(self.cluster.servers, server_places):
            server.rest_on(place)

    def prepare(self):
        self.cluster.start()
        self.database = self.cluster.create_database()
        self.deployment = Deployment(os.path.join(self.nodes_place.directory, "nodes"), BINARY, {
            "store.url": self.cluster.url(self.database, connect_timeout=2),
            "store.commit_timeout": "1s", "seal.interval": "1s"})
        self.nodes = [self.deployment.add(environment=forgetting.environment()) for _ in range(2)]
        for node in self.nodes:
            node.log = os.path.join(self.directory, node.name + ".log")
        self.nodes_place.sync()
        self.answers = [0] * len(self.nodes)
        for node in self.nodes:
            node.start()
        self.service = self.nodes[0]
        self.make_chains()

    # ---- cuts ----

    def cut(self, servers, nodes=()):
        """At the same moment; what is killed is not started again."""
        places = [server.place for server in servers] + ([self.nodes_place] if nodes else [])
        for place in places:
            place.order("freeze 0")
        for server in servers:
            server.signal_kill()
        for node in nodes:
            node.process.kill()
        for place in places:  # otherwise a process that waits for it could not die
            place.order("off")
        for server in servers:
            server.wait_for_end()
        for node in nodes:
            node.kill()
        for place in places:
            place.forget(self.random.choice(SURVIVAL), self.random.getrandbits(32))
        self.cuts += 1

    def cut_primary_for_good(self):
        self.kill_primary()

    def cut_primary(self):
        self.restart_primary()

    def cut_standby(self):
        self.kill_standby()

    def cut_both(self):
        self.cut(self.cluster.servers)
        time.sleep(self.random.uniform(0, 0.5))
        self.cluster.primary.start()
        self.cluster.standby.start()

    def cut_everything(self):
        self.cut(self.cluster.servers, self.nodes)
        self.cluster.primary.start()
        self.cluster.standby.start()
        for node in self.nodes:
            node.spawn()

    def cut_nodes(self):
        """Which goes with whatever is on its way to the server."""
        self.cut([], self.nodes)
        for node in self.nodes:
            node.spawn()

    def cut_in_migration(self):
        """Of an old store, next to the one that serves."""
        database = self.cluster.create_database()
        steps = sorted(SCHEMA.glob("*.sql"))
        self.cluster.primary.query(
            f"SET ROLE {ROLE}; {steps[0].read_text(encoding='utf-8')} INSERT INTO settings VALUES "
            f"('schema', '{steps[0].stem}'); INSERT INTO accounts (account, account_id, name, "
            "created_at, active_at) SELECT n, 'acc_' || n, 'old', 1, 1 FROM "
            "generate_series(1, 100) n", database)
        command = [BINARY, "migrate", "--json", "--set=tsa.url=embedded:",
                   f"--set=store.url={self.cluster.url(database, connect_timeout=2)}",
                   f"--set=service.data_dir={self.directory}/migrating"]
        primary = self.cluster.primary
        primary.place.fail_power_in(self.random.randint(1, 30))
        first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while first.poll() is None and not primary.place.power_failed():
            time.sleep(0.005)
        self.cut([primary])
        first.kill()
        first.communicate()
        primary.start()
        self.cluster.primary.wait_for_standbys()
        again = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        found = self.cluster.primary.query(
            "SELECT (SELECT value FROM settings WHERE name = 'schema'), count(*) FROM accounts",
            database)
        self.report.check(again.returncode == 0 and found == f"{steps[-1].stem}|100",
                          f"round {self.round}: migration: {again.returncode} {again.stderr} "
                          f"{found}")
        self.cluster.drop_database(database)

    FAULTS = (cut_in_migration, cut_primary_for_good, cut_primary, cut_standby, cut_both,
              cut_everything, cut_nodes)

    def end_report(self):
        super().end_report()
        acknowledged = sum(len(chain.receipts) for chain in self.chains)
        print(f"{self.cuts} cuts, {acknowledged} acknowledged events")


def open_places(seed):
    places = []
    try:
        for number in range(3):
            places.append(forgetting.Forgetful(seed + number))
    except forgetting.Unusable:
        close_places(places)
        raise
    return places


def close_places(places):
    for place in places:
        place.close()


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--faults", help="only these, separated by commas")
    parser.add_argument("--no-sync", action="store_true")
    options = parser.parse_args()
    options.network = False
    return options


def main():
    forgetting.unmount_when_told_to_end()
    options = read_options()
    print(f"seed {options.seed}, {options.rounds} rounds, {options.clients} clients", flush=True)
    sizes.use_drawn(options.seed)
    try:
        places = open_places(options.seed)
    except forgetting.Unusable as reason:
        print(f"SKIPPED: {reason}")
        return 77
    directory = tempfile.mkdtemp(prefix="constancia-torture-")
    torture = PostgresPowerCuts(options, directory, places)
    try:
        torture.run(options.rounds)
    except (NotStarted, Refused, Failed, OSError, forgetting.Broken, http.client.HTTPException,
            AssertionError) as error:
        torture.report.check(False, f"round {torture.round}: {type(error).__name__}: {error}")
    finally:
        if torture.report.failed:
            torture.keep_logs()
        torture.close()
        close_places(places)
    if options.no_sync:
        print(f"{torture.report.failed} failures within {torture.cuts} cuts")
        torture.report.passed, torture.report.failed = torture.report.failed, 0
    if torture.report.failed:
        print("kept:", directory)
    else:
        shutil.rmtree(directory)
    return torture.report.end()


if __name__ == "__main__":
    sys.exit(main())
