"""Runs scripts in processes of their own, several at a time: each run has its own environment, threads and directory,
and ends with its process."""

import collections
import ctypes
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import shutil
import signal
import tempfile
import time
import traceback

import sizes
from history import violations
from program import BINARY
from run import Run
from world import World

RUN_SECONDS_MAX = 900  # after which a run counts as one that could not be done
END_SECONDS = 20  # how long a run may need to end its parts
PR_SET_PDEATHSIG = 1
WORLDS = {"sqlite": World}  # by the store
NODES = {"sqlite": 1}  # how many a script has by default
NOT_DONE = "not_done"  # in place of a rule's name: the run itself failed


def run_script(script, directory, program=BINARY):
    """Returns the history of one run. `directory` is created; its owner removes it."""
    os.makedirs(directory)
    os.chmod(directory, 0o755)
    sizes.use(script["sizes"])
    try:
        return Run(script, WORLDS[script["store"]](script, directory, program)).run()
    finally:
        sizes.use(None)


def counts_of(history):
    """Returns {kind: {status: operations}} and {fault: times}."""
    operations = collections.defaultdict(collections.Counter)
    for one in history.operations:
        operations[one.kind][str(one.status)] += 1
    return {kind: dict(many) for kind, many in operations.items()}, dict(
        collections.Counter(one.name for one in history.faults))


def checked(script, directory, program, kept=None):
    """Returns what a run showed. Its history is written to `kept` where it has violations."""
    start = time.monotonic()
    history = run_script(script, directory, program)
    ran = time.monotonic() - start
    found = violations(history)
    if found and kept:
        history.write(kept)
    operations, faults = counts_of(history)
    return {"violations": found, "operations": operations, "faults": faults, "error": None, "seconds": ran,
            "checked": time.monotonic() - start - ran}


def failed(error, seconds=0.0):
    return {"violations": [], "operations": {}, "faults": {}, "error": error, "seconds": seconds, "checked": 0.0}


def rules_of(result):
    """Returns the names of the rules that a run violated; NOT_DONE where the run itself failed."""
    return {NOT_DONE} if result["error"] else {text.partition(":")[0] for text in result["violations"]}


class Ended(BaseException):
    """The process was asked to end."""


def _end(*_):
    raise Ended


def _work(pipe, parent, work, arguments):
    """The process of one run. Its parts end with it, and it ends with the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    start = time.monotonic()
    try:
        if os.getppid() != parent:
            return
        result = work(*arguments)
    except Ended:
        return
    except BaseException:  # noqa: BLE001 - whatever it is, it is told
        result = failed(traceback.format_exc(), time.monotonic() - start)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pipe.send_bytes(json.dumps(result).encode())


class Workers:
    """At most `jobs` runs at a time. A context, at whose end no run and no file of one is left."""

    def __init__(self, jobs, work=checked):
        self.jobs, self.work = jobs, work
        self.running = {}  # pipe: (process, name, directory, end)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="constancia-histories-"))
        os.chmod(self.directory, 0o755)  # servers of other users have theirs in it
        self.started = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cancel()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def free(self):
        return len(self.running) < self.jobs

    def start(self, name, script, program=BINARY, kept=None):
        """Starts a run, whose result `wait` returns with its name."""
        self.started += 1
        directory = self.directory / str(self.started)
        context = multiprocessing.get_context("fork")
        pipe, other = context.Pipe(duplex=False)
        process = context.Process(target=_work, daemon=True, args=(
            other, os.getpid(), self.work, (script, str(directory), program, kept)))
        process.start()
        other.close()
        self.running[pipe] = (process, name, directory, time.monotonic() + RUN_SECONDS_MAX)

    def wait(self, seconds=None):
        """Returns [(name, result)] of runs that ended: at least one, none if none did within the time."""
        done = []
        for pipe in multiprocessing.connection.wait(list(self.running), seconds):
            try:
                result = json.loads(pipe.recv_bytes())
            except EOFError:
                result = failed("its process ended")
            done.append((self.running[pipe][1], result))
            self._remove(pipe)
        for pipe, (_, name, _, end) in list(self.running.items()):
            if time.monotonic() > end:
                done.append((name, failed(f"it took more than {RUN_SECONDS_MAX} s")))
                self._remove(pipe)
        return done

    def cancel(self):
        """Ends all runs."""
        for process, *_ in self.running.values():
            process.terminate()
        for pipe in list(self.running):
            self._remove(pipe)

    def _remove(self, pipe):
        process, _, directory, _ = self.running.pop(pipe)
        if pipe.closed is False:
            pipe.close()
        process.join(0 if process.exitcode is not None else 0.5)
        if process.is_alive():
            process.terminate()
            process.join(END_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()
        shutil.rmtree(directory, ignore_errors=True)
