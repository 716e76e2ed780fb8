"""A service on a machine whose power is cut: it, and the commands that run alongside it, on a place of
`forgetting.py`."""

import os
import subprocess
import threading

import forgetting
from service import BINARY, NotStarted, Refused, Service
from program import answer, flags, kill_groups  # where service.py finds it


def beside(data):
    """Contents are in the data directory."""
    del data
    return {}


def apart(directory):
    """They are on another file system, to which nothing happens, and whose syncs do nothing for the
    data."""
    return lambda data: {"content.url": f"file:{directory}/{data}"}


def in_s3(server):
    """They are in an S3 service (s3_server.Server), on a machine that keeps its power."""
    return lambda data: {"content.url": server.url(data),
                         "content.access_key": server.access_key,
                         "content.secret_key": server.secret_key,
                         "content.allow_networks": "127.0.0.0/8"}


class Ended(Exception):
    """The power went before the command had ended."""


class Machine(Service):
    """`place.directory` holds the data; `logs` is a directory that no cut touches. `content`: where
    contents are, a function of the data directory's name that gives settings. `steps`: where it may
    be stopped."""

    def __init__(self, place, logs, settings=None, fault=None, data="data", content=beside,
                 steps=None):
        super().__init__(os.path.join(place.directory, data),
                         {**(settings or {}), **content(data)},
                         wrap=forgetting.wrap(fault, steps),
                         ready_file=os.path.join(logs, data + ".ready"))
        self.log = self.printed = os.path.join(logs, data + ".log")
        self.place, self.content = place, content
        self.lock = threading.Lock()
        self.commands = set()
        self.on = True  # what is acknowledged while it is on must be durable
        self.disk_failed = False  # what it refuses now, and how, counts for nothing

    def beside(self, *words, data=None):
        """An administration command, or one without a service."""
        data = data or self.data
        return [*self.wrap, BINARY, *map(str, words), "--data", data, "--json",
                *flags(self.content(os.path.basename(data)))]

    def start(self, seconds=120):
        self.on = True
        return super().start(seconds)

    def admin(self, *words, data=None):
        command = self.beside(*words, data=data)
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
        return answer(words, subprocess.CompletedProcess(command, process.returncode, out, told))

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
        kill_groups(running)
        forgetting.wait(running)
        self.process = None


__all__ = ["Ended", "Machine", "NotStarted", "Refused", "apart", "beside", "in_s3"]
