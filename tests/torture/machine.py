"""A service on a machine whose power is cut: it, and the commands that run beside it, on a place of
`forgetting.py`."""

import json
import os
import subprocess
import threading

import forgetting
from service import BINARY, NotStarted, Refused, Service


def beside(data):
    """Contents are in the data directory."""
    del data
    return []


def apart(directory):
    """They are on another file system, to which nothing happens, and whose syncs do nothing for the
    data."""
    return lambda data: [f"content.url=file:{directory}/{data}"]


def in_s3(server):
    """They are in an S3 service (s3_server.Server), on a machine that goes on."""
    return lambda data: [f"content.url={server.url(data)}",
                         f"content.access_key={server.access_key}",
                         f"content.secret_key={server.secret_key}",
                         "content.allow_networks=127.0.0.0/8"]


class Ended(Exception):
    """The power went before the command had ended."""


class Machine(Service):
    """`place.directory` holds the data; `logs` is a directory that no cut touches. `content`: where
    contents are, a function of the data directory's name that gives settings."""

    def __init__(self, place, logs, settings=(), fault=None, data="data", content=beside):
        super().__init__(os.path.join(place.directory, data), settings,
                         forgetting.wrap(fault))
        self.place, self.content = place, content
        self.settings += content(data)
        self.log = os.path.join(logs, data + ".log")
        self.ready_file = os.path.join(logs, data + ".ready")
        self.lock = threading.Lock()
        self.commands = set()
        self.on = True  # what is told while it is has to last
        self.disk_failed = False  # what it refuses now, and how, counts for nothing

    def command(self, *words, data=None):
        """An administration command, or one without a service."""
        data = data or self.data
        return [*self.wrap, BINARY, *map(str, words), "--data", data, "--json",
                *("--set=" + setting for setting in self.content(os.path.basename(data)))]

    def start(self, seconds=120):
        self.on = True
        return super().start(seconds)

    def cli(self, *arguments, data=None):
        command = self.command(*arguments, data=data)
        with self.lock:
            if not self.on:
                raise Ended
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, start_new_session=True)
            self.commands.add(process)
        try:
            out, told = process.communicate(timeout=600)
        finally:
            with self.lock:
                self.commands.discard(process)
        if not self.on:
            raise Ended
        if process.returncode:
            raise Refused(f"{' '.join(map(str, arguments))}: exit {process.returncode}: "
                          f"{told.strip()[-500:]} {out.strip()[-500:]}")
        return json.loads(out)

    def running(self):
        return [process for process in (self.process, *self.commands) if process]

    def cut(self, percent, seed):
        with self.lock:
            self.on = False
            running = self.running()
        self.place.cut(percent, seed, running)
        self.process = None

    def end(self):
        """kill -9 of everything; nothing is forgotten."""
        with self.lock:
            self.on = False
            running = self.running()
        forgetting.kill(running)
        forgetting.wait(running)
        self.process = None


__all__ = ["Ended", "Machine", "NotStarted", "Refused", "apart", "beside", "in_s3"]
