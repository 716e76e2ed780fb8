"""Containers without an engine: runs the processes that a composition or manifest describes on this machine.

Each container has a loopback address of its own, so that the ports are unchanged. In its command, environment and
mounted text files, the paths of mounts become paths of a scratch directory, names of hosts become addresses, and
0.0.0.0 and 127.0.0.1 become its own address; `replace` has further patterns with their replacements. What an engine
alone does is not shown: the read-only root, users, capabilities and networks.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import postgres
from program import BINARY, PATIENCE, ROOT, clean_environment

STOP_PATIENCE = 60
BINARY_PATH = os.path.abspath(BINARY)


def image():
    """Returns what the last stage of the Containerfile sets: entry point, command, environment and health check."""
    text = re.sub(r"\\\n", " ", (ROOT / "Containerfile").read_text())
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    last = max(number for number, (name, _) in enumerate(lines) if name == "FROM")
    found = {"environment": {}}
    for name, rest in lines[last:]:
        if name in ("ENTRYPOINT", "CMD"):
            found[name.lower()] = json.loads(rest)
        elif name == "ENV":
            key, value = rest.split("=", 1)
            found["environment"][key] = value
        elif name == "HEALTHCHECK":
            found["healthcheck"] = json.loads(rest[rest.index("CMD ") + 4:])
        elif name == "USER":
            found["user"] = rest
    return found


class Addresses:
    """Loopback addresses of a test, one for each name."""

    def __init__(self):
        number = os.getpid()
        self.network = f"127.{100 + number // 256 % 100}.{number % 256}"
        self.known = {}

    def of(self, name):
        return self.known.setdefault(name, f"{self.network}.{len(self.known) + 1}")


class Container:
    """A process with its mounts: {path in the container: path here}. Directories are shared, files are copied."""

    def __init__(self, name, place, addresses, *, command, environment, mounts, hosts=(), user=None, extra=None,
                 replace=()):
        self.name, self.address, self.place = name, addresses.of(name), pathlib.Path(place)
        self.addresses, self.hosts, self.user, self.process = addresses, dict(hosts), user, None
        self.place.mkdir(parents=True)
        self.log = self.place / "log"
        self.replace, self.paths = dict(replace), {}
        for number, (target, source) in enumerate(mounts.items()):
            self.paths[target] = str(source) if os.path.isdir(source) else str(self.place / f"f{number}")
        self.paths["/usr/bin/constancia"] = BINARY_PATH
        self.own(self.place)
        for target, source in mounts.items():
            if not os.path.isdir(source):
                self.copy(source, self.paths[target])
            else:
                self.own(source)
        self.command = [self.map(word) for word in command]
        mapped = {key: self.map(value) for key, value in environment.items()}
        path = f"{postgres.programs()}:{os.environ['PATH']}" if user == "postgres" else os.environ["PATH"]
        self.environment = {"HOME": str(self.place), **mapped, **(extra or {}), "PATH": path}
        if BINARY_PATH in self.command:  # else it would serve, and write, the data of this machine
            assert self.environment["CONSTANCIA_SERVICE_DATA_DIR"].startswith(tuple(self.paths.values()))

    def own(self, path):
        who = postgres.unprivileged() if self.user == "postgres" else None
        if who:
            os.chown(path, who.pw_uid, who.pw_gid)

    def copy(self, source, to):
        """Copies a text file with what it says of this container."""
        pathlib.Path(to).write_text(self.map(pathlib.Path(source).read_text()))
        shutil.copymode(source, to)
        self.own(to)

    def map(self, text):
        found = {re.escape(path): to for path, to in self.paths.items()}
        rules = [rf"(?<![\w/.-])(?P<path>{'|'.join(sorted(found, key=len, reverse=True))})(?![\w.-])",
                 r"(?P<own>\b(?:0\.0\.0\.0|127\.0\.0\.1)\b)"]
        if self.hosts:
            names = "|".join(map(re.escape, sorted(self.hosts, key=len, reverse=True)))
            rules.append(rf"(?:(?<=[@,/])(?P<host>{names})(?=[,/:])|(?<![\w/.-])(?P<named>{names})(?=:\d))")

        def put(match):
            if match["path"]:
                return self.paths[match["path"]]
            if match["own"]:
                return self.address
            return self.hosts[match["host"] or match["named"]]
        text = re.sub("|".join(rules), put, text)
        for old, new in self.replace.items():
            text = re.sub(old, new, text)
        return text

    # ---- running ----

    def wrapped(self, command):
        """Returns the command as the container's user; it ends with this process."""
        return postgres.as_server(command) if self.user == "postgres" else ["setpriv", "--pdeathsig", "KILL", *command]

    def start(self, command=None):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.wrapped(command or self.command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                env=clean_environment(self.environment), start_new_session=True)
        return self

    def run(self, command=None, mapped=False, code=0):
        """Runs a command in it to its end: its own, or another one. Returns the output."""
        words = [str(word) if mapped else self.map(str(word)) for word in command or []] or self.command
        done = subprocess.run(self.wrapped(words), env=clean_environment(self.environment), capture_output=True,
                              text=True, timeout=300, check=False, cwd="/")
        assert code is None or done.returncode == code, (self.name, words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def wait(self, question, what):
        """Blocks until the condition holds; a container that ended fails at once."""
        end = time.monotonic() + PATIENCE
        while not question():
            assert self.process.poll() is None, f"{self.name} ended: {self.tail()}"
            assert time.monotonic() < end, f"waited in vain until {self.name} {what}: {self.tail()}"
            time.sleep(0.05)
        return self

    def passes(self, command):
        return subprocess.run(self.wrapped([self.map(word) for word in command]), capture_output=True, check=False,
                              env=clean_environment(self.environment), timeout=PATIENCE, cwd="/").returncode == 0

    def stop(self, by="SIGTERM"):
        """Ends it as an engine does; returns its exit status."""
        if self.process is None:
            return None
        self.process.send_signal(signal.Signals[by])
        try:
            return self.process.wait(STOP_PATIENCE)
        finally:
            self.kill()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def tail(self):
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""
