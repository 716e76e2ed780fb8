"""Reduces a script that violates a rule to a short one that violates the same rule.

Each reduction removes something (clients, steps, faults, set-up), or replaces something by its usual value (settings,
constants, contents, pauses). It stays if the rest still violates the rule. A run is a matter of chance: a script counts
as violating if one of `attempts` runs violates the rule, a number that follows from how often the original does.
Faults are tied to steps first ("after"), so that they stay where they are among steps when others are removed.
"""

import copy
import hashlib
import json
import math
import time

import campaign
import workers
from history import History

MEASURED = 6  # runs of the original
MISSED = 0.05  # probability that a script that violates as often as the original is taken for one that does not
ATTEMPTS_MAX = 20
CASE_MISSED = 0.01  # probability that a case does not show its defect
SMALL = {"json": {"form": "json", "seed": 1, "size": 1}, "hash": {"form": "hash", "seed": 1},
         "file": {"form": "file", "seed": 1, "size": 1}}


def attempts_for(rate, missed=MISSED):
    """Returns how many runs show what one run shows at this rate."""
    if rate >= 1:
        return 1
    return min(ATTEMPTS_MAX, math.ceil(math.log(missed) / math.log(1 - rate))) if rate > 0 else ATTEMPTS_MAX


# ---- what can be removed ----

def references(step):
    """Returns the names that a command needs."""
    return [value["$"] for value in step.get("arguments", {}).values() if isinstance(value, dict) and "$" in value]


def consistent(script, order=()):
    """Returns a copy without what can no longer be done: set-up whose names are missing. A fault after a removed step
    follows the last kept step before it. `order`: the numbers of steps as they began."""
    script = copy.deepcopy(script)
    bound = {f"receiver {number}" for number in range(len(script["receivers"]))}
    setup = []
    for step in script["setup"]:
        if all(name in bound for name in references(step)):
            setup.append(step)
            bound.add(step.get("binds"))
    script["setup"] = setup
    kept = {step["id"] for steps in script["clients"] for step in steps}
    for fault in script["faults"]:
        if fault.get("after") in kept or "after" not in fault:
            continue
        earlier = [number for number in order[:order.index(fault["after"])] if number in kept] \
            if fault["after"] in order else []
        del fault["after"]
        if earlier:
            fault["after"] = earlier[-1]
        else:
            fault["at"] = 0.0
    return script


def without_steps(script, numbers):
    script = copy.deepcopy(script)
    script["clients"] = [[step for step in steps if step["id"] not in numbers] for steps in script["clients"]]
    return script


def without_parts(script, parts):
    """Removes steps of crowds: (number of the crowd, place in it). One that is left is a step of its own."""
    script = copy.deepcopy(script)
    for place, steps in enumerate(script["clients"]):
        kept = []
        for step in steps:
            if step["op"] in ("at_once", "batch"):
                left = [one for number, one in enumerate(step["steps"]) if (step["id"], number) not in parts]
                if len(left) < 2:
                    step = {**left[0], "id": step["id"]} if left else None
                else:
                    step["steps"] = left
            kept += [step] if step else []
        script["clients"][place] = kept
    return script


def without_kinds(script, kinds):
    return without_steps(script, {step["id"] for step in steps_of(script) if kind_of(step) in kinds})


def without_places(name):
    """Returns a function that removes members of a list by their places."""
    def remove(script, places):
        return {**script, name: [one for place, one in enumerate(script[name]) if place not in places]}
    return remove


def without_names(name):
    def remove(script, names):
        return {**script, name: {key: value for key, value in script[name].items() if key not in names}}
    return remove


def without_clients(script, places):
    return {**script, "clients": [[] if place in places else steps for place, steps in enumerate(script["clients"])]}


def without_pauses(script, numbers):
    script = copy.deepcopy(script)
    for step in steps_of(script):
        if step["id"] in numbers:
            step.pop("pause", None)
    return script


def declaring(step):
    """Returns the parts of a step that declare a content: those of a crowd, or itself."""
    return [one for one in step.get("steps", (step,)) if "content" in one]


def small(content):
    return {**SMALL[content["form"]], "seed": content["seed"]} if content["form"] in SMALL else content


def with_small_contents(script, numbers):
    script = copy.deepcopy(script)
    for step in steps_of(script):
        for one in declaring(step) if step["id"] in numbers else ():
            one["content"] = small(one["content"])
    return script


def steps_of(script):
    return [step for steps in script["clients"] for step in steps]


def kind_of(step):
    return step.get("words", step["op"])


PHASES = (
    ("faults", lambda script: list(range(len(script["faults"]))), without_places("faults")),
    ("kinds of steps", lambda script: sorted({kind_of(step) for step in steps_of(script)}), without_kinds),
    ("clients", lambda script: [place for place, steps in enumerate(script["clients"]) if steps], without_clients),
    ("steps", lambda script: [step["id"] for step in steps_of(script)], without_steps),
    ("steps at once", lambda script: [(step["id"], place) for step in steps_of(script)
                                      if step["op"] in ("at_once", "batch")
                                      for place in range(len(step["steps"]))], without_parts),
    ("set-up", lambda script: list(range(len(script["setup"]))), without_places("setup")),
    ("faults", lambda script: list(range(len(script["faults"]))), without_places("faults")),
    ("settings", lambda script: list(script["settings"]), without_names("settings")),
    ("constants", lambda script: list(script["sizes"]), without_names("sizes")),
    ("pauses", lambda script: [step["id"] for step in steps_of(script) if step.get("pause")], without_pauses),
    ("contents", lambda script: [step["id"] for step in steps_of(script)
                                 if any(one["content"] != small(one["content"]) for one in declaring(step))],
     with_small_contents),
)


def whole_changes(script):
    """Yields changes of the whole script, as (name, script)."""
    if script["store"] != "sqlite":
        yield "on SQLite", {**script, "store": "sqlite", "nodes": 1}
    if script["nodes"] > 1:
        yield "one node", {**script, "nodes": 1}
    if script.get("backups") and not any(step["op"].startswith("backup_") or kind_of(step) == "store backup"
                                         for step in steps_of(script)):
        yield "without backups", {**script, "backups": False}
    filled = [steps for steps in script["clients"] if steps]
    if len(filled) > 1:
        yield "one client", {**script, "clients": [sorted(steps_of(script), key=lambda step: step["id"])]}
    if len(filled) < len(script["clients"]):
        yield "without empty clients", {**script, "clients": filled}
    receivers = [name for step in script["setup"] for name in references(step) if name.startswith("receiver ")]
    last = max([int(name.split()[1]) for name in receivers], default=-1)
    if last + 1 < len(script["receivers"]):
        yield "without receivers", {**script, "receivers": script["receivers"][:last + 1]}
    if any(script["receivers"]):
        yield "receivers without errors", {**script, "receivers": [[] for _ in script["receivers"]]}
    for place, fault in enumerate(script["faults"]):
        for name, value in (("at", 0.0), ("for", 0.05)):
            if fault[name] > value:
                yield f"{name} of {fault['fault']}", {**script, "faults": [
                    {**one, name: value} if number == place else one for number, one in enumerate(script["faults"])]}


def tied(history):
    """Returns the script of a history with its faults after steps, where steps began before them; and the numbers of
    steps in the order in which they began."""
    script = copy.deepcopy(history.script)
    begun = [(one.invoked, one.step) for one in history.operations if one.step is not None and not one.closing]
    for fault in script["faults"]:
        for happened in history.faults:
            earlier = [pair for pair in begun if pair[0] <= happened.begun]
            if happened.details == fault and earlier:
                fault.update(after=earlier[-1][1], at=round(happened.begun - earlier[-1][0], 3))
                break
    return script, [step for _, step in begun]


# ---- the search ----

class Runner:
    """Runs candidates. `first` returns the place of the first script of which one of `attempts` runs violates the rule,
    None if none does; `rates` how often rules are violated by a script."""

    def __init__(self, program, jobs, keep, progress, end):
        self.program, self.jobs, self.keep, self.progress, self.end = program, jobs, keep, progress, end
        self.runs = 0

    def over(self):
        return time.monotonic() > self.end

    def rates(self, script, runs):
        """Returns {rule: share of runs}, and the path of a history for each."""
        found, paths = {}, {}
        with workers.Workers(self.jobs) as crew:
            started = 0
            while started < runs or crew.running:
                while started < runs and crew.free:
                    crew.start(started, script, self.program, str(self.keep / f"original.{started}.history"))
                    started += 1
                for number, result in crew.wait():
                    self.runs += 1
                    for name in workers.rules_of(result):
                        found[name] = found.get(name, 0) + 1 / runs
                        paths.setdefault(name, self.keep / f"original.{number}.history")
                self.progress.line(f"measuring: {started} of {runs} runs started")
        return found, paths

    def first(self, scripts, attempts, rule):
        waiting = [(place, attempt) for place in range(len(scripts)) for attempt in range(attempts)]
        with workers.Workers(self.jobs) as crew:
            while (waiting and not self.over()) or crew.running:
                while waiting and crew.free and not self.over():
                    name = waiting.pop(0)
                    crew.start(name, scripts[name[0]], self.program)
                for (place, _), result in crew.wait():
                    self.runs += 1
                    if rule in workers.rules_of(result):
                        return place
        return None


class Shrinker:
    """`state`: {"original", "rule", "rate", "order", "best", "failed"}, saved by `save` after each change."""

    def __init__(self, runner, state, save, progress):
        self.runner, self.state, self.save, self.progress = runner, state, save, progress
        self.failed = set(state["failed"])

    @property
    def best(self):
        return self.state["best"]

    def violating(self, scripts):
        """Returns the place of the first of these scripts that violates the rule, None if there is none."""
        digests = [digest_of(script) for script in scripts]
        places = [place for place in range(len(scripts)) if digests[place] not in self.failed]
        attempts = attempts_for(self.state["rate"])
        found = self.runner.first([scripts[place] for place in places], attempts, self.state["rule"])
        if found is None:
            if not self.runner.over():
                self.failed.update(digests)
                self.state["failed"] = sorted(self.failed)
                self.save()
            return None
        self.state["best"] = scripts[places[found]]
        self.save()
        return places[found]

    def consistent(self, script):
        return consistent(script, self.state["order"])

    def reduce(self, name, parts_of, without):
        """Removes parts in chunks of half their number, of a quarter, and so on to single ones (ddmin)."""
        before = len(parts_of(self.best))
        size = before
        while size and not self.runner.over():
            self.remove_chunks(name, parts_of, without, size)
            size = min(size // 2, len(parts_of(self.best)))
        after = len(parts_of(self.best))
        if after < before:
            self.progress.detail(f"{name}: {before} -> {after}; {summary_of(self.best)}")
        return after < before

    def remove_chunks(self, name, parts_of, without, size):
        """Tries each chunk of that size once. After a removal it continues from the chunk before, since two are tried
        at a time."""
        place, chosen = 0, 0
        while chosen is not None and not self.runner.over():
            parts = parts_of(self.best)
            self.progress.line(f"{name}: {len(parts)} left, {size} at a time; {summary_of(self.best)}")
            chunks = [set(parts[start:start + size]) for start in range(place, len(parts), size)]
            if not chunks:
                break
            chosen = self.violating([self.consistent(without(self.best, chunk)) for chunk in chunks])
            place += max(0, (chosen or 0) - 1) * size

    def whole(self):
        """Tries changes of the whole script. Returns whether one stays."""
        changed, again = False, True
        while again and not self.runner.over():
            again = False
            for name, script in list(whole_changes(self.best)):
                if self.violating([self.consistent(script)]) is not None:
                    self.progress.detail(f"{name}; {summary_of(self.best)}")
                    changed = again = True
                    break
        return changed

    def run(self):
        """Reduces until nothing more can be removed or the time is over. Returns whether it is done."""
        changed = True
        while changed and not self.runner.over():
            changed = False
            for phase in PHASES:
                changed |= self.reduce(*phase)
            changed |= self.whole()
            self.measure()
        return not changed and not self.runner.over()

    def measure(self):
        """Measures the best script: it may violate the rule more often than the original, or less."""
        if not self.runner.over():
            rates, _ = self.runner.rates(self.best, MEASURED)
            self.state["rate"] = rates.get(self.state["rule"], self.state["rate"] / 2)
            self.save()


def digest_of(script):
    return hashlib.sha256(json.dumps(script, sort_keys=True).encode()).hexdigest()[:16]


def summary_of(script):
    clients = [steps for steps in script["clients"] if steps]
    return (f"{sum(map(len, clients))} steps of {len(clients)} clients, {len(script['setup'])} of set-up, "
            f"{len(script['faults'])} faults, {len(script['settings'])} settings, {len(script['sizes'])} constants")


# ---- as text ----

def described(value):
    if isinstance(value, dict):
        return value.get("$") or "{" + ", ".join(f"{name} {described(one)}" for name, one in value.items()) + "}"
    return json.dumps(value) if isinstance(value, list) else str(value)


def line_of(step):
    words = kind_of(step)
    if "binds" in step:
        words += f" as {step['binds']}"
    members = dict(step.get("arguments", {}))
    members |= {name: value for name, value in step.items()
                if name not in ("op", "words", "binds", "arguments", "id", "of", "pause", "node")}
    more = ", ".join(f"{name} {described(value)}" for name, value in members.items())
    return ("".join((f"#{step['id']} " if "id" in step else "", words, f" of #{step['of']}" if "of" in step else "",
                     f": {more}" if more else "", f", on node {step['node']}" if "node" in step else "",
                     f", after a pause of {step['pause']} s" if step.get("pause") else "")))


def listed(script):
    """Returns a script as text: who does what, and which fault is when."""
    lines = [f"store: {script['store']}, nodes: {script['nodes']}"]
    for title, member in (("settings", "settings"), ("constants", "sizes")):
        values = ", ".join(f"{name}={value}" for name, value in script[member].items())
        lines.append(f"{title}: {values or 'the usual ones'}")
    lines += [f"receiver {number} answers: {answers or '200'}" for number, answers in enumerate(script["receivers"])]
    lines += ["set-up:", *(f"  {line_of(step)}" for step in script["setup"])]
    for number, steps in enumerate(script["clients"]):
        lines += [f"client {number}:", *(f"  {line_of(step)}" for step in steps)]
    for fault in script["faults"]:
        more = {name: value for name, value in fault.items() if name not in ("fault", "at", "for", "after")}
        lines.append(f"fault: {fault['fault']} {described(more)}, {fault['at']} s after "
                     f"{'#' + str(fault['after']) + ' began' if 'after' in fault else 'the clients began'}, "
                     f"for {fault['for']} s")
    return "\n".join(lines)


# ---- the whole ----

class NotShown(Exception):
    """The script violated no rule."""


def begin(script, runner, rule, measured=MEASURED):
    """Measures the original. Returns the state of a new search."""
    rates, paths = runner.rates(script, measured)
    if rule is None:
        rule = max((name for name in rates if name != workers.NOT_DONE), key=rates.get, default=workers.NOT_DONE)
    if rule not in rates:
        raise NotShown(f"{measured} runs of the script did not violate "
                       f"{'a rule' if rule == workers.NOT_DONE else rule}: {rates}")
    state = {"original": digest_of(script), "rule": rule, "rate": rates[rule], "order": [], "best": script,
             "failed": []}
    if rule != workers.NOT_DONE:
        script, state["order"] = tied(History.read(paths[rule]))
        if runner.first([script], attempts_for(rates[rule]), rule) is not None:
            state["best"] = script
    return state


def shrink(script, output, *, minutes, program, jobs, keep, progress, rule=None):
    """Writes the shortest script found to `output`, with each improvement, and the state of the search next to it. A
    search that was stopped is resumed. Returns the script."""
    runner = Runner(program, jobs, keep, progress, time.monotonic() + 60 * minutes)
    path = output.with_name(output.name + ".search")
    state = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if state is None or state["original"] != digest_of(script) or rule not in (None, state["rule"]):
        state = begin(script, runner, rule)

    def save():
        campaign.write_atomically(path, state)
        campaign.write_atomically(output, case_of(state))
    save()
    progress.detail(f"{state['rule']}: in {state['rate']:.0%} of the runs, so {attempts_for(state['rate'])} attempts "
                    f"each; {summary_of(state['best'])}")
    done = Shrinker(runner, state, save, progress).run()
    if done:
        path.unlink()
    progress.say(f"{runner.runs} runs; " + ("nothing more can be removed" if done else "stopped by the time: the same "
                                            "command continues"))
    return state["best"]


def case_of(state):
    """Returns the shortest script as a case of tests/histories/cases, whose sentence an author has to write."""
    return {"finds": f"{state['rule']}: …", "runs": attempts_for(state["rate"], CASE_MISSED), **state["best"]}
