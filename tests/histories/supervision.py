"""Starts and stops the nodes of a world as a service manager does, unless a fault holds them down, and records
processes that ended without an order."""

import contextlib
import os
import signal
import subprocess
import time

from program import STOP_PATIENCE

RESTART_PAUSE = 0.2  # until a node that ended without an order is started again


def blocks(process, number):
    """Returns whether a process blocks a signal: it takes it when it is ready to."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/status", encoding="ascii") as file:
        mask = next(line.split()[1] for line in file if line.startswith("SigBlk:"))
        return bool(int(mask, 16) >> number - 1 & 1)
    return False


class Supervision:
    """Part of a world. In one thread."""

    def __init__(self):
        self.ends, self.bidden_ends = [], []
        self.present = []  # faults

    def supervise(self, nodes):
        self.holders = {node: [] for node in nodes}
        self.excused = {node: {} for node in nodes}  # {Fault.bids: process}
        self.ordered = {node: None for node in nodes}  # a process that was ordered to stop
        self.restart_at = {node: 0.0 for node in nodes}

    def hold(self, node, fault):
        """Keeps a node from being started until each fault that holds it has released it."""
        self.holders[node].append(fault)

    def release(self, node, fault):
        if fault in self.holders[node]:
            self.holders[node].remove(fault)
        self.restart_at[node] = 0.0

    def is_held(self, node, besides=None):
        return any(holder is not besides for holder in self.holders[node])

    def spawn(self, node):
        node.spawn()
        self.excuse(node)

    def excuse(self, node):
        """Records what the present process of a node may do because of the faults that are present."""
        for fault in self.present:
            if fault.bids and node in fault.concerns(self):
                self.excused[node][fault.bids] = node.process

    def look_at_ends(self):
        """Notes processes that ended by themselves."""
        for node in self.nodes:
            self.excuse(node)
            if node.process is not None and node.process.poll() is not None:
                self.note_end(node, node.process.returncode)
                node.process = None
                self.restart_at[node] = time.monotonic() + RESTART_PAUSE
        return self.ends

    def note_end(self, node, status):
        if self.ordered[node] is node.process and status in (0, -signal.SIGTERM):  # the latter: while it started
            return
        kinds = {kind for kind, process in self.excused[node].items() if process is node.process}
        started = "start_failed" not in node.log_tail(5)
        bidden = "crash" in kinds or status > 0 and (
            "end" in kinds or self.disk.gave_up() or ("start" in kinds and not started))
        (self.bidden_ends if bidden else self.ends).append(
            {"process": str(node), "status": status, "log": node.log_tail(5),
             "faults": [fault.name for fault in self.present]})

    def keep_up(self):
        """Starts nodes that ended and that no fault holds, as a service manager does."""
        self.look_at_ends()
        if self.disk.gave_up():  # only a start of the machine helps
            self.cut_power(100, self.script["seed"])
        for node in self.nodes:
            if (not node.alive() and not self.is_held(node) and time.monotonic() >= self.restart_at[node]
                    and self.migrate()):
                self.spawn(node)

    def signal(self, node, number):
        if node.alive():
            os.kill(node.process.pid, number)

    def reload(self, node):
        """Has a node read its settings again, unless it is still starting: a service manager waits for it."""
        if node.alive() and blocks(node.process.pid, signal.SIGHUP):
            self.signal(node, signal.SIGHUP)

    def terminate(self, node):
        """Orders a node to stop, as a service manager does: what is frozen continues."""
        if node.alive():
            self.ordered[node] = node.process
            self.signal(node, signal.SIGTERM)
            os.killpg(node.process.pid, signal.SIGCONT)

    def await_stop(self, node):
        """Blocks until a node that was ordered to stop has ended."""
        end = time.monotonic() + STOP_PATIENCE
        while node.alive() and time.monotonic() < end:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(node.process.pid, signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                node.process.wait(0.1)
        if node.alive():
            self.ends.append({"process": str(node), "status": "does not stop", "log": node.log_tail(5),
                              "faults": [fault.name for fault in self.present]})
        else:
            self.expect_end(node, node.process.returncode)
        node.kill()

    def expect_end(self, node, status):
        if status != 0:
            self.note_end(node, status)
