"""Faults of a run. Each is a class with a `begin` and an `end`, drawn from a seed, which its specification in a
script holds: {"fault": NAME, "at": seconds, "for": seconds, …}."""

import os
import signal

FAULTS = {}


def fault(kind):
    """Registers a class by its name in lower case."""
    kind.name = kind.__name__.lower()
    FAULTS[kind.name] = kind
    return kind


class Fault:
    """`stores`: where it can happen; None: everywhere. `weight`: how often it is drawn."""

    stores = None
    weight = 1

    def __init__(self, spec):
        self.spec, self.at, self.seconds = spec, spec["at"], spec["for"]
        self.begun = None

    @classmethod
    def draw(cls, chosen, script):
        """Returns the members of a specification beside its name, time and duration."""
        return {"node": chosen.randrange(script["nodes"])}

    def node(self, world):
        return world.nodes[self.spec["node"] % len(world.nodes)]

    def begin(self, world):
        raise NotImplementedError

    def end(self, world):
        raise NotImplementedError


def handles(process, number):
    """Returns whether a process catches a signal by now, or waits for it."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigCgt:", "SigBlk:"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


def stop(world, node):
    """Stops a node as a service manager does; one that is frozen continues. One that has only just been started
    may be ended by the signal itself."""
    if node.alive():
        os.kill(node.process.pid, signal.SIGCONT)
        early = not handles(node.process, signal.SIGTERM)
        status = node.stop()
        if not early or status != -signal.SIGTERM:
            world.expect_end(node, status)
    node.process = None


@fault
class Kill(Fault):
    """A node is killed, and started again after the time."""

    weight = 4

    def begin(self, world):
        self.node(world).kill()

    def end(self, world):
        if not self.node(world).alive():
            self.node(world).spawn()


@fault
class Restart(Kill):
    """A node is stopped as a service manager stops it."""

    def begin(self, world):
        stop(world, self.node(world))


@fault
class Freeze(Fault):
    """A node stands still, its connections stay open."""

    weight = 2

    def begin(self, world):
        self.signalled = self.node(world).process if self.node(world).alive() else None
        if self.signalled:
            os.kill(self.signalled.pid, signal.SIGSTOP)

    def end(self, world):
        if self.signalled and self.signalled.poll() is None:
            os.kill(self.signalled.pid, signal.SIGCONT)


@fault
class Reload(Fault):
    """The settings are read again."""

    def begin(self, world):
        if self.node(world).alive():
            os.kill(self.node(world).process.pid, signal.SIGHUP)

    def end(self, world):
        pass


def make(spec):
    return FAULTS[spec["fault"]](spec)


def draw(chosen, script, seconds):
    """Returns a random list of specifications for a run of about that many seconds."""
    kinds = [kind for kind in FAULTS.values() if not kind.stores or script["store"] in kind.stores]
    drawn = []
    for _ in range(chosen.choice((0, 1, 2, 3, 5, 8))):
        kind = chosen.choices(kinds, [one.weight for one in kinds])[0]
        drawn.append({"fault": kind.name, "at": round(chosen.uniform(0, seconds), 3),
                      "for": round(chosen.choice((0.05, 0.3, 1, 3)) * chosen.uniform(0.5, 1.5), 3),
                      **kind.draw(chosen, script)})
    return sorted(drawn, key=lambda one: one["at"])
