"""The faults of a run: of processes (faults_process.py), of what these may use (faults_resources.py), of a machine
(faults_machine.py), and of the services that a node uses (faults_services.py)."""

import faults_machine  # noqa: F401 - registers its faults
import faults_process  # noqa: F401
import faults_resources  # noqa: F401
import faults_services  # noqa: F401
from fault import KINDS

CHANGEABLE = {name for one in faults_process.Reconfigure.CHANGES for name in one}  # settings
OF_CLOCK = {kind.name for kind in KINDS.values() if issubclass(kind, faults_machine.OfClock)}
COUNTS = (0, 1, 2, 3, 5, 8, 12)
BURST = 0.4  # seconds within which the faults of a burst begin
# Faults of which the second shows what the first has caused.
PAIRS = (("standbysunnamed", "primaryreplaced"), ("commitscancelled", "primaryreplaced"),
         ("standbyfrozen", "primaryreplaced"), ("clockapart", "rollingrestart"), ("failingstatements", "kill"),
         ("diskfull", "kill"), ("content", "powercut"), ("slowsync", "powercut"))

# Faults that harm a backup which is being made.
IN_BACKUPS = ("kill", "crashes", "restart", "powercut", "failingsync", "refusedsyncs", "slowsync", "diskfull",
              "content", "fewdescriptors", "littlememory")


def make(spec):
    return KINDS[spec["fault"]](spec)


def preloads(script):
    """Returns the names of what nodes must be started with so that the faults of a script can happen."""
    return {name for spec in script["faults"] for name in KINDS[spec["fault"]].preloads}


def draw_one(chosen, script, kinds, at):
    kind = chosen.choices(kinds, [one.weight for one in kinds])[0]
    return {"fault": kind.name, "at": round(at, 3),
            "for": round(chosen.choice(kind.lengths) * chosen.uniform(0.5, 1.5), 3), **kind.draw(chosen, script)}


def tie(chosen, script, spec, kind=None):
    """Lets a fault begin with a step of the kind, or of a random one, or briefly after it, and not at a time."""
    steps = [step for steps in script["clients"] for step in steps]
    kind = kind or chosen.choice(sorted({step.get("words", step["op"]) for step in steps}))
    after = chosen.choice([step["id"] for step in steps if step.get("words", step["op"]) == kind])
    return {**spec, "after": after, "at": round(chosen.choice((0, 0.01, 0.1)) * chosen.random(), 4)}


def draw_pair(chosen, script, seconds):
    """Returns two faults, the second of which begins during the first."""
    pairs = [pair for pair in PAIRS if all(KINDS.get(name) and KINDS[name].possible(script) for name in pair)]
    if not pairs:
        return []
    first, second = (draw_one(chosen, script, [KINDS[name]], 0.0) for name in chosen.choice(pairs))
    first["at"] = round(chosen.uniform(0, seconds / 2), 3)
    first["for"] = max(first["for"], 1.0)
    second["at"] = round(first["at"] + chosen.uniform(0.1, first["for"]), 3)
    return [first, second]


def draw_in_backups(chosen, script):
    """Returns faults that begin with a backup."""
    kinds = [KINDS[name] for name in IN_BACKUPS if KINDS[name].possible(script)]
    if not any(step.get("words") == "store backup" for steps in script["clients"] for step in steps):
        return []
    return [tie(chosen, script, draw_one(chosen, script, kinds, 0.0), "store backup")
            for _ in range(chosen.choice((1, 2, 4)))]


def draw(chosen, script, seconds):
    """Returns a random list of specifications for a run of about that many seconds: some anywhere in it, some in
    bursts. Most runs have few kinds, so that one of them happens in many states."""
    kinds = [kind for kind in KINDS.values() if kind.possible(script)]
    if chosen.random() < 0.6:
        kinds = sorted(set(chosen.choices(kinds, [one.weight for one in kinds], k=chosen.choice((1, 2, 3)))),
                       key=lambda kind: kind.name)
    times, count = [], chosen.choice(COUNTS)
    while len(times) < count:
        at = chosen.uniform(0, seconds)
        burst = chosen.choice((2, 3, 4)) if chosen.random() < 0.3 else 1
        times += [at + chosen.uniform(0, BURST) * (burst > 1) for _ in range(min(burst, count - len(times)))]
    drawn = [draw_one(chosen, script, kinds, at) for at in times]
    if chosen.random() < 0.3:
        drawn = [tie(chosen, script, one) if chosen.random() < 0.7 else one for one in drawn]
    if chosen.random() < 0.15:
        drawn += draw_pair(chosen, script, seconds)
    return sorted(drawn, key=lambda one: one["at"])
