"""Runs scripts in processes, several at a time. A process does one run after the other, so that the servers of a store
can serve several, and everything that it started ends with it."""

import atexit
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

import disks
import faults_postgresql  # noqa: F401 - registers the faults
import rules  # noqa: F401 - registers the rules
import sizes
from history import violations
from program import BINARY
from run import Run
from world import World
from world_postgresql import PostgresWorld

RUN_SECONDS_MAX = 900  # after which a run counts as one that could not be done
RUNS_OF_A_WORKER = 20
END_SECONDS = 20  # how long a run may need to end its parts
PR_SET_PDEATHSIG = 1
SIGNALS = (signal.SIGINT, signal.SIGTERM)
WORLDS = {"sqlite": World, "postgresql": PostgresWorld}  # by the store
NODES = {"sqlite": 1, "postgresql": 2}  # how many a script has by default
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


def _serve(pipe, parent, directory, work):
    """The process of a worker: does one run after the other. Its parts end with it, and it ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    atexit._clear()  # of the parent
    tempfile.tempdir = directory
    try:
        disks.isolate_mounts()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        while os.getppid() == parent:
            arguments, start = json.loads(pipe.recv_bytes()), time.monotonic()
            try:
                result = work(*arguments)
            except Exception:  # noqa: BLE001 - whatever it is, it is a result
                result = failed(traceback.format_exc(), time.monotonic() - start)
            pipe.send_bytes(json.dumps(result).encode())
    except (Ended, EOFError):
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        atexit._run_exitfuncs()  # ends what is kept from run to run; multiprocessing does not call them


class Worker:
    """A process that does runs. It is replaced after a failure, and after some runs, since ports stay reserved."""

    def __init__(self, directory, work):
        self.directory, self.runs, self.name, self.end, self.closed = directory, 0, None, None, False
        directory.mkdir()
        os.chmod(directory, 0o755)
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, daemon=True, args=(other, os.getpid(), str(directory), work))
        self.process.start()
        other.close()

    def start(self, name, *arguments):
        self.runs += 1
        self.name, self.end = name, time.monotonic() + RUN_SECONDS_MAX
        self.pipe.send_bytes(json.dumps([arguments[0], str(self.directory / str(self.runs)), *arguments[1:]]).encode())

    def result(self):
        """Returns the result of its run."""
        try:
            result = json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            result = failed("its process ended")
        shutil.rmtree(self.directory / str(self.runs), ignore_errors=True)
        return result

    def stop(self):
        """Asks it to end; `close` blocks until it has."""
        if not self.closed and self.process.is_alive():
            self.process.terminate()

    def close(self):
        if self.closed:
            return
        self.stop()
        self.process.join(END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.closed = True
        self.process.close()
        self.pipe.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Workers:
    """At most `jobs` runs at a time. A context, at whose end no run and no file of one is left."""

    def __init__(self, jobs, work=checked):
        self.jobs, self.work = jobs, work
        self.idle, self.running = [], []
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="constancia-histories-"))
        os.chmod(self.directory, 0o755)  # servers of other users have theirs in it
        self.made = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cancel()
        self._close(self.idle)
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def free(self):
        return len(self.running) < self.jobs

    def start(self, name, script, program=BINARY, kept=None):
        """Starts a run, whose result `wait` returns with its name."""
        if not self.idle:
            self.made += 1
            held = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # so that every process is known to `cancel`
            try:
                self.idle.append(Worker(self.directory / str(self.made), self.work))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, held)
        worker = self.idle[-1]
        self.running.append(worker)
        self.idle.pop()
        worker.start(name, script, program, kept)

    def wait(self, seconds=1):
        """Returns [(name, result)] of runs that ended, none if none did within the time."""
        ready = multiprocessing.connection.wait([worker.pipe for worker in self.running], seconds)
        done = []
        for worker in list(self.running):
            if worker.pipe in ready:
                result = worker.result()
            elif time.monotonic() > worker.end:
                result = failed(f"it took more than {RUN_SECONDS_MAX} s")
            else:
                continue
            done.append((worker.name, result))
            self.idle.append(worker)
            self.running.remove(worker)
            if result["error"] or worker.runs >= RUNS_OF_A_WORKER:
                worker.close()
                self.idle.remove(worker)
        return done

    def cancel(self):
        """Ends all runs."""
        self._close(self.running)

    @staticmethod
    def _close(workers):
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.close()
        workers.clear()
