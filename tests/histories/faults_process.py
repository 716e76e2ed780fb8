"""Faults of processes: of a node, its signing process and its helpers."""

import os
import signal

from fault import Fault, Trigger, fault

STEPS = ("moving", "moved", "synced", "checking", "reset", "spilling", "committing", "committed")
HELPERS = ("renderer", "trusted-list")


@fault
class Kill(Fault):
    """A node is killed, and started again after the time."""

    weight = 4

    def begin(self, world):
        world.hold(self.node(world), self)
        self.node(world).kill()

    def end(self, world):
        world.release(self.node(world), self)


@fault
class KillAtStep(Trigger):
    """A node is killed at a step of the handling of the embedded store's log."""

    weight = 2
    stores = ("sqlite",)
    preloads = ("log_steps",)

    @classmethod
    def draw(cls, chosen, script):
        return {**super().draw(chosen, script), **draw_step(chosen)}

    def arm(self, world):
        world.log_steps[self.node(world)].stop_at(self.spec["step"], self.spec["bytes"])

    def has_come(self, world):
        return world.log_steps[self.node(world)].reached() == self.spec["step"]

    def happen(self, world):
        world.hold(self.node(world), self)
        self.node(world).kill()
        world.log_steps[self.node(world)].go_on()

    def end(self, world):
        world.log_steps[self.node(world)].go_on()
        world.release(self.node(world), self)


def draw_step(chosen):
    step = chosen.choice(STEPS)
    return {"step": step, "bytes": chosen.choice((0, 0, 5000, 60_000)) if step != "committed" else 0}


@fault
class Crashes(Fault):
    """A node is killed many times in a row, most often while it starts. `alive`: seconds between each start and
    kill."""

    weight = 2
    lengths = (3,)

    @classmethod
    def draw(cls, chosen, script):
        most = chosen.choice((0.02, 0.1, 0.4, 1))
        return {**super().draw(chosen, script),
                "alive": [round(chosen.uniform(0, most), 4) for _ in range(chosen.choice((1, 2, 5, 15)))]}

    def begin(self, world):
        self.left, self.until = list(self.spec["alive"]), None
        world.hold(self.node(world), self)
        self.node(world).kill()

    def step(self, world, elapsed):
        node = self.node(world)
        if self.until is None and self.left and not node.alive() and not world.is_held(node, besides=self):
            world.spawn(node)
            self.until = elapsed + self.left.pop(0)
        elif self.until is not None and elapsed >= self.until:
            node.kill()
            self.until = None

    def is_over(self, elapsed):
        return elapsed >= self.seconds or (not self.left and self.until is None)

    def end(self, world):
        world.release(self.node(world), self)


@fault
class Restart(Fault):
    """A node is stopped as a service manager stops it, and started again after the time."""

    def begin(self, world):
        node = self.node(world)
        world.hold(node, self)
        self.stopped = node.process if node.alive() else None
        world.terminate(node)

    def end(self, world):
        if self.stopped and self.node(world).process is self.stopped:
            world.await_stop(self.node(world))
        world.release(self.node(world), self)


@fault
class Freeze(Fault):
    """A node is frozen, its connections stay open."""

    weight = 2

    def begin(self, world):
        self.signalled = self.node(world).process if self.node(world).alive() else None
        if self.signalled:
            os.kill(self.signalled.pid, signal.SIGSTOP)

    def end(self, world):
        if self.signalled and self.signalled.poll() is None:
            os.kill(self.signalled.pid, signal.SIGCONT)


class OfHelpers(Fault):
    """Signals processes that a node started, found by their names."""

    def send(self, world, names, number):
        """Returns the processes that it was sent to."""
        node = self.node(world)
        found = []
        for name in names if node.alive() else ():
            try:
                found += node.children(name)
            except OSError:  # the node has just ended
                break
        return [process for process in found if send(process, number)]


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


@fault
class KillSigner(OfHelpers):
    """The signing process is killed. The node ends, since it cannot continue without."""

    bids = "end"

    def begin(self, world):
        self.send(world, ("signer",), signal.SIGKILL)


@fault
class FreezeSigner(OfHelpers):
    """The signing process is frozen. After 20 seconds, which other faults may add up to, the node ends."""

    bids = "end"

    def begin(self, world):
        self.frozen = self.send(world, ("signer",), signal.SIGSTOP)

    def end(self, world):
        for process in self.frozen:
            send(process, signal.SIGCONT)


@fault
class KillHelpers(OfHelpers):
    """Every process that draws a report or reads a trusted list is killed."""

    EVERY = 0.02
    bids = "start"  # which tries the renderer

    def begin(self, world):
        self.next = 0.0

    def step(self, world, elapsed):
        if elapsed >= self.next:
            self.next = elapsed + self.EVERY
            self.send(world, HELPERS, signal.SIGKILL)


@fault
class Reload(Fault):
    """A node reads its settings again."""

    def begin(self, world):
        world.reload(self.node(world))


@fault
class Reconfigure(Fault):
    """A node reads settings that have changed, and after the time the former ones. Wrong ones change nothing, but
    no node starts with them."""

    bids = "start"

    CHANGES = (
        {"seal.interval": "300ms"}, {"seal.interval": "1s"}, {"seal.interval": "30s"}, {"log.level": "debug"},
        {"log.level": "warning"}, {"log.requests": "all"}, {"http.transfer_timeout": "2s"},
        {"http.connections_per_address": "300"}, {"certification.give_up_after": "12h"}, {"evidence.interval": "1s"},
        {"seal.interval": "soon"}, {"tsa.url": "nowhere"},
    )

    @classmethod
    def draw(cls, chosen, script):
        changed = {}
        for one in chosen.sample(cls.CHANGES, chosen.choice((1, 2))):
            changed |= one
        return {**super().draw(chosen, script), "changed": changed}

    def begin(self, world):
        world.reconfigure(self.node(world), self, self.spec["changed"])

    def end(self, world):
        world.reconfigure(self.node(world), self, {})


@fault
class Upgrade(Fault):
    """All nodes are stopped, the store is migrated, and each starts with the current program. Once."""

    weight = 30
    lengths = (0.05,)

    @classmethod
    def possible(cls, script):
        return super().possible(script) and script.get("previous") is not None

    def begin(self, world):
        self.stopped = []
        for node in world.nodes:
            world.hold(node, self)
            if node.alive():
                self.stopped.append((node, node.process))
            world.terminate(node)

    def end(self, world):
        for node, process in self.stopped:
            if node.process is process:
                world.await_stop(node)
        world.upgrade()
        for node in world.nodes:
            world.release(node, self)
