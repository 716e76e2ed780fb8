"""A campaign: histories of consecutive seeds, their violations and counts in a file from which it can be resumed."""

import collections
import json
import os
import pathlib
import shutil
import signal
import sys
import time

import workers
from history import RULES

LINE_SECONDS = 1  # how often the line on a terminal is written again
TEXT_MAX = 500  # characters of a violation that are printed; the history has all of them


class Stopped(BaseException):
    """A signal asked the campaign to end."""


def stop_by_signals():
    """Has SIGINT and SIGTERM end the work in order."""
    def stop(*_):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise Stopped
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def write_atomically(path, document):
    """Replaces a JSON document, whole or not at all."""
    path = pathlib.Path(path)
    new = path.with_name(path.name + ".new")
    with open(new, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def said(found):
    """Returns the violations with the sentences of their rules, each rule once."""
    by_rule = {}
    for text in found:
        name, _, rest = text.partition(": ")
        by_rule.setdefault(name, []).append(rest[:TEXT_MAX] + ("…" if len(rest) > TEXT_MAX else ""))
    sentences = {one.name: one.sentence for one in RULES}
    return "\n".join(f"VIOLATED {name}: {sentences[name]}\n  " + "\n  ".join(many[:3]) +
                     (f"\n  and {len(many) - 3} more" if len(many) > 3 else "") for name, many in by_rule.items())


class State:
    """What a campaign has done. `path`: where it is kept, None for nowhere."""

    def __init__(self, path, store, seed):
        self.path = path
        self.document = {"version": 1, "store": store, "first_seed": seed, "next_seed": seed, "ahead": [],
                         "histories": 0, "seconds": 0.0, "operations": {}, "faults": {}, "violations": [],
                         "failures": []}
        self.resumed = False
        if path and path.exists():
            self.document = json.loads(path.read_text(encoding="utf-8"))
            self.resumed = True
            if self.document["store"] != store:
                raise ValueError(f"{path} is of a campaign on {self.document['store']}, not on {store}")

    def __getitem__(self, name):
        return self.document[name]

    def seeds(self):
        """Yields the seeds that are not done, in order."""
        seed, ahead = self["next_seed"], set(self["ahead"])
        while True:
            if seed not in ahead:
                yield seed
            seed += 1

    def add(self, seed, result):
        """Counts a run."""
        state = self.document
        ahead = {*state["ahead"], seed}
        while state["next_seed"] in ahead:
            ahead.remove(state["next_seed"])
            state["next_seed"] += 1
        state["ahead"] = sorted(ahead)
        state["histories"] += 1
        for kind, statuses in result["operations"].items():
            counts = state["operations"].setdefault(kind, {})
            for status, count in statuses.items():
                counts[status] = counts.get(status, 0) + count
        for name, count in result["faults"].items():
            state["faults"][name] = state["faults"].get(name, 0) + count
        if result["violations"]:
            state["violations"].append({"seed": seed, "rules": sorted(workers.rules_of(result)),
                                        "texts": result["violations"][:20]})
        if result["error"]:
            state["failures"].append({"seed": seed, "error": result["error"][-2000:]})

    def write(self):
        if self.path:
            write_atomically(self.path, self.document)

    @property
    def operations(self):
        return sum(sum(statuses.values()) for statuses in self["operations"].values())

    def summary(self):
        minutes = self["seconds"] / 60
        return (f"{self['histories']} histories, {self.operations} operations, "
                f"{sum(self['faults'].values())} faults, {len(self['violations'])} with violations, "
                f"{len(self['failures'])} not done, {minutes:.1f} minutes")

    def exit_status(self):
        return 1 if self["violations"] else 2 if self["failures"] else 0


class Progress:
    """One line that is written again on a terminal, plain lines elsewhere."""

    def __init__(self, stream):
        self.stream, self.terminal, self.width = stream, stream.isatty(), 0

    def line(self, text):
        """Shows where the work is; only on a terminal."""
        if self.terminal:
            self.stream.write("\r" + text[:shutil.get_terminal_size().columns - 1] + "\x1b[K")
            self.stream.flush()
            self.width = len(text)

    def say(self, text):
        """Writes a line that stays."""
        self.stream.write(("\r\x1b[K" if self.terminal and self.width else "") + text + "\n")
        self.stream.flush()
        self.width = 0

    def detail(self, text):
        """Writes a line that a terminal need not keep."""
        if not self.terminal:
            self.say(text)


class Campaign:
    """Runs the scripts that `script_of` draws until `runs` histories were started or the minutes are over, whichever
    is first. `until_violation`: ends at the first one. `keep`: where scripts and histories of violations go."""

    def __init__(self, state, script_of, keep, *, program, jobs, progress, runs=None, minutes=None,
                 until_violation=False):
        self.state, self.script_of, self.keep, self.program = state, script_of, keep, program
        self.jobs, self.progress, self.runs, self.until_violation = jobs, progress, runs, until_violation
        self.end = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
        self.started, self.scripts = 0, {}

    def may_start(self):
        return ((self.runs is None or self.started < self.runs) and time.monotonic() < self.end
                and not (self.until_violation and self.state["violations"]))

    def run(self):
        """Returns the exit status. Stopped: ends all runs, and keeps what was done."""
        self.began, self.before = time.monotonic(), self.state["seconds"]
        seeds = self.state.seeds()
        with workers.Workers(self.jobs) as crew:
            while self.may_start() or crew.running:
                while self.may_start() and crew.free:
                    self.start(crew, next(seeds))
                for seed, result in crew.wait(LINE_SECONDS):
                    self.done(seed, result)
                    if self.until_violation and result["violations"]:
                        return self.state.exit_status()
                self.progress.line(f"{self.state.summary()}; running {sorted(self.scripts)}")
        return self.state.exit_status()

    def start(self, crew, seed):
        self.started += 1
        self.scripts[seed] = self.script_of(seed)
        crew.start(seed, self.scripts[seed], self.program, str(self.keep / f"{seed}.history"))

    def done(self, seed, result):
        script = self.scripts.pop(seed)
        self.state.add(seed, result)
        self.state.document["seconds"] = self.before + time.monotonic() - self.began
        self.state.write()
        counts = sum(sum(statuses.values()) for statuses in result["operations"].values())
        self.progress.detail(f"seed {seed}: {counts} operations, {sum(result['faults'].values())} faults, "
                             f"{result['seconds']:.1f} s, checked in {result['checked']:.1f} s")
        if result["violations"] or result["error"]:
            (self.keep / f"{seed}.script.json").write_text(json.dumps(script, indent=1), encoding="utf-8")
        if result["violations"]:
            self.progress.say(f"seed {seed}\n{said(result['violations'])}\nkept: {self.keep}/{seed}.*")
        if result["error"]:
            self.progress.say(f"seed {seed} COULD NOT BE DONE, kept: {self.keep}/{seed}.script.json\n{result['error']}")


def repeated(script, runs, *, program, jobs, progress, keep, name="script"):
    """Runs a script that often. Returns the counters of rules violated and the last violations."""
    rules, texts = collections.Counter(), []
    with workers.Workers(jobs) as crew:
        started = 0
        while started < runs or crew.running:
            while started < runs and crew.free:
                crew.start(started, script, program, str(keep / f"{name}.{started}.history"))
                started += 1
            for number, result in crew.wait(LINE_SECONDS):
                rules.update(workers.rules_of(result))
                texts = result["violations"] or texts
                progress.detail(f"{name}, run {number + 1}: {', '.join(workers.rules_of(result)) or 'no violation'}, "
                                f"{result['seconds']:.1f} s")
                if result["error"]:
                    progress.say(f"{name} COULD NOT BE DONE\n{result['error']}")
            progress.line(f"{name}: {started} of {runs} runs started")
    return rules, texts


def standard_progress(as_json):
    return Progress(sys.stderr if as_json else sys.stdout)
