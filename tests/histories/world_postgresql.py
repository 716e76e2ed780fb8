"""Several nodes on a PostgreSQL primary with a synchronous standby. The servers are kept for the next run, which
gets a database of its own; a run that leaves them damaged costs the next one their creation."""

import contextlib
import os
import signal
import subprocess
import time

import network
from history import FOREVER
from link import Link
from nodes import SetClock
from postgres import Cluster, Failed, Server, eventually
from world import World

COMMIT_TIMEOUT = 1.0
START_FAILED, UNAVAILABLE = 2, '"event":"start_failed","message":"The operation is not possible now.'
OPEN, SHUT = "trust", "reject"  # what pg_hba.conf says of replication


def state_of(process):
    """Returns the letter of the state of a process; empty: it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]
    return ""


class Unfixed(Server):
    """A server whose synchronous standbys are named in its configuration, so that a fault can change them."""

    def settings(self):
        return {name: value for name, value in super().settings().items() if name != "synchronous_standby_names"}


class Servers(Cluster):
    """Their rules say whether new connections of standbys are accepted."""

    server_class = Unfixed

    def configure(self):
        with open(os.path.join(self.primary.data, "postgresql.conf"), "a", encoding="ascii") as file:
            file.write(f"synchronous_standby_names = '{self.standby_names()}'\n")

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.write_rules(OPEN)

    def write_rules(self, replication):
        with open(self.hba_file, "w", encoding="ascii") as file:
            file.write(f"local all all trust\nlocal replication all {replication}\nhost all all 0.0.0.0/0 trust\n")


class PostgresWorld(World):
    """The faults (faults_postgresql.py) call the methods below "servers"; these keep `facts`:

    - fences: times in which no standby can confirm a commit, whatever else happens
    - split: times in which two servers accept writes
    - lost: times in which a read may have shown what no standby held, and what a promotion then lost
    - promotions: when a standby was promoted
    - clocks: [node, seconds behind, start, end] of a node's clock that was set
    """

    cluster = machine = None  # kept for the next run

    def __init__(self, script, directory, *more):
        super().__init__(script, directory, *more)
        self.database = None
        self.frozen, self.retired = set(), set()
        self.cut = self.stalled_receiver = None
        self.unnamed = None  # the server whose configuration names no standby
        self.unheld = None  # since when commits may be visible that the standby does not hold
        self.links, self.set_clocks = {}, {}
        self.facts |= {"fences": [], "split": [], "lost": [], "promotions": [], "clocks": []}

    def has_fault(self, name, node=None):
        return any(spec["fault"] == name and node in (None, spec.get("node")) for spec in self.script["faults"])

    # ---- its life ----

    def settings(self):
        self.take_cluster()
        self.database = self.cluster.create_database()
        return {"store.commit_timeout": f"{int(COMMIT_TIMEOUT * 1000)}ms",
                "webhook.allow_networks": "127.0.0.0/8,10.200.0.0/16"}

    @classmethod
    def take_cluster(cls):
        """Uses the servers of the last run if they are well, new ones otherwise."""
        try:
            if cls.cluster:
                cls.cluster.primary.wait_for_standbys()
                return
        except (Failed, subprocess.TimeoutExpired):
            cls.drop_cluster()
        if cls.machine is None and network.available():
            with contextlib.suppress(subprocess.CalledProcessError):  # another run makes one at the same time
                cls.machine = network.Machine()
        addresses = ["127.0.0.1"] + ([cls.machine.store_here] if cls.machine else [])
        cls.cluster = Servers(standbys=1, addresses=addresses)
        cls.cluster.start()

    @classmethod
    def drop_cluster(cls):
        cluster, cls.cluster = cls.cluster, None
        cluster.close()

    def is_isolated(self, number):
        """Returns whether the node runs in a network namespace of its own."""
        return self.machine and number == 1 and self.has_fault("nodecutoff")

    def add_nodes(self):
        for number in range(self.script["nodes"]):
            options = {"address": self.machine.there, "wrap": self.machine.wrap()} if self.is_isolated(number) else {}
            if self.has_fault("clockapart", number):
                directory = f"{self.directory}/clock{number}"
                os.makedirs(directory)
                self.set_clocks[number] = SetClock(directory)
                options["environment"] = self.set_clocks[number].environment
            self.deployment.add(settings={"store.url": self.url_for(number)}, **options)

    def url_for(self, number):
        """Returns the store's address for a node: through links of its own if a fault needs them."""
        address = self.machine.store_here if self.is_isolated(number) else "127.0.0.1"
        if not self.has_fault("storelink", number):
            return self.cluster.url(self.database, address, connect_timeout=2)
        self.links[number] = [Link(("127.0.0.1", server.port), address) for server in self.cluster.servers]
        hosts = ",".join(f"{address}:{link.port}" for link in self.links[number])
        return f"postgresql://constancia@{hosts}/{self.database}?target_session_attrs=read-write&connect_timeout=2"

    def receiver_address(self):
        return self.machine.here if self.is_isolated(1) else super().receiver_address()

    def note_end(self, node, status):
        """A node that starts while no server accepts writes ends, and is started again, as by a service manager."""
        if status == START_FAILED and UNAVAILABLE in node.log_tail(1):
            self.bidden_ends.append({"process": str(node), "status": status, "log": node.log_tail(1)})
        else:
            super().note_end(node, status)

    def heal(self):
        """Blocks until the primary has its standby and all nodes are ready."""
        self.join_links()
        self.repair_servers()
        super().heal()

    def close(self):
        super().close()
        for links in self.links.values():
            for link in links:
                link.close()
        if self.machine:
            self.machine.join()
        if not self.database or not self.cluster:
            return
        try:
            self.repair_servers()
            self.cluster.drop_database(self.database)
        except (Failed, OSError, subprocess.SubprocessError):
            self.drop_cluster()

    def join_links(self):
        for links in self.links.values():
            for link in links:
                link.join()
        if self.machine:
            self.machine.join()
        for number in list(self.set_clocks):
            self.set_clock(number, 0)

    # ---- servers: what is so ----

    @property
    def primary(self):
        return self.cluster.primary

    @property
    def standby(self):
        """Returns the standby that could be promoted, running or not; None: there is none."""
        return next((server for server in self.cluster.standbys if server not in self.retired), None)

    def usable(self, server):
        """Returns whether it can be asked."""
        return server is not None and server.alive() and server not in self.frozen

    def can_confirm(self):
        """Returns whether a commit may be confirmed by a standby, now or soon."""
        return self.usable(self.primary) and self.usable(self.standby) and not self.cut

    def open_interval(self, name, start=None):
        self.facts[name].append([self.clock() if start is None else start, FOREVER])

    def end_interval(self, name):
        if self.facts[name] and self.facts[name][-1][1] == FOREVER:
            self.facts[name][-1][1] = self.clock()

    @contextlib.contextmanager
    def changing(self):
        """Surrounds every change: a time without a standby ends before it, and begins, if there is none, after."""
        self.end_interval("fences")
        try:
            yield
        finally:
            if not self.can_confirm():
                self.open_interval("fences")

    def note_unheld(self):
        """Commits may become visible now that the standby does not hold."""
        if self.unheld is None:
            self.unheld = self.clock()

    def check_held(self):
        """Notes if the standby holds everything that is visible."""
        if self.unheld is None or self.unnamed is self.primary or not self.can_confirm():
            return
        with contextlib.suppress(Failed):
            position = self.primary.query("SELECT pg_current_wal_lsn()")
            if self.primary.number("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND "
                                   f"flush_lsn >= '{position}'"):
                self.unheld = None

    # ---- servers: changes ----

    def kill_server(self, server):
        with self.changing():
            server.kill()
            self.frozen.discard(server)
            if self.stalled_receiver and self.stalled_receiver[0] is server:
                self.cut = self.stalled_receiver = None

    def start_server(self, server):
        if server in self.retired or server.alive():
            return
        with self.changing():
            if server is self.primary:
                self.note_unheld()  # what it had written is visible after recovery
            server.start()
        self.check_held()

    def freeze_server(self, server):
        if not self.usable(server):
            return
        with self.changing():
            stopped = server._signal_all(signal.SIGSTOP) | {server.process.pid}
            eventually(lambda: all(state_of(one) in "TtZX" for one in stopped), "all its processes have stopped")
            self.frozen.add(server)

    def thaw_server(self, server):
        with self.changing():
            if server.alive():
                server.thaw()
            self.frozen.discard(server)

    def cut_replication(self, how):
        """Refuses the standby, or stops its receiver so that its connection says nothing any more."""
        if not self.can_confirm():
            return
        with self.changing():
            if how == "stall":
                receiver = self.standby.query("SELECT pid FROM pg_stat_wal_receiver")
                if not receiver:
                    return
                os.kill(int(receiver), signal.SIGSTOP)
                eventually(lambda: state_of(receiver) in "TtZX", "the receiver has stopped")
                self.stalled_receiver = self.standby, int(receiver)
                self.cut = state_of(receiver) in ("T", "t")
            else:
                self.set_rules(SHUT)
                eventually(lambda: self.primary.number(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_replication") == 0, "no standby is connected")
                self.cut = True

    def join_replication(self):
        with self.changing():
            if self.stalled_receiver:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.stalled_receiver[1], signal.SIGCONT)
            elif self.cut:
                self.set_rules(OPEN)
            self.cut = self.stalled_receiver = None

    def set_rules(self, replication):
        """Blocks until every server that can be asked decides by the new rules; a frozen one may do so later."""
        self.cluster.write_rules(replication)
        for server in filter(self.usable, self.cluster.servers):
            before = server.query("SELECT clock_timestamp()")
            server.query("SELECT pg_reload_conf()")
            eventually(lambda: server.query(f"SELECT pg_conf_load_time() > '{before}'") == "t", "the rules are read")

    def promote(self, kill):
        """Promotes the standby. The old primary is killed before, or lives on, until `retire`. Returns it; None:
        there is no standby."""
        chosen, old = self.standby, self.primary
        if chosen is None:
            return None
        self.check_held()
        if kill:
            self.kill_server(old)
        if self.stalled_receiver:
            self.join_replication()  # a promotion waits until the receiver ends
        self.thaw_server(chosen)
        self.start_server(chosen)
        if not kill:
            self.open_interval("split")
        self.facts["promotions"].append(self.clock())
        with self.changing():
            chosen.promote()
            self.cluster.primary = chosen
            self.retired.add(old)
        if self.unheld is not None:
            self.open_interval("lost", self.unheld)
            self.unheld = None
            if kill:
                self.end_interval("lost")
        return old

    def rebuild(self, server):
        """Makes a retired primary a standby."""
        if server not in self.retired:
            return
        self.kill_server(server)
        for name in ("split", "lost"):
            self.end_interval(name)
        if not self.usable(self.primary):
            return
        self.join_replication()
        with self.changing():
            self.cluster.rebuild(server)
            self.retired.discard(server)

    def repair_servers(self):
        for server in self.frozen.copy():
            self.thaw_server(server)
        self.join_replication()
        self.start_server(self.primary)
        for server in self.cluster.standbys:
            self.rebuild(server)
            self.start_server(server)
            self.resume_replay(server)
        self.name_standbys(self.primary, True)
        self.primary.wait_for_standbys()
        self.check_held()

    def resume_replay(self, server):
        if self.usable(server) and server is self.standby:
            server.query("ALTER SYSTEM RESET recovery_min_apply_delay; SELECT pg_reload_conf(); "
                         "SELECT pg_wal_replay_resume()")

    def name_standbys(self, server, whether):
        """Lets commits of the primary wait for its standbys, as they do otherwise, or not."""
        if self.usable(server):
            change = "RESET synchronous_standby_names" if whether else "SET synchronous_standby_names = ''"
            server.query(f"ALTER SYSTEM {change}; SELECT pg_reload_conf()")
            self.unnamed = None if whether else server

    # ---- nodes ----

    def set_clock(self, number, behind):
        for one in self.facts["clocks"]:
            if one[0] == number and one[3] == FOREVER:
                one[3] = self.clock()
        self.set_clocks[number].set(behind)
        if behind:
            self.facts["clock_moved"] = True
            time.sleep(0.01)  # what read the clock before has used it
            self.facts["clocks"].append([number, behind, self.clock(), FOREVER])
