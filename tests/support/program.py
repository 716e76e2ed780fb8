"""The program as tests start it: a serving process, and commands."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from ports import reserve_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("CONSTANCIA", str(ROOT / "build" / "constancia"))
PATIENCE = 60  # seconds until a condition that must become true counts as failed
STOP_PATIENCE = 60


def copy_keys(data, to):
    """Copies the keys of a development service to another directory: nodes that share a store need the same
    keys. The log of signatures is not copied."""
    shutil.copytree(pathlib.Path(data, "signer"), pathlib.Path(to, "signer"), dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("signer.log"))


def eventually(question, what, patience=PATIENCE, pause=0.1):
    """Returns the first true answer. The question is asked a last time after the patience, however long the
    answer takes."""
    end = time.monotonic() + patience
    while True:
        asked = time.monotonic()
        answer = question()
        if answer:
            return answer
        assert asked < end, f"waited {patience} s in vain until {what}"
        time.sleep(pause)


class NotStarted(Exception):
    """The process exited, or did not become ready."""


class Refused(Exception):
    """An administration command failed."""

    def __init__(self, what, done=None):
        super().__init__(f"{what}: exit {done.returncode}: {done.stderr.strip()[-500:]} "
                         f"{done.stdout.strip()[-500:]}" if done else what)
        self.exit = done.returncode if done else None
        self.done = done


def clean_environment(more=None):
    """Returns our environment without settings of the program, and without the settings of an installation on this
    machine. Libraries preloaded here are kept after those
    of `more`, for a clock moved for all programs (tests/clock)."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("CONSTANCIA")}
    both = {**kept, "CONSTANCIA_CONFIG": "", **(more or {})}
    if preloaded := [given["LD_PRELOAD"] for given in (more or {}, kept) if given.get("LD_PRELOAD")]:
        both["LD_PRELOAD"] = ":".join(preloaded)
    return both


def flags(settings):
    return [f"--set={name}={value}" for name, value in settings.items()]


def sanitized():
    """Returns whether the program is built with a sanitizer."""
    binary = pathlib.Path(BINARY).read_bytes()
    return b"__asan_init" in binary or b"__tsan_init" in binary


def counts_coverage():
    """Returns whether the program is built with coverage counters, which it writes at exit."""
    return b".gcda" in pathlib.Path(BINARY).read_bytes()


def run(command, environment=None, timeout=600, **more):
    """Runs a command to its end."""
    return subprocess.run(list(map(str, command)), env=clean_environment(environment),
                          capture_output=True, text=True, timeout=timeout, check=False, **more)


def answer(words, done):
    """Returns the output of a command with --json."""
    if done.returncode:
        raise Refused(" ".join(map(str, words)), done)
    return json.loads(done.stdout)


class Program:
    """A serving process that exits with the process that started it. `settings` also apply to the commands;
    `wrap` is a prefix of its command, such as `ip netns exec`. Its standard error goes to `log`."""

    restore_signals = True  # whether to restore the signals that Python ignores

    def __init__(self, log, settings, wrap=(), environment=None, binary=BINARY):
        self.log = self.printed = log
        self.settings = dict(settings)
        self.wrap = list(wrap)
        self.environment = environment or {}
        self.binary = str(binary)
        self.process = None

    # ---- for subclasses ----

    def serving(self):
        """Returns the arguments that make it serve."""
        raise NotImplementedError

    def is_ready(self):
        raise NotImplementedError

    def chosen(self):
        """Returns the arguments by which a command finds it and its store."""
        return flags(self.settings)

    # ---- its process ----

    def spawn(self):
        with open(self.log, "ab") as log, open(self.printed, "ab") as printed:
            self.process = subprocess.Popen(
                [*self.wrap, "setpriv", "--pdeathsig", "KILL", *self.command(*self.serving())],
                stdin=subprocess.DEVNULL, stdout=printed, stderr=log, start_new_session=True,
                env=clean_environment(self.environment), restore_signals=self.restore_signals)

    def wait_until(self, question, what, seconds=PATIENCE):
        """Blocks until the condition holds; raises NotStarted when the process exits."""
        end = time.monotonic() + seconds
        while True:
            asked = time.monotonic()
            if self.process.poll() is not None:
                raise NotStarted(f"{self} ended with {self.process.returncode}:\n{self.log_tail()}")
            if question():
                return self
            if asked >= end:
                raise NotStarted(f"{self}: waited {seconds} s in vain until {what}:\n"
                                 f"{self.log_tail()}")
            time.sleep(0.01)

    def start(self, seconds=PATIENCE):
        self.spawn()
        return self.wait_until(self.is_ready, "it is ready", seconds)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """Kills it with SIGKILL; the signing process exits with it."""
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def stop(self):
        """Stops it and returns the exit code, None if it was not started."""
        if self.process is None:
            return None
        if self.alive():
            self.process.terminate()
        try:
            return self.process.wait(STOP_PATIENCE)
        finally:
            self.kill()

    def children(self, name):
        """Returns its child processes of that name."""
        found = []
        for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # a thread or child that has exited since
                for child in (thread / "children").read_text(encoding="ascii").split():
                    comm = pathlib.Path(f"/proc/{child}/comm").read_text(encoding="ascii")
                    found += [int(child)] if comm == f"{name}\n" else []
        return found

    def signer(self):
        """Returns the signing process."""
        (signer,) = self.children("signer")
        return signer

    # ---- its log ----

    def log_tail(self, lines=15):
        with contextlib.suppress(FileNotFoundError):
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        return ""

    def log_lines(self):
        """Returns the complete lines."""
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def logged(self, wanted, count=1):
        """Returns the wanted lines once there are `count`: a separate thread writes them."""
        def look():
            found = [line for line in self.log_lines() if wanted(line)]
            return found if len(found) >= count else None
        return eventually(look, "the log reports it")

    # ---- commands ----

    def command(self, *words):
        return [self.binary, *map(str, words), *self.chosen()]

    def run(self, *words, timeout=600):
        return run(self.command(*words), timeout=timeout)

    def admin(self, *words):
        return answer(words, self.run(*words, "--json"))


class DevService(Program):
    """A `constancia dev` with a directory of its own."""

    awaits_clock = True  # whether it counts as ready only after the clock comparison, until which live registrations are refused

    def __init__(self, data, log, settings, ready_file=None, **more):
        super().__init__(log, settings, **more)
        self.data = data
        self.port = reserve_port()
        self.ready_file = ready_file or f"{data}.ready"
        self.ready = None  # content of the ready file

    def __repr__(self):
        return f"<dev {self.data}>"

    def serving(self):
        return ["dev", "--listen", f"127.0.0.1:{self.port}", "--ready-file", self.ready_file]

    def chosen(self):
        return ["--data", str(self.data), *super().chosen()]

    def spawn(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.ready_file)
        super().spawn()

    def is_ready(self):
        with contextlib.suppress(FileNotFoundError, ValueError):
            with open(self.ready_file, encoding="utf-8") as file:
                self.ready = json.load(file)
                return not self.awaits_clock or not self.compares_clock()
        return False

    def compares_clock(self):
        """Returns whether its clock is still being compared with a timestamp. False if its operator's listener
        is unreachable from here, and for programs of 0.1.0, which compare nothing."""
        if "admin_url" not in self.ready:
            return False
        try:
            with urllib.request.urlopen(self.ready["admin_url"] + "/readyz", timeout=PATIENCE) as answer:
                return "is being compared" in answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return "is being compared" in refusal.read().decode()
        except OSError:
            return False

    def ask_socket(self, operation, **arguments):
        """Runs an administration operation without the cost of a command."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(os.path.join(self.data, "admin.sock"))
            request = json.dumps({"arguments": arguments, "operation": operation})
            connection.sendall(request.encode() + b"\n")
            told = json.loads(connection.makefile().readline())
        if "result" not in told:
            raise Refused(f"{operation}: {told}")
        return told["result"]


def kill_groups(processes):
    """Kills each process group with SIGKILL."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
