#!/usr/bin/env python3
"""Runs random histories against the service and holds them to what it promised.

A seed determines a script (script.py): constants of the program, accounts, what clients do, and faults. Its run is
recorded (history.py) and checked by rules (rules_*.py), each a function with a sentence. docs/develop/histories.md
says more.

    histories.py --minutes 10                     ten minutes of random histories
    histories.py --minutes 600 --state FILE       a campaign; the same command continues it
    histories.py --script FILE --runs 10          one script, ten times
    histories.py --history FILE                   the rules on a recorded history
    histories.py --shrink SCRIPT -o FILE          the shortest script that violates the same rule
    histories.py --cases                          the tests of defects that were fixed
    histories.py --planted flush --minutes 30     a program with a planted fault, until a rule notices it
    histories.py --list                           the rules, the faults and what clients do
    histories.py --document                       writes them to docs/develop

Without --runs and --minutes, histories are run until a signal. SIGINT and SIGTERM end the work in order.
Exit status: 0: no violation; 1: violations (for --planted: a fault was not found; for --shrink: the script violated no
rule); 2: a run could not be done, or the arguments are wrong.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "torture")]

import campaign  # noqa: E402
import cases  # noqa: E402
import document  # noqa: E402
import planted  # noqa: E402
import rules  # noqa: E402, F401 - registers the rules
import script as scripts  # noqa: E402
import shrink  # noqa: E402
import workers  # noqa: E402
from history import RULES, History, violations  # noqa: E402
from program import BINARY  # noqa: E402

SHRINK_MINUTES = PLANTED_MINUTES = 30


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = made.add_argument_group("what is run (random histories)").add_mutually_exclusive_group()
    what.add_argument("--script", type=pathlib.Path, metavar="FILE", help="a script; once unless --runs is given")
    what.add_argument("--history", type=pathlib.Path, metavar="FILE", help="check a history that was kept")
    what.add_argument("--shrink", type=pathlib.Path, metavar="SCRIPT", help="reduce a script that violates a rule")
    what.add_argument("--planted", nargs="*", metavar="NAME", help="programs with planted faults (all that are built)")
    what.add_argument("--list", action="store_true", help="print the rules, faults and operations")
    what.add_argument("--document", action="store_true", help="write them to the documentation")
    made.add_argument("--cases", action="store_true",
                      help="run the cases of the store; before random histories if --runs or --minutes are given")
    made.add_argument("--minutes", type=float, help="end after that many; of --planted: for each fault "
                      f"({PLANTED_MINUTES}); of --shrink: for the search ({SHRINK_MINUTES})")
    made.add_argument("--runs", type=int, help="end after that many histories")
    made.add_argument("--seed", type=int, help="the first seed (random)")
    made.add_argument("--store", choices=tuple(workers.WORLDS), default="sqlite", help="the store (sqlite)")
    made.add_argument("--nodes", type=int, help="nodes of the service (what the store usually has)")
    made.add_argument("--jobs", type=int, default=2, help="histories at a time (2)")
    made.add_argument("--program", default=BINARY, help="the program (CONSTANCIA, or build/constancia)")
    made.add_argument("--previous", metavar="FILE",
                      help="a program of an earlier version, with which random histories begin")
    made.add_argument("--rule", help="of --shrink: the rule that has to stay violated (the one most often violated)")
    made.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE", help="of --shrink: the short script")
    made.add_argument("--state", type=pathlib.Path, metavar="FILE",
                      help="where a campaign, or --planted, keeps what is done; the same command continues it")
    made.add_argument("--keep", type=pathlib.Path, metavar="DIRECTORY",
                      help="where scripts and histories of violations go (a new directory)")
    made.add_argument("--json", action="store_true", help="print the result as JSON, and progress on standard error")
    return made


def list_all():
    for title, rows in document.TABLES.items():
        print(f"{title}:")
        for name, text in rows():
            print(f"  {name}: {text}")


def drawing(options):
    """Returns a function that draws the script of a seed."""
    nodes = options.nodes or workers.NODES[options.store]
    return lambda seed: scripts.draw(seed, options.store, nodes, options.previous)


def run_campaign(options, common):
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    state = campaign.State(options.state, options.store, seed)
    progress = common["progress"]
    if state.resumed:
        progress.say(f"resumed: {state.summary()}")
    work = campaign.Campaign(state, drawing(options), common["keep"],
                             program=options.program, jobs=options.jobs, progress=progress, runs=options.runs,
                             minutes=options.minutes)
    try:
        status = work.run()
    except campaign.Stopped:
        progress.say("stopped by a signal")
        status = state.exit_status()
    progress.say(f"seeds {state['first_seed']} to {state['next_seed'] - 1}: {state.summary()}")
    if options.json:
        print(json.dumps(state.document))
    return status


def run_script(options, common):
    script = json.loads(options.script.read_text(encoding="utf-8"))
    found, texts = campaign.repeated(script, options.runs or 1, program=options.program, jobs=options.jobs, **common)
    common["progress"].say(campaign.said(texts) or "no violation")
    for name, count in found.items():
        common["progress"].say(f"{name}: in {count} of {options.runs or 1} runs")
    if options.json:
        print(json.dumps({"runs": options.runs or 1, "rules": found}))
    return 1 if texts else 2 if found else 0


def run_shrink(options, common):
    script = json.loads(options.shrink.read_text(encoding="utf-8"))
    try:
        found = shrink.shrink(script, options.output, minutes=options.minutes or SHRINK_MINUTES, rule=options.rule,
                              program=options.program, jobs=options.jobs, **common)
    except shrink.NotShown as reason:
        common["progress"].say(str(reason))
        return 1
    except campaign.Stopped:
        common["progress"].say(f"stopped by a signal; the same command continues, {options.output} has the best so far")
        return 2
    print(json.dumps(found) if options.json else shrink.listed(found) + f"\nwritten: {options.output}")
    return 0


def run_planted(options, common):
    seed = options.seed if options.seed is not None else 1
    try:
        rows = planted.run(options.planted, drawing(options), path=options.state, store=options.store,
                           seed=seed, minutes=options.minutes or PLANTED_MINUTES, jobs=options.jobs, **common)
    except campaign.Stopped:
        common["progress"].say("stopped by a signal; with --state the same command continues")
        return 2
    print(json.dumps(rows) if options.json else planted.table(rows))
    return 0 if rows and all(row["found"] for row in rows.values()) else 1


def run_cases(options, common):
    try:
        return cases.run(options.store, program=options.program, jobs=options.jobs, **common)
    except campaign.Stopped:
        common["progress"].say("stopped by a signal")
        return 2


def check_history(path):
    found = violations(History.read(path))
    print(campaign.said(found) or f"{len(RULES)} rules hold")
    return 1 if found else 0


def main(arguments=None):
    made = parser()
    options = made.parse_args(arguments)
    if options.shrink and not options.output:
        made.error("--shrink needs -o FILE")
    if options.list or options.document:
        list_all() if options.list else document.write()
        return 0
    if options.history:
        return check_history(options.history)
    keep = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="constancia-kept-"))
    keep.mkdir(parents=True, exist_ok=True)
    common = {"keep": keep, "progress": campaign.standard_progress(options.json)}
    campaign.stop_by_signals()
    status = 0
    try:
        if options.cases:
            status = run_cases(options, common)
            if options.runs is None and options.minutes is None:
                return status
        for given, work in ((options.script, run_script), (options.shrink, run_shrink),
                            (options.planted is not None, run_planted), (True, run_campaign)):
            if given:
                return max(status, work(options, common), key=(0, 2, 1).index)
    except campaign.Stopped:
        return 2
    finally:
        if not options.keep and not any(keep.iterdir()):
            os.rmdir(keep)


if __name__ == "__main__":
    sys.exit(main())
