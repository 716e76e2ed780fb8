"""A separate machine for a node: a network namespace with two links to this machine, one for the node's
clients and one for its store, so that the store can be cut off while the node remains reachable. Needs root
and iproute2."""

import atexit
import contextlib
import os
import random
import shutil
import socket
import subprocess


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=check)


def available():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    name = f"constancia-probe-{os.getpid()}"
    if ip("netns", "add", name, check=False).returncode:
        return False
    ip("netns", "del", name)
    return True


class Machine:
    def __init__(self):
        self._reserve()
        self.name = f"constancia-{self.number}"
        self.here, self.there = self._addresses(200)
        self.store_here, self.store_there = self._addresses(201)
        self.store_link = f"cst{self.number}s"
        self.store_network = self.store_here.rsplit(".", 1)[0] + ".0/30"
        atexit.register(self.close)
        try:
            ip("netns", "add", self.name)
            ip("-n", self.name, "link", "set", "lo", "up")
            self._link(f"cst{self.number}c", self.here, self.there)
            self._link(self.store_link, self.store_here, self.store_there)
            # While the link is down no other route may be used.
            ip("route", "add", "blackhole", self.store_network, "metric", "1000")
        except BaseException:
            self.close()
            raise

    def _reserve(self):
        """Reserves a number that no other run on this machine uses."""
        while True:
            self.number = random.SystemRandom().randrange(1, 250)
            self.reservation = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                self.reservation.bind(f"\0constancia-test-network-{self.number}")
                return
            self.reservation.close()

    def _addresses(self, second):
        network = f"10.{second}.{self.number}"
        return f"{network}.1", f"{network}.2"

    def _link(self, name, here, there):
        ip("link", "add", name, "type", "veth", "peer", "name", name + "p", "netns", self.name)
        ip("address", "add", here + "/30", "dev", name)
        ip("link", "set", name, "up")
        ip("-n", self.name, "address", "add", there + "/30", "dev", name + "p")
        ip("-n", self.name, "link", "set", name + "p", "up")

    def wrap(self):
        """Returns the prefix of a command that runs there."""
        return ["ip", "netns", "exec", self.name]

    def cut(self):
        """Drops all packets between the node and its store; neither side is notified."""
        ip("link", "set", self.store_link, "down")

    def join(self):
        ip("link", "set", self.store_link, "up")

    def close(self):
        atexit.unregister(self.close)
        ip("route", "del", "blackhole", self.store_network, "metric", "1000", check=False)
        ip("netns", "del", self.name, check=False)
        for link in (f"cst{self.number}c", self.store_link):
            ip("link", "del", link, check=False)  # removed with the namespace, possibly later
        self.reservation.close()
