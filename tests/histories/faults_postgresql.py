"""Faults of a PostgreSQL primary, its standby, the nodes that share it, and what connects them. Each may find the
servers as another fault left them: it then does what is left to do, or nothing."""

import contextlib
import time

from fault import Fault, fault
from postgres import Failed
from world_postgresql import COMMIT_TIMEOUT

POSTGRESQL = ("postgresql",)


def wait_briefly(question, seconds):
    """Returns whether it came true."""
    end = time.monotonic() + seconds
    while not question():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class ServerFault(Fault):
    stores = POSTGRESQL

    @classmethod
    def draw(cls, chosen, script):
        return {}


@fault
class PrimaryKilled(ServerFault):
    """The primary crashes and returns as the primary that it was."""

    weight = 2

    def begin(self, world):
        self.server = world.primary
        world.kill_server(self.server)

    def end(self, world):
        if self.server is world.primary:
            world.start_server(self.server)


@fault
class PrimaryFrozen(ServerFault):
    """The primary is frozen, its connections stay open."""

    def begin(self, world):
        self.server = world.primary
        world.freeze_server(self.server)

    def end(self, world):
        if self.server in world.frozen:
            world.thaw_server(self.server)


@fault
class PrimaryReplaced(ServerFault):
    """The primary is killed, the standby promoted; later the old primary becomes its standby."""

    weight = 2

    def begin(self, world):
        self.old = world.promote(kill=True)

    def end(self, world):
        if self.old:
            world.rebuild(self.old)


@fault
class PrimaryDemoted(ServerFault):
    """The standby is promoted, and the old primary lives on: it was frozen in the meantime, was cut off, or
    noticed nothing."""

    weight = 2

    @classmethod
    def draw(cls, chosen, script):
        return {"how": chosen.choice(("frozen", "cut", "untouched"))}

    def begin(self, world):
        old = world.primary
        if world.standby and self.spec["how"] == "frozen":
            world.freeze_server(old)
        elif world.standby and self.spec["how"] == "cut":
            world.cut_replication("refuse")
        self.old = world.promote(kill=False)
        if self.old in world.frozen:
            world.thaw_server(self.old)

    def end(self, world):
        if self.old:
            world.rebuild(self.old)


@fault
class StandbyKilled(ServerFault):
    """The standby is killed, and started again after the time."""

    weight = 2

    def begin(self, world):
        self.server = world.standby
        if self.server:
            world.kill_server(self.server)

    def end(self, world):
        if self.server:
            world.start_server(self.server)


@fault
class StandbyFrozen(ServerFault):
    """The standby is frozen, at times for longer than a commit may wait."""

    weight = 2

    def begin(self, world):
        self.server = world.standby
        world.freeze_server(self.server)

    def end(self, world):
        if self.server in world.frozen:
            world.thaw_server(self.server)


@fault
class StandbyLags(ServerFault):
    """The standby receives everything and replays nothing, or replays it later. Commits do not wait for that."""

    @classmethod
    def draw(cls, chosen, script):
        return {"how": chosen.choice(("paused", "delayed"))}

    def begin(self, world):
        self.server = world.standby
        if world.usable(self.server):
            self.server.query("SELECT pg_wal_replay_pause()" if self.spec["how"] == "paused" else
                              "ALTER SYSTEM SET recovery_min_apply_delay = '2s'; SELECT pg_reload_conf()")

    def end(self, world):
        world.resume_replay(self.server)


@fault
class ReplicationCut(ServerFault):
    """The standby is disconnected and refused, or its receiver hears nothing any more."""

    @classmethod
    def draw(cls, chosen, script):
        return {"how": chosen.choice(("refuse", "stall"))}

    def begin(self, world):
        world.cut_replication(self.spec["how"])

    def end(self, world):
        world.join_replication()


@fault
class StandbysUnnamed(ServerFault):
    """The primary's configuration names no standby any more, as a cluster manager leaves it that prefers to continue
    alone. Commits wait for none then; nodes must notice."""

    @classmethod
    def draw(cls, chosen, script):
        return {"kill": chosen.random() < 0.5}

    def begin(self, world):
        self.server = world.primary
        if self.spec["kill"] and world.standby:
            world.kill_server(world.standby)
        if world.usable(self.server):
            world.note_unheld()
            world.name_standbys(self.server, False)

    def end(self, world):
        if self.server is world.primary:
            world.name_standbys(self.server, True)
        if self.spec["kill"] and world.standby:
            world.start_server(world.standby)
        world.check_held()


@fault
class CommitsCancelled(ServerFault):
    """While the standby is frozen, waits for it are cancelled: commits become visible that it does not hold.
    Then it continues, or is promoted without them."""

    weight = 2

    @classmethod
    def draw(cls, chosen, script):
        return {"rounds": chosen.randint(1, 4), "then": chosen.choice(("continue", "promote", "lose and promote")),
                "terminate": chosen.random() < 0.5}

    def begin(self, world):
        self.server, self.old = world.standby, None
        world.freeze_server(self.server)
        for _ in range(self.spec["rounds"]):
            if not world.usable(world.primary) or not wait_briefly(
                    lambda: world.primary.commits_waiting() > 0, COMMIT_TIMEOUT):
                break
            world.note_unheld()
            world.primary.cancel_commits()
            if self.spec["terminate"]:
                world.primary.terminate_backends(world.database)

    def end(self, world):
        if self.server not in world.frozen:
            return
        if self.spec["then"] == "continue":
            world.thaw_server(self.server)
            return
        if self.spec["then"] == "lose and promote":
            world.kill_server(self.server)  # and with it what it was sent and has not read
        self.old = world.promote(kill=True)
        if self.old:
            world.rebuild(self.old)


@fault
class BackendsTerminated(ServerFault):
    """Waits are cancelled and connections ended while the standby is well."""

    @classmethod
    def draw(cls, chosen, script):
        return {"kinds": [chosen.random() < 0.6 for _ in range(chosen.randint(1, 8))]}

    def begin(self, world):
        for cancel in self.spec["kinds"]:
            if not world.usable(world.primary):
                return
            world.note_unheld()
            with contextlib.suppress(Failed):  # it may end us too
                if cancel:
                    world.primary.cancel_commits()
                else:
                    world.primary.terminate_backends(world.database)
            time.sleep(0.03)
        world.check_held()

    def end(self, world):
        world.check_held()


# ---- nodes, and what connects them with the store ----

@fault
class NodesKilled(Fault):
    """All nodes are killed at once."""

    stores = POSTGRESQL

    def begin(self, world):
        for node in world.nodes:
            world.hold(node, self)
            if node.alive():
                node.process.kill()
        for node in world.nodes:
            node.kill()

    def end(self, world):
        for node in world.nodes:
            world.release(node, self)


@fault
class RollingRestart(Fault):
    """One node after the other is stopped and started, each once the one before is ready or has had its time."""

    READY_SECONDS = 5
    stores = POSTGRESQL

    def begin(self, world):
        first = self.node(world)
        self.left = [first, *(node for node in world.nodes if node is not first)]
        self.stop(world)

    def stop(self, world):
        self.since = None  # when the present one was released
        world.hold(self.left[0], self)
        world.terminate(self.left[0])

    def step(self, world, elapsed):
        node = self.left[0]
        if self.since is None:
            if not node.alive():
                world.release(node, self)
                self.since = elapsed
        elif elapsed > self.since + self.READY_SECONDS or (node.alive() and node.is_ready()):
            self.left.pop(0)
            if self.left:
                self.stop(world)

    def is_over(self, elapsed):
        return not self.left

    def end(self, world):
        for node in self.left[:1]:
            if self.since is None:
                world.await_stop(node)
            world.release(node, self)


@fault
class StoreLink(Fault):
    """The connections between a node and its store are delayed, stall, end in one direction, or are cut."""

    stores, weight = POSTGRESQL, 3

    @classmethod
    def draw(cls, chosen, script):
        return {**super().draw(chosen, script), "delay": chosen.choice((0.002, 0.02, 0.2)), "how": chosen.choice(
            ("delay", "stall", "half to the server", "half to the node", "cut", "reset"))}

    def begin(self, world):
        for link in world.links[self.spec["node"]]:
            how = self.spec["how"]
            if how == "delay":
                link.delay = self.spec["delay"]
            elif how.startswith("half"):
                link.half_close(how == "half to the server")
            else:
                getattr(link, how)()

    def end(self, world):
        for link in world.links[self.spec["node"]]:
            link.join()


@fault
class NodeCutOff(Fault):
    """The second node's packets to and from the store are lost; its clients reach it. Only where network namespaces
    can be made."""

    stores = POSTGRESQL
    # Services on this machine are out of its reach.
    needs = {"authorities": (0,), "content": ("file",), "mail": (False,), "provider": (None,)}

    @classmethod
    def draw(cls, chosen, script):
        return {}

    def begin(self, world):
        if world.machine:
            world.machine.cut()

    def end(self, world):
        if world.machine:
            world.machine.join()


@fault
class ClockApart(Fault):
    """A node's clock differs from the other's and the store's, within seal.clock_bound (5 s) or beyond it."""

    stores = POSTGRESQL

    @classmethod
    def draw(cls, chosen, script):
        return {**super().draw(chosen, script), "behind": chosen.choice((-20, -9, -4, -2, 2, 4, 7, 20))}

    def begin(self, world):
        world.set_clock(self.spec["node"], self.spec["behind"])

    def end(self, world):
        world.set_clock(self.spec["node"], 0)
