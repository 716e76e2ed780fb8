"""Faults of what a process may use: memory, file descriptors, connections."""

import os
import resource
import socket

from fault import Fault, fault


class Limited(Fault):
    """A limit of a running process is lowered."""

    def limit(self, world, kind, value):
        """`value`: from the process's number to what is set."""
        self.process, self.kind = self.node(world).process, kind
        if self.node(world).alive():
            try:
                _, most = world.full_limit(self.process, kind)
                wanted = value(self.process.pid)
                resource.prlimit(self.process.pid, kind, (wanted if most < 0 else min(wanted, most), most))
            except OSError:  # it has just ended
                self.process = None

    def end(self, world):
        if self.process and self.process.poll() is None:
            resource.prlimit(self.process.pid, self.kind, world.full_limit(self.process, self.kind))


@fault
class FewDescriptors(Limited):
    """A node can open few files and connections more. A start then fails; a running node continues."""

    weight = 2
    bids = "start"

    @classmethod
    def draw(cls, chosen, script):
        return {**super().draw(chosen, script), "free": chosen.choice((-20, -3, 0, 0, 1, 2, 5))}

    def begin(self, world):
        self.limit(world, resource.RLIMIT_NOFILE,
                   lambda pid: max(3, len(os.listdir(f"/proc/{pid}/fd")) + self.spec["free"]))


@fault
class LittleMemory(Limited):
    """A node can allocate little memory more. What it then does is its own decision: it may also end."""

    weight = 2
    bids = "crash"

    @classmethod
    def draw(cls, chosen, script):
        return {**super().draw(chosen, script), "kind": chosen.choice(("data", "address")),
                "free": chosen.choice((0, 0, 20_000, 300_000, 2_000_000, 10_000_000))}

    def begin(self, world):
        name, kind = {"data": ("VmData", resource.RLIMIT_DATA),
                      "address": ("VmSize", resource.RLIMIT_AS)}[self.spec["kind"]]
        self.limit(world, kind, lambda pid: status_of(pid, name) + self.spec["free"])


def status_of(pid, name):
    """Returns a size of a process in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        sizes = dict(line.split(":", 1) for line in file)
    return int(sizes.get(name, "0 kB").split()[0]) * 1024


@fault
class IdleConnections(Fault):
    """Many clients connect and send nothing, or the beginning of a request."""

    PER_STEP = 50

    @classmethod
    def draw(cls, chosen, script):
        return {**super().draw(chosen, script), "connections": chosen.choice((50, 300, 900))}

    def begin(self, world):
        self.open = []

    def step(self, world, elapsed):
        node = self.node(world)
        for _ in range(min(self.PER_STEP, self.spec["connections"] - len(self.open))):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex((node.address, node.port))
            self.open.append(connection)
        for connection in self.open[::7]:
            try:
                connection.send(b"G")
            except OSError:
                continue

    def end(self, world):
        for connection in self.open:
            connection.close()
