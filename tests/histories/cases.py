"""The cases in tests/histories/cases: short scripts that once violated a rule, because of a defect that was fixed."""

import json
import pathlib

import campaign

DIRECTORY = pathlib.Path(__file__).resolve().parent / "cases"


def load(directory=DIRECTORY):
    """Returns {name: script}: each has "finds", a sentence on what it found, and "runs", how often it is run."""
    found = {}
    for path in sorted(directory.glob("*.json")):
        found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    return found


def run(store, *, program, jobs, keep, progress, scripts=None):
    """Runs the cases of a store, each as often as it says. Returns the exit status."""
    status = 0
    for name, script in (load() if scripts is None else scripts).items():
        if script["store"] != store:
            continue
        rules, texts = campaign.repeated(script, script["runs"], program=program, jobs=jobs, progress=progress,
                                         keep=keep, name=name)
        if texts:
            progress.say(f"case {name} FAILS, {script['finds']}\n{campaign.said(texts)}\nkept: {keep}/{name}.*")
        status = max(status, 2 if not texts and rules else 1 if rules else 0)
        progress.say(f"case {name}: {script['runs']} runs, {sum(rules.values())} bad")
    return status
