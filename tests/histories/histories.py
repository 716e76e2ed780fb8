#!/usr/bin/env python3
"""Runs random histories against the service and holds them to what it promised.

    histories.py [--minutes N | --runs N] [--seed N] [--store sqlite|postgresql] [--program FILE] [--script FILE]
                 [--history FILE] [--keep DIRECTORY]

A seed determines a script (script.py): constants of the program, accounts, what clients do, and faults. Its run is
recorded (history.py) and checked by rules (rules_*.py), each a function with a sentence. A violation prints the
sentence, and where the script and the history are; --script runs a script again, --history checks a history.
Exit status: 0: no violation; 1: violations; 2: a run could not be done.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "torture")]

import faults_postgresql  # noqa: E402, F401 - registers the faults
import rules  # noqa: E402, F401 - registers the rules
import script as scripts  # noqa: E402
import sizes  # noqa: E402
from history import RULES, History, violations  # noqa: E402
from program import BINARY  # noqa: E402
from run import Run  # noqa: E402
from world import World  # noqa: E402
from world_postgresql import PostgresWorld  # noqa: E402

WORLDS = {"sqlite": World, "postgresql": PostgresWorld}
NODES = {"sqlite": 1, "postgresql": 2}


def run_script(script, directory, program=BINARY):
    """Returns the history of one run. `directory` is created and removed."""
    os.makedirs(directory)
    os.chmod(directory, 0o755)
    sizes.use(script["sizes"])
    try:
        return Run(script, WORLDS[script["store"]](script, directory, program)).run()
    finally:
        sizes.use(None)


def said(found):
    """Returns the violations with the sentences of their rules, each rule once."""
    by_rule = {}
    for text in found:
        name, _, rest = text.partition(": ")
        by_rule.setdefault(name, []).append(rest)
    sentences = {one.name: one.sentence for one in RULES}
    return "\n".join(f"VIOLATED {name}: {sentences[name]}\n  " + "\n  ".join(many[:3]) +
                     (f"\n  and {len(many) - 3} more" if len(many) > 3 else "") for name, many in by_rule.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--program", default=BINARY)
    parser.add_argument("--script", type=pathlib.Path)
    parser.add_argument("--history", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    if options.history:
        found = violations(History.read(options.history))
        print(said(found) or f"{len(RULES)} rules hold")
        return 1 if found else 0
    directory = tempfile.mkdtemp(prefix="constancia-histories-")
    os.chmod(directory, 0o755)
    keep = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="constancia-kept-"))
    keep.mkdir(exist_ok=True)
    end = time.monotonic() + 60 * options.minutes if options.minutes else None
    bad = runs = operations = 0
    while (options.runs is None or runs < options.runs) and (end is None or time.monotonic() < end):
        seed = options.seed + runs
        script = json.loads(options.script.read_text()) if options.script else scripts.draw(seed, options.store, NODES[options.store])
        start = time.monotonic()
        history = run_script(script, os.path.join(directory, str(runs)), options.program)
        ran = time.monotonic() - start
        found = violations(history)
        runs += 1
        operations += len(history.operations)
        print(f"seed {seed}: {len(history.operations)} operations, {len(history.faults)} faults, {ran:.1f} s, "
              f"checked in {time.monotonic() - start - ran:.1f} s", flush=True)
        if found:
            bad += 1
            (keep / f"{seed}.script.json").write_text(json.dumps(script, indent=1))
            history.write(keep / f"{seed}.history")
            print(said(found), f"\nkept: {keep}/{seed}.*", flush=True)
        shutil.rmtree(os.path.join(directory, str(runs - 1)), ignore_errors=True)
        if options.script and options.runs is None and not end:
            break
    shutil.rmtree(directory, ignore_errors=True)
    print(f"{runs} histories, {operations} operations, {bad} with violations", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
