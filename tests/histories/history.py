"""A history: the operations that clients and operators requested of the service, with what was answered and when.

Times are seconds of a monotonic clock since the start of the run. An operation without an answer has the status 0;
it may have taken effect at any time after its invocation, or never.
"""

import dataclasses
import datetime
import functools
import json

NO_ANSWER = 0
FOREVER = float("inf")
VOLATILE = ("status", "timestamp", "proof", "receipt")  # members of an Event that may change or are of one answer


@dataclasses.dataclass
class Operation:
    """`kind` is the name of a method of operations.Interface, or an operator's command ("key create").

    `arguments` are as the script resolved them: names of chains, keys and accounts, digests instead of contents.
    `status` is that of HTTP; for commands 200 when done, 400 when refused. `answer` is the JSON document, or a
    summary of a file. `closing`: asked after all faults had ended and all clients had finished."""

    number: int
    client: str
    kind: str
    arguments: dict
    invoked: float
    completed: float = FOREVER
    status: int = NO_ANSWER
    answer: object = None
    headers: dict = dataclasses.field(default_factory=dict)
    node: int = 0
    closing: bool = False
    step: int | None = None  # of the script

    @property
    def good(self):
        return 200 <= self.status < 300

    @property
    def refused(self):
        """Whether it certainly has no effect."""
        return 400 <= self.status < 500

    def __str__(self):
        told = json.dumps(self.answer) if self.answer is not None else ""
        return (f"#{self.number} {self.client} {self.kind} {json.dumps(self.arguments)} "
                f"[{self.invoked:.3f}, {self.completed:.3f}] -> {self.status} {told[:400]}")


@dataclasses.dataclass
class Fault:
    name: str
    begun: float
    ended: float
    details: dict


def lasting(event):
    """Returns what of an Event may never change."""
    return {name: value for name, value in event.items() if name not in VOLATILE}


def first_of(operations):
    return min(operations, key=lambda one: one.invoked)


class History:
    """What a run recorded. `script` is what it ran; `deliveries` are the notices that receivers were sent, and
    `ends` the processes that ended unbidden."""

    def __init__(self, script, operations=(), faults=(), deliveries=(), ends=(), facts=None):
        self.script = script
        self.operations = sorted(operations, key=lambda one: one.invoked)
        self.faults, self.deliveries, self.ends = list(faults), list(deliveries), list(ends)
        # wall: the wall-clock time of the start; wall_error: seconds by which it may be wrong; clock_moved: whether a
        # node's wall clock was moved. Run.facts has the others.
        self.facts = facts or {}

    # ---- on disk ----

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            def line(kind, value):
                file.write(json.dumps({kind: value}) + "\n")
            line("script", self.script)
            line("facts", self.facts)
            for kind, many in (("operation", self.operations), ("fault", self.faults)):
                for one in many:
                    line(kind, dataclasses.asdict(one))
            for kind, many in (("delivery", self.deliveries), ("end", self.ends)):
                for one in many:
                    line(kind, one)

    @staticmethod
    def read(path):
        found = {kind: [] for kind in ("script", "facts", "operation", "fault", "delivery", "end")}
        with open(path, encoding="utf-8") as file:
            for line in file:
                for kind, value in json.loads(line).items():
                    found[kind].append(value)
        return History(found["script"][0], [Operation(**one) for one in found["operation"]],
                       [Fault(**one) for one in found["fault"]], found["delivery"], found["end"], found["facts"][0])

    # ---- for rules ----

    @functools.cached_property
    def by_kind(self):
        found = {}
        for place, one in enumerate(self.operations):
            found.setdefault(one.kind, []).append((place, one))
        return found

    def of(self, *kinds, closing=None):
        """Returns the operations of these kinds, in the order of their invocations."""
        found = sorted(pair for kind in set(kinds) for pair in self.by_kind.get(kind, ()))
        return [one for _, one in found if closing is None or one.closing == closing]

    @functools.cached_property
    def registrations(self):
        """Returns {chain: {client_ref: operations that registered it}}, in the order of their invocations."""
        found = {}
        for one in self.of("register"):
            found.setdefault(one.arguments["chain"], {}).setdefault(one.arguments["client_ref"], []).append(one)
        return found

    @functools.cached_property
    def final(self):
        """Returns {chain: its events in order} as listed after everything had ended."""
        found = {}
        for one in self.of("list", closing=True):
            if one.arguments["order"] == "asc" and one.good and not one.arguments["filters"]:
                found.setdefault(one.arguments["chain"], []).extend(one.answer["data"])
        return found

    @functools.cached_property
    def walks(self):
        """Returns {(an operator's list, account or None): its pages} as read last in the end."""
        found = {}
        for one in self.operations:
            if one.closing and one.good and "data" in (one.answer or ()) and "walk" not in one.arguments:
                place = (one.kind, one.arguments.get("account"))
                if not {"before", "after"} & set(one.arguments):
                    found[place] = []
                found.setdefault(place, []).append(one)
        return found

    @functools.cached_property
    def acknowledged(self):
        """Returns {chain: {event_id: time of its first acknowledgment}}."""
        found = {}
        for one in self.of("register"):
            if one.good:
                times = found.setdefault(one.arguments["chain"], {})
                event_id = one.answer["event_id"]
                times[event_id] = min(times.get(event_id, FOREVER), one.completed)
        return found

    @functools.cached_property
    def shown(self):
        """Returns {(chain, event_id): when an answer first showed the event}."""
        found = {}
        for one, chain, event in self.sightings:
            place = (chain, event["event_id"])
            found[place] = min(found.get(place, FOREVER), one.completed)
        return found

    @functools.cached_property
    def sightings(self):
        """Returns (operation, chain, event) for each Event in an answer, except for what may have been lost."""
        found = []
        for one in self.operations:
            if not one.good or one.kind not in ("register", "get_event", "list") or self.may_be_lost(one):
                continue
            events = one.answer["data"] if one.kind == "list" else [one.answer]
            found += [(one, one.arguments["chain"], event) for event in events]
        return found

    def may_be_lost(self, one):
        """Returns whether the operation is a read or a refusal that may come from a state which is not the last one:
        what no standby held and a promotion lost (after a cancelled wait or a restarted primary), or what a demoted
        primary holds that lives on, which the documentation forbids. Acknowledged registrations are never lost."""
        acknowledged = one.kind == "register" and one.good
        return not acknowledged and any(start <= one.completed and one.invoked <= end
                                        for name in ("lost", "split") for start, end in self.facts.get(name, ()))

    def wall_text(self, at):
        """Returns the wall-clock time at a time of the run, as the service states times."""
        moment = datetime.datetime.fromtimestamp(self.facts["wall"] + at, datetime.timezone.utc)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def chains_of(self, account):
        return [chain for chain in self.final if chain.split("/")[0] == account]

    def faulty(self, start, end, *names):
        """Returns whether a fault (of these names) was present within the time."""
        return any(fault.begun <= end and start <= fault.ended for fault in self.faults
                   if not names or fault.name in names)


@dataclasses.dataclass
class Rule:
    name: str
    sentence: str
    check: object

    def violations(self, history):
        return [f"{self.name}: {text}" for text in self.check(history)]


RULES = []


def rule(sentence):
    """Registers a function from a History to the descriptions of its violations."""
    def register(function):
        RULES.append(Rule(function.__name__, sentence, function))
        return function
    return register


def violations(history):
    return [text for one in RULES for text in one.violations(history)]
